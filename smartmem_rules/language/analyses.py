"""Facts about tensors: what authors write of them, written out as operators, rewrites and guards.

A fact is one condition of every element of a tensor.  It is known of constants by their elements, and of what `derive`
rules say.  Each `derive` rule is an equation as any other (the condition gives 1 for each element): it is checked,
verified and mutated as one; a guard that asks for a fact is, for a constant, a loop over its elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.rebuilding import rebuilt
from smartmem_rules.records import dataclass

_HOLDS, _KNOWN = "__holds", "__known"
"""End the names of the operators that give 1 where a fact holds of an element, and 1 everywhere."""
KIND, MERGE = "bool", "or"
"""The only kind of analysis, and how what two equal tensors are known to be becomes one."""
_TENSOR, _SHAPE, _INDEX, _RESULT = "x", "S", "i", "y"
INNER_NAMES = frozenset({_TENSOR, _SHAPE, _INDEX, _RESULT})
"""What the operator of an analysis has names for, and the analysis has not."""


@dataclass(frozen=True, slots=True)
class Fact(s.Binary):
    """A guard that asks for a fact: what it is for a constant, and what the e-graph is asked of other tensors."""

    analysis: str
    tensor: str


def operator_name(analysis: str) -> str:
    """The name of the operator that stands for an analysis."""
    return f"{analysis}{_HOLDS}"


def operators_of(analysis: s.Analysis) -> tuple[s.Operator, s.Operator]:
    """The operator that gives 1 for each element of which the fact holds, else 0, and one that gives 1 for each.

    They take the element types that the analysis is about, and no others.
    """
    span = analysis.span
    one_if = (_at_each(analysis, _TENSOR), s.Number(span, 1), s.Number(span, 0))
    holds = _operator(analysis, operator_name(analysis.name), s.Call(span, "select", one_if))
    return holds, _operator(analysis, f"{analysis.name}{_KNOWN}", s.Number(span, 1))


def _operator(analysis: s.Analysis, name: str, body: s.Expression) -> s.Operator:
    span, places = analysis.span, {"name": analysis.place("name")}
    type_ = s.TensorType(span, "T", (s.Splat(span, s.Name(span, _SHAPE)),))
    index = s.Binder(span, _INDEX, "loops", s.Name(span, "_"), places=places)
    return s.Operator(
        span=span,
        name=name,
        dtypes=(s.DtypeVariable(span, "T", (analysis.dtype,), places=places),) if analysis.dtype is not None else (),
        inputs=(s.Input(span, _TENSOR, type_, None, False, False, None, places=places),),
        attributes=(),
        outputs=(s.Output(span, _RESULT, type_, None, places=places),),
        commutative=False,
        internal=True,
        onnx=None,
        also=(),
        requires=(),
        lets=(),
        equations=(s.EquationSyntax(span, _RESULT, None, (index,), body, False, places=places),),
        declared_class=None,
        declared_mapping=None,
        places=places,
    )


def equation_of(rule: s.Derive) -> s.Rewrite:
    """The equation of a `derive` rule: the fact's operator gives 1 for each element of its term."""
    span = rule.term.span
    places = {"name": rule.places.get("analysis", span)}
    left = s.PatternOperator(span, operator_name(rule.analysis), (rule.term,), (), None, None, None, places=places)
    return s.Rewrite(
        span=rule.span,
        name=rule.name,
        ruleset="",
        left=left,
        right=replace(left, operator=f"{rule.analysis}{_KNOWN}"),
        bidirectional=False,
        guards=rule.guards,
        relaxes=(),
        unsound=None,
        comment=rule.comment,
        explores=True,
        tags=rule.tags,
        lets=rule.lets,
        cites=rule.cites,
        derives=rule.analysis,
        places=rule.places,
    )


def term_of(rule: s.Rewrite) -> s.Pattern:
    """The term of which a written-out `derive` rule knows a fact."""
    assert isinstance(rule.left, s.PatternOperator)
    return rule.left.arguments[0]


def guard_of(call: s.Call, analysis: s.Analysis) -> Fact | None:
    """A guard that asks for a fact of one tensor, written out; None where it asks for anything else."""
    span = call.span
    if len(call.arguments) != 1 or not isinstance(call.arguments[0], s.Name):
        return None
    tensor = call.arguments[0]
    loop = s.Binder(span, "_i", "loops", s.Call(span, "shape", (tensor,)), places={"name": span})
    return Fact(
        span=span,
        operator="and",
        left=s.Call(span, "constant", (tensor,)),
        right=s.Reduction(span, "all", (loop,), None, _at_each(analysis, tensor.id, "_i")),
        analysis=analysis.name,
        tensor=tensor.id,
    )


def facts_of(rule: s.Rewrite) -> Iterator[Fact]:
    """The facts that the guards of a written-out rule ask for."""
    return (guard for guard in rule.guards if isinstance(guard, Fact))


def _at_each(analysis: s.Analysis, tensor: str, index: str = _INDEX) -> s.Expression:
    span = analysis.span
    element = s.Subscript(span, s.Name(span, tensor), (s.Splat(span, s.Name(span, index)),), None)
    return rebuilt(
        analysis.meaning,
        lambda node: element if isinstance(node, s.Name) and node.id == analysis.parameter else None,
    )

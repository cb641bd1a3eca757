"""Proofs by z3 beyond index rules: elementwise algebra over the reals, then normal forms; views for all extents.

An elementwise rewrite is proved for one scalar of each operand: operands that broadcast reach every element of the
result as some scalar, and both sides have one shape, because the engine refuses all else.  Guards about numbers are
assumed; those about shapes are not needed.  Both sides are defined at the same points, as far as the rule does not
relax `nan` or `infinities`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.patterns import subpatterns
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.binding import FLOATS
from smartmem_rules.verification.instances.case import Case
from smartmem_rules.verification.instances.cases import Search
from smartmem_rules.verification.proof.formulas import Formulas, Unprovable
from smartmem_rules.verification.proof.open_rewrites import MOST_WAYS, prove_open
from smartmem_rules.verification.proof.open_views import BOUND, prove_views
from smartmem_rules.verification.semantics.terms import leaves
from smartmem_rules.verification.trials.rewrites import directions

MILLISECONDS = 20_000
RESOURCES = 8_000_000
"""What z3 may spend on one question: its own count, so that a busy machine changes no verdict."""
_CASES = 160
_TRIES = 40
MARKERS = (-0.8828125, 0.6171875, 1.3671875, 2.1171875, 3.8828125)
"""Numbers that no definition has: where they turn up in a formula they stand for the attribute that has them."""


@dataclass(frozen=True)
class Proof:
    """What came of a proof: proved or unknown, by which method or for which reason."""

    answer: str
    method: str = ""
    reason: str = ""
    numbers: Mapping[str, Fraction] = field(default_factory=dict)
    """Elements of the operands at which z3 finds the sides different: they become a trial."""


def prove_rewrite(rule: ast.Rewrite, instances: Instances, most_ways: int = MOST_WAYS) -> Proof:
    """Whether a rewrite holds for all real numbers: elementwise, or by the normal forms of both sides.

    `most_ways` bounds how many cases of ranks, attributes and extents the normal forms are compared in.
    """
    try:
        import z3  # type: ignore[import-untyped]
    except ImportError:
        return Proof("unknown", reason="z3-solver is not installed")
    try:
        for left, right in directions(rule):
            _prove_direction(rule, left, right, instances, z3)
    except Unprovable as reason:
        return _prove_open(rule, instances, z3, reason, most_ways)
    return Proof("proved", "z3: all real numbers, elementwise")


def _prove_open(rule: ast.Rewrite, instances: Instances, z3: Any, before: Unprovable, most_ways: int) -> Proof:
    """By normal forms, where the elements alone decided nothing."""
    try:
        found = [prove_open(rule, left, right, instances, z3, most_ways) for left, right in directions(rule)]
    except Unprovable as reason:
        return Proof("unknown", reason=f"{before}; {reason}", numbers=before.numbers)
    count, bound = sum(f.instances for f in found), max(f.bound for f in found)
    method = f"normal forms: all extents from 1 on and real numbers, {count} cases of ranks up to {bound}"
    return Proof("proved", method)


def _prove_direction(rule: ast.Rewrite, left: ast.Pattern, right: ast.Pattern, instances: Instances, z3: Any) -> None:
    search = Search(rule, left, right, instances, 0)
    reason = Unprovable("no instance of floats or truth values was found")
    for case in _generic(search, left, instances):
        try:
            return _prove_case(rule, left, right, case, instances, z3)
        except Unprovable as why:
            reason = why
            if "two attributes" not in str(why):
                break
    raise reason


def _generic(search: Search, left: ast.Pattern, instances: Instances) -> Iterator[Case]:
    """Instances of floats whose attributes are numbers that nothing else is."""
    names = _float_attributes(left, instances)
    wanted = (*FLOATS, "bool")
    source = random.Random(0)
    for number, case in enumerate(search.cases(_CASES)):
        if number >= _CASES:
            return
        if case is None or {leaf.type.dtype for leaf in leaves(case.left).values()} - set(wanted):
            continue
        if not names:
            yield case
            continue
        for _ in range(_TRIES):
            slots = [f"name:{n}" for n in names if case.choices.get(f"name:{n}") is not None]
            if len(slots) > len(MARKERS):
                break
            changed = {**case.choices, **dict(zip(slots, source.sample(MARKERS, len(slots)), strict=True))}
            marked = search.build(changed)
            if marked is not None and marked.satisfied and marked.right is not None:
                yield marked
        yield case


def _float_attributes(pattern: ast.Pattern, instances: Instances) -> list[str]:
    """The names that a left side gives to attributes that are floats."""
    if not isinstance(pattern, ast.PatternOperator):
        return []
    overloads = instances.base.operators.get(pattern.operator, ())
    kinds = {a.name: a.kind for o in overloads for a in o.attributes}
    kinds |= {i.name: str(i.constant) for o in overloads for i in o.inputs if i.constant is not None}
    own = [a.value.id for a in pattern.attributes if kinds.get(a.name) == "float" and isinstance(a.value, ast.Name)]
    below = [n for a in pattern.arguments for n in _float_attributes(a, instances)]
    return list(dict.fromkeys([*own, *below]))


def _prove_case(
    rule: ast.Rewrite, left: ast.Pattern, right: ast.Pattern, case: Case, instances: Instances, z3: Any
) -> None:
    assert case.right is not None
    formulas = Formulas(z3, instances, _near(rule), _optional(rule, left, instances))
    one = formulas.side(left, case.left, matched=True)
    finite, formulas.conditions = formulas.conditions, []
    real, formulas.real = formulas.real, []
    other = formulas.side(right, case.right, matched=False)
    guards = [g for guard in rule.guards if (g := formulas.guard(guard)) is not None]
    facts = [*guards, *formulas.axioms]
    known = [*facts, *finite, *real]
    divides = {"nan", "infinities"} & set(rule.relaxes)
    others = [*formulas.real, *formulas.conditions]
    if others and not divides:
        _refute(formulas, known, z3.Not(z3.And(*others)), "the right side is not defined wherever the left is")
    kept = [*([] if "nan" in rule.relaxes else real), *([] if divides else finite)]
    if kept:
        wrong = z3.Not(z3.And(*kept))
        _refute(formulas, [*facts, *others], wrong, "the left side is not defined wherever the right is")
    differs = "one scalar of each side differs"
    if formulas.unknown:
        differs += f" if {', '.join(formulas.unknown)} may give anything"
    _refute(formulas, [*known, *others], one != other, differs)


def _optional(rule: ast.Rewrite, left: ast.Pattern, instances: Instances) -> frozenset[str]:
    """The names of attributes of which no guard says whether they are there; one that compares a number says so."""
    found: set[str] = set()
    for pattern in subpatterns(left):
        if not isinstance(pattern, ast.PatternOperator):
            continue
        for overload in instances.base.operators.get(pattern.operator, ()):
            absent = {a.name for a in overload.attributes if not a.required and a.default is None}
            absent |= {i.name for i in overload.inputs if i.constant is not None and i.optional}
            found.update(a.value.id for a in pattern.attributes if a.name in absent and isinstance(a.value, ast.Name))
    return frozenset(found - set().union(*map(_settled, rule.guards)))


def _settled(guard: ast.Expression) -> set[str]:
    match guard:
        case ast.Binary(operator="and", left=left, right=right):
            return _settled(left) | _settled(right)
        case ast.Binary(operator="<" | "<=" | ">" | ">=" | "==", left=left, right=right):
            return {side.id for side in (left, right) if isinstance(side, ast.Name)}
        case ast.Call(function="present" | "near", arguments=(ast.Name(id=name), *_)):
            return {name}
        case ast.Unary(operator="not", operand=ast.Call(function="present", arguments=(ast.Name(id=name),))):
            return {name}
    return set()


def _near(rule: ast.Rewrite) -> list[float]:
    from smartmem_rules.verification.instances.roles import hints_of  # start-up time

    return hints_of(rule.guards, rule.right).near


def _refute(formulas: Formulas, known: list[Any], wrong: Any, what: str) -> None:
    z3 = formulas.z3
    solver = z3.Solver()
    solver.set("timeout", MILLISECONDS)
    solver.set("rlimit", RESOURCES)
    solver.add(*known, wrong)
    answer = solver.check()
    if answer == z3.sat:
        raise Unprovable(f"z3 finds numbers at which {what}", formulas.numbers(solver.model()))
    if answer != z3.unsat:
        raise Unprovable(f"z3: {solver.reason_unknown()}")


# --- views -----------------------------------------------------------------------------------------------


def prove_eliminate(rule: ast.Eliminate, instances: Instances) -> Proof:
    """Whether an operator is a view that stays inside its operand, for all extents and attributes."""
    try:
        import z3
    except ImportError:
        return Proof("unknown", reason="z3-solver is not installed")
    try:
        found = prove_views(rule, instances, z3)
    except Unprovable as reason:
        return Proof("unknown", reason=str(reason))
    return Proof("proved", f"all extents from 1 on and attributes, {found} views of ranks up to {BOUND}")

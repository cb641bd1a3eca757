"""Guards and computed attributes must be pure: values of what the left side bound, nothing read, nothing refused."""

from __future__ import annotations

from collections.abc import Iterator

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expansion import Names
from smartmem_rules.language.expressions import tensors_of
from smartmem_rules.language.fixes import advice
from smartmem_rules.language.vocabulary import ELEMENT_FUNCTIONS, GUARD_FUNCTIONS, LIST_FUNCTIONS
from smartmem_rules.rulebase.checks.meant.outputs import check_output_in_brackets
from smartmem_rules.rulebase.checks.scope import children, head

_OF_ELEMENTS = ELEMENT_FUNCTIONS.keys() - LIST_FUNCTIONS.keys() - GUARD_FUNCTIONS.keys()


GUARD, ATTRIBUTE, CONSTANT = "a guard", "an attribute of the right side", "a constant of the right side"
"""What an expression of a rule is for."""
_TYPE_OF_TENSOR = "write `value({0})` for the one value of a constant, or `shape({0})`, `rank({0})`, ..."
_INSTEAD_OF_TENSOR = {
    CONSTANT: "to compute with tensors name operators: `Add(x, y)`; `value({0})` is the value of a constant",
}


def impurities(
    expression: s.Expression, tensors: frozenset[str], names: Names, what: str = GUARD
) -> Iterator[Diagnostic]:
    """Whatever an expression asks of elements, or of the state of the search.

    Args:
        tensors: the names that stand for tensors.
        what: what the expression is for, in words.
    """
    match expression:
        case s.Reduction():
            yield from _loop(expression, tensors, what)
            return
        case s.Call(function=function) if function in _OF_ELEMENTS:
            fix = "compare what is known before the model runs: `rank`, `shape`, `dtype`, `extent` or `value(c)`"
            yield _impure(f"{what} cannot compute elements with `{function}`", head(expression.span, function), fix)
        case s.Call(function="fail"):
            yield _impure(f"{what} cannot fail", head(expression.span, "fail"), "say what must hold instead")
        case s.Call(function="uses") if what != GUARD:
            message = "the right side cannot depend on how often something is used"
            yield _impure(message, head(expression.span, "uses"), "ask it in a guard")
            return
        case s.Call(
            function="shape"
            | "extent"
            | "dtype"
            | "count"
            | "present"
            | "constant"
            | "value"
            | "uses"
            | "rank" as function
        ):
            for argument in expression.arguments[1:] if function == "extent" else ():
                yield from impurities(argument, tensors, names, what)
            return
        case s.Subscript(base=s.Name(id=name)) if name in tensors:
            fix = f"`value({name})` is the value of a constant with one distinct value; a loop looks at all elements"
            yield _impure(f"{what} cannot read elements of the tensor `{name}`", expression.span, fix)
            return
        case s.Call(function=function) if function in names.predicates or function in names.analyses:
            for argument in expression.arguments:
                if not isinstance(argument, s.Name | s.Term):
                    yield from impurities(argument, tensors, names, what)
            return
        case s.Name(id=name) if name in tensors and name not in names.constants:
            fix = _INSTEAD_OF_TENSOR.get(what, _TYPE_OF_TENSOR).format(name)
            yield _impure(f"{what} sees the type of the tensor `{name}`, not its elements", expression.span, fix)
        case s.Term() | s.Subscript(base=s.Term()):
            yield _of_term(expression, what)
            return
    for child in children(expression):
        yield from impurities(child, tensors, names, what)


def _of_term(read: s.Expression, what: str) -> Diagnostic:
    fix = "ask for its `shape`, `rank`, `dtype`, `extent` or `value`"
    output = check_output_in_brackets(read, Code.IMPURE)
    return output or _impure(f"{what} sees the type of a term, not its elements", read.span, fix)


def _loop(loop: s.Reduction, tensors: frozenset[str], what: str) -> Iterator[Diagnostic]:
    """A loop that looks at no tensor of the left side; that those are constant is asked of the rule as a whole."""
    read = {name for name, _ in tensors_of(loop)}
    if not read:
        fix = "use a function of lists, such as `sum_of`"
        yield _impure(f"this loop of {what} reads no constant", loop.span, fix)
    elif not read & tensors:
        fix = "read a constant that the left side names: `all(k < extent(c, 0)) c[k] >= 0`"
        yield _impure("a loop looks at the elements of what the left side binds", loop.span, fix)


def _impure(message: str, span: s.Span, fix: str) -> Diagnostic:
    return Diagnostic(Code.IMPURE, "error", message, span, fix=advice(fix))

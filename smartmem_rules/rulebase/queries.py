"""What guards may ask of the tensors that a pattern bound: `constant`, `value`, `uses`, `rank`, `near`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.printing.printer import print_pattern
from smartmem_rules.tensor.builtins import DOUBLE, SINGLE, DefinitionError, Value, near
from smartmem_rules.tensor.definitions.values import Scope, TensorList, evaluate

Subject = TypeVar("Subject", contravariant=True)
QUERIES = frozenset({"constant", "value", "uses", "rank", "near"})
"""The functions that `queries_of` gives."""


class Answers(Protocol[Subject]):
    """Who knows the tensors."""

    def rank(self, subject: Subject) -> int: ...

    def constant(self, subject: Subject) -> bool: ...

    def value(self, subject: Subject) -> float | None: ...

    def uses(self, subject: Subject, name: str) -> int: ...


def queries_of(
    bound: Mapping[str, Subject | Sequence[Subject]],
    answers: Answers[Subject],
    term: Callable[[ast.Pattern], Subject | None] | None = None,
) -> dict[str, Callable[..., Value]]:
    """The functions of `Scope.queries` over the names of a pattern; a sequence stands for a list.

    `term` gives what a term of the rule is, where guards may ask about terms.
    """

    def subject(expr: ast.Call, scope: Scope) -> tuple[str, Subject] | None:
        argument = expr.arguments[0] if expr.arguments else None
        if isinstance(argument, ast.Term):
            made = None if term is None else term(argument.pattern)
            return None if made is None else (print_pattern(argument.pattern), made)
        if isinstance(argument, ast.Name):
            found = bound.get(argument.id)
            return None if found is None or isinstance(found, Sequence) else (argument.id, found)
        if isinstance(argument, ast.Subscript) and isinstance(argument.base, ast.Name):
            members = bound.get(argument.base.id)
            if isinstance(members, Sequence):
                place = evaluate(argument.items[0], scope)
                return (f"{argument.base.id}[{place}]", members[place]) if isinstance(place, int) else None
        return None

    def tensor(expr: ast.Call, scope: Scope) -> tuple[str, Subject]:
        found = subject(expr, scope)
        if found is None:
            raise DefinitionError(f"{expr.span}: {expr.function} needs a tensor that the left side binds")
        return found

    def constant(expr: ast.Call, scope: Scope) -> Value:
        return answers.constant(tensor(expr, scope)[1])

    def value(expr: ast.Call, scope: Scope) -> Value:
        return answers.value(tensor(expr, scope)[1])

    def uses(expr: ast.Call, scope: Scope) -> Value:
        name, found = tensor(expr, scope)
        return answers.uses(found, name)

    def rank(expr: ast.Call, scope: Scope) -> Value:
        found = subject(expr, scope)
        if found is not None:
            return answers.rank(found[1])
        (items,) = (evaluate(argument, scope) for argument in expr.arguments)
        if not isinstance(items, tuple):
            raise DefinitionError(f"{expr.span}: rank needs a tensor or a list")
        return len(items)

    return {"constant": constant, "value": value, "uses": uses, "rank": rank, "near": _near}


def _near(expr: ast.Call, scope: Scope) -> Value:
    """Whether two numbers are one to single precision, or to double precision where a tensor of the rule has it."""
    one, other = (evaluate(argument, scope) for argument in expr.arguments)
    named = [t for t in scope.tensors.values() if t is not None]
    types = [m.type.dtype for t in named for m in (t.members if isinstance(t, TensorList) else (t,))]
    return near(one, other, DOUBLE if "float64" in types else SINGLE)

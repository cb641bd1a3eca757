"""Guards of types, shapes and attributes: decided while an instance is drawn, so that a wrong draw is done again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import conjuncts
from smartmem_rules.tensor.builtins import FUNCTIONS, DefinitionError, Unsupported
from smartmem_rules.tensor.definitions.values import Scope, truth
from smartmem_rules.tensor.instantiate import names_in
from smartmem_rules.verification.instances.roles import nodes

_OF_TYPES = frozenset({"shape", "rank", "extent", "dtype", "count", "present"})


@dataclass(frozen=True)
class EarlyGuards:
    """The guards that types and attributes decide, each with the names of which it speaks."""

    guards: tuple[tuple[ast.Expression, frozenset[str]], ...]

    def check(self, before: Set[str], known: Set[str], scope: Callable[[], Scope]) -> None:
        """Look at the guards of which all names are known, and some were not before.

        Raises:
            Unsupported: one of them does not hold.
        """
        decided = [guard for guard, names in self.guards if names <= known and not names <= before]
        if not decided:
            return
        seen = scope()
        for guard in decided:
            if _is_refuted(guard, seen):
                raise Unsupported(f"a guard does not hold ({guard.span})")


def early_guards(guards: Sequence[ast.Expression], functions: Mapping[str, ast.Function]) -> EarlyGuards:
    """Those of some guards that types and attributes decide."""
    parts = [part for part in conjuncts(*guards) if _is_of_types(part, functions)]
    return EarlyGuards(tuple((part, frozenset(names_in(part))) for part in parts))


def _is_of_types(guard: ast.Expression, functions: Mapping[str, ast.Function]) -> bool:
    for node in nodes(guard):
        if isinstance(node, ast.Call):
            if node.function not in _OF_TYPES and node.function not in FUNCTIONS and node.function not in functions:
                return False
        elif isinstance(node, ast.Term | ast.Reduction):
            return False
    return True


def _is_refuted(guard: ast.Expression, scope: Scope) -> bool:
    try:
        return not truth(guard, scope)
    except (DefinitionError, Unsupported):
        return False  # an attribute that is left out has its default later

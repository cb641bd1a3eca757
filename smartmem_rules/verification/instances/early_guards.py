"""Guards of types, shapes and attributes: decided while an instance is drawn, so that a wrong draw is done again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import conjuncts
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import FUNCTIONS, DefinitionError, Unsupported
from smartmem_rules.tensor.definitions.values import Scope, truth
from smartmem_rules.tensor.instantiate import names_in
from smartmem_rules.verification.instances.roles import nodes

_OF_TYPES = frozenset({"shape", "rank", "extent", "dtype", "count", "present"})


_FIRST = 3
"""Instances that are looked for in each way before the better one is known."""


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


@dataclass
class Ways:
    """Whether looking at guards early pays: what several operators decide together is found sooner by repairs.

    Attributes:
        sought: the instances that were looked for, with guards looked at late and early.
        found: those that were found.
        tries: operators that were drawn for them.
    """

    sought: list[int] = field(default_factory=lambda: [0, 0])
    found: list[int] = field(default_factory=lambda: [0, 0])
    tries: list[int] = field(default_factory=lambda: [0, 0])

    def early(self) -> bool:
        """Whether the next instance is looked for with guards looked at early."""
        if min(self.sought) < _FIRST:
            return self.sought[1] <= self.sought[0]
        return self.tries[1] * (1 + self.found[0]) <= self.tries[0] * (1 + self.found[1])

    def note(self, early: bool, found: bool, tries: int) -> None:
        """An instance was looked for in one of the ways."""
        self.sought[early] += 1
        self.found[early] += found
        self.tries[early] += tries


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

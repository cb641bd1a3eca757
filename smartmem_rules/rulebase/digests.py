"""Digests of rules with all that they speak of: operators, and functions that they or those name.

Those of the built-in rules are computed once, when the rules are checked, and kept with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Set
from functools import cached_property, lru_cache
from typing import Protocol

from smartmem_rules.language import syntax as s
from smartmem_rules.language.cache import digest_of
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.packed import PackedOperators

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class KnownDigests:
    """Digests that were computed when the rules were checked.

    Attributes:
        rules: each with its digest, by name.
        functions: all that there were.
    """

    rules: Mapping[str, tuple[s.Rule, str]]
    functions: Mapping[str, s.Function]

    @staticmethod
    def of(base: Rules) -> KnownDigests:
        """Those of all rules of a rule base."""
        digests = Digests(base)
        return KnownDigests({rule.name: (rule, digests.of(rule)) for rule in base.rules()}, dict(base.functions))

    def hold_for(self, base: Rules) -> bool:
        """Whether the rules of a rule base speak of the same operators and functions as they did."""
        if not isinstance(base.operators, PackedOperators) or base.operators.index is None:
            return False
        same = len(base.functions) == len(self.functions)
        return same and all(self.functions.get(name) is function for name, function in base.functions.items())


class Rules(Protocol):
    """What is needed of a rule base."""

    @property
    def operators(self) -> Mapping[str, list[s.Operator]]: ...

    @property
    def functions(self) -> Mapping[str, s.Function]: ...

    @property
    def digests(self) -> KnownDigests | None: ...

    def rules(self) -> list[s.Rule]: ...


class Digests:
    """The digests of the rules of a rule base."""

    def __init__(self, base: Rules) -> None:
        self._base = base
        known = base.digests
        self._known = known.rules if known is not None and known.hold_for(base) else {}
        self._operators: dict[str, str] = {}

    def of(self, rule: s.Rule) -> str:
        """That of a rule of the rule base, or of one that may become one."""
        known, digest = self._known.get(rule.name, (None, ""))
        if known is rule:
            return digest
        texts = [repr(rule), *(self._operator(name) for name in sorted(_operators_of(rule)))]
        return digest_of(*texts, *functions_named(texts, self._functions.keys(), self._functions.__getitem__))

    @cached_property
    def _functions(self) -> dict[str, str]:
        return {name: repr(function) for name, function in self._base.functions.items()}

    def _operator(self, name: str) -> str:
        if name not in self._operators:
            self._operators[name] = "\0".join(map(repr, self._base.operators.get(name, ())))
        return self._operators[name]


def functions_named(texts: Iterable[str], names: Set[str], text_of: Callable[[str], str]) -> list[str]:
    """The texts of the functions whose names stand in some texts, and in the functions found so.

    Args:
        names: of all functions.
        text_of: the text of a function.
    """
    pending, found = list(texts), set[str]()
    while pending:
        named = names & _words(pending.pop())
        pending += map(text_of, named - found)
        found |= named
    return list(map(text_of, sorted(found)))


@lru_cache(maxsize=1 << 12)
def _words(text: str) -> frozenset[str]:
    """The words of a text; those of an operator or a function are asked for by each rule that speaks of it."""
    return frozenset(_WORD.findall(text))


def _operators_of(rule: s.Rule) -> set[str]:
    from smartmem_rules.rulebase.checks.deep.deep_checks import operators_in  # start-up time

    if isinstance(rule, s.Eliminate | s.Keep):
        return {rule.operator}
    return operators_in(rule) if isinstance(rule, s.Rewrite) else set()

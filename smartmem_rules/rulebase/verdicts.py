"""What `smartmem verify` last said of each rule, kept by the content of the rule and of all that it speaks of.

A changed rule, operator or function has no verdict until it is verified again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Set
from functools import lru_cache
from typing import Protocol

from smartmem_rules.language import syntax as s
from smartmem_rules.language.cache import Findings, digest_of
from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.checks.deep_checks import operators_in

_WORD = re.compile(r"\w+")
VERDICTS = "verdicts"
SHIPPED = "verdicts.json"
"""The file beside the built-in rules with their verdicts; `python bench/verdicts.py` writes it."""
WITH_PROOFS = "verdicts-with-proofs"
"""Where verdicts of runs that tried to prove are kept: a rule that others call tested may be provable."""

QUICK = "verdicts-of-trials"
"""Where verdicts are kept that rest on a few trials, made when a rule without any was about to be used."""


class Judged(Protocol):
    """The report of a verification on one rule."""

    @property
    def name(self) -> str: ...

    @property
    def verdict(self) -> str: ...

    @property
    def method(self) -> str: ...

    @property
    def trials(self) -> int: ...


def record(reports: Iterable[Judged], base: RuleBase, name: str = VERDICTS) -> None:
    """Keep the verdicts of a verification, by default for the editor and the reference."""
    keys = _Keys(base)
    kept = Findings(name)
    rules = {rule.name: rule for rule in base.rules()}
    for report in reports:
        if report.name in rules:
            kept.put(keys.of(rules[report.name]), shown(report.verdict, report.method, report.trials))
    kept.save()


def recorded(base: RuleBase, *names: str) -> Mapping[str, str]:
    """The kept verdicts of the rules of a rule base by name, such as `tested (random, 200 trials)`.

    Args:
        names: where they are kept, by default where a verification keeps them; the last that has one says which.
    """
    keys = _Keys(base)
    digests = {rule.name: keys.of(rule) for rule in base.rules()}
    found: dict[str, str] = {}
    for kept in map(Findings, names or (VERDICTS,)):
        verdicts = {name: kept.get(digest) for name, digest in digests.items()}
        found.update((name, verdict) for name, verdict in verdicts.items() if isinstance(verdict, str))
    return found


def shipped(base: RuleBase) -> Mapping[str, str]:
    """The verdicts that come with the built-in rules, of the rules of a rule base that are still the same."""
    try:
        known = json.loads((rules_path() / SHIPPED).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    keys = _Keys(base)
    return {rule.name: known[key] for rule in base.rules() if (key := keys.of(rule)) in known}


def shipped_text(verdicts: Mapping[str, str], base: RuleBase) -> str:
    """The content of the file of shipped verdicts, by the digest of each rule."""
    keys = _Keys(base)
    rules = {rule.name: rule for rule in base.rules()}
    return json.dumps({keys.of(rules[name]): verdicts[name] for name in sorted(verdicts)}, indent=0) + "\n"


def shown(verdict: str, method: str, trials: int = 0) -> str:
    """A verdict in a few words."""
    rests_on = [part for part in (method, f"{trials} trials" if trials else "") if part and part != "none"]
    return f"{verdict} ({', '.join(rests_on)})" if rests_on else verdict


class _Keys:
    """Digests of rules with all that they speak of: operators, and functions that they or those name."""

    def __init__(self, base: RuleBase) -> None:
        self._base = base
        self._functions = {name: repr(function) for name, function in base.functions.items()}
        self._operators: dict[str, str] = {}

    def of(self, rule: s.Rule) -> str:
        texts = [repr(rule), *(self._operator(name) for name in sorted(_operators_of(rule)))]
        return digest_of(*texts, *functions_named(texts, self._functions.keys(), self._functions.__getitem__))

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
    if isinstance(rule, s.Eliminate | s.Keep):
        return {rule.operator}
    return operators_in(rule) if isinstance(rule, s.Rewrite) else set()

"""What `smartmem verify` last said of each rule, kept by the content of the rule and of all that it speaks of.

A changed rule, operator or function has no verdict until it is verified again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Protocol

from smartmem_rules.language.cache import Findings
from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.digests import Digests

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
    keys = Digests(base)
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
    keys = Digests(base)
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
    keys = Digests(base)
    return {rule.name: known[key] for rule in base.rules() if (key := keys.of(rule)) in known}


def shipped_text(verdicts: Mapping[str, str], base: RuleBase) -> str:
    """The content of the file of shipped verdicts, by the digest of each rule."""
    keys = Digests(base)
    rules = {rule.name: rule for rule in base.rules()}
    return json.dumps({keys.of(rules[name]): verdicts[name] for name in sorted(verdicts)}, indent=0) + "\n"


def shown(verdict: str, method: str, trials: int = 0) -> str:
    """A verdict in a few words."""
    rests_on = [part for part in (method, f"{trials} trials" if trials else "") if part and part != "none"]
    return f"{verdict} ({', '.join(rests_on)})" if rests_on else verdict

"""What is wrong with the order of rule sets, and with the sets that rules name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from smartmem_rules.language import syntax as s
from smartmem_rules.language.blocks.keys import value_place, values_of
from smartmem_rules.language.blocks.strategy import rulesets_of
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expansion import family_name
from smartmem_rules.language.fixes import Edit, Fix, advice, before, edit, spelling
from smartmem_rules.rulebase.checks.block_checks import names_of


def check_rulesets(
    rulesets: Sequence[s.Ruleset], runners: Sequence[s.Block], known: Collection[str]
) -> Iterator[Diagnostic]:
    """Sets that run after unknown ones or after themselves, and levels and strategies with another order."""
    after = {one.name: one.after for one in rulesets}
    for one in rulesets:
        for name in one.after:
            if name not in known:
                later = {other.name for other in rulesets if one.name in _before(other.name, after)} | {one.name}
                others = set(known) - later  # what runs behind this set cannot run before it
                fix = spelling(name, others, one.place(f"after:{name}")) or names_of("ruleset", {"ruleset": others})
                message = f"there is no rule set `{name}`"
                yield Diagnostic(Code.UNKNOWN_RULESET, "error", message, one.place(f"after:{name}"), fix=fix)
        if one.name in _before(one.name, after):
            message = f"`{one.name}` runs after itself"
            fix = advice("leave out one `after` of the circle")
            yield Diagnostic(Code.RULESET_CYCLE, "error", message, one.place("name"), fix=fix)
    for runner in runners:
        yield from _check_order(runner, rulesets)


def run_by(block: s.Block) -> list[tuple[str, s.Span]]:
    """The rule sets that a level or a strategy names, in their order, with their places."""
    if block.kind == "level":
        names = [str(value) for value in values_of(block, "rulesets")]
        return [(name, value_place(block, "rulesets", number)) for number, name in enumerate(names)]
    phases = [entry for entry in block.entries if entry.key == "phase"]
    return [(name, one.place(f"value:{number}")) for one in phases for number, name in rulesets_of(one.values)]


def _before(name: str, after: Mapping[str, Sequence[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(after.get(name, ()))
    while waiting:
        current = waiting.pop()
        if current not in found:
            found.add(current)
            waiting += after.get(current, ())
    return found


def _check_order(runner: s.Block, rulesets: Sequence[s.Ruleset]) -> Iterator[Diagnostic]:
    named = run_by(runner)
    order = [name for name, _ in named]
    for one in rulesets:
        for earlier in one.after:
            if one.name in order and earlier in order and order.index(one.name) < order.index(earlier):
                message = f"{runner.kind} `{runner.name}` runs `{one.name}` before `{earlier}`"
                place = named[order.index(one.name)][1]
                secondary = (one.place(f"after:{earlier}"), "it is said to run after it here")
                fix = advice(f"name `{earlier}` before `{one.name}`")
                yield Diagnostic(Code.RULESET_ORDER, "error", message, place, secondary=secondary, fix=fix)


def check_ruleset_of(
    rule: s.Rewrite | s.Eliminate, known: Collection[str], blocks: Sequence[s.Block] = ()
) -> Iterator[Diagnostic]:
    """A rule set that nothing runs: its rules would never fire, and nobody would notice."""
    level = next((one for one in blocks if one.name == rule.ruleset and one.kind in ("level", "strategy")), None)
    if rule.ruleset not in known and level is not None:
        message = f"`{rule.ruleset}` is a {level.kind}, and a rule belongs to a rule set"
        sets = ", ".join(dict.fromkeys(name for name, _ in run_by(level))) or ", ".join(sorted(known))
        fix = advice(f"name one of the sets that it runs: {sets}")
        yield Diagnostic(Code.UNKNOWN_RULESET, "error", message, rule.place("ruleset"), fix=fix)
    elif rule.ruleset not in known and rule.ruleset[:1].isupper():
        message = f"the rule set is missing behind `in`: `{rule.ruleset}` is read as one"
        word = "rewrite" if isinstance(rule, s.Rewrite) else "eliminate"
        first = "`algebra`" if word == "rewrite" else "`eliminate`"
        others = ", ".join(f"`{one}`" for one in sorted(known) if f"`{one}`" != first)
        said = f"write `{word} {family_name(rule.name)} in RULESET` before it: {first}, or one of {others}"
        yield Diagnostic(Code.UNKNOWN_RULESET, "error", message, rule.place("ruleset"), fix=advice(said))
    elif rule.ruleset not in known:
        message = f"no level runs the rule set `{rule.ruleset}`, and no `ruleset` declares it"
        fix = spelling(rule.ruleset, known, rule.place("ruleset")) or _declared(rule)
        yield Diagnostic(Code.UNKNOWN_RULESET, "error", message, rule.place("ruleset"), fix=fix)


def _declared(rule: s.Rewrite | s.Eliminate) -> Fix:
    declaration = f"ruleset {rule.ruleset} after algebra"
    text = f"declare it: `{declaration}`"
    if family_name(rule.name) != rule.name:
        return advice(text)
    return edit(text, Edit(before(rule.span), f"{declaration}\n\n"))

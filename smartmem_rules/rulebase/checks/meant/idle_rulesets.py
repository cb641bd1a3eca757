"""Rule sets that no level runs: their rules are never tried, and nobody would notice."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from smartmem_rules.language import syntax as s
from smartmem_rules.language.blocks.keys import values_of
from smartmem_rules.language.blocks.strategy import rulesets_of
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import advice


def check_idle(rulesets: Sequence[s.Ruleset], blocks: Sequence[s.Block]) -> Iterator[Diagnostic]:
    """Rule sets that no level, strategy or export names, and that run behind none that a level runs."""
    levels = [names for block in blocks if block.kind == "level" and (names := _run_by_level(block, blocks))]
    if not levels:
        return
    named = {name for block in blocks for name in _named_by(block)}
    waiting = [one for one in rulesets if one.name not in named]
    joined = True
    while joined:
        joined = False
        for names in levels:
            for one in waiting:
                if one.after and one.name not in names and names.issuperset(one.after):
                    names.add(one.name)
                    joined = True
    running = set[str]().union(*levels)
    idle = {one.name for one in waiting} - running
    known = {one.name for one in rulesets} | named
    for one in waiting:
        if one.name in running or not known.issuperset(one.after):
            continue
        place = one.place("name")
        first = next((name for name in one.after if name in running), _set_meant(one, running))
        if not one.after:
            message = f"no level runs `{one.name}`: it is behind no other rule set, and no level names it"
            fix = advice(
                f"write behind which set it runs: `ruleset {one.name} after {first}`, or name it in a level of your own"
            )
        elif idle.isdisjoint(one.after):
            sets = " and ".join(f"`{name}`" for name in one.after)
            message = f"no level runs `{one.name}`: none runs {sets}"
            fix = advice(f"name only sets that one level runs: `ruleset {one.name} after {first}`")
        else:
            continue  # of the set that it is behind more is told
        yield Diagnostic(Code.UNKNOWN_RULESET, "error", message, place, fix=fix)


def _named_by(block: s.Block) -> list[str]:
    if block.kind in ("level", "export"):
        return [str(value) for value in values_of(block, "rulesets")]
    if block.kind == "strategy":
        phases = [entry for entry in block.entries if entry.key == "phase"]
        return [name for phase in phases for _, name in rulesets_of(phase.values)]
    return []


def _run_by_level(level: s.Block, blocks: Sequence[s.Block]) -> set[str]:
    own = [str(value) for value in values_of(level, "strategy")]
    strategies = [block for block in blocks if block.kind == "strategy" and block.name in own]
    return {name for block in (level, *strategies) for name in _named_by(block)}


def _set_meant(one: s.Ruleset, running: Collection[str]) -> str:
    """The set that the comment on a rule set names, or the one of most rules of algebra."""
    spoken = [word for word in re.findall(r"\w+", one.comment) if word in running]
    return spoken[0] if len(set(spoken)) == 1 else "algebra" if "algebra" in running else min(running)

"""Which shipped rules fire on which models: `python bench/rule_coverage.py [--write FILE] MODEL ...`.

A rule that never fires on a model is none that a model needs, or one that something keeps from firing unnoticed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from smartmem_rules.egraph.saturation import saturate
from smartmem_rules.graph.importer import import_model
from smartmem_rules.pipeline import level_of
from smartmem_rules.rulebase.base import RuleBase, load_rules

WIDTH = 118
"""Columns of a line of the list."""

Counts = dict[str, dict[str, int]]
"""How often each rule fired, by model."""


def counts_of(models: Sequence[Path], base: RuleBase, level: str = "smartmem") -> Counts:
    """Saturate each model by all rule sets of a level."""
    rulesets = level_of(level, base).rulesets
    names = [*(rule.name for rule in base.rewrites), *(rule.name for rule in base.eliminates)]
    found: Counts = {name: {} for name in names}
    for model in models:
        saturation = saturate(import_model(model, base, {}), base, rulesets)
        for name, one in saturation.statistics.items():
            if one.fired:
                found[name][model.stem] = one.fired
    return found


def report(found: Counts, base: RuleBase) -> str:
    """The table and the list of rules that never fired, as Markdown."""
    unsound = {rule.name for rule in base.rewrites if rule.unsound is not None}
    models = sorted({model for counts in found.values() for model in counts})
    lines = ["# Rules by model", "", "How often each rule of the level `smartmem` fires, by model.", ""]
    lines += [f"| rule | {' | '.join(models)} |", f"|---|{'---:|' * len(models)}"]
    for rule, counts in sorted(found.items(), key=lambda item: (-sum(item[1].values()), item[0])):
        if counts:
            lines.append(f"| {rule} | {' | '.join(str(counts.get(model, '')) for model in models)} |")
    never = sorted(rule for rule, counts in found.items() if not counts and rule not in unsound)
    lines += ["", "## Rules that fire on none of them", ""]
    names = fill(", ".join(f"`{rule}`" for rule in never), WIDTH)
    lines += ["Each has a test of its own (`tests/egraph`).", "", names, ""]
    return "\n".join(lines)


def main() -> None:
    """Print or write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    base = load_rules()
    text = report(counts_of(arguments.models, base), base)
    if arguments.write is not None:
        arguments.write.write_text(text, "utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()

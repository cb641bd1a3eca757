"""Which shipped rules fire on which models: `python bench/rule_coverage.py [--write FILE] MODEL ...`.

A rule that fires on no model may be one that something keeps from firing unnoticed; it has to cite where it comes from.
docs/rules_by_model.md is written with `examples/models/*.onnx`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

from smartmem_rules.egraph.saturation import saturate
from smartmem_rules.graph.importer import import_model
from smartmem_rules.pipeline import level_of
from smartmem_rules.rulebase.base import RuleBase, load_rules

WIDTH = 118
"""Columns of a line."""
NEVER = "## Rules that fire on none of them"

Counts = dict[str, dict[str, int]]
"""How often each rule fired, by model."""


def counts_of(models: Sequence[Path], base: RuleBase, level: str = "smartmem") -> Counts:
    """Saturate each model by all rule sets of a level."""
    rulesets = level_of(level, base).rulesets
    names = [*(rule.name for rule in base.rewrites if rule.derives is None), *(rule.name for rule in base.eliminates)]
    found: Counts = {name: {} for name in names}
    for model in models:
        saturation = saturate(import_model(model, base, {}), base, rulesets)
        for name, one in saturation.statistics.items():
            if one.fired and name in found:
                found[name][model.stem] = one.fired
    return found


def report(found: Counts, base: RuleBase) -> str:
    """Where each rule fired, and what those that never did come from, as Markdown."""
    cited = {rule.name: rule.cites for rule in base.rules()}
    unsound = {rule.name for rule in base.rewrites if rule.unsound is not None}
    models = sorted({model for counts in found.values() for model in counts})
    lines = ["# Rules by model", "", "<!-- written by bench/rule_coverage.py -->", ""]
    lines += _paragraph(
        f"How often each rule of the level `smartmem` fires on the {len(models)} models of `examples/models`: in all, "
        "and on each model on which it fires."
    )
    for rule, counts in sorted(found.items(), key=lambda item: (-sum(item[1].values()), item[0])):
        if counts:
            where = ", ".join(f"{model} {count}" for model, count in sorted(counts.items()))
            lines += _item(f"`{rule}` {sum(counts.values())}: {where}")
    lines += ["", NEVER, ""]
    lines += _paragraph("Each cites what it comes from, and has a test of its own in `tests/egraph`.")
    for rule in sorted(rule for rule, counts in found.items() if not counts and rule not in unsound):
        lines += _item(f"`{rule}`: {cited[rule] or 'cites nothing'}")
    return "\n".join([*lines, ""])


def _paragraph(text: str) -> list[str]:
    return [*wrap(text, WIDTH), ""]


def _item(text: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False)


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

"""What has become of published rewrites: DNNFusion's, TASO's, ONNX Runtime's; each judged, and derived where it can be.

python bench/published.py                                    # print the tables
python bench/published.py --write docs/published_rules.md    # put them into the page
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from markdown_tables import markdown, replace_table
from rediscovery import follows, operators_of, rules_of

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.verification.discovery.discover import discover
from smartmem_rules.verification.judge import judge
from smartmem_rules.verification.results import FAILED, PROVED, TESTED, RuleReport
from smartmem_rules.verification.trials.outcome import Budget

FOLDER = Path(__file__).with_name("published")
SOURCES = {
    "dnnfusion": "DNNFusion (PLDI 2021, table 4)",
    "taso": "TASO (SOSP 2019, table 2)",
    "onnxruntime": "ONNX Runtime (graph transformers)",
}
MOST_OPERATORS = 3
"""Operators of one search, at most."""
ALL_RELAXED = ("infinities", "nan", "reassociation", "signed_zero")
FLOATS = '["float32", "float16", "bfloat16", "float64"]'
HEADER = "rule | equation | verdict | what has become of it"
_NOTE = re.compile(r"^#! (why|cannot) (.+?): (.+)$", re.MULTILINE)
_SHOWN = 90


@dataclass(frozen=True, kw_only=True)
class Published:
    """The rules of one source.

    Attributes:
        why: of sound rules that are not taken, why not, by name.
        inexpressible: what is no rewrite of ONNX operators, and why.
    """

    name: str
    rules: tuple[ast.Rewrite, ...]
    why: Mapping[str, str]
    inexpressible: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Fate:
    """What has become of one rule: `status` is have, found, not taken, unsound or undecided."""

    rule: ast.Rewrite
    verdict: str
    status: str
    text: str


def published(name: str) -> Published:
    """The rules of a file, with the notes beside them."""
    path = FOLDER / f"{name}.smr"
    notes = [(kind, subject, text) for kind, subject, text in _NOTE.findall(path.read_text("utf-8"))]
    return Published(
        name=name,
        rules=tuple(rules_of(path)),
        why={subject: text for kind, subject, text in notes if kind == "why"},
        inexpressible={subject: text for kind, subject, text in notes if kind == "cannot"},
    )


def fate(rule: ast.Rewrite, source: Published, base: RuleBase, seconds: float, seed: int) -> Fate:
    """Judge a rule, and look for it among the shipped rules and among what a search finds.

    Papers mean the real numbers: a rule that is wrong as it stands may relax more, or ask for floats.
    """
    tried: list[tuple[RuleReport, str]] = []
    for meant, words in _meanings(rule):
        tried.append((judge(meant, base, seed, Budget(100, seconds), prove=True), words))
        if tried[-1][0].verdict in (PROVED, TESTED):
            break
    report, words = next((one for one in tried if one[0].verdict in (PROVED, TESTED)), tried[0])
    verdict = report.verdict + words
    if report.verdict == FAILED:
        return Fate(rule=rule, verdict="wrong", status="unsound", text=_counterexample(report))
    if report.verdict not in (PROVED, TESTED):
        return Fate(rule=rule, verdict=verdict, status="undecided", text=report.reason or "")
    if follows(rule, base):
        return Fate(rule=rule, verdict=verdict, status="have", text="follows from the shipped rules")
    operators = _searched(rule)
    if operators and _is_found(rule, operators, base, seconds, seed):
        text = f"found by `discover --operators {','.join(operators)}`; {source.why.get(rule.name, 'no note')}"
        return Fate(rule=rule, verdict=verdict, status="found", text=text)
    return Fate(rule=rule, verdict=verdict, status="not taken", text=source.why.get(rule.name, "no note"))


def _meanings(rule: ast.Rewrite) -> Iterator[tuple[ast.Rewrite, str]]:
    """A rule as it stands, over the reals, and over the reals for floats alone."""
    yield rule, ""
    for relaxed in (("signed_zero",), ("reassociation",), ALL_RELAXED):
        if not set(relaxed) <= set(rule.relaxes):
            yield replace(rule, relaxes=tuple(sorted({*rule.relaxes, *relaxed}))), f", relaxing {', '.join(relaxed)}"
    name = next(iter(sorted(_variables(rule.left))))
    text = f"rewrite floats in algebra\n    Neg({name}) => {name}\n    where contains({FLOATS}, dtype({name}))\n"
    (item,) = parse_text(text, "floats.smr").items
    assert isinstance(item, ast.Rewrite)
    floats = replace(rule, relaxes=ALL_RELAXED, guards=(*rule.guards, *item.guards))
    yield floats, ", for floats, relaxing all"


def _variables(pattern: ast.Pattern) -> set[str]:
    if isinstance(pattern, ast.PatternVariable):
        return {pattern.name}
    if isinstance(pattern, ast.PatternOperator):
        return set().union(*(_variables(argument) for argument in pattern.arguments))
    return set()


def _counterexample(report: RuleReport) -> str:
    assert report.counterexample is not None
    summary = " ".join(report.counterexample.summary.split())
    return summary if len(summary) <= _SHOWN else summary[: _SHOWN - 1] + "…"


def _searched(rule: ast.Rewrite) -> tuple[str, ...]:
    """The operators among which a search may find a rule; none where it has attributes or too many of them."""
    names = sorted(operators_of(rule.left) | operators_of(rule.right))
    has_attributes = any(
        one.attributes or one.bundle for side in (rule.left, rule.right) for one in _applications(side)
    )
    return () if has_attributes or len(names) > MOST_OPERATORS else tuple(names)


def _is_found(rule: ast.Rewrite, operators: tuple[str, ...], base: RuleBase, seconds: float, seed: int) -> bool:
    size = min(3, max(sum(1 for _ in _applications(side)) for side in (rule.left, rule.right)))
    found = discover(replace(base, rewrites=[]), operators, size, seed, seconds)
    return follows(rule, replace(base, rewrites=list(found.working)))


def _applications(pattern: ast.Pattern) -> Iterator[ast.PatternOperator]:
    if isinstance(pattern, ast.PatternOperator):
        yield pattern
        for argument in pattern.arguments:
            yield from _applications(argument)


def rows(fates: list[Fate], source: Published) -> list[list[str]]:
    """The lines of a table: rules by what has become of them, then what is none."""
    order = ("have", "found", "not taken", "unsound", "undecided")
    lines = [
        [f"`{one.rule.name}`", _cell(one.rule.comment), one.verdict, f"{one.status}: {_cell(one.text)}"]
        for status in order
        for one in fates
        if one.status == status
    ]
    return lines + [["", _cell(what), "", f"inexpressible: {_cell(why)}"] for what, why in source.inexpressible.items()]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def summary(by_source: Mapping[str, list[Fate]], sources: Mapping[str, Published]) -> str:
    """How many rules of each source there are, by what has become of them."""
    kinds = ("have", "found", "not taken", "unsound", "undecided")
    lines = [
        [
            SOURCES[name],
            *(str(sum(f.status == kind for f in fates)) for kind in kinds),
            str(len(sources[name].inexpressible)),
        ]
        for name, fates in by_source.items()
    ]
    return markdown("source | have | found | sound, not taken | unsound | undecided | inexpressible", lines)


def main() -> None:
    """Judge all rules, and print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="put the tables into a page, between its marks")
    parser.add_argument("--seconds", type=float, default=20.0, help="processor time for one rule and for one search")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="one source")
    given = parser.parse_args()
    base = load_rules()
    by_source: dict[str, list[Fate]] = {}
    sources = {name: published(name) for name in SOURCES if given.only in (None, name)}
    for name, source in sources.items():
        by_source[name] = []
        for rule in source.rules:
            found = fate(rule, source, base, given.seconds, given.seed)
            by_source[name].append(found)
            print(f"{name} {rule.name}: {found.verdict}; {found.status}: {found.text}", flush=True)
        if given.write is not None:
            replace_table(given.write, name, markdown(HEADER, rows(by_source[name], source)))
    if given.write is not None and given.only is None:
        replace_table(given.write, "summary", summary(by_source, sources))
    print(summary(by_source, sources))


if __name__ == "__main__":
    main()

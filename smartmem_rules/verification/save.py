"""Keeps counterexamples as test files, which fail for as long as the rule is wrong."""

from __future__ import annotations

import re
from pathlib import Path

from smartmem_rules.verification.results import FAILED, Counterexample, RuleReport

_BY_KIND = {
    "rewrite": """    try:
{setup}
    except NoLongerApplies:
        return  # the rule leaves the instance alone
    assert agree(left, right, {tolerance!r}), f"{{left}} is not {{right}}"
""",
    "index": """{setup}
    assert not applies(rule, names) or value(rule.left, names) == value(rule.right, names)
""",
}
_OTHERS = """{setup}
    assert report.verdict != "failed", report.counterexample
"""


def save(report: RuleReport, folder: Path) -> Path | None:
    """Keep a counterexample as a test file; gives its path, None where the rule did not fail."""
    found = report.counterexample
    if report.verdict != FAILED or found is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"test_{_word(report.name)}.py"
    path.write_text(test_text(report, found), encoding="utf-8")
    return path


def _word(name: str) -> str:
    """The name of a rule as a part of a name of Python: rules of families have dots in theirs."""
    return re.sub(r"\W", "_", name)


def test_text(report: RuleReport, found: Counterexample) -> str:
    """A test of pytest that computes the counterexample again."""
    lines = found.snippet.rstrip().splitlines()
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    if report.kind == "rewrite":
        imports = [line.replace("import both_sides", "import NoLongerApplies, agree, both_sides") for line in imports]
    setup = [line for line in lines if line and not line.startswith(("import ", "from ", "print("))]
    indent = "        " if report.kind == "rewrite" else "    "
    body = _BY_KIND.get(report.kind, _OTHERS).format(
        setup="\n".join(indent + line for line in setup), tolerance=found.data.get("tolerance", 0.0)
    )
    comments = [f"# {line}".rstrip() for line in found.lines]
    head = [f'"""{report.name}: a counterexample that was found by `smartmem verify`."""', "", *comments, ""]
    return "\n".join([*head, *imports, "", "", f"def test_{_word(report.name)}() -> None:", body])


test_text.__test__ = False  # type: ignore[attr-defined]

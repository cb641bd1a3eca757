"""Keeps counterexamples as test files, which fail for as long as the rule is wrong and run on any machine."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from smartmem_rules.language import syntax as s
from smartmem_rules.language.fixes import Edit, applied
from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import load_modules
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
_FILES = "files = "
"""Begins the line of a snippet that names the rule files."""


def save(report: RuleReport, folder: Path, files: Sequence[str | Path] = ()) -> Path | None:
    """Keep a counterexample as a test file; gives its path, None where the rule did not fail.

    Args:
        files: the rule files beside the built-in ones. The test reads them where they lie, seen from it, and as they
            are now where they do not lie there.
    """
    found = report.counterexample
    if report.verdict != FAILED or found is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"test_{_word(report.name)}.py"
    path.write_text(test_text(report, found, files, folder), encoding="utf-8")
    return path


def _word(name: str) -> str:
    """The name of a rule as a part of a name of Python: rules of families have dots in theirs."""
    return re.sub(r"\W", "_", name)


def test_text(report: RuleReport, found: Counterexample, files: Sequence[str | Path], folder: Path) -> str:
    """A test of pytest in a folder that computes the counterexample again."""
    lines = found.snippet.rstrip().splitlines()
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    if report.kind == "rewrite":
        imports = [line.replace("import both_sides", "import NoLongerApplies, agree, both_sides") for line in imports]
    if files:
        imports.append("from smartmem_rules.verification.reproduce import rule_files")
    setup = [line for line in lines if line and not line.startswith(("import ", "from ", "print(", _FILES))]
    indent = "        " if report.kind == "rewrite" else "    "
    body = _BY_KIND.get(report.kind, _OTHERS).format(
        setup="\n".join(indent + line for line in setup), tolerance=found.data.get("tolerance", 0.0)
    )
    rules = _Rules.of(files)
    comments = [f"# {rules.without_places(line)}".rstrip() for line in found.lines]
    head = [f'"""{report.name}: a counterexample that was found by `smartmem verify`."""', "", *comments, ""]
    return "\n".join(
        [*head, *imports, "", rules.text(folder), "", "", f"def test_{_word(report.name)}() -> None:", body]
    )


test_text.__test__ = False  # type: ignore[attr-defined]


def _without_imports(module: s.Module, shipped: Collection[Path]) -> str:
    """The text of a file without its imports of built-in files, which are there in any case."""
    folder = Path(module.span.file).parent
    imports = [item for item in module.items if isinstance(item, s.Import)]
    return applied(module.text, [Edit(one.span, "") for one in imports if (folder / one.path).resolve() in shipped])


class _Rules:
    """Rule files and what they import, by their places in the folder that holds them all."""

    def __init__(self, folder: Path, given: Sequence[Path], texts: dict[str, str]) -> None:
        self.folder = folder
        self.given = given
        self.texts = texts

    @staticmethod
    def of(files: Sequence[str | Path]) -> _Rules:
        """The files, and those that they import."""
        given = [Path(file).resolve() for file in files]
        shipped = {path.resolve() for path in rules_path().rglob("*.smr")}
        loaded = load_modules(given, shipped) if given else []
        modules = {Path(one.span.file).resolve(): _without_imports(one, shipped) for one in loaded}
        common = os.path.commonpath([path.parent for path in modules]) if modules else "."
        return _Rules(
            Path(common), given, {path.relative_to(common).as_posix(): text for path, text in modules.items()}
        )

    def text(self, test: Path) -> str:
        """The statement that finds the files from a test in a folder."""
        if not self.given:
            return f"{_FILES}[]"
        way = Path(os.path.relpath(self.folder, test.resolve())).as_posix()
        own = Path(os.path.commonpath([self.folder, test.resolve()]))
        if own == Path(own.anchor):
            way = "."  # what they share says nothing on another machine
        names = [path.relative_to(self.folder).as_posix() for path in self.given]
        listed = "".join(f"        {name!r}: {text!r},\n" for name, text in self.texts.items())
        return f"{_FILES}rule_files(\n    __file__,\n    {way!r},\n    {names!r},\n    {{\n{listed}    }},\n)"

    def without_places(self, line: str) -> str:
        """A line that names files as they are called in their folders."""
        for folder in {self.folder, rules_path().resolve(), *(path.parent for path in self.given)}:
            line = line.replace(f"{folder}/", "")
        return line

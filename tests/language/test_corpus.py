"""The corpus: files that are right, and files that are wrong with the messages that they give."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from smartmem_rules.language.codes import EXPLANATIONS, Code
from smartmem_rules.language.diagnostics import Diagnostic, LanguageError, render
from smartmem_rules.language.printing.error_pages import pages
from smartmem_rules.language.syntax import Module
from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import load_modules
from smartmem_rules.rulebase.checks.checker import check
from smartmem_rules.rulebase.checks.deep import deep_checks

DOCS = Path(__file__).parents[2] / "docs" / "errors"
CORPUS = Path(__file__).parent.parent / "corpus"
RULES = rules_path().resolve()
PASS = sorted((CORPUS / "pass").glob("*.smr"))
FAIL = sorted((CORPUS / "fail").glob("*.smr"))
# No file can hold these: a file that cannot be read, and a name that is given on the command line.
NOT_IN_A_FILE = {Code.UNREADABLE, Code.UNKNOWN_RULE}


# A place in a shipped file, with the line that is shown of it: the messages stay when that file changes.
SHIPPED = re.compile(r"(?m)^(?:\.\./)+rules/(\S+\.smr):\d+:\d+: ")
SHOWN_LINES = re.compile(r"(?m)^(rules/\S+\.smr: .*)\n +\d+ \| .*\n +\| .*$")


def own_problems(modules: Sequence[Module], shipped: Path | None = RULES) -> list[Diagnostic]:
    """What is wrong with modules of which it is known that those in the folder `shipped` are right."""
    right = {module.span.file for module in modules if shipped in Path(module.span.file).resolve().parents}
    return check(modules, deep={module.span.file for module in modules} - right, right=right)


def messages(path: Path, shipped: Path | None = RULES) -> str:
    """The messages about a file with the place of the corpus left out; empty when nothing is wrong."""
    try:
        modules = load_modules([path])
    except LanguageError as error:
        text = str(error)
    else:
        found = own_problems(modules, shipped)
        text = render(found, {module.span.file: module.text for module in modules}) if found else ""
    return SHOWN_LINES.sub(r"\1", SHIPPED.sub(r"rules/\1: ", text.replace(f"{path.parent}/", "")))


@pytest.mark.parametrize("path", PASS, ids=lambda path: path.stem)
def test_right_files_give_no_message(path: Path) -> None:
    assert messages(path) == ""


SOME = 60
"""Files to one that is asked about in another folder without `--all`."""
NEEDS_SOLVER = [path.stem for path in FAIL if path.stem.startswith("vacuous")]


@pytest.mark.parametrize("path", FAIL, ids=lambda path: path.stem)
def test_wrong_files_give_their_messages(path: Path, update_golden: bool) -> None:
    if path.stem in NEEDS_SOLVER:
        pytest.importorskip("z3")
    golden = path.with_name(path.name + ".txt")
    if update_golden:
        golden.write_text(messages(path) + "\n")
    assert messages(path) + "\n" == golden.read_text()


def test_messages_are_the_same_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, all_cases: bool
) -> None:
    """What is kept of a check names no file: two checkouts share one cache."""
    speaking = [path for path in FAIL if '"../../../rules/' in path.read_text() and path.stem not in NEEDS_SOLVER]
    if not all_cases:
        speaking = speaking[::SOME]
    monkeypatch.setenv("SMARTMEM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(deep_checks, "_IN_MEMORY", {})
    told: list[list[str]] = []
    for name in ("first", "second"):
        shutil.copytree(CORPUS.parents[1] / "rules", tmp_path / name / "rules")
        folder = tmp_path / name / "tests" / "corpus" / "fail"
        folder.mkdir(parents=True)
        for path in speaking:
            shutil.copy(path, folder)
        told.append([messages(folder / path.name, shipped=None) for path in speaking])
    assert told[0] == told[1]
    assert any(told[0])


def test_every_code_has_an_explanation_and_an_example() -> None:
    assert set(EXPLANATIONS) == set(Code)
    shown = "".join(path.with_name(path.name + ".txt").read_text() for path in FAIL)
    assert {code for code in Code if code in shown} == set(Code) - NOT_IN_A_FILE


def test_every_code_has_its_page(update_golden: bool) -> None:
    made = pages(CORPUS / "fail")
    if update_golden:
        DOCS.mkdir(parents=True, exist_ok=True)
        for name, text in made.items():
            (DOCS / name).write_text(text)
    assert {path.name: path.read_text() for path in DOCS.glob("*.md")} == made

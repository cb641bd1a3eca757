"""Verification as users meet it: verdicts, counterexamples that can be seen again, exit codes."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import smartmem_rules as sm
from smartmem_rules.cli import main
from smartmem_rules.language import syntax as s
from smartmem_rules.language.diagnostics import LanguageError
from smartmem_rules.language.parsing.parser import parse_file
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.verification import judge
from smartmem_rules.verification.instances.cases import Search
from smartmem_rules.verification.reproduce import agree
from smartmem_rules.verification.results import Verification
from smartmem_rules.verification.save import save

UNSOUND = Path(__file__).parents[1] / "corpus" / "unsound"
SOUND = Path(__file__).parents[1] / "corpus" / "sound"

TRIALS = 600
"""Extents above 127 are drawn in about one trial of a hundred: 200 trials miss them with a chance of one in five."""


def rules_of(folder: Path) -> list[tuple[Path, str | None]]:
    """The rules of a folder's files; without a name all of a file that has none, or operators' families name them."""
    found: list[tuple[Path, str | None]] = []
    for path in sorted(folder.glob("*.smr")):
        items = parse_file(path).items
        rules = [] if any(isinstance(one, s.OperatorFamily) for one in items) else items
        found += [(path, one.name) for one in rules if isinstance(one, s.Rule)] or [(path, None)]
    return found


PLANTED = [(path, name) for path, name in rules_of(UNSOUND) if not path.stem.startswith("careless")]
MADE_SMALL = {"particular", "corners", "elements", "indices", "operator_families", "tables"}
"""Files whose counterexamples are made small without `--all`, too: that takes as long as finding them."""


@cache
def verified(path: Path, name: str | None = None) -> Verification:
    return sm.verify(path, rule=name, jobs=1, budget=20, trials=TRIALS)


def label(one: Path | str | None) -> str:
    return one.stem if isinstance(one, Path) else one or "all"


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("path", "name"), rules_of(UNSOUND), ids=label)
def test_every_planted_unsound_rule_is_caught(
    path: Path, name: str | None, all_cases: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not all_cases and path.stem not in MADE_SMALL:
        monkeypatch.setattr(judge, "shrink", lambda rule, search, case, difference: (case, difference))
    found = sm.verify(path, rule=name, jobs=1, budget=20, trials=TRIALS)
    assert found.rules
    missed = [report.name for report in found.rules if report.verdict != "failed"]
    assert not missed, f"seed {found.seed}"
    assert all(report.counterexample is not None for report in found.rules)


@pytest.mark.sampled(14)
@pytest.mark.parametrize(("path", "name"), rules_of(SOUND), ids=label)
def test_every_sound_rule_is_accepted(path: Path, name: str | None, all_cases: bool) -> None:
    found = sm.verify(path, rule=name, jobs=1, budget=20, trials=60 if all_cases else 20)
    assert found.rules
    refused = [
        f"{report.name}: {report.verdict}" for report in found.rules if report.verdict not in ("tested", "proved")
    ]
    assert not refused, f"seed {found.seed}"


@pytest.mark.sampled(20)
@pytest.mark.parametrize(("path", "name"), PLANTED, ids=label)
def test_a_counterexample_can_be_pasted(path: Path, name: str | None) -> None:
    for report in verified(path, name).rules:
        assert report.counterexample is not None
        shown = io.StringIO()
        names: dict[str, Any] = {}
        with contextlib.redirect_stdout(shown):
            exec(compile(report.counterexample.snippet, "<pasted>", "exec"), names)
        if report.kind == "rewrite":
            assert not agree(names["left"], names["right"]), report.name
        elif report.kind == "index":
            holds, left, right = shown.getvalue().split()
            assert holds == "True"
            assert left != right
        else:
            assert shown.getvalue().startswith("failed")


@pytest.mark.sampled(20)
@pytest.mark.parametrize(("path", "name"), PLANTED, ids=label)
def test_a_saved_counterexample_fails_while_the_rule_is_wrong(path: Path, name: str | None, tmp_path: Path) -> None:
    for report in verified(path, name).rules:
        saved = save(report, tmp_path, [path])
        assert saved is not None
        names: dict[str, Any] = {"__file__": str(saved)}
        exec(compile(saved.read_text(), str(saved), "exec"), names)
        with pytest.raises(AssertionError):
            names[saved.stem]()


@pytest.mark.exhaustive
def test_pytest_collects_saved_counterexamples(tmp_path: Path) -> None:
    reports = verified(UNSOUND / "indices.smr").rules
    for report in reports:
        save(report, tmp_path, [UNSOUND / "indices.smr"])
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)], capture_output=True, text=True
    )
    assert ran.returncode == 1
    assert f"{len(reports)} failed" in ran.stdout, ran.stdout


def test_a_saved_counterexample_passes_when_the_rule_is_mended(tmp_path: Path) -> None:
    file = tmp_path / "mended.smr"
    wrong = "rewrite mended in algebra  # wrong, then guarded\n    Sub(x, y) => Sub(y, x)\n"
    file.write_text(wrong)
    (report,) = sm.verify(file, jobs=1).rules
    saved = save(report, tmp_path / "tests", [file])
    assert saved is not None
    file.write_text(
        "rewrite mended in algebra  # wrong, then guarded\n    Sub(x, y) => Sub(y, x)\n    where rank(x) > 9\n"
    )
    names: dict[str, Any] = {"__file__": str(saved)}
    exec(compile(saved.read_text(), str(saved), "exec"), names)
    names["test_mended"]()


def test_a_saved_counterexample_runs_anywhere(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    (home / "parts").mkdir(parents=True)
    (home / "parts" / "own.smr").write_text("predicate any_tensor(t) = rank(t) >= 0\n")
    file = home / "mine.smr"
    file.write_text(
        'import "parts/own.smr"\n\n'
        "rewrite wrong in algebra  # a - b is not b - a\n    Sub(x, y) => Sub(y, x)\n    where any_tensor(x)\n\n"
        "index wrong_index   # a + 1 is not a\n    (a + 1) % c => a % c\n    where c > 8\n"
    )
    reports = sm.verify(file, jobs=1).rules
    for report in reports:
        saved = save(report, home / "tests", [file])
        assert saved is not None
        text = saved.read_text()
        assert str(tmp_path) not in text
        assert str(Path.home()) not in text
        elsewhere.mkdir(exist_ok=True)
        (elsewhere / saved.name).write_text(text)
    shutil.rmtree(home)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(elsewhere)], capture_output=True, text=True
    )
    assert f"{len(reports)} failed" in ran.stdout, ran.stdout


def test_special_values_are_made_small(tmp_path: Path) -> None:
    file = tmp_path / "special.smr"
    file.write_text("rewrite zero_times in algebra  # nan * 0 is nan\n    Mul(x, 0) => Sub(x, x)\n    explores\n")
    file.write_text("rewrite same_as in algebra  # nan is not 1\n    Div(x, x) => Pow(x, 0)\n    explores\n")
    (report,) = sm.verify(file, jobs=1).rules
    assert report.verdict == "failed"
    assert report.counterexample is not None
    shown = "\n".join(report.counterexample.lines)
    (elements,) = re.findall(r"x: .* = \[(.*)\]", shown)
    assert len([one for one in elements.split(", ") if one != "1.0"]) <= 1, shown


def test_rules_kept_as_warnings_are_wrong() -> None:
    for name in ("reciprocal_of_product_as_printed", "common_factor_as_printed"):
        (report,) = sm.verify(rule=name, jobs=1).rules
        assert report.verdict == "failed"


def test_guards_that_want_many_elements_are_no_vacuous_ones(tmp_path: Path) -> None:
    """Instances of 197 x 513 elements are drawn; where guards want more than can be tried, nobody knows."""
    path = tmp_path / "large.smr"
    path.write_text(
        "rewrite wide in algebra\n    Relu(Relu(x)) => Relu(x)\n"
        "    where rank(x) == 2, extent(x, 0) == 197, extent(x, -1) > 512\n"
        "rewrite huge in algebra\n    Relu(Relu(x)) => Relu(x)\n"
        "    where rank(x) == 2, extent(x, 0) == 1000, extent(x, 1) == 4096\n"
    )
    base = load_rules([path])
    (rule,) = (rule for rule in base.rewrites if rule.name == "wide")
    search = Search(rule, rule.left, rule.right, Instances(base), 1)
    found = next(case for case in search.cases(200) if case is not None and case.satisfied)
    assert found.left.type.elements >= 197 * 513
    (report,) = sm.verify(path, rule="huge", jobs=1).rules
    assert report.verdict == "unknown"
    assert "4096000 elements" in report.reason


def test_a_guard_that_nothing_satisfies_is_vacuous(tmp_path: Path) -> None:
    file = tmp_path / "never.smr"
    file.write_text("rewrite never in algebra  # never\n    Add(x, x) => Sub(x, x)\n    where rank(x) > 9\n")
    (report,) = sm.verify(file, jobs=1, trials=20).rules
    assert report.verdict == "vacuous"
    assert report.trials == 0
    assert report.reason is not None


def test_an_unknown_rule_is_an_error() -> None:
    with pytest.raises(LanguageError, match="add_zero"):
        sm.verify(rule="ad_zero")


def test_one_seed_gives_one_answer() -> None:
    first, second = (sm.verify(rule="scale_after_matmul", seed=5, jobs=1).rules[0] for _ in range(2))
    assert (first.trials, first.cases, first.satisfied) == (second.trials, second.cases, second.satisfied)


def test_command_line(tmp_path: Path) -> None:
    runner = CliRunner()
    good = runner.invoke(main, ["verify", "--rule", "add_zero", "--json"])
    assert good.exit_code == 0
    (rule,) = json.loads(good.stdout)["rules"]
    assert {"name", "file", "line", "verdict", "method", "trials"} <= rule.keys()
    assert rule["trials"] >= 200
    bad = runner.invoke(main, ["verify", str(UNSOUND / "indices.smr"), "--jobs", "1", "--save", str(tmp_path)])
    assert bad.exit_code == 1
    assert "first difference" in bad.stdout or "on the left" in bad.stdout
    saved = sorted(tmp_path.glob("test_*.py"))
    assert len(saved) == 5
    for path in saved:
        compile(path.read_text(), str(path), "exec")
    assert runner.invoke(main, ["verify", str(tmp_path / "none.smr")]).exit_code == 2
    assert runner.invoke(main, ["verify", "--rule", "no_such_rule"]).exit_code == 2


def test_numbers_that_a_solver_finds_become_a_trial(tmp_path: Path) -> None:
    pytest.importorskip("z3")
    file = tmp_path / "line.smr"
    file.write_text(
        "rewrite hidden_line in algebra  # wrong where 37 x = 19 y + 1234.5, which no draw hits\n"
        "    Where(Equal(Mul(x, 37), Add(Mul(y, 19), 1234.5)), Neg(x), x) => x\n"
        "    where shape(x) == shape(y), is_float(dtype(x))\n"
        "    relaxes reassociation\n"
    )
    (tested,) = sm.verify(file, jobs=1).rules
    (failed,) = sm.verify(file, jobs=1, prove=True).rules
    assert (tested.verdict, failed.verdict) == ("tested", "failed")
    assert failed.counterexample is not None
    assert "numbers found by z3" in failed.method


@pytest.mark.parametrize(("number", "verdict"), [("0.70710678", "tested"), ("0.70701678", "failed")])
def test_a_number_that_is_named_satisfies_the_equation_itself(tmp_path: Path, number: str, verdict: str) -> None:
    file = tmp_path / "gelu.smr"
    file.write_text(
        "rewrite own_gelu in recognise  # (x * 0.5) * (1 + erf(x/sqrt 2)), turned\n"
        "    Mul(Add(Erf(Mul(x, c)), 1), Mul(x, 0.25)) => Mul(Gelu(x), 0.5)\n"
        f"    where constant_for(c, x), near(value(c), {number})\n    relaxes reassociation\n"
    )
    (report,) = sm.verify(file, jobs=1, trials=60).rules
    assert report.verdict == verdict


def test_a_proof_that_takes_too_long_leaves_the_verdict_of_the_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr("smartmem_rules.verification.judge.prove_rewrite", endless)
    monkeypatch.setattr("smartmem_rules.verification.judge.prove_eliminate", endless)
    for name in ("divide_by_one", "identity"):
        (report,) = sm.verify(rule=name, prove=True, jobs=1).rules
        assert report.verdict == "tested"
        assert "time" in report.reason

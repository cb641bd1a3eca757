"""Verification as users meet it: verdicts, counterexamples that can be seen again, exit codes."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import smartmem_rules as sm
from smartmem_rules.cli import main
from smartmem_rules.language.diagnostics import LanguageError

UNSOUND = Path(__file__).parents[1] / "corpus" / "unsound"


@pytest.mark.parametrize("path", sorted(UNSOUND.glob("*.smr")), ids=lambda path: path.stem)
def test_every_planted_unsound_rule_is_caught(path: Path) -> None:
    found = sm.verify(path, jobs=1, budget=20)
    missed = [report.name for report in found.rules if report.verdict != "failed"]
    assert not missed, f"seed {found.seed}"
    assert all(report.counterexample is not None for report in found.rules)


@pytest.mark.parametrize("name", ["reciprocal_of_product_misprinted", "sum_of_quotients", "root_of_square"])
def test_a_counterexample_can_be_pasted(name: str) -> None:
    file = UNSOUND / ("dnnfusion_as_printed.smr" if "misprinted" in name else "floats.smr")
    (report,) = sm.verify(file, rule=name, jobs=1).rules
    assert report.counterexample is not None
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(report.counterexample.snippet, "<pasted>", "exec"), {})
    left, right = shown.getvalue().splitlines()
    assert left != right


def test_rules_kept_as_warnings_are_wrong() -> None:
    for name in ("reciprocal_of_product_as_printed", "common_factor_as_printed"):
        (report,) = sm.verify(rule=name, jobs=1).rules
        assert report.verdict == "failed"


def test_a_guard_that_nothing_satisfies_is_vacuous(tmp_path: Path) -> None:
    file = tmp_path / "never.smr"
    file.write_text("rewrite never in algebra  # never\n    Add(x, x) => Sub(x, x)\n    where rank(x) > 9\n")
    (report,) = sm.verify(file, jobs=1).rules
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

"""`smartmem config`, `smartmem completion`, `-v` and `-q`."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner, Result

from smartmem_rules.cli import main
from smartmem_rules.cli.verbosity import is_quiet
from smartmem_rules.logs import NAME
from tests.cli import onnx_files

UNSOUND = "rewrite negation_is_nothing in algebra\n    Neg(x) => x\n"


def smartmem(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_config_says_what_is_set_and_what_follows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SMARTMEM_CACHE", str(tmp_path))
    monkeypatch.setenv("SMARTMEM_TUNINGS", "off")
    monkeypatch.delenv("SMARTMEM_PLANS")
    monkeypatch.setenv("SMARTMEM_CASHE", "x")
    found = json.loads(smartmem("config", "--json").stdout)
    values = {one["name"]: one["value"] for one in found["variables"]}
    assert values["SMARTMEM_CACHE"] == str(tmp_path)
    assert values["SMARTMEM_PLANS"] is None
    assert found["places"]["plans"] == str(tmp_path / "plans")
    assert found["places"]["tunings"] is None
    assert found["unknown"] == ["SMARTMEM_CASHE"]
    result = smartmem("config")
    assert "SMARTMEM_CASHE is set, but nothing reads it" in result.stderr
    assert str(tmp_path / "plans") in result.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    result = smartmem("completion", shell)
    assert result.exit_code == 0
    assert "_SMARTMEM_COMPLETE" in result.stdout


@pytest.mark.parametrize(("words", "found"), [("smartmem opt", "optimize"), ("smartmem optimize --fail", "--fail-on")])
def test_the_script_completes_commands_and_options(words: str, found: str) -> None:
    asked = {"_SMARTMEM_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    program = "import sys; sys.argv = ['smartmem']; from smartmem_rules.cli import main; main(prog_name='smartmem')"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **asked}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert f"plain,{found}" in done.stdout.splitlines()


def completions(*words: str) -> list[str]:
    """What bash would offer in place of the last word."""
    complete = BashComplete(main, {}, "smartmem", "_SMARTMEM_COMPLETE")
    return [item.value for item in complete.get_completions(list(words[:-1]), words[-1])]


LEVELS = ["none", "dnnfusion", "eliminate", "layout", "smartmem"]
EVERY_LEVEL = ("optimize", "run", "show", "diff", "explain", "report", "export", "doctor", "tune", "generate")


@pytest.mark.parametrize("command", EVERY_LEVEL)
def test_levels_are_offered(command: str) -> None:
    assert completions(command, "model.onnx", "--level", "") == LEVELS
    assert completions(command, "model.onnx", "--level", "e") == ["eliminate"]


@pytest.mark.parametrize(
    ("words", "some"),
    [
        (("optimize", "--device", ""), {"auto", "pocl", "adreno_740", "0:0"}),
        (("calibrate", "--device", "po"), {"pocl"}),
        (("export", "m", "--device", "n"), {"nvidia"}),
        (("simulate", "m", "--device", "adreno"), {"adreno_740"}),
        (("simulate", "m", "--levels", "none,s"), {"none,smartmem"}),
        (("diff", "m", "--to-level", "d"), {"dnnfusion"}),
        (("diff", "m", "--to-disable", "add_con"), {"add_constants"}),
        (("bench", "m", "--level", "none,a"), {"none,all"}),
        (("bench", "m", "--against", "onnxr"), {"onnxruntime"}),
        (("report", "m", "--levels", "all"), {"all"}),
        (("optimize", "--dtype", "bf"), {"bfloat16"}),
        (("optimize", "--limit", "st"), {"steps="}),
        (("optimize", "--disable", "row_chain,side_by"), {"row_chain,side_by_side"}),
        (("optimize", "--dump-after", "lay"), {"layout"}),
        (("verify", "--rule", "add_con"), {"add_constants"}),
        (("verify", "--minimize", "--on", "swin"), {"swin_tiny"}),
        (("explain", "m", "--rule", "add_con"), {"add_constants"}),
        (("discover", "--operators", "Add,Mu"), {"Add,Mul"}),
        (("fuzz", "--against", "self,onnxs"), {"self,onnxsim", "self,onnxslim"}),
        (("fuzz", "--only", "add_con"), {"add_constants"}),
        (("simplify", "--domains", ""), {"com.microsoft"}),
        (("zoo", "swin"), {"swin_tiny"}),
        (("schema", "sim"), {"simplify", "simulate"}),
        (("completion", "f"), {"fish"}),
    ],
)
def test_values_are_offered(words: tuple[str, ...], some: set[str]) -> None:
    found = completions(*words)
    assert some <= set(found)
    assert all(value.startswith(words[-1]) for value in found)


def test_files_are_left_to_the_shell() -> None:
    complete = BashComplete(main, {}, "smartmem", "_SMARTMEM_COMPLETE")
    for before in (["optimize"], ["optimize", "m", "--rules"], ["optimize", "m", "-o"], ["check"]):
        assert [item.type for item in complete.get_completions(before, "x")] == ["file"], before


def test_rules_on_the_line_are_known_to_completion(tmp_path: Path) -> None:
    rules, broken = tmp_path / "mine.smr", tmp_path / "broken.smr"
    rules.write_text(UNSOUND)
    broken.write_text("rewrite broken in\n")
    assert completions("optimize", "--rules", str(rules), "--disable", "negation_is") == ["negation_is_nothing"]
    assert completions("optimize", "--rules", str(broken), "--level", "") == LEVELS


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return onnx_files.chain(tmp_path / "chain.onnx")


def test_messages_go_to_stderr_as_often_as_v_is_given(model: Path) -> None:
    few, more = (smartmem("optimize", model, "--no-check", "--json", flag) for flag in ("-v", "-vv"))
    assert "INFO smartmem_rules.planned: the plan of chain" in few.stderr
    assert "DEBUG" not in few.stderr
    assert "DEBUG smartmem_rules.stages: import took" in more.stderr
    json.loads(few.stdout)
    assert logging.getLogger(NAME).level == logging.NOTSET


def test_without_v_nothing_is_said(model: Path) -> None:
    assert smartmem("optimize", model, "--no-check", "--json").stderr == ""


def test_q_is_quiet_until_the_command_ends(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    show = json.dumps
    monkeypatch.setattr(json, "dumps", lambda *given, **named: seen.append(is_quiet()) or show(*given, **named))
    assert smartmem("optimize", model, "-q", "--no-check", "--json").exit_code == 0
    assert seen[-1]
    assert not is_quiet()


def test_q_prints_nothing_but_files(model: Path, tmp_path: Path) -> None:
    """Each command that writes something: the file is there, and nothing is said."""
    plan, page, certificate = tmp_path / "a.plan", tmp_path / "a.html", tmp_path / "a.certificate"
    for arguments, files in (
        (("optimize", model, "-o", plan, "--certificate", certificate, "--explain-left", "--rule-stats"), (plan,)),
        (("certify", model, certificate), ()),
        (("simplify", model, tmp_path / "b.onnx"), (tmp_path / "b.onnx",)),
        (("report", plan, "-o", page, "--no-measure"), (page,)),
        (("run", plan, "--output", tmp_path / "outputs"), (tmp_path / "outputs",)),
        (("export", plan, "-o", tmp_path / "bundle"), (tmp_path / "bundle",)),
        (("zoo", "mmoe", "--stripped", "-o", tmp_path), (tmp_path / "mmoe.onnx",)),
        (("show", plan), ()),
        (("show", plan, "0"), ()),
        (("diff", plan, plan), ()),
        (("explain", plan, "--rule", "add_constants"), ()),
        (("devices",), ()),
        (("config",), ()),
        (("zoo",), ()),
    ):
        result = smartmem(*arguments, "-q")
        assert (result.exit_code, result.output) == (0, ""), arguments
        assert all(file.exists() for file in files), arguments


def test_q_keeps_what_programs_read(model: Path) -> None:
    assert json.loads(smartmem("devices", "--json", "-q").stdout)["auto"]
    assert json.loads(smartmem("schema", "optimize", "-q").stdout)["title"]
    assert "_SMARTMEM_COMPLETE" in smartmem("completion", "bash", "-q").stdout
    assert smartmem("bench", model, "--csv", "--runs", 1, "-q").stdout.startswith("model,")
    assert CliRunner().invoke(main, ["fmt", "-", "-q"], input=UNSOUND).output == UNSOUND


def test_q_says_why_the_answer_is_no(model: Path, tmp_path: Path) -> None:
    """Exit codes other than 0 are never silent; warnings, counts and what is right are."""
    wrong = tmp_path / "wrong.smr"
    failing = smartmem("optimize", model, "--no-check", "--fail-on", "kernels>0", "-q")
    assert (failing.exit_code, failing.stdout) == (1, "")
    assert failing.stderr.startswith("smartmem: --fail-on: kernels is ")
    wrong.write_text(UNSOUND)
    verified = smartmem("verify", wrong, "--rule", "negation_is_nothing", "--trials", 20, "-q")
    assert (verified.exit_code, verified.stdout) == (1, "")
    assert verified.stderr.startswith("smartmem: negation_is_nothing: failed")
    wrong.write_text(UNSOUND.replace("=> x", "=>    x"))
    untidy = smartmem("fmt", "--check", wrong, "-q")
    assert (untidy.exit_code, untidy.output) == (1, f"smartmem: would format {wrong}\n")
    missing = smartmem("optimize", tmp_path / "missing.onnx", "-q")
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert "there is no such file" in missing.stderr


def test_q_leaves_errors_of_rule_files(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.smr", tmp_path / "bad.smr"
    good.write_text(UNSOUND)
    bad.write_text(UNSOUND.replace("Neg(x)", "Nag(x)"))
    assert smartmem("check", good, "-q").output == ""
    found = smartmem("check", bad, "-q")
    assert found.exit_code == 2
    assert "Nag" in found.stdout


def test_every_command_has_v_and_q() -> None:
    context = main.make_context("smartmem", ["config"])
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        assert [one.name for one in command.params if one.name in ("verbose", "quiet")] == ["verbose", "quiet"], name

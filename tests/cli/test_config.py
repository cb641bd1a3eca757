"""`smartmem config`, `smartmem completion`, `-v` and `-q`."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from smartmem_rules.cli import main
from smartmem_rules.cli.verbosity import is_quiet
from smartmem_rules.logs import NAME
from tests.cli import onnx_files


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


def test_every_command_has_v_and_q() -> None:
    context = main.make_context("smartmem", ["config"])
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        assert [one.name for one in command.params if one.name in ("verbose", "quiet")] == ["verbose", "quiet"], name

"""`smartmem doctor` finds the wrong kernel, and the program that it writes shows the difference."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner

from smartmem_rules import optimize
from smartmem_rules.cli import main
from smartmem_rules.doctor import examination
from smartmem_rules.doctor.examination import Examination, examine
from smartmem_rules.doctor.reproduction import write_reproduction
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.probe import Probe
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.processor.matrix_unit import has_byte_unit
from smartmem_rules.runtime.selftest.report import Report
from smartmem_rules.runtime.selftest.testing import asker_of, self_test
from tests.emit.kernel_cases import CASES, KernelCase
from tests.emit.test_byte_unit import product as byte_product
from tests.plan.models import model, normal
from tests.probes.asked import asking
from tests.runtime.c.library import compiler, opencl_library, run
from tests.runtime.selftest.faults import changed, compiled_instead

CALLED = """
import ctypes, sys
from smartmem_rules.runtime.devices import devices
devices()
library = ctypes.CDLL(sys.argv[1])
sys.exit(library.reproduction(1, (ctypes.c_char_p * 2)(b"program")))
"""
"""Calls the program where the driver's faults are worked around already: an old PoCL compiles nothing otherwise."""
SHORT = "a loop that ends too early"
NODES = [("MatMul", "x w", "p"), ("Softmax", "p", "s"), ("MatMul", "s v", "y")]
FEEDS = {"x": normal(10, 48)}
WEIGHTS = {"w": normal(48, 24, seed=1), "v": normal(24, 16)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A model."""
    onnx.save(model(NODES, FEEDS, "y", WEIGHTS), str(tmp_path / "m.onnx"))
    return tmp_path / "m.onnx"


def faulty(plan: Plan, number: int) -> tuple[str, str, Probe]:
    """The text of a launch, one with a fault, and a probe that the fault answers wrongly."""
    source = plan.enqueues[number].source
    asker = asker_of(Executor(plan, choose("auto")))
    for seed in range(20):
        made = changed(source.text, SHORT, random.Random(seed))
        assert made is not None
        for probe in plan.probes:
            if number in probe.launches and list(asker.of_other([probe], replace(source, text=made))):
                return source.text, made, probe
    raise AssertionError("no such fault changes anything")


def examined_with_fault(path: Path, patch: pytest.MonkeyPatch, blind: bool) -> Examination:
    """The examination of a model whose last kernel the driver compiles wrongly.

    Args:
        blind: the probes see nothing of it.
    """
    plan, _ = examination.planned(path, examination.Clock(), device="pocl", probes=True)

    def unseen(executor: Executor) -> Report:
        return replace(self_test(executor), findings=())

    if blind:
        patch.setattr(examination, "self_test", unseen)
    old, new, _ = faulty(plan, len(plan.enqueues) - 1)
    with compiled_instead(old, new):
        return examine(path, path.parent / "found", device="pocl")


def test_a_healthy_model(path: Path) -> None:
    found = examine(path, path.parent / "found", every_launch=True, device="pocl")
    assert found.healthy
    assert found.walk is not None
    assert found.walk.looked_at > 0
    assert not found.walk.unasked
    assert not (path.parent / "found").exists()


def test_a_wrong_kernel_gets_a_program(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = examined_with_fault(path, monkeypatch, blind=False)
    assert not found.healthy
    assert len(found.report.findings) == 1
    assert [file.suffix for file in found.files] == [".c", ".cl"]
    assert "must be" in found.files[0].read_text()


def test_a_model_that_is_wrong_leads_to_its_kernel(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = examined_with_fault(path, monkeypatch, blind=True)
    assert found.check is not None
    assert found.check.passed is False
    assert found.walk is not None
    assert found.walk.step is not None
    assert found.walk.step.number == found.walk.looked_at - 1
    assert "must be" in str(found.walk.step.differences[0])
    assert len(found.files) == 2


@pytest.mark.parametrize("name", ["panel", "tile_image"])
def test_the_program_shows_the_difference(name: str, tmp_path: Path) -> None:
    images = KernelCase(
        nodes=[("MatMul", "x w", "p"), ("Relu", "p", "r"), ("MatMul", "r v", "y")], feeds=FEEDS, constants=WEIGHTS,
        memory="image", device="adreno_740", templates="",
    )  # fmt: skip
    plan = asking(images if name == "tile_image" else CASES[name])
    _, wrong, probe = faulty(plan, plan.probes[0].launches[0])
    shows_the_difference(plan, probe, wrong, tmp_path)


@pytest.mark.skipif(not has_byte_unit(), reason="the processor has no matrix unit for bytes")
def test_the_program_asks_for_the_processor_s_matrix_unit(tmp_path: Path) -> None:
    plan = optimize(byte_product((33, 128, 48), 7)[0], probes=True).plan
    probe = plan.probes[0]
    text = plan.enqueues[probe.launches[0]].source.text
    shows_the_difference(plan, probe, text.replace("if (left_zero != 0)", "if (left_zero == 0)"), tmp_path)


def shows_the_difference(plan: Plan, probe: Probe, wrong: str, folder: Path) -> None:
    """The program of a probe says that the plan's kernel is right, and that a wrong text in its place is wrong."""
    source = plan.enqueues[probe.launches[0]].source
    written, kernel = write_reproduction(plan, probe, source, ["it differs */ here"], choose("auto"), folder)
    warnings = ("-std=c11", "-Wall", "-Wextra", "-Werror")
    run(compiler(), *warnings, "-o", folder / "program", written, "-ldl", "-lm")
    run(compiler(), *warnings, "-Dmain=reproduction", "-fPIC", "-shared", "-o", folder / "lib.so", written, "-lm")
    environment = {**os.environ, "OPENCL_LIBRARY": opencl_library() or "libOpenCL.so.1"}
    for text, code in ((source.text, 0), (wrong, 1)):
        kernel.write_text(text)
        command = [sys.executable, "-c", CALLED, str(folder / "lib.so")]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        assert done.stdout.splitlines()[-1] == ("wrong" if code else "right")


def test_the_command(path: Path) -> None:
    done = CliRunner().invoke(main, ["doctor", str(path), "--device", "pocl", "--json", "-o", str(path.parent / "d")])
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["healthy"]
    assert data["report"]["asked"] > 0
    shown = CliRunner().invoke(main, ["doctor", str(path), "--device", "pocl", "-o", str(path.parent / "d")])
    assert "0 of" in shown.output


def test_the_command_says_no(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = examined_with_fault(path, monkeypatch, blind=False)
    monkeypatch.setattr(examination, "examine", lambda *given, **how: found)
    done = CliRunner().invoke(main, ["doctor", str(path), "--device", "pocl"])
    assert done.exit_code == 1
    assert "1 of" in done.output
    assert ".cl" in done.output

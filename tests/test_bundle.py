"""Exported programs: they build, and run what Python runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from smartmem_rules import load, optimize
from smartmem_rules.api import OptimizedPlan
from smartmem_rules.bundle import BundleError, write_bundle
from smartmem_rules.cli import main
from smartmem_rules.runtime.plan_file import save_plan
from tests.plan.models import model, normal
from tests.plan.open_models import perceptron
from tests.runtime.c.library import compiler, opencl_environment, run
from tests.runtime.plans import make_plan

STRANGE = 'a"b\\c??/ */ é\n%s'


def built(folder: Path) -> Path:
    """Where the program of a bundle is."""
    if shutil.which("cmake") is None:
        pytest.skip("there is no cmake on this computer")
    compiler()
    run("cmake", "-S", folder, "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Debug")
    run("cmake", "--build", folder / "build", "-j2")
    return folder / "build"


def ran(folder: Path, plan: OptimizedPlan, feeds: Mapping[str, np.ndarray], raw: bool = False) -> None:
    """Compare what the program writes with what Python computes."""
    arguments = []
    for number, (name, array) in enumerate(feeds.items()):
        path = folder / f"{number}.{'raw' if raw else 'npy'}"
        array.tofile(path) if raw else np.save(path, array)
        arguments.append(f"{name}={path}")
    environment = {**os.environ, **opencl_environment()}
    said = run("./run", "-o", folder, "--repeat", "2", *arguments, cwd=folder, env=environment)
    assert len(re.findall(r"^[\d.]+ ms$", said, re.M)) == 2
    for number, array in enumerate(plan.run(feeds).values()):
        found = np.load(folder / f"{number}.npy")
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


def test_a_program_runs_what_python_runs(tmp_path: Path) -> None:
    plan = optimize(perceptron(), dims={"batch": (1, 9)})
    phone = optimize(perceptron(), dims={"batch": (1, 9)}, device="adreno_740", memory="image")
    alone = write_bundle([plan], tmp_path / "alone")
    assert alone.files == ("CMakeLists.txt", "README.md", "main.c", "npy.c", "npy.h", "open.plan")
    bundle = write_bundle([phone, plan], tmp_path / "out")
    files = [name for name in bundle.files if name.endswith(".plan")]
    assert [re.sub(".*-", "", name) for name in files] == ["adreno_740.plan", "pocl.plan"]
    assert bundle.plan_bytes == sum((tmp_path / "out" / name).stat().st_size for name in files)
    folder = built(tmp_path / "out")
    for batch in (1, 7):
        ran(folder, plan, plan.random_feeds(batch, {"batch": batch}))
    environment = {**os.environ, **opencl_environment()}
    refuses_inputs(folder, environment)
    takes_the_plan_for_its_device(folder, environment, files, phone)


def refuses_inputs(folder: Path, environment: dict[str, str]) -> None:
    x = np.zeros((10, 20), np.float32)
    np.save(folder / "x.npy", x)
    np.save(folder / "cut.npy", x[:7])
    os.truncate(folder / "cut.npy", (folder / "cut.npy").stat().st_size - 4)
    for argument, message in (
        ("x=nothing.npy", "cannot be read"),
        ("x=cut.npy", "the input x has 560 bytes with this shape, not 556"),
        ("x=x.npy", "the plan is made for 1 to 9"),
        ("z=x.npy", "names no input"),
        ("--device", "usage"),
    ):
        done = subprocess.run(["./run", argument], cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode in (1, 2)
        assert message in done.stdout + done.stderr
    np.save(folder / "x.npy", x.astype(np.float64))
    done = subprocess.run(["./run", "x=x.npy"], cwd=folder, env=environment, capture_output=True, text=True)
    assert "has elements of type '<f8', and those of the input are '<f4'" in done.stderr


def takes_the_plan_for_its_device(
    folder: Path, environment: dict[str, str], files: list[str], phone: OptimizedPlan
) -> None:
    feeds = phone.random_feeds(3, {"batch": 6})
    (x,) = feeds.values()
    np.save(folder / "x.npy", x)
    # the phone's plan runs on what is here where it is asked for, and not by itself
    run("./run", "--plan", "1", "-o", folder, "x=x.npy", cwd=folder, env=environment)
    (y,) = phone.run(feeds).values()
    np.testing.assert_array_equal(np.load(folder / "0.npy"), y)
    shutil.copy(folder / files[0], folder / files[1])
    done = subprocess.run(["./run", "x=x.npy"], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.count("for adreno_740: it is for devices of another name") == 2
    for number in ("3", "0", "-1", "x"):
        done = subprocess.run(["./run", "--plan", number, "x=x.npy"], cwd=folder, env=environment, capture_output=True)
        assert done.returncode == 2


def test_a_program_of_a_single_file_and_names_that_c_could_misread(tmp_path: Path) -> None:
    proto = model([("Relu", "x", "y")], {"x": normal(3, 4)}, "y")
    proto.graph.node[0].input[0] = proto.graph.input[0].name = STRANGE
    proto.graph.node[0].output[0] = proto.graph.output[0].name = "*/ out"
    proto.graph.name = STRANGE
    onnx.checker.check_model(proto)
    plan = optimize(proto)
    bundle = write_bundle([optimize(proto, device="adreno_740"), plan], tmp_path / "out", single_file=True)
    assert "plan_data.c" in bundle.files
    assert not [name for name in bundle.files if name.endswith(".plan")]
    folder = built(tmp_path / "out")
    shutil.move(folder / "run", tmp_path / "run")  # it needs no other file
    shutil.rmtree(tmp_path / "out")
    ran(tmp_path, plan, plan.random_feeds(1), raw=True)


def test_the_command_takes_several_devices(tmp_path: Path) -> None:
    onnx.save(model([("Relu", "x", "y")], {"x": normal(3, 4)}, "y"), tmp_path / "a.onnx")
    command = ["export", str(tmp_path / "a.onnx"), "--json", "--device", "adreno_740", "--device", "gpu"]
    done = CliRunner().invoke(main, [*command, "-o", str(tmp_path / "out"), "--device", "pocl"])
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["targets"] == ["adreno_740", "gpu", "pocl"]
    assert {f"a-{name}.plan" for name in data["targets"]} <= set(data["files"])
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "| 2: `a-gpu.plan` | gpu |" in readme
    assert "weights for itself" in readme
    done = CliRunner().invoke(main, [*command, "-o", str(tmp_path / "twice"), "--device", "gpu"])
    assert done.exit_code == 2
    assert "two plans are for devices of the profile gpu" in done.output
    plan = str(tmp_path / "out" / "a-gpu.plan")
    done = CliRunner().invoke(main, ["export", plan, "-o", str(tmp_path / "b"), *command[3:]])
    assert done.exit_code == 2
    assert "made for one device" in done.output
    assert not (tmp_path / "b").exists()
    assert not (tmp_path / "twice").exists()


def test_a_folder_with_something_in_it_stays(tmp_path: Path) -> None:
    save_plan(make_plan(), tmp_path / "a.plan")
    with pytest.raises(BundleError, match="there is something already"):
        write_bundle([load(tmp_path / "a.plan")], tmp_path)
    assert os.listdir(tmp_path) == ["a.plan"]
    (tmp_path / "file").write_text("")
    with pytest.raises(BundleError, match="there is something already"):
        write_bundle([load(tmp_path / "a.plan")], tmp_path / "file")


def test_the_command_says_where_there_is_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_plan(make_plan(), tmp_path / "a.plan")
    nothing: Any = lambda name: None  # noqa: E731
    monkeypatch.setattr(shutil, "which", nothing)
    done = CliRunner().invoke(main, ["export", str(tmp_path / "a.plan"), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "has no C compiler" in " ".join(done.output.split())
    assert (tmp_path / "out" / "tiny.plan").read_bytes() == (tmp_path / "a.plan").read_bytes()
    readme = (tmp_path / "out" / "README.md").read_text()
    assert readme.count("```") == 2
    assert len(re.search(r"```sh\n(.*?)```", readme, re.S)[1].splitlines()) == 3  # type: ignore[index]


def test_compiled_programs_come_along(tmp_path: Path) -> None:
    save_plan(make_plan(), tmp_path / "a.plan")
    done = CliRunner().invoke(main, ["export", str(tmp_path / "a.plan"), "-o", str(tmp_path / "out"), "--binaries"])
    assert done.exit_code == 0, done.output
    assert load(tmp_path / "out" / "tiny.plan").plan.binaries

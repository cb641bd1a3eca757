"""The commands that print plans: show, diff, and the stages that optimize writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner, Result

from smartmem_rules.cli import main
from tests.checking import models
from tests.checking.models import drawn


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "attention.onnx"
    onnx.save(drawn(models.attention, 0)[0], str(path))
    return path


def smartmem(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def data_of(*arguments: object) -> Any:
    result = smartmem(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_list_of_launches(model: Path) -> None:
    launches = data_of("show", model, "--device", "pocl")["launches"]
    assert [one["number"] for one in launches] == list(range(len(launches)))
    assert [name for one in launches for name in one["kernels"]] == ["k0_contraction", "k1_contraction"]
    assert "k0_contraction" in smartmem("show", model, "--device", "pocl").stdout


def test_one_kernel(model: Path, tmp_path: Path) -> None:
    kernel = data_of("show", model, "k1_contraction", "--device", "pocl")
    assert "scores for i5 < 9" in kernel["text"]
    assert "__kernel" in kernel["source"]
    assert any("(chosen)" in line for line in kernel["schedule"]["k1_contraction"]["figures"])
    assert len(kernel["layouts"]["t7"]["candidates"]) > 1
    text = smartmem("show", model, "k1_contraction", "--device", "pocl").stdout
    for part in ("row Softmax_13.m#", "schedule of k1_contraction", "layout of t7", "__kernel"):
        assert part in text
    plan = tmp_path / "a.plan"
    assert smartmem("optimize", model, "--no-check", "-o", plan).exit_code == 0
    assert "__kernel" in data_of("show", plan, 0)["source"]


def test_a_kernel_that_is_not_there(model: Path) -> None:
    result = smartmem("show", model, "k1_contractoin", "--device", "pocl")
    assert result.exit_code == 2
    assert "no kernel 'k1_contractoin'; did you mean" in result.output


def test_differences(model: Path) -> None:
    data = data_of("diff", model, "--to-level", "none", "--device", "pocl")
    assert data["launches"][0] < data["launches"][1] == 18
    assert {one["stage"] for one in data["stages"]} >= {"import", "fuse", "layout", "schedule", "launch", "memory"}
    assert data["stages"][0] == {"stage": "import", "same": True, "removed": 0, "added": 0, "lines": []}
    text = smartmem("diff", model, "--to-disable", "row_prologue", "--device", "pocl", "--stage", "launch").output
    assert text.startswith("launches: ")
    assert "LayerNormalization_0" not in text
    assert "+" in text
    assert smartmem("diff", model).exit_code == 2


def test_a_saved_plan_is_no_second_plan_of_its_own(model: Path, tmp_path: Path) -> None:
    plan = tmp_path / "a.plan"
    assert smartmem("optimize", model, "--device", "pocl", "--no-check", "-o", plan).exit_code == 0
    for given in ([plan], [model, plan]):
        refused = smartmem("diff", *given, "--to-level", "none")
        assert refused.exit_code == 2
        assert f"{plan.name} is a plan, which is made already" in refused.output.replace("\n", " ")
    against = data_of("diff", plan, model, "--device", "pocl", "--to-level", "none")
    assert against["launches"][0] < against["launches"][1]


def test_stages_in_files(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "stages"
    files = data_of("optimize", model, "--no-check", "--dump", folder)["dumped"]
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["01-import.txt", "02-saturate.txt", "03-extract.txt", "05-fuse.txt", "06-layout.txt",
                     "08-schedule.txt", "09-launch.txt", "10-memory.txt", "11-emit.txt", "12-build.txt",
                     "kernels"]  # fmt: skip
    sources = sorted(path.name for path in (folder / "kernels").iterdir())
    assert sources[0] == "000-k0_contraction.cl"
    assert len(files) == len(names) - 1 + len(sources)
    only = tmp_path / "only"
    data_of("optimize", model, "--no-check", "--dump", only, "--dump-after", "fuse")
    assert [path.name for path in only.iterdir()] == ["05-fuse.txt"]
    assert smartmem("optimize", model, "--dump-after", "fuse").exit_code == 2


def test_a_folder_that_cannot_be_written(model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = smartmem("optimize", model, "--no-check", "--dump", tmp_path / "file" / "stages")
    assert result.exit_code == 2
    assert "the stages cannot be written" in result.output

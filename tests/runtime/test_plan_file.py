"""Plans survive a file; damaged files are refused with one clear message."""

from __future__ import annotations

import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.format.container import HEADER_BYTES
from smartmem_rules.runtime.plan_file import PlanFileError, is_plan_file, load_plan, save_plan
from smartmem_rules.statistics import ModelStatistics, Statistics
from tests.runtime.format.files import index_of, resealed, with_header
from tests.runtime.plans import make_plan


@pytest.mark.parametrize(("memory", "storage"), [("buffer", "float32"), ("image", "float16")])
def test_a_loaded_plan_runs_the_same(tmp_path: Path, memory: str, storage: str) -> None:
    plan = make_plan(memory, storage)
    path = tmp_path / "a.plan"
    save_plan(plan, path)
    loaded = load_plan(path)
    assert is_plan_file(path)
    assert (loaded.enqueues, loaded.slots) == (plan.enqueues, plan.slots)
    assert (loaded.placement, loaded.inputs, loaded.outputs) == (plan.placement, plan.inputs, plan.outputs)
    feeds = {"x": np.random.default_rng(1).standard_normal((6, 10)).astype(np.float32)}
    device = choose()
    np.testing.assert_array_equal(Executor(loaded, device).run(feeds)["y"], Executor(plan, device).run(feeds)["y"])


def test_scalar_and_boolean_constants(tmp_path: Path) -> None:
    plan = make_plan()
    plan.tensors["c"] = replace(plan.tensors["c"], packed=np.asarray(True))
    save_plan(plan, tmp_path / "a.plan")
    packed = load_plan(tmp_path / "a.plan").tensors["c"].packed
    assert packed is not None
    assert (packed.dtype, packed.shape, bool(packed)) == (np.bool_, (), True)


def test_numbers_of_numpy_in_the_statistics(tmp_path: Path) -> None:
    plan = make_plan()
    seconds: dict[str, Any] = {"import": np.float32(1.5)}
    bytes_: Any = np.int64(3)
    plan = replace(plan, statistics=Statistics(seconds=seconds, model=ModelStatistics(tensor_bytes=bytes_)))
    save_plan(plan, tmp_path / "a.plan")
    found = load_plan(tmp_path / "a.plan").statistics
    assert found == Statistics(seconds={"import": 1.5}, model=ModelStatistics(tensor_bytes=3))


def damage_nothing(path: Path) -> None:
    path.unlink()


def damage_empty(path: Path) -> None:
    path.write_bytes(b"")


def damage_cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


def damage_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    constant = next(one for one in index_of(bytes(data)).tensors if one.HasField("packed"))
    data[constant.packed.section.offset] ^= 1
    path.write_bytes(bytes(data))


def damage_text(path: Path) -> None:
    path.write_text("no plan")


def damage_old(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("plan.json", "{}")


def damage_version(path: Path) -> None:
    data = path.read_bytes()
    fields = bytearray(data[: HEADER_BYTES - 32])
    fields[8] = 99
    path.write_bytes(with_header(data, bytes(fields)))


def damage_tensor(path: Path) -> None:
    path.write_bytes(resealed(path.read_bytes(), lambda index: index.tensors.pop()))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_nothing, "there is no such file"),
        (damage_empty, "damaged"),
        (damage_cut, "damaged"),
        (damage_bit, "damaged.*checksum"),
        (damage_text, "damaged"),
        (damage_old, "older version"),
        (damage_version, "version 99, this program reads version 9"),
        (damage_tensor, "there is no tensor 3"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, damage: object, message: str) -> None:
    path = tmp_path / "a.plan"
    save_plan(make_plan(), path)
    damage(path)  # type: ignore[operator]
    with pytest.raises(PlanFileError, match=message):
        load_plan(path)


def test_a_failed_save_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a.plan"
    path.write_text("old")
    plan = replace(make_plan(), statistics=Statistics(seconds={"not a number": float("nan")}))
    with pytest.raises(ValueError, match="JSON"):
        save_plan(plan, path)
    assert os.listdir(tmp_path) == ["a.plan"]
    assert path.read_text() == "old"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanFileError, match="cannot be written"):
        save_plan(make_plan(), tmp_path / "nowhere" / "a.plan")

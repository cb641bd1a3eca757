"""A plan is found again only where all that it depends on is the same; near misses make it anew."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from smartmem_rules import optimize
from smartmem_rules.kept_plans import key as keys, store as stores
from smartmem_rules.kept_plans.store import PlanStore
from smartmem_rules.limits import Limits
from smartmem_rules.optimized import OptimizedPlan
from smartmem_rules.pipeline import rules_of
from smartmem_rules.resources import rules_path
from smartmem_rules.tuning.database import Place, Tuned, Tunings
from tests.plan.models import model, normal

SETTLED = 0.03
"""Seconds after which a file's time of change lies behind the clock for certain."""
RULE = "rewrite mine in algebra\n    Abs(Abs(Relu(x))) => Relu(x)\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of its own, which keeps plans of any size."""
    monkeypatch.setenv("SMARTMEM_PLANS", str(tmp_path / "plans"))
    monkeypatch.setenv("SMARTMEM_TUNINGS", str(tmp_path / "tunings.sqlite"))
    monkeypatch.setattr("smartmem_rules.planned.LEAST_SECONDS", 0.0)
    return tmp_path / "plans"


def written(path: Path, **changes: np.ndarray) -> Path:
    """A small model: a product, a scale that rules look at, a softmax."""
    constants = {"w": normal(8, 8) / 4, "s": np.ones(8, np.float32), **changes}
    nodes = [("MatMul", "x w", "a"), ("Mul", "a s", "b"), ("Softmax", "b", "c"), ("Add", "c x", "y")]
    onnx.save(model(nodes, {"x": normal(4, 8)}, "y", constants), path)
    time.sleep(SETTLED)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path / "small.onnx")


def is_new(source: Any, **options: Any) -> bool:
    """Whether a plan was made and not found; its outputs are those of the model in both cases."""
    plan = optimize(source, **options)
    assert plan.check(source).passed, "wrong outputs"
    return not plan.report_data()["from_cache"]


def content(plan: OptimizedPlan, path: Path) -> bytes:
    plan._plan = replace(plan.plan, statistics=replace(plan.plan.statistics, seconds={}))
    plan.save(path)
    return path.read_bytes()


def test_the_second_time_the_same_plan_is_found(path: Path, tmp_path: Path) -> None:
    made, found = optimize(path), optimize(path)
    assert found.report_data()["from_cache"]
    assert content(found, tmp_path / "b.plan") == content(made, tmp_path / "a.plan")
    feeds = made.random_feeds()
    np.testing.assert_array_equal(found.run(feeds)["y"], made.run(feeds)["y"])
    assert found.device == made.device
    assert found.explain("c") == made.explain("c")


def test_other_forms_of_a_model(path: Path) -> None:
    proto = onnx.load(path)
    assert is_new(proto)
    assert not is_new(proto)
    proto.graph.node[3].op_type = "Sub"
    assert is_new(proto)
    optimize(proto.SerializeToString())
    assert not is_new(proto.SerializeToString())
    shutil.copy(path, path.with_name("other.onnx"))
    assert is_new(path)
    assert optimize(path.with_name("other.onnx")).plan.model == "other"


@pytest.mark.parametrize("name", ["w", "s"])
def test_one_changed_weight(path: Path, name: str) -> None:
    assert is_new(path)
    proto = onnx.load(path)
    (tensor,) = (one for one in proto.graph.initializer if one.name == name)
    changed = numpy_helper.to_array(tensor).copy()
    changed.flat[3] = 2
    tensor.CopyFrom(numpy_helper.from_array(changed, name))
    times = path.stat()
    onnx.save(proto, path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_size == times.st_size
    assert is_new(path)


def test_one_changed_weight_in_a_data_file(path: Path, tmp_path: Path) -> None:
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="weights", size_threshold=0)
    time.sleep(SETTLED)
    assert is_new(path)
    assert not is_new(path)
    data = tmp_path / "weights"
    times, before = data.stat(), data.read_bytes()
    data.write_bytes(before[:-4] + np.float32(2).tobytes())
    os.utime(data, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert is_new(path)
    time.sleep(SETTLED)
    assert is_new(path)
    assert not is_new(path)
    data.unlink()
    with pytest.raises(Exception, match="missing"):
        optimize(path)


@pytest.mark.parametrize(
    "options",
    [
        {"level": "eliminate"}, {"dtype": "float16"}, {"memory": "image"}, {"layout": "local"},
        {"device": "adreno_740"}, {"disable": []}, {"limits": Limits(nodes=50)},
    ],
    ids=str,
)  # fmt: skip
def test_other_options(path: Path, options: dict[str, Any]) -> None:
    if "disable" in options:
        options = {"disable": [optimize(path).plan.statistics.rewriting.rules[0].rule]}
    assert is_new(path) == ("disable" not in options)
    assert is_new(path, **options)
    assert not is_new(path, **options)
    assert not is_new(path)


def test_other_extents(tmp_path: Path) -> None:
    proto = onnx.load(written(tmp_path / "open.onnx"))
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    for dims in ({"n": 4}, {"n": 5}, {"n": (1, 5)}, {"n": (1, 6)}):
        assert is_new(proto, dims=dims)
        assert not is_new(proto, dims=dims)


def test_changed_rules_of_the_user(path: Path, tmp_path: Path) -> None:
    mine, imported = tmp_path / "mine.smr", tmp_path / "imported.smr"
    imported.write_text(RULE)
    mine.write_text('import "imported.smr"\n')
    time.sleep(SETTLED)
    assert is_new(path)
    assert is_new(path, rules=[mine])
    assert not is_new(path, rules=[mine])
    assert "mine" in rules_of([mine], ()).rule_names()
    imported.write_text(RULE.replace("mine", "other"))
    assert "other" in rules_of([mine], ()).rule_names()
    time.sleep(SETTLED)
    assert is_new(path, rules=[mine])
    assert not is_new(path, rules=[mine])
    assert not is_new(path)


def key(path: Path) -> str:
    made = keys.key_of(path, [], {"level": "smartmem"})
    assert made is not None
    return made.digest


def changed_rule(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    shutil.copytree(rules_path(), folder / "rules")
    monkeypatch.setattr(keys, "rules_path", lambda: folder / "rules")


def changed_templates(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    del folder
    monkeypatch.setattr(keys, "_engine_digest", lambda: "another program")


def changed_driver(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    del folder
    here = [replace(one, driver=f"{one.driver}.1") for one in keys.devices()]
    monkeypatch.setattr(keys, "devices", lambda: here)


def changed_tunings(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    del monkeypatch, folder
    Tunings.of_user().record(
        Place("a", "b", "c"), Tuned(kernel="k", label="k", choice={"rows": 2}, default_ms=2.0, best_ms=1.0)
    )


def changed_library(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    del folder
    monkeypatch.setattr(keys, "_versions", lambda: ["0"])


def changed_variable(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    del folder
    monkeypatch.setenv("SMARTMEM_VERIFY", "not in full")


@pytest.mark.parametrize(
    "change",
    [changed_rule, changed_templates, changed_driver, changed_tunings, changed_library, changed_variable],
)
def test_the_key_of_another_world(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[pytest.MonkeyPatch, Path], None],
) -> None:
    before = key(path)
    assert key(path) == before
    change(monkeypatch, tmp_path)
    first = key(path)
    assert first != before
    if change is changed_rule:
        one = next((tmp_path / "rules").rglob("*.smr"))
        one.write_text(one.read_text() + "\n")
        assert key(path) not in {before, first}


def test_what_changes_while_it_is_planned_is_not_kept(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = PlanStore.write

    def late(store: PlanStore, *arguments: Any) -> None:
        os.utime(path)
        own(store, *arguments)

    monkeypatch.setattr(PlanStore, "write", late)
    optimize(path)
    assert list(folder.iterdir()) == []


def test_a_program_that_was_edited_after_its_start_keeps_nothing(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "STARTED", 0)
    optimize(path)
    assert list(folder.iterdir()) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("damage", ["cut", "empty", "constant", "text", "foreign"])
def test_a_damaged_plan_is_like_none(path: Path, folder: Path, damage: str) -> None:
    optimize(path)
    (kept,) = folder.iterdir()
    data = kept.read_bytes()
    if damage == "constant":
        at = data.index((normal(8, 8) / 4).astype(np.float32).tobytes()[:4])
        kept.write_bytes(data[:at] + b"\0\0\0\0" + data[at + 4 :])
    elif damage == "text":
        at = data.index(b"__kernel")
        kept.write_bytes(data[:at] + b"__Kernel" + data[at + 8 :])
    else:
        kept.write_bytes({"cut": data[:-100], "empty": b"", "foreign": b"PK\x03\x04" + bytes(200)}[damage])
    assert is_new(path)
    assert not is_new(path)


def test_a_plan_under_the_name_of_another(path: Path, folder: Path, tmp_path: Path) -> None:
    optimize(path)
    (first,) = folder.iterdir()
    optimize(written(tmp_path / "other.onnx", w=normal(8, 8)))
    (second,) = set(folder.iterdir()) - {first}
    second.write_bytes(first.read_bytes())
    assert is_new(tmp_path / "other.onnx")


def test_the_least_recently_used_plans_go(path: Path, folder: Path, tmp_path: Path) -> None:
    plan = optimize(path)
    (first,) = folder.iterdir()
    os.utime(first, (1, 1))
    optimize(written(tmp_path / "other.onnx"))
    size = first.stat().st_size
    found = keys.key_of(written(tmp_path / "third.onnx"), [], {})
    assert found is not None
    PlanStore(folder, 5 * size // 2).write(found, plan.plan, plan.device)
    assert not first.exists()
    assert len(list(folder.iterdir())) == 2
    PlanStore(folder, 1).write(replace(found, digest="too_large"), plan.plan, plan.device)
    assert len(list(folder.iterdir())) == 2


def test_a_full_disk_and_a_place_that_takes_nothing(
    path: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr(stores, "free_bytes", lambda _: 0)
        assert is_new(path)
    assert list(folder.iterdir()) == []
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SMARTMEM_PLANS", str(tmp_path / "file"))
    assert is_new(path)
    assert is_new(path)


def test_it_can_be_switched_off(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMARTMEM_PLANS", "off")
    assert is_new(path)
    assert is_new(path)
    assert not folder.exists()
    monkeypatch.delenv("SMARTMEM_PLANS")
    monkeypatch.setenv("SMARTMEM_CACHE", "off")
    assert PlanStore.of_user().folder is None


def test_what_needs_the_stages_makes_a_new_plan(path: Path, tmp_path: Path) -> None:
    optimize(path)
    stages: list[str] = []
    optimize(path, show=lambda name, _: stages.append(name))
    assert "saturate" in stages
    assert not optimize(path, certificate=tmp_path / "certificate.json").report_data()["from_cache"]
    assert not optimize(path, debug=True).report_data()["from_cache"]


KILLED = """
import os, signal, sys
import smartmem_rules.planned
from smartmem_rules.runtime.format import writing
smartmem_rules.planned.LEAST_SECONDS = 0.0
def dying(plan, workarounds, stream, own=writing.write_plan):
    own(plan, workarounds, stream)
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "killed":
    writing.write_plan = dying
plan = smartmem_rules.optimize(sys.argv[1])
print(plan.report_data()["from_cache"])
"""


def test_a_process_that_is_killed_while_it_writes_leaves_nothing(path: Path, folder: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(path)]
    assert subprocess.run([*command, "killed"], capture_output=True).returncode == -signal.SIGKILL
    assert not list(folder.glob("*.plan"))
    assert is_new(path)
    assert not is_new(path)


PARTS = """
import json, sys
from smartmem_rules.kept_plans.key import key_of
print(json.dumps(key_of(sys.argv[1], (), {}).parts))
"""


def test_processes_share_a_store(path: Path, folder: Path) -> None:
    own = keys.key_of(path, (), {})
    others = subprocess.run([sys.executable, "-c", PARTS, str(path)], capture_output=True, text=True, check=True)
    assert own is not None
    assert list(own.parts) == json.loads(others.stdout), "two processes name the same plan differently"
    command = [sys.executable, "-c", KILLED, str(path), ""]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [one.wait() for one in running] == [0, 0]
    assert len(list(folder.iterdir())) == 1
    assert subprocess.run(command, capture_output=True, text=True).stdout == "True\n"
    assert not is_new(path)

"""Ordered launches: kernels that need each other in one launch give what they give one launch after the other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from smartmem_rules import load, optimize
from smartmem_rules.api import OptimizedPlan
from smartmem_rules.language.blocks.fuse import Megakernel
from smartmem_rules.plan.artefact import Place
from smartmem_rules.plan.fusion.policy import policy_of
from smartmem_rules.plan.kernel.launch import Launch, Ordered, Single
from smartmem_rules.plan.kernel.model import Kernel, Layout, Stored
from smartmem_rules.plan.kernel.work_items import Grid
from smartmem_rules.plan.launch import megakernel, wavefront
from smartmem_rules.plan.launch.megakernel import join_launches
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.executor import Executor, RunError
from smartmem_rules.tensor.expr import TensorType
from tests.plan.devices import cpu
from tests.plan.models import Node, model, normal
from tests.plan.programs import rules
from tests.plan.running import LEVELS
from tests.with_all import with_all

pytestmark = pytest.mark.sampled(2)
OPTIMIZED = pytest.mark.optimized
"""Of tests whose plans other processes run, too."""

pytest.importorskip("onnxruntime")

LAYERS = with_all(3, 2)
ROWS, WIDTH = 40, 24
RUNS = with_all(40, 10)


def layers(folder: Path, count: int = LAYERS) -> Path:
    """A model of small kernels in a row, as a file: none finds all that it needs in its own rows."""
    nodes: list[Node] = []
    constants = {}
    for n in range(count):
        nodes += [
            ("MatMul", f"x{n} u{n}", f"a{n}"),
            ("Relu", f"a{n}", f"b{n}"),
            ("Softmax", f"b{n}", f"c{n}", {"axis": 0}),
            ("MatMul", f"c{n} v{n}", f"d{n}"),
            ("Add", f"d{n} x{n}", f"x{n + 1}" if n + 1 < count else "y"),
        ]
        constants |= {f"u{n}": normal(WIDTH, 40, seed=n) / 4, f"v{n}": normal(40, WIDTH, seed=n) / 4}
    path = folder / "layers.onnx"
    onnx.save(model(nodes, {"x0": normal(ROWS, WIDTH)}, "y", constants), path)
    return path


def feeds(seed: int) -> dict[str, np.ndarray]:
    return {"x0": normal(ROWS, WIDTH, seed=seed)}


def ordered_launches(launches: Sequence[Launch]) -> list[Ordered]:
    return [launch for launch in launches if isinstance(launch, Ordered)]


def agree(plan: OptimizedPlan, apart: OptimizedPlan, runs: int = RUNS) -> None:
    """Runs over NaN on other inputs each time, compared with those of one launch after the other."""
    for seed in range(runs):
        plan.prepare().poison()
        expected, got = apart.run(feeds(seed)), plan.run(feeds(seed))
        for name, array in expected.items():
            np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-6, err_msg=f"run {seed}")


def agree_on_threads(plans: tuple[Path, Path], threads: str, runs: int = RUNS) -> None:
    """Two saved plans agree in a process in which PoCL has so many threads."""
    code = (
        "import sys; from smartmem_rules import load; from tests.plan.test_ordered import agree; "
        "agree(load(sys.argv[1]), load(sys.argv[2]), int(sys.argv[3]))"
    )
    # more threads than cores cannot each have one
    environment = {**os.environ, "POCL_MAX_PTHREAD_COUNT": threads, "POCL_AFFINITY": "0"}
    command = [sys.executable, "-c", code, *map(str, plans), str(runs)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Plans with ordered launches and without, as files."""
    folder = tmp_path_factory.mktemp("ordered")
    path = layers(folder)
    plan = optimize(path)
    (launch,) = ordered_launches(plan.kernels)
    assert len(launch.steps) >= LAYERS
    assert len(plan.kernels) == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Device, "runs_ordered", False)
        apart = optimize(path)
        assert not ordered_launches(apart.kernels)
        assert len(apart.kernels) == len(launch.steps)
    plan.save(folder / "ordered.plan")
    apart.save(folder / "apart.plan")
    return folder / "ordered.plan", folder / "apart.plan"


@OPTIMIZED
def test_dependent_launches_become_one(plans: tuple[Path, Path]) -> None:
    ordered_plan, apart = map(load, plans)
    agree(ordered_plan, apart)
    (kernel,) = ordered_plan.kernels
    state = next(name for name in kernel.writes if name.endswith("@order"))
    # each run leaves the counters as it found them
    assert not ordered_plan.prepare().fetch(state).any()


@OPTIMIZED
@pytest.mark.parametrize("threads", ["1", "4"])
def test_any_number_of_threads(plans: tuple[Path, Path], threads: str) -> None:
    agree_on_threads(plans, threads)


@OPTIMIZED
def test_who_has_no_patience_leaves_the_rest_to_the_others(
    tmp_path: Path, plans: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(megakernel, "spin_limit", lambda longest, rest, device, rule: 1)
    monkeypatch.setattr(wavefront, "spin_limit", lambda longest, rest, device, rule: 1)
    plan = optimize(layers(tmp_path))
    (launch,) = ordered_launches(plan.kernels)
    assert launch.tasks.patience == 1
    agree(plan, load(plans[1]))


@OPTIMIZED
def test_two_executors_of_one_plan_at_once(plans: tuple[Path, Path]) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: agree(load(plans[0]), load(plans[1]), RUNS // 2), range(2)))


def test_every_access_is_inside(tmp_path: Path) -> None:
    plan = optimize(layers(tmp_path, 1), debug=True)
    assert ordered_launches(plan.kernels)
    plan.prepare().poison()
    assert plan.check().passed


@OPTIMIZED
def test_other_devices_refuse(plans: tuple[Path, Path]) -> None:
    device = load(plans[0]).prepare().device
    assert device.runs_ordered
    with pytest.raises(RunError, match="optimize the model again"):
        Executor(load(plans[0]).plan, replace(device, ordering_atomics=False))


@pytest.mark.parametrize("level", LEVELS[:-1])
def test_only_the_last_level_joins_launches(tmp_path: Path, level: str) -> None:
    assert not ordered_launches(optimize(layers(tmp_path), level=level).kernels)


# --- which launches are joined, and what waits for what ---

MACHINE = cpu(2, 200.0, 20.0, 5000.0, 0.1, True)
SIZE = 4096


def rule() -> Megakernel:
    found = policy_of(rules().levels["smartmem"], rules().tables, rules().fuses).rule(Megakernel)
    assert found is not None
    return found


def joined(*kernels: tuple[str, str, int, int], places: dict[str, tuple[int, int]] | None = None) -> list[Launch]:
    """Launches of what they read, what they write, operations and work-items."""
    made = []
    for number, (reads, writes, operations, items) in enumerate(kernels):
        kernel = Kernel(
            name=f"k{number}", form="pointwise", reads=tuple(reads), writes=tuple(writes), operations=operations
        )
        made.append(Single(kernel=kernel, grid=Grid.of(items, 1)))
    names = {name for launch in made for name in (*launch.reads, *launch.writes)}
    type_ = TensorType("float32", (SIZE // 4,))
    tensors = {
        n: Stored(name=n, type=type_, layout=Layout("buffer", (0,)), role="intermediate", storage="float32")
        for n in names
    }
    placement = {name: Place(*place) for name, place in (places or {}).items()}
    return join_launches(made, (tensors, placement), rule(), MACHINE)


def waits(launch: Launch) -> list[list[int]]:
    assert isinstance(launch, Ordered)
    return [[wait.step for wait in before] for before in launch.tasks.waits]


def test_each_waits_for_what_it_needs() -> None:
    (launch,) = joined(("x", "a", 100, 4), ("x", "b", 100, 4), ("a", "c", 100, 4), ("abc", "d", 100, 4))
    # the third is done after the first
    assert waits(launch) == [[], [], [0], [1, 2]]


def test_what_takes_the_memory_of_another_one_waits_for_its_readers() -> None:
    over = {"a": (0, 0), "b": (0, SIZE), "c": (0, SIZE // 2), "d": (1, 0)}
    (launch,) = joined(("x", "a", 9, 4), ("a", "d", 9, 4), ("x", "b", 9, 4), ("x", "c", 9, 4), places=over)
    assert waits(launch) == [[], [0], [], [1, 2]]


def test_units_do_not_wait_long() -> None:
    small, large = 1000, 1_000_000_000
    assert len(joined(("x", "a", large, 64), ("a", "b", large, 64))) == 1
    # of three work-items on two units the last one keeps a unit waiting
    assert len(joined(("x", "a", large, 3), ("a", "b", large, 64))) == 2
    assert len(joined(("x", "a", large // 10, 64), ("a", "b", large // 10, 64))) == 2
    assert len(joined(("x", "a", small, 1), ("a", "b", small, 1))) == 1
    assert len(joined(("x", "a", large, 3), ("y", "b", large, 3))) == 1


def test_who_waits_leaves_no_sooner_than_that_pays() -> None:
    # without one of two units the second kernel takes half of its time longer, far more than a work-item of the first
    (launch,) = joined(("x", "a", 10_000_000, 64), ("a", "b", 1_000_000_000, 64))
    assert isinstance(launch, Ordered)
    lost = MACHINE.compute.unit_time(1_000_000_000) / 2
    assert launch.tasks.patience == pytest.approx(lost / MACHINE.compute.poll_ns)

"""Products whose partial sums the next kernel adds up as it reads their rows: with matrix units in plain OpenCL C."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from smartmem_rules import optimize
from smartmem_rules.environment import EMULATED_UNITS, ONE_LAUNCH
from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.plan.kernel.model import Kernel
from tests.plan.models import Node, model, normal
from tests.plan.running import Mode, plan_of, prepare
from tests.plan.test_ordered import ordered_launches

ROWS, WIDTH, DEPTH = 70, 64, 1024
NORMALISED = {"axis": -1, "epsilon": 1e-5}


def perceptrons(path: Path, *, ends: bool, count: int = 2) -> Path:
    """Two products behind each normalisation, the second of them long.

    Args:
        ends: whether all that is needed of the sums is normalised; else they are added to the next ones as well.
    """
    nodes: list[Node] = []
    constants: dict[str, np.ndarray] = {}
    for n in range(count):
        nodes += [
            ("MatMul", f"x{n} u{n}", f"a{n}"),
            ("Relu", f"a{n}", f"b{n}"),
            ("MatMul", f"b{n} v{n}", f"c{n}"),
            ("Add", f"c{n} w{n}", f"d{n}"),
            ("Add", f"d{n} {'x' if ends or n == 0 else 's'}{n if ends or n == 0 else n - 1}", f"s{n}"),
            ("LayerNormalization", f"s{n} g{n} h{n}", f"x{n + 1}", NORMALISED),
        ]
        constants |= {
            f"u{n}": normal(WIDTH, DEPTH, seed=n) / 8,
            f"v{n}": normal(DEPTH, WIDTH, seed=n + 9) / 32,
            f"w{n}": normal(WIDTH, seed=n),
            f"g{n}": 1 + normal(WIDTH, seed=n + 3) / 4,
            f"h{n}": normal(WIDTH, seed=n + 5),
        }
    nodes.append(("Identity", f"x{count}", "y"))
    onnx.save(model(nodes, {"x0": normal(ROWS, WIDTH)}, "y", constants), path)
    return path


def readers_of_sums(launches: Iterable[Launch]) -> list[Kernel]:
    kernels = (kernel for launch in launches for kernel in launch.kernels)
    return [kernel for kernel in kernels if any(name.endswith("@sums") for name in kernel.reads)]


@pytest.fixture
def units(request: pytest.FixtureRequest) -> Iterator[None]:
    with EMULATED_UNITS.set_to(request.param):
        yield


@pytest.mark.usefixtures("units")
@pytest.mark.parametrize(
    ("units", "ends"),
    # compiling either takes PoCL ten seconds
    [("8.0", False), pytest.param("9.0", True, marks=pytest.mark.exhaustive)],
    indirect=["units"],
)
def test_the_kernel_of_the_rows_adds_up(tmp_path: Path, ends: bool, all_cases: bool) -> None:
    path = perceptrons(tmp_path / "model.onnx", ends=ends)
    plan = optimize(path, device="nvidia", dtype="float16")
    assert ordered_launches(plan.kernels)
    readers = readers_of_sums(plan.kernels)
    assert len(readers) == 2
    # the sums are stored besides where they are added to others
    assert [len(kernel.writes) for kernel in readers] == ([1, 1] if ends else [2, 1])
    assert all(kernel.form == "reduction" for kernel in readers)
    for _ in range(3):
        plan.prepare().poison()
        assert plan.check().passed
    with ONE_LAUNCH.set_to("off"):
        mode = Mode(device="nvidia", dtype="float16")
        if not all_cases:  # the plan's check has compared it with the definitions already
            assert not readers_of_sums(plan_of(onnx.load(path), mode).launches)
            return
        apart, executor = prepare(onnx.load(path), mode)
        assert not readers_of_sums(apart.launches)
    given = {"x0": normal(ROWS, WIDTH, seed=7)}
    ours, theirs = plan.run(given)["y"], executor.run(given)["y"]
    assert np.abs(ours - theirs).max() < 4e-3 * np.abs(theirs).max()


NORMALISED_BEFORE = [
    # all columns but a few
    [("Slice", "c0 begin end axis", "d0"), ("Softmax", "d0", "y", {"axis": -1})],
    # each row several times, with other numbers
    [("Add", "c0 many", "d0"), ("Softmax", "d0", "y", {"axis": -1})],
    # rows of the result are no rows of the product
    [("Reshape", "c0 shape", "d0"), ("Softmax", "d0", "y", {"axis": -1})],
]


@pytest.mark.parametrize("nodes", NORMALISED_BEFORE, ids=["part", "repeated", "other rows"])
def test_other_kernels_read_what_is_summed(tmp_path: Path, nodes: list[Node], all_cases: bool) -> None:
    constants = {
        "u0": normal(WIDTH, DEPTH) / 8,
        "v0": normal(DEPTH, WIDTH, seed=1) / 32,
        "many": normal(3, 1, WIDTH, seed=2),
        "begin": np.array([4], np.int64),
        "end": np.array([60], np.int64),
        "axis": np.array([1], np.int64),
        "shape": np.array([ROWS // 2, 2 * WIDTH], np.int64),
    }
    named = {name for node in nodes for name in node[1].split()}
    first: list[Node] = [("MatMul", "x0 u0", "a0"), ("Relu", "a0", "b0"), ("MatMul", "b0 v0", "c0")]
    used = {name: value for name, value in constants.items() if name in named | {"u0", "v0"}}
    path = tmp_path / "model.onnx"
    onnx.save(model([*first, *nodes], {"x0": normal(ROWS, WIDTH)}, "y", used), path)
    with EMULATED_UNITS.set_to("8.0"):
        if not all_cases and nodes is not NORMALISED_BEFORE[0]:  # the kernels of one such model run
            assert not readers_of_sums(plan_of(onnx.load(path), Mode(device="nvidia", dtype="float16")).launches)
            return
        plan = optimize(path, device="nvidia", dtype="float16")
    assert not readers_of_sums(plan.kernels)
    assert plan.check().passed

"""Kernels for texture GPUs give the right values; here PoCL runs them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from smartmem_rules.graph.importer import import_model
from smartmem_rules.plan.schedule.records import GroupSchedule, schedule_of
from tests.plan.building import build
from tests.plan.models import model, normal
from tests.plan.programs import rules

pytestmark = pytest.mark.sampled(12)

pytest.importorskip("pyopencl")
onnxruntime = pytest.importorskip("onnxruntime")

CASES = {
    # rows and columns that fill register blocks, that fill none, and that leave some of the last one
    "whole": ((16, 12), (12, 16)),
    "small": ((3, 8), (8, 5)),
    "rows_left": ((21, 16), (16, 32)),
    "columns_left": ((8, 20), (20, 39)),
    "odd_reduction": ((9, 7), (7, 22)),
    "batches": ((2, 3, 17, 12), (2, 3, 12, 21)),
}


@pytest.mark.parametrize("memory", ["image", "buffer"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", sorted(CASES))
def test_products(name: str, transposed: bool, memory: str) -> None:
    from smartmem_rules.runtime.devices import devices
    from smartmem_rules.runtime.executor import Executor

    left, right = CASES[name]
    given = right[:-2] + right[:-3:-1] if transposed else right
    feeds = {"a": normal(*left), "b": default_rng(3).standard_normal(given).astype(np.float32)}
    order = [*range(len(right) - 2), len(right) - 1, len(right) - 2]
    turned = [("Transpose", "b", "c", {"perm": order})] if transposed else [("Identity", "b", "c")]
    made = model([*turned, ("MatMul", "a c", "p"), ("Relu", "p", "y")], feeds, "y", {})
    base = rules()
    graph = import_model(made, base, {})
    plan = build(graph, base, base.devices["adreno_740"], "smartmem", "float32", memory)
    found = Executor(plan, devices()[0]).run(feeds)["y"]
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(found, session.run(None, feeds)[0], rtol=1e-5, atol=1e-5)


def _run(nodes: list[tuple], feeds: dict[str, np.ndarray], constants: dict[str, np.ndarray], dtype: str) -> list:
    """The kernels of a plan in images, whose outputs are right to what the type of its tensors holds."""
    from smartmem_rules.runtime.devices import devices
    from smartmem_rules.runtime.executor import Executor

    made = model(nodes, feeds, "y", constants)
    base = rules()
    graph = import_model(made, base, {})
    plan = build(graph, base, base.devices["adreno_740"], "smartmem", dtype, "image")
    found = Executor(plan, devices()[0]).run(feeds)["y"]
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, feeds)[0]
    bound = {"float32": 3e-6, "float16": 4e-3}[dtype] * np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=bound)
    return [kernel for launch in plan.launches for kernel in launch.kernels]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("rows", [50, 130, 700])
def test_statistics_of_rows_are_made_by_the_product_that_reads_them(rows: int, dtype: str) -> None:
    constants = {"g": normal(96), "b": normal(96), "w": normal(96, 200)}
    nodes = [("LayerNormalization", "x g b", "h", {"axis": -1}), ("MatMul", "h w", "p"), ("Relu", "p", "y")]
    (kernel,) = _run(nodes, {"x": normal(rows, 96)}, constants, dtype)
    assert kernel.template == "group"
    # what would lie in memory as halves lies in local memory as halves
    half = "half" if dtype == "float16" else "float"
    assert (schedule_of(kernel, GroupSchedule).tile.left_type, schedule_of(kernel, GroupSchedule).tile.right_type) == (
        half,
        half,
    )


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("tokens", "depth"), [(49, 32), (197, 64), (21, 20)])
def test_an_attention_is_one_kernel(tokens: int, depth: int, dtype: str) -> None:
    feeds = {name: normal(3, tokens, depth) for name in "qkv"}
    nodes = [
        ("Relu", "q", "r"), ("Relu", "k", "l"), ("Relu", "v", "u"),
        ("Transpose", "l", "t", {"perm": [0, 2, 1]}), ("MatMul", "r t", "s"), ("Mul", "s c", "scaled"),
        ("Softmax", "scaled", "p", {"axis": -1}), ("MatMul", "p u", "y"),
    ]  # fmt: skip
    kernels = _run(nodes, feeds, {"c": np.float32(0.2)}, dtype)
    assert sum(k.form == "contraction" for k in kernels) == 1


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_siblings_are_columns_of_one_product(dtype: str) -> None:
    weights = {f"w{i}": normal(64, n) for i, n in enumerate((24, 70, 5))}
    nodes = [*(("MatMul", f"x w{i}", f"p{i}") for i in range(3)), ("Concat", "p0 p1 p2", "y", {"axis": 1})]
    kernels = _run(nodes, {"x": normal(45, 64)}, weights, dtype)
    assert len(kernels[0].parts) == 2


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rows_that_others_read_too_are_stored_by_the_product(dtype: str) -> None:
    constants = {"g": normal(96), "b": normal(96), "w": normal(96, 200), "v": normal(200, 96)}
    nodes = [
        ("LayerNormalization", "x g b", "h", {"axis": -1}), ("MatMul", "h w", "p"), ("Relu", "p", "r"),
        ("MatMul", "r v", "q"), ("Add", "q h", "y"),
    ]  # fmt: skip
    first, second = _run(nodes, {"x": normal(50, 96)}, constants, dtype)
    assert len(first.writes) == 2
    assert set(first.writes) == set(second.reads) - {t for t in second.reads if "@" in t}


def test_a_mean_over_all_rows_is_not_repeated_for_each_row() -> None:
    feeds = {"k": normal(1, 40, 16), "q": normal(1, 50, 16)}
    nodes = [
        ("ReduceMean", "k one", "m", {"keepdims": 1}), ("Mul", "q m", "p"),
        ("ReduceSum", "p two", "y", {"keepdims": 1}),
    ]  # fmt: skip
    constants = {"one": np.array([1], np.int64), "two": np.array([2], np.int64)}
    mean, rows = _run(nodes, feeds, constants, "float32")
    assert mean.writes[0] in rows.reads


def test_a_depthwise_convolution_is_computed_as_the_next_one_loads_its_tiles() -> None:
    constants = {"d": normal(24, 1, 3, 3), "w": normal(40, 24, 1, 1)}
    depthwise = ("Conv", "x d", "h", {"pads": [1, 1, 1, 1], "group": 24})
    nodes = [depthwise, ("Relu", "h", "r"), ("Conv", "r w", "y")]
    (kernel,) = _run(nodes, {"x": normal(1, 24, 13, 11)}, constants, "float32")
    assert kernel.template == "group"

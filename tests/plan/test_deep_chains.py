"""Chains of operators, and rows, that are longer than recursion and stacks are deep."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import smartmem_rules as sm
from smartmem_rules.plan.schedule.elementwise import private_rows
from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import load_rules

onnxruntime = pytest.importorskip("onnxruntime")
CPU = "CPUExecutionProvider"
LEVEL = load_rules().levels["smartmem"]


def chain(operators: list[str], extents: list[int]) -> onnx.ModelProto:
    nodes = [helper.make_node(name, [f"t{k}"], [f"t{k + 1}"]) for k, name in enumerate(operators)]
    ends = [helper.make_tensor_value_info(n, 1, extents) for n in ("t0", f"t{len(operators)}")]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("count", [LEVEL.deepest // 6, 3 * LEVEL.deepest])
def test_a_chain_of_many_operators_is_planned_and_right(count: int) -> None:
    x = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
    operators = ["Tanh", "Neg"] * (count // 2)
    wanted = x.astype(np.float64)
    for name in operators:
        wanted = np.tanh(wanted) if name == "Tanh" else -wanted
    (found,) = sm.optimize(chain(operators, [4, 8])).run({"t0": x}).values()
    np.testing.assert_allclose(found, wanted, rtol=2e-6 * count)


def read_again(steps: int) -> onnx.ModelProto:
    """Each step reads the one before three times."""
    lines = "".join(f"s{k} = Sin (t{k})  c{k} = Less (t{k}, s{k})  t{k + 1} = Where (c{k}, t{k}, s{k})\n"
                    for k in range(steps))  # fmt: skip
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    return onnx.parser.parse_model(f"{head} f (float[4, 8] t0) => (float[4, 8] t{steps}) {{ {lines} }}")


def test_a_chain_that_reads_each_value_again_is_planned_and_right() -> None:
    """Written into one another, 40 steps would be an expression of 4 ** 40 terms."""
    x = np.random.default_rng(3).standard_normal((4, 8)).astype(np.float32)
    wanted = x.astype(np.float64)
    for _ in range(40):
        wanted = np.minimum(wanted, np.sin(wanted))
    (found,) = sm.optimize(read_again(40)).run({"t0": x}).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


STEPS = {
    "column and row": "a{0} = ReduceMean <axes = [1]> (t{0})  b{0} = ReduceMean <axes = [0]> (t{0})  "
    "c{0} = Mul (a{0}, b{0})  t{1} = Tanh (c{0})",
    "indices of indices": "i{1} = Gather <axis = 0> (i{0}, i{0})  t{1} = Gather <axis = 1> (t{0}, i{1})",
    "elements written": "w{0} = ScatterElements <axis = 1> (t{0}, p, u)  a{0} = Add (w{0}, t{0})  t{1} = Tanh (a{0})",
}
"""Steps that a plan once took exponential time for, or too much recursion, or compilers did."""


@pytest.mark.parametrize("device", ["pocl", pytest.param("nvidia", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_sixteen_such_steps_are_planned_and_right(step: str, device: str) -> None:
    lines = "\n".join(step.format(k, k + 1) for k in range(16))
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    inputs = "float[4, 8] t0, int64[8] i0, int64[4, 3] p, float[4, 3] u"
    model = onnx.parser.parse_model(f"{head} f ({inputs}) => (float[4, 8] t16) {{ {lines} }}")
    random = np.random.default_rng(4)
    feeds = {
        "t0": random.standard_normal((4, 8)).astype(np.float32),
        "i0": random.permutation(8),
        "p": np.stack([random.permutation(8)[:3] for _ in range(4)]),
        "u": random.standard_normal((4, 3)).astype(np.float32),
    }
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString(), providers=[CPU]).run(None, feeds)
    (found,) = sm.optimize(model, device=device).run(feeds).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_a_level_says_how_long_expressions_become(tmp_path: Path) -> None:
    model, file = read_again(2), own_level(tmp_path / "level.smr", "most_terms 20;")
    (mine,), (shipped,) = (sm.optimize(model, rules=[file], level=level).kernels for level in ("mine", "smartmem"))
    assert (len(mine.kernels), len(shipped.kernels)) == (2, 1)


def own_level(path: Path, keys: str) -> Path:
    """A file with a level `mine`, which is `smartmem` with some more keys."""
    shipped = (rules_path() / "levels.smr").read_text()
    block = re.search(r"^level smartmem \{.*?^\}", shipped, re.M | re.S)
    assert block is not None
    path.write_text(block.group(0).replace("level smartmem {", f"level mine {{ {keys}"))
    return path


def test_a_level_says_how_deep_kernels_become(tmp_path: Path) -> None:
    model = chain(["Tanh", "Neg"] * 12, [4, 8])
    file = own_level(tmp_path / "level.smr", "deepest 12;")
    (mine,), (shipped,) = (sm.optimize(model, rules=[file], level=level).kernels for level in ("mine", "smartmem"))
    assert (len(mine.kernels), len(shipped.kernels)) == (6, 1)


def test_a_level_says_what_is_kept_of_a_row(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(ROW.format(512))
    file = own_level(tmp_path / "level.smr", "kept_row 64;")
    mine, shipped = (sm.optimize(model, level=level, rules=[file]).plan.launches[0] for level in ("mine", "smartmem"))
    assert [len(launch.kernels[0].stages) for launch in (mine, shipped)] == [2, 3]


def test_a_device_says_what_a_work_group_keeps_to_itself() -> None:
    device = load_rules().devices["pocl"]
    half = replace(device, memory=replace(device.memory, private_bytes=device.memory.private_bytes // 2))
    assert private_rows(4096, device) == 2 * private_rows(4096, half) == 1024


ROW = """<ir_version: 8, opset_import: ["" : 17]>
f (float[{0}, 1] x) => (float[{0}, 1] y) {{ a = Softmax <axis = -2> (x)  y = ReduceLogSumExp <axes = [1]> (a) }}"""


@pytest.mark.covering
@pytest.mark.parametrize("extent", [16_359, 8 * LEVEL.rows.kept_row])
@pytest.mark.parametrize("device", ["pocl", "nvidia"])
def test_a_row_that_no_stack_holds_is_right(device: str, extent: int) -> None:
    """The terms of the second reduction are kept by each work-item of a group, or computed again."""
    x = np.random.default_rng(2).standard_normal((extent, 1)).astype(np.float32)
    plan = sm.optimize(onnx.parser.parse_model(ROW.format(extent)), device=device)
    shares = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(plan.run({"x": x})["y"], shares / shares.sum(), rtol=1e-3)

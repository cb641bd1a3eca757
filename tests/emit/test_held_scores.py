"""Attentions whose scores stay in the registers of an emulated matrix unit: what is computed of their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from smartmem_rules.plan.schedule.contraction.group import GroupTile
from smartmem_rules.plan.schedule.records import GroupSchedule
from smartmem_rules.rulebase.base import load_rules
from tests.emit.units import TILES, any_device_has_units as any_device_has_units, normal, takes
from tests.plan.models import model
from tests.plan.running import Mode, plan_of, prepare

pytestmark = pytest.mark.sampled(8)

HEADS, DEPTH = 3, 24
Node = tuple[Any, ...]
SOFTMAX: list[Node] = [("Softmax", "s", "p", {"axis": -1})]
ROWS: dict[str, list[Node]] = {
    "softmax": SOFTMAX,
    "scaled, with a bias and a mask": [
        ("Mul", "s scale", "s1"), ("Add", "s1 bias", "s2"), ("Add", "s2 mask", "s3"),
        ("Softmax", "s3", "p", {"axis": -1}),
    ],
    "capped": [
        ("Mul", "s scale", "s1"), ("Tanh", "s1", "s2"), ("Mul", "s2 five", "s3"), ("Softmax", "s3", "p", {"axis": -1}),
    ],
    "divided by the sum of magnitudes": [
        ("Abs", "s", "s1"), ("ReduceSum", "s1 last", "s2", {"keepdims": 1}), ("Div", "s s2", "p"),
    ],
    "as they are": [("Mul", "s scale", "p")],
}  # fmt: skip


def _attention(rows: list[Node], tokens: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    x = normal(20, HEADS, tokens, 16)
    mask = np.where(np.arange(tokens) % 3 == 1, np.float32(-1e4), np.float32(0))
    constants: dict[str, Any] = {
        # scores of a few units, so that their exponentials are as exact as halves are
        **{name: 0.15 * normal(21 + i, 16, DEPTH) for i, name in enumerate(("q", "k", "v"))},
        "scale": np.float32(0.125),
        "five": np.float32(5),
        "bias": normal(25, HEADS, tokens, tokens),
        "mask": mask,
        "last": np.array([-1], np.int64),
    }
    nodes = [
        ("MatMul", "x q", "a"),
        ("MatMul", "x k", "b"),
        ("MatMul", "x v", "c"),
        ("Transpose", "b", "t", {"perm": [0, 2, 1]}),
        ("MatMul", "a t", "s"),
        *rows,
        ("MatMul", "p c", "y"),
    ]
    read = {name for node in nodes for name in node[1].split()}
    return model(nodes, {"x": x}, "y", {k: v for k, v in constants.items() if k in read}), {"x": x}


def _run(proto: onnx.ModelProto, feeds: dict[str, np.ndarray], debug: bool = False) -> tuple[Any, np.ndarray]:
    plan, executor = prepare(proto, Mode(device="nvidia", dtype="float16"), debug)
    executor.poison()
    schedule = plan.launches[-1].schedule
    assert isinstance(schedule, GroupSchedule)
    return schedule, executor.run(feeds)["y"]


def _exact(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> np.ndarray:
    """The output, in double precision."""
    values: dict[str, Any] = {name: array.astype(np.float64) for name, array in feeds.items()}
    for tensor in proto.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        values[tensor.name] = array.astype(np.float64) if array.dtype == np.float32 else array
    compute = {
        "MatMul": np.matmul, "Add": np.add, "Mul": np.multiply, "Div": np.divide, "Tanh": np.tanh, "Abs": np.abs,
        "Transpose": lambda a: a.swapaxes(1, 2), "ReduceSum": lambda a, axes: a.sum(-1, keepdims=True),
        "Softmax": _softmax,
    }  # fmt: skip
    for node in proto.graph.node:
        values[node.output[0]] = compute[node.op_type](*(values[name] for name in node.input))
    found: np.ndarray = values["y"]
    return found


def _softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


@pytest.mark.covering
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(
    "tokens", [1, 7, 49, 128, 197, *(pytest.param(tokens, marks=pytest.mark.exhaustive) for tokens in (16, 100, 256))]
)
@pytest.mark.parametrize("tile", TILES, ids=lambda t: f"{t.rows}x{t.columns}x{t.step}")
@pytest.mark.parametrize("debug", [False, True])
def test_rows_of_scores(rows: str, tokens: int, tile: GroupTile, debug: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    takes(tile, 1, monkeypatch)
    proto, feeds = _attention(ROWS[rows], tokens)
    schedule, found = _run(proto, feeds, debug)
    assert schedule.tile.held == (schedule.tile.scores is not None)
    wanted = _exact(proto, feeds)
    # queries, keys, values, weights and outputs are halves; weights that are no softmax grow with the row
    np.testing.assert_allclose(found, wanted, rtol=0, atol=8e-3 * np.abs(wanted).max())


def test_rows_of_a_softmax_are_held(monkeypatch: pytest.MonkeyPatch, all_cases: bool) -> None:
    takes(TILES[1], 1, monkeypatch)
    for rows in ROWS.values() if all_cases else (ROWS["capped"], ROWS["as they are"]):
        proto, feeds = _attention(rows, 49)
        if all_cases:
            schedule, _ = _run(proto, feeds)
        else:
            schedule = plan_of(proto, Mode(device="nvidia", dtype="float16")).launches[-1].schedule
        assert isinstance(schedule, GroupSchedule)
        assert schedule.tile.held == any(node[0] == "Softmax" for node in rows)


@pytest.mark.parametrize("tokens", [49, 100])
def test_a_model_that_is_written_in_halves_holds_its_scores(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    takes(TILES[1], 1, monkeypatch)
    proto, feeds = _attention(ROWS["capped"], tokens)
    wanted = _exact(proto, feeds)
    halves = onnx.TensorProto.FLOAT16
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.elem_type = halves
    for tensor in proto.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype == np.float32:
            tensor.CopyFrom(onnx.numpy_helper.from_array(array.astype(np.float16), tensor.name))
    schedule, found = _run(proto, {name: array.astype(np.float16) for name, array in feeds.items()})
    assert schedule.tile.held
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, wanted, rtol=0, atol=8e-3 * np.abs(wanted).max())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_stays_its_own(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    takes(TILES[1], 1, monkeypatch)
    proto, feeds = _attention(SOFTMAX, 49)
    feeds["x"][1, 5, 0] = value  # a query, and a key and a value that all rows of this head read
    schedule, found = _run(proto, feeds)
    assert schedule.tile.held
    assert np.isnan(found[1]).all()
    np.testing.assert_allclose(found[[0, 2]], _exact(proto, feeds)[[0, 2]], rtol=0, atol=8e-3)


def test_weights_that_are_an_output_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    takes(TILES[1], 1, monkeypatch)
    proto, feeds = _attention(SOFTMAX, 49)
    shape = [HEADS, 49, 49]
    proto.graph.output.append(onnx.helper.make_tensor_value_info("p", onnx.TensorProto.FLOAT, shape))
    _, executor = prepare(proto, Mode(device="nvidia", dtype="float16"))
    found = executor.run(feeds)
    np.testing.assert_allclose(found["y"], _exact(proto, feeds), rtol=0, atol=8e-3)
    np.testing.assert_allclose(found["p"].sum(-1), 1, rtol=0, atol=4e-3)


@pytest.mark.parametrize("name", ["nvidia_f16", "nvidia_bf16", "nvidia_tf32", "intel_f16"])
def test_sums_that_a_lane_holds_as_a_left_factor(name: str) -> None:
    unit = load_rules().matrices[name]
    left, sums = unit.fragments["left"], unit.fragments["sum"]
    for lane in range(unit.lanes if unit.chained else 0):
        for element, (beside, own) in enumerate(unit.chained):
            row, column = sums.place(lane, own)
            assert left.place(lane, element) == (row, beside * unit.columns + column)
    assert bool(unit.chained) == name.startswith(("nvidia_f16", "nvidia_bf16"))

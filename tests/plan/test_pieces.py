"""Outputs that join tensors: written in pieces by what makes the parts, copied only where a part is read elsewhere."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest

from smartmem_rules.pipeline import Request, make_plan
from smartmem_rules.plan.fusion import concat_outputs
from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.plan.launch import launches
from smartmem_rules.stages import Unmeasured
from tests.plan.models import Array, Node, i64, model, normal
from tests.plan.running import Mode, by_onnxruntime, prepare

X = {"x": normal(6, 16), "z": normal(6, 12, seed=1)}


def weights(*shape: int) -> Array:
    return normal(*shape, seed=sum(shape)) / 8


W = {"u": weights(16, 10), "v": weights(12, 7), "w": weights(10, 5)}
PARTS: list[Node] = [("MatMul", "x u", "a"), ("MatMul", "z v", "b"), ("Sigmoid", "b", "c")]


def movers(nodes: list[Node], outputs: str, mode: Mode, **constants: Array) -> int:
    """How many kernels only move data, after the results over NaN were compared with those of ONNX Runtime."""
    proto = model(nodes, X, outputs, {**W, **constants})
    plan, executor = prepare(proto, mode)
    executor.poison()
    got = executor.run(X)
    expected = by_onnxruntime(proto, X)
    for name in outputs.split():
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-4, atol=1e-4)
    return sum(kernel.moves_only for launch in plan.launches for kernel in launch.kernels)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", [Mode(), Mode("eliminate"), Mode(device="nvidia"), Mode(device="adreno_740")], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_parts_are_written_where_they_belong(axis: int, mode: Mode) -> None:
    parts: list[Node] = PARTS if axis else [PARTS[0], ("MatMul", "z t", "b"), ("Sigmoid", "b", "c")]
    nodes: list[Node] = [*parts, ("Concat", "a c", "y", {"axis": axis})]
    assert movers(nodes, "y", mode, t=weights(12, 10)) == 0


def test_one_element_each() -> None:
    nodes: list[Node] = [
        ("ReduceMax", "x all", "a", {"keepdims": 0}),
        ("ReduceMin", "z all", "b", {"keepdims": 0}),
        ("Unsqueeze", "a first", "c"),
        ("Unsqueeze", "b first", "d"),
        ("Concat", "c d", "y", {"axis": 0}),
    ]
    assert movers(nodes, "y", Mode(), all=i64(0, 1), first=i64(0)) == 0


def test_what_is_needed_elsewhere_stays_a_tensor() -> None:
    nodes: list[Node] = [*PARTS, ("Concat", "a c", "y", {"axis": 1}), ("MatMul", "a w", "o"), ("Softmax", "o", "q")]
    assert movers(nodes, "y q", Mode("dnnfusion")) == 1
    assert movers(nodes, "y q", Mode()) == 1


def test_a_part_that_appears_twice_is_copied() -> None:
    nodes: list[Node] = [*PARTS, ("Concat", "a c a", "y", {"axis": 1})]
    assert movers(nodes, "y", Mode()) == 1


def test_a_part_of_a_part_is_copied() -> None:
    nodes: list[Node] = [*PARTS, ("Slice", "a from to ax", "s"), ("Concat", "s c", "y", {"axis": 1})]
    assert movers(nodes, "y", Mode(), **{"from": i64(2), "to": i64(9), "ax": i64(1)}) == 1


@pytest.mark.sampled(2)
def test_the_work_grows_with_the_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (steps_of_pieces(monkeypatch, outputs) for outputs in (20, 80))
    assert many < 1.1 * 4 * few, (few, many)


def steps_of_pieces(monkeypatch: pytest.MonkeyPatch, outputs: int) -> int:
    """Steps of Python's interpreter that writing so many outputs in pieces takes, in the functions of its module."""
    nodes: list[Node] = []
    for n in range(outputs):
        nodes += [("Softmax", f"x{n}", f"a{n}"), ("Softmax", f"z{n}", f"b{n}")]
        nodes.append(("Concat", f"a{n} b{n}", f"y{n}", {"axis": 1}))
    steps = 0

    def count(frame: FrameType, event: str, _: object) -> object:
        nonlocal steps
        if frame.f_code.co_filename != concat_outputs.__file__:
            return None
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return count

    def counted(*given: Any) -> list[Kernel]:
        before = sys.gettrace()
        sys.settrace(count)
        try:
            return concat_outputs.write_pieces(*given)
        finally:
            sys.settrace(before)

    monkeypatch.setattr(launches, "write_pieces", counted)
    inputs = {f"{name}{n}": normal(3, 4) for name in "xz" for n in range(outputs)}
    proto = model(nodes, inputs, " ".join(f"y{n}" for n in range(outputs)), {})
    make_plan(Request(proto, (), "pocl", "eliminate", "float32", "auto", (), {}), Unmeasured())
    assert steps
    return steps

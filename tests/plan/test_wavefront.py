"""Stacks of recurrences as waves: fewer launches, the same results, and only where steps follow steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper

from smartmem_rules import optimize
from smartmem_rules.plan.kernel.launch import Launch, Ordered, Wave
from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.plan.launch.wavefront import _Layer, _shares, _time_in_order
from smartmem_rules.runtime.devices import Device
from tests.plan.devices import cpu

pytestmark = pytest.mark.sampled(6)

pytest.importorskip("onnxruntime")
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
SIZE = 16


def stack(operators: Sequence[str], steps: int, batch: int = 1, directions: Sequence[str] = ()) -> ModelProto:
    """Layers of recurrences; between them the axis of directions is taken out."""
    rng = np.random.default_rng(len(operators))
    nodes, constants = [], [numpy_helper.from_array(np.array([1]), "axis")]
    below = "x"
    for number, operator in enumerate(operators):
        rows = GATES[operator] * SIZE
        for name, shape in (("w", (1, rows, SIZE)), ("r", (1, rows, SIZE)), ("b", (1, 2 * rows))):
            values = 0.3 * rng.standard_normal(shape, np.float32)
            constants.append(numpy_helper.from_array(values, f"{name}{number}"))
        direction = directions[number] if directions else "forward"
        given = [below, f"w{number}", f"r{number}", f"b{number}"]
        nodes.append(helper.make_node(operator, given, [f"h{number}"], hidden_size=SIZE, direction=direction))
        below = f"s{number}"
        nodes.append(helper.make_node("Squeeze", [f"h{number}", "axis"], [below]))
    inputs = [helper.make_tensor_value_info("x", 1, (steps, batch, SIZE))]
    graph = helper.make_graph(nodes, "stack", inputs, [helper.make_tensor_value_info(below, 1, None)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def launches(model: ModelProto, **how: str) -> list[Launch]:
    """The launches, after two runs over NaN were compared with ONNX Runtime."""
    plan = optimize(model, **how)
    for _ in range(2):
        plan.prepare().poison()
        check = plan.check()
        assert not check.notes, check  # ONNX Runtime agrees with the definitions
        assert check.passed, check
    return plan.kernels


def followed(found: list[Launch]) -> list[int]:
    """The layers of each launch in which they follow each other share by share."""
    return [len(one.tasks.in_turn) for one in found if isinstance(one, Ordered) and one.tasks.in_turn]


def waves(found: list[Launch]) -> list[int]:
    """The layers at work in each wave."""
    return [len(one.steps) for one in found if isinstance(one, Wave)]


@pytest.mark.parametrize("steps", [2, 7, 24])
@pytest.mark.parametrize("operators", [["LSTM"] * 3, ["GRU", "LSTM"], ["RNN"] * 4], ids="+".join)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_layers_follow_each_other(operators: list[str], steps: int, dtype: str) -> None:
    found = launches(stack(operators, steps), dtype=dtype)
    assert followed(found) == [len(operators)]
    assert len(found) <= 2


@pytest.mark.parametrize("steps", [2, 7, 24])
@pytest.mark.parametrize("operators", [["LSTM"] * 3, ["GRU", "LSTM"], ["RNN"] * 4], ids="+".join)
def test_each_wave_is_a_launch(operators: list[str], steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where work-items do not wait for others."""
    monkeypatch.setattr(Device, "runs_ordered", False)
    found = launches(stack(operators, steps))
    seen = waves(found)
    shares = len(seen) - len(operators) + 1
    assert shares >= 2
    assert seen == [sum(0 <= wave - n < shares for n in range(len(operators))) for wave in range(len(seen))]
    assert len(found) <= 2 * len(operators)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (stack(["LSTM"], 8), "one layer has nothing to follow"),
        (stack(["LSTM"] * 2, 8, directions=("reverse", "forward")), "the first step of the layer below comes last"),
        (stack(["LSTM"] * 2, 1), "one step is one share"),
        (stack(["LSTM"] * 2, 6, batch=3), "the recurrences of a batch are side by side already"),
    ],
)
def test_what_is_no_wave(model: ModelProto, why: str) -> None:
    found = launches(model)
    assert waves(found) == followed(found) == [], why


def test_other_levels_run_layer_by_layer() -> None:
    found = launches(stack(["LSTM"] * 2, 8), level="layout")
    assert waves(found) == followed(found) == []


@pytest.mark.parametrize("operator", GATES)
def test_what_one_step_needs_lies_in_no_memory(operator: str) -> None:
    plan = optimize(stack([operator] * 2, 9))
    plain = optimize(stack([operator] * 2, 9), level="layout")
    # of all that the equations name, the product and what the next step or layer reads
    assert len(plan.plan.placement) < len(plain.plan.placement)
    assert plan.report_data()["intermediate_bytes"]["separate"] < plain.report_data()["intermediate_bytes"]["separate"]
    assert plan.check().passed


def layer(operations: int, steps: int = 64) -> _Layer:
    from smartmem_rules.tensor.atoms import Var

    product = Kernel(name="p", form="contraction", operations=operations)
    scan = Kernel(name="s", form="scan", axes=(Var("t", steps),), operations=operations)
    return _Layer(product=product, scan=scan, rows=1, most=1 << 20)


@pytest.mark.parametrize("units", [1, 2, 4, 16])
def test_shares_of_one_launch_fill_the_units(units: int) -> None:
    stack_ = [layer(10_000_000)] * 10
    machine = cpu(units, 100.0 * units, 20.0, 5000.0, ordered=True)
    shares = _shares(stack_, machine, 16)
    work = 10 * 2 * 10_000_000 / 100
    # only until the last layer at work has begun do units wait
    assert _time_in_order(stack_, shares, machine) <= work / 10 * -(-10 // units) * (1 + units / shares) + 5000
    assert _time_in_order(stack_, shares, machine) >= work / units


@pytest.mark.parametrize("units", [1, 2, 4, 16])
def test_shares_fill_the_units(units: int) -> None:
    stack_ = [layer(10_000_000)] * 10
    shares = _shares(stack_, cpu(units, 100.0 * units, 20.0, 5000.0), 16)
    if units == 1:
        assert shares in (0, 2)  # nothing but launches is saved
    else:
        assert shares * 2 >= units
        active = [sum(0 <= wave - n < shares for n in range(10)) for wave in range(9 + shares)]
        # the modelled time is below that of one recurrence after the other
        assert sum(-(-a // units) for a in active) / shares * 2 < 10 * (1 + 1 / units)


def test_the_waves_of_a_stack_take_as_long_as_its_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the cost model, without launches and traffic: each layer's shares together are the layer."""
    monkeypatch.setattr(Device, "runs_ordered", False)
    plan = optimize(stack(["LSTM"] * 3, 24))
    assert plan.making.modelled is not None
    costs, times = plan.making.modelled.costs, plan.making.modelled.microseconds()
    device, found = costs.device, [one for one in plan.kernels if isinstance(one, Wave)]
    layers = {step.name: costs.of_launch(step) - device.compute.launch for wave in found for step in wave.steps}
    assert len(layers) == 3
    moved = sum(wave.bytes_moved for wave in found) / device.memory.global_bandwidth
    work = sum(1e3 * times[wave.name] - device.compute.launch for wave in found) - moved
    assert work == pytest.approx(sum(layers.values()))

"""Models as ONNX Runtime's dynamic quantizer writes them, beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

import smartmem_rules
from smartmem_rules.plan.schedule.contraction.factors import PackedBytes
from smartmem_rules.plan.schedule.records import PanelSchedule

Array = np.ndarray[Any, np.dtype[Any]]
PARTS = {"y": TensorProto.UINT8, "scale": TensorProto.FLOAT, "zero": TensorProto.UINT8}


def written(
    nodes: list[onnx.NodeProto], inputs: dict[str, Array], constants: dict[str, Array], outputs: dict[str, int]
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "dynamic",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape) for name, value in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    imports = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def quantized(model: onnx.ModelProto, folder: Path, per_channel: bool, kind: QuantType) -> onnx.ModelProto:
    source, target = folder / "float.onnx", folder / "integers.onnx"
    onnx.save(model, source)
    quantize_dynamic(source, target, per_channel=per_channel, weight_type=kind)
    return onnx.load(target)


def expected(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    """By ONNX Runtime with one thread: of several, each quantizes the states of some sequences by their own range."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 40), (2, 9, 24), (2, 24, 5, 7), (0, 3), (130, 257)])
def test_ranges_and_integers_are_those_of_onnxruntime(shape: tuple[int, ...]) -> None:
    node = helper.make_node("DynamicQuantizeLinear", ["x"], list(PARTS))
    model = written([node], {"x": np.empty(shape, np.float32)}, {}, PARTS)
    plan = smartmem_rules.optimize(model, device="pocl")
    for seed, shift in enumerate((0.0, 5.0, -5.0)):
        x = np.asarray(np.random.default_rng(seed).standard_normal(shape) + shift, np.float32)
        for mine, theirs in zip(plan.run({"x": x}).values(), expected(model, {"x": x}), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_many_elements_behind_one_range_are_shared() -> None:
    """The range is one number, and the work-item that finds it does not quantize all elements by itself."""
    node = helper.make_node("DynamicQuantizeLinear", ["x"], list(PARTS))
    x = np.ones((256, 512), np.float32)
    plan = smartmem_rules.optimize(written([node], {"x": x}, {}, PARTS), device="pocl")
    (writer,) = (kernel for launch in plan.kernels for kernel in launch.kernels if "y" in kernel.writes)
    assert writer.form == "pointwise"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("per_channel", [False, True], ids=["one scale", "a scale for each"])
@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8])
def test_products_and_convolutions_are_equal_to_the_bit(tmp_path: Path, per_channel: bool, kind: QuantType) -> None:
    random = np.random.default_rng(2)
    constants = {
        "w": random.standard_normal((24, 12, 3, 3)).astype(np.float32) / 10,
        "b": random.standard_normal(24).astype(np.float32),
        "d": random.standard_normal((24, 1, 3, 3)).astype(np.float32) / 3,
        "m": random.standard_normal((24 * 16, 40)).astype(np.float32) / 10,
        "v": random.standard_normal(40).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "d"], ["s"], pads=[1, 1, 1, 1], group=24),
        helper.make_node("Flatten", ["s"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["p"]),
        helper.make_node("Add", ["p", "v"], ["y"]),
    ]
    x = random.standard_normal((1, 12, 8, 8)).astype(np.float32)
    model = quantized(written(nodes, {"x": x}, constants, {"y": TensorProto.FLOAT}), tmp_path, per_channel, kind)
    plan = smartmem_rules.optimize(model, device="pocl")
    np.testing.assert_array_equal(plan.run({"x": x})["y"], expected(model, {"x": x})[0])
    kernels = [kernel for launch in plan.kernels for kernel in launch.kernels]
    sizes = [kernel.schedule for kernel in kernels if isinstance(kernel.schedule, PanelSchedule)]
    assert sum(isinstance(one, PackedBytes) for size in sizes for one in size.packed) == 2


@pytest.mark.sampled(12)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("per_channel", "kind"), [(False, QuantType.QInt8), (True, QuantType.QUInt8)])
@pytest.mark.parametrize("more", ["", "peepholes", "input_forget"])
def test_recurrences_of_integers(tmp_path: Path, direction: str, per_channel: bool, kind: QuantType, more: str) -> None:
    """Single steps of a quantizer would be 0.002 and more."""
    steps, batch, given, hidden = 5, 3, 8, 20
    count = 2 if direction == "bidirectional" else 1
    random = np.random.default_rng(4)
    shapes = {"w": (count, 4 * hidden, given), "r": (count, 4 * hidden, hidden), "b": (count, 8 * hidden)}
    names = ["x", "w", "r", "b", "", "h", "c"]
    if more == "peepholes":
        shapes["p"] = (count, 3 * hidden)
        names.append("p")
    constants = {name: (0.3 * random.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}
    feeds = {
        name: random.standard_normal(shape).astype(np.float32)
        for name, shape in {
            "x": (steps, batch, given),
            "h": (count, batch, hidden),
            "c": (count, batch, hidden),
        }.items()
    }
    node = helper.make_node(
        "LSTM", names, ["y", "yh", "yc"],
        hidden_size=hidden, direction=direction, input_forget=int(more == "input_forget"),
    )  # fmt: skip
    model = quantized(
        written([node], feeds, constants, dict.fromkeys(("y", "yh", "yc"), TensorProto.FLOAT)),
        tmp_path,
        per_channel,
        kind,
    )
    assert [one.op_type for one in model.graph.node] == ["DynamicQuantizeLSTM"]
    plan = smartmem_rules.optimize(model, device="pocl")
    for mine, theirs in zip(plan.run(feeds).values(), expected(model, feeds), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)

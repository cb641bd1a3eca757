"""Tiles that the time model chooses at 32 images or sentences, against what each tile took on an H200.

The times are those of one kernel by OpenCL's profile, driver 580, in microseconds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules import pipeline
from smartmem_rules.language.blocks.device import Device as Profile
from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.planned import plan_only
from smartmem_rules.runtime import target
from smartmem_rules.runtime.devices import Device
from tests.plan.models import model

SLOWER = 1.05
"""So many times as long as the fastest tile may the chosen one take."""
WGMMA = {"128x256x4": (128, 256, 4), "128x128x3": (128, 128, 3), "128x128x6": (128, 128, 6), "128x64x4": (128, 64, 4),
         "64x128x4": (64, 128, 4), "64x256x4": (64, 256, 4)}  # fmt: skip
PRODUCTS = {
    (6304, 3072, 768, "residual"): (91.3, 86.7, 82.8, 90.4, 91.4, 94.9),
    (6304, 768, 768, "residual"): (31.0, 28.6, 27.1, 29.4, 29.7, 32.0),
    (6304, 768, 3072, "gelu"): (102.6, 119.6, 109.3, 124.2, 114.1, 135.9),
    (100352, 256, 64, "relu"): (48.7, 26.9, 32.9, 21.4, 32.5, 68.0),
    (100352, 64, 256, "residual"): (59.7, 45.0, 66.8, 52.0, 63.4, 90.5),
    (25088, 128, 512, "residual"): (42.5, 26.8, 37.5, 30.3, 35.8, 51.0),
}
"""Rows, depth, columns and epilogue: times with the tiles above, in their order."""
ATTENTION = {
    (64, 64, 224): 64.6, (32, 64, 224): 63.4, (32, 64, 256): 83.3, (16, 64, 256): 101.8, (32, 128, 256): 108.5,
    (32, 32, 224): 111.9, (64, 128, 224): 120.6, (64, 128, 256): 133.2, (16, 32, 256): 213.3,
}  # fmt: skip
"""Times of 384 attentions of 197 tokens with scores in registers, by rows, columns and columns of scores.

With scores in local memory the fastest tile took 153.5."""


@pytest.fixture(autouse=True)
def an_h200(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are made for a device that is not there."""
    within_limits = target._within_limits

    def of_h200(profile: Profile, device: Device) -> Profile:
        there = replace(
            device, capability=(9, 0), local_memory=49152, compute_units=132, largest_allocation=1 << 36,
            global_memory=1 << 37,
        )  # fmt: skip
        return within_limits(profile, there)

    monkeypatch.setattr(target, "_within_limits", of_h200)
    monkeypatch.setattr(pipeline, "_exceeding", lambda *_: frozenset())
    monkeypatch.setenv("SMARTMEM_ONE_LAUNCH", "off")


def _launches(proto: onnx.ModelProto) -> tuple[Launch, ...]:
    return plan_only(proto, device="nvidia", dtype="float16").launches


def _sizes(launch: Launch, *names: str) -> tuple[int, ...]:
    assert launch.schedule is not None
    sizes = launch.schedule.sizes()
    return tuple(sizes[name] for name in names)


def _weights(name: str, *shape: int) -> onnx.TensorProto:
    drawn = np.random.default_rng(len(name)).standard_normal(shape) / np.sqrt(shape[0])
    return numpy_helper.from_array(drawn.astype(np.float16), name)


def _product(rows: int, depth: int, columns: int, epilogue: str) -> onnx.ModelProto:
    nodes = [helper.make_node("MatMul", ["a", "w"], ["c"]), helper.make_node("Add", ["c", "b"], ["d"])]
    inputs = [helper.make_tensor_value_info("a", TensorProto.FLOAT16, (rows, depth))]
    if epilogue == "residual":
        nodes.append(helper.make_node("Add", ["d", "r"], ["y"]))
        inputs.append(helper.make_tensor_value_info("r", TensorProto.FLOAT16, (rows, columns)))
    else:
        nodes.append(helper.make_node({"gelu": "Gelu", "relu": "Relu"}[epilogue], ["d"], ["y"]))
    graph = helper.make_graph(
        nodes, "product", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT16, (rows, columns))],
        [_weights("w", depth, columns), _weights("b", columns)],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


@pytest.mark.parametrize("shape", PRODUCTS, ids=lambda s: "x".join(map(str, s)))
def test_a_product_takes_a_tile_that_was_fast(shape: tuple[int, int, int, str]) -> None:
    (launch,) = _launches(_product(*shape))
    times = dict(zip(WGMMA.values(), PRODUCTS[shape], strict=True))
    found = times[_sizes(launch, "rows", "columns", "buffers")]  # type: ignore[index]
    assert found <= SLOWER * min(times.values())


def test_an_attention_of_many_sentences_keeps_its_scores_in_registers() -> None:
    sentences, tokens, heads, depth = 32, 197, 12, 64
    width = heads * depth
    nodes = [
        *(
            node
            for name in "qkv"
            for node in (
                ("MatMul", f"x w{name}", f"{name}0"),
                ("Reshape", f"{name}0 heads", f"{name}1"),
                ("Transpose", f"{name}1", name, {"perm": [0, 2, 1, 3]}),
            )
        ),
        ("Transpose", "k", "kt", {"perm": [0, 1, 3, 2]}),
        ("Mul", "q scale", "qs"), ("MatMul", "qs kt", "s"), ("Softmax", "s", "p", {"axis": -1}),
        ("MatMul", "p v", "o"), ("Transpose", "o", "t", {"perm": [0, 2, 1, 3]}), ("Reshape", "t flat", "f"),
        ("MatMul", "f wo", "y"),
    ]  # fmt: skip
    drawn = np.random.default_rng(1)
    constants = {
        **{f"w{name}": drawn.standard_normal((width, width)).astype(np.float32) / 28 for name in "qkvo"},
        "heads": np.array([sentences, tokens, heads, depth]),
        "flat": np.array([sentences, tokens, width]),
        "scale": np.float32(0.125),
    }
    _, attention, _ = _launches(model(nodes, {"x": np.zeros((sentences, tokens, width), np.float32)}, "y", constants))
    found = ATTENTION[_sizes(attention, "rows", "columns", "step")]  # type: ignore[index]
    assert found <= SLOWER * min(ATTENTION.values())

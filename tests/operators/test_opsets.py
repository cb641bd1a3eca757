"""Operators as exporters write them at the opsets that changed them, on the device, against onnxruntime."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from smartmem_rules import optimize
from tests.operators.overloads import Array

pytest.importorskip("onnxruntime")
pytest.importorskip("pyopencl")


@dataclass(frozen=True)
class Case:
    """`inputs` are drawn from shapes or given; `constants` (by place) are initializers, as exporters write them."""

    operator: str
    opset: int
    inputs: tuple[tuple[int, ...] | Array | None, ...]
    constants: tuple[int, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1

    def __str__(self) -> str:
        return f"{self.operator}-{self.opset}-{'-'.join(f'{k}={v}' for k, v in self.attributes.items())}"


def of(*values: float, dtype: str = "int64") -> Array:
    return np.array(values, dtype)


REGIONS = np.array([[0, 0, 4, 3], [1, 2, 7, 6]], np.float32)
GRID = np.stack(np.meshgrid(np.linspace(-1.3, 1.2, 4), np.linspace(-1, 1.4, 3)), -1)[None].astype(np.float32)
HALF = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
CASES = [
    Case("Softmax", 12, ((2, 3, 4),), attributes={"axis": 1}),
    Case("Softmax", 13, ((2, 3, 4),), attributes={"axis": 1}),
    Case("Squeeze", 12, ((1, 3, 1),), attributes={"axes": [0, -1]}),
    Case("Squeeze", 13, ((1, 3, 1), of(0, -1)), (1,)),
    Case("ReduceSum", 12, ((2, 3, 4),), attributes={"axes": [-1], "keepdims": 0}),
    Case("ReduceSum", 13, ((2, 3, 4), of(-1)), (1,)),
    Case("ReduceSum", 13, ((2, 3, 4), of()), (1,), {"noop_with_empty_axes": 1}),
    Case("ReduceMean", 17, ((2, 3, 4),), attributes={"axes": [0, 2]}),
    Case("ReduceMean", 18, ((2, 3, 4), of(0, 2)), (1,)),
    Case("Split", 12, ((6, 4),), attributes={"split": [1, 5]}, outputs=2),
    Case("Split", 18, ((7, 4),), attributes={"num_outputs": 3}, outputs=3),
    Case("Split", 13, ((6, 0),), outputs=2),
    Case("Pad", 18, ((3, 4), of(1, 1), None, of(-1)), (1, 3), {"mode": "reflect"}),
    Case("Pad", 11, ((3, 4), of(1, -2, 0, 1), np.float32(2.5)), (1, 2)),
    Case("Clip", 11, ((3, 4), None, np.float32(0.3)), (2,)),
    Case("GroupNormalization", 18, ((2, 6, 3, 3), (3,), (3,)), attributes={"num_groups": 3}),
    Case("GroupNormalization", 21, ((2, 6, 3, 3), (6,), (6,)), attributes={"num_groups": 3}),
    Case("Resize", 13, ((1, 2, 9, 11), None, of(1, 1, 1.7, 1.7, dtype="float32")), (2,),
         {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
    Case("Resize", 11, ((1, 2, 5, 6), of(dtype="float32"), of(dtype="float32"), of(1, 2, 3, 9)), (1, 2, 3), HALF),
    Case("Resize", 18, ((1, 2, 5, 6), None, None, of(7, 9)), (3,), {**HALF, "axes": [2, 3]}),
    Case("ScatterND", 17, ((3, 6, 7), np.stack([of(0) * np.ones((1, 6, 1), int), np.arange(6)[None, :, None],
         np.full((1, 6, 1), 2)], -1), (1, 6, 1)), (1,)),
    Case("GridSample", 16, ((1, 2, 5, 6), GRID), attributes={"mode": "bicubic", "padding_mode": "border"}),
    Case("GridSample", 20, ((1, 2, 5, 6), GRID), attributes={"mode": "cubic", "padding_mode": "reflection"}),
    Case("RoiAlign", 10, ((1, 2, 9, 8), REGIONS, of(0, 0)), (), {"output_height": 2, "sampling_ratio": 2}),
    Case("RoiAlign", 16, ((1, 2, 9, 8), REGIONS, of(0, 0)), (), {"output_width": 3, "sampling_ratio": 2}),
    Case("DequantizeLinear", 13, (of(1, 2, 3, dtype="int32"), of(0.1, dtype="float32"), of(0, dtype="int32")), (1, 2)),
    Case("BatchNormalization", 11, ((2, 3), (3,), (3,), (3,), np.ones(3, np.float32))),
    Case("Dropout", 12, ((3, 4), np.float32(0.5)), (1,)),
    Case("TopK", 11, ((3, 6), of(2)), (1,), {"axis": 0, "largest": 0}, 2),
    Case("Unsqueeze", 13, ((3, 4), of(-1, 1)), (1,)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator_at_its_opset(case: Case) -> None:
    generator = np.random.default_rng(case.opset)
    arrays = [
        generator.standard_normal(given).astype(np.float32) if isinstance(given, tuple) else given
        for given in case.inputs
    ]
    names = [f"i{place}" if array is not None else "" for place, array in enumerate(arrays)]
    results = [f"o{place}" for place in range(case.outputs)]
    given = {n: np.asarray(a) for n, a in zip(names, arrays, strict=True) if a is not None}
    constants = {names[place] for place in case.constants}
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in given.items()
        if name not in constants
    ]
    weights = [onnx.numpy_helper.from_array(given[name], name) for name in sorted(constants)]
    node = helper.make_node(case.operator, names, results, **case.attributes)
    graph = helper.make_graph([node], "one", inputs, [onnx.ValueInfoProto(name=name) for name in results], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=8)
    feeds = {value.name: given[value.name] for value in inputs}
    outputs = optimize(model).run(feeds)
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for name, wanted in zip(results, session.run(results, feeds), strict=True):
        assert outputs[name].shape == wanted.shape
        assert outputs[name].dtype == wanted.dtype
        np.testing.assert_allclose(outputs[name], wanted, rtol=1e-4, atol=1e-5)

"""Definitions against onnxruntime on random operands, where the published node tests do not look.

Every overload that accepts the operands must agree.  A failure prints the model and the seed of its operands.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.operators.overloads import Array, run_node

pytestmark = pytest.mark.sampled(8)

onnxruntime = pytest.importorskip("onnxruntime")

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """An operator call.  Operands are shapes (drawn float32), arrays, or None for an absent one."""

    operator: str
    operands: Sequence[Shape | Array | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    opset: int = 17

    def __str__(self) -> str:
        given = ",".join(f"{k}={v}" for k, v in self.attributes.items())
        shapes = ",".join(str(getattr(o, "shape", o)).replace(" ", "") for o in self.operands)
        return f"{self.operator}-{self.opset}({shapes};{given})"


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


def integers(shape: Shape, low: int, high: int, dtype: str = "int64") -> Array:
    values = np.random.default_rng(7).integers(low, high, shape).astype(dtype)
    return np.where(values == 0, np.asarray(3, dtype), values)


X2 = (2, 4, 9, 11)
SAME = ("SAME_UPPER", "SAME_LOWER", "VALID")
WINDOW = {"kernel_shape": [3, 2], "strides": [2, 3]}

CONVOLUTIONS = [
    Case("Conv", [X2, (6, 4, 3, 3), (6,)], {"pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [1, 2]}),
    Case("Conv", [X2, (6, 2, 3, 2)], {"group": 2}),
    Case("Conv", [X2, (4, 1, 3, 3), (4,)], {"group": 4, "pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}),
    Case("Conv", [(2, 3, 17), (5, 3, 4)], {"pads": [2, 1], "strides": [3]}),
    Case("Conv", [(1, 2, 5, 6, 7), (3, 2, 2, 3, 1)], {"pads": [0, 1, 0, 1, 1, 0]}),
    *(Case("Conv", [X2, (6, 4, 4, 3)], {"auto_pad": pad, "strides": [2, 3]}) for pad in SAME),
    Case(
        "ConvTranspose", [X2, (4, 3, 3, 3), (3,)], {"pads": [1, 0, 0, 1], "strides": [2, 3], "output_padding": [1, 2]}
    ),
    Case("ConvTranspose", [X2, (4, 3, 3, 2), (6,)], {"group": 2, "dilations": [2, 1]}),
    Case("ConvTranspose", [(2, 4, 9), (4, 2, 5)], {"strides": [3], "pads": [2, 1]}),
    Case("ConvTranspose", [X2, (4, 3, 3, 3)], {"strides": [2, 2], "output_shape": [18, 22]}),
    Case("ConvTranspose", [X2, (4, 3, 3, 3)], {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    Case("ConvTranspose", [X2, (4, 3, 4, 4)], {"strides": [1, 1], "auto_pad": "SAME_LOWER"}),
]
POOLS = [
    *(
        Case(operator, [X2], WINDOW | {"pads": [1, 0, 1, 1], "ceil_mode": ceil}, opset=opset)
        for operator, opset in (("MaxPool", 17), ("AveragePool", 17), ("LpPool", 18))
        for ceil in (0, 1)
    ),
    *(Case(operator, [X2], WINDOW | {"auto_pad": pad}) for operator in ("MaxPool", "AveragePool") for pad in SAME),
    Case("MaxPool", [X2], WINDOW | {"dilations": [2, 1]}),
    Case("MaxPool", [X2], WINDOW | {"pads": [1, 1, 0, 0]}, outputs=2),
    Case("MaxPool", [X2], WINDOW | {"storage_order": 1}, outputs=2),
    Case("MaxPool", [(1, 2, 13)], {"kernel_shape": [4], "strides": [3], "ceil_mode": 1}),
    Case("MaxPool", [integers((1, 2, 8, 8), -90, -3, "int8")], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    Case("AveragePool", [(1, 2, 1)], {"kernel_shape": [2], "dilations": [3], "pads": [1, 0], "strides": [3]}, opset=19),
    Case("AveragePool", [X2], WINDOW | {"pads": [1, 1, 0, 1], "count_include_pad": 1}),
    Case("AveragePool", [X2], WINDOW | {"pads": [1, 1, 1, 1], "count_include_pad": 1, "ceil_mode": 1}, opset=19),
    Case("AveragePool", [(1, 2, 5, 6, 7)], {"kernel_shape": [2, 3, 2], "pads": [1, 1, 0, 0, 1, 1]}),
    Case("AveragePool", [X2], WINDOW | {"dilations": [2, 3], "pads": [1, 1, 1, 1]}, opset=19),
    # a window that is larger than its input: one result where it reaches over by less than a stride, else none
    *(
        Case(operator, [(5, 2, 1, 7)], {"kernel_shape": [size, 3], "strides": [3, 2]}, opset=18)
        for operator in ("MaxPool", "AveragePool", "LpPool")
        for size in (2, 4)
    ),
    Case("GlobalAveragePool", [(2, 3, 4, 5, 6)]),
    Case("GlobalMaxPool", [(2, 3, 7)]),
    Case("GlobalLpPool", [(2, 3, 4, 5)], {"p": 3}),
]
REDUCTIONS = [
    *(
        Case(f"Reduce{kind}", [(3, 4, 5)], {"axes": [-1, 0], "keepdims": keep}, opset=11)
        for kind in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp")
        for keep in (0, 1)
    ),
    Case("ReduceMean", [(3, 4, 5)], {"keepdims": 0}, opset=17),
    Case("ReduceSum", [(3, 4, 5), ints(1)], {"keepdims": 0}, opset=13),
    Case("ReduceSum", [(3, 4, 5)], {"noop_with_empty_axes": 1}, opset=13),
    Case("ReduceMax", [(3, 4, 5), ints(-2)], opset=18),
    Case("ReduceMean", [integers((4, 6), -50, 50, "int32")], {"axes": [1]}, opset=13),
    Case("ReduceLogSumExp", [1e3 * np.random.default_rng(1).random((4, 5), np.float32), ints(1)], opset=18),
    *(
        Case(operator, [(2, 3, 4, 5)], {"axis": axis}, opset=opset)
        for operator in ("Softmax", "LogSoftmax", "Hardmax")
        for axis in (1, -1)
        for opset in (11, 13)
    ),
    Case("Softmax", [(2, 3, 4)], opset=11),
    *(
        Case(operator, [integers((5, 6), 1, 4, "int32")], {"axis": 1, "keepdims": keep, "select_last_index": last})
        for operator in ("ArgMax", "ArgMin")
        for keep in (0, 1)
        for last in (0, 1)
    ),
    *(
        Case("CumSum", [(3, 5), np.array(1)], {"exclusive": exclusive, "reverse": reverse})
        for exclusive in (0, 1)
        for reverse in (0, 1)
    ),
    Case("LpNormalization", [(3, 4, 5)], {"axis": 1, "p": 1}),
    Case("LpNormalization", [(3, 4, 5)], {"p": 2}),
]
NORMALIZATIONS = [
    Case("BatchNormalization", [X2, (4,), (4,), (4,), np.random.default_rng(2).random(4, np.float32)], opset=9),
    Case("BatchNormalization", [(5, 4), (4,), (4,), (4,), np.random.default_rng(2).random(4, np.float32)]),
    Case("LayerNormalization", [X2, (4, 9, 11), (4, 9, 11)], {"axis": 1, "epsilon": 0.01}),
    Case("LayerNormalization", [X2, (11,)], outputs=3),
    Case("LayerNormalization", [1e3 + np.random.default_rng(3).random((3, 64), np.float32), (64,), (64,)]),
    Case("InstanceNormalization", [(2, 3, 17), (3,), (3,)]),
    Case("InstanceNormalization", [(2, 3, 4, 5), (3,), (3,)], {"epsilon": 0.1}),
    Case("GroupNormalization", [X2, (4,), (4,)], {"num_groups": 2}, opset=21),
    Case("LRN", [(2, 7, 3, 4)], {"size": 5, "alpha": 0.5, "beta": 0.6, "bias": 2.0}),
    Case("MeanVarianceNormalization", [(2, 3, 4, 5)], {"axes": [0, 3]}),
]
CONTRACTIONS = [
    Case("MatMul", [(3,), (3,)]),
    Case("MatMul", [(3,), (2, 3, 4)]),
    Case("MatMul", [(2, 5, 3), (3,)]),
    Case("MatMul", [(6, 1, 5, 3), (2, 3, 4)]),
    *(Case("Gemm", [(3, 5), (5, 4), c], {"alpha": 0.5, "beta": 2.0}) for c in ((4,), (3, 1), (1, 4), (3, 4), (), (1,))),
    Case("Gemm", [(5, 3), (4, 5), (4,)], {"transA": 1, "transB": 1}),
    Case("Gemm", [(3, 5), (5, 4)], {"alpha": 3.0}),
    Case(
        "MatMulInteger",
        [
            integers((3, 5), 0, 255, "uint8"),
            integers((5, 4), -100, 100, "int8"),
            np.array(7, np.uint8),
            np.array(-3, np.int8),
        ],
    ),
    Case(
        "ConvInteger",
        [integers((1, 2, 6, 6), 0, 255, "uint8"), integers((3, 2, 3, 3), 0, 255, "uint8"), np.array(9, np.uint8)],
        {"pads": [1, 1, 1, 1]},
    ),
]
VIEWS = [
    Case("Reshape", [(2, 3, 4), ints(0, -1, 2)]),
    Case("Reshape", [(0, 3), ints(3, 0)], {"allowzero": 1}),
    Case("Flatten", [(2, 3, 4)], {"axis": 3}),
    Case("Flatten", [(2, 3, 4)], {"axis": -2}),
    Case("Squeeze", [(1, 3, 1, 4)]),
    Case("Squeeze", [(1, 3, 1, 4)], {"axes": [-2]}, opset=11),
    Case("Unsqueeze", [(3, 4), ints(-1, 0, 2)]),
    Case("Transpose", [(2, 3, 4)]),
    Case("Slice", [(9, 7), ints(7, -1), ints(-(2**63) + 1, -(2**31)), ints(0, 1), ints(-3, -2)]),
    Case("Slice", [(9, 7, 3), ints(-100, 2), ints(2**63 - 1, -1), ints(-3, 1), ints(2, 3)]),
    Case("Slice", [(9, 7), ints(5, 1), ints(2, 100)]),
    *(Case("Split", [(6, 7)], outputs=3, opset=opset) for opset in (11, 13)),
    Case("Split", [(6, 7)], {"axis": 1, "split": [4, 1, 2]}, outputs=3, opset=11),
    Case("Split", [(6, 7)], {"axis": -1, "num_outputs": 3}, outputs=3, opset=18),
    Case("Expand", [(3, 1), ints(2, 1, 4)]),
    Case("Tile", [(2, 3), ints(3, 2)]),
    *(Case("DepthToSpace", [(2, 12, 2, 3)], {"blocksize": 2, "mode": mode}) for mode in ("DCR", "CRD")),
    Case("SpaceToDepth", [(2, 3, 4, 6)], {"blocksize": 2}),
    Case("Gather", [(4, 5, 6), np.array([[0, -1, 3], [2, -5, 1]])], {"axis": 1}),
    Case("Gather", [(4, 5, 6), np.array(-2)], {"axis": -1}),
    Case("Trilu", [(2, 4, 5), np.array(-1)], {"upper": 0}),
]
DATA = [
    Case("Concat", [(2, 3), (2, 1), (2, 4)], {"axis": -1}),
    *(Case("Pad", [(4, 5), ints(1, 2, 3, 1)], {"mode": mode}) for mode in ("constant", "edge", "reflect")),
    Case("Pad", [(4, 5), ints(-1, 2, 1, -2), floats(2.5)[0]]),
    Case("Pad", [(4, 5), ints(7, 6), floats(1.5)[0], ints(-1)], opset=18),
    Case("Pad", [(4, 5), ints(9, 2, 3, 11)], {"mode": "wrap"}, opset=19),
    *(Case("Pad", [(6, 7), ints(-2, 2, 3, -3)], {"mode": mode}, opset=19) for mode in ("wrap", "edge", "reflect")),
    Case("GatherElements", [(4, 5), integers((4, 3), -5, 5)], {"axis": 1}),
    Case("GatherND", [(3, 4, 5), integers((3, 2, 1), -4, 4)], {"batch_dims": 1}),
    Case("ScatterElements", [(4, 5), np.array([[0, -2], [1, 2]]), (2, 2)], {"axis": 1}),
    Case("ScatterND", [(4, 5), np.array([[0], [-1]]), (2, 5)]),
    *(
        Case("ScatterND", [(4, 5), np.array([[0, 1], [2, 3], [0, 1]]), (3,)], {"reduction": kind}, opset=18)
        for kind in ("add", "mul", "max", "min")
    ),
    *(
        Case("ScatterElements", [(4, 5), np.array([[0, 0], [1, 2]]), (2, 2)], {"axis": 1, "reduction": kind}, opset=18)
        for kind in ("add", "mul", "max", "min")
    ),
    Case("OneHot", [integers((2, 3), -6, 6), np.array(5), floats(-1, 2)], {"axis": 1}),
    Case("ReverseSequence", [(6, 3, 2), ints(2, 6, 1)], {"batch_axis": 1, "time_axis": 0}),
    Case("EyeLike", [(3, 5)], {"k": -1, "dtype": 7}),
    Case("Shape", [(3, 5, 2)], {"start": -2}),
    *(
        Case(
            "Resize",
            [(1, 2, 5, 6), None, None, ints(1, 2, *size)],
            {"mode": mode, "coordinate_transformation_mode": transformation, "nearest_mode": nearest},
        )
        for size in ((10, 18), (8, 4))
        for transformation in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
        for mode, nearest in (
            ("nearest", "floor"),
            ("nearest", "round_prefer_ceil"),
            ("linear", "floor"),
            ("cubic", "floor"),
        )
    ),
    *(
        Case(
            "Resize",
            [shape, None, None, ints(1, 1, *size)],
            {"mode": mode, "coordinate_transformation_mode": "pytorch_half_pixel", "antialias": antialias},
            opset=18,
        )
        for mode in ("linear", "cubic")
        for antialias in (0, 1)
        for shape, size in (((1, 1, 5, 7), (1, 9)), ((1, 1, 1, 2), (6, 1)))
    ),
    Case("Resize", [(1, 2, 5, 6), None, floats(1, 1, 2, 2)], {"mode": "nearest", "nearest_mode": "floor"}),
    Case("Resize", [(1, 2, 5, 6), None, floats(1, 1, 0.6, 1.7)], {"mode": "linear"}),
    Case("Resize", [(1, 2, 9, 8), None, floats(1, 1, 0.4, 0.5)], {"mode": "cubic", "exclude_outside": 1}),
    Case("Resize", [(1, 2, 9, 8), None, floats(1, 1, 0.4, 0.5)], {"mode": "linear", "antialias": 1}, opset=18),
    Case("Upsample", [(1, 2, 3, 4), floats(1, 1, 2, 3)], {"mode": "nearest"}, opset=9),
    Case("Upsample", [(1, 2, 3, 4), floats(1, 1, 2, 3)], {"mode": "linear"}, opset=9),
]
ELEMENTWISE = [
    Case("Clip", [(3, 4)], {"min": -0.5}, opset=7),
    Case("Clip", [(3, 4), None, floats(0.25)[0]]),
    Case("Clip", [integers((3, 4), -9, 9, "int32"), np.array(-2, np.int32), np.array(5, np.int32)]),
    Case("Dropout", [(3, 4)], {"ratio": 0.3}, opset=10),
    Case("Div", [integers((40,), -9, 9, "int32"), integers((5, 1), -4, 4, "int32")]),
    Case("Div", [integers((40,), -9, 9), integers((40,), -4, 4)]),
    *(Case("Mod", [integers((40,), -9, 9), integers((5, 1), -4, 4)], {"fmod": fmod}) for fmod in (0, 1)),
    Case("Pow", [integers((6,), 1, 5, "int32"), floats(0.5, 2, 3, 1, 0, 2.5)]),
    Case("Pow", [np.random.default_rng(4).random(6, np.float32), integers((6,), -3, 4, "int32")]),
    Case("Where", [np.array([[True], [False]]), (3,), (2, 3)]),
    Case("PRelu", [(2, 3, 4), (3, 1)]),
    Case("Cast", [10 * np.random.default_rng(5).standard_normal(9).astype(np.float32)], {"to": 6}),
    Case("Cast", [floats(0, -0.25, 3)], {"to": 9}),
    Case("Gelu", [(3, 4)], {"approximate": "tanh"}, opset=20),
    Case("IsInf", [floats(np.inf, -np.inf, 1, np.nan)], {"detect_negative": 0}),
    Case("Round", [floats(-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.6)]),
    Case("Softplus", [floats(-200, -1, 0, 1, 200)]),
    Case("Sum", [(3, 1), (4,), (2, 1, 1)]),
    Case("Mean", [(3, 1), (4,), (2, 1, 1)]),
    Case("Max", [(3, 1), (4,), (2, 1, 1)]),
]
ALL = [
    *CONVOLUTIONS, *POOLS, *REDUCTIONS, *NORMALIZATIONS, *CONTRACTIONS, *VIEWS, *DATA, *ELEMENTWISE,
]  # fmt: skip


def draw(case: Case) -> tuple[int, list[Array | None]]:
    seed = zlib.crc32(str(case).encode())
    rng = np.random.default_rng(seed)
    operands: list[Array | None] = []
    for operand in case.operands:
        if isinstance(operand, tuple):
            operands.append(np.asarray(rng.standard_normal(operand), np.float32))
        else:
            operands.append(None if operand is None else np.asarray(operand))
    return seed, operands


def model_of(case: Case, operands: Sequence[Array | None]) -> onnx.ModelProto:
    names = [f"i{place}" if array is not None else "" for place, array in enumerate(operands)]
    outputs = [f"o{place}" for place in range(case.outputs)]
    node = helper.make_node(case.operator, names, outputs, **case.attributes)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, operands, strict=True)
        if array is not None
    ]
    graph = helper.make_graph([node], case.operator, inputs, [onnx.ValueInfoProto(name=name) for name in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=8)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_overloads_agree_with_onnxruntime(case: Case) -> None:
    seed, operands = draw(case)
    model = model_of(case, operands)
    print(f"operands: default_rng({seed})\n{onnx.printer.to_text(model)}")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    expected = session.run(None, {f"i{place}": array for place, array in enumerate(operands) if array is not None})
    for run in run_node(model.graph.node[0], case.opset, operands):
        for actual, wanted in zip(run.outputs, expected, strict=True):
            assert actual.dtype == wanted.dtype, run
            assert actual.shape == wanted.shape, run
            np.testing.assert_allclose(actual, wanted, rtol=2e-5, atol=2e-5, err_msg=str(run))

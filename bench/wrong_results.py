"""Wrong results of current engines and simplifiers, each as its smallest model: computed again, and as a document.

    python bench/wrong_results.py                             each finding with what is expected and what comes out
    python bench/wrong_results.py --write docs/hunting.md     ... into the document, between its marks

`smartmem fuzz --against` found them, or scans like it. What is expected stands here twice: by the operator's definition
in double precision or exact integers, written out, and by ONNX's reference evaluator; the two must agree, or the script
ends with 1. A finding of a system that is not installed is passed over and said so. Needs `smartmem-rules[hunt]`.
"""

from __future__ import annotations

import argparse
import math
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.fuzzing.systems import SYSTEMS, SystemRefuses, missing, run_by

Feeds = Mapping[str, Array]
NodeText = tuple[str, Sequence[str], Sequence[str], Mapping[str, Any]]
TOLERANCE = 1e-5
"""Relative to the expected value: a hundred times the rounding of these few operations in single precision."""


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """One wrong result.

    Attributes:
        nodes: operator, operands, outputs, attributes.
        outputs: the model's, by default the last node's first.
        expected: the outputs by the operators' definitions.
        law: which sentence of ONNX decides.
        cause: what most likely happens.
        evaluator_errs: why ONNX's evaluator is not asked.
    """

    system: str
    title: str
    nodes: Sequence[NodeText]
    feeds: Feeds
    expected: Callable[[Feeds], Mapping[str, Any]]
    law: str
    cause: str
    constants: Feeds = field(default_factory=dict)
    opset: int = 21
    evaluator_errs: str = ""

    def model(self) -> onnx.ModelProto:
        """The model, checked by ONNX."""
        nodes = [helper.make_node(op, list(i), list(o), **a) for op, i, o, a in self.nodes]
        inputs = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in self.feeds.items()
        ]
        outputs = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), [None] * a.ndim)
            for n, a in self.wanted().items()
        ]
        constants = [numpy_helper.from_array(a, n) for n, a in self.constants.items()]
        graph = helper.make_graph(nodes, "smallest", inputs, outputs, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        onnx.checker.check_model(model, full_check=True)
        return model

    def wanted(self) -> dict[str, Array]:
        """The outputs by definition."""
        return {name: np.asarray(value) for name, value in self.expected({**self.feeds, **self.constants}).items()}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a finding gives today."""

    wrong: Wrong
    returned: Mapping[str, Array] | None
    reason: str = ""

    @property
    def still(self) -> bool:
        return self.returned is not None and not same(self.returned, self.wanted)

    @property
    def wanted(self) -> Mapping[str, Array]:
        return self.wrong.wanted()


def same(got: Feeds, wanted: Feeds) -> bool:
    """Whether outputs are equal but for rounding."""
    for name, value in wanted.items():
        if got[name].shape != value.shape:
            return False
        close = np.isclose(got[name].astype(np.float64), value.astype(np.float64), rtol=TOLERANCE, atol=TOLERANCE)
        if not close.all():
            return False
    return True


def f32(values: object) -> Array:
    return np.asarray(values, np.float32)


def truncated(numerator: Array, denominator: Array) -> Array:
    """Integer division as ONNX has it: towards zero."""
    exact = [math.trunc(int(n) / int(d)) for n, d in zip(numerator, denominator, strict=True)]
    return np.asarray(exact, numerator.dtype)


def one_over_times(feeds: Feeds) -> dict[str, Array]:
    return {"z": truncated(np.ones_like(feeds["x"]), feeds["x"]) * feeds["y"]}


def shifted(feeds: Feeds) -> dict[str, Array]:
    pairs = zip(feeds["x"], feeds["s"], strict=True)
    return {"y": np.asarray([(int(x) << int(s)) % 256 for x, s in pairs], np.uint8)}


def half_spectrum(feeds: Feeds) -> dict[str, Array]:
    signal = [float(v) for v in feeds["x"].reshape(-1)]
    count, rows = len(signal), []
    for k in range(count // 2 + 1):
        angles = [2 * math.pi * k * n / count for n in range(count)]
        rows.append(
            [
                sum(v * math.cos(a) for v, a in zip(signal, angles, strict=True)),
                -sum(v * math.sin(a) for v, a in zip(signal, angles, strict=True)),
            ]
        )
    return {"y": f32([rows])}


def ordered(feeds: Feeds) -> dict[str, Array]:
    """Largest first, of equals the one with the lower index."""
    row = [float(v) for v in feeds["x"][0]]
    order = sorted(range(len(row)), key=lambda place: (-row[place], place))
    return {"values": f32([[row[p] for p in order]]), "indices": np.asarray([order], np.int64)}


def quantized_maximum(feeds: Feeds) -> dict[str, Array]:
    maximum = float(feeds["x"].max())
    return {"y": np.asarray([[round(maximum / float(feeds["scale"])) + int(feeds["zero"])]], np.int8)}


FINDINGS: Sequence[Wrong] = (
    Wrong(
        system="onnxruntime",
        title="1 / x * y of integers becomes y / x",
        nodes=[("Div", ["one", "x"], ["t"], {}), ("Mul", ["t", "y"], ["z"], {})],
        feeds={"x": np.asarray([2, 3, -7], np.int32), "y": np.asarray([6, 9, 21], np.int32)},
        constants={"one": np.asarray(1, np.int32)},
        expected=one_over_times,
        law="`Div` of integers truncates: 1 / 2 is 0, and 0 * 6 is 0.",
        cause="the fusion of `Div` and `Mul` into one `Div` holds for reals; it is applied to int32 and int64 as well",
    ),
    Wrong(
        system="openvino",
        title="ReduceL1 of opsets 13 to 17 reduces all axes",
        nodes=[("ReduceL1", ["x"], ["y"], {"axes": [0]})],
        feeds={"x": f32([[1, 2, 3], [4, 5, 6]])},
        expected=lambda feeds: {"y": f32([[sum(abs(float(v)) for v in column) for column in feeds["x"].T]])},
        law="`ReduceL1` has `axes` as an attribute up to opset 17: only these axes are reduced.",
        cause="the attribute is not read (of the reductions, only `ReduceSum` has `axes` as an input since opset 13); "
        "`ReduceLogSum` and `ReduceLogSumExp` likewise",
        opset=13,
    ),
    Wrong(
        system="openvino",
        title="ReduceLogSum over no axes takes no logarithm",
        nodes=[("ReduceLogSum", ["x"], ["y"], {"noop_with_empty_axes": 1})],
        feeds={"x": f32([5, 3])},
        expected=lambda feeds: {"y": f32([math.log(float(v)) for v in feeds["x"]])},
        law="`noop_with_empty_axes`: \"ReduceLogSum returns the Log of input tensor\".",
        cause="the operator is taken for the identity; `ReduceL1` and `ReduceL2` likewise, -5 stays -5",
    ),
    Wrong(
        system="openvino",
        title="BitShift to the left saturates",
        nodes=[("BitShift", ["x", "s"], ["y"], {"direction": "LEFT"})],
        feeds={"x": np.asarray([5, 3], np.uint8), "s": np.asarray([6, 1], np.uint8)},
        expected=shifted,
        law="bits move to the left in the element type: 00000101 by 6 is 01000000.",
        cause="it is computed in 32 bits and converted back with saturation",
    ),
    Wrong(
        system="openvino",
        title="DFT of a real signal has an axis too many",
        nodes=[("DFT", ["x"], ["y"], {"onesided": 1})],
        feeds={"x": f32([[[0], [1], [2], [3]]])},
        expected=half_spectrum,
        law="the last axis, of extent 1 for real signals, becomes the pair of real and imaginary part: [1, 3, 2].",
        cause="the axis of extent 1 stays, and the pair is appended",
        opset=17,
    ),
    Wrong(
        system="openvino",
        title="MaxPool with ceil_mode gives the lowest float",
        nodes=[("MaxPool", ["x"], ["y"], {"kernel_shape": [1], "strides": [3], "ceil_mode": 1})],
        feeds={"x": f32([[[1, 2]]])},
        expected=lambda feeds: {"y": f32([[[feeds["x"][0, 0, 0]]]])},
        law='"Sliding windows that would start in the right padded region are ignored": one window.',
        cause="the window behind the end is kept, holds no element, and its maximum is the start of the search",
        opset=22,
    ),
    Wrong(
        system="openvino",
        title="Gemm of integers forgets the fraction of alpha",
        nodes=[("Gemm", ["a", "b"], ["y"], {"alpha": 0.5})],
        feeds={"a": np.asarray([[4]], np.int32), "b": np.asarray([[6]], np.int32)},
        expected=lambda feeds: {"y": np.asarray([[int(feeds["a"][0, 0]) * int(feeds["b"][0, 0]) // 2]], np.int32)},
        law="Y = alpha * A * B, with alpha a float: half of 24.",
        cause="alpha is converted to the element type of the operands, and 0.5 becomes 0",
        opset=13,
    ),
    Wrong(
        system="openvino",
        title="Sub of int8 is one less where the lowest number is subtracted",
        nodes=[("Sub", ["x", "y"], ["z"], {})],
        feeds={"x": np.asarray([-8, -128], np.int8), "y": np.asarray([-128, -128], np.int8)},
        expected=lambda feeds: {
            "z": np.asarray([int(x) - int(y) for x, y in zip(feeds["x"], feeds["y"], strict=True)], np.int8)
        },
        law="-8 - (-128) is 120 and -128 - (-128) is 0; both are numbers of int8.",
        cause="x - y becomes x + (-y), and -(-128), which int8 has not, saturates at 127",
    ),
    Wrong(
        system="openvino",
        title="LpPool with ceil_mode counts what is not there",
        nodes=[("LpPool", ["x"], ["y"], {"kernel_shape": [2], "strides": [2], "ceil_mode": 1, "p": 1})],
        feeds={"x": f32([[[1, 2, 4]]])},
        expected=lambda feeds: {"y": f32([[[feeds["x"][0, 0, 0] + feeds["x"][0, 0, 1], feeds["x"][0, 0, 2]]]])},
        law="the 1-norm of a window is the sum of its magnitudes: 1 + 2, and 4, beside which there is nothing.",
        cause="the norm is computed as the average times the size of the window, also where it reaches beyond the end",
        evaluator_errs="gives 8 as well; ONNX Runtime gives 4",
    ),
    Wrong(
        system="openvino",
        title="TopK orders equal values by falling indices",
        nodes=[("TopK", ["x", "k"], ["values", "indices"], {})],
        feeds={"x": f32([[-2.5, 0.5, -0.5, -3, -3, 0, 0]])},
        constants={"k": np.asarray([7])},
        expected=ordered,
        law='"Given two equivalent values, [...] the element with the lower index will appear first."',
        cause="the sort is not stable where all elements are asked for",
    ),
    Wrong(
        system="openvino",
        title="a maximum that is quantized is the zero point",
        nodes=[
            ("ReduceMax", ["x", "axes"], ["t"], {}),
            ("QuantizeLinear", ["t", "scale", "zero"], ["y"], {}),
        ],
        feeds={"x": f32([[0.1, 0.3]])},
        constants={
            "axes": np.asarray([1]),
            "scale": np.asarray(0.05, np.float32),
            "zero": np.asarray(4, np.int8),
        },
        expected=quantized_maximum,
        law="y = saturate(round(x / scale) + zero): round(6.0) + 4 = 10.",
        cause="the quantization becomes a step of the reduction's kernel, and wrong there; `GlobalMaxPool` likewise",
    ),
)  # fmt: skip


def outcome(wrong: Wrong) -> Outcome:
    """The finding on this computer."""
    absent = missing(wrong.system)
    if absent:
        return Outcome(wrong=wrong, returned=None, reason=absent)
    try:
        return Outcome(wrong=wrong, returned=run_by(wrong.system, wrong.model(), wrong.feeds))
    except SystemRefuses as refusal:
        return Outcome(wrong=wrong, returned=None, reason=str(refusal))


def evaluator_disagrees(wrong: Wrong) -> str:
    """What ONNX's evaluator says, where it is not what the definition says."""
    if wrong.evaluator_errs:
        return ""
    values = ReferenceEvaluator(wrong.model()).run(None, dict(wrong.feeds))
    got = dict(zip(wrong.wanted(), map(np.asarray, values), strict=True))
    return "" if same(got, wrong.wanted()) else shown(got)


def shown(arrays: Feeds) -> str:
    """Arrays in a few characters."""
    return "; ".join(f"{name} = {np.array2string(a, separator=', ', precision=6)}" for name, a in arrays.items())


def flat(text: str) -> str:
    return " ".join(text.split())


def chapter(number: int, one: Outcome) -> Iterator[str]:
    """A finding for the document."""
    wrong = one.wrong
    version = SYSTEMS[wrong.system].version
    yield f"### {number}. {wrong.system} {version}: {wrong.title}\n"
    yield "```"
    yield f"opset {wrong.opset}"
    for op, operands, outputs, attributes in wrong.nodes:
        given = ", ".join(f"{name} = {value}" for name, value in attributes.items())
        yield f"{', '.join(outputs)} = {op}({', '.join(operands)}{'; ' + given if given else ''})"
    for name, array in {**wrong.feeds, **wrong.constants}.items():
        kind = f"{'constant' if name in wrong.constants else 'input'}, {array.dtype.name} {list(array.shape)}"
        yield f"{name} = {flat(np.array2string(array, separator=', '))}   {kind}"
    yield f"expected  {flat(shown(one.wanted))}"
    yield f"returned  {flat(shown(one.returned or {}))}"
    yield "```\n"
    said = f" ONNX's evaluator {wrong.evaluator_errs}." if wrong.evaluator_errs else ""
    law = f"{wrong.law[0].upper()}{wrong.law[1:]}"
    yield textwrap.fill(f"{law} Cause, as far as seen from outside: {wrong.cause}.{said}", 118)
    yield ""


def main() -> int:
    parser = argparse.ArgumentParser(description="wrong results of others, computed again")
    parser.add_argument("--write", type=Path, help="put the findings into a document, between its marks")
    arguments = parser.parse_args()
    failed = 0
    lines: list[str] = []
    for number, wrong in enumerate(FINDINGS, 1):
        own = evaluator_disagrees(wrong)
        if own:
            failed += 1
            print(f"{wrong.title}: ONNX's evaluator says {own}, not {shown(wrong.wanted())}")
        one = outcome(wrong)
        if one.returned is None:
            state = f"not computed: {one.reason}"
        elif one.still:
            state = f"wrong: {flat(shown(one.returned))}, not {flat(shown(one.wanted))}"
        else:
            state = "mended"
        print(f"{number}. {wrong.system}, {wrong.title}: {state}")
        if one.still:
            lines += chapter(number, one)
    if arguments.write:
        from markdown_tables import replace_table  # it lies beside this script; tests import this one from elsewhere

        replace_table(arguments.write, "wrong results", "\n".join(lines))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

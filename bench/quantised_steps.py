"""Each quantizer of a QDQ model by itself: who rounds what ONNX's definition rounds, and how often others differ.

`python bench/quantised_steps.py bert_base vit_base` takes the models of `bench/quantised_models.py` apart: what stands
between two quantizers gets the integers that ONNX Runtime without its optimizer computes there, so that no difference
is carried on. Ours, ONNX Runtime with and without its optimizer, and double precision (each operator by the judge of
the fuzzer) answer with integers. Printed are, for the operators whose outputs are quantized, the elements, how many of
them in a million are not the integer of double precision, and how many of ours are not those of ONNX Runtime; then the
largest differences in steps. The last rows are the outputs of whole models, in which differences spread.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from markdown_tables import markdown
from onnx import helper, numpy_helper
from quantised_models import drawn, quantized

import smartmem_rules
from smartmem_rules.fuzzing.expected.node_runner import NodeRunner

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = dict[str, Array]
GIVEN = "given."
"""What stands before the name of integers that a part of a model is given."""
OFF = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
ALL = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL


@dataclass
class Counts:
    """Elements behind quantizers of one operator: how many there are, and how many differ."""

    elements: int = 0
    differ: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    steps: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))

    def add(self, arrays: dict[str, Array]) -> None:
        """One tensor by all systems."""
        self.elements += arrays["double"].size
        for left, right in PAIRS:
            apart = np.abs(arrays[left].astype(np.int64) - arrays[right])
            self.differ[left, right] += int(np.count_nonzero(apart))
            self.steps[left, right] = max(self.steps[left, right], int(apart.max(initial=0)))


PAIRS = (("ours", "double"), ("without", "double"), ("with", "double"), ("ours", "without"), ("ours", "with"))


def with_outputs(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with what its quantizers give as further outputs."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    zeros = {one.name: one.data_type for one in model.graph.initializer}
    for node in quantizers(model):
        found.graph.output.append(helper.make_tensor_value_info(node.output[0], zeros[node.input[2]], None))
    return found


def quantizers(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [node for node in model.graph.node if node.op_type == "QuantizeLinear"]


def apart(model: onnx.ModelProto, integers: Arrays) -> onnx.ModelProto:
    """The model in parts, each of which is given the integers that it begins with, and gives those at its end."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    names = {node.output[0] for node in quantizers(model)}
    read = set()
    for node in found.graph.node:
        for place, name in enumerate(node.input):
            if name in names:
                node.input[place] = f"{GIVEN}{name}"
                read.add(name)
    del found.graph.output[:]
    for name in sorted(names):
        kind = helper.np_dtype_to_tensor_dtype(integers[name].dtype)
        found.graph.output.append(helper.make_tensor_value_info(name, kind, integers[name].shape))
        if name in read:
            found.graph.input.append(helper.make_tensor_value_info(f"{GIVEN}{name}", kind, integers[name].shape))
    return found


def onnxruntime_of(model: onnx.ModelProto, level: Any, feeds: Arrays) -> Arrays:
    """What ONNX Runtime computes."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    given = {value.name: feeds[value.name] for value in session.get_inputs()}
    return dict(zip(names, session.run(None, given), strict=True))


def ours_of(model: onnx.ModelProto, feeds: Arrays, folder: Path) -> Arrays:
    """What our plan computes."""
    path = folder / "model.onnx"
    onnx.save(model, str(path))
    plan = smartmem_rules.optimize(path, device="pocl")
    return dict(plan.run({value.name: feeds[value.name] for value in model.graph.input}))


def precise(model: onnx.ModelProto, feeds: Arrays) -> Arrays:
    """The model in double precision, node by node; quantizers round to the nearest integer, ties to the even one."""
    values = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer} | feeds
    fixed = {name: value for name, value in values.items() if value.dtype.kind in "iu" and name not in feeds}
    for node in model.graph.node:
        operands = [values[name] if name else None for name in node.input]
        match node.op_type:
            case "QuantizeLinear":
                found = [_quantized(node, operands)]
            case "DequantizeLinear":
                found = [_dequantized(node, operands)]
            case _:
                held = {name: fixed[name] for name in node.input if name in fixed}
                found = NodeRunner(node, model.opset_import, held).precise(operands)
        values.update(zip(node.output, found, strict=False))
    return values


def _quantized(node: onnx.NodeProto, operands: list[Array | None]) -> Array:
    x, scale, zero = (np.asarray(one) for one in operands)
    limits = np.iinfo(zero.dtype)
    if scale.size != 1:
        raise SystemExit(f"{node.name} has more than one scale")
    rounded: Array = np.rint(x.astype(np.float64) / float(scale)) + int(zero)
    return rounded.clip(limits.min, limits.max).astype(zero.dtype)


def _dequantized(node: onnx.NodeProto, operands: list[Array | None]) -> Array:
    x, scale, zero = (np.asarray(one) for one in operands)
    if scale.size > 1:
        axis = next((one.i for one in node.attribute if one.name == "axis"), 1)
        scale, zero = (_along(one, x.ndim, axis) for one in (scale, zero))
    found: Array = (x.astype(np.float64) - zero.astype(np.float64)) * scale.astype(np.float64)
    return found


def _along(values: Array, rank: int, axis: int) -> Array:
    return values.reshape([-1 if place == axis % rank else 1 for place in range(rank)])


def rows(name: str, folder: Path) -> list[list[str]]:
    """The rows of one model."""
    given, target = quantized(name, folder, "qdq", "uint8")
    session = onnxruntime.InferenceSession(str(given), providers=["CPUExecutionProvider"])
    feeds = drawn(session, 77)
    del session
    model = onnx.load(str(target))
    integers = onnxruntime_of(with_outputs(model), OFF, feeds)
    parts = apart(model, integers)
    forced = feeds | {f"{GIVEN}{name}": value for name, value in integers.items()}
    answers = {
        "without": onnxruntime_of(parts, OFF, forced),
        "with": onnxruntime_of(parts, ALL, forced),
        "ours": ours_of(parts, forced, folder),
        "double": precise(parts, forced),
    }
    makers = {output: node.op_type for node in model.graph.node for output in node.output}
    counts: dict[str, Counts] = defaultdict(Counts)
    for node in quantizers(model):
        maker = makers.get(node.input[0], "input")
        counts[maker].add({system: found[node.output[0]] for system, found in answers.items()})
    found = [_row(f"{name}, {maker}", one) for maker, one in sorted(counts.items())]
    last = next(node.output[0] for node in reversed(quantizers(model)) if makers.get(node.input[0]))
    exposed = onnx.ModelProto()
    exposed.CopyFrom(model)
    del exposed.graph.output[:]
    kind = helper.np_dtype_to_tensor_dtype(integers[last].dtype)
    exposed.graph.output.append(helper.make_tensor_value_info(last, kind, integers[last].shape))
    whole = Counts()
    whole.add(
        {
            "without": integers[last],
            "with": onnxruntime_of(exposed, ALL, feeds)[last],
            "ours": ours_of(exposed, feeds, folder)[last],
            "double": precise(exposed, feeds)[last],
        }
    )
    return [*found, _row(f"{name}, whole", whole)]


def _row(name: str, counts: Counts) -> list[str]:
    return [name, str(counts.elements), *_parts(counts, PAIRS)]


def _parts(counts: Counts, pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{1e6 * counts.differ[pair] / counts.elements:.1f} ({counts.steps[pair]})" for pair in pairs]


def main() -> int:
    """Compare each model, then print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=("bert_base", "vit_base"))
    given = parser.parse_args()
    os.environ["SMARTMEM_PLANS"] = "off"
    found = []
    for name in given.models:
        with tempfile.TemporaryDirectory() as folder:
            found += rows(name, Path(folder))
    head = "quantized | elements | ours, double | ORT off, double | ORT all, double | ours, ORT off | ours, ORT all"
    print(markdown(head, found))
    print("In a million; in brackets the largest difference in steps.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

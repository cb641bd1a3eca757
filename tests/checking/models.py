"""Models, well and ill conditioned, with right outputs by other implementations and wrong ones by planted errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]
OPSET = 21


class Net:
    """A model that grows by nodes."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.feeds: dict[str, Array] = {}

    def input(self, array: Array) -> str:
        name = f"x{len(self.inputs)}"
        self.feeds[name] = array
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, array.shape))
        return name

    def normal(self, *shape: int, scale: float = 1.0) -> Array:
        return (self.random.standard_normal(shape) * scale).astype(np.float32)

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, operator: str, *operands: Any, **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        given = [operand if isinstance(operand, str) else self.constant(operand) for operand in operands]
        self.nodes.append(helper.make_node(operator, given, [name], **attributes))
        return name

    def model(self, *outputs: str) -> onnx.ModelProto:
        made = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph(self.nodes, "net", self.inputs, made, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        inferred = onnx.shape_inference.infer_shapes(model)
        del model.graph.output[:]
        model.graph.output.extend(inferred.graph.output)
        return model


def convolutions(net: Net) -> str:
    """A small convolutional network with pooling over windows that reach over the edge."""
    t = net.input(net.normal(1, 3, 13, 11))
    t = net.node("Conv", t, net.normal(8, 3, 3, 3, scale=0.2), net.normal(8), pads=[1, 1, 1, 1])
    t = net.node("Relu", t)
    t = net.node("MaxPool", t, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    t = net.node("Conv", t, net.normal(8, 1, 3, 3, scale=0.3), group=8, pads=[1, 1, 1, 1])
    return net.node("AveragePool", t, kernel_shape=[2, 2])


def attention(net: Net) -> str:
    """Normalisation, attention over two heads, a residual addition."""
    x = net.input(net.normal(2, 9, 16))
    normal = net.node("LayerNormalization", x, net.normal(16), net.normal(16), axis=-1)
    heads = [
        net.node("Transpose", net.node("Reshape", net.node("MatMul", normal, net.normal(16, 16, scale=0.25)),
                 np.array([2, 9, 2, 8])), perm=[0, 2, 1, 3])
        for _ in range(3)
    ]  # fmt: skip
    scores = net.node("MatMul", heads[0], net.node("Transpose", heads[1], perm=[0, 1, 3, 2]))
    weights = net.node("Softmax", net.node("Mul", scores, np.float32(8**-0.5)), axis=-1)
    mixed = net.node("Transpose", net.node("MatMul", weights, heads[2]), perm=[0, 2, 1, 3])
    return net.node("Add", x, net.node("Reshape", mixed, np.array([2, 9, 16])))


def cancelling(net: Net) -> str:
    """The small difference of large numbers: a variance as the mean of squares less the square of the mean."""
    x = net.input(net.normal(6, 40) + np.float32(300))
    mean = net.node("ReduceMean", x, np.array([1]), keepdims=1)
    squares = net.node("ReduceMean", net.node("Mul", x, x), np.array([1]), keepdims=1)
    spread = net.node("Sub", squares, net.node("Mul", mean, mean))
    return net.node("Mul", net.node("Sub", x, mean), spread)


def amplifying(net: Net) -> str:
    """Twelve layers, each of which enlarges relative errors: what seeded weights do to deep networks."""
    t = net.input(net.normal(5, 24))
    for _ in range(12):
        t = net.node("MatMul", t, net.normal(24, 24, scale=0.4))
        t = net.node("Sin", net.node("Mul", t, np.float32(1.5)))
    return t


def blocks(net: Net) -> str:
    """DequantizeLinear with a scale for each block of a weight, before a MatMul."""
    x = net.input(net.normal(4, 64))
    weight = net.random.integers(-8, 8, (64, 24)).astype(np.int8)
    scale = (np.abs(net.normal(4, 24)) + np.float32(0.05)).astype(np.float32)
    return net.node("MatMul", x, net.node("DequantizeLinear", weight, scale, axis=0, block_size=16))


def quantized(net: Net) -> str:
    """Values rounded to steps of a grid, which errors of rounding push over an edge here and there."""
    x = net.input(net.normal(16, 32))
    t = net.node("MatMul", x, net.normal(32, 32, scale=0.2))
    t = net.node("QuantizeLinear", t, np.float32(0.03), np.uint8(128))
    return net.node("DequantizeLinear", t, np.float32(0.03), np.uint8(128))


def largest(net: Net) -> str:
    """The places of the largest elements: integers."""
    x = net.input(net.normal(24, 16))
    return net.node("ArgMax", net.node("MatMul", x, net.normal(16, 32)), axis=1, keepdims=0)


def exponential(net: Net) -> str:
    """Numbers of all magnitudes, infinities and NaN."""
    values = net.normal(8, 40, scale=25)
    values[1, 3], values[2, 5], values[4, 0] = np.nan, np.inf, -np.inf
    return net.node("Exp", net.input(values))


def recurrent(net: Net) -> str:
    """A GRU."""
    x = net.input(net.normal(7, 2, 12))
    return net.node("GRU", x, net.normal(1, 30, 12, scale=0.3), net.normal(1, 30, 10, scale=0.3), hidden_size=10)


def shifted_windows(net: Net) -> str:
    """Swin: rows and columns turned, cut into windows of 4 by 4, a product inside of them, and all of it back."""
    x = net.input(net.normal(1, 8, 8, 16))
    normal = net.node("LayerNormalization", x, net.normal(16), net.normal(16), axis=-1)
    rows = [net.node("Slice", normal, np.array([a]), np.array([b]), np.array([1])) for a, b in ((2, 8), (0, 2))]
    turned = net.node("Concat", *rows, axis=1)
    windows = net.node("Transpose", net.node("Reshape", turned, np.array([1, 2, 4, 2, 4, 16])), perm=[0, 1, 3, 2, 4, 5])
    mixed = net.node("MatMul", net.node("Reshape", windows, np.array([4, 16, 16])), net.normal(16, 16, scale=0.25))
    back = net.node("Transpose", net.node("Reshape", mixed, np.array([1, 2, 2, 4, 4, 16])), perm=[0, 1, 3, 2, 4, 5])
    return net.node("Add", x, net.node("Reshape", back, np.array([1, 8, 8, 16])))


def gated(net: Net) -> str:
    """A decoder's perceptron: rows over their root mean square, a gate of SiLU, a product with it, a residual sum."""
    x = net.input(net.normal(32, 16))
    mean = net.node("ReduceMean", net.node("Mul", x, x), np.array([1]), keepdims=1)
    root = net.node("Sqrt", net.node("Add", mean, np.float32(1e-5)))
    rows = net.node("Mul", net.node("Div", x, root), net.normal(16))
    gate = net.node("MatMul", rows, net.normal(16, 24, scale=0.25))
    wide = net.node(
        "Mul", net.node("Mul", gate, net.node("Sigmoid", gate)), net.node("MatMul", rows, net.normal(16, 24))
    )
    return net.node("Add", x, net.node("MatMul", wide, net.normal(24, 16, scale=0.2)))


def pyramid(net: Net) -> str:
    """A detector's neck: a coarse map made larger and put beside a fine one, then a convolution of both."""
    fine, coarse = net.input(net.normal(1, 8, 8, 8)), net.input(net.normal(1, 8, 4, 4))
    larger = net.node("Resize", coarse, "", np.array([1, 1, 2, 2], np.float32), mode="nearest")
    joined = net.node("Concat", larger, fine, axis=1)
    return net.node("Relu", net.node("Conv", joined, net.normal(8, 16, 1, 1, scale=0.2), net.normal(8)))


def moved(net: Net) -> str:
    """Nothing but moved elements."""
    x = net.input(net.normal(3, 4, 10))
    t = net.node("Transpose", x, perm=[2, 0, 1])
    return net.node("Pad", net.node("Reshape", t, np.array([5, 24])), np.array([0, 1, 0, 2]))


WELL = (convolutions, attention, blocks, exponential, recurrent, moved, largest)
ILL = (cancelling, amplifying, quantized)


def drawn(kind: Callable[[Net], str], seed: int) -> tuple[onnx.ModelProto, dict[str, Array], str]:
    """A model with its inputs and the name of its output."""
    net = Net(seed)
    output = kind(net)
    return net.model(output), net.feeds, output


def runtime(model: onnx.ModelProto, feeds: dict[str, Array], optimized: bool = True) -> Array:
    """The output by ONNX Runtime, in single precision."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feeds)[0])


def planted(right: Array, random: np.random.Generator) -> Iterator[tuple[str, Array]]:
    """The output with one error each, of the kinds that wrong kernels make; each changes what it touches visibly."""
    wide = right.astype(np.float64)
    spread = float(np.std(wide[np.isfinite(wide)])) if right.dtype.kind == "f" else 0.0
    for name, made in _changes(right, random):
        with np.errstate(all="ignore"):
            off = np.abs(made.astype(np.float64) - wide)
        differs = ~((made == right) | (np.isnan(made) & np.isnan(right)) if made.dtype.kind == "f" else made == right)
        if np.any(differs & ~(off <= 0.5 * spread)):
            yield name, made


def _changes(right: Array, random: np.random.Generator) -> Iterator[tuple[str, Array]]:
    place = tuple(int(random.integers(extent)) for extent in right.shape)
    wrong = right.copy()
    wrong[place] = right.reshape(-1)[int(random.integers(right.size))]
    yield "a wrong element", wrong
    if right.dtype.kind == "f":
        nan = right.copy()
        nan[place] = np.nan if np.isfinite(right[place]) else 1.0
        yield "a number that is none", nan
    last = right.copy()
    last.reshape(-1)[-1] = 0
    yield "the last element is missing", last
    if not right.ndim:
        return
    rows = right.reshape(-1, right.shape[-1])
    if len(rows) > 1:
        one, other = random.choice(len(rows), 2, replace=False)
        swapped = rows.copy()
        swapped[[one, other]] = rows[[other, one]]
        yield "swapped rows", swapped.reshape(right.shape)
        stale = rows.copy()
        stale[one] = random.permutation(rows[one])
        yield "stale memory in a row", stale.reshape(right.shape)
        doubled = rows.copy()
        doubled[one] = rows[other]
        yield "a wrong row", doubled.reshape(right.shape)
    yield "an index that is one off", np.roll(right, 1, axis=-1)
    shifted = right.copy()
    shifted[..., -1] = right[..., -2] if right.shape[-1] > 1 else 0
    yield "the edge of a window is one off", shifted

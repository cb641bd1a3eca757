"""Language models with a cache as ONNX graphs, with weights from seeds: `python bench/zoo/decoders.py llama_small`.

Three forms: Pythia's (GPT-NeoX: layer normalization, parallel perceptron, rotary positions for a part of each head) and
Llama's (RMS normalization, fewer heads of keys, gated perceptron), whose caches are joined to the new keys by `Concat`
as optimum exports them, and Llama's with ONNX Runtime's GroupQueryAttention.
"""

from __future__ import annotations

import argparse
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]
PYTHIA, LLAMA, GROUPED = "pythia", "llama", "grouped"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The sizes of a model.

    Attributes:
        form: `pythia`, `llama`, or `grouped` (Llama with GroupQueryAttention).
        positions: how many positions the tables of angles have.
        rotary: how many channels of each head turn.
        head: the standard deviation of the last product's weights; greater ones part the logits.
    """

    form: str
    vocabulary: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    positions: int = 1024
    rotary: int = 0
    head: float = 0.5

    @property
    def channels(self) -> int:
        """Of each head."""
        return self.width // self.heads

    @property
    def turned(self) -> int:
        """How many channels of each head turn."""
        return self.rotary or self.channels


SHAPES = {
    "pythia_tiny": Shape(form=PYTHIA, vocabulary=96, width=32, layers=2, heads=2, kv_heads=2, hidden=64, rotary=4),
    "llama_tiny": Shape(form=LLAMA, vocabulary=96, width=32, layers=2, heads=4, kv_heads=2, hidden=48),
    "grouped_tiny": Shape(form=GROUPED, vocabulary=96, width=64, layers=2, heads=4, kv_heads=2, hidden=48),
    "pythia_small": Shape(
        form=PYTHIA, vocabulary=8192, width=256, layers=6, heads=8, kv_heads=8, hidden=1024, rotary=8
    ),
    "llama_small": Shape(form=LLAMA, vocabulary=8192, width=256, layers=4, heads=8, kv_heads=2, hidden=704),
    "grouped_small": Shape(form=GROUPED, vocabulary=8192, width=256, layers=4, heads=8, kv_heads=2, hidden=704),
    "pythia_70m": Shape(
        form=PYTHIA, vocabulary=50304, width=512, layers=6, heads=8, kv_heads=8, hidden=2048, positions=2048, rotary=16
    ),
    "llama_160m": Shape(
        form=LLAMA, vocabulary=32000, width=768, layers=12, heads=12, kv_heads=4, hidden=2048, positions=2048
    ),
    "pythia_160m": Shape(
        form=PYTHIA, vocabulary=50304, width=768, layers=12, heads=12, kv_heads=12, hidden=3072, positions=2048,
        rotary=16,
    ),
    "pythia_410m": Shape(
        form=PYTHIA, vocabulary=50304, width=1024, layers=24, heads=16, kv_heads=16, hidden=4096, positions=2048,
        rotary=16,
    ),
    "pythia_1b": Shape(
        form=PYTHIA, vocabulary=50304, width=2048, layers=16, heads=8, kv_heads=8, hidden=8192, positions=2048,
        rotary=64,
    ),
}  # fmt: skip
"""By name; the tiny ones are for tests."""


@dataclass
class Builder:
    """A graph that grows node by node."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)

    def add(self, operator: str, *inputs: str, name: str = "", outputs: int = 1, **attributes: Any) -> Any:
        """The result of an operator, or its results."""
        base = name or f"{operator.lower()}_{len(self.nodes)}"
        results = [base] if outputs == 1 else [f"{base}.{place}" for place in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), results, base, **attributes))
        return results[0] if outputs == 1 else tuple(results)

    def hold(self, name: str, value: Array) -> str:
        """A constant."""
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def integers(self, *values: int) -> str:
        """A constant list of integers."""
        return self.hold("ints_" + "_".join(map(str, values)).replace("-", "m"), np.array(values, np.int64))

    def drawn(self, name: str, *shape: int, scale: float = 0.0, mean: float = 0.0) -> str:
        """A weight from the seed of its name; by default with the variance that keeps that of what it multiplies."""
        random = np.random.default_rng(zlib.crc32(name.encode()))
        spread = scale or shape[0] ** -0.5
        return self.hold(name, mean + spread * random.standard_normal(shape, dtype=np.float32))


def decoder(shape: Shape) -> onnx.ModelProto:
    """A model whose inputs and outputs are named as optimum names them."""
    b = Builder()
    h = b.add("Gather", b.drawn("embed.weight", shape.vocabulary, shape.width, scale=1.0), "input_ids", name="embed")
    shared = _shared(b, shape)
    for layer in range(shape.layers):
        h = _layer(b, shape, shared, h, layer)
    normed = _normalized(b, shape, h, "final_norm")
    b.add("MatMul", normed, b.drawn("lm_head.weight", shape.width, shape.vocabulary, scale=shape.head), name="logits")
    cache = [f"{layer}.{part}" for layer in range(shape.layers) for part in ("key", "value")]
    kept = ["batch_size", shape.kv_heads, "past_sequence_length", shape.channels]
    grown = [*kept[:2], "past_sequence_length + sequence_length", kept[3]]
    whole = ["batch_size", "past_sequence_length + sequence_length"]
    inputs = [_value("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"])]
    inputs.append(_value("attention_mask", TensorProto.INT64, whole))
    if shape.form != GROUPED:
        inputs.append(_value("position_ids", TensorProto.INT64, ["batch_size", "sequence_length"]))
    inputs += [_value(f"past_key_values.{name}", TensorProto.FLOAT, kept) for name in cache]
    outputs = [_value("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", shape.vocabulary])]
    outputs += [_value(f"present.{name}", TensorProto.FLOAT, grown) for name in cache]
    graph = helper.make_graph(b.nodes, f"{shape.form}_decoder", inputs, outputs, list(b.constants.values()))
    domains = [helper.make_opsetid("", 17)]
    if shape.form == GROUPED:
        domains.append(helper.make_opsetid("com.microsoft", 1))
    return helper.make_model(graph, opset_imports=domains, ir_version=8)


@dataclass(frozen=True, kw_only=True)
class Shared:
    """What all layers read.

    Attributes:
        mask: what is added to scores, [batch, 1, sequence, total].
        cosine, sine: [batch, 1, sequence, channels that turn]; tables of half as many channels for `grouped`.
        lengths, total: of `grouped`: how many words there are, less one, and the extent of the cache.
    """

    cosine: str
    sine: str
    mask: str = ""
    lengths: str = ""
    total: str = ""


def _shared(b: Builder, shape: Shape) -> Shared:
    half = shape.turned // 2
    angles = np.outer(np.arange(shape.positions), 10000.0 ** -(np.arange(half) / half))
    if shape.form == GROUPED:
        counted = b.add("ReduceSum", "attention_mask", b.integers(1), name="counted", keepdims=1)
        lengths = b.add("Cast", b.add("Sub", counted, b.integers(1)), name="seqlens_k", to=TensorProto.INT32)
        extent = b.add("Gather", b.add("Shape", "attention_mask"), b.hold("one", np.array(1, np.int64)))
        total = b.add("Cast", extent, name="total_sequence_length", to=TensorProto.INT32)
        cosine = b.hold("cos_cache", np.cos(angles).astype(np.float32))
        return Shared(
            cosine=cosine, sine=b.hold("sin_cache", np.sin(angles).astype(np.float32)), lengths=lengths, total=total
        )
    twice = np.concatenate([angles, angles], axis=1)
    tables = []
    for name, values in (("cosine", np.cos(twice)), ("sine", np.sin(twice))):
        rows = b.add("Gather", b.hold(f"{name}_table", values.astype(np.float32)), "position_ids")
        tables.append(b.add("Unsqueeze", rows, b.integers(1), name=name))
    return Shared(cosine=tables[0], sine=tables[1], mask=_mask(b))


def _mask(b: Builder) -> str:
    """Scores of words behind a query, and of words that the attention mask leaves out, get the least number."""
    total = b.add("Gather", b.add("Shape", "attention_mask"), b.integers(1))
    length = b.add("Gather", b.add("Shape", "input_ids"), b.integers(1))
    zero, one = b.hold("zero", np.array(0, np.int64)), b.hold("one", np.array(1, np.int64))
    every = b.add("Range", zero, b.add("Squeeze", total), one)
    past = b.add("Squeeze", b.add("Sub", total, length))
    queries = b.add("Add", b.add("Range", zero, b.add("Squeeze", length), one), past)
    ahead = b.add("LessOrEqual", every, b.add("Unsqueeze", queries, b.integers(1)))
    seen = b.add("Cast", b.add("Unsqueeze", "attention_mask", b.integers(1, 2)), to=TensorProto.BOOL)
    allowed = b.add("And", ahead, seen)
    least = b.hold("least", np.array(np.finfo(np.float32).min, np.float32))
    return str(b.add("Where", allowed, b.hold("none", np.array(0, np.float32)), least, name="mask"))


def _layer(b: Builder, shape: Shape, shared: Shared, h: str, layer: int) -> str:
    own = f"layers.{layer}"
    normed = _normalized(b, shape, h, f"{own}.input_norm")
    mixed = _attention(b, shape, shared, normed, layer)
    if shape.form == PYTHIA:
        again = _normalized(b, shape, h, f"{own}.post_norm")
        return str(b.add("Add", b.add("Add", mixed, _perceptron(b, shape, again, own)), h, name=f"{own}.out"))
    h = b.add("Add", h, mixed)
    again = _normalized(b, shape, h, f"{own}.post_norm")
    return str(b.add("Add", h, _gated(b, shape, again, own), name=f"{own}.out"))


def _normalized(b: Builder, shape: Shape, x: str, name: str) -> str:
    scale = b.drawn(f"{name}.weight", shape.width, scale=0.1, mean=1.0)
    if shape.form == PYTHIA:
        bias = b.drawn(f"{name}.bias", shape.width, scale=0.1)
        return str(b.add("LayerNormalization", x, scale, bias, name=name, axis=-1, epsilon=1e-5))
    square = b.add("Pow", x, b.hold("two", np.array(2, np.float32)))
    mean = b.add("ReduceMean", square, axes=[-1], keepdims=1)
    root = b.add("Sqrt", b.add("Add", mean, b.hold("epsilon", np.array(1e-5, np.float32))))
    return str(b.add("Mul", scale, b.add("Div", x, root), name=name))


def _product(b: Builder, x: str, name: str, depth: int, columns: int, bias: bool, scale: float = 0.0) -> str:
    made = b.add("MatMul", x, b.drawn(f"{name}.weight", depth, columns, scale=scale), name=f"{name}.product")
    return str(b.add("Add", made, b.drawn(f"{name}.bias", columns, scale=0.1), name=name) if bias else made)


def _perceptron(b: Builder, shape: Shape, x: str, own: str) -> str:
    up = _product(b, x, f"{own}.up", shape.width, shape.hidden, True)
    error = b.add("Erf", b.add("Mul", up, b.hold("root_half", np.array(0.5**0.5, np.float32))))
    whole = b.add("Mul", up, b.add("Add", error, b.hold("unit", np.array(1, np.float32))))
    gelu = b.add("Mul", whole, b.hold("half", np.array(0.5, np.float32)))
    return _product(b, gelu, f"{own}.down", shape.hidden, shape.width, True)


def _gated(b: Builder, shape: Shape, x: str, own: str) -> str:
    gate = _product(b, x, f"{own}.gate", shape.width, shape.hidden, False)
    up = _product(b, x, f"{own}.up", shape.width, shape.hidden, False)
    swish = b.add("Mul", gate, b.add("Sigmoid", gate))
    return _product(b, b.add("Mul", swish, up), f"{own}.down", shape.hidden, shape.width, False)


def _attention(b: Builder, shape: Shape, shared: Shared, x: str, layer: int) -> str:
    own, bias = f"layers.{layer}.attention", shape.form == PYTHIA
    sizes = {"query": shape.heads, "key": shape.kv_heads, "value": shape.kv_heads}
    parts = {n: _product(b, x, f"{own}.{n}", shape.width, k * shape.channels, bias) for n, k in sizes.items()}
    past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
    present = [f"present.{layer}.{part}" for part in ("key", "value")]
    if shape.form == GROUPED:
        operands = [*parts.values(), *past, shared.lengths, shared.total, shared.cosine, shared.sine]
        result = f"{own}.mixed"
        node = helper.make_node(
            "GroupQueryAttention", operands, [result, *present], own, domain="com.microsoft", num_heads=shape.heads,
            kv_num_heads=shape.kv_heads, do_rotary=1, scale=shape.channels**-0.5,
        )  # fmt: skip
        b.nodes.append(node)
        return _product(b, result, f"{own}.out", shape.width, shape.width, bias)
    split = {n: _heads(b, parts[n], k, shape.channels) for n, k in sizes.items()}
    query, new = (_turned(b, shape, shared, split[n]) for n in ("query", "key"))
    keys = b.add("Concat", past[0], new, name=present[0], axis=2)
    values = b.add("Concat", past[1], split["value"], name=present[1], axis=2)
    every = shape.heads // shape.kv_heads
    keys, values = (_repeated(b, shape, one, every) for one in (keys, values))
    scores = b.add("MatMul", query, b.add("Transpose", keys, perm=[0, 1, 3, 2]))
    scaled = b.add("Mul", scores, b.hold("scale", np.array(shape.channels**-0.5, np.float32)))
    weights = b.add("Softmax", b.add("Add", scaled, shared.mask), axis=-1)
    mixed = b.add("Transpose", b.add("MatMul", weights, values), perm=[0, 2, 1, 3])
    joined = b.add("Reshape", mixed, b.integers(0, 0, shape.width))
    return _product(b, joined, f"{own}.out", shape.width, shape.width, bias)


def _heads(b: Builder, x: str, heads: int, channels: int) -> str:
    """[batch, heads, sequence, channels]."""
    return str(b.add("Transpose", b.add("Reshape", x, b.integers(0, 0, heads, channels)), perm=[0, 2, 1, 3]))


def _turned(b: Builder, shape: Shape, shared: Shared, x: str) -> str:
    """The first channels of each head turned by the angle of their position."""
    turned, rest = x, ""
    if shape.turned < shape.channels:
        turned, rest = b.add("Split", x, b.integers(shape.turned, shape.channels - shape.turned), outputs=2, axis=-1)
    first, second = b.add("Split", turned, b.integers(shape.turned // 2, shape.turned // 2), outputs=2, axis=-1)
    crossed = b.add("Concat", b.add("Neg", second), first, axis=-1)
    result = b.add("Add", b.add("Mul", turned, shared.cosine), b.add("Mul", crossed, shared.sine))
    return str(b.add("Concat", result, rest, axis=-1) if rest else result)


def _repeated(b: Builder, shape: Shape, x: str, every: int) -> str:
    """Each head of keys for its group of query heads, as transformers repeats them."""
    if every == 1:
        return x
    dims = b.add("Shape", x)
    ends = [b.add("Slice", dims, b.integers(start), b.integers(start + 1)) for start in (0, 2)]
    known = b.integers(shape.kv_heads, every), b.integers(shape.channels), b.integers(shape.heads)
    wide = b.add("Concat", ends[0], known[0], ends[1], known[1], axis=0)
    spread = b.add("Expand", b.add("Unsqueeze", x, b.integers(2)), wide)
    flat = b.add("Concat", ends[0], known[2], ends[1], known[1], axis=0)
    return str(b.add("Reshape", spread, flat))


def _value(name: str, dtype: int, shape: list[Any]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def main() -> int:
    """Write the models that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", choices=SHAPES)
    parser.add_argument("-o", "--output", type=Path, default=Path())
    arguments = parser.parse_args()
    for name in arguments.models:
        model, path = decoder(SHAPES[name]), arguments.output / f"{name}.onnx"
        large = sum(len(tensor.raw_data) for tensor in model.graph.initializer) > 1_800_000_000
        onnx.save(model, str(path), save_as_external_data=large, location=f"{path.name}.data" if large else None)
        print(path, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

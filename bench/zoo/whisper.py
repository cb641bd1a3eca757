"""Whisper's encoder and decoder as one ONNX graph with a cache, weights from seeds: `python bench/zoo/whisper.py NAME`.

The encoder reads `input_features` (a log-mel spectrogram, [batch, bins, frames]); the decoder's layers look at its
states beside their own cache. `heard` is the decoder alone, with the states as an input, as optimum exports it.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

try:
    from bench.zoo.decoders import Builder
except ImportError:
    from decoders import Builder


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The sizes of a model (A. Radford et al., 2022, table 1).

    Attributes:
        frames: of the spectrogram; the encoder has half as many states.
        positions: tokens that the decoder knows.
        head: the standard deviation of the last product's weights; greater ones part the logits.
    """

    vocabulary: int
    width: int
    layers: int
    heads: int
    bins: int = 80
    frames: int = 3000
    positions: int = 448
    head: float = 0.5

    @property
    def channels(self) -> int:
        """Of each head."""
        return self.width // self.heads


SHAPES = {
    "whisper_least": Shape(vocabulary=96, width=32, layers=1, heads=2, bins=8, frames=24, positions=64),
    "whisper_tiny": Shape(vocabulary=51865, width=384, layers=4, heads=6),
    "whisper_base": Shape(vocabulary=51865, width=512, layers=6, heads=8),
}
"""By name; the least one is for tests."""


def whisper(shape: Shape, heard: bool = False) -> onnx.ModelProto:
    """A model whose inputs and outputs are named as optimum names them.

    Args:
        heard: whether the encoder's states are an input, in the place of the spectrogram.
    """
    b = Builder()
    states = "encoder_hidden_states" if heard else _encoder(b, shape)
    table = b.drawn("decoder.embed.weight", shape.vocabulary, shape.width, scale=1.0)
    h = b.add("Add", b.add("Gather", table, "input_ids"), _positions(b, shape), name="decoder.embed")
    mask = _causal(b)
    for layer in range(shape.layers):
        h = _decoder_layer(b, shape, h, states, mask, layer)
    head = b.drawn("decoder.head.weight", shape.width, shape.vocabulary, scale=shape.head)
    b.add("MatMul", _normalized(b, shape, h, "decoder.final_norm"), head, name="logits")
    cache = [f"{layer}.decoder.{part}" for layer in range(shape.layers) for part in ("key", "value")]
    kept = ["batch_size", shape.heads, "past_sequence_length", shape.channels]
    grown = [*kept[:2], "past_sequence_length + sequence_length", kept[3]]
    half = "encoder_sequence_length"
    given = (
        _value("encoder_hidden_states", TensorProto.FLOAT, ["batch_size", half, shape.width])
        if heard
        else _value("input_features", TensorProto.FLOAT, ["batch_size", shape.bins, shape.frames])
    )
    inputs = [_value("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]), given]
    inputs += [_value(f"past_key_values.{name}", TensorProto.FLOAT, kept) for name in cache]
    outputs = [_value("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", shape.vocabulary])]
    outputs += [_value(f"present.{name}", TensorProto.FLOAT, grown) for name in cache]
    graph = helper.make_graph(b.nodes, "whisper", inputs, outputs, list(b.constants.values()))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _encoder(b: Builder, shape: Shape) -> str:
    """Two convolutions over time, the second with half as many places, then layers; [batch, frames / 2, width]."""
    h = "input_features"
    for number, (channels, stride) in enumerate(((shape.bins, 1), (shape.width, 2))):
        weight = b.drawn(f"encoder.conv{number}.weight", shape.width, channels, 3, scale=(3 * channels) ** -0.5)
        bias = b.drawn(f"encoder.conv{number}.bias", shape.width, scale=0.1)
        h = _gelu(b, b.add("Conv", h, weight, bias, pads=[1, 1], strides=[stride]))
    places = np.arange(shape.frames // 2)[:, None] * 10000.0 ** (-np.arange(shape.width // 2) / (shape.width // 2 - 1))
    waves = b.hold("encoder.waves", np.concatenate([np.sin(places), np.cos(places)], axis=1).astype(np.float32))
    h = b.add("Add", b.add("Transpose", h, perm=[0, 2, 1]), waves)
    for layer in range(shape.layers):
        own = f"encoder.{layer}"
        normed = _normalized(b, shape, h, f"{own}.norm")
        parts = [_heads(b, shape, _product(b, shape, normed, f"{own}.{part}")) for part in ("query", "key", "value")]
        h = b.add("Add", h, _attention(b, shape, parts[0], parts[1], parts[2], f"{own}.out", ""))
        h = _perceptron(b, shape, h, own)
    return _normalized(b, shape, h, "encoder.final_norm")


def _positions(b: Builder, shape: Shape) -> str:
    """The learned positions of the new tokens, which stand behind the cache."""
    table = b.drawn("decoder.positions.weight", shape.positions, shape.width, scale=1.5)
    return str(b.add("Gather", table, _places(b)))


def _places(b: Builder) -> str:
    """The places of the new tokens."""
    past = b.add("Gather", b.add("Shape", "past_key_values.0.decoder.key"), _whole(b, 2))
    length = b.add("Gather", b.add("Shape", "input_ids"), _whole(b, 1))
    return str(b.add("Range", past, b.add("Add", past, length), _whole(b, 1)))


def _whole(b: Builder, value: int) -> str:
    return b.hold(f"whole_{value}", np.array(value, np.int64))


def _causal(b: Builder) -> str:
    """Scores of words behind a query get the least number, [sequence, total]."""
    places = _places(b)
    last = b.add("Gather", b.add("Shape", places), _whole(b, 0))
    past = b.add("Gather", b.add("Shape", "past_key_values.0.decoder.key"), _whole(b, 2))
    every = b.add("Range", _whole(b, 0), b.add("Add", past, last), _whole(b, 1))
    allowed = b.add("LessOrEqual", every, b.add("Unsqueeze", places, b.integers(1)))
    least = b.hold("least", np.array(np.finfo(np.float32).min, np.float32))
    return str(b.add("Where", allowed, b.hold("none", np.array(0, np.float32)), least, name="causal"))


def _decoder_layer(b: Builder, shape: Shape, h: str, states: str, mask: str, layer: int) -> str:
    own = f"decoder.{layer}"
    normed = _normalized(b, shape, h, f"{own}.norm")
    query, new, values = (_heads(b, shape, _product(b, shape, normed, f"{own}.{n}")) for n in ("query", "key", "value"))
    past = [f"{layer}.decoder.{part}" for part in ("key", "value")]
    keys, values = (
        b.add("Concat", f"past_key_values.{name}", one, name=f"present.{name}", axis=2)
        for name, one in zip(past, (new, values), strict=True)
    )
    h = b.add("Add", h, _attention(b, shape, query, keys, values, f"{own}.out", mask))
    normed = _normalized(b, shape, h, f"{own}.cross_norm")
    query = _heads(b, shape, _product(b, shape, normed, f"{own}.cross_query"))
    heard = [_heads(b, shape, _product(b, shape, states, f"{own}.cross_{part}")) for part in ("key", "value")]
    h = b.add("Add", h, _attention(b, shape, query, heard[0], heard[1], f"{own}.cross_out", ""))
    return _perceptron(b, shape, h, own)


def _attention(b: Builder, shape: Shape, query: str, keys: str, values: str, name: str, mask: str) -> str:
    scores = b.add("MatMul", query, b.add("Transpose", keys, perm=[0, 1, 3, 2]))
    scaled = b.add("Mul", scores, b.hold("scale", np.array(shape.channels**-0.5, np.float32)))
    weights = b.add("Softmax", b.add("Add", scaled, mask) if mask else scaled, axis=-1)
    mixed = b.add("Transpose", b.add("MatMul", weights, values), perm=[0, 2, 1, 3])
    return _product(b, shape, b.add("Reshape", mixed, b.integers(0, 0, shape.width)), name)


def _heads(b: Builder, shape: Shape, x: str) -> str:
    """[batch, heads, places, channels]."""
    split = b.add("Reshape", x, b.integers(0, 0, shape.heads, shape.channels))
    return str(b.add("Transpose", split, perm=[0, 2, 1, 3]))


def _product(b: Builder, shape: Shape, x: str, name: str, depth: int = 0, columns: int = 0) -> str:
    weight = b.drawn(f"{name}.weight", depth or shape.width, columns or shape.width)
    made = b.add("MatMul", x, weight, name=f"{name}.product")
    return str(b.add("Add", made, b.drawn(f"{name}.bias", columns or shape.width, scale=0.1), name=name))


def _perceptron(b: Builder, shape: Shape, h: str, own: str) -> str:
    normed = _normalized(b, shape, h, f"{own}.post_norm")
    up = _gelu(b, _product(b, shape, normed, f"{own}.up", columns=4 * shape.width))
    return str(b.add("Add", h, _product(b, shape, up, f"{own}.down", depth=4 * shape.width), name=f"{own}.end"))


def _gelu(b: Builder, x: str) -> str:
    error = b.add("Erf", b.add("Mul", x, b.hold("root_half", np.array(0.5**0.5, np.float32))))
    whole = b.add("Mul", x, b.add("Add", error, b.hold("unit", np.array(1, np.float32))))
    return str(b.add("Mul", whole, b.hold("half", np.array(0.5, np.float32))))


def _normalized(b: Builder, shape: Shape, x: str, name: str) -> str:
    scale = b.drawn(f"{name}.weight", shape.width, scale=0.1, mean=1.0)
    bias = b.drawn(f"{name}.bias", shape.width, scale=0.1)
    return str(b.add("LayerNormalization", x, scale, bias, name=name, axis=-1, epsilon=1e-5))


def _value(name: str, dtype: int, shape: list[int | str]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def main() -> int:
    """Write the models that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", choices=SHAPES)
    parser.add_argument("--heard", action="store_true", help="the decoder alone")
    parser.add_argument("-o", "--output", type=Path, default=Path())
    arguments = parser.parse_args()
    for name in arguments.models:
        path = arguments.output / f"{name}.onnx"
        onnx.save(whisper(SHAPES[name], arguments.heard), str(path))
        print(path, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Language models as optimum exports them in two parts: `python bench/zoo/two_decoders.py llama_tiny -o FOLDER`.

`decoder_model.onnx` takes prompts and has no cache, `decoder_with_past_model.onnx` takes a token behind a cache, and
`decoder_model_merged.onnx` is both as the branches of an `If`. They are made of the models of `decoders.py` and
`whisper.py`; what the two call a weight differs, as it does in what PyTorch exports.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

try:
    from bench.zoo import decoders, whisper
except ImportError:
    import decoders
    import whisper

BRANCH = "use_cache_branch"
PAST, PRESENT = "past_key_values.", "present."


@dataclass(frozen=True, kw_only=True)
class Two:
    """A model in two parts."""

    prompts: onnx.ModelProto
    tokens: onnx.ModelProto


def two_decoders(name: str) -> Two:
    """The model of a name of `decoders.SHAPES`, or Whisper's decoder of one of `whisper.SHAPES`, in two parts."""
    if name in decoders.SHAPES:
        return Two(prompts=_prompts(decoders.decoder(decoders.SHAPES[name]), []),
                   tokens=_tokens(decoders.decoder(decoders.SHAPES[name]), []))  # fmt: skip
    shape = whisper.SHAPES[name]
    prompts, tokens = (whisper.whisper(shape, heard=True) for _ in range(2))
    carried = [
        _Carried(layer=layer, part=part, shape=shape) for layer in range(shape.layers) for part in ("key", "value")
    ]
    return Two(prompts=_prompts(prompts, carried), tokens=_tokens(tokens, carried))


@dataclass(frozen=True, kw_only=True)
class _Carried:
    """Keys or values of an encoder's states, which the second part takes from the first."""

    layer: int
    part: str
    shape: whisper.Shape

    @property
    def name(self) -> str:
        return f"{self.layer}.encoder.{self.part}"

    @property
    def extents(self) -> list[str | int]:
        return ["batch_size", self.shape.heads, "encoder_sequence_length_out", self.shape.channels]

    def node(self, graph: onnx.GraphProto) -> onnx.NodeProto:
        """The node that computes them."""
        made = f"decoder.{self.layer}.cross_{self.part}"
        (split,) = (node for node in graph.node if made in node.input)
        return next(node for node in graph.node if split.output[0] in node.input)


def _prompts(model: onnx.ModelProto, carried: Sequence[_Carried]) -> onnx.ModelProto:
    """The part without a cache: new keys are all that there are."""
    graph = model.graph
    for node in graph.node:
        pasts = [name for name in node.input if name.startswith(PAST)]
        if pasts and node.op_type == "Concat":
            node.CopyFrom(helper.make_node("Identity", [node.input[1]], list(node.output), node.name))
        elif pasts:
            node.CopyFrom(helper.make_node("Constant", [], list(node.output), node.name, value_ints=[1, 1, 0, 1]))
    for one in carried:
        graph.node.append(helper.make_node("Identity", [one.node(graph).output[0]], [f"{PRESENT}{one.name}"]))
        graph.output.append(helper.make_tensor_value_info(f"{PRESENT}{one.name}", TensorProto.FLOAT, one.extents))
    _keep_inputs(graph, (value for value in graph.input if not value.name.startswith(PAST)))
    _name_axis(graph, "attention_mask", "sequence_length")
    for value in graph.output:
        if value.name.startswith(PRESENT) and ".encoder." not in value.name:
            value.type.tensor_type.shape.dim[2].dim_param = "sequence_length"
    return model


def _tokens(model: onnx.ModelProto, carried: Sequence[_Carried]) -> onnx.ModelProto:
    """The part for one token behind a cache."""
    graph = model.graph
    for one in carried:
        node = one.node(graph)
        node.CopyFrom(helper.make_node("Identity", [f"{PAST}{one.name}"], list(node.output), node.name))
        graph.input.append(helper.make_tensor_value_info(f"{PAST}{one.name}", TensorProto.FLOAT, one.extents))
    _keep_needed(graph)
    _name_axis(graph, "attention_mask", "past_sequence_length + 1")
    for value in graph.input:
        if value.name in ("input_ids", "position_ids"):
            value.type.tensor_type.shape.dim[1].dim_value = 1
    names = {tensor.name: f"onnx::{tensor.name}_behind" for tensor in graph.initializer}
    for tensor in graph.initializer:
        tensor.name = names[tensor.name]
    for node in graph.node:
        renamed = [names.get(name, name) for name in node.input]
        del node.input[:]
        node.input.extend(renamed)
    return model


def merged(two: Two) -> onnx.ModelProto:
    """Both parts as the branches of an `If`, with one copy of the weights that they share."""
    prompts, tokens = (_copied(model) for model in (two.prompts, two.tokens))
    _give_as_many(prompts.graph, tokens.graph)
    first = {(tuple(one.dims), one.data_type, one.raw_data): one.name for one in prompts.graph.initializer}
    shared = {
        one.name: first.get((tuple(one.dims), one.data_type, one.raw_data), one.name)
        for one in tokens.graph.initializer
    }
    for node in tokens.graph.node:
        read = [shared.get(name, name) for name in node.input]
        del node.input[:]
        node.input.extend(read)
    outer = {one.name: one for one in prompts.graph.initializer if not _is_small(one)}
    outer |= {
        shared[one.name]: one for one in tokens.graph.initializer if not _is_small(one) and shared[one.name] == one.name
    }
    inputs = {value.name: value for value in (*prompts.graph.input, *tokens.graph.input)}
    inputs |= {value.name: value for value in prompts.graph.input}
    if "attention_mask" in inputs:
        inputs["attention_mask"].type.tensor_type.shape.dim[1].dim_param = "attention_mask_sequence_length"
    small = {shared.get(one.name, one.name): one for one in (*tokens.graph.initializer, *prompts.graph.initializer)}
    branches = []
    for name, part in (("no_past", prompts), ("with_past", tokens)):
        read = {name for node in part.graph.node for name in node.input}
        held = [one for key, one in small.items() if _is_small(one) and key in read]
        branches.append(helper.make_graph(part.graph.node, name, [], part.graph.output, held))
    chooser = helper.make_node(
        "If", [BRANCH], [value.name for value in prompts.graph.output], "optimum::if",
        then_branch=branches[1], else_branch=branches[0],
    )  # fmt: skip
    chosen = helper.make_tensor_value_info(BRANCH, TensorProto.BOOL, [1])
    outputs = list(prompts.graph.output)
    graph = helper.make_graph([chooser], "merged", [*inputs.values(), chosen], outputs, list(outer.values()))
    return helper.make_model(graph, opset_imports=prompts.opset_import, ir_version=prompts.ir_version)


def _give_as_many(prompts: onnx.GraphProto, tokens: onnx.GraphProto) -> None:
    """Empty constants for what the second part does not give, and one declaration of each output."""
    given = {value.name for value in tokens.output}
    for value in prompts.output:
        if value.name not in given:
            extents = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            empty = numpy_helper.from_array(np.zeros([0, *(extent or 1 for extent in extents[1:])], np.float32))
            tokens.node.append(helper.make_node("Constant", [], [value.name], value=empty))
    kept = onnx.GraphProto(output=prompts.output)
    del tokens.output[:]
    tokens.output.extend(kept.output)


def _value(tensor: onnx.TensorProto) -> tuple[tuple[int, ...], int, bytes]:
    return tuple(tensor.dims), tensor.data_type, tensor.raw_data


def _is_small(tensor: onnx.TensorProto) -> bool:
    """Whether optimum leaves a constant in its branch."""
    whole = (TensorProto.INT32, TensorProto.INT64)
    return not tensor.dims or (len(tensor.dims) == 1 and tensor.data_type in whole)


def _copied(model: onnx.ModelProto) -> onnx.ModelProto:
    made = onnx.ModelProto()
    made.CopyFrom(model)
    return made


def _name_axis(graph: onnx.GraphProto, name: str, extent: str) -> None:
    for value in graph.input:
        if value.name == name:
            value.type.tensor_type.shape.dim[1].dim_param = extent


def _keep_inputs(graph: onnx.GraphProto, inputs: Iterable[onnx.ValueInfoProto]) -> None:
    kept = onnx.GraphProto(input=list(inputs))
    del graph.input[:]
    graph.input.extend(kept.input)


def _keep_needed(graph: onnx.GraphProto) -> None:
    """Leave out what no output needs."""
    needed = {value.name for value in graph.output}
    nodes: list[onnx.NodeProto] = []
    for node in reversed(graph.node):
        if needed & set(node.output):
            needed |= set(node.input)
            nodes.insert(0, node)
    kept = onnx.GraphProto(node=nodes, initializer=[one for one in graph.initializer if one.name in needed])
    _keep_inputs(graph, [value for value in graph.input if value.name in needed])
    for field in ("node", "initializer"):
        del getattr(graph, field)[:]
        getattr(graph, field).extend(getattr(kept, field))


def main() -> int:
    """Write the three files of a model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=[*decoders.SHAPES, *whisper.SHAPES])
    parser.add_argument("-o", "--output", type=Path, default=Path())
    arguments = parser.parse_args()
    two = two_decoders(arguments.model)
    files = {"decoder_model": two.prompts, "decoder_with_past_model": two.tokens, "decoder_model_merged": merged(two)}
    for name, model in files.items():
        path = arguments.output / f"{name}.onnx"
        onnx.save(model, str(path))
        print(path, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

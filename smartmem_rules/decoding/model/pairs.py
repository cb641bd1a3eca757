"""Language models of two parts, as optimum exports them: a decoder for prompts without a cache, and one behind it.

They come as two files (`decoder_model.onnx`, `decoder_with_past_model.onnx`), or as the branches of an `If` in one
(`decoder_model_merged.onnx`), between which the input `use_cache_branch` chooses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import onnx
from onnx import AttributeProto, helper

from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.decoding.model.graphs import LARGE
from smartmem_rules.decoding.model.interface import (
    CACHE_PLACES,
    LOGITS,
    MASK,
    POSITIONS,
    Further,
    Interface,
    check_types,
    further_of,
    given_inputs,
    interface_of,
    refuse_growing,
    shape_text,
    tokens_of,
)
from smartmem_rules.decoding.model.unchanging import computed_once
from smartmem_rules.graph.cached import PRESENT, present_of
from smartmem_rules.graph.loading import needed_tensors, node_inputs
from smartmem_rules.graph.weights import tensor_value

BRANCH = "use_cache_branch"
"""The input of a merged model: whether there is a cache."""
_COMPARED = 4096
"""Elements at the beginning of weights by which two files are compared."""
_APART = "; give the two files of one export"


def is_merged(model: onnx.ModelProto) -> bool:
    """Whether a model is two decoders, of which an input chooses one."""
    return any(value.name == BRANCH for value in model.graph.input)


def take_branch(model: onnx.ModelProto, behind: bool) -> None:
    """Turn a merged model into one of its two decoders.

    Args:
        behind: whether it is the one behind a cache.

    Raises:
        GenerateError: the input that chooses decides something else than one `If`.
    """
    graph = model.graph
    readers = [node for node in graph.node if BRANCH in node_inputs(node)]
    if len(readers) != 1 or readers[0].op_type != "If" or readers[0].input[0] != BRANCH:
        listed = ", ".join(f"{node.op_type} {node.name!r}" for node in readers) or "nothing"
        raise GenerateError(
            f"the input {BRANCH} has to choose between the two branches of one If, and it is read by {listed}; give "
            "the two decoders as two files"
        )
    (chooser,) = readers
    wanted = "then_branch" if behind else "else_branch"
    body = next(one.g for one in chooser.attribute if one.name == wanted and one.type == AttributeProto.GRAPH)
    renamed = [
        helper.make_node("Identity", [value.name], [name])
        for value, name in zip(body.output, chooser.output, strict=True)
        if value.name != name
    ]
    place = next(n for n, node in enumerate(graph.node) if node.output == chooser.output)
    nodes = [*graph.node[:place], *body.node, *renamed, *graph.node[place + 1 :]]
    own = {tensor.name for tensor in body.initializer}
    outer = [tensor for tensor in graph.initializer if tensor.name not in own]
    kept = onnx.GraphProto(node=nodes, initializer=[*outer, *body.initializer])
    for field in ("node", "initializer"):
        del getattr(graph, field)[:]
        getattr(graph, field).extend(getattr(kept, field))
    _leave_out_unread(graph)


def _leave_out_unread(graph: onnx.GraphProto) -> None:
    """Drop the inputs that the other branch reads, and presents of pasts that this one leaves as they are."""
    makers = {name: node for node in graph.node for name in node.output}
    kept = [value for value in graph.output if not _is_left(value.name, makers.get(value.name))]
    outputs = onnx.GraphProto(output=kept)
    del graph.output[:]
    graph.output.extend(outputs.output)
    needed = needed_tensors(graph)
    inputs = onnx.GraphProto(input=[value for value in graph.input if value.name in needed])
    del graph.input[:]
    graph.input.extend(inputs.input)


def _is_left(name: str, maker: onnx.NodeProto | None) -> bool:
    """Whether a present is the past as it was, or the empty constant that stands for it where branches are merged."""
    if maker is None or not name.startswith(PRESENT):
        return False
    return maker.op_type == "Constant" or (maker.op_type == "Identity" and present_of(maker.input[0]) == name)


def paired_interface(prompts: onnx.ModelProto, tokens: onnx.ModelProto) -> Interface:
    """What the inputs and outputs of two decoders are together.

    Args:
        prompts: the one without a cache.
        tokens: the one behind it.

    Raises:
        GenerateError: one of them is no such decoder, or they do not belong together.
    """
    inputs, outputs = given_inputs(prompts), {value.name: value for value in prompts.graph.output}
    if pasts := [name for name in inputs if present_of(name) is not None]:
        raise GenerateError(
            f"the model for prompts has to compute without a cache, and has the input {pasts[0]!r}; give it alone, or "
            "the two models the other way round (decoder_model.onnx, with_past=decoder_with_past_model.onnx)"
        )
    own = interface_of(tokens)
    name = tokens_of(inputs)
    if name != own.tokens:
        raise GenerateError(f"one model reads {name}, and the one behind the cache {own.tokens}{_APART}")
    if LOGITS not in outputs:
        raise GenerateError(f"the model for prompts has no output {LOGITS}; its outputs are {', '.join(outputs)}")
    check_types(inputs, name)
    carried = tuple(one.name for one in own.further if present_of(one.name) in outputs)
    taken = {str(present_of(one)): one for one in (*(tensor.past for tensor in own.cached), *carried)}
    _check_alike({one for one in outputs if one.startswith(PRESENT)}, taken)
    for present, past in taken.items():
        _check_shapes(outputs[present], given_inputs(tokens)[past])
    further = further_of(inputs, name, ())
    refuse_growing(further, {dim.dim_param for dim in inputs[name].type.tensor_type.shape.dim[1:]} - {""}, name)
    later = [one for one in own.further if one.name not in carried]
    return Interface(
        tokens=name,
        mask=own.mask or MASK in inputs,
        positions=own.positions or POSITIONS in inputs,
        cached=own.cached,
        further=tuple(_together(further, later)),
        carried=carried,
        places=own.places or CACHE_PLACES in inputs,
    )


def _check_alike(given: Collection[str], taken: Mapping[str, str]) -> None:
    """Refuse a model that gives other keys and values than the one behind it takes.

    Args:
        taken: inputs by the names of the outputs that they want.
    """
    unread, missing = sorted(set(given) - set(taken)), sorted(set(taken) - set(given))
    if unread:
        raise GenerateError(
            f"the two models do not belong together: the first gives {unread[0]!r}, and the one behind the cache takes "
            f"nothing of it{_APART}"
        )
    if missing:
        raise GenerateError(
            f"the two models do not belong together: the one behind the cache takes {taken[missing[0]]!r}, and the "
            f"first has no output {missing[0]!r}{_APART}"
        )


def _check_shapes(present: onnx.ValueInfoProto, past: onnx.ValueInfoProto) -> None:
    given, taken = (value.type.tensor_type for value in (present, past))
    pairs = zip(given.shape.dim, taken.shape.dim, strict=False)
    fits = all(a.dim_value == b.dim_value for a, b in pairs if a.dim_value and b.dim_value)
    if not fits or given.elem_type != taken.elem_type or len(given.shape.dim) != len(taken.shape.dim):
        raise GenerateError(
            f"the two models do not belong together: the first gives {present.name!r} {shape_text(present)}, and the "
            f"one behind the cache takes {past.name!r} {shape_text(past)}{_APART}"
        )


def _together(first: Collection[Further], second: Collection[Further]) -> Iterator[Further]:
    """The further inputs of two models, each once."""
    yield from first
    known = {one.name: one for one in first}
    for one in second:
        other = known.get(one.name)
        if other is None:
            yield one
        elif not _fits(one, other):
            raise GenerateError(
                f"the two models do not belong together: the further input {one.name} is {list(other.shape)} in one "
                f"and {list(one.shape)} in the other{_APART}"
            )


def _fits(one: Further, other: Further) -> bool:
    pairs = zip(one.shape, other.shape, strict=False)
    numbers = ((a, b) for a, b in pairs if isinstance(a, int) and isinstance(b, int))
    return one.dtype == other.dtype and len(one.shape) == len(other.shape) and all(a == b for a, b in numbers)


def carried_once(prompts: onnx.ModelProto, interface: Interface) -> tuple[str, ...]:
    """The outputs of the decoder for prompts that the one behind the cache reads in each step.

    Raises:
        GenerateError: one of them depends on tokens.
    """
    names = tuple(str(present_of(one)) for one in interface.carried)
    fixed = computed_once(prompts.graph, interface)
    if moving := [name for name in names if name not in fixed]:
        raise GenerateError(
            f"the model behind the cache leaves {', '.join(moving)} as it is, and the first computes it of more than "
            f"further inputs{_APART}"
        )
    return names


def read_carried(model: onnx.ModelProto, interface: Interface) -> None:
    """Let the decoder behind a cache read what the other one gives once under the name that it has there."""
    names: Mapping[str, str] = {one: str(present_of(one)) for one in interface.carried}
    for value in model.graph.input:
        value.name = names.get(value.name, value.name)
    if names:
        aliases = [helper.make_node("Identity", [new], [old]) for old, new in names.items()]
        kept = onnx.GraphProto(node=[*aliases, *model.graph.node])
        del model.graph.node[:]
        model.graph.node.extend(kept.node)


def check_weights(
    prompts: onnx.ModelProto, folder: Path | None, tokens: onnx.ModelProto, other_folder: Path | None
) -> None:
    """Refuse two files of which no weight is in both: they are of two models, or of two states of one.

    Raises:
        GenerateError: that is so.
        GraphError: a data file is missing or damaged.
    """
    first = _beginnings(prompts, folder)
    second = _beginnings(tokens, other_folder)
    if first and second and not first & second:
        raise GenerateError(
            "the two models do not belong together: no weight of the first is one of the second; give the two files "
            "of one export of one model"
        )


def _beginnings(model: onnx.ModelProto, folder: Path | None) -> set[tuple[tuple[int, ...], bytes]]:
    """Shapes of large constants, and how their values begin."""
    large = (one for one in model.graph.initializer if _elements(one) > LARGE)
    return {
        (tuple(one.dims), tensor_value(one.name, one, folder, mapped=True).reshape(-1)[:_COMPARED].tobytes())
        for one in large
    }


def _elements(tensor: onnx.TensorProto) -> int:
    count = 1
    for extent in tensor.dims:
        count *= extent
    return count

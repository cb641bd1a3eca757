"""What the inputs and outputs of a language model are, by their names as transformers, optimum and ONNX Runtime write
them: `input_ids`, `attention_mask`, `position_ids`, `cache_position`, `past_key_values.N.key` with `present.N.key`,
`logits`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import onnx
from onnx import TensorProto

from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.graph.cached import PRESENT, present_of
from smartmem_rules.graph.weights import dtype_name
from smartmem_rules.records import dataclass

TOKENS = ("input_ids", "decoder_input_ids")
MASK = "attention_mask"
POSITIONS = "position_ids"
CACHE_PLACES = "cache_position"
LOGITS = "logits"
RANK = 4
"""Of a cached tensor: sequences, heads, positions and channels."""


@dataclass(frozen=True, kw_only=True)
class CachedTensor:
    """Keys or values of a layer.

    Attributes:
        past, present: the input and the output of the model.
        shape: its extents; those of the sequences and of the positions are 0.
        axis: that of the positions.
        dtype: ONNX's number of the element type.
    """

    past: str
    present: str
    shape: tuple[int, ...]
    axis: int
    dtype: int


@dataclass(frozen=True, kw_only=True)
class Further:
    """An input that stays the same over the steps, such as the states of an encoder.

    Attributes:
        shape: its extents; open ones by their names, and 0 for as many as there are sequences.
        dtype: ONNX's number of the element type.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: int


@dataclass(frozen=True, kw_only=True)
class Interface:
    """The inputs and outputs that generation feeds and reads.

    Attributes:
        tokens: the input of the token numbers, [sequences, tokens].
        mask: whether there is an input that says which tokens count, [sequences, tokens of the past and new ones].
        positions: whether there is an input of the tokens' positions, [sequences, tokens].
        cached: keys and values of all layers.
        places: whether there is an input of the new tokens' places in the cache, [tokens].
        further: inputs that the caller gives once for all steps.
        carried: of two decoders, the inputs of the one behind the cache that the other one gives once for all steps.
    """

    tokens: str
    mask: bool
    positions: bool
    cached: tuple[CachedTensor, ...]
    further: tuple[Further, ...] = ()
    carried: tuple[str, ...] = ()
    places: bool = False


def interface_of(model: onnx.ModelProto) -> Interface:
    """What the inputs and outputs of a model are.

    Raises:
        GenerateError: the model has no cache, or inputs or outputs that generation does not know.
    """
    inputs = given_inputs(model)
    outputs = {value.name: value for value in model.graph.output}
    tokens = tokens_of(inputs)
    alike = {name: value for name, value in inputs.items() if present_of(name) is not None}
    grown = _open(inputs[tokens], 1) | {part for value in alike.values() for part in _past_extents(value, outputs)}
    cached = tuple(_cached(inputs, outputs, grown))
    if not cached:
        first = [name for name in outputs if name.startswith(PRESENT)]
        raise GenerateError(
            "the model has no past_key_values.* inputs with present.* outputs, so that every token would compute all "
            "before it again; "
            + (
                "it gives a cache, so give the model behind it as well (with_past, --with-past FILE)"
                if first
                else "export the model with its cache (optimum: --task text-generation-with-past)"
            )
        )
    if LOGITS not in outputs:
        raise GenerateError(f"the model has no output {LOGITS}; its outputs are {_listed(outputs)}")
    further = further_of(inputs, tokens, [tensor.past for tensor in cached])
    refuse_growing(further, grown, tokens)
    check_types(inputs, tokens)
    return Interface(
        tokens=tokens, mask=MASK in inputs, positions=POSITIONS in inputs, cached=cached, further=further,
        places=CACHE_PLACES in inputs,
    )  # fmt: skip


def given_inputs(model: onnx.ModelProto) -> dict[str, onnx.ValueInfoProto]:
    """The inputs that are no constants, by name."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return {value.name: value for value in model.graph.input if value.name not in constants}


def tokens_of(inputs: Mapping[str, onnx.ValueInfoProto]) -> str:
    """The input of the token numbers.

    Raises:
        GenerateError: there is none.
    """
    found = next((name for name in TOKENS if name in inputs), None)
    if found is None:
        raise GenerateError(f"the model has no input {' or '.join(TOKENS)}; its inputs are {_listed(inputs)}")
    return found


def further_of(inputs: Mapping[str, onnx.ValueInfoProto], tokens: str, cached: Collection[str]) -> tuple[Further, ...]:
    """The inputs that generation does not know by their names.

    Args:
        cached: those that are keys and values of earlier tokens.
    """
    known = {tokens, MASK, POSITIONS, CACHE_PLACES, *cached}
    return tuple(_further(value, inputs[tokens]) for name, value in inputs.items() if name not in known)


def refuse_growing(further: Iterable[Further], grown: Collection[str], tokens: str) -> None:
    """Refuse further inputs that have one of the extents that grow with the tokens.

    Raises:
        GenerateError: there is one.
    """
    unknown = [one.name for one in further if set(grown) & set(one.shape)]
    if unknown:
        raise GenerateError(
            f"generation does not know what to give for {', '.join(unknown)} in each step; it feeds {tokens}, {MASK}, "
            f"{POSITIONS}, {CACHE_PLACES} and past_key_values.*, and further inputs that do not grow with the tokens: "
            "export the model without other inputs, or make them constants"
        )


def check_types(inputs: Mapping[str, onnx.ValueInfoProto], tokens: str) -> None:
    """Refuse tokens, masks, positions and places of another type than int64.

    Raises:
        GenerateError: there is one.
    """
    for name in (tokens, MASK, POSITIONS, CACHE_PLACES):
        kind = inputs[name].type.tensor_type.elem_type if name in inputs else TensorProto.INT64
        if kind != TensorProto.INT64:
            raise GenerateError(
                f"the input {name!r} holds {dtype_name(kind)}, and generation feeds int64; export the model again"
            )


def refuse_single_tokens(model: onnx.ModelProto, interface: Interface) -> None:
    """Refuse a model that takes one token at a time where it has to take prompts.

    Raises:
        GenerateError: its input of tokens has one place.
    """
    dims = given_inputs(model)[interface.tokens].type.tensor_type.shape.dim
    if len(dims) > 1 and dims[1].dim_value == 1:
        raise GenerateError(
            f"the input {interface.tokens} takes one token of each sequence, and a prompt has several; give the model "
            "for prompts, and this one behind it (with_past, --with-past FILE), or export it with an open extent"
        )


def _open(value: onnx.ValueInfoProto, axis: int) -> set[str]:
    """The name of an open extent of an input, where it has one."""
    dims = value.type.tensor_type.shape.dim
    return {dims[axis].dim_param} - {""} if axis < len(dims) else set()


def _past_extents(value: onnx.ValueInfoProto, outputs: Mapping[str, onnx.ValueInfoProto]) -> set[str]:
    """The names of the open extents of a cached tensor that grows."""
    if present_of(value.name) not in outputs:
        return set()
    return {name for axis in range(1, len(value.type.tensor_type.shape.dim)) for name in _open(value, axis)}


def _further(value: onnx.ValueInfoProto, tokens: onnx.ValueInfoProto) -> Further:
    sequences = _open(tokens, 0)
    shape = tuple(
        0
        if dim.dim_param in sequences
        else dim.dim_value
        if dim.HasField("dim_value")
        else dim.dim_param or f"{value.name}.{axis}"
        for axis, dim in enumerate(value.type.tensor_type.shape.dim)
    )
    return Further(name=value.name, shape=shape, dtype=value.type.tensor_type.elem_type)


def _cached(
    inputs: Mapping[str, onnx.ValueInfoProto], outputs: Mapping[str, onnx.ValueInfoProto], grown: set[str]
) -> Iterator[CachedTensor]:
    for name, value in inputs.items():
        present = present_of(name)
        if present is None:
            continue
        if present not in outputs:
            if not grown & {one for axis in range(1, RANK) for one in _open(value, axis)}:
                continue  # keys of an encoder's states, which stay as they are
            raise GenerateError(f"the input {name!r} has no output {present!r} beside it; export the model again")
        extents = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        unknown = [axis for axis, extent in enumerate(extents) if not extent and axis]
        if len(extents) != RANK or len(unknown) != 1:
            raise GenerateError(
                f"the input {name!r} has to be [sequences, heads, positions, channels] with numbers of heads and "
                f"channels that are known, and is {shape_text(value)}; export the model again"
            )
        shape = (0, *extents[1:])
        yield CachedTensor(
            past=name, present=present, shape=shape, axis=unknown[0], dtype=value.type.tensor_type.elem_type
        )


def shape_text(value: onnx.ValueInfoProto) -> str:
    dims = value.type.tensor_type.shape.dim
    return f"[{', '.join(str(dim.dim_value) if dim.HasField('dim_value') else dim.dim_param or '?' for dim in dims)}]"


def _listed(values: Mapping[str, onnx.ValueInfoProto]) -> str:
    return ", ".join(values) or "none"

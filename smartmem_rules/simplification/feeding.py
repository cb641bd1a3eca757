"""Random inputs of a model, at several values of its open dimensions."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import onnx

from smartmem_rules.errors import SmartmemError
from smartmem_rules.graph.loading import input_types
from smartmem_rules.graph.model import GraphError
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.feeds import Array, random_feeds

RUNS = 3
"""Random inputs on which both models run, besides those of empty dimensions."""
_DIFFERENT = (2, 3, 5, 4, 7)
"""Extents of different dimensions, so that one in place of another is found."""
_MULTIPLES = (8, 32)
"""What extents of images and signals are multiples of, all but that of the first dimension."""
_EQUAL = (2, 3, 4, 8, 16, 32, 64, 7)
"""Extents that all dimensions are tried with where different ones do not fit each other."""
_WORDS = ("", "a", "A b", "z\u00e9ro", "7")
"""What inputs of text hold."""

Feeds = Mapping[str, Array]
Extents = Mapping[str, int]


class CheckError(SmartmemError):
    """ONNX Runtime cannot run the input, so that no result can be compared with it."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The inputs of a model of which random ones are drawn.

    Attributes:
        numbers: a graph of those that hold numbers.
        texts: those that hold text.
        constants: the names of the others, which have a value.
        free: the names of dimensions that may have any extent.
        derived: of the others the products whose sum they are.
        bounds: for inputs that hold indices how many values they can take, where that is known.
    """

    numbers: onnx.GraphProto
    texts: Sequence[onnx.ValueInfoProto]
    constants: Collection[str]
    free: Sequence[str]
    derived: Mapping[str, Sequence[Sequence[str]]]
    bounds: Mapping[str, int]

    @staticmethod
    def of(model: onnx.ModelProto, bounds: Mapping[str, int]) -> Inputs:
        """The inputs of a model."""
        constants = {tensor.name for tensor in model.graph.initializer}
        texts = [value for value in model.graph.input if value.type.tensor_type.elem_type == onnx.TensorProto.STRING]
        names = _open_dimensions(model.graph, constants)
        derived = {name: terms for name in names if (terms := _sum_of(name, names)) is not None}
        return Inputs(
            numbers=onnx.GraphProto(input=[value for value in model.graph.input if value not in texts]),
            texts=[value for value in texts if value.name not in constants],
            constants=constants,
            free=[name for name in names if name not in derived],
            derived=derived,
            bounds=bounds,
        )

    def draws(self) -> Iterator[Feeds]:
        """Random inputs: at first as many as are wanted for each of some extents, then more with small indices."""
        small = dict.fromkeys((value.name for value in self.numbers.input), 1)
        for bounds in (self.bounds, {name: 1 for name in self.bounds}, small):
            for seed, extents in enumerate(_extents(self.free)):
                yield self._drawn(extents, seed, bounds)

    def empty_draws(self, ran: Feeds) -> Iterator[Feeds]:
        """Random inputs for each dimension without an element, beside extents with which the model has run."""
        extents = self._extents_of(ran)
        for seed, name in enumerate(self.free):
            yield self._drawn({**extents, name: 0}, seed, self.bounds)

    def _drawn(self, extents: Extents, seed: int, bounds: Mapping[str, int]) -> Feeds:
        """Raises CheckError where an input can have no random elements."""
        dims = dict(extents)
        for name, terms in self.derived.items():
            dims[name] = sum(math.prod(dims[f] if f in dims else int(f) for f in factors) for factors in terms)
        numbers = with_extents(self.numbers, dims)
        try:
            types = input_types(numbers, self.constants, {})
        except GraphError as error:
            raise CheckError(f"no random inputs can be made, so nothing can be checked: {error}") from error
        return {**random_feeds(types, seed, bounds), **{one.name: _words(one, dims, seed) for one in self.texts}}

    def _extents_of(self, ran: Feeds) -> Extents:
        found = {}
        for value in (*self.numbers.input, *self.texts):
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                if value.name in ran and not dim.HasField("dim_value"):
                    found[_dimension(value, axis)] = ran[value.name].shape[axis]
        return {name: found[name] for name in self.free}


def _extents(names: Sequence[str]) -> Iterator[Extents]:
    """Extents for dimensions: different ones, ones, then what fits fewer models."""
    if not names:
        yield from ({},) * RUNS
        return
    for shift in range(RUNS):
        yield {name: _DIFFERENT[(place + shift) % len(_DIFFERENT)] for place, name in enumerate(names)}
        if shift == 0:
            yield dict.fromkeys(names, 1)
    for factor in _MULTIPLES:
        different = {name: factor * _DIFFERENT[place % len(_DIFFERENT)] for place, name in enumerate(names)}
        yield {**different, names[0]: _DIFFERENT[0]} if len(names) > 1 else different
    for extent in _EQUAL:
        yield dict.fromkeys(names, extent)


def _sum_of(name: str, names: Collection[str]) -> list[list[str]] | None:
    """The sum of products of other dimensions and numbers as which exporters write an extent, None for a plain name."""
    terms = [[factor.strip() for factor in term.split("*")] for term in name.split("+")]
    factors = [factor for term in terms for factor in term]
    if len(factors) < 2 or not all(factor in names or factor.isdecimal() for factor in factors):
        return None
    return terms if all(_sum_of(factor, ()) is None for factor in factors) else None


def with_extents(graph: onnx.GraphProto, dims: Extents) -> onnx.GraphProto:
    """Inputs with numbers as their extents, of which any may be 0."""
    made = onnx.GraphProto()
    made.CopyFrom(graph)
    for value, declared in zip(made.input, graph.input, strict=True):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value") and _dimension(declared, axis) in dims:
                dim.dim_value = dims[_dimension(declared, axis)]
    return made


def _words(value: onnx.ValueInfoProto, dims: Extents, seed: int) -> Array:
    """Random text for an input."""
    shape = [
        dim.dim_value if dim.HasField("dim_value") else dims[_dimension(value, axis)]
        for axis, dim in enumerate(value.type.tensor_type.shape.dim)
    ]
    return np.random.default_rng(seed).choice(np.array(_WORDS, object), shape)


def _dimension(value: onnx.ValueInfoProto, axis: int) -> str:
    """What an open dimension of an input is called."""
    return value.type.tensor_type.shape.dim[axis].dim_param or f"{value.name}.{axis}"


def _open_dimensions(graph: onnx.GraphProto, constants: Collection[str]) -> list[str]:
    found: dict[str, None] = {}
    for value in graph.input:
        if value.name not in constants and value.type.HasField("tensor_type"):
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                if not dim.HasField("dim_value"):
                    found[_dimension(value, axis)] = None
    return list(found)

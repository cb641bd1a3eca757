"""Inputs of a plan: checking what a user gives, and drawing some at random."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from smartmem_rules.graph.errors import GraphError
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.extents import Dimension, at, dimensions, is_symbolic, shape_text
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.tensor.types import TensorType

Array = np.ndarray[Any, np.dtype[Any]]
DEFAULT_SEED = 0
_SMALL_INTEGERS = 2
"""Random integers are 0 or 1 where nothing says how large they may be: good masks, and indices into anything."""


@dataclass(frozen=True)
class ClosedInputs:
    """The inputs of a plan without open dimensions, by which most feeds are seen to be right at once."""

    expected: tuple[tuple[str, tuple[int, ...], np.dtype[Any]], ...]

    @staticmethod
    def of(types: Mapping[str, TensorType]) -> ClosedInputs | None:
        """None where a dimension is open."""
        if any(is_symbolic(extent) for type_ in types.values() for extent in type_.shape):
            return None
        return ClosedInputs(tuple((name, type_.shape, storage_dtype(type_.dtype)) for name, type_ in types.items()))

    def as_given(self, feeds: Mapping[str, object]) -> dict[str, Array] | None:
        """The feeds, if they are contiguous arrays of all inputs and nothing else; else `check_feeds` says more."""
        found: dict[str, Array] = {}
        for name, shape, dtype in self.expected:
            array = feeds.get(name)
            if type(array) is not np.ndarray or array.dtype != dtype or array.shape != shape:
                return None
            if not array.flags.c_contiguous:
                return None
            found[name] = array
        return found if len(feeds) == len(found) else None


def check_feeds(types: Mapping[str, TensorType], feeds: Mapping[str, object]) -> dict[str, Array]:
    """The inputs as contiguous arrays.

    Raises:
        GraphError: a name, shape or element type is wrong; the message lists all that is.
    """
    problems: list[str] = []
    for name in feeds:
        if name not in types:
            from smartmem_rules.language.fixes import did_you_mean  # start-up time

            near = did_you_mean(str(name), types)
            problems.append(f"there is no input {name!r}; {near or 'the inputs are ' + _listed(types)}")
    arrays: dict[str, Array] = {}
    for name, type_ in types.items():
        if name not in feeds:
            problems.append(f"the input {name!r}, {type_}, is missing")
            continue
        array = np.asarray(feeds[name])
        wanted = storage_dtype(type_.dtype)
        if not _fits(array.shape, type_.shape):
            problems.append(
                f"the input {name!r} has shape {list(array.shape)}; the model takes {shape_text(type_.shape)}"
            )
        if array.dtype != wanted:
            problems.append(f"the input {name!r} has elements of type {array.dtype}; the model takes {type_.dtype}")
        arrays[name] = np.ascontiguousarray(array).reshape(array.shape)
    if not problems:
        problems = _extent_problems(types, arrays)
    if problems:
        raise GraphError("\n".join(problems))
    return arrays


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether a shape is the wanted one, but for the values of open dimensions."""
    return len(shape) == len(wanted) and all(is_symbolic(w) or n == w for n, w in zip(shape, wanted, strict=True))


def _open_axes(types: Mapping[str, TensorType], arrays: Mapping[str, Array]) -> Iterator[tuple[Dimension, str, int]]:
    """The dimensions that inputs have, with the input and the extent there."""
    for name, array in arrays.items():
        for extent, given in zip(types[name].shape, array.shape, strict=True):
            for dimension in dimensions(extent):
                yield dimension, name, given


def _extent_problems(types: Mapping[str, TensorType], arrays: Mapping[str, Array]) -> list[str]:
    problems: list[str] = []
    first: dict[Dimension, tuple[str, int]] = {}
    for dimension, name, given in _open_axes(types, arrays):
        if not dimension.low <= given <= dimension.high:
            problems.append(
                f"the dimension {dimension.name!r} of the input {name!r} is {given}; the plan is made for "
                f"{dimension.low} to {dimension.high}"
            )
        other, value = first.setdefault(dimension, (name, given))
        if value != given:
            problems.append(f"the dimension {dimension.name!r} is {value} in {other!r} and {given} in {name!r}")
    return problems


def extents_of(types: Mapping[str, TensorType], arrays: Mapping[str, Array]) -> dict[str, int]:
    """The extents of the open dimensions that inputs (which `check_feeds` has passed) have, by name."""
    return {dimension.name: given for dimension, _, given in _open_axes(types, arrays)}


def given_extents(types: Mapping[str, TensorType], arrays: Mapping[str, Array]) -> dict[str, int]:
    """The extents of the open dimensions that some of the inputs have, as far as their ranks are right."""
    fitting = {n: a for n, a in arrays.items() if n in types and a.ndim == len(types[n].shape)}
    return extents_of(types, fitting)


def shape_at(shape: tuple[int, ...], values: Mapping[str, int]) -> tuple[int, ...]:
    """The shape for extents of the open dimensions."""
    return tuple(int(at(extent, values)) for extent in shape)


TRIALS = 5
"""Combinations of extents at which a plan of ranges is checked."""


def trial_extents(open_: Sequence[Dimension]) -> list[dict[str, int]]:
    """Extents to try: the least and the greatest of each dimension and some between, in changing combinations."""
    if not open_:
        return [{}]
    points = []
    for dimension in open_:
        span = dimension.high - dimension.low
        inside = {dimension.low + span * part // 100 for part in (7, 29, 61)}
        points.append(sorted({dimension.low, dimension.high} | inside))
    trials = [
        {d.name: own[(number + shift) % len(own)] for shift, (d, own) in enumerate(zip(open_, points, strict=True))}
        for number in range(max(map(len, points)))
    ]
    return trials[:TRIALS]


def chosen_extents(open_: Sequence[Dimension], dims: Mapping[str, int] | None) -> dict[str, int]:
    """An extent for each open dimension: the given one, else the greatest.

    Raises:
        GraphError: a name is no open dimension, or a value lies outside its range.
    """
    ranges = {dimension.name: dimension for dimension in open_}
    for name, value in (dims or {}).items():
        if name not in ranges:
            from smartmem_rules.language.fixes import did_you_mean  # start-up time

            near = did_you_mean(name, ranges)
            known = ", ".join(map(str, open_)) or "none"
            raise GraphError(f"the plan has no open dimension {name!r}; {near or 'it has ' + known}")
        if not isinstance(value, int) or not ranges[name].low <= value <= ranges[name].high:
            raise GraphError(f"the dimension {name!r} cannot be {value}; the plan is made for {ranges[name]}")
    return {name: (dims or {}).get(name, dimension.high) for name, dimension in ranges.items()}


def _listed(types: Mapping[str, TensorType]) -> str:
    return ", ".join(f"{name} ({type_})" for name, type_ in types.items()) or "none"


def random_feeds(
    types: Mapping[str, TensorType],
    seed: int = DEFAULT_SEED,
    bounds: Mapping[str, int] | None = None,
    extents: Mapping[str, int] | None = None,
) -> dict[str, Array]:
    """Inputs for a trial: normally distributed numbers, and integers from 0 up to below their bound.

    Args:
        bounds: for integer inputs how many values they can take, where that is known.
        extents: of the open dimensions; by default the greatest.
    """
    generator = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    open_ = {d for type_ in types.values() for extent in type_.shape for d in dimensions(extent)}
    values = chosen_extents(sorted(open_, key=lambda d: d.name), extents)
    for name, type_ in types.items():
        dtype = storage_dtype(type_.dtype)
        shape = shape_at(type_.shape, values)
        if type_.dtype == "bool":
            array = generator.integers(0, 2, shape).astype(bool)
        elif dtype.kind in "iu":
            below = (bounds or {}).get(name, _SMALL_INTEGERS)
            array = generator.integers(0, min(below, np.iinfo(dtype).max), shape).astype(dtype)
        else:
            array = generator.standard_normal(shape, dtype=np.float32).astype(dtype)
        feeds[name] = array
    return feeds


def compare(result: Array, reference: Array) -> tuple[float, float]:
    """The largest difference relative to the reference's largest magnitude, and relative to its spread.

    The spread is the reference's standard deviation.  Values that are not finite have to be the same in both, else
    both numbers are infinite; so are they for different shapes.
    """
    if result.shape != reference.shape:
        return np.inf, np.inf
    if result.size == 0:
        return 0.0, 0.0
    got, wanted = result.astype(np.float64), reference.astype(np.float64)
    finite = np.isfinite(wanted)
    if not np.array_equal(got[~finite], wanted[~finite], equal_nan=True) or not np.isfinite(got[finite]).all():
        return np.inf, np.inf
    if not finite.any():
        return 0.0, 0.0
    difference = float(np.abs(got[finite] - wanted[finite]).max())
    return _relative(difference, float(np.abs(wanted[finite]).max())), _relative(
        difference, float(wanted[finite].std())
    )


def _relative(difference: float, scale: float) -> float:
    # against a reference of zeros there is no relative error: the difference itself counts
    return difference / scale if scale else difference


def worst(errors: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The largest of each."""
    return max((e[0] for e in errors), default=0.0), max((e[1] for e in errors), default=0.0)

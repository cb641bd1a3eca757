"""Inputs of a plan: checking what a user gives, and drawing some at random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from smartmem_rules.graph.errors import GraphError
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.tensor.types import TensorType

Array = np.ndarray[Any, np.dtype[Any]]
DEFAULT_SEED = 0
_SMALL_INTEGERS = 2
"""Random integers are 0 or 1 where nothing says how large they may be: good masks, and indices into anything."""


def check_feeds(types: Mapping[str, TensorType], feeds: Mapping[str, Any]) -> dict[str, Array]:
    """The inputs as contiguous arrays.

    Raises:
        GraphError: a name, shape or element type is wrong; the message lists all that is.
    """
    problems: list[str] = []
    for name in feeds:
        if name not in types:
            from smartmem_rules.language.diagnostics import did_you_mean

            near = did_you_mean(name, types)
            problems.append(f"there is no input {name!r}; {near or 'the inputs are ' + _listed(types)}")
    arrays: dict[str, Array] = {}
    for name, type_ in types.items():
        if name not in feeds:
            problems.append(f"the input {name!r}, {type_}, is missing")
            continue
        array = np.asarray(feeds[name])
        wanted = storage_dtype(type_.dtype)
        if array.shape != type_.shape:
            problems.append(f"the input {name!r} has shape {list(array.shape)}; the model takes {list(type_.shape)}")
        if array.dtype != wanted:
            problems.append(f"the input {name!r} has elements of type {array.dtype}; the model takes {type_.dtype}")
        arrays[name] = np.ascontiguousarray(array).reshape(array.shape)
    if problems:
        raise GraphError("\n".join(problems))
    return arrays


def _listed(types: Mapping[str, TensorType]) -> str:
    return ", ".join(f"{name} ({type_})" for name, type_ in types.items()) or "none"


def random_feeds(
    types: Mapping[str, TensorType], seed: int = DEFAULT_SEED, bounds: Mapping[str, int] | None = None
) -> dict[str, Array]:
    """Inputs for a trial: normally distributed numbers, and integers from 0 up to below their bound.

    Args:
        bounds: for integer inputs how many values they can take, where that is known.
    """
    generator = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    for name, type_ in types.items():
        dtype = storage_dtype(type_.dtype)
        if type_.dtype == "bool":
            array = generator.integers(0, 2, type_.shape).astype(bool)
        elif dtype.kind in "iu":
            below = (bounds or {}).get(name, _SMALL_INTEGERS)
            array = generator.integers(0, min(below, np.iinfo(dtype).max), type_.shape).astype(dtype)
        else:
            array = generator.standard_normal(type_.shape, dtype=np.float32).astype(dtype)
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

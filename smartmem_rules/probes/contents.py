"""What tensors hold when a kernel is asked: small integers that repeat, and constants as their signs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from smartmem_rules.plan.kernel.launch import Launch, Ordered
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.packing import unpacked
from smartmem_rules.provenance.kernels import claim_of
from smartmem_rules.tensor.atoms import Gathered
from smartmem_rules.tensor.expr import Read, own_indices, walk
from smartmem_rules.tensor.primitives import Array, storage_dtype

PERIOD = 17
"""Elements after which contents repeat: few rows differ then, and no distance between tiles is a multiple of it."""
_SIGNED = (0.0, 1.0, -1.0, 2.0, -2.0)
_POSITIVE = (1.0, 2.0, 0.5)
_LARGEST_INTEGER = 5
_EXPONENTS = (-8, 2)
_MASKED = -64.0


def contents(tensor: Stored, number: int, variant: int, bound: int | None, positive: bool) -> Array:
    """What a tensor that is no constant holds, in its shape and in the type in which memory holds it.

    Args:
        number: of the argument: no two hold the same.
        variant: of the question; an odd one asks the numbers of the one before with the other sign, so that what one
            of them cuts off (a rectified unit) is there in the other.
        bound: of integers that are indices, how many values they may have.
        positive: no zeros and no negative numbers, for roots and logarithms.
    """
    dtype = storage_dtype(tensor.storage)
    kind = "f" if dtype.kind == "V" else dtype.kind
    random = np.random.default_rng((PERIOD, number, variant // 2))
    if kind == "b":
        period = random.permutation(np.arange(PERIOD) % 2).astype(dtype)
    elif kind in "iu":
        most = _LARGEST_INTEGER if bound is None else bound
        lowest = 1 if bound is None else 0
        period = (lowest + random.permutation(PERIOD) % max(1, most)).astype(dtype)
    else:
        drawn = random.permutation(np.resize(_POSITIVE if positive else _SIGNED, PERIOD))
        period = (-drawn if variant % 2 and not positive else drawn).astype(dtype)
    return np.resize(period, math.prod(tensor.type.shape)).reshape(tensor.type.shape)


def index_bounds(launch: Launch) -> dict[str, int]:
    """For each tensor that a launch uses as indices how many values these may have."""
    found: dict[str, int] = {}
    for kernel in launch.kernels:
        claim = claim_of(kernel)
        indices = [index for store in claim.stores for index in store.indices]
        for value in claim.values:
            indices += [index for node in walk(value) for index in own_indices(node)]
        for index in indices:
            for atom, _ in index.terms:
                if isinstance(atom, Gathered):
                    found[atom.tensor] = min(found.get(atom.tensor, atom.extent), atom.extent)
    return found


def computes_factors(launch: Launch) -> bool:
    """Whether packed factors of a launch are computed from constants, not their elements in another order."""
    for kernel in launch.kernels:
        if kernel.template == "winograd":
            return True
        c = kernel.contraction
        if c is not None and not all(isinstance(b, Read) for b in (c.b, *(part.b for part in kernel.parts))):
            return True
    return False


def replaceable(launch: Launch) -> bool:
    """Whether each constant of a launch is an argument, or packed factors hold its elements."""
    return not computes_factors(launch) and not (isinstance(launch, Ordered) and launch.held)


def exponent_of(values: Iterable[Array]) -> int:
    """The power of two next to the size of some constants, within bounds: probes keep the scale of the model."""
    squares, count = 0.0, 0
    for array in values:
        if array.dtype.kind != "f" or not array.size:
            continue
        finite = array[np.isfinite(array)]
        squares += float(np.square(finite, dtype=np.float64).sum())
        count += finite.size
    size = math.sqrt(squares / count) if count else 0.0
    return 0 if not math.isfinite(size) or size == 0.0 else int(np.clip(round(math.log2(size)), *_EXPONENTS))


def excludes(values: Array) -> bool:
    """Whether a constant leaves elements out by its size: zeros, and numbers so far below them that exp is 0.

    Its elements stay what they are: with small numbers in their place, no row of a softmax is masked.
    """
    if values.dtype.kind != "f" or not values.size or not (values == 0).any():
        return False
    return bool((values <= _MASKED).any()) and bool(((values <= _MASKED) | (values == 0)).all())


def given_constants(
    names: Collection[str], tensors: Mapping[str, Stored], constants: Mapping[str, Array]
) -> dict[str, Array]:
    """The values of constants as kernels' expressions read them, in the types in which memory holds them."""
    found = {}
    for name in names:
        stored = tensors.get(name)
        if name in constants:
            storage = constants[name].dtype if stored is None else storage_dtype(stored.storage)
            found[name] = constants[name].astype(storage, copy=False)
        elif stored is not None and stored.packed is not None:
            found[name] = unpacked(stored.packed, stored.layout, stored.type.shape)
    return found

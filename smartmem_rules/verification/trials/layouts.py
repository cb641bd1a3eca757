"""Judges layouts: packing is a bijection onto a tensor's elements, for all ranks, orders and paddings."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

import numpy as np

from smartmem_rules.language.blocks.keys import read
from smartmem_rules.language.blocks.level import LayoutWeights
from smartmem_rules.language.syntax import Block
from smartmem_rules.plan.kernel.addressing import offset, texel
from smartmem_rules.plan.kernel.model import Layout, Stored
from smartmem_rules.plan.kernel.packing import pack
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.verification.instances.draws import Draws
from smartmem_rules.verification.semantics.domains import Array, Domain
from smartmem_rules.verification.semantics.evaluate import Points


@dataclass
class LayoutOutcome:
    """What the trials of a layout rule gave."""

    trials: int = 0
    failure: str | None = None


def test_layouts(block: Block, seed: int, trials: int) -> LayoutOutcome:
    """Pack tensors in all layouts that the engine makes and find every element again where kernels look for it."""
    outcome = LayoutOutcome(failure=_weights(block))
    source = random.Random(seed)
    draws = Draws(source)
    while outcome.trials < trials and outcome.failure is None:
        rank = outcome.trials % 7
        shape = draws.extents(rank)
        for layout in _layouts(shape, source):
            outcome.trials += 1
            outcome.failure = _wrong_packing(shape, layout)
            if outcome.failure is not None:
                break
    return outcome


def _weights(block: Block) -> str | None:
    """A poor read costs more than a poor write, and a gathered one more than a strided one."""
    costs = read(LayoutWeights, block)
    if min(costs.scattered_read, costs.strided_read, costs.scattered_write) <= 0 or costs.sweeps < 1:
        return "a weight is not positive"
    if min(costs.buffer_axes, costs.image_axes) < 1 or costs.copy_gain <= 0:
        return "memory is addressed directly along one axis at least, and a copy has to save something"
    if costs.copies not in (0, 1):
        return f"{costs.copies} further layouts: a tensor has at most one"
    if costs.scattered_read <= costs.strided_read:
        return f"a gathered read weighs {costs.scattered_read}, a strided one {costs.strided_read}"
    if costs.scattered_read <= costs.scattered_write:
        return f"a gathered read weighs {costs.scattered_read}, a scattered write {costs.scattered_write}"
    return None


def _layouts(shape: tuple[int, ...], source: random.Random) -> Iterator[Layout]:
    rank = len(shape)
    order = list(range(rank))
    for last in order or [-1]:
        own = tuple([a for a in order if a != last] + [a for a in order if a == last])
        yield Layout("buffer", own)
        for rows in sorted({0, max(0, rank - 1), source.randint(0, max(0, rank - 1))}):
            yield Layout("image", own, rows, source.randint(0, max(0, rank - 1 - rows)))
    source.shuffle(order)
    yield Layout("buffer", tuple(order))
    if order:
        yield Layout("image", (*order, -1), source.randint(0, rank))


def _wrong_packing(shape: tuple[int, ...], layout: Layout) -> str | None:
    type_ = TensorType("float32", shape)
    values = np.arange(1, math.prod(shape) + 1, dtype=np.float32).reshape(shape)
    packed = pack(values, layout, "float32")
    stored = Stored(name="t", type=type_, layout=layout, role="constant", storage="float32")
    variables = tuple(Var(f"i{axis}", extent) for axis, extent in enumerate(shape))
    indices = tuple(map(variable, variables))
    if layout.memory == "buffer":
        places = [_points(offset(stored, indices), variables)]
    else:
        x, y, lane = texel(stored, indices)
        places = [_points(i, variables) for i in (y, x, lane)]
        width, height = layout.image_size(shape)
        if packed.shape != (height, width, 4):
            return f"{layout} of {list(shape)}: an image of {packed.shape}, not {(height, width, 4)}"
    try:
        found = packed[tuple(np.broadcast_to(p, shape) for p in places)]
    except IndexError as error:
        return f"{layout} of {list(shape)}: {error}"
    if not np.array_equal(found, values):
        place = next(p for p in itertools.product(*map(range, shape)) if found[p] != values[p])
        return f"{layout} of {list(shape)}: element {list(place)} is {found[place]}, not {values[place]}"
    if np.count_nonzero(packed) != values.size:
        return f"{layout} of {list(shape)}: the padding is not zero"
    return None


def _points(index: Index, variables: tuple[Var, ...]) -> Array:
    looping = tuple(v for v in variables)
    return Points({}, Domain())._index(index, looping, None)

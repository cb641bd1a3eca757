"""The address of each element, and the loop variables that it depends on."""

from __future__ import annotations

import math
from collections.abc import Callable, Container

from smartmem_rules.plan.kernel.model import Store, Stored
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, Read, own_indices, walk
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add, div, mod, scale, variable
from smartmem_rules.tensor.substitution import substitute
from smartmem_rules.tensor.views import IndexMap, axis_variables, index_map

VECTORS = ("float32", "float16", "bfloat16")
"""What is read and written several elements at a time."""
INTEGER_VECTORS = ("int8", "uint8", "int16", "uint16", "int32")
"""The same on CPUs: integers that are computed in vectors of int."""


def offset(stored: Stored, indices: tuple[Index, ...]) -> Index:
    """The position of an element in a buffer, in elements."""
    found = Index(0)
    for index, stride in zip(indices, stored.layout.strides(stored.type.shape), strict=True):
        found = add(found, scale(index, stride))
    return found


def texel(stored: Stored, indices: tuple[Index, ...]) -> tuple[Index, Index, Index]:
    """The coordinates x, y and the lane of an element in an image."""
    shape, layout = stored.type.shape, stored.layout
    if not layout.order:
        return Index(0), Index(0), Index(0)
    y = Index(0)
    for axis in layout.order[: layout.rows]:
        y = add(scale(y, shape[axis]), indices[axis])
    middle, lane_axis = layout.order[layout.rows : -1], layout.lane_axis
    outside = len(middle) - layout.inner
    x = Index(0)
    for axis in middle[:outside]:
        x = add(scale(x, shape[axis]), indices[axis])
    if lane_axis is not None:
        x = add(scale(x, -(-shape[lane_axis] // 4)), div(indices[lane_axis], 4))
    for axis in middle[outside:]:
        x = add(scale(x, shape[axis]), indices[axis])
    return x, y, Index(0) if lane_axis is None else mod(indices[lane_axis], 4)


def advance(index: Index, var: Var) -> int | None:
    """By how much an index grows with a variable, None where that depends on the place."""
    step = next((c for atom, c in index.terms if atom == var), 0)
    rest = add(index, scale(variable(var), -step))
    return None if var in rest.variables else step


def consecutive(index: Index, lane: Var) -> Index | None:
    """The part of `base + lane` without the lane, None if the index is anything else."""
    return add(index, scale(variable(lane), -1)) if advance(index, lane) == 1 else None


def texel_base(stored: Stored, indices: tuple[Index, ...], lane: Var) -> tuple[Index, Index] | None:
    """The coordinates of the texel that holds the elements over the lane variable, None where no single one does."""
    x, y, place = texel(stored, indices)
    if place != variable(lane) or lane in x.variables or lane in y.variables:
        return None
    return x, y


def side_by_side(stored: Stored, indices: tuple[Index, ...], lane: Var, kinds: Container[str] = VECTORS) -> bool:
    """Whether the elements over the lane variable lie side by side (in one texel of an image).

    Args:
        kinds: the types of elements that are read and written several at a time.
    """
    if stored.layout.memory == "image":
        return lane.extent == 4 and texel_base(stored, indices, lane) is not None
    return stored.storage in kinds and consecutive(offset(stored, indices), lane) is not None


def is_contiguous(
    expr: Expr,
    var: Var,
    width: int,
    stored: Callable[[str], Stored],
    on_chip: Container[str] = (),
    kinds: Container[str] = VECTORS,
) -> bool:
    """Whether some read of an expression advances by one element with a variable and none is scattered by it.

    Args:
        width: elements of a vector.
        stored: the tensor in memory of a name.
        on_chip: what is no tensor in memory; all of it counts as contiguous.
        kinds: the types of elements that are read and written several at a time.
    """
    lane = Var("lane", width)
    blocks = var.extent // width
    base = Var("base", blocks if is_symbolic(blocks) else max(1, blocks))
    values = {var: add(scale(variable(base), width), variable(lane))}
    found = False
    for node in walk(expr):
        if isinstance(node, Read) and any(var in i.variables for i in node.indices):
            indices = tuple(substitute(i, values) for i in node.indices)
            if node.tensor not in on_chip and not side_by_side(stored(node.tensor), indices, lane, kinds):
                return False
            found = True
        elif not isinstance(node, Read) and any(var in i.variables for i in own_indices(node)):
            return False
    return found


@dataclass(frozen=True)
class Written:
    """How the rows of a kernel lie in a tensor that it writes.

    Attributes:
        axes: the tensor's axes that say which row an element belongs to.
        steps: how many neighbouring places of each of them belong to one row.
        backward: from the places along those axes, in steps, to the values of the variables that number the rows.
    """

    axes: tuple[int, ...]
    steps: tuple[int, ...]
    backward: IndexMap

    def row(self, indices: tuple[Index, ...]) -> tuple[Index, ...]:
        """The variables' values for which the element was written."""
        return self.backward.apply(tuple(div(indices[a], step) for a, step in zip(self.axes, self.steps, strict=True)))


def written(store: Store, keys: tuple[Var, ...], shape: tuple[int, ...], parted: bool = False) -> Written | None:
    """None where the rows cannot be told from an element's place.

    Args:
        parted: rows may share an axis, each with some neighbouring places (groups of channels).
    """
    own = set(keys)
    axes = tuple(a for a, index in enumerate(store.indices) if index.variables & own)
    parts = [_part(store.indices[a], own) for a in axes]
    if any(part is None or not (parted or part[1] == 1) for part in parts):
        return None
    rows, steps = [part[0] for part in parts if part], tuple(part[1] for part in parts if part)
    names = axis_variables(tuple(v.extent for v in keys))
    renamed = {v: variable(n) for v, n in zip(keys, names, strict=True)}
    forward = index_map(
        tuple(v.extent for v in keys),
        tuple(-(-shape[a] // step) for a, step in zip(axes, steps, strict=True)),
        tuple(substitute(row, renamed) for row in rows),
    )
    backward = forward.inverse
    return None if backward is None else Written(axes, steps, backward)


def _part(index: Index, own: set[Var]) -> tuple[Index, int] | None:
    """An index as row * step + rest, where the row's variables are the given ones and the rest is below the step."""
    if index.gathered:
        return None
    if not index.variables - own:
        return index, 1
    if any(not isinstance(atom, Var) and atom.variables & own and atom.variables - own for atom, _ in index.terms):
        return None
    mine = [(atom, coefficient) for atom, coefficient in index.terms if atom.variables & own]
    rest = Index(index.constant, tuple(term for term in index.terms if term not in mine))
    step = math.gcd(*(coefficient for _, coefficient in mine))
    low, high = rest.interval
    if low < 0 or high >= step:
        return None
    return Index(0, tuple((atom, coefficient // step) for atom, coefficient in mine)), step

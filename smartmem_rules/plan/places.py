"""Where elements lie, and which loop variables they belong to."""

from __future__ import annotations

import math
from dataclasses import dataclass

from smartmem_rules.plan.model import Store, Stored
from smartmem_rules.tensor.index import Index, Var, add, atom_variables, div, scale, variable
from smartmem_rules.tensor.substitution import substitute
from smartmem_rules.tensor.views import IndexMap, axis_variables, index_map


def position(stored: Stored, indices: tuple[Index, ...]) -> Index:
    """The place of an element in a buffer, in elements."""
    found = Index(0)
    for index, stride in zip(indices, stored.layout.strides(stored.type.shape), strict=True):
        found = add(found, scale(index, stride))
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
    if any(
        not isinstance(atom, Var) and atom_variables(atom) & own and atom_variables(atom) - own
        for atom, _ in index.terms
    ):
        return None
    mine = [(atom, coefficient) for atom, coefficient in index.terms if atom_variables(atom) & own]
    rest = Index(index.constant, tuple(term for term in index.terms if term not in mine))
    step = math.gcd(*(coefficient for _, coefficient in mine))
    low, high = rest.interval
    if low < 0 or high >= step:
        return None
    return Index(0, tuple((atom, coefficient // step) for atom, coefficient in mine)), step

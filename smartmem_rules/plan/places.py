"""Where elements lie, and which loop variables they belong to."""

from __future__ import annotations

from dataclasses import dataclass

from smartmem_rules.plan.model import Store, Stored
from smartmem_rules.tensor.index import Index, Var, add, scale, variable
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
        backward: from the places along those axes to the values of the variables that number the rows.
    """

    axes: tuple[int, ...]
    backward: IndexMap

    def row(self, indices: tuple[Index, ...]) -> tuple[Index, ...]:
        """The variables' values for which the element was written."""
        return self.backward.apply(tuple(indices[a] for a in self.axes))


def written(store: Store, keys: tuple[Var, ...], shape: tuple[int, ...]) -> Written | None:
    """None where the rows cannot be told from an element's place."""
    own = set(keys)
    axes = tuple(a for a, index in enumerate(store.indices) if index.variables & own)
    if any(store.indices[a].variables - own or store.indices[a].gathered for a in axes):
        return None
    names = axis_variables(tuple(v.extent for v in keys))
    renamed = {v: variable(n) for v, n in zip(keys, names, strict=True)}
    forward = index_map(
        tuple(v.extent for v in keys),
        tuple(shape[a] for a in axes),
        tuple(substitute(store.indices[a], renamed) for a in axes),
    )
    backward = forward.inverse
    return None if backward is None else Written(axes, backward)

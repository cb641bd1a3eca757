"""Loop variables over blocks: one for the block and one for the place in it, where an axis is a whole number of blocks.

A solver that is to show that v - v % d + d is at most the extent c d of v has to know that there are c whole blocks.
With v = d a + b, 0 <= a < c and 0 <= b < d, the remainder is b and the block a, and the rest is linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from smartmem_rules.tensor.atoms import Div, Mod, Var
from smartmem_rules.tensor.expr import Condition, condition_indices, map_condition
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.substitution import substitute


def in_blocks(index: Index, conditions: Sequence[Condition]) -> tuple[Index, tuple[Condition, ...]]:
    """An index and conditions of the same values; variables that are divided by a divisor of their extent are split."""
    known = tuple(conditions)
    for _ in range(len(index.variables) + 1):
        found = next(_divided((index, *(i for c in known for i in condition_indices(c)))), None)
        if found is None:
            break
        var, divisor = found
        count = var.extent // divisor
        block, place = Var(f"{var.name} block", count), Var(f"{var.name} place", divisor)
        values = {var: add(scale(variable(block), divisor), variable(place))}
        index = substitute(index, values)
        changed = [map_condition(one, partial(substitute, values=values)) for one in known]
        known = tuple(one for one in changed if not isinstance(one, bool))
    return index, known


def _divided(indices: Sequence[Index]) -> Iterator[tuple[Var, int]]:
    """Variables that are divided by an open divisor of their extent."""
    for index in indices:
        for atom, _ in index.terms:
            if isinstance(atom, Div | Mod):
                inner = atom.value.atom
                if isinstance(inner, Var) and is_symbolic(atom.divisor) and _is_whole(inner.extent, atom.divisor):
                    yield inner, atom.divisor
                yield from _divided((atom.value,))


def _is_whole(extent: int, divisor: int) -> bool:
    return (extent // divisor) * divisor == extent

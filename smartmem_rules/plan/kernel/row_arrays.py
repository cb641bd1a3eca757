"""Arrays of a row on chip: which stages need one, and which stages may share one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from smartmem_rules.plan.kernel.model import INNER, Contraction, Kernel, Stage
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, Read, Reduce, tensors_read, walk
from smartmem_rules.tensor.index import variable
from smartmem_rules.tensor.ranges import largest
from smartmem_rules.tensor.types import register_type

ROUNDED = 4
"""Row arrays are padded to a multiple of this many elements, so that vectors of all rows are aligned."""


def array_size(axes: Sequence[Var]) -> int:
    """Elements that an array of a row takes."""
    return -(-largest(math.prod(v.extent for v in axes)) // ROUNDED) * ROUNDED


def row_axes(kernel: Kernel) -> list[tuple[Var, ...]]:
    """The axes over which one row of a reduction kernel is computed, read or written."""
    reduced = [n.variables for s in kernel.stages for n in walk(s.body) if isinstance(n, Reduce)]
    reduced += [n.variables for s in kernel.stores for n in walk(s.value) if isinstance(n, Reduce)]
    return [*reduced, *(s.axes for s in kernel.stages), *(s.local for s in kernel.stores)]


def storage_of(stages: Sequence[Stage], last: Expr, inner: int = 0) -> dict[str, str]:
    """For each array the one in whose memory it lies: its own name, or that of an array that ends with it.

    A stage takes the place of an array that it reads element by element and nothing reads after it, if the elements
    of both are held alike: an array has one element type for all who read it.

    Args:
        last: what is computed after all stages.
        inner: elements of the row of scores, which the first stage reads as `INNER`.
    """
    owner: dict[str, str] = {INNER: INNER} if inner else {}
    forms = {INNER: (inner, "float32")} if inner else {}
    bodies = [*(s.body for s in stages), last]
    for number, stage in enumerate(stages):
        if not stage.axes:
            continue
        form = array_size(stage.axes), register_type(stage.dtype)
        later = {t for body in bodies[number + 1 :] for t in tensors_read(body)}
        taken = next(
            (
                name
                for name in tensors_read(stage.body)
                if name in owner and name not in later and forms[name] == form and _element_by_element(stage, name)
            ),
            None,
        )
        owner[stage.name] = stage.name if taken is None else owner[taken]
        forms[stage.name] = form
    return owner


def _element_by_element(stage: Stage, array: str) -> bool:
    own = tuple(map(variable, stage.axes))
    return all(node.indices == own for node in walk(stage.body) if isinstance(node, Read) and node.tensor == array)


def row_bytes(c: Contraction) -> int:
    """Bytes of on-chip memory that one row of a contraction's left factor takes: arrays and scalars."""
    inner = 0 if c.scores is None else array_size((c.scores.n,))
    owner = storage_of(c.stages, c.a, inner)
    sizes = {INNER: inner, **{s.name: array_size(s.axes) for s in c.stages if s.axes}}
    scalars = sum(not s.axes for s in c.stages)
    return 4 * (sum(sizes[name] for name in set(owner.values())) + scalars)

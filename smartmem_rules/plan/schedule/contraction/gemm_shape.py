"""What a contraction asks of a work-group that computes tiles of its sums."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from smartmem_rules.plan.kernel.model import INNER, Contraction, Kernel
from smartmem_rules.plan.kernel.row_arrays import row_bytes
from smartmem_rules.plan.schedule.contraction.sizing import count
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import Expr, Read, Reduce, children, walk
from smartmem_rules.tensor.ranges import largest


@dataclass(frozen=True, kw_only=True)
class GemmShape:
    """What a contraction asks of a work-group.

    Attributes:
        columns: the extents of all right factors.
        row_bytes: local memory that a row of a tile takes besides the tiles.
        inner: places of the reduction of the scores times their columns, 0 without scores.
        element: bytes of a stored element.
        taps: elements that an element of the left factor is computed from.
        longest_loop: turns of the longest loop over them.
        row_loads: elements that the stages of a row load, besides scores.
        score_loads: elements of an attention's scores, and of what is made of them, that they load.
        streamed: whether tiles of both factors are copied as they lie in memory.
    """

    batch: int
    m: int
    columns: tuple[int, ...]
    k: int
    row_bytes: int = 0
    inner: int = 0
    element: int = 4
    taps: int = 1
    longest_loop: int = 1
    row_loads: int = 0
    score_loads: int = 0
    streamed: bool = False

    @property
    def most(self) -> GemmShape:
        """At the greatest extents of open dimensions: what sizes are chosen for."""
        return replace(
            self,
            batch=largest(self.batch),
            m=largest(self.m),
            columns=tuple(map(largest, self.columns)),
            k=largest(self.k),
            inner=largest(self.inner),
            taps=largest(self.taps),
            longest_loop=largest(self.longest_loop),
            row_loads=largest(self.row_loads),
            score_loads=largest(self.score_loads),
        )


def gemm_shape_of(kernel: Kernel, c: Contraction, element: int = 4) -> GemmShape:
    """What a contraction asks of a work-group, at the greatest extents of open dimensions.

    Args:
        element: bytes of a stored element.
    """
    columns = (c.n.extent, *(part.n.extent for part in kernel.parts))
    inner = 0 if c.scores is None else count(c.scores.k) * c.scores.n.extent
    reduced = [node.variables for node in walk(c.a) if isinstance(node, Reduce)]
    taps = max((largest(count(variables)) for variables in reduced), default=1)
    row_loads = sum(count(stage.axes) * loads(stage.body) for stage in c.stages)
    scores = {INNER, *(stage.name for stage in c.stages)} if c.scores is not None else set()
    score_loads = sum(count(stage.axes) * loads(stage.body, scores) for stage in c.stages) if scores else 0
    return GemmShape(
        batch=count(c.batch),
        m=count(c.m),
        columns=columns,
        k=count(c.k),
        row_bytes=row_bytes(c),
        inner=inner,
        element=element,
        taps=taps,
        longest_loop=max((largest(v.extent) for variables in reduced for v in variables), default=1),
        row_loads=row_loads - score_loads,
        score_loads=score_loads,
    ).most


def loads(expr: Expr, names: Collection[str] | None = None) -> int:
    """Elements that an expression reads, the turns of its loops counted.

    Args:
        names: the tensors and arrays that count; by default all of them.
    """
    if isinstance(expr, Read):
        return int(names is None or expr.tensor in names)
    turns = count(expr.variables) if isinstance(expr, Reduce) else 1
    return turns * sum(loads(child, names) for child in children(expr))

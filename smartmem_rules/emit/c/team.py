"""Cooperating work-items: how they divide a loop, and how they combine what each of them found."""

from __future__ import annotations

import math
from dataclasses import replace

from smartmem_rules.emit.c.primitives import combine, narrowed
from smartmem_rules.emit.c.writer import Writer
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Reduce, substitute_variables
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.ranges import several
from smartmem_rules.tensor.substitution import unravel


@dataclass(frozen=True, kw_only=True)
class Team:
    """Neighbouring work-items of a work-group that compute a row together.

    Attributes:
        size: how many, a power of two.
        lane: C text of a work-item's place in its team.
        scratch: a local array with one float for each work-item of the group, addressed by `thread`.
        rows: rows of the work-group.
        row: C text of the number of a team's row among them.
        shuffles: whether neighbours exchange values in registers, `subgroup` of them.
        joins_loops: whether the loops of a reduction become one, of which each member has its share.
    """

    size: int
    lane: str
    thread: str
    scratch: str
    rows: int
    row: str
    shuffles: bool = False
    subgroup: int = 1
    joins_loops: bool = False

    def head(self, name: str, extent: int, begin: str = "0", end: str = "") -> str:
        """A loop whose turns the members take one after the other; its loads are under way together.

        All members take the same number of turns. PoCL 3.0 runs an inner loop, whose length all work-items share, in
        step for a whole work-group, also where it lies in a loop that some of them have left: what they find is lost.
        Where the outer loop is unrolled, it does not end.

        Args:
            begin, end: C text of a part of the loop, the same one for all members.
        """
        first = self.lane if begin == "0" else f"{begin} + {self.lane}"
        turns = f"for (int {name} = {first}, {name}_turn = {begin}; {name}_turn < {end or extent};"
        step = f" {name} += {self.size}, {name}_turn += {self.size})"
        whole = isinstance(extent, int) and extent % self.size == 0
        guard = "" if whole else f" if ({name} < {extent})"
        return f"#ifndef SMR_NO_UNROLL\n#pragma unroll 8\n#endif\n{turns}{step}{guard}"

    def combined(self, writer: Writer, kind: str, name: str, dtype: str) -> str:
        """Write what combines the members' partial results; gives the result's name, known to all of them.

        Args:
            kind: of the reduction: sum, prod, max, min.
            name: the variable that holds a member's partial result.
        """
        if self.size == 1:
            return name
        met = 1
        if self.shuffles and dtype == "float32":
            met = min(self.size, self.subgroup)
            with writer.block(f"for (int distance = {met // 2}; distance > 0; distance /= 2)"):
                other = f"smr_neighbour({name}, distance, {met})"
                writer.line(f"{name} = {combine(kind, name, other, dtype, 1)};")
        if met == self.size:
            return name
        at = f"{self.scratch}[{self.thread}]"
        writer.line(f"{at} = {name};")
        writer.line("barrier(CLK_LOCAL_MEM_FENCE);")
        with writer.block(f"for (int stride = {self.size // 2}; stride >= {met}; stride /= 2)"):
            other = f"{self.scratch}[{self.thread} + stride]"
            writer.line(f"if ({self.lane} < stride) {at} = {combine(kind, at, other, dtype, 1)};")
            writer.line("barrier(CLK_LOCAL_MEM_FENCE);")
        writer.line(f"{name} = {narrowed(f'{self.scratch}[{self.thread} - {self.lane}]', dtype)};")
        writer.line("barrier(CLK_LOCAL_MEM_FENCE);")
        return name


def shared_loop(extents: list[int], size: int) -> int:
    """Which of nested loops a team divides: the innermost that keeps all members busy, else the longest."""
    full = [i for i, extent in enumerate(extents) if extent >= size]
    return full[-1] if full else max(range(len(extents)), key=lambda i: (extents[i], i))


def in_one_loop(expr: Reduce) -> Reduce:
    """The reduction over one variable in the place of several, the last of them the fastest."""
    axes = tuple(v for v in expr.variables if several(v.extent))
    if len(axes) < 2:
        return expr
    extents = tuple(v.extent for v in axes)
    whole = Var(f"{axes[0].name}_whole", math.prod(extents))
    places = dict(zip(axes, unravel(variable(whole), extents), strict=True))
    places.update((v, Index(0)) for v in expr.variables if v not in places)
    return replace(expr, variables=(whole,), body=substitute_variables(expr.body, places))

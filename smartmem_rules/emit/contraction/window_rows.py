"""Register blocking of windows along the width: each element that neighbouring windows share is loaded once.

The rows that a panel contraction stages for a depthwise convolution are places of an image. A group of them along the
image's last axis is summed in registers, one step of the window's last axis after the other; the sums lie in an array
that the group's rows then read one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from smartmem_rules.emit.c.expressions import whole_index
from smartmem_rules.emit.c.kernel import Emission
from smartmem_rules.emit.c.window_sums import window_sums
from smartmem_rules.plan.kernel.model import Contraction, Stage
from smartmem_rules.plan.schedule.neighbours import is_window, largest_group, shares
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import (
    Expr,
    Read,
    Reduce,
    free_variables,
    replaced,
    substitute_variables,
    walk,
)
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.substitution import unravel

WINDOW_SUMS = "@window"
"""The name by which a row reads the sums of its windows."""


@dataclass(frozen=True)
class Windows:
    """The sum over a window in what is staged of a row, for groups of `group` rows.

    Attributes:
        channel: the axis inside the row, whole vectors of whose elements are computed together.
    """

    reduce: Reduce
    channel: Var
    group: int

    @staticmethod
    def of(
        c: Contraction, stages: Sequence[Stage], a: Expr, most_rows: int, lanes: int, load_share: float
    ) -> Windows | None:
        """None where a row has no such sum, or where neighbours share too little.

        Args:
            load_share: the most that rows together may load, as a part of what they load alone.
        """
        if not c.m or any(is_symbolic(v.extent) for v in (*c.batch, *c.m, *c.k)):
            return None
        across = c.m[-1]
        group = largest_group(across, most_rows)
        internal = {stage.name for stage in stages}
        for axes, expr in [*((s.axes, s.body) for s in stages if s.axes), (c.k, a)]:
            if group == 1 or len(axes) != 1 or axes[0].extent % lanes:
                continue
            for node in walk(expr):
                if isinstance(node, Reduce) and is_window(node, internal):
                    found = Windows(node, axes[0], group)
                    if found.channel in free_variables(node.body) and shares(node, across, group, load_share):
                        return found
        return None

    def instead(self, expr: Expr) -> Expr:
        """The expression with reads of the sums in place of the windows."""
        return replaced(expr, self.reduce, Read(WINDOW_SUMS, (variable(self.channel),), self.reduce.dtype))


@dataclass
class WindowRows:
    """The loops over groups of rows, and over the rows of a group.

    Args:
        batch: values of the variables besides those of the rows.
    """

    emission: Emission
    windows: Windows
    batch: dict[Var, Index]
    m: tuple[Var, ...]

    @contextmanager
    def rows(self, name: str) -> Iterator[None]:
        """C loops around what is done for each row of the work-item's block."""
        emission, w = self.emission, self.windows
        expressions, writer = emission.expressions, emission.writer
        count = math.prod(v.extent for v in self.m)
        group, size = Var("group", count // w.group), w.channel.extent
        g = expressions.name(group)
        writer.line(f"float window[{w.group * size}];")
        head = f"for (int {g} = first_row / {w.group}; {g} * {w.group} < first_row + row_count; ++{g})"
        with expressions.scope(head):
            self._sums(group)
            first = f"max({g} * {w.group} - first_row, 0)"
            last = f"min({g} * {w.group} + {w.group} - first_row, row_count)"
            with expressions.scope(f"for (int {name} = {first}; {name} < {last}; ++{name})"):
                writer.line(f"const float* window_row = window + (first_row + {name} - {g} * {w.group}) * {size};")
                expressions.internal[WINDOW_SUMS] = emission.scratch_reader("window_row", [size], "float32")
                yield

    def _sums(self, group: Var) -> None:
        """The sums of the windows of a group of rows, a vector of channels after the other."""
        emission, w = self.emission, self.windows
        expressions, writer = emission.expressions, emission.writer
        lane = Var("lane", emission.width)
        block = Var("window_block", w.channel.extent // emission.width)
        channels = add(scale(whole_index(block), emission.width), variable(lane))
        extents = tuple(v.extent for v in self.m)
        places = [add(scale(variable(group), w.group), Index(q)) for q in range(w.group)]
        rows = [dict(zip(self.m, unravel(place, extents), strict=True)) for place in places]
        with expressions.loop(block):
            window = replace(w.reduce, body=substitute_variables(w.reduce.body, {**self.batch, w.channel: channels}))
            sums = window_sums(expressions, window, rows, lane, emission.target.device.text.window_steps)
            start = expressions.index(scale(whole_index(block), emission.width))
            for q, name in enumerate(sums):
                writer.line(f"*(smr_float{emission.width}*)(window + {start} + {q * w.channel.extent}) = {name};")

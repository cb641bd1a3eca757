"""Windows of neighbouring places along an image's last axis: what one place loads, the next one needs, too.

A kernel that sums the windows of a group of places together, each in a register, loads each shared element once.
"""

from __future__ import annotations

from dataclasses import replace

from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.plan.schedule.loops import ElementLoops
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import (
    Apply,
    Expr,
    Read,
    Reduce,
    Select,
    condition_indices,
    free_variables,
    replaced,
    substitute_variables,
    walk,
)
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index


@dataclass(frozen=True)
class NeighbourWindows:
    """The sum over a window that an elementwise kernel computes for `group` places at once.

    Attributes:
        across: the axis of the places, the last but that of the vectors.
    """

    reduce: Reduce
    across: Var
    group: int

    @staticmethod
    def of(kernel: Kernel, loops: ElementLoops, width: int, most: int, load_share: float) -> NeighbourWindows | None:
        """None where a kernel has no such sum, or where neighbours share too little.

        Args:
            width: elements of a vector, of which the kernel has to have whole ones.
            most: places of a group at most.
            load_share: the most that places together may load, as a part of what they load alone.
        """
        lanes = loops.lanes
        if lanes is None or not loops.outer or any(is_symbolic(v.extent) for v in (lanes, *loops.outer)):
            return None
        across = loops.outer[-1]
        group = largest_group(across, most)
        if group == 1 or lanes.extent % width or any(stage.axes for stage in kernel.stages):
            return None
        internal = {stage.name for stage in kernel.stages}
        for expr in (*(stage.body for stage in kernel.stages), *(store.value for store in kernel.stores)):
            for node in walk(expr):
                if not isinstance(node, Reduce) or not is_window(node, internal):
                    continue
                of_lanes = lanes in free_variables(node.body) and not _asks_for(node, lanes)
                if of_lanes and shares(node, across, group, load_share):
                    return NeighbourWindows(node, across, group)
        return None

    def instead(self, kernel: Kernel, sums: Expr) -> Kernel:
        """The kernel with another expression in place of the windows' sum."""
        stages = tuple(replace(stage, body=replaced(stage.body, self.reduce, sums)) for stage in kernel.stages)
        stores = tuple(replace(store, value=replaced(store.value, self.reduce, sums)) for store in kernel.stores)
        return replace(kernel, stages=stages, stores=stores)


def _asks_for(window: Reduce, lanes: Var) -> bool:
    """Whether the border of the image lies along an axis, so that elements of one vector are on both sides of it."""
    selects = (node for node in walk(window.body) if isinstance(node, Select))
    return any(lanes in index.variables for node in selects for index in condition_indices(node.condition))


def largest_group(across: Var, most: int) -> int:
    """The most places, up to `most`, that divide an axis into whole groups."""
    return max(d for d in range(1, most + 1) if across.extent % d == 0)


def is_window(node: Reduce, internal: set[str]) -> bool:
    """Whether a reduction is a sum of products over a window of two axes or more.

    Args:
        internal: tensors that the kernel computes itself, which a window's elements may not be.
    """
    body = node.body
    return (
        node.kind == "sum"
        and node.dtype == "float32"
        and len(node.variables) > 1
        and not any(is_symbolic(v.extent) for v in node.variables)
        and isinstance(body, Apply)
        and body.function == "mul"
        and not any(isinstance(n, Read) and n.tensor in internal for n in walk(body))
    )


def shares(window: Reduce, across: Var, group: int, load_share: float) -> bool:
    """Whether the windows of a group of places have enough elements in common.

    Weights, which all places share, count where channels are summed, too: they are vectors there, and an element of
    the image is one float that is repeated.
    """
    sums_channels = len(window.variables) > 2
    last = window.variables[-1]
    asked = [
        substitute_variables(read, {across: Index(q), last: Index(step)})
        for read in walk(window.body)
        if isinstance(read, Read) and (sums_channels or across in free_variables(read))
        for q in range(group)
        for step in range(last.extent)
    ]
    return bool(asked) and len(set(asked)) <= load_share * len(asked)

"""Kernels that need each other in one launch, on devices whose work-groups, once begun, keep their unit to the end.

A work-group takes one work-item after the other from a counter, in an order in which each stands behind all that it needs,
waits until that is done, computes, and counts itself (codegen/ordered.cl). What it waits for was taken before by a
work-group that runs, so that none waits for ever, however many of them run at once.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from smartmem_rules.plan.chains import compose
from smartmem_rules.plan.model import Kernel, Order, Stored, Wait, row_major
from smartmem_rules.tensor.expr import TensorType

LINE = 16
"""Elements of int32 from one counter to the next: each lies in a line of the cache of its own."""


def in_order(
    name: str, steps: tuple[Kernel, ...], waits: tuple[tuple[Wait, ...], ...], places: tuple[int, ...] = ()
) -> Kernel:
    """A launch of kernels of which some wait for others (see `Order`)."""
    found = compose("ordered", steps)
    found.name = name
    found.order = Order(f"{name}@order", waits, places)
    found.note_borders()
    return found


def counters(kernels: Iterable[Kernel]) -> dict[str, Stored]:
    """The memory of the counters of those kernels that are ordered launches: zeros, as each run leaves them."""
    return {order.state: _counters(order) for kernel in kernels if (order := kernel.order) is not None}


def _counters(order: Order) -> Stored:
    zeros = np.zeros(LINE * (1 + len(order.waits)), np.int32)
    return Stored(order.state, TensorType("int32", zeros.shape), row_major(1), "constant", "int32", zeros)

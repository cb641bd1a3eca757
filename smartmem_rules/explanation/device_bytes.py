"""What a plan takes on its device: weights, intermediates, and the cache of a language model by tokens."""

from __future__ import annotations

import math

from smartmem_rules.graph.cached import present_of
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.storage import item_bytes, stored_bytes
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.ranges import largest


@dataclass(frozen=True, kw_only=True)
class DeviceBytes:
    """Bytes of device memory.

    Attributes:
        weights: constants, as they are packed.
        intermediates: at the greatest extents.
        cache_per_token: what one more token takes in keys and values (past_key_values); None without such inputs.
    """

    weights: int
    intermediates: int
    cache_per_token: int | None


def device_bytes_of(plan: Plan) -> DeviceBytes:
    """What a plan takes."""
    weights = sum(stored_bytes(tensor) for tensor in plan.tensors.values() if tensor.role == "constant")
    rows = [row for name in plan.inputs if (row := _row_bytes(plan, name)) is not None]
    return DeviceBytes(
        weights=weights,
        intermediates=sum(slot.bytes for slot in plan.slots),
        cache_per_token=sum(rows) if rows else None,
    )


def _row_bytes(plan: Plan, name: str) -> int | None:
    """The bytes of one token in an input that a cache is; None for others."""
    present = present_of(name)
    if present not in plan.outputs:
        return None
    past, grown = plan.tensors[name], plan.tensors[present]
    before, after = (one.type.shape if one.shown is None else one.shown for one in (past, grown))
    axes = [axis for axis, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    if len(axes) != 1:
        return None
    others = math.prod(largest(extent) for axis, extent in enumerate(before) if axis != axes[0])
    return others * item_bytes(past.storage)

"""The memory that a device has and that plans need, piece by piece, before anything is allocated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from smartmem_rules.language.blocks.device import Allocator
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.storage import stored_bytes
from smartmem_rules.plan.memory.planning import plan_memory
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.contexts.memory import RunError
from smartmem_rules.runtime.target import Target
from smartmem_rules.tensor.extents import at


class TooLargeError(RunError):
    """A plan needs more memory than its device has; the message says what would fit. Nothing is allocated."""


@dataclass(frozen=True, kw_only=True)
class Room:
    """What a device has, in bytes.

    Attributes:
        device: its name, or that of its profile.
        total: all of its memory.
        largest: the largest piece that it allocates.
    """

    device: str
    total: int
    largest: int


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What plans need, in bytes of each piece of memory.

    Attributes:
        weights: constants; those that plans share once.
        others: intermediates, inputs and outputs.
        cache: keys and values of a language model.
    """

    weights: tuple[int, ...]
    others: tuple[int, ...]
    cache: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        return sum(self.weights) + sum(self.others) + sum(self.cache)

    @property
    def largest(self) -> int:
        return max((*self.weights, *self.others, *self.cache), default=0)

    def fits(self, room: Room) -> bool:
        """Whether a device has so much, and allocates the largest piece of it."""
        return self.total <= room.total and self.largest <= room.largest


def room_of(target: Target) -> Room:
    """What a target has: the device's own memory, or less where the profile says so."""
    allocator = target.profile.allocator
    return Room(device=target.name, total=allocator.global_memory, largest=allocator.allocation)


def needs_of(plan: Plan) -> Needs:
    """What the runs of a plan need that follow one another."""
    return Needs(weights=tuple(weight_bytes(plan).values()), others=other_bytes(plan))


def weight_bytes(plan: Plan) -> dict[str, int]:
    """The bytes of the constants, by name."""
    return {name: stored_bytes(tensor) for name, tensor in plan.tensors.items() if tensor.role == "constant"}


def other_bytes(plan: Plan, without: Iterable[str] = ()) -> tuple[int, ...]:
    """The bytes of the pieces that are no constants.

    Args:
        without: inputs and outputs whose memory is counted elsewhere.
    """
    outside = {*without, *plan.placement}
    own = (t for t in plan.tensors.values() if t.name not in outside and t.role != "constant")
    return (*(slot.bytes for slot in plan.slots), *map(stored_bytes, own))


def at_most(plan: Plan, extents: Mapping[str, int]) -> Plan:
    """The plan with the memory that it needs where its dimensions have these extents at most.

    Intermediates are placed anew, in the order of the plan; only memory can be asked of the result.
    """
    tensors = {name: _at(tensor, extents) for name, tensor in plan.tensors.items()}
    placed = plan_memory(tensors, plan.launches, Allocator())
    return replace(plan, tensors=tensors, slots=placed.slots, placement=placed.placement)


def _at(tensor: Stored, extents: Mapping[str, int]) -> Stored:
    shape = tuple(int(at(extent, extents)) for extent in tensor.type.shape)
    return replace(tensor, type=replace(tensor.type, shape=shape))

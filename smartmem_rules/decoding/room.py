"""Refuses plans and a cache that a device has no memory for, and finds out what would fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from smartmem_rules.decoding.cache import Sizes
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.records import dataclass
from smartmem_rules.room.advice import Remedy, largest_that, refusal
from smartmem_rules.room.needs import Needs, Room, TooLargeError, at_most, other_bytes, room_of, weight_bytes
from smartmem_rules.room.plans import fewer_bits

if TYPE_CHECKING:
    from smartmem_rules.graph.loading import ModelSource
    from smartmem_rules.rulebase.base import RuleBase
    from smartmem_rules.runtime.target import Target

LEAST_BOUND = 2


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What is to lie on a device.

    Attributes:
        outside: the inputs and outputs of plans that the cache is, or that stay the same over the steps.
        given: the bytes of these last ones.
        sizes: of the cache.
        rows: the bytes of a position in each of its buffers, of all sequences.
        positions: for how many it has to have memory now.
    """

    source: ModelSource
    target: Target
    base: RuleBase
    plans: tuple[Plan, ...]
    outside: frozenset[str]
    given: tuple[int, ...]
    sizes: Sizes
    rows: tuple[int, ...]
    positions: int

    def needs(self, bound: int, sequences: int, weights: tuple[int, ...] | None = None) -> Needs:
        """What is needed for another bound, and for fewer sequences at most.

        Args:
            bound: where it is the one that the plans have, their intermediates lie as they were planned.
            weights: in the place of those of the plans.
        """
        sizes = replace(self.sizes, bound=bound)
        positions = sizes.capacity(min(self.positions, bound))
        # plans share what is the same in both
        own = dict.fromkeys(item for plan in self.plans for item in weight_bytes(plan).items())
        return Needs(
            weights=tuple(size for _, size in own) if weights is None else weights,
            others=(*self.given, *(size for plan in self.plans for size in self._others(plan, bound))),
            cache=tuple(positions * row * sequences // self.sizes.sequences for row in self.rows),
        )

    @property
    def fits(self) -> bool:
        """Whether the device has memory for all of it."""
        return self.needs(self.sizes.bound, self.sizes.sequences).fits(room_of(self.target))

    def refusal(self) -> TooLargeError:
        """The error where it has not, which says which bits, bounds and numbers of sequences would fit."""
        room, sizes = room_of(self.target), self.sizes
        needs = self.needs(sizes.bound, sizes.sequences)
        remedies = list(_remedies(self, room, needs))
        if not any(one.needs.fits(room) for one in remedies):
            remedies += _together(self, room, needs)
        return refusal(f"generating {sizes.sequences} sequences within {sizes.bound} tokens", room, needs, remedies)

    def _others(self, plan: Plan, bound: int) -> tuple[int, ...]:
        if bound != self.sizes.bound:
            plan = at_most(plan, {one.name: max(one.low, bound - 1) for one in plan.dimensions})
        return other_bytes(plan, self.outside)


def _remedies(demand: Demand, room: Room, needs: Needs) -> Iterator[Remedy]:
    """One change each."""
    yield from _fewer_bits(demand, needs)
    bound, shorter = _longest(demand, room)
    yield Remedy(text=_bound_text(bound), needs=shorter)
    if demand.sizes.sequences > 1:
        fewer = partial(demand.needs, demand.sizes.bound)
        count = largest_that(fewer, room, 1, demand.sizes.sequences - 1)
        yield Remedy(text=f"{count} at once of the {demand.sizes.sequences} sequences", needs=fewer(count))


def _together(demand: Demand, room: Room, needs: Needs) -> Iterator[Remedy]:
    """Weights of fewer bits, and a shorter bound with them."""
    for fewer in _fewer_bits(demand, needs):
        bound, found = _longest(demand, room, fewer.needs.weights)
        yield Remedy(text=f"{fewer.text} and {_bound_text(bound)}", needs=found)


def _fewer_bits(demand: Demand, needs: Needs) -> Iterator[Remedy]:
    yield from fewer_bits(demand.source, needs, demand.plans[0].dtype, demand.target, demand.base)


def _longest(demand: Demand, room: Room, weights: tuple[int, ...] | None = None) -> tuple[int, Needs]:
    """The longest bound with which there is room, else the least; and what is needed with it."""
    found = partial(demand.needs, sequences=demand.sizes.sequences, weights=weights)
    bound = largest_that(found, room, LEAST_BOUND, max(LEAST_BOUND, demand.sizes.bound - 1))
    return bound, found(bound)


def _bound_text(bound: int) -> str:
    return f"a bound of {bound} tokens (--bound {bound})"

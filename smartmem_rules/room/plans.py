"""Refuses a model's plan that its device has no memory for, and finds out what would fit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from smartmem_rules.errors import SmartmemError
from smartmem_rules.explanation.model_nodes import is_graph
from smartmem_rules.pipeline import rules_of
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.planned import PlanOptions, planned
from smartmem_rules.records import dataclass
from smartmem_rules.room.advice import Remedy, largest_that, refusal
from smartmem_rules.room.needs import Needs, Room, at_most, needs_of, room_of
from smartmem_rules.room.weights import packed_widths, with_fewer_bits
from smartmem_rules.runtime.target import Target
from smartmem_rules.stages import Clock

if TYPE_CHECKING:
    from smartmem_rules.graph.loading import ModelSource
    from smartmem_rules.graph.model import Graph
    from smartmem_rules.rulebase.base import RuleBase

_TRIALS = 5
"""Plans that are made to find the largest batch."""


def refuse_too_large(plan: Plan, target: Target, source: ModelSource | Graph, options: PlanOptions) -> None:
    """Nothing, where a target has memory for a plan.

    Args:
        source: what the plan was made of.
        options: the arguments of `planned` by which it was made.

    Raises:
        TooLargeError: it has not; the message says which weights of fewer bits, ranges or batches would fit.
    """
    room, needs = room_of(target), needs_of(plan)
    if needs.fits(room):
        return
    base = rules_of(options.get("rules", ()), options.get("disable", ()))
    extents = _Extents(plan=plan, room=room, source=source, options=options)
    bits = list(fewer_bits(source, needs, plan.dtype, target, base))
    remedies = [*bits, *extents.remedies()]
    if not any(one.needs.fits(room) for one in remedies):
        for fewest in bits[-1:]:
            both = extents.remedies(fewest.needs.weights)
            remedies += [replace(one, text=f"{fewest.text} and {one.text}") for one in both]
    raise refusal(f"the plan of {plan.model}", room, needs, remedies)


def fewer_bits(
    source: ModelSource | Graph, needs: Needs, dtype: str, target: Target, base: RuleBase
) -> Iterator[Remedy]:
    """Weights of fewer bits, where a target's kernels unpack them.

    Args:
        dtype: in which the plan stores floats.
    """
    if is_graph(source):
        return
    widths = packed_widths(base, target)
    for name, pieces in with_fewer_bits(source, needs.weights, dtype, widths).items():  # type: ignore[arg-type]
        yield Remedy(
            text=f"weights of {name.removeprefix('int')} bits (smartmem quantize --weights {name})",
            needs=replace(needs, weights=pieces),
        )


@dataclass(frozen=True, kw_only=True)
class _Extents:
    """Smaller extents of a plan's dimensions."""

    plan: Plan
    room: Room
    source: ModelSource | Graph
    options: PlanOptions

    def remedies(self, weights: tuple[int, ...] | None = None) -> Iterator[Remedy]:
        """A smaller extent of one dimension each.

        Args:
            weights: the bytes of constants that take the place of those of plans.
        """
        for dimension in self.plan.dimensions:
            found = partial(self._up_to, dimension.name, weights)
            if dimension.low < dimension.high:
                end = largest_that(found, self.room, dimension.low, dimension.high - 1)
                yield Remedy(text=f"--dim {dimension.name}={dimension.low}..{end}", needs=found(end))
        for name, extent in (self.options.get("dims") or {}).items():
            if isinstance(extent, int) and extent > 1:
                with suppress(SmartmemError):  # the model does not take such an extent
                    yield self._smaller(name, extent, weights)

    def _up_to(self, name: str, weights: tuple[int, ...] | None, high: int) -> Needs:
        extents = {one.name: one.high for one in self.plan.dimensions} | {name: high}
        return _needs(at_most(self.plan, extents), weights)

    def _smaller(self, name: str, extent: int, weights: tuple[int, ...] | None) -> Remedy:
        """The greatest extent with which there is room; each that is tried takes a plan."""
        most, best, large = 1, self._with(name, 1, weights), _needs(self.plan, weights)
        for _ in range(_TRIALS if best.fits(self.room) else 0):
            # what one more adds is about the same for each
            step = max(1.0, (large.total - best.total) / (extent - most))
            tried = min(extent - 1, most + math.floor((self.room.total - best.total) / step))
            if tried == most:
                break
            more = self._with(name, tried, weights)
            if more.fits(self.room):
                most, best = tried, more
            else:
                extent, large = tried, more
        return Remedy(text=f"--dim {name}={most}", needs=best)

    def _with(self, name: str, extent: int, weights: tuple[int, ...] | None) -> Needs:
        dims = {**(self.options.get("dims") or {}), name: extent}
        asked: PlanOptions = {**self.options, "dims": dims}
        plan, _ = planned(self.source, Clock(None), **asked)
        return _needs(plan, weights)


def _needs(plan: Plan, weights: tuple[int, ...] | None) -> Needs:
    own = needs_of(plan)
    return own if weights is None else replace(own, weights=weights)

"""Refuses a model's plan that its device has no memory for, and finds out what would fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from smartmem_rules.errors import SmartmemError
from smartmem_rules.explanation.model_nodes import is_graph
from smartmem_rules.pipeline import rules_of
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.planned import planned
from smartmem_rules.room.advice import Remedy, largest_that, refusal
from smartmem_rules.room.needs import Needs, Room, at_most, needs_of, other_bytes, room_of
from smartmem_rules.room.weights import packed_widths, with_fewer_bits
from smartmem_rules.runtime.target import Target
from smartmem_rules.stages import Clock

if TYPE_CHECKING:
    from smartmem_rules.graph.loading import ModelSource
    from smartmem_rules.graph.model import Graph
    from smartmem_rules.rulebase.base import RuleBase

_TRIALS = 5
"""Plans that are made to find the largest batch."""


def refuse_too_large(plan: Plan, target: Target, source: ModelSource | Graph, options: Mapping[str, Any]) -> None:
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
    bits = fewer_bits(source, needs, plan.dtype, target, base)
    remedies = [*bits, *_shorter(plan, room), *_smaller(needs, room, source, options)]
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


def _shorter(plan: Plan, room: Room) -> Iterator[Remedy]:
    """Ranges of dimensions that end earlier."""
    greatest = {one.name: one.high for one in plan.dimensions}
    for dimension in plan.dimensions:
        found = partial(_up_to, plan, greatest, dimension.name)
        if dimension.low < dimension.high:
            end = largest_that(found, room, dimension.low, dimension.high - 1)
            yield Remedy(text=f"--dim {dimension.name}={dimension.low}..{end}", needs=found(end))


def _up_to(plan: Plan, greatest: Mapping[str, int], name: str, high: int) -> Needs:
    return replace(needs_of(plan), others=other_bytes(at_most(plan, {**greatest, name: high})))


def _smaller(needs: Needs, room: Room, source: ModelSource | Graph, options: Mapping[str, Any]) -> Iterator[Remedy]:
    """Smaller extents of dimensions that have one extent; each takes a plan, of which there are few."""
    dims = options.get("dims") or {}
    for name, extent in dims.items():
        if not isinstance(extent, int) or extent < 2:
            continue
        try:
            yield from _smaller_extent(needs, room, extent, name, partial(_planned_with, source, options, dims, name))
        except SmartmemError:  # the model does not take such an extent
            continue


def _smaller_extent(
    needs: Needs, room: Room, extent: int, name: str, found: Callable[[int], Needs]
) -> Iterator[Remedy]:
    most, best, large = 1, found(1), needs
    for _ in range(_TRIALS if best.fits(room) else 0):
        # what one more adds is about the same for each
        step = max(1.0, (large.total - best.total) / (extent - most))
        tried = min(extent - 1, most + math.floor((room.total - best.total) / step))
        if tried == most:
            break
        more = found(tried)
        if more.fits(room):
            most, best = tried, more
        else:
            extent, large = tried, more
    yield Remedy(text=f"--dim {name}={most}", needs=best)


def _planned_with(
    source: ModelSource | Graph, options: Mapping[str, Any], dims: Mapping[str, Any], name: str, extent: int
) -> Needs:
    plan, _ = planned(source, Clock(None), **{**options, "dims": {**dims, name: extent}})
    return needs_of(plan)

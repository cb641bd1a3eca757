"""A launch's work-items write each element of its results, none the element of another one, and nothing beyond.

The kernel's text is followed for its addresses, as the simulation of devices does (`simulate.trace`), for all
work-items of the launch. What depends on the contents of tensors is not followed, and such a launch is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from smartmem_rules.invariants.violation import InvariantError
from smartmem_rules.plan.artefact import Plan, Source
from smartmem_rules.plan.kernel.launch import Launch, Ordered
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.storage import item_bytes, stored_bytes
from smartmem_rules.records import dataclass
from smartmem_rules.simulate.accesses import Access, Items, Parameter
from smartmem_rules.simulate.launch import TracedLaunch
from smartmem_rules.simulate.source import SimulationError
from smartmem_rules.simulate.trace import Tracer
from smartmem_rules.tensor.ranges import largest

STAGE = "emission"
MOST_OPERATIONS = 1 << 21
MOST_BYTES = 1 << 20
"""Launches that compute or touch more than this are not followed."""

_Numbers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class _Touch:
    """Elements of a tensor that work-items touch: which element, which work-item, when."""

    elements: _Numbers
    items: _Numbers
    times: _Numbers


def check_launches(plan: Plan) -> int:
    """Follow the launches of a plan that are small enough.

    Returns:
        how many launches were followed.

    Raises:
        InvariantError: an element is written by no work-item or by two, outside of the tensor, or read by one
            work-item where another one of the launch writes.
    """
    if plan.dimensions:
        return 0
    written: dict[str, list[_Touch]] = {}
    whole = {name for launch in plan.launches for name in launch.writes}
    followed = 0
    for launch, source in zip(plan.launches, plan.sources, strict=True):
        touched = _followed(launch, source, plan)
        if touched is None:
            whole -= set(launch.writes)
            continue
        followed += 1
        for (tensor, write), touch in touched.items():
            if write:
                written.setdefault(tensor, []).append(touch)
                _check_owners(launch, tensor, touch)
        for new, old in launch.in_place.items():
            if (new, True) in touched and (old, False) in touched:
                _check_in_place(launch, new, old, touched[new, True], touched[old, False])
    for tensor in sorted(whole):
        _check_covered(plan.tensors[tensor], written.get(tensor, []))
    return followed


def _followed(launch: Launch, source: Source, plan: Plan) -> dict[tuple[str, bool], _Touch] | None:
    """What the work-items of a launch touch, None where it is not followed."""
    used = [plan.tensors[a.tensor] for a in source.arguments]
    if isinstance(launch, Ordered) or launch.operations > MOST_OPERATIONS:
        return None
    if any(kernel.form == "scan" for kernel in launch.kernels) or sum(map(stored_bytes, used)) > MOST_BYTES:
        return None
    found: dict[tuple[str, bool], list[_Touch]] = {}
    try:
        before = 0
        for one in TracedLaunch.all_of(source, plan.tensors, 1):
            items = one.items(np.arange(one.groups), 1)
            for access in Tracer(one.text, one.parameters, items, merge=False, seldom=True).run():
                if access.space.kind in ("global", "image"):
                    name = one.parameters[access.space.name].name
                    touch = _touch(access, items, one.parameters[access.space.name], before)
                    _check_inside(launch, plan.tensors[name], access.write, access.width, touch)
                    found.setdefault((name, access.write), []).append(_lanes(touch, access))
            before += len(items.active)
    except SimulationError:
        return None
    return {key: _joined(touches) for key, touches in found.items()}


def _touch(access: Access, items: Items, parameter: Parameter, before: int) -> _Touch:
    """The first element of each access that is made."""
    if parameter.size is None:
        elements = access.place[0]
    else:
        x, y = access.place
        elements = (y * parameter.size[0] + x) * 4
    count = len(items.active)
    own = np.arange(before, before + count).reshape((count,) + (1,) * (elements.ndim - 1))
    kept = access.mask != 0
    times = np.broadcast_to(access.time[None], elements.shape)
    return _Touch(elements[kept], np.broadcast_to(own, elements.shape)[kept], times[kept])


def _lanes(touch: _Touch, access: Access) -> _Touch:
    """All elements of vectors that are written; of vectors that are read the first, as others may be unused."""
    if access.width == 1 or not access.write:
        return touch
    lanes = np.arange(access.width)
    return _Touch(
        (touch.elements[:, None] + lanes).reshape(-1),
        np.repeat(touch.items, access.width),
        np.repeat(touch.times, access.width),
    )


def _joined(touches: list[_Touch]) -> _Touch:
    return _Touch(
        np.concatenate([t.elements for t in touches]),
        np.concatenate([t.items for t in touches]),
        np.concatenate([t.times for t in touches]),
    )


def _elements(stored: Stored) -> int:
    """The elements that a tensor has in memory, unused lanes of texels included."""
    return stored_bytes(stored) // item_bytes(stored.storage)


def _check_inside(launch: Launch, stored: Stored, write: bool, width: int, touch: _Touch) -> None:
    if not touch.elements.size:
        return
    behind = width if write else 1
    low, high = int(touch.elements.min()), int(touch.elements.max()) + behind
    if low < 0 or high > _elements(stored):
        way = "writes" if write else "reads"
        raise InvariantError(
            STAGE, launch.name, stored.name, f"it {way} elements {low} to {high - 1} of {_elements(stored)}"
        )


def _check_owners(launch: Launch, tensor: str, touch: _Touch) -> None:
    """No two work-items write one element, unless they do all the same: launches are filled up with copies of the last.

    A copy is known by how many elements it writes, and by the sums of their places and of the squares of these.
    """
    workers = int(touch.items.max(initial=0)) + 1
    # one number for a pair is sorted much faster than two
    elements, items = np.divmod(np.unique(touch.elements * workers + touch.items), workers)
    same = elements[1:] == elements[:-1]
    if not same.any():
        return
    marks = [np.bincount(items, weights=elements.astype(np.float64) ** power) for power in (0, 1, 2)]
    first, second = items[:-1][same], items[1:][same]
    twice = np.any([mark[first] != mark[second] for mark in marks], axis=0)
    if twice.any():
        at = int(elements[1:][same][twice][0])
        raise InvariantError(STAGE, launch.name, tensor, f"several work-items write the element {at}")


def _check_covered(stored: Stored, touches: list[_Touch]) -> None:
    """Every element is written by some work-item of some launch, and by no two launches."""
    count = _elements(stored)
    if not largest(stored.type.elements):
        return
    writers = np.zeros(count, np.int64)
    for touch in touches:
        writers[np.unique(touch.elements)] += 1
    if (writers != 1).any():
        at = int(np.flatnonzero(writers != 1)[0])
        raise InvariantError(STAGE, "", stored.name, f"{int(writers[at])} launches write the element {at} of {count}")


def _check_in_place(launch: Launch, new: str, old: str, writes: _Touch, reads: _Touch) -> None:
    """A tensor that another one replaces is read where, and before, the same work-item writes."""
    count = 1 + max(int(writes.elements.max(initial=0)), int(reads.elements.max(initial=0)))
    owner, first = np.full(count, -1), np.full(count, np.iinfo(np.int64).max)
    owner[writes.elements] = writes.items
    np.minimum.at(first, writes.elements, writes.times)
    written = owner[reads.elements] >= 0
    wrong = written & ((owner[reads.elements] != reads.items) | (reads.times > first[reads.elements]))
    if wrong.any():
        at = int(reads.elements[wrong][0])
        raise InvariantError(STAGE, launch.name, new, f"it replaces element {at} of {old!r}, which is read still")

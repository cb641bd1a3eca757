"""Loops whose state changes its shape in each step: decoders that join what they made so far with the next piece."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.fuzzing.recipes.builder import Builder
from smartmem_rules.fuzzing.recipes.control import MOST_DEPTH, MOST_STEPS, Body, Grow

MOST_ELEMENTS = 60
"""Of a state before the first step: one that doubles has sixteen times as many in the end."""


def growing(b: Builder, grow: Grow) -> None:
    """A state that is joined with a piece, doubled or cut in each step, and whose number of steps is known."""
    if isinstance(b, Body) and b.depth >= MOST_DEPTH:
        return
    state = b.tensor(None, 1, 4, lambda a: a.size <= MOST_ELEMENTS)
    if b.array(state).size > MOST_ELEMENTS:
        return
    mark = f"{b.prefix}w{b.bodies}_"
    number, going, own = f"{mark}number", f"{mark}going", f"{mark}state"
    first = b.array(state)
    axis = b.integer(0, first.ndim - 1)
    given = {number: np.asarray(0, np.int64), going: np.asarray(True), own: first}
    body = Body(b, given)
    summary = _summary(body, own, axis)
    del body.tensors[own]  # what else a step draws would fit the first extent only
    body.grow(grow, 3)
    piece = _piece(body, first, axis)
    body.tensors[own] = first
    after = _changed(body, own, axis, piece)
    steps = b.integer(0, MOST_STEPS)
    scans = [n for n in (summary, *body.subset(body.made()[-2:])) if n and n != after][:2]
    limit, goes_on = _end(body, number, going, steps)
    results = body.resulting([goes_on, after, *dict.fromkeys(scans)]) if after and goes_on else []
    if not results:
        return
    graph = body.graph([number, going, own], results)
    for value in (graph.input[2], graph.output[1]):
        _open(value, axis)
    b.follow(helper.make_node("Loop", [limit, "", state], b.names(len(results) - 1), body=graph))


def _summary(body: Body, own: str, axis: int) -> str | None:
    """What the state says whatever its extent is: a reduction along the axis, its last part or its shape."""
    way = body.integer(0, 3)
    if way == 0:
        return body.one("Shape", [own])
    if way == 1 and body.shape(own)[axis]:
        return body.one("Gather", [own, body.ints(-1)], axis=axis)
    return body.reduced(body.pick(("ReduceSum", "ReduceMax")), own, [axis], keep=body.chance())


def _piece(body: Body, state: Array, axis: int) -> str:
    """What a step joins with the state."""
    pieces = [n for n in body.made() if _fits(body.array(n), state, axis)]
    if pieces and body.chance(0.8):
        return str(body.pick(pieces))
    shape = tuple(body.pick((1, 1, 2)) if k == axis else e for k, e in enumerate(state.shape))
    return body.operand(shape, state.dtype.name)


def _changed(body: Body, own: str, axis: int, piece: str) -> str | None:
    """The state after a step."""
    way = body.integer(0, 4)
    if way == 0:
        return body.one("Concat", [own, own], axis=axis)
    if way == 1:
        begin, end = body.integer(0, 1), body.pick((-1, 1 << 40))
        return body.one("Slice", [own, *(body.ints([value]) for value in (begin, end, axis))])
    return body.one("Concat", [piece, own] if way == 2 else [own, piece], axis=axis)


def _fits(piece: Array, state: Array, axis: int) -> bool:
    one, other = (np.delete(a.shape, axis).tolist() if a.ndim == state.ndim else None for a in (piece, state))
    return one == other and piece.dtype == state.dtype and piece.shape[axis] <= 2


def _end(body: Body, number: str, going: str, steps: int) -> tuple[str, str | None]:
    """The number of steps as the loop gets it, and what a step says about the next one, both known at import."""
    most = body.around.constant(np.asarray(steps, np.int64))
    if body.chance():
        return most, going
    return body.pick((most, "")), body.one("Less", [number, body.ints(body.integer(0, MOST_STEPS - 1))])


def _open(value: onnx.ValueInfoProto, axis: int) -> None:
    value.type.tensor_type.shape.dim[axis].Clear()

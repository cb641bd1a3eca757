"""Recipes for sequences and optional values: made, changed and read in each of ONNX's ways, in loops too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from smartmem_rules.fuzzing.case import Array, value_info
from smartmem_rules.fuzzing.recipes.builder import Builder
from smartmem_rules.fuzzing.recipes.control import MOST_ELEMENTS, Body, Grow

MOST_MEMBERS = 6
MOST_CHANGES = 3


def sequence(b: Builder, grow: Grow) -> None:
    """A sequence that is made, changed and read."""
    name = b.pick((_constructed, _split, _split, _filled))(b)
    for _ in range(b.integer(0, MOST_CHANGES)):
        change = b.pick((_inserted, _inserted, _erased, _erased, _same, _chosen, _collected))
        name = name and (change(b, name) or name)
    for _ in range(b.integer(1, 2)):
        if name:
            b.pick((_member, _member, _joined, _joined, _counted))(b, name)
    if name and b.opset >= 17 and b.chance(0.4):
        mapped = _mapped(b, name, grow)
        if mapped:
            b.pick((_member, _joined))(b, mapped)


def optional(b: Builder, _: Grow) -> None:
    """An optional value that holds a tensor or nothing, asked for it and taken."""
    if b.opset < 18:  # before, a tensor was no optional value
        return
    x = b.tensor()
    if b.chance(0.3):
        kind = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(b.array(x).dtype), None)
        held = _one(b, "Optional", [], type=kind)
    else:
        held = _one(b, "Optional", [x]) if b.chance(0.6) else x
    _one(b, "OptionalHasElement", [held] if held else [])
    if held and (held == x or b.optionals[held] is not None):
        _one(b, "OptionalGetElement", [held])


# --- made ---


def _constructed(b: Builder) -> str | None:
    first = b.tensor(None, 0, 5, _is_small)
    if not _is_small(b.array(first)):
        return None
    return _one(b, "SequenceConstruct", [first, *(_another(b, first) for _ in range(b.integer(0, MOST_MEMBERS - 1)))])


def _another(b: Builder, name: str) -> str:
    """A tensor of the same element type, most often of the same shape."""
    like = b.array(name)
    if b.chance(0.75) or not like.ndim:
        return b.operand(like.shape, like.dtype.name)
    shape = list(like.shape)
    shape[b.integer(0, like.ndim - 1)] = b.pick((1, 2, 3, 5))
    return b.operand(tuple(shape), like.dtype.name)


def _split(b: Builder) -> str | None:
    x = b.tensor(None, 1, 5, lambda a: 0 < a.size <= MOST_ELEMENTS)
    shape = b.shape(x)
    axes = [k for k, e in enumerate(shape) if 0 < e <= MOST_MEMBERS * 4]
    if not axes:
        return None
    axis = b.pick(axes)
    extent = shape[axis]
    given: dict[str, Any] = {"axis": axis - len(shape) if b.chance(0.3) else axis}
    way = b.integer(0, 2)
    if way == 0 and extent <= MOST_MEMBERS:
        if b.chance(0.7):
            given["keepdims"] = b.integer(0, 1)
        return _one(b, "SplitToSequence", [x], **given)
    if way == 1:
        size = b.integer(max(1, -(-extent // MOST_MEMBERS)), extent)
        return _one(b, "SplitToSequence", [x, b.ints(size)], **given)
    ends = sorted(b.integer(0, extent) for _ in range(b.integer(0, 3)))
    return _one(b, "SplitToSequence", [x, b.ints(np.diff([0, *ends, extent]).tolist())], **given)


def _filled(b: Builder) -> str | None:
    """A sequence that starts empty and gets members one by one, or in a loop."""
    x = b.tensor(None, 1, 4, lambda a: 0 < a.size <= MOST_ELEMENTS)
    array = b.array(x)
    empty = _one(b, "SequenceEmpty", [], dtype=helper.np_dtype_to_tensor_dtype(array.dtype))
    if empty is None or not 0 < array.shape[0] <= MOST_MEMBERS:
        return None
    steps = b.integer(1, array.shape[0])
    if b.chance(0.4):
        name: str | None = empty
        for place in range(steps):
            part = b.one("Gather", [x, b.ints(place)], axis=0)
            name = name and part and _one(b, "SequenceInsert", [name, part])
        return name
    number, going, state = (f"{b.prefix}q{b.bodies}_{word}" for word in ("number", "going", "state"))
    body = Body(b, {number: np.asarray(0, np.int64), going: np.asarray(True)})
    body.tensors[x] = array
    body.lists[state] = []
    part = body.one("Gather", [x, number], axis=0)
    first = [body.ints(0)] if b.chance(0.3) else []
    after = part and _one(body, "SequenceInsert", [state, part, *first])
    on = body.resulting([going])
    if not after or not on:
        return None
    kept = body.nodes
    graph = helper.make_graph(
        kept,
        body.prefix,
        [value_info(number, body.given[number]), value_info(going, body.given[going]), _list_info(state, array)],
        [value_info(on[0], np.asarray(True)), _list_info(after, array)],
        [onnx.numpy_helper.from_array(a, n) for n, a in body.constants.items()],
    )
    made = b.follow(helper.make_node("Loop", [b.ints(steps), "", empty], b.names(1), body=graph))
    return made[0] if made else None


# --- changed ---


def _inserted(b: Builder, name: str) -> str | None:
    members = b.lists[name]
    if not members or len(members) >= MOST_MEMBERS:
        return None
    like = b.constant(members[0])
    place = [_place(b, -len(members), len(members))] if b.chance(0.7) else []
    return _one(b, "SequenceInsert", [name, _another(b, like), *place])


def _erased(b: Builder, name: str) -> str | None:
    count = len(b.lists[name])
    if count < 2:
        return None
    return _one(b, "SequenceErase", [name, *([_place(b, -count, count - 1)] if b.chance(0.7) else [])])


def _same(b: Builder, name: str) -> str | None:
    return _one(b, "Identity", [name]) if b.opset >= 14 else None


def _chosen(b: Builder, name: str) -> str | None:
    """One of two sequences by a condition; the branches are what changes the sequence."""
    branches: dict[str, onnx.GraphProto] = {}
    if not b.lists[name]:
        return None
    for branch in ("then_branch", "else_branch"):
        body = Body(b, {})
        body.lists[name] = b.lists[name]
        result = _inserted(body, name) if b.chance(0.4) else _erased(body, name)
        result = result or _same(body, name)
        if result is None:
            return None
        info = _list_info(result, b.lists[name][0])
        constants = [onnx.numpy_helper.from_array(a, n) for n, a in body.constants.items()]
        branches[branch] = helper.make_graph(body.nodes, body.prefix, [], [info], constants)
    condition = b.constant(np.asarray(b.chance())) if b.chance(0.6) else b.input(np.asarray(b.chance()))
    made = b.follow(helper.make_node("If", [condition], b.names(1), **branches))
    return made[0] if made else None


def _collected(b: Builder, name: str) -> str | None:
    """Some members, taken and put into a sequence anew."""
    count = len(b.lists[name])
    taken = [_at(b, name, b.integer(-count, count - 1)) for _ in range(b.integer(1, 3))] if count else []
    return _one(b, "SequenceConstruct", [n for n in taken if n]) if all(taken) and taken else None


def _mapped(b: Builder, name: str, grow: Grow) -> str | None:
    members = b.lists[name]
    if not members:
        return None
    inputs = f"{b.prefix}m{b.bodies}_member"
    body = Body(b, {inputs: members[0]})
    body.grow(grow, 3)
    results = body.resulting(body.made()[-1:] or [inputs])
    if not results:
        return None
    graph = body.graph([inputs], results)
    made = b.follow(helper.make_node("SequenceMap", [name], b.names(1), body=graph))
    return made[0] if made else None


# --- read ---


def _member(b: Builder, name: str) -> None:
    count = len(b.lists[name])
    if count:
        same = len({m.shape for m in b.lists[name]}) == 1
        place = b.integer(-count, count - 1)
        if same and b.chance(0.4):
            at = b.input(np.asarray(place, b.pick((np.int64, np.int32))))
            b.follow(helper.make_node("SequenceAt", [name, at], b.names(1)))
        else:
            _at(b, name, place)


def _at(b: Builder, name: str, place: int) -> str | None:
    return _one(b, "SequenceAt", [name, _place(b, place, place)])


def _joined(b: Builder, name: str) -> None:
    members = b.lists[name]
    if not members or not members[0].ndim:
        return
    rank = members[0].ndim
    if len({m.shape for m in members}) == 1 and b.chance():
        axis = b.integer(-rank - 1, rank)
        b.follow(helper.make_node("ConcatFromSequence", [name], b.names(1), axis=axis, new_axis=1))
        return
    b.follow(helper.make_node("ConcatFromSequence", [name], b.names(1), axis=b.integer(-rank, rank - 1)))


def _counted(b: Builder, name: str) -> None:
    b.follow(helper.make_node("SequenceLength", [name], b.names(1)))


def _place(b: Builder, low: int, high: int) -> str:
    return b.constant(b.integer(low, high), b.pick((np.int64, np.int64, np.int32)))


def _one(b: Builder, operator: str, operands: list[str], **given: Any) -> str | None:
    made = b.follow(helper.make_node(operator, operands, b.names(1), **given))
    return made[0] if made else None


def _list_info(name: str, like: Array) -> onnx.ValueInfoProto:
    kind: int = helper.np_dtype_to_tensor_dtype(like.dtype) or TensorProto.FLOAT
    return helper.make_tensor_sequence_value_info(name, kind, None)


def _is_small(array: Array) -> bool:
    return array.size <= MOST_ELEMENTS // MOST_MEMBERS


RECIPES: tuple[Callable[[Builder, Grow], None], ...] = (sequence, sequence, sequence, optional)

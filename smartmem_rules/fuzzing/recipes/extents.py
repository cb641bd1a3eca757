"""Recipes for shape arithmetic, as exporters write it: extents are read, computed with, and become parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from smartmem_rules.fuzzing.recipes.builder import Builder

_READERS = ("Shape", "Size")
MOST_LENGTH = 64
"""How many elements one tensor of extents has at most."""


def known(b: Builder, low: int = 0, high: int = 1, dtypes: tuple[str, ...] = ("int64",)) -> list[str]:
    """The tensors that depend on shapes and constants alone."""
    names = dict.fromkeys(b.constants)
    for node in b.nodes:
        if node.op_type in _READERS or all(name in names for name in node.input if name):
            names.update(dict.fromkeys(node.output))
    return [
        name for name in names
        if name in b.tensors and b.array(name).dtype.name in dtypes and low <= b.array(name).ndim <= high
        and b.array(name).size <= MOST_LENGTH
    ]  # fmt: skip


def shape_of(b: Builder) -> None:
    x = b.tensor(None, 1)
    rank = b.array(x).ndim
    if b.chance(0.15):
        b.one("Size", [x])
    elif b.opset >= 15 and b.chance(0.3):
        ends: dict[str, Any] = {"end": b.integer(-rank, rank)} if b.chance() else {}
        b.one("Shape", [x], start=b.integer(-rank, rank - 1), **ends)
    else:
        b.one("Shape", [x])


def extent(b: Builder, x: str, axis: int, as_list: bool = True) -> str | None:
    """The extent of an axis, by one of the ways of exporters."""
    shape = b.one("Shape", [x])
    if shape is None:
        return None
    rank = b.array(x).ndim
    if as_list and b.chance(0.3):
        return b.one("Slice", [shape, b.ints([axis]), b.ints([axis + 1]), b.ints([0])])
    place = axis - rank if b.chance(0.3) else axis
    if as_list and b.chance():
        return b.one("Gather", [shape, b.ints([place])], axis=0)
    scalar = b.one("Gather", [shape, b.ints(place)], axis=0)
    return b.one("Unsqueeze", [scalar, b.ints([0])]) if as_list and scalar else scalar


def arithmetic(b: Builder) -> None:
    """One step of computing with extents."""
    names = known(b)
    if not names:
        return shape_of(b)
    k = b.pick(names)
    value = b.array(k)
    way = b.integer(0, 11)
    if way < 3:
        other = b.pick([*names, b.ints(b.pick((1, 2, 3, 7, -1)))])
        pair = [k, other] if b.chance(0.8) else [other, k]
        b.one(b.pick(("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min")), pair)
    elif way == 3:
        _through_floats(b, k)
    elif way == 4 and value.ndim == 1:
        parts = [k, *(b.pick([n for n in names if b.array(n).ndim == 1] or [k]) for _ in range(b.integer(0, 2)))]
        b.one("Concat", [*parts, b.ints([b.integer(1, 4)])] if b.chance() else parts, axis=0)
    elif way == 5 and value.ndim == 1 and value.size:
        places = b.random.integers(-value.size, value.size, b.pick(((), (1,), (2,), (3,)))).astype(np.int64)
        b.one("Gather", [k, b.constant(places)], axis=0)
    elif way == 6 and value.ndim == 1 and value.size:
        start = b.integer(0, value.size - 1)
        ends = b.pick((value.size, start + 1, 2**31, -1))
        b.one("Slice", [k, b.ints([start]), b.ints([ends]), b.ints([0])])
    elif way == 7:
        b.one("Squeeze" if value.shape == (1,) else "Unsqueeze" if value.ndim == 0 else "Identity",
              [k, b.ints([0])] if value.size == 1 and value.ndim < 2 else [k])  # fmt: skip
    elif way == 8:
        b.reduced(b.pick(("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin")), k, list(range(value.ndim)), b.chance())
    elif way == 9:
        _chosen(b, k)
    elif way == 10:
        b.one(b.pick(("Neg", "Abs", "Sign")), [k])
    else:
        b.one("Cast", [k], to=b.pick((1, 6, 7, 9, 10, 11)))


def _through_floats(b: Builder, k: str) -> None:
    """An extent times a fraction, rounded: how sizes of a resize are computed."""
    real = b.one("Cast", [k], to=1)
    scaled = real and b.one(b.pick(("Mul", "Div")), [real, b.constant(b.pick((0.5, 1.5, 2.0, 3.0)), np.float32)])
    rounded = scaled and b.one(b.pick(("Floor", "Ceil", "Round")), [scaled])
    if rounded:
        b.one("Cast", [rounded], to=7)


def _chosen(b: Builder, k: str) -> None:
    """`Where(k == -1, other, k)`, as exporters write the shape of an Expand."""
    names = [n for n in known(b) if b.shape(n) in ((), b.shape(k))]
    condition = b.one(b.pick(("Equal", "Less", "Greater")), [k, b.ints(b.pick((-1, 1, 2, 8)))])
    if condition:
        b.one("Where", [condition, b.pick(names), k])


# --- extents that become parameters ---


def reshape(b: Builder) -> None:
    """Axes merged and split by products and quotients of extents, one of them -1 now and then, or 0 for "as it was"."""
    x = b.tensor(None, 1, 6, lambda a: a.size > 0)
    shape, parts, axis = b.shape(x), list[str | None](), 0
    while axis < len(shape):
        merged = axis + 1 < len(shape) and b.chance(0.35)
        first = extent(b, x, axis)
        if merged and first:
            second = extent(b, x, axis + 1)
            parts.append(second and b.one("Mul", [first, second]))
            axis += 1
        elif first and b.chance(0.3) and any(shape[axis] % f == 0 for f in (2, 3, 5)):
            factor = b.pick([f for f in (2, 3, 5) if shape[axis] % f == 0])
            parts += [b.one("Div", [first, b.ints(b.pick(([factor], factor)))]), b.ints([factor])]
        elif len(parts) == axis and b.chance(0.15):
            parts.append(b.ints([0]))
        else:
            parts.append(b.ints([shape[axis]]) if b.chance(0.3) else first)
        axis += 1
    if b.chance(0.4):
        parts[b.integer(0, len(parts) - 1)] = b.ints([-1])
    wanted = b.one("Concat", [p for p in parts if p], axis=0) if all(parts) else None
    if wanted:
        b.one("Reshape", [x, wanted])


def expand(b: Builder) -> None:
    x, y = b.tensor(None, 0, 4), b.tensor(None, 1, 4)
    shape = b.one("Shape", [y])
    if shape and b.chance(0.4):
        ones = b.one("ConstantOfShape", [b.ints([len(b.shape(y))])], value=_tensor([1]))
        condition = b.one("Equal", [shape, b.ints([-1])])
        shape = b.one("Where", [condition, ones, shape]) if condition and ones else None
    if shape:
        b.one("Expand", [x, shape])


def filled(b: Builder) -> None:
    """A tensor that holds one value everywhere in the shape of another tensor, and an operator that takes both."""
    x = b.tensor(None, 0, 5)
    shape = b.one("Shape", [x])
    dtype = b.array(x).dtype
    value = {"value": _tensor(np.asarray([b.pick((0, 1, 2))], dtype))} if b.chance(0.9) else {}
    made = shape and b.one("ConstantOfShape", [shape], **value)
    if made:
        b.one(b.pick(("Add", "Mul", "Max", "Where")), [x, made])


def positions(b: Builder) -> None:
    """A range as long as an axis, compared with itself: a mask, or places to gather at."""
    x = b.tensor(("float32", "float16", "float64"), 1, 4)
    axis = b.integer(0, b.array(x).ndim - 1)
    length = extent(b, x, axis, as_list=False)
    places = length and b.one("Range", [b.ints(0), length, b.ints(b.pick((1, 1, 2)))])
    if not places:
        return
    if b.chance(0.3):
        b.one("Gather", [x, places], axis=axis)
    elif b.chance(0.3):
        real = b.one("Cast", [places], to=1)
        if real:
            b.one(b.pick(("Cos", "Sqrt", "Neg")), [real])
    else:
        row = b.one("Unsqueeze", [places, b.ints([0])])
        column = b.one("Unsqueeze", [places, b.ints([1])])
        mask = row and column and b.one(b.pick(("Less", "LessOrEqual", "Equal")), [row, column])
        zeros = b.constant(b.pick((-1e4, 0.0)), b.array(x).dtype)
        if mask and axis == b.array(x).ndim - 1:
            b.one("Where", [mask, x, zeros])


def slices(b: Builder) -> None:
    """The first half of an axis, all but its last elements, or as many elements as another axis has."""
    x = b.tensor(None, 1)
    axis = b.integer(0, b.array(x).ndim - 1)
    length = extent(b, x, axis)
    if length is None:
        return
    cut = b.one(b.pick(("Div", "Sub")), [length, b.ints([b.pick((1, 2, 3))])])
    others = [n for n in known(b, 1, 1) if b.shape(n) == (1,)]
    place = b.pick([n for n in (cut, *others) if n])
    bounds = [b.ints([0]), place] if b.chance() else [place, length]
    steps = [b.ints([b.pick((1, 1, 2))])] if b.chance() else []
    b.one("Slice", [x, *bounds, b.ints([axis]), *steps])


def padded(b: Builder) -> None:
    """An axis filled up to a multiple of a number, as before windows."""
    x = b.tensor(("float32", "float64", "int64"), 1, 5)
    rank = b.array(x).ndim
    axis, unit = b.integer(0, rank - 1), b.pick((2, 4, 7, 8))
    length = extent(b, x, axis)
    rest = length and b.one("Mod", [length, b.ints([unit])])
    missing = rest and b.one("Sub", [b.ints([unit]), rest])
    if missing and b.chance(0.7):
        missing = b.one("Mod", [missing, b.ints([unit])])
    if missing:
        before, after = b.ints([0] * (rank + axis)), b.ints([0] * (rank - axis - 1))
        pads = b.one("Concat", [p for p in (before, missing, after) if b.array(p).size], axis=0)
        if pads:
            b.one("Pad", [x, pads])


def counted(b: Builder) -> None:
    """Operators with a number that may come from an extent: how often, how many, from where."""
    x = b.tensor(("float32", "float64", "int64", "int32"), 1, 4)
    names = known(b)
    lists = [n for n in names if b.shape(n) == (1,)]
    scalars = [n for n in names if b.shape(n) == ()]
    rank, way = b.array(x).ndim, b.integer(0, 4)
    axis = b.integer(0, rank - 1)
    if way == 0:
        length = extent(b, x, axis)
        most = length and b.one("Min", [length, b.ints([b.integer(1, 4)])])
        if most:
            b.add("TopK", [x, most], 2, axis=axis)
    elif way == 1 and rank >= 2 and scalars:
        b.one("Trilu", [x, b.pick(scalars)], upper=b.integer(0, 1))
    elif way == 2 and lists:
        repeats = [b.pick(lists) if b.chance(0.4) else b.ints([1]) for _ in range(rank)]
        together = b.one("Concat", repeats, axis=0)
        if together:
            b.one("Tile", [x, together])
    elif way == 3:
        length = extent(b, x, axis)
        first = length and b.one("Div", [length, b.ints([2])])
        second = b.one("Sub", [length, first]) if length and first else None
        sizes = b.one("Concat", [first, second], axis=0) if first and second else None
        if sizes:
            b.add("Split", [x, sizes], 2, axis=axis)
    elif lists or scalars:
        number = b.pick([*lists, *scalars])
        real = b.one("Cast", [number], to=1 if b.array(x).dtype.name == "float32" else 11)
        if real:
            b.one(b.pick(("Mul", "Div", "Add")), [x, real])


def resized(b: Builder) -> None:
    """Images as large as those of another tensor, or twice as large."""
    x = b.tensor(("float32",), 4, 4)
    shape = b.one("Shape", [x])
    kept = shape and b.one("Slice", [shape, b.ints([0]), b.ints([2]), b.ints([0])])
    measured = b.one("Shape", [b.tensor(("float32",), 4, 4)]) if b.chance() else shape
    rest = measured and b.one("Slice", [measured, b.ints([2]), b.ints([4]), b.ints([0])])
    grown = rest and b.one("Mul", [rest, b.ints(b.pick(([2, 2], [1, 2], [3, 1], [1, 1])))])
    sizes = kept and grown and b.one("Concat", [kept, grown], axis=0)
    if sizes:
        mode = b.pick(("nearest", "linear", "cubic"))
        place = b.pick(("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"))
        b.one("Resize", [x, "", "", sizes], mode=mode, coordinate_transformation_mode=place)


def _tensor(values: object) -> onnx.TensorProto:
    return numpy_helper.from_array(values if isinstance(values, np.ndarray) else np.asarray(values, np.int64))

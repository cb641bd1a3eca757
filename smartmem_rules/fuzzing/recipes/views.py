"""Recipes for operators that move elements: views, and what chooses or places elements by indices."""

from __future__ import annotations

import math

import numpy as np

from smartmem_rules.fuzzing.recipes.builder import NUMBER_TYPES, Builder


def reshape(b: Builder) -> None:
    x = b.tensor()
    rest = b.array(x).size
    shape: list[int] = []
    if rest == 0:
        shape = list(b.random.permutation(b.shape(x)))
    while rest > 1 and len(shape) < 7:
        factor = b.pick([f for f in range(2, rest + 1) if rest % f == 0][:8])
        shape.append(int(factor))
        rest //= factor
    if rest > 1:
        shape[-1] *= rest
    while b.chance(0.3) and len(shape) < 8:
        shape.insert(b.integer(0, len(shape)), 1)
    b.random.shuffle(shape)
    if shape and b.chance(0.3) and 0 not in shape:
        shape[b.integer(0, len(shape) - 1)] = -1
    b.one("Reshape", [x, b.ints(shape)], allowzero=int(0 in shape))


def flatten(b: Builder) -> None:
    x = b.tensor()
    rank = b.array(x).ndim
    b.one("Flatten", [x], axis=b.integer(-rank, rank))


def transpose(b: Builder) -> None:
    x = b.tensor(None, 1)
    rank = b.array(x).ndim
    if b.chance(0.1):
        b.one("Transpose", [x])
    else:
        b.one("Transpose", [x], perm=b.random.permutation(rank).tolist())


def squeeze(b: Builder) -> None:
    x = b.tensor(None, 1)
    ones = [a for a, e in enumerate(b.shape(x)) if e == 1]
    if ones and b.chance(0.6):
        b.one("Squeeze", [x, b.ints(b.subset(ones, 1))] if b.chance(0.8) else [x])
        return
    rank = b.array(x).ndim
    added = b.integer(1, 2)
    axes = b.random.choice(rank + added, size=added, replace=False).tolist()
    b.one("Unsqueeze", [x, b.ints([a - rank - added if b.chance(0.3) else a for a in axes])])


def slices(b: Builder) -> None:
    x = b.tensor(None, 1)
    shape = b.shape(x)
    axes = b.subset(range(len(shape)), 1)[:3]
    starts, ends, steps = [], [], []
    for axis in axes:
        extent = shape[axis]
        if b.chance(0.08):  # far outside, as exporters write them
            starts.append(b.pick((-(2**63) + 1, 0, 2**31, extent, -extent - 1)))
            ends.append(b.pick((2**63 - 1, -(2**63), 2**31 - 1, -extent - 5)))
            steps.append(b.pick((1, -1, 2, -2, 2**31)))
            continue
        low = b.integer(0, max(0, extent - 1))
        high = b.integer(low, extent) if b.chance(0.1) else b.integer(min(low + 1, extent), extent)
        step = b.pick((1, 1, 1, 2, 3, extent + 1))
        if b.chance(0.25):
            low, high, step = high - 1, low - 1 if low else -extent - 1, -step
        elif b.chance(0.3):
            low, high = low - extent, (high - extent) if high < extent else high
        starts.append(low)
        ends.append(high)
        steps.append(step)
    named = [a - len(shape) if b.chance(0.3) else a for a in axes]
    b.one("Slice", [x, b.ints(starts), b.ints(ends), b.ints(named), b.ints(steps)])


def concat(b: Builder) -> None:
    x = b.tensor(None, 1)
    array = b.array(x)
    axis = b.integer(0, array.ndim - 1)
    parts = [x]
    for _ in range(b.integer(0, 3)):
        extent = b.pick((array.shape[axis], 1, 2, 3, 5))
        shape = (*array.shape[:axis], extent, *array.shape[axis + 1 :])
        parts.append(x if b.chance(0.15) else b.operand(shape, array.dtype.name))
    if array.size <= 16 and b.chance(0.02):  # as loops of many steps leave them
        parts += [b.pick(parts) for _ in range(b.integer(120, 280))]
    b.random.shuffle(parts)
    b.one("Concat", parts, axis=axis - (array.ndim if b.chance(0.3) else 0))


def split(b: Builder) -> None:
    x = b.tensor(None, 1)
    shape = b.shape(x)
    axis = b.integer(0, len(shape) - 1)
    extent, sizes = shape[axis], list[int]()
    for _ in range(b.integer(1, 3)):
        sizes.append(b.integer(1 if extent > sum(sizes) else 0, max(0, extent - sum(sizes))))
    sizes.append(extent - sum(sizes))
    b.add("Split", [x, b.ints(sizes)], len(sizes), axis=axis)


def shifted(b: Builder) -> None:
    """Two slices the other way round: a cyclic shift, as in window attention."""
    x = b.tensor(None, 1)
    shape = b.shape(x)
    axis = b.integer(0, len(shape) - 1)
    if shape[axis] < 2:
        return
    cut = b.ints([b.integer(1, shape[axis] - 1)])
    second = b.one("Slice", [x, cut, b.ints([2**31]), b.ints([axis])])
    first = b.one("Slice", [x, b.ints([0]), cut, b.ints([axis])])
    if first and second:
        b.one("Concat", [second, first], axis=axis)


def pad(b: Builder) -> None:
    x = b.tensor((*NUMBER_TYPES, "bool"), 1)
    array = b.array(x)
    mode = b.pick(("constant", "constant", "edge", "reflect", *(("wrap",) if b.opset >= 19 else ())))
    low = -2 if b.chance(0.2) else 0
    pads = [b.integer(max(low, -(e // 2)), min(3, max(0, e - 1)) if mode != "constant" else 3) if b.chance() else 0
            for e in (*array.shape, *array.shape)]  # fmt: skip
    fill = [b.constant(b.pick((0, 1, 3)), array.dtype)] if mode == "constant" and b.chance(0.6) else []
    b.one("Pad", [x, b.ints(pads), *fill], mode=mode)


def expand(b: Builder) -> None:
    x = b.tensor()
    shape = [b.pick((2, 3, 4, 7)) if e == 1 and b.chance() else e for e in b.shape(x)]
    wider = [b.pick((1, 2, 3)) for _ in range(b.integer(0, 2))] if len(shape) < 6 else []
    target = [*wider, *(1 if b.chance(0.2) else e for e in shape)]
    b.one("Expand", [x, b.ints(target)])


def tile(b: Builder) -> None:
    x = b.tensor(None, 1)
    b.one("Tile", [x, b.ints([b.pick((1, 1, 2, 3)) for _ in b.shape(x)])])


def depth_to_space(b: Builder) -> None:
    x = b.tensor(("float32", "float64", "uint8", "float16"), 4, 4)
    block = b.pick((2, 2, 3))
    if b.shape(x)[1] % (block * block) == 0 and b.shape(x)[1]:
        b.one("DepthToSpace", [x], blocksize=block, mode=b.pick(("DCR", "CRD")))
    else:
        b.one("SpaceToDepth", [x], blocksize=block)


def gather(b: Builder) -> None:
    x = b.tensor(None, 1)
    shape = b.shape(x)
    axis = b.integer(0, len(shape) - 1)
    extent = shape[axis]
    if not extent:
        return
    way = b.integer(0, 3)
    if way < 2:
        chosen = tuple(b.pick((1, 2, 3, 5)) for _ in range(b.integer(0, 2)))
        b.one("Gather", [x, _indices(b, chosen, extent)], axis=axis - (len(shape) if b.chance(0.3) else 0))
    elif way == 2:
        chosen = tuple(b.integer(1, max(1, e)) if b.chance(0.4) else e for e in shape)
        b.one("GatherElements", [x, _indices(b, chosen, extent)], axis=axis)
    else:
        deep = b.integer(1, len(shape))
        if 0 in shape[:deep]:
            return
        chosen = tuple(b.pick((1, 2, 3)) for _ in range(b.integer(0, 2)))
        columns = [b.random.integers(-e, e, chosen) for e in shape[:deep]]
        values = np.stack(columns, -1).astype(np.int64)
        b.one("GatherND", [x, b.constant(values) if b.chance() else b.input(values)])


def _indices(b: Builder, shape: tuple[int, ...], extent: int) -> str:
    values = b.random.integers(-extent if b.chance(0.3) else 0, extent, shape).astype(b.pick((np.int64, np.int32)))
    return b.constant(values) if b.chance() else b.input(values)


def scatter(b: Builder) -> None:
    x = b.tensor(None, 1, 5)
    array = b.array(x)
    axis = b.integer(0, array.ndim - 1)
    if not array.size:
        return
    mode = b.pick(("none", "none", "add", "mul", *(("max", "min") if b.opset >= 18 else ())))
    given = {"reduction": mode} if mode != "none" and b.opset >= 16 else {}
    if b.chance():
        shape = tuple(b.integer(1, e) for e in array.shape)
        # without a reduction an element is written once: which of two writes lasts is not defined
        rows = np.stack(
            [b.random.permutation(array.shape[axis])[: shape[axis]] for _ in range(math.prod(shape) // shape[axis])]
        )
        moved = rows.reshape(*(e for a, e in enumerate(shape) if a != axis), shape[axis])
        indices = np.moveaxis(moved, -1, axis).astype(np.int64)
        operands = [x, b.constant(indices) if b.chance() else b.input(indices), b.operand(shape, array.dtype.name)]
        b.one("ScatterElements", operands, axis=axis, **given)
        return
    deep = b.integer(1, array.ndim)
    places = math.prod(array.shape[:deep])
    chosen = b.random.permutation(places)[: b.integer(1, min(places, 5))]
    indices = np.stack(np.unravel_index(chosen, array.shape[:deep]), -1).astype(np.int64)
    updates = b.operand((len(chosen), *array.shape[deep:]), array.dtype.name)
    b.one("ScatterND", [x, b.constant(indices) if b.chance() else b.input(indices), updates], **given)


def triangle(b: Builder) -> None:
    x = b.tensor(None, 2)
    operands = [x, b.ints(b.integer(-3, 3))] if b.chance(0.7) else [x]
    b.one("Trilu", operands, upper=b.integer(0, 1))


def one_hot(b: Builder) -> None:
    depth = b.pick((1, 2, 3, 5, 8))
    shape = tuple(b.pick((1, 2, 3, 7)) for _ in range(b.integer(0, 3)))
    indices = b.random.integers(-depth, depth, shape).astype(np.int64)
    values = b.constant([0, b.pick((1, 5))], b.pick((np.float32, np.int64, np.int32)))
    operands = [b.input(indices), b.constant([depth], np.int64), values]
    b.one("OneHot", operands, axis=b.integer(-len(shape) - 1, len(shape)))


def top(b: Builder) -> None:
    x = b.tensor(("float32", "float64", "int64", "int32", "float16"), 1)
    shape = b.shape(x)
    axis = b.integer(0, len(shape) - 1)
    if shape[axis]:
        count = b.ints([b.integer(1, shape[axis])])
        b.add("TopK", [x, count], 2, axis=axis - (len(shape) if b.chance(0.3) else 0), largest=b.integer(0, 1))


def reverse(b: Builder) -> None:
    x = b.tensor(None, 2)
    shape = b.shape(x)
    time, batch = (0, 1) if b.chance() else (1, 0)
    if shape[time] and shape[batch]:
        lengths = b.random.integers(1, shape[time] + 1, shape[batch]).astype(np.int64)
        given = b.constant(lengths) if b.chance() else b.input(lengths)
        b.one("ReverseSequence", [x, given], time_axis=time, batch_axis=batch)


def crop(b: Builder) -> None:
    x = b.tensor(NUMBER_TYPES, 1)
    shape = b.shape(x)
    axes = b.subset(range(len(shape)), 1)
    b.one("CenterCropPad", [x, b.ints([b.pick((1, 2, 3, 5, 8)) for _ in axes])], axes=axes)


def eye(b: Builder) -> None:
    x = b.tensor(NUMBER_TYPES, 2, 2)
    b.one("EyeLike", [x], k=b.integer(-2, 2))

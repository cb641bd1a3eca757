"""Recipes for tensors whose extents depend on data, and for operators that have to know these extents."""

from __future__ import annotations

from onnx import helper

from smartmem_rules.fuzzing.case import value_info
from smartmem_rules.fuzzing.recipes.builder import Builder

_FLOATS = ("float32", "float64", "float16")
_NUMBERS = (*_FLOATS, "int32", "int64")
_REDUCTIONS = ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL2")


def selected(b: Builder) -> None:
    """Elements or slices that a condition, values or boxes select, often read by what needs their number."""
    way = b.integer(0, 5)
    if way <= 1:
        found = _where(b)
    elif way == 2:
        found = _compressed(b)
    elif way == 3:
        x = b.tensor(_NUMBERS, 1, 3)
        found = b.add("Unique", [x], b.integer(1, 4), sorted=b.integer(0, 1))[:1]
    elif way == 4:
        found = _boxes(b)
    else:
        found = _either(b)
    for name in found:
        for _ in range(b.integer(0, 3)):
            used(b, name)


def used(b: Builder, name: str) -> None:
    """Something that has to know the extents of a tensor."""
    rank = b.array(name).ndim
    if rank:
        b.pick(_USES)(b, name, b.integer(0, rank - 1))


def _reduced(b: Builder, name: str, axis: int) -> None:
    exact = b.array(name).dtype.name not in _FLOATS
    operator = b.pick(_REDUCTIONS[:3] if exact else _REDUCTIONS)
    keepdims = b.integer(0, 1)
    if b.opset < 18 and operator != "ReduceSum":
        b.one(operator, [name], keepdims=keepdims, axes=[axis])
    else:
        b.one(operator, [name, b.ints([axis])], keepdims=keepdims)


def _joined(b: Builder, name: str, axis: int) -> None:
    others = [n for n in b.tensors if _joins(b, n, name, axis)]
    b.one("Concat", [name, b.pick([name, *others])], axis=axis)


def _sliced(b: Builder, name: str, axis: int) -> None:
    ends = b.integer(-3, 3), b.pick([1, 2, 5, -1, 2**31 - 1])
    b.one("Slice", [name, *(b.ints([number]) for number in (*ends, axis, b.pick([1, 1, 2, -1])))])


def _flat(b: Builder, name: str, axis: int) -> None:
    b.one("Reshape", [name, b.ints([-1])] if axis or b.chance() else [name, b.ints([0, -1])])


def _top(b: Builder, name: str, axis: int) -> None:
    shape = b.one("Shape", [name])
    most = shape and b.one("Gather", [shape, b.ints([axis])], axis=0)
    count = most and b.one("Min", [most, b.ints([b.integer(1, 4)])])
    if count:
        b.add("TopK", [name, count], 2, axis=axis, largest=b.integer(0, 1))


def _shares(b: Builder, name: str, axis: int) -> None:
    if b.array(name).dtype.name in _FLOATS:
        b.one(b.pick(("Softmax", "LogSoftmax")), [name], axis=axis)


def _product(b: Builder, name: str, axis: int) -> None:
    if b.array(name).ndim == 2:
        turned = b.one("Transpose", [name], perm=[1, 0])
        if turned:
            b.one("MatMul", [turned, name] if axis else [name, turned])


def _places(b: Builder, name: str, axis: int) -> None:
    del axis
    b.one("NonZero", [name])


def _filled(b: Builder, name: str, axis: int) -> None:
    del axis
    shape = b.one("Shape", [name])
    filled = shape and b.one("ConstantOfShape", [shape])
    if filled and b.array(name).dtype.name == "float32":
        b.one(b.pick(("Add", "Max")), [filled, name])


def _sums(b: Builder, name: str, axis: int) -> None:
    b.one("CumSum", [name, b.ints(axis)], reverse=b.integer(0, 1))


_USES = (_reduced, _joined, _sliced, _flat, _top, _shares, _product, _places, _filled, _sums)


def _joins(b: Builder, other: str, name: str, axis: int) -> bool:
    one, two = b.array(other), b.array(name)
    rest = [list(array.shape) for array in (one, two)]
    if one.dtype != two.dtype or one.ndim != two.ndim:
        return False
    for shape in rest:
        del shape[axis]
    return rest[0] == rest[1]


def _where(b: Builder) -> list[str]:
    """What stands where a condition holds, of one tensor or of two."""
    x = b.tensor(_NUMBERS, 1, 3)
    dtype, shape = b.array(x).dtype.name, b.shape(x)
    tests = b.one(b.pick(("Greater", "Less")), [x, b.operand((), dtype)])
    places = tests and b.one("NonZero", [tests])
    turned = places and b.one("Transpose", [places], perm=[1, 0])
    if not turned:
        return []
    found = [b.one("GatherND", [one, turned]) for one in (x, b.operand(shape, dtype))[: b.integer(1, 2)]]
    known = [name for name in found if name]
    if len(known) == 2 and b.chance():
        known += [name for name in [b.one(b.pick(("Add", "Mul", "Max")), known)] if name]
    return known


def _compressed(b: Builder) -> list[str]:
    """The slices of a tensor, and now and then those of another one, for which a condition holds."""
    x = b.tensor(_NUMBERS, 1, 4)
    axis = b.integer(0, b.array(x).ndim - 1)
    mask = b.input(b.random.random(b.shape(x)[axis]) < b.pick((0.0, 0.3, 0.7, 1.0)))
    found = [b.one("Compress", [x, mask], axis=axis)]
    if b.chance():
        found.append(b.one("Compress", [b.operand(b.shape(x), b.array(x).dtype.name), mask], axis=axis))
    return [name for name in found if name]


def _boxes(b: Builder) -> list[str]:
    """The boxes that no better one covers."""
    count, classes = b.integer(1, 7), b.integer(1, 2)
    corners = b.random.random((1, count, 4)).astype("float32")
    boxes, scores = b.input(corners), b.input(b.random.random((1, classes, count)).astype("float32"))
    limits = [b.ints([b.integer(1, 4)]), b.constant([0.5], "float32"), b.constant([0.2], "float32")]
    kept = b.one("NonMaxSuppression", [boxes, scores, *limits])
    columns = kept and b.one("Slice", [kept, b.ints([2]), b.ints([3]), b.ints([1])])
    numbers = columns and b.one("Squeeze", [columns, b.ints([1])])
    flat = numbers and b.one("Reshape", [boxes, b.ints([-1, 4])])
    picked = flat and numbers and b.one("Gather", [flat, numbers], axis=0)
    return [name for name in (kept, picked) if name]


def _either(b: Builder) -> list[str]:
    """A tensor and something longer or shorter: which of them, the data say."""
    x = b.tensor(("float32",), 1, 3)
    total = b.one("ReduceMax", [x], keepdims=0)
    tests = total and b.one("Greater", [total, b.operand((), "float32")])
    if not tests:
        return []
    own, other = b.one("Relu", [x]), b.one("Slice", [x, b.ints([1]), b.ints([2**31 - 1]), b.ints([0])])
    if not own or not other:
        return []
    branches = {}
    for branch, given in (("then_branch", own), ("else_branch", other)):
        inner = f"{given}_{branch}"
        node = helper.make_node("Identity", [given], [inner])
        branches[branch] = helper.make_graph([node], branch, [], [value_info(inner, b.array(given))])
    return b.follow(helper.make_node("If", [tests], b.names(1), **branches))

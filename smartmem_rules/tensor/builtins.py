"""The compile-time functions of the rule language: arithmetic, lists and shapes.

Values are numbers, strings, truth values, `None`, tuples of these, `ConstantTensor`s and, while an equation is
instantiated, indices over loop variables.  Each function takes values and gives a value; all lists are tuples.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from functools import reduce
from itertools import accumulate, chain
from typing import TypeGuard

from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Gathered
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add, div, mod, scale
from smartmem_rules.tensor.ranges import agree, maximum, minimum
from smartmem_rules.tensor.substitution import gathered, lookup, ravel, unravel


class Unsupported(Exception):
    """An operator cannot be used in this way; the message says why, in the words of its rule file."""


class DefinitionError(Exception):
    """A definition or guard in a rule file computes something impossible."""


class UnlikeShapesError(Unsupported):
    """Shapes do not broadcast."""


@dataclass(frozen=True)
class ConstantTensor:
    """A constant operand that keeps its shape (`const indices: tensor`)."""

    shape: tuple[int, ...]
    values: tuple[int | float, ...]
    dtype: str = "float32"


MOST_ELEMENTS = 1 << 24

Scalar = int | float | str | bool | None | Index
Value = Scalar | tuple["Value", ...] | ConstantTensor


def spread(function: Callable[..., Value], *operands: Value) -> Value:
    """Apply a scalar function element by element; a scalar spreads over the lists beside it."""
    lengths = {len(o) for o in operands if isinstance(o, tuple)}
    if not lengths:
        return function(*operands)
    if len(lengths) > 1:
        raise DefinitionError(f"lists of lengths {sorted(lengths)} in one expression")
    length = lengths.pop()
    members = zip(*[o if isinstance(o, tuple) else (o,) * length for o in operands], strict=True)
    return tuple([spread(function, *m) if tuple in map(type, m) else function(*m) for m in members])


def _number(value: Value) -> int | float:
    if isinstance(value, Index) and value.is_constant:
        return value.constant
    if isinstance(value, bool | int | float):
        return value
    raise DefinitionError(f"a number is needed, not {describe(value)}")


def describe(value: Value) -> str:
    if isinstance(value, Index):
        return f"the run-time index {value}"
    if value is None:
        return "an absent value"
    return repr(value)


def plain(value: Value) -> Value:
    """A value whose number is known as this number."""
    return value.constant if isinstance(value, Index) and value.is_constant else value


def _add(a: Value, b: Value) -> Value:
    if isinstance(a, Index) or isinstance(b, Index):
        return add(_as_index(a), _as_index(b))
    return _number(a) + _number(b)


def _subtract(a: Value, b: Value) -> Value:
    if isinstance(a, Index) or isinstance(b, Index):
        return add(_as_index(a), scale(_as_index(b), -1))
    return _number(a) - _number(b)


def _multiply(a: Value, b: Value) -> Value:
    a, b = plain(a), plain(b)
    if isinstance(a, Index) and isinstance(b, Index):
        raise DefinitionError(f"the product of two run-time indices, ({a}) * ({b})")
    if isinstance(a, Index):
        return scale(a, _integer(b))
    if isinstance(b, Index):
        return scale(b, _integer(a))
    return _number(a) * _number(b)


def _floor_divide(a: Value, b: Value) -> Value:
    divisor = _number(b)
    if divisor == 0:
        raise DefinitionError("division by zero")
    if isinstance(a, Index):
        return div(a, _integer(b)) if divisor > 0 else div(scale(a, -1), -_integer(b))
    return _number(a) // divisor


def _modulo(a: Value, b: Value) -> Value:
    divisor = _number(b)
    if divisor == 0:
        raise DefinitionError("modulo zero")
    return mod(a, _integer(b)) if isinstance(a, Index) else _number(a) % divisor


def _divide(a: Value, b: Value) -> Value:
    divisor = _number(b)
    if divisor == 0:
        raise DefinitionError("division by zero")
    return _number(a) / divisor


def _as_index(value: Value) -> Index:
    if isinstance(value, Index):
        return value
    return Index(_integer(value))


def _integer(value: Value) -> int:
    number = _number(value)
    if is_symbolic(number):
        return number  # type: ignore[return-value]
    if int(number) != number:
        raise DefinitionError(f"an integer is needed, not {number}")
    return int(number)


def _power(a: int | float, b: int | float) -> int | float:
    if isinstance(a, int) and abs(b) > 1024:
        raise DefinitionError(f"the exponent {b} is too large")
    result: int | float = a**b
    return result


ARITHMETIC: dict[str, Callable[[Value, Value], Value]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "//": _floor_divide,
    "%": _modulo,
    "/": _divide,
    "**": lambda a, b: _power(_number(a), _number(b)),
}


def as_list(value: Value) -> tuple[Value, ...]:
    if isinstance(value, tuple):
        return value
    if isinstance(value, ConstantTensor):
        return value.values
    if value is None:
        raise DefinitionError("a list is needed, but the value is absent")
    return (value,)


def integers(value: Value) -> tuple[int, ...]:
    values = as_list(value)
    return values if are_plain_integers(values) else tuple(map(_integer, values))


def are_plain_integers(values: tuple[Value, ...]) -> TypeGuard[tuple[int, ...]]:
    """Whether all values are integers, none of them an open extent or a truth value."""
    return {int}.issuperset(map(type, values))


def _wrap(value: Value, extent: Value) -> Value:
    def one(v: Value, n: Value) -> Value:
        v = plain(v)
        if isinstance(v, Index):
            atom = v.atom
            if isinstance(atom, Gathered):
                return gathered(atom.tensor, atom.indices, _integer(n), True)
            return v
        number = _integer(v)
        size = _integer(n)
        if not -size <= number < max(size, 1):
            raise Unsupported(f"index {number} is out of range for extent {size}")
        return number + size if number < 0 else number

    return spread(one, value, extent)


def broadcast_shapes(*shapes: Value) -> tuple[int, ...]:
    """ONNX multidirectional broadcasting. Raises Unsupported where the shapes do not agree."""
    lists = [integers(s) for s in shapes]
    result = []
    for axis in range(-max((len(s) for s in lists), default=0), 0):
        extents = list(dict.fromkeys(s[axis] for s in lists if len(s) >= -axis and s[axis] != 1))
        if len(extents) > 1:
            extents = _unlike(extents)
        if len(extents) > 1:
            raise UnlikeShapesError(f"shapes {' and '.join(str(list(s)) for s in lists)} do not broadcast")
        result.append(extents[0] if extents else 1)
    return tuple(result)


def _unlike(extents: list[int]) -> list[int]:
    """Those extents that are not 1 and not equal to one before."""
    kept: list[int] = []
    for extent in extents:
        if not any(agree(extent, other) for other in kept):
            kept.append(extent)
    return [extent for extent in kept if not agree(extent, 1)] if len(kept) > 1 else kept


def _put(items: Value, axes: Value, values: Value) -> Value:
    result = list(as_list(items))
    for axis, value in zip(integers(axes), as_list(values), strict=True):
        element_at(items, axis)  # refuses a position that the list does not have
        result[axis] = value
    return tuple(result)


def _insert(items: Value, axes: Value, values: Value) -> Value:
    placed = dict(zip(integers(axes), as_list(values), strict=True))
    rest = iter(as_list(items))
    length = len(as_list(items)) + len(placed)
    if any(not 0 <= place < length for place in placed) or len(placed) != len(integers(axes)):
        raise DefinitionError(f"positions {list(integers(axes))} of an insertion into {length} elements")
    return tuple(placed[i] if i in placed else next(rest) for i in range(length))


def _unpermute(items: Value, permutation: Value) -> Value:
    order = integers(permutation)
    source = as_list(items)
    result: list[Value] = [0] * len(order)
    for position, axis in enumerate(order):
        result[axis] = source[position]
    return tuple(result)


def _extreme(function: Callable[..., int | float]) -> Callable[..., Value]:
    def apply(*operands: Value) -> Value:
        if len(operands) == 1:
            if not as_list(operands[0]):
                raise ValueError("an empty list has no least and no greatest number")
            return function(*(_number(v) for v in as_list(operands[0])))
        return spread(lambda *scalars: function(*(_number(s) for s in scalars)), *operands)

    return apply


def _clamped(value: int | float, low: int | float, high: int | float) -> int | float:
    return minimum(maximum(value, low), high)  # type: ignore[arg-type]


def _whole(value: int | float) -> int | float:
    return value if is_symbolic(value) else int(value)


def _cumulative(items: Value) -> Value:
    return tuple(accumulate(map(_number, as_list(items)), initial=0))[1:]


def _sum_of(items: Value) -> Value:
    # `sum` itself rounds otherwise from Python 3.12 on
    return reduce(operator.add, map(_number, as_list(items)), 0)


def _product(items: Value) -> Value:
    return math.prod(_number(v) for v in as_list(items))


def _fail(message: Value) -> Value:
    raise Unsupported(str(message))


def _range(*bounds: Value) -> Value:
    numbers = range(*(_integer(b) for b in bounds))
    _length(len(numbers))
    return tuple(numbers)


def _length(count: Value) -> int:
    """The length of a list that is made; a slip of the pen must not take all memory."""
    length = _integer(count)
    if length > MOST_ELEMENTS:
        raise DefinitionError(f"a list of {length} elements is longer than {MOST_ELEMENTS}")
    return length


def element_at(items: Value, position: Value) -> Value:
    """items[position]; a run-time position makes a look-up in a constant table."""
    values = as_list(items)
    position = plain(position)
    if isinstance(position, Index):
        low, high = position.interval
        if low < 0 or high >= len(values):
            raise DefinitionError(f"index {position} leaves the table of {len(values)} values")
        return lookup(integers(values), position)
    place = _integer(position)
    if not -len(values) <= place < len(values):
        raise DefinitionError(f"position {place} in a list of {len(values)}")
    return values[place]


def constant_element(tensor: ConstantTensor, indices: tuple[Value, ...]) -> Value:
    """The element of a constant operand at (possibly run-time) indices."""
    return element_at(tensor.values, ravel(tuple(_as_index(i) for i in indices), tensor.shape))


def _sorted(items: Value) -> Value:
    values = as_list(items)
    texts = [v for v in values if isinstance(v, str)]
    return tuple(sorted(texts)) if texts else tuple(sorted(_number(v) for v in values))


def _distinct(items: Value) -> Value:
    kept: list[Value] = []
    for item in as_list(items):
        if not any(agree(item, other) for other in kept):
            kept.append(item)
    return tuple(kept)


def _letters(text: Value) -> Value:
    """The characters of a text, blanks left out; three dots are one."""
    if not isinstance(text, str):
        raise DefinitionError(f"a text is needed, not {describe(text)}")
    dots = "\0"
    return tuple("..." if c == dots else c for c in text.replace("...", dots) if not c.isspace())


def _parts(text: Value, separator: Value) -> Value:
    if not isinstance(text, str) or not isinstance(separator, str):
        raise DefinitionError(f"a text is needed, not {describe(text)}")
    return tuple(text.split(separator))


SINGLE, DOUBLE = 1e-6, 2.0**-50
"""How far numbers may be apart, relative to the larger one, that are one in an element type."""


def near(a: Value, b: Value, tolerance: float) -> bool:
    """Whether two numbers are there and differ by at most a share of the larger one."""
    return a is not None and b is not None and math.isclose(_number(a), _number(b), rel_tol=tolerance)


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "rank": lambda s: len(as_list(s)),
    "prod": _product,
    "sum_of": _sum_of,
    "range": _range,
    "ones": lambda n: (1,) * _length(n),
    "zeros": lambda n: (0,) * _length(n),
    "full": lambda n, v: (v,) * _length(n),
    "reverse": lambda s: tuple(reversed(as_list(s))),
    "concat": lambda *lists: tuple(chain.from_iterable(map(as_list, lists))),
    "take": lambda s, axes: tuple(as_list(s)[a] for a in integers(axes)),
    "drop": lambda s, axes: tuple(v for i, v in enumerate(as_list(s)) if i not in integers(axes)),
    "put": _put,
    "insert": _insert,
    "permute": lambda s, p: tuple(as_list(s)[a] for a in integers(p)),
    "unpermute": _unpermute,
    "wrap": _wrap,
    "broadcast": broadcast_shapes,
    "contains": lambda s, v: any(agree(item, plain(v)) for item in as_list(s)),
    "index_of": lambda s, v: [agree(item, v) for item in as_list(s)].index(True),
    "sort": _sorted,
    "distinct": _distinct,
    "letters": _letters,
    "parts": _parts,
    "cumsum": _cumulative,
    "min": _extreme(minimum),
    "max": _extreme(maximum),
    "abs": lambda v: spread(lambda x: abs(_number(x)), v),
    "sign": lambda v: spread(lambda x: (_number(x) > 0) - (_number(x) < 0), v),
    "floor": lambda v: spread(lambda x: math.floor(_number(x)), v),
    "ceil": lambda v: spread(lambda x: math.ceil(_number(x)), v),
    "round": lambda v: spread(lambda x: round(_number(x)), v),
    "single": lambda v: spread(lambda x: struct.unpack("f", struct.pack("f", float(_number(x))))[0], v),
    "sqrt": lambda v: spread(lambda x: math.sqrt(_number(x)), v),
    "int": lambda v: spread(lambda x: _whole(_number(x)), v),
    "clamp": lambda v, low, high: spread(lambda x, a, b: _clamped(_number(x), _number(a), _number(b)), v, low, high),
    "ceil_div": lambda a, b: spread(lambda x, y: -(-_integer(x) // _integer(y)), a, b),
    "ravel": lambda i, s: ravel(tuple(_as_index(v) for v in as_list(i)), integers(s)),
    "unravel": lambda p, s: unravel(_as_index(p), integers(s)),
    "near": lambda a, b: near(a, b, SINGLE),
    "fail": _fail,
}

"""Shape arithmetic: small known tensors whose elements are open extents, computed element by element.

Exported models compute shapes as they run: `Shape`, a few look-ups and sums, then `Reshape` or `Expand`.  Such tensors
are arrays of objects, and the equations of the rule base are evaluated on them with the arithmetic of extents.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from smartmem_rules.tensor.atoms import Atom, Div, Gathered, Lookup, Mod, Var
from smartmem_rules.tensor.binding import output_name
from smartmem_rules.tensor.expr import (
    Apply,
    Compare,
    Condition,
    Const,
    Equation,
    Expr,
    FromIndex,
    Logic,
    Read,
    Reduce,
    Select,
    TensorType,
    is_open_expression,
)
from smartmem_rules.tensor.extents import SymbolicExtentError, is_symbolic
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.instantiate import Instance
from smartmem_rules.tensor.primitives import Array, cast, storage_dtype
from smartmem_rules.tensor.ranges import bounds, maximum, minimum, same
from smartmem_rules.tensor.substitution import lookup, ravel

MOST_ELEMENTS = 1 << 10
"""Shapes are short: larger tensors are left to the device."""


def _truncated(a: Any, b: Any) -> Any:
    """Division of integers as in C; of extents only where nothing is negative."""
    if a < 0 or b < 0:
        raise SymbolicExtentError(f"the quotient of {a!r} and {b!r}, one of which is negative", a, b)
    return a // b


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _truncated,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "neg": operator.neg,
    "abs": abs,
    "min": minimum,
    "max": maximum,
    "eq": same,
    "ne": lambda a, b: not same(a, b),
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a: not a,
    "select": lambda test, then, otherwise: then if test else otherwise,
}
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": sum,
    "prod": math.prod,
    "min": lambda values: minimum(*values),
    "max": lambda values: maximum(*values),
    "any": any,
    "all": all,
}


def holds_extents(array: Array) -> bool:
    """Whether elements of a known tensor are open extents."""
    return array.dtype == object and any(is_symbolic(value) for value in array.reshape(-1))


def extents_equation(name: str, array: Array, dtype: str) -> Equation:
    """The equation that gives a known tensor of open extents at run time."""
    variables = tuple(Var(f"e{axis}", extent) for axis, extent in enumerate(array.shape))
    position = ravel(tuple(map(variable, variables)), array.shape)
    value = lookup(tuple(array.reshape(-1)), position)
    return Equation(name, variables, FromIndex(value, dtype), TensorType(dtype, array.shape))


def is_open(equations: Sequence[Equation]) -> bool:
    """Whether an open extent occurs in the equations."""
    return any(
        any(is_symbolic(v.extent) for v in equation.variables) or is_open_expression(equation.body)
        for equation in equations
    )


def evaluated_outputs(instance: Instance, operands: Mapping[str, Array]) -> list[Array]:
    """The outputs of an operator of numbers and open extents, cut to the extents that it counts.

    Raises:
        SymbolicExtentError: an element, or what is counted, is not decided for all values of the dimensions.
    """
    known = evaluate_shapes(instance.equations, operands)
    results = [known[output_name(place)] for place in range(len(instance.outputs))]
    for size in instance.sizes:
        count = results[size.count].reshape(-1)[0]
        if is_symbolic(count):
            raise SymbolicExtentError(f"how many elements there are depends on the extent {count!r}", count)
        results[size.output] = results[size.output].take(range(int(count)), size.axis)
    return results


def evaluate_shapes(equations: Sequence[Equation], tensors: Mapping[str, Array]) -> dict[str, Array]:
    """The tensors that the equations define, all of numbers and open extents.

    Raises:
        SymbolicExtentError: an element is not decided for all values of the dimensions, or no integer.
    """
    known = dict(tensors)
    for equation in equations:
        shape = equation.type.shape
        if any(map(is_symbolic, shape)) or math.prod(shape) > MOST_ELEMENTS:
            raise SymbolicExtentError("a tensor of open extents is too large to be computed before the model runs")
        result = np.empty(shape, object)
        for place in itertools.product(*map(range, shape)):
            values = dict(zip(equation.variables, place, strict=True))
            try:
                result[place] = _element(equation.body, values, known)
            except ZeroDivisionError as reason:
                raise SymbolicExtentError("a number is divided by zero") from reason
        if not holds_extents(result):
            result = result.astype(storage_dtype(equation.type.dtype))
        known[equation.tensor] = result
    return {equation.tensor: known[equation.tensor] for equation in equations}


def _element(expr: Expr, values: Mapping[Var, int], known: Mapping[str, Array]) -> Any:
    match expr:
        case Const(value=value):
            return value
        case Read(tensor=tensor, indices=indices):
            return _item(known[tensor], tuple(_index(i, values, known) for i in indices))
        case FromIndex(index=index):
            return _cast(_index(index, values, known), expr.dtype)
        case Select(condition=condition, then=then, otherwise=otherwise):
            return _element(then if _condition(condition, values, known) else otherwise, values, known)
        case Reduce(kind=kind, variables=variables, body=body):
            places = itertools.product(*(range(v.extent) for v in variables))
            addends = [_element(body, {**values, **dict(zip(variables, p, strict=True))}, known) for p in places]
            return _held(REDUCTIONS[kind](addends), expr.dtype)
        case Apply(function="cast", arguments=(argument,), dtype=dtype):
            return _cast(_element(argument, values, known), dtype)
        case Apply(function=function, arguments=arguments):
            if function not in FUNCTIONS:
                raise SymbolicExtentError(f"{function} of an open extent")
            return _held(FUNCTIONS[function](*(_element(a, values, known) for a in arguments)), expr.dtype)


def _cast(value: Any, dtype: str) -> Any:
    if is_symbolic(value):
        return _held(value, dtype)
    kind = "float64" if isinstance(value, float) else "uint64" if value > np.iinfo(np.int64).max else "int64"
    return cast(np.asarray(value, storage_dtype(kind)), dtype).item()


def _held(value: Any, dtype: str) -> Any:
    """The value as an element of the type: numbers wrap and are rounded, extents have to be in its range.

    Raises:
        SymbolicExtentError: the type does not hold all values of an extent.
    """
    held = storage_dtype(dtype)
    if is_symbolic(value):
        low, high = bounds(value)
        if held.kind not in "iu" or low < np.iinfo(held).min or high > np.iinfo(held).max:
            raise SymbolicExtentError(f"the extent {value!r} is needed as {dtype}", value)
        return value
    if held.kind not in "iu":
        return held.type(value).item()
    least, bits = int(np.iinfo(held).min), 8 * held.itemsize
    return (int(value) - least) % 2**bits + least


def _item(array: Array, place: tuple[int, ...]) -> Any:
    if any(map(is_symbolic, place)):
        raise SymbolicExtentError("which element of a table is read is known when the model runs")
    value = array[place]
    return value.item() if isinstance(value, np.generic) else value


def _condition(condition: Condition, values: Mapping[Var, int], known: Mapping[str, Array]) -> bool:
    match condition:
        case Compare(operator=sign, left=left, right=right):
            name = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne"}[sign]
            return bool(FUNCTIONS[name](_index(left, values, known), _index(right, values, known)))
        case Logic(operator="not", operands=(operand,)):
            return not _condition(operand, values, known)
        case Logic(operator=sign, operands=operands):
            together = all if sign == "and" else any
            return together(_condition(operand, values, known) for operand in operands)


def _index(index: Index, values: Mapping[Var, int], known: Mapping[str, Array]) -> Any:
    total: Any = index.constant
    for atom, coefficient in index.terms:
        total = total + _atom(atom, values, known) * coefficient
    return total


def _atom(atom: Atom, values: Mapping[Var, int], known: Mapping[str, Array]) -> Any:
    match atom:
        case Var():
            return values[atom]
        case Div(value=value, divisor=divisor):
            return _index(value, values, known) // divisor
        case Mod(value=value, divisor=divisor):
            return _index(value, values, known) % divisor
        case Lookup(table=table, position=position):
            return table[_index(position, values, known)]
        case Gathered(tensor=tensor, indices=indices, extent=extent, wrap=wrap):
            value = _item(known[tensor], tuple(_index(i, values, known) for i in indices))
            return value + extent if wrap and value < 0 else value

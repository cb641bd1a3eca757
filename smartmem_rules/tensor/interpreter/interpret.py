"""The reference interpreter: computes equations with numpy.

Each loop variable is an array axis, so that an equation is evaluated for all of its elements at once.  A read at
indices that are linear in the loop variables is a strided view of its tensor; any other read gathers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from smartmem_rules.records import dataclass
from smartmem_rules.tensor import primitives
from smartmem_rules.tensor.atoms import Div, Gathered, Lookup, Mod, Var
from smartmem_rules.tensor.binding import operand_name, output_name
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
    own_indices,
    walk,
)
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.instantiate import Instance
from smartmem_rules.tensor.interpreter.split import split_variables
from smartmem_rules.tensor.interpreter.strided import padded_view, strided_view
from smartmem_rules.tensor.primitives import Array

BLOCK = 1 << 25
"""The largest array, in elements, that one step may expand to where splitting the output can avoid it."""
_SPLIT_FROM = 1 << 12
"""Below this many elements gathering is as fast as finding the strided view."""


class InterpretError(Exception):
    """An equation reads outside a tensor or a tensor that it does not have."""


def evaluate_equations(
    equations: Sequence[Equation], tensors: Mapping[str, Array], wide: Collection[str] = ()
) -> dict[str, Array]:
    """The value of every tensor that the equations define, in their order.

    Args:
        equations: in the order of computation; each may read the tensors of the earlier ones.
        tensors: the arrays of all other tensors, by name.
        wide: tensors that are kept in the type in which they are computed (halves in single precision).

    Returns:
        Contiguous arrays of the equations' types.

    Raises:
        InterpretError: a tensor is missing or an index leaves its range.
    """
    known = dict(tensors)
    results: dict[str, Array] = {}
    scans = [equation for equation in equations if equation.scan]
    with np.errstate(all="ignore"):
        for equation in equations:
            if not equation.scan:
                kept = primitives.compute_dtype if equation.tensor in wide else primitives.storage_dtype
                value = _evaluate_equation(equation, known, kept(equation.type.dtype))
                results[equation.tensor] = known[equation.tensor] = value
            elif equation is scans[0]:
                results.update(_evaluate_scans(scans, known))
    return results


def evaluate_view(equation: Equation, tensors: Mapping[str, Array]) -> Array:
    """The value of an equation, which may be a view of a tensor that it reads: not contiguous, not to be written.

    Raises:
        InterpretError: a tensor is missing or an index leaves its range.
    """
    with np.errstate(all="ignore"):
        return _evaluated(equation, tensors, primitives.storage_dtype(equation.type.dtype))


def evaluate_instance(instance: Instance, operands: Sequence[Array | None]) -> list[Array]:
    """The outputs that an operator has by its signature, those of extents that depend on data without their padding.

    Args:
        operands: the run-time operands in their order, None for an absent one.

    Raises:
        InterpretError: an index leaves its range.
    """
    given = {operand_name(place): array for place, array in enumerate(operands) if array is not None}
    names = {output_name(place) for place in range(len(instance.outputs))}
    within = {equation.tensor for equation in instance.equations} - names  # kernels keep them in registers
    results = evaluate_equations(instance.equations, given, within)
    outputs = [results[output_name(place)] for place in range(len(instance.outputs))]
    for size in instance.sizes:
        outputs[size.output] = outputs[size.output].take(range(int(outputs[size.count])), size.axis)
    return outputs[: instance.declared]


def _evaluate_scans(scans: Sequence[Equation], known: dict[str, Array]) -> dict[str, Array]:
    """Equations that read each other's earlier steps along the first axis; `known` learns their tensors."""
    # halves are kept wide from step to step: their rounding would add up
    results = {e.tensor: np.zeros(e.type.shape, primitives.compute_dtype(e.type.dtype)) for e in scans}
    known.update(results)
    for step in range(scans[0].type.shape[0]):
        for equation in scans:
            first = equation.variables[0]
            looping = tuple(v for v in equation.variables if v.extent != 1)
            ranges = {v: (0, v.extent) for v in looping} | ({first: (step, step + 1)} if first in looping else {})
            values = _Block(known, ranges).element(equation.body, looping)
            result = results[equation.tensor][step : step + 1]
            if result.size:
                shape = tuple(stop - start for start, stop in (ranges[v] for v in looping))
                result[...] = np.broadcast_to(values, shape).reshape(result.shape)
    return {e.tensor: results[e.tensor].astype(primitives.storage_dtype(e.type.dtype)) for e in scans}


def _evaluate_equation(equation: Equation, tensors: Mapping[str, Array], dtype: np.dtype[Any]) -> Array:
    return np.ascontiguousarray(_evaluated(equation, tensors, dtype)).reshape(equation.type.shape)


def _evaluated(equation: Equation, tensors: Mapping[str, Array], dtype: np.dtype[Any]) -> Array:
    shape = equation.type.shape
    if math.prod(shape) == 0:
        return np.zeros(shape, dtype)
    variables, body = equation.variables, equation.body
    if equation.type.elements >= _SPLIT_FROM:
        variables, body = split_variables(variables, body)
    looping = tuple(v for v in variables if v.extent != 1)
    extents = tuple(v.extent for v in looping)
    ranges = {v: (0, v.extent) for v in looping}
    if _points(variables, body) <= BLOCK or _footprint(body, ranges)[0] <= BLOCK:
        values = _Block(tensors, ranges).element(body, looping)
        return np.broadcast_to(values, extents).astype(dtype, copy=False).reshape(shape)
    result = np.empty(extents, dtype)
    _fill(result, body, looping, ranges, tensors)
    return result.reshape(shape)


def _fill(
    result: Array,
    body: Expr,
    variables: tuple[Var, ...],
    ranges: dict[Var, tuple[int, int]],
    tensors: Mapping[str, Array],
) -> None:
    """Evaluate a block of the output, halved along the variables that the largest term depends on."""
    peak, heavy = _footprint(body, ranges)
    splittable = [v for v in variables if v in heavy and ranges[v][1] - ranges[v][0] > 1]
    if peak > BLOCK and splittable:
        widest = max(splittable, key=lambda v: ranges[v][1] - ranges[v][0])
        start, stop = ranges[widest]
        middle = (start + stop) // 2
        for part in ((start, middle), (middle, stop)):
            _fill(result, body, variables, {**ranges, widest: part}, tensors)
        return
    values = _Block(tensors, ranges).element(body, variables)
    result[tuple(slice(*ranges[v]) for v in variables)] = values


def _points(variables: Sequence[Var], body: Expr) -> int:
    """The values of all loop variables together: no array that evaluation makes has more elements."""
    count = math.prod([v.extent for v in variables])
    for node in walk(body):
        if isinstance(node, Reduce):
            count *= math.prod([max(1, v.extent) for v in node.variables])
    return count


def _footprint(body: Expr, ranges: Mapping[Var, tuple[int, int]]) -> tuple[int, frozenset[Var]]:
    """The elements of the largest array that evaluation makes, and the variables that it depends on."""
    largest = _Largest(ranges)
    largest.visit(body)
    return largest.peak, largest.heavy


class _Largest:
    """Finds the largest array that the evaluation of an expression makes."""

    def __init__(self, ranges: Mapping[Var, tuple[int, int]]) -> None:
        self.ranges = ranges
        self.peak = 1
        self.heavy = frozenset[Var]()

    def _note(self, variables: frozenset[Var]) -> frozenset[Var]:
        size = 1
        for v in variables:
            start, stop = self.ranges.get(v, (0, v.extent))
            size *= stop - start
        if size > self.peak:
            self.peak, self.heavy = size, variables
        return variables

    def visit(self, expr: Expr) -> frozenset[Var]:
        """The variables that an expression's array has as axes."""
        match expr:
            case Reduce(variables=bound):
                factors = _factors(expr)
                first = self._note(frozenset[Var]().union(*map(self.visit, factors[:-1])))
                return self._note((first | self.visit(factors[-1])) - set(bound))
            case Apply(arguments=arguments):
                return self._note(frozenset[Var]().union(*map(self.visit, arguments)))
            case Select(then=then, otherwise=otherwise):
                own = frozenset[Var]().union(*(i.variables for i in own_indices(expr)))
                return self._note(own | self.visit(then) | self.visit(otherwise))
            case _:
                return self._note(frozenset[Var]().union(*(i.variables for i in own_indices(expr))))


def _factors(reduction: Reduce) -> tuple[Expr, ...]:
    """The factors of the body of a sum of products, else the body alone."""
    if reduction.kind != "sum":
        return (reduction.body,)
    factors: list[Expr] = []
    stack = [reduction.body]
    while stack:
        current = stack.pop()
        if isinstance(current, Apply) and current.function == "mul":
            stack.extend(reversed(current.arguments))
        else:
            factors.append(current)
    return tuple(factors)


@dataclass
class _Block:
    """Evaluates expressions over a range of each output variable.

    Arrays have one axis for each variable in scope, of extent 1 where the value does not depend on it; scalars may
    have rank 0.
    """

    tensors: Mapping[str, Array]
    ranges: dict[Var, tuple[int, int]]
    indices: dict[tuple[Index, tuple[Var, ...], bool], Array] = field(default_factory=dict)

    def element(self, expr: Expr, axes: tuple[Var, ...], clamped: bool = False) -> Array:
        match expr:
            case Const(value=value, dtype=dtype):
                return primitives.constant(value, dtype)
            case Read():
                return self._read(expr, axes, clamped)
            case Apply(function="cast", arguments=(argument,), dtype=dtype):
                return primitives.cast(self.element(argument, axes, clamped), dtype)
            case Apply(function="bitcast", arguments=(argument,), dtype=dtype):
                return primitives.bitcast(self.element(argument, axes, clamped), argument.dtype, dtype)
            case Apply(function=function, arguments=arguments, dtype=dtype):
                values = tuple(self.element(a, axes, clamped) for a in arguments)
                return primitives.apply(function, values, dtype)
            case Select():
                return self._select(expr, axes)
            case FromIndex(index=index, dtype=dtype):
                return primitives.from_index(self._index(index, axes, clamped), dtype)
            case Reduce():
                return self._reduce(expr, axes, clamped)

    def _reduce(self, expr: Reduce, axes: tuple[Var, ...], clamped: bool) -> Array:
        inner = axes + expr.variables
        extents = tuple(stop - start for start, stop in map(self._range, inner))
        factors = _factors(expr)
        values = [self._full_rank(self.element(f, inner, clamped), len(inner)) for f in factors]
        first = values[0]
        for value in values[1:-1]:
            first = first * value
        if len(values) > 1 and 0 not in extents:
            total = primitives.contract(first, values[-1], len(axes), extents)
            return total.astype(primitives.compute_dtype(expr.dtype), copy=False)
        if len(values) > 1:
            first = first * values[-1]
        shape = first.shape[: len(axes)] + extents[len(axes) :]
        return primitives.reduce(expr.kind, np.broadcast_to(first, shape), len(axes), expr.dtype)

    @staticmethod
    def _full_rank(values: Array, rank: int) -> Array:
        return values if values.ndim == rank else values.reshape((1,) * rank)

    def _range(self, var: Var) -> tuple[int, int]:
        return self.ranges.get(var, (0, var.extent))

    def _select(self, expr: Select, axes: tuple[Var, ...]) -> Array:
        if isinstance(expr.then, Read) and isinstance(expr.otherwise, Const):
            values = padded_view(
                self._tensor(expr.then.tensor), expr.then, expr.condition, expr.otherwise.value, axes, self._range
            )
            if values is not None:
                return values.astype(primitives.compute_dtype(expr.dtype), copy=False)
        condition = self._condition(expr.condition, axes)
        return np.where(condition, self.element(expr.then, axes, True), self.element(expr.otherwise, axes, True))

    def _condition(self, condition: Condition, axes: tuple[Var, ...]) -> Array:
        match condition:
            case Compare(operator=operator, left=left, right=right):
                a, b = self._index(left, axes, True), self._index(right, axes, True)
                names = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne"}
                return primitives.apply(names[operator], (a, b), "bool")
            case Logic(operator="not", operands=(operand,)):
                return np.logical_not(self._condition(operand, axes))
            case Logic(operator=operator, operands=operands):
                result = self._condition(operands[0], axes)
                for operand in operands[1:]:
                    result = primitives.apply(operator, (result, self._condition(operand, axes)), "bool")
                return result

    def _tensor(self, name: str) -> Array:
        array = self.tensors.get(name)
        if array is None:
            raise InterpretError(f"the tensor {name!r} has no value")
        return array

    def _read(self, read: Read, axes: tuple[Var, ...], clamped: bool) -> Array:
        array = self._tensor(read.tensor)
        if array.ndim != len(read.indices):
            raise InterpretError(f"{len(read.indices)} indices for {read.tensor!r} of shape {list(array.shape)}")
        values = strided_view(array, read.indices, axes, self._range)
        if values is None:
            places = tuple(
                self._place(index, extent, axes, clamped, read.tensor)
                for index, extent in zip(read.indices, array.shape, strict=True)
            )
            values = array[places] if array.size else np.zeros((1,) * len(axes), array.dtype)
        return values.astype(primitives.compute_dtype(read.dtype), copy=False)

    def _place(self, index: Index, extent: int, axes: tuple[Var, ...], clamped: bool, tensor: str) -> Array:
        values = self._index(index, axes, clamped)
        if clamped:
            return np.clip(values, 0, max(extent - 1, 0))
        if values.size and (int(values.min()) < 0 or int(values.max()) >= extent):
            bad = int(values.min()) if int(values.min()) < 0 else int(values.max())
            raise InterpretError(f"index {bad} ({index}) of {tensor!r} is outside its extent {extent}")
        return values

    def _index(self, index: Index, axes: tuple[Var, ...], clamped: bool) -> Array:
        key = index, axes, clamped
        values = self.indices.get(key)
        if values is None:
            values = np.asarray(index.constant, np.int64)
            for atom, coefficient in index.terms:
                values = values + self._atom(atom, axes, clamped) * coefficient
            self.indices[key] = values
        return values

    def _atom(self, atom: Var | Div | Mod | Lookup | Gathered, axes: tuple[Var, ...], clamped: bool) -> Array:
        match atom:
            case Var():
                shape = [1] * len(axes)
                start, stop = self._range(atom)
                shape[axes.index(atom)] = stop - start
                return np.arange(start, stop, dtype=np.int64).reshape(shape)
            case Div(value=value, divisor=divisor):
                return self._index(value, axes, clamped) // divisor
            case Mod(value=value, divisor=divisor):
                return self._index(value, axes, clamped) % divisor
            case Lookup(table=table, position=position):
                return np.asarray(table, np.int64)[self._place(position, len(table), axes, clamped, "a table")]
            case Gathered(tensor=tensor, indices=indices, extent=extent, wrap=wrap):
                read = Read(tensor, indices, "int64")
                values = self._read(read, axes, clamped)
                return np.where(values < 0, values + extent, values) if wrap else values

"""Divides a Concat of many parts at an output: several kernels join some parts each, and write their piece of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from smartmem_rules.plan.fusion.equations.program import Program
from smartmem_rules.plan.kernel.model import Kernel, Store
from smartmem_rules.plan.kernel.traffic import accounted
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Compare, Expr, Select, substitute_variables
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add, variable
from smartmem_rules.tensor.substitution import substitute


@dataclass(frozen=True, kw_only=True)
class _Choices:
    """A value that is chosen by where one axis stands.

    Attributes:
        axis: a loop variable.
        ends: of the parts, rising; the last one is the axis's extent.
        values: of the parts.
    """

    axis: Var
    ends: tuple[int, ...]
    values: tuple[Expr, ...]


def join_in_parts(kernels: Sequence[Kernel], program: Program, most: int) -> list[Kernel]:
    """The kernels, those that join more than so many tensors into an output as several with so many each."""
    found: list[Kernel] = []
    for kernel in kernels:
        found += _divided(kernel, program, most) if len(kernel.reads) > most else [kernel]
    return found


def _divided(kernel: Kernel, program: Program, most: int) -> list[Kernel]:
    if kernel.form != "pointwise" or len(kernel.stores) != 1 or kernel.stages or kernel.parts:
        return [kernel]
    (store,) = kernel.stores
    chosen = _choices(store.value, kernel.axes)
    if store.tensor not in program.outputs or chosen is None:
        return [kernel]
    made = []
    for first in range(0, len(chosen.values), most):
        piece = _piece(store, chosen, first, min(first + most, len(chosen.values)), program)
        axes = tuple(piece[0] if axis == chosen.axis else axis for axis in kernel.axes)
        name = f"{kernel.name}_{first}" if kernel.name else ""
        made.append(accounted(replace(kernel, name=name, axes=axes, stores=(piece[1],))))
    return made


def _choices(value: Expr, axes: tuple[Var, ...]) -> _Choices | None:
    """What a value is by the place along one axis; None where it is no such choice."""
    axis = next((one for one in axes if _bound(value, one) is not None), None)
    if axis is None or is_symbolic(axis.extent):
        return None
    ends: list[int] = []
    values: list[Expr] = []
    rest = [(value, axis.extent)]
    begin = 0
    while rest:
        part, end = rest.pop()
        bound = _bound(part, axis)
        if isinstance(part, Select) and bound is not None and begin < bound < end:
            rest += [(part.otherwise, end), (part.then, bound)]
            continue
        ends.append(end)
        values.append(part)
        begin = end
    return _Choices(axis=axis, ends=tuple(ends), values=tuple(values))


def _bound(value: Expr, axis: Var) -> int | None:
    """The place along an axis below which a value is one thing and from which on it is another."""
    match value:
        case Select(condition=Compare(operator="<", left=left, right=right)) if left == variable(axis):
            return right.constant if right.is_constant and not is_symbolic(right.constant) else None
    return None


def _piece(store: Store, chosen: _Choices, first: int, last: int, program: Program) -> tuple[Var, Store]:
    """The loop over the parts from `first` to `last - 1`, and what it writes."""
    begin = chosen.ends[first - 1] if first else 0
    own = program.names.var(chosen.ends[last - 1] - begin)
    moved = {chosen.axis: add(variable(own), Index(begin))}

    def choice(low: int, high: int) -> Expr:
        """The value among some parts, by few comparisons."""
        if high - low == 1:
            return substitute_variables(chosen.values[low], moved)
        middle = (low + high) // 2
        condition = Compare("<", variable(own), Index(chosen.ends[middle - 1] - begin))
        return Select(condition, choice(low, middle), choice(middle, high), store.value.dtype)

    return own, Store(store.tensor, tuple(substitute(index, moved) for index in store.indices), choice(first, last))

"""An index map as ONNX nodes: a slice, a transposition, an expansion, or else a gathering from all elements in a row.

ONNX's operators are named here because the module writes ONNX models, as `smartmem_rules.graph` reads them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Atom, Div, Mod, Var
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.primitives import Array
from smartmem_rules.tensor.views import IndexMap, keeps_order

_SMALL = 64
_TO_THE_END = 2**63 - 1


class NotExpressible(Exception):
    """ONNX has no form for a part of a graph; the message says which."""


@dataclass
class Writer:
    """Nodes and constants of a model in the making; names that begin with `prefix` are its own."""

    prefix: str
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    _names: dict[object, str] = field(default_factory=dict)

    def constant(self, values: Any, dtype: Any = np.int64) -> str:
        """The name of a constant; equal ones are one."""
        array = np.asarray(values, dtype)
        key = (array.dtype, array.shape, array.tobytes()) if array.size <= _SMALL else len(self.constants)
        if key in self._names:
            return self._names[key]
        name = self._names[key] = f"{self.prefix}k{len(self.constants)}"
        self.constants[name] = array
        return name

    def add(self, operator: str, operands: Sequence[str], output: str = "", **attributes: Any) -> str:
        """The output of an operator."""
        output = output or f"{self.prefix}t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(operands), [output], **attributes))
        return output

    def initializers(self) -> list[onnx.TensorProto]:
        return [numpy_helper.from_array(array, name) for name, array in self.constants.items()]


@dataclass(frozen=True)
class _Line:
    """An index `start + step * variable`; without a variable it stays where it is."""

    start: int
    step: int = 1
    variable: Var | None = None


@dataclass(frozen=True, kw_only=True)
class Step:
    """One ONNX operator of a view.

    Attributes:
        lists: its operands after the first one.
        least: the version of the standard operators from which on it is written so.
        table: the view whose places in the source are its last operand.
        places: how many places of an axis it looks up.
    """

    operator: str
    lists: tuple[Any, ...] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)
    least: int = 1
    table: IndexMap | None = None
    places: int = 0


def write_view(map_: IndexMap, operand: str, output: str, writer: Writer) -> None:
    """Write what gives the view of a tensor.

    Raises:
        NotExpressible: an index is no arithmetic on loop variables.
    """
    steps = view_steps(map_) or [Step(operator="Identity")]
    for place, step in enumerate(steps, 1):
        tables = [] if step.table is None else [positions(step.table)]
        lists = [writer.constant(one) for one in (*step.lists, *tables)]
        target = output if place == len(steps) else ""
        operand = writer.add(step.operator, [operand, *lists], target, **step.attributes)


def view_steps(map_: IndexMap) -> list[Step]:
    """The operators that give a view, one after the other; none where the view is the tensor itself.

    Raises:
        NotExpressible: an index is no arithmetic on loop variables.
    """
    if map_.is_identity:
        return []
    if keeps_order(map_):
        return [_reordered(map_.source, map_.shape)]
    if 0 in map_.shape:
        raise NotExpressible("a view without elements: its map says nothing about its source")
    lines = [_line(index) for index in map_.indices]
    known = [line for line in lines if line is not None]
    variables = [line.variable for line in known if line.variable is not None]
    if len(known) == len(lines) and len(set(variables)) == len(variables):
        return _steps_of_lines(map_, known)
    for index in map_.indices:
        _check_arithmetic(index)
    places = math.prod(map_.shape)
    if is_symbolic(places) or any(map(is_symbolic, map_.source)):
        raise NotExpressible("a table of places whose number is known at run time only")
    return [_reshape((-1,)), Step(operator="Gather", attributes={"axis": 0}, table=map_, places=places)]


def _check_arithmetic(index: Index) -> None:
    """Raise NotExpressible where an index is no arithmetic on loop variables."""
    for atom, _ in index.terms:
        if isinstance(atom, Div | Mod):
            _check_arithmetic(atom.value)
        elif not isinstance(atom, Var):
            raise NotExpressible(f"the index {atom} is read from a table")


def shape_in_numbers(source: tuple[int, ...], shape: Sequence[int]) -> list[int] | None:
    """The operand of a Reshape that gives a shape, None where open extents keep that from being a list of numbers.

    An extent of 0 takes that of the source at the same place, one of -1 follows from the others (Reshape-5). Beside -1
    there is no extent that can be 0, which would leave it undecided.
    """
    if any(n == 0 and source[a : a + 1] != (0,) for a, n in enumerate(shape)):
        return None
    made = [0 if is_symbolic(n) and source[a : a + 1] == (n,) else n for a, n in enumerate(shape)]
    left = [a for a, n in enumerate(made) if is_symbolic(n)]
    if not left:
        return made
    if len(left) > 1 or 0 in made or -1 in made:
        return None
    return [-1 if is_symbolic(n) else n for n in made]


def _reordered(source: tuple[int, ...], shape: tuple[int, ...]) -> Step:
    """What gives the elements of a tensor in their order another shape."""
    numbers = shape_in_numbers(source, shape)
    if numbers is not None:
        return _reshape(numbers)
    for operator, less, more in (("Unsqueeze", source, shape), ("Squeeze", shape, source)):
        axes = _axes_of_one(less, more)
        if axes:
            return Step(operator=operator, lists=(axes,), least=13)
    raise NotExpressible("a shape of several extents that are known at run time only")


def _axes_of_one(less: Sequence[int], more: Sequence[int]) -> list[int]:
    """The axes of extent 1 by which a shape has more than another one; none where they differ in more than those."""
    axes, place = [], 0
    for axis, extent in enumerate(more):
        if place < len(less) and less[place] == extent:
            place += 1
        elif not is_symbolic(extent) and extent == 1:
            axes.append(axis)
        else:
            return []
    return axes if place == len(less) else []


def _reshape(shape: Sequence[int]) -> Step:
    return Step(operator="Reshape", lists=(list(shape),), least=5)


def _line(index: Index) -> _Line | None:
    if not isinstance(index.constant, int):
        return None
    if not index.terms:
        return _Line(index.constant)
    (atom, step), *more = index.terms
    if more or not isinstance(atom, Var) or not isinstance(step, int):
        return None
    return _Line(index.constant, step, atom)


def _steps_of_lines(map_: IndexMap, lines: Sequence[_Line]) -> list[Step]:
    """A slice, a transposition of what has more than one element, a reshaping, an expansion: each if it is needed."""
    counts = [1 if line.variable is None else line.variable.extent for line in lines]
    steps = []
    cut = [
        a
        for a, (line, n) in enumerate(zip(lines, counts, strict=True))
        if (line.start, line.step if n != 1 else 1, n) != (0, 1, map_.source[a])
    ]
    if len(cut) == 1 and lines[cut[0]].variable is None:  # what lies at one place of an axis, which goes away
        axis = cut.pop()
        if is_symbolic(lines[axis].start):
            raise NotExpressible("an element whose place is known at run time only")
        steps.append(Step(operator="Gather", lists=(lines[axis].start,), attributes={"axis": axis}, places=1))
        lines = [line for a, line in enumerate(lines) if a != axis]
        counts = [count for a, count in enumerate(counts) if a != axis]
    if cut:
        ends = [_end(lines[a], counts[a], map_.source[a]) for a in cut]
        bounds = [[lines[a].start for a in cut], ends, cut]
        steps.append(Step(operator="Slice", lists=(*bounds, [_step(lines[a], counts[a]) for a in cut]), least=10))
    axes = {line.variable: a for a, line in enumerate(lines) if line.variable is not None}
    wanted = [axes[variable] for variable in map_.variables if variable in axes]
    moved = [a for a in wanted if counts[a] != 1]
    shape = counts
    if moved != sorted(moved):
        perm = [*wanted, *(a for a in range(len(lines)) if a not in wanted)]
        steps.append(Step(operator="Transpose", attributes={"perm": perm}))
        shape = [counts[a] for a in perm]
    narrow = [n if variable in axes else 1 for variable, n in zip(map_.variables, map_.shape, strict=True)]
    if shape != narrow:
        steps.append(_reordered(tuple(shape), tuple(narrow)))
    if narrow != list(map_.shape):
        steps.append(Step(operator="Expand", lists=(_expanded(narrow, map_.shape),), least=8))
    return steps


def _expanded(narrow: Sequence[int], shape: Sequence[int]) -> list[int]:
    """The operand of an Expand: where nothing is to be repeated, 1 leaves an extent as it is."""
    made = [1 if is_symbolic(n) and n == given else n for n, given in zip(shape, narrow, strict=True)]
    if any(map(is_symbolic, made)):
        raise NotExpressible("what is repeated as often as is known at run time only")
    return made


def _step(line: _Line, count: int) -> int:
    return 1 if count == 1 else line.step


def _end(line: _Line, count: int, source: int) -> int:
    """Where a slice ends.

    Raises:
        NotExpressible: that depends on an open extent, and is not a fixed number of elements before the axis ends.
    """
    if any(map(is_symbolic, (line.start, line.step))):
        raise NotExpressible("a slice whose beginning is known at run time only")
    end = line.start + _step(line, count) * count
    if is_symbolic(end):
        left = source - end
        if is_symbolic(left) or line.step != 1 or left < 0:
            raise NotExpressible("a slice whose end is known at run time only")
        return -left if left else _TO_THE_END
    return end if end >= 0 else -(2**31)  # backwards to the first element


def positions(map_: IndexMap) -> Array:
    """For each element of a view its place in the source, in row-major order; its indices are arithmetic."""
    grid = dict(zip(map_.variables, np.ogrid[tuple(slice(n) for n in map_.shape)], strict=True))
    place: Array = np.zeros(map_.shape, np.int64)
    for index, extent in zip(map_.indices, map_.source, strict=True):
        place = place * extent + _values(index, grid)
    return place


def _values(index: Index, grid: dict[Var, Array]) -> Array:
    total: Array = np.asarray(index.constant)
    for atom, coefficient in index.terms:
        total = total + coefficient * _atom_values(atom, grid)
    return total


def _atom_values(atom: Atom, grid: dict[Var, Array]) -> Array:
    if isinstance(atom, Var):
        return grid[atom]
    if isinstance(atom, Div):
        return np.asarray(_values(atom.value, grid) // atom.divisor)
    assert isinstance(atom, Mod)
    return np.asarray(_values(atom.value, grid) % atom.divisor)

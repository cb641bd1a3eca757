"""An index map as ONNX nodes: slices, a transposition, an expansion, or else a gathering from all elements in a row.

ONNX's operators are named here because the module writes ONNX models, as `smartmem_rules.graph` reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.tensor.atoms import Atom, Div, Mod, Var
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.views import IndexMap, keeps_order


class NotExpressible(Exception):
    """ONNX has no form for a part of a graph; the message says which."""


@dataclass
class Writer:
    """Nodes and constants of a model in the making; names that begin with `prefix` are its own."""

    prefix: str
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)

    def constant(self, values: Any, dtype: Any = np.int64) -> str:
        """The name of a constant."""
        name = f"{self.prefix}k{len(self.constants)}"
        self.constants[name] = np.asarray(values, dtype)
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


def write_view(map_: IndexMap, operand: str, output: str, writer: Writer) -> None:
    """Write what gives the view of a tensor.

    Raises:
        NotExpressible: an index is no arithmetic on loop variables.
    """
    if map_.is_identity:
        writer.add("Identity", [operand], output)
    elif keeps_order(map_):
        writer.add("Reshape", [operand, writer.constant(list(map_.shape))], output)
    else:
        lines = [_line(index) for index in map_.indices]
        known = [line for line in lines if line is not None]
        variables = [line.variable for line in known if line.variable is not None]
        if len(known) == len(lines) and len(set(variables)) == len(variables):
            _write_lines(map_, known, operand, output, writer)
        else:
            flat = writer.add("Reshape", [operand, writer.constant([-1])])
            writer.add("Gather", [flat, writer.constant(positions(map_))], output, axis=0)


def _line(index: Index) -> _Line | None:
    if not isinstance(index.constant, int):
        return None
    if not index.terms:
        return _Line(index.constant)
    (atom, step), *more = index.terms
    if more or not isinstance(atom, Var) or not isinstance(step, int):
        return None
    return _Line(index.constant, step, atom)


def _write_lines(map_: IndexMap, lines: Sequence[_Line], operand: str, output: str, writer: Writer) -> None:
    counts = [1 if line.variable is None else line.variable.extent for line in lines]
    cut = [
        a
        for a, (line, n) in enumerate(zip(lines, counts, strict=True))
        if (line.start, line.step, n) != (0, 1, map_.source[a])
    ]
    current = operand
    if cut:
        ends = [_end(lines[a], counts[a]) for a in cut]
        bounds = [[lines[a].start for a in cut], ends, cut, [lines[a].step for a in cut]]
        current = writer.add("Slice", [current, *(writer.constant(one) for one in bounds)])
    fixed = [a for a, line in enumerate(lines) if line.variable is None]
    if fixed:
        current = writer.add("Squeeze", [current, writer.constant(fixed)])
    order = [line.variable for line in lines if line.variable is not None]
    wanted = [variable for variable in map_.variables if variable in order]
    perm = [order.index(variable) for variable in wanted]
    if perm != sorted(perm):
        current = writer.add("Transpose", [current], perm=perm)
    absent = [place for place, variable in enumerate(map_.variables) if variable not in order]
    if absent:
        current = writer.add("Unsqueeze", [current, writer.constant(absent)])
    if any(map_.shape[place] != 1 for place in absent):
        current = writer.add("Expand", [current, writer.constant(list(map_.shape))])
    writer.add("Identity", [current], output)


def _end(line: _Line, count: int) -> int:
    end = line.start + line.step * count
    return end if end >= 0 else -(2**31)  # backwards to the first element


def positions(map_: IndexMap) -> Array:
    """For each element of a view its place in the source, in row-major order.

    Raises:
        NotExpressible: an index is no arithmetic on loop variables.
    """
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
    if isinstance(atom, Mod):
        return np.asarray(_values(atom.value, grid) % atom.divisor)
    raise NotExpressible(f"the index {atom} is read from a table")

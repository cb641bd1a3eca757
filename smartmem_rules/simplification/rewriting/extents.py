"""Operands whose elements are open extents, written as what computes them from the shapes of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import ConstantTensor
from smartmem_rules.tensor.extents import Dimension, Extent, Extreme, Factor, Quotient, is_symbolic, symbol
from smartmem_rules.tensor.primitives import Array
from smartmem_rules.tensor.ranges import smallest
from smartmem_rules.writing.views import NotExpressible, Writer

_PARTS_OF_SHAPES = 15
"""From this version of the standard operators on Shape gives a part of a shape."""
_ARITHMETIC = 7
_EXTREMES = 12
"""From these versions on integers are added with broadcasting, and Min and Max take integers."""


def holds_open(value: object) -> bool:
    """Whether the value of an attribute, or an element of it, is an open extent."""
    if isinstance(value, tuple | list):
        return any(map(holds_open, value))
    if isinstance(value, ConstantTensor):
        return any(map(is_symbolic, value.values))
    return is_symbolic(value)


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """A tensor of open extents that nodes read.

    Attributes:
        after: how many nodes were written before the first one that reads it.
    """

    array: Array
    dtype: Any
    after: int


@dataclass
class OpenWriter(Writer):
    """A writer whose operands may have open extents among their elements: they have names, and nodes in the end."""

    wanted: dict[str, _Wanted] = field(default_factory=dict)
    _open_names: dict[object, str] = field(default_factory=dict)

    def constant(self, values: Any, dtype: Any = np.int64) -> str:
        """The name of a constant or of a tensor of open extents; equal ones are one."""
        if not holds_open(values):
            return super().constant(values, dtype)
        array = np.empty(len(values) if isinstance(values, tuple | list) else (), object)
        array[...] = values
        return self.extents(array, dtype)

    def extents(self, array: Array, dtype: Any, name: str = "") -> str:
        """The name of a tensor of open extents, one of the writer's own unless it has to have another."""
        key = (np.dtype(dtype), array.shape, tuple(array.reshape(-1).tolist()))
        if not name and key in self._open_names:
            return self._open_names[key]
        name = name or f"{self.prefix}x{len(self.wanted)}"
        self._open_names.setdefault(key, name)
        self.wanted[name] = _Wanted(array=array, dtype=dtype, after=len(self.nodes))
        return name


def extent_nodes(
    writer: OpenWriter, opset: int, given: Mapping[str, Sequence[int]], shapes: Mapping[str, Sequence[int]]
) -> list[onnx.NodeProto]:
    """The nodes that compute the tensors of open extents that the written nodes read.

    Args:
        opset: the version of the standard operators that the model uses.
        given: the shapes of tensors that no written node computes.
        shapes: those of the others.

    Raises:
        NotExpressible: an extent is that of no tensor, and no arithmetic of that version gives it.
    """
    if writer.wanted and opset < _ARITHMETIC:
        raise NotExpressible(f"arithmetic of extents before opset {_ARITHMETIC}")
    made = _Making(writer=writer, opset=opset, given=dict(given))
    for name, wanted in sorted(writer.wanted.items(), key=lambda item: item[1].after):
        before = (output for node in writer.nodes[: wanted.after] for output in node.output)
        made.later = {tensor: shapes[tensor] for tensor in before if tensor in shapes}
        made.write(name, wanted)
    return made.nodes


@dataclass(kw_only=True)
class _Making:
    """The nodes made so far.

    Attributes:
        later: the shapes of tensors that written nodes compute, and that may be asked for theirs.
    """

    writer: OpenWriter
    opset: int
    given: Mapping[str, Sequence[int]]
    later: Mapping[str, Sequence[int]] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    known: dict[object, str] = field(default_factory=dict)
    lists: dict[tuple[int, ...], str] = field(default_factory=dict)

    def write(self, name: str, wanted: _Wanted) -> None:
        """Write the nodes of a tensor under its name."""
        found = self._list(tuple(wanted.array.reshape(-1).tolist()))
        if wanted.array.ndim == 0:
            found = self._node("Squeeze", [found])
        elif wanted.array.ndim > 1:
            found = self._node("Reshape", [found, self.writer.constant(wanted.array.shape)])
        if np.dtype(wanted.dtype) != np.int64:
            found = self._node("Cast", [found], to=helper.np_dtype_to_tensor_dtype(np.dtype(wanted.dtype)))
        if self.nodes and self.nodes[-1].output[0] == found and not name.startswith(self.writer.prefix):
            self.nodes[-1].output[0] = name
            self.known = {key: name if made == found else made for key, made in self.known.items()}
            self.lists = {key: name if made == found else made for key, made in self.lists.items()}
        else:
            self.nodes.append(helper.make_node("Identity", [found], [name]))

    def _node(self, operator: str, operands: Sequence[str], **attributes: Any) -> str:
        """The result of an operator; equal nodes are one."""
        key = (operator, *operands, *((name, attributes[name]) for name in sorted(attributes)))
        if key not in self.known:
            self.known[key] = f"{self.writer.prefix}e{len(self.known)}"
            self.nodes.append(helper.make_node(operator, list(operands), [self.known[key]], **attributes))
        return self.known[key]

    def _list(self, values: tuple[int, ...]) -> str:
        """A list of numbers and extents: parts of shapes, constants and what is computed, one behind the other."""
        if values not in self.lists:
            self.lists[values] = self._joined_parts(values)
        return self.lists[values]

    def _joined_parts(self, values: tuple[int, ...]) -> str:
        parts: list[str] = []
        place = 0
        while place < len(values):
            part, length = self._part(values[place:])
            parts.append(part)
            place += length
        return parts[0] if len(parts) == 1 else self._node("Concat", parts, axis=0)

    def _part(self, values: tuple[int, ...]) -> tuple[str, int]:
        """What gives the first of some values, and how many of them it gives."""
        numbers = next((place for place, value in enumerate(values) if is_symbolic(value)), len(values))
        if numbers:
            return self.writer.constant(list(values[:numbers])), numbers
        whole = next((name for name, shape in self._shapes() if tuple(shape) == values), None)
        if whole is not None:
            return self._node("Shape", [whole]), len(values)
        length, name, axis = max((_run(*one, values) for one in self.given.items()), default=(0, "", 0))
        if not length:
            return self._list_of_one(values[0]), 1
        return self._shape(name, -axis, length - axis), length

    def _list_of_one(self, value: int) -> str:
        if (value,) not in self.lists:
            self.lists[value,] = self._computed(value)
        return self.lists[value,]

    def _shapes(self) -> Sequence[tuple[str, Sequence[int]]]:
        return [*self.given.items(), *self.later.items()]

    def _shape(self, tensor: str, begin: int, end: int) -> str:
        """A part of a shape as a list."""
        shape = dict(self._shapes())[tensor]
        if (begin, end) == (0, len(shape)):
            return self._node("Shape", [tensor])
        if self.opset >= _PARTS_OF_SHAPES:
            return self._node("Shape", [tensor], start=begin, end=end)
        return self._node("Gather", [self._node("Shape", [tensor]), self.writer.constant(range(begin, end))], axis=0)

    def _computed(self, value: int) -> str:
        """An extent as a list of one, by the arithmetic that it is."""
        if not is_symbolic(value):
            return self.writer.constant([value])
        for name, shape in self._shapes():
            if value in shape:
                axis = list(shape).index(value)
                return self._shape(name, axis, axis + 1)
        assert type(value) is Extent
        return self._joined("Add", [self._term(factors, coefficient) for factors, coefficient in value.terms])

    def _term(self, factors: Sequence[Factor], coefficient: int) -> str:
        operands = [self._factor(factor) for factor in factors]
        if coefficient != 1 or not operands:
            operands.append(self.writer.constant([coefficient]))
        return self._joined("Mul", operands)

    def _joined(self, operator: str, operands: Sequence[str]) -> str:
        found, *rest = operands
        for operand in rest:
            found = self._node(operator, [found, operand])
        return found

    def _factor(self, factor: Factor) -> str:
        match factor:
            case Dimension(name=name):
                own = symbol(factor)
                if not any(own in shape for _, shape in self._shapes()):
                    raise NotExpressible(f"the extent {name} is that of no tensor")
                return self._list_of_one(own)
            case Quotient(value=value, divisor=divisor):
                if is_symbolic(divisor) or smallest(value) < 0:
                    raise NotExpressible(f"the quotient {factor!r}, which Div rounds otherwise or cannot divide")
                return self._node("Div", [self._list_of_one(value), self._list_of_one(divisor)])
            case Extreme(kind=kind, left=left, right=right):
                if self.opset < _EXTREMES:
                    raise NotExpressible(f"{factor!r} before opset {_EXTREMES}")
                operands = [self._list_of_one(left), self._list_of_one(right)]
                return self._node("Min" if kind == "min" else "Max", operands)


def _run(name: str, shape: Sequence[int], values: tuple[int, ...]) -> tuple[int, str, int]:
    """How many of the first values a shape has beside each other, the tensor, and from which axis on, negated."""
    best, place = 0, 0
    for axis in range(len(shape)):
        length = 0
        while length < len(values) and axis + length < len(shape) and shape[axis + length] == values[length]:
            length += 1
        if length > best:
            best, place = length, axis
    return best, name, -place

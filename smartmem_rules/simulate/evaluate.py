"""The expressions of a kernel: their values, and what they read and write on the way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from pycparser import c_ast

from smartmem_rules.simulate.accesses import Items, Parameter
from smartmem_rules.simulate.source import VECTOR, SimulationError, item_size
from smartmem_rules.simulate.values import (
    UNKNOWN,
    Loaded,
    Number,
    Pointer,
    Space,
    Value,
    Vector,
    aligned,
    binary,
    divide,
    held,
    is_number,
    limited,
    moved,
)

FLOATS = ("float", "double", "half")


class Evaluator(ABC):
    """Evaluates expressions; where names and accesses go is the tracer's.

    Args:
        parameters: by name.
        items: the work-items that run side by side.
    """

    def __init__(self, parameters: Mapping[str, Parameter], items: Items) -> None:
        self.parameters, self.items = parameters, items

    @abstractmethod
    def lookup(self, name: str) -> Value:
        """The value of a variable."""

    @abstractmethod
    def assign(self, name: str, value: Value) -> None:
        """Set a variable."""

    @abstractmethod
    def record(self, space: Space, write: bool, place: tuple[Number, ...], width: int, inside: Value = 1) -> None:
        """Note an access of the work-items for which it lies inside."""

    @abstractmethod
    def branch(self, condition: Value) -> Any:
        """A context in which only the work-items of a condition run."""

    def touch(self, pointer: Pointer, write: bool) -> Value:
        """Read or write through a pointer."""
        space = pointer.space
        if space.kind == "table":
            if isinstance(pointer.offset, int):
                return space.values[pointer.offset]
            if not is_number(pointer.offset):
                return UNKNOWN
            entries: Number = np.asarray(space.values)[np.clip(pointer.offset, 0, len(space.values) - 1)]
            return entries
        if not is_number(pointer.offset):
            raise SimulationError(f"where {space.name} is accessed depends on the contents of a tensor, unheld")
        if space.kind == "private" and not pointer.indexed:
            return UNKNOWN  # a constant index names a register
        self.record(space, write, (pointer.offset,), pointer.width)
        if write or space.kind != "global" or pointer.width > 1:
            return UNKNOWN
        values = self.parameters[space.name].values
        known = None if values is None else values[np.clip(pointer.offset, 0, len(values) - 1)].astype(np.int64)
        return Loaded(pointer.offset, known)

    def texel(self, name: str, coordinates: Value, write: bool) -> Value:
        """Read or write a texel; outside the image nothing is touched."""
        parameter = self.parameters[name]
        if not isinstance(coordinates, Vector) or not all(is_number(c) for c in coordinates.items):
            raise SimulationError(f"which texel of {name} is accessed depends on the contents of a tensor, unheld")
        assert parameter.size is not None
        x, y = aligned(*coordinates.items[:2])  # type: ignore[arg-type]
        width, height = parameter.size
        inside: Value = 1
        for index, extent in ((x, width), (y, height)):
            if np.min(index) < 0 or np.max(index) >= extent:
                inside = binary("&&", inside, binary("&&", binary(">=", index, 0), binary("<", index, extent)))
        self.record(Space(kind="image", name=name, item_bytes=parameter.item_bytes), write, (x, y), 4, inside)
        return UNKNOWN

    # --- expressions ---

    def value(self, node: Any) -> Value:
        """Evaluate an expression, with all that it reads and writes."""
        match node:
            case None:
                return UNKNOWN
            case c_ast.Constant():
                return constant(node)
            case c_ast.ID():
                return self.lookup(node.name)
            case c_ast.BinaryOp():
                return binary(node.op, self.value(node.left), self.value(node.right))
            case c_ast.UnaryOp():
                return self._unary(node)
            case c_ast.Cast():
                return self._cast(node)
            case c_ast.TernaryOp():
                return self._ternary(node)
            case c_ast.ArrayRef():
                return self._element_of(node, False)
            case c_ast.StructRef():
                return self._component(node)
            case c_ast.FuncCall():
                return self._call(node)
            case c_ast.Assignment():
                return self._assignment(node)
            case c_ast.ExprList():
                return [self.value(e) for e in node.exprs][-1]
            case c_ast.InitList() | c_ast.CompoundLiteral():
                return UNKNOWN
            case _:
                raise SimulationError(f"a kernel holds a {type(node).__name__}, which is not followed ({node.coord})")

    def _unary(self, node: Any) -> Value:
        if node.op == "*":
            pointer = self.value(node.expr)
            if not isinstance(pointer, Pointer):
                raise SimulationError(f"a kernel reads through what is no pointer ({node.coord})")
            return self.touch(pointer, False)
        if node.op == "&":
            return self._address(node.expr)
        value = self.value(node.expr)
        if node.op in ("++", "--", "p++", "p--"):
            self.assign(node.expr.name, binary("+", value, 1 if "+" in node.op else -1))
            return value
        if node.op == "sizeof":
            return UNKNOWN
        match node.op:
            case "-":
                return binary("*", value, -1)
            case "!":
                return binary("==", value, 0)
            case _:
                return value if node.op == "+" else UNKNOWN

    def _address(self, node: Any) -> Value:
        if isinstance(node, c_ast.ArrayRef):
            pointer = self.value(node.name)
            if isinstance(pointer, Pointer):
                return moved(pointer, self.value(node.subscript))
        return UNKNOWN

    def _cast(self, node: Any) -> Value:
        base, pointer, _ = type_of(node.to_type.type)
        kind, width = element(base)
        if not pointer and width > 1 and isinstance(node.expr, c_ast.ExprList):
            items = tuple(self.value(e) for e in node.expr.exprs)
            if kind in ("int", "uint") and not any(isinstance(i, (Pointer, Vector)) for i in items):
                return Vector(items)  # type: ignore[arg-type]
            return UNKNOWN
        value = self.value(node.expr)
        if pointer and isinstance(value, Pointer):
            return _pointed(value, item_size(kind), width)
        return UNKNOWN if kind in FLOATS and not isinstance(value, Pointer) else value

    def _ternary(self, node: Any) -> Value:
        condition = self.value(node.cond)
        with self.branch(condition):
            first = self.value(node.iftrue)
        with self.branch(binary("==", condition, 0)):
            second = self.value(node.iffalse)
        if is_number(condition) and is_number(first) and is_number(second):
            return np.where(*aligned(condition, first, second))
        return UNKNOWN

    def _element_of(self, node: Any, write: bool) -> Value:
        pointer = self.value(node.name)
        index = self.value(node.subscript)
        if not isinstance(pointer, Pointer):
            return UNKNOWN
        offset = index if pointer.width == 1 else binary("*", index, pointer.width)
        return self.touch(moved(pointer, offset), write)

    def _component(self, node: Any) -> Value:
        value = self.value(node.name)
        if isinstance(value, Vector):
            place = {"x": 0, "y": 1, "z": 2, "w": 3}.get(node.field.name)
            return UNKNOWN if place is None else value.items[place]
        return UNKNOWN

    def _assignment(self, node: Any) -> Value:
        value = self.value(node.rvalue)
        target = node.lvalue
        if node.op != "=" and isinstance(target, (c_ast.ID, c_ast.ArrayRef, c_ast.UnaryOp)):
            value = binary(node.op[:-1], self.value(target), value)
        while isinstance(target, c_ast.StructRef):
            target, value = target.name, UNKNOWN
        match target:
            case c_ast.ID():
                self.assign(target.name, value)
            case c_ast.ArrayRef():
                self._element_of(target, True)
            case c_ast.UnaryOp(op="*"):
                pointer = self.value(target.expr)
                if not isinstance(pointer, Pointer):
                    raise SimulationError(f"a kernel writes through what is no pointer ({node.coord})")
                self.touch(pointer, True)
            case _:
                raise SimulationError(f"a kernel sets a {type(target).__name__}, which is not followed ({node.coord})")
        return value

    def _call(self, node: Any) -> Value:
        name = node.name.name
        operands = node.args.exprs if node.args is not None else []
        if name in ("read_imagef", "read_imageh", "write_imagef", "write_imageh"):
            texel = operands[-1] if name.startswith("read") else operands[1]
            if name.startswith("write"):
                self.value(operands[2])
            return self.texel(operands[0].name, self.value(texel), name.startswith("write"))
        arguments = [self.value(o) for o in operands]
        if name.removeprefix("smr_").startswith(("vload", "vstore")):
            return self._vector_access(name.removeprefix("smr_"), arguments)
        if name in ("min", "max", "clamp"):
            return limited(name, arguments)
        if name in ("smr_inside", "smr_wrap"):
            return held(arguments[0], whole(arguments[1]), name == "smr_wrap")
        if name in ("smr_floordiv_i", "smr_mod_i") and all(is_number(a) for a in arguments):
            a, b = aligned(*arguments)  # type: ignore[arg-type]
            return a // b if name == "smr_floordiv_i" else a % b
        if name.startswith("get_"):
            return self._work_item(name, arguments)
        if any(isinstance(a, Pointer) for a in arguments):
            raise SimulationError(f"a kernel hands a pointer to {name}, which is not followed ({node.coord})")
        return UNKNOWN

    def _vector_access(self, name: str, arguments: list[Value]) -> Value:
        write = name.startswith("vstore")
        digits = "".join(c for c in name.removeprefix("vstore").removeprefix("vload") if c.isdigit())
        width = int(digits) if digits else 1
        position, pointer = arguments[-2], arguments[-1]
        if not isinstance(pointer, Pointer):
            return UNKNOWN  # a work-item's own variable
        place = moved(pointer, binary("*", position, width))
        return self.touch(Pointer(place.space, place.offset, width, place.indexed), write)

    def _work_item(self, name: str, arguments: list[Value]) -> Value:
        axis = whole(arguments[0]) if arguments else 0
        items = self.items
        inside = axis < len(items.global_size)
        match name:
            case "get_global_id":
                return items.ids[axis] if inside else 0
            case "get_local_id":
                return items.locals[axis] if inside else 0
            case "get_group_id":
                return items.groups[axis] if inside else 0
            case "get_global_size":
                return items.global_size[axis] if inside else 1
            case "get_local_size":
                return items.local_size[axis] if inside else 1
            case "get_num_groups":
                return -(-items.global_size[axis] // items.local_size[axis]) if inside else 1
            case _:
                raise SimulationError(f"a kernel asks for {name}, which is not followed")


def _pointed(pointer: Pointer, size: int, width: int) -> Pointer:
    """A pointer to vectors of `width` elements of so many bytes.

    Local arrays are of several types. Tensors keep their elements: `uint2` are four elements of a tensor of `ushort`.

    Raises:
        SimulationError: a vector is no whole number of a tensor's elements.
    """
    space = pointer.space
    if space.kind not in ("global", "local") or space.item_bytes == size:
        return Pointer(space, pointer.offset, width, pointer.indexed)
    if space.kind == "global":
        elements, rest = divmod(width * size, space.item_bytes)
        if rest:
            raise SimulationError(f"a kernel reads parts of the elements of {space.name}, which is not followed")
        return Pointer(space, pointer.offset, elements, pointer.indexed)
    offset = binary("*", pointer.offset, space.item_bytes)
    assert is_number(offset)
    resized = replace(space, item_bytes=size, elements=space.elements * space.item_bytes // size)
    return Pointer(resized, divide(offset, size), width, pointer.indexed)


def whole(value: Value) -> int:
    if not isinstance(value, int):
        raise SimulationError("a kernel takes an extent or an axis that is no constant")
    return value


def constant(node: Any) -> Value:
    text = node.value.rstrip("uUlL")
    if node.type in ("int", "unsigned int", "long int", "long long int", "unsigned long int"):
        return int(text, 0)
    return UNKNOWN


def type_of(node: Any) -> tuple[str, bool, list[Any]]:
    """The name of a type, whether it is a pointer, and the extents of an array."""
    pointer, dimensions = False, []
    while not isinstance(node, c_ast.IdentifierType):
        if isinstance(node, c_ast.PtrDecl):
            pointer = True
        elif isinstance(node, c_ast.ArrayDecl):
            dimensions.append(node.dim)
        node = node.type
    return " ".join(node.names), pointer, dimensions


def element(name: str) -> tuple[str, int]:
    match = VECTOR.match(name)
    return (match.group(1), int(match.group(2) or 1)) if match else (name, 1)

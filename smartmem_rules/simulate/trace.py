"""Runs a kernel for its addresses alone: all sampled work-items side by side, loops as axes of arrays.

What a kernel computes from the contents of tensors stays unknown; what it computes from its work-item and loop variables, which is
what the index maps of a plan are made of, is exact. Work-items run in lockstep: an access in a loop has one time for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pycparser import c_ast

from smartmem_rules.simulate.source import VECTOR, KernelText, SimulationError
from smartmem_rules.simulate.values import (
    UNKNOWN,
    Loaded,
    Number,
    Pointer,
    Space,
    Unknown,
    Value,
    Vector,
    aligned,
    binary,
    held,
    is_number,
    limited,
    moved,
)

Array = np.ndarray[Any, Any]

SEQUENTIAL_LIMIT = 1 << 14
"""Steps of a loop that has to be followed one by one."""

_FLOATS = ("float", "double", "half")


@dataclass(frozen=True)
class Parameter:
    """What a kernel's parameter stands for.

    Attributes:
        item_bytes: of one element; of one channel of a texel.
        constant: whether no kernel writes it, so that a compiler may read an element once instead of twice.
        size: width and height of an image, None for buffers.
        bytes: of all of it.
        values: of a constant of integers, flat as in memory.
    """

    name: str
    item_bytes: int
    constant: bool
    size: tuple[int, int] | None = None
    bytes: int = 0
    values: Array | None = None


@dataclass(frozen=True)
class Items:
    """The work-items of a trace, by dimension of the launch: their number in it, their group, their place in the group."""

    ids: tuple[Array, ...]
    groups: tuple[Array, ...]
    locals: tuple[Array, ...]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    active: Array


@dataclass(frozen=True)
class Slice:
    """The part of a loop that a trace follows: `count` of its steps from `start` on."""

    start: int
    count: int


@dataclass
class Loop:
    """A loop as an axis: how many of its steps the trace holds, and how many there are."""

    node: int
    count: int
    steps: int


@dataclass
class Access:
    """One place in the text that reads or writes memory.

    Attributes:
        space: what is accessed.
        write: else a read.
        place: texel coordinates (x, y) of an image, (offset,) of a buffer in elements; work-items by loops.
        width: elements at once.
        mask: which work-items do it, at which steps.
        time: when, over the loops; the same for all work-items.
        loops: the axes behind the first.
    """

    space: Space
    write: bool
    place: tuple[Array, ...]
    width: int
    mask: Array
    time: Array
    loops: tuple[Loop, ...]

    @property
    def weight(self) -> float:
        """How many accesses of the launch one access of the trace stands for, as far as loops were cut."""
        return float(np.prod([loop.steps / loop.count for loop in self.loops])) if self.loops else 1.0


class _Carried(Exception):
    """A loop hands a number on from one step to the next: its steps cannot be taken side by side."""


@dataclass
class _Frame:
    names: dict[str, Value] = field(default_factory=dict)
    seen: set[tuple[Any, ...]] = field(default_factory=set)


class Tracer:
    """Follows a kernel.

    Args:
        merge: read what no kernel writes once where the text reads it twice in nested blocks or without change in a loop, as
            compilers do; False keeps every access of the text.
        slices: for loops (by the order in which they are met), which of their steps are followed.
    """

    def __init__(
        self,
        text: KernelText,
        parameters: Mapping[str, Parameter],
        items: Items,
        merge: bool = True,
        slices: Mapping[int, Slice] | None = None,
    ) -> None:
        self.text, self.parameters, self.items, self.merge = text, parameters, items, merge
        self.slices = slices or {}
        self.accesses: list[Access] = []
        self.loops: list[Loop] = []
        self._order: dict[int, int] = {}
        self._clock = 0
        self._around: list[Loop] = []
        self._frames: list[_Frame] = [_Frame()]
        self._mask: Number = items.active.astype(np.int64)
        self._parallel: list[int] = []

    def run(self) -> list[Access]:
        """The accesses in the order of the text.

        Raises:
            SimulationError: the text holds what the tracer does not follow.
        """
        for name in self.text.parameters:
            parameter = self.parameters[name]
            if parameter.size is None:
                self._frames[0].names[name] = Pointer(Space("global", name, parameter.item_bytes), 0)
        self._block(self.text.body.block_items or ())
        return self.accesses

    # --- scopes ---

    @contextmanager
    def _scope(self, condition: Value | None = None) -> Iterator[None]:
        before = self._mask
        if condition is not None and is_number(condition):
            self._mask = binary("&&", before, condition)  # type: ignore[assignment]
        self._frames.append(_Frame())
        try:
            yield
        finally:
            self._frames.pop()
            self._mask = before

    def _lookup(self, name: str) -> Value:
        for frame in reversed(self._frames):
            if name in frame.names:
                return frame.names[name]
        return UNKNOWN

    def _assign(self, name: str, value: Value) -> None:
        for depth in range(len(self._frames) - 1, -1, -1):
            names = self._frames[depth].names
            if name not in names:
                continue
            if not isinstance(value, Unknown) or not isinstance(names[name], Unknown):
                if any(depth < first for first in self._parallel):
                    raise _Carried
                value = self._merged(names[name], value)
            names[name] = value
            return
        raise SimulationError(f"a kernel sets {name}, which it does not declare")

    def _merged(self, old: Value, new: Value) -> Value:
        """The new value where the work-items of this branch run, the old one elsewhere."""
        if np.all(self._mask) or not (is_number(old) and is_number(new)):
            return new
        mask, before, after = aligned(self._mask, old, new)  # type: ignore[arg-type]
        return np.where(mask, after, before)

    # --- statements ---

    def _block(self, statements: Iterable[Any]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: Any) -> None:
        match node:
            case c_ast.Decl():
                self._declare(node)
            case c_ast.DeclList():
                self._block(node.decls)
            case c_ast.Compound():
                with self._scope():
                    self._block(node.block_items or ())
            case c_ast.If():
                self._if(node)
            case c_ast.For():
                self._for(node)
            case c_ast.Return():
                raise SimulationError(f"a kernel returns from inside a block ({node.coord}), which is not followed")
            case c_ast.EmptyStatement() | c_ast.Pragma() | c_ast.Typedef() | None:
                pass
            case _:
                self.value(node)

    def _if(self, node: Any) -> None:
        condition = self.value(node.cond)
        returns = [s for s in _statements(node.iftrue) if isinstance(s, c_ast.Return)]
        if returns and len(self._frames) == 1:
            if is_number(condition):
                self._mask = binary("&&", self._mask, binary("==", condition, 0))  # type: ignore[assignment]
            return
        with self._scope(condition):
            self._statement(node.iftrue)
        if node.iffalse is not None:
            with self._scope(binary("==", condition, 0)):
                self._statement(node.iffalse)

    def _declare(self, node: Any) -> None:
        base, pointer, dimensions = _type_of(node.type)
        kind, _ = _element(base)
        name, names = node.name, self._frames[-1].names
        if dimensions:
            names[name] = self._array(node, base, dimensions)
            return
        value = UNKNOWN if node.init is None else self.value(node.init)
        if not pointer and kind in _FLOATS and not isinstance(value, Pointer):
            value = UNKNOWN
        elif node.init is None and not pointer:
            value = 0
        names[name] = value

    def _array(self, node: Any, base: str, dimensions: list[Any]) -> Pointer:
        kind, width = _element(base)
        elements = 1
        for dimension in dimensions:
            extent = self.value(dimension)
            if not isinstance(extent, int):
                raise SimulationError(f"the extent of the array {node.name} is no constant ({node.coord})")
            elements *= extent
        if isinstance(node.init, c_ast.InitList) and kind == "int":
            table = [self.value(e) for e in node.init.exprs]
            if all(isinstance(v, int) for v in table):
                return Pointer(Space("table", node.name, 4, elements, tuple(table)), 0)  # type: ignore[arg-type]
        local = "volatile" in _qualifiers(node)
        size = {"half": 2, "double": 8, "long": 8, "ulong": 8, "short": 2, "ushort": 2, "char": 1, "uchar": 1}
        item = size.get(kind, 4)
        return Pointer(Space("local" if local else "private", node.name, item, elements * width), 0)

    # --- loops ---

    def _for(self, node: Any) -> None:
        number = self._order.setdefault(id(node), len(self._order))
        state = (self._clock, len(self.accesses), len(self.loops), [dict(f.names) for f in self._frames])
        try:
            if self._side_by_side(node, number):
                return
        except _Carried:
            if any(len(self._frames) > first for first in self._parallel):
                raise
        self._clock = state[0]
        del self.accesses[state[1] :]
        del self.loops[state[2] :]
        for frame, names in zip(self._frames, state[3], strict=True):
            frame.names = names
        self._step_by_step(node)

    def _side_by_side(self, node: Any, number: int) -> bool:
        """The steps of `for (int i = a; i < b; i += c)` as a new axis; False for loops of another form."""
        form = _counted(node)
        if form is None:
            return False
        name, first, last, by = form
        start, stop, step = self.value(first), self.value(last), self.value(by)
        if not (is_number(start) and is_number(stop) and isinstance(step, int)):
            return False
        span = binary("-", stop, start)
        steps = int(np.max(-(-np.maximum(np.asarray(span), 0) // step))) if np.size(span) else 0
        if steps == 0:
            return True
        cut = self.slices.get(number, Slice(0, steps))
        loop = Loop(number, min(cut.count, steps), steps)
        self.loops.append(loop)
        depth = 1 + len(self._around)
        axis = (cut.start + np.arange(loop.count)).reshape((1,) * depth + (-1,))
        value = binary("+", start, axis * step)
        outer_accesses, outer_clock, outer_mask = self.accesses, self._clock, self._mask
        self.accesses, self._clock = [], 0
        self._around.append(loop)
        self._parallel.append(len(self._frames))
        try:
            with self._scope(binary("<", value, stop) if isinstance(span, np.ndarray) else None):
                self._frames[-1].names[name] = value
                self._statement(node.stmt)
            for access in self.accesses:
                self._place_in_loop(access, depth, outer_clock)
        finally:
            inner, length = self.accesses, self._clock
            self.accesses, self._clock, self._mask = outer_accesses, outer_clock, outer_mask
            self._around.pop()
            self._parallel.pop()
        self.accesses.extend(inner)
        self._clock += length * loop.count
        return True

    def _place_in_loop(self, access: Access, depth: int, before: int) -> None:
        """Its times, now that the length of the loop's body is known."""
        if len(access.loops) < depth:  # it does not change in this loop: done once, at the first step
            access.time = access.time + before
            return
        steps = np.arange(access.loops[depth - 1].count).reshape((-1,) + (1,) * (len(access.loops) - depth))
        access.time = access.time + before + steps * self._clock

    def _step_by_step(self, node: Any) -> None:
        with self._scope():
            self._statement(node.init)
            for _ in range(SEQUENTIAL_LIMIT):
                condition = self.value(node.cond)
                if not is_number(condition):
                    raise SimulationError(f"how often a loop runs depends on what a tensor holds ({node.coord})")
                if not np.any(condition):
                    return
                with self._scope(condition):
                    self._statement(node.stmt)
                    self.value(node.next)
        raise SimulationError(f"a loop has more than {SEQUENTIAL_LIMIT} steps ({node.coord})")

    # --- accesses ---

    def touch(self, pointer: Pointer, write: bool) -> Value:
        """Read or write through a pointer."""
        space = pointer.space
        if space.kind == "table":
            if isinstance(pointer.offset, int):
                return space.values[pointer.offset]
            return np.asarray(space.values)[np.clip(pointer.offset, 0, len(space.values) - 1)]
        if not is_number(pointer.offset):
            raise SimulationError(f"where {space.name} is accessed depends on the contents of a tensor, unheld")
        if space.kind == "private" and not pointer.indexed:
            return UNKNOWN  # a constant index names a register
        self._record(space, write, (pointer.offset,), pointer.width)
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
        with self._scope(None):
            for index, extent in ((x, width), (y, height)):
                if np.min(index) < 0 or np.max(index) >= extent:
                    inside = binary("&&", binary(">=", index, 0), binary("<", index, extent))
                    self._mask = binary("&&", self._mask, inside)  # type: ignore[assignment]
            self._record(Space("image", name, parameter.item_bytes), write, (x, y), 4, self._frames[-2].seen)
        return UNKNOWN

    def _record(
        self, space: Space, write: bool, place: tuple[Number, ...], width: int, seen: set[Any] | None = None
    ) -> None:
        arrays = [np.asarray(v, dtype=np.int64) for v in place]
        mask = np.asarray(self._mask)
        once = self.merge and not write and space.kind in ("global", "image") and self.parameters[space.name].constant
        if once:
            key = (space.name, width, *((a.shape, a.tobytes()) for a in arrays))
            if any(key in frame.seen for frame in self._frames):
                return
            (self._frames[-1].seen if seen is None else seen).add(key)
        depth = 1 + len(self._around)
        if once:
            while depth > 1 and all(a.ndim < depth or a.shape[depth - 1] == 1 for a in (*arrays, mask)):
                depth -= 1
        loops = tuple(self._around[: depth - 1])
        shape = (len(self.items.active), *(loop.count for loop in loops))
        full = [np.broadcast_to(a.reshape(a.shape[:depth] + (1,) * (depth - a.ndim)), shape) for a in arrays]
        masked = np.broadcast_to(mask.reshape(mask.shape[:depth] + (1,) * (depth - mask.ndim)), shape)
        time = np.full(shape[1:], self._clock, dtype=np.int64)
        self._clock += 1
        if masked.any():
            self.accesses.append(Access(space, write, tuple(full), width, masked, time, loops))

    # --- expressions ---

    def value(self, node: Any) -> Value:
        """Evaluate an expression, with all that it reads and writes."""
        match node:
            case None:
                return UNKNOWN
            case c_ast.Constant():
                return _constant(node)
            case c_ast.ID():
                return self._lookup(node.name)
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
            self._assign(node.expr.name, binary("+", value, 1 if "+" in node.op else -1))
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
        base, pointer, _ = _type_of(node.to_type.type)
        kind, width = _element(base)
        if not pointer and width > 1 and isinstance(node.expr, c_ast.ExprList):
            items = tuple(self.value(e) for e in node.expr.exprs)
            if kind in ("int", "uint") and not any(isinstance(i, (Pointer, Vector)) for i in items):
                return Vector(items)  # type: ignore[arg-type]
            return UNKNOWN
        value = self.value(node.expr)
        if pointer and isinstance(value, Pointer):
            return Pointer(value.space, value.offset, width, value.indexed)
        return UNKNOWN if kind in _FLOATS and not isinstance(value, Pointer) else value

    def _ternary(self, node: Any) -> Value:
        condition = self.value(node.cond)
        with self._scope(condition):
            first = self.value(node.iftrue)
        with self._scope(binary("==", condition, 0)):
            second = self.value(node.iffalse)
        if is_number(condition) and is_number(first) and is_number(second):
            return np.where(*aligned(condition, first, second))  # type: ignore[call-overload,no-any-return,arg-type]
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
                self._assign(target.name, value)
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
        if name.startswith(("vload", "vstore")):
            return self._vector_access(name, arguments)
        if name in ("min", "max", "clamp"):
            return limited(name, arguments)
        if name in ("smr_inside", "smr_wrap"):
            return held(arguments[0], _whole(arguments[1]), name == "smr_wrap")
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
        axis = _whole(arguments[0]) if arguments else 0
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


def _statements(node: Any) -> list[Any]:
    return list(node.block_items or ()) if isinstance(node, c_ast.Compound) else [node]


def _whole(value: Value) -> int:
    if not isinstance(value, int):
        raise SimulationError("a kernel takes an extent or an axis that is no constant")
    return value


def _constant(node: Any) -> Value:
    text = node.value.rstrip("uUlL")
    if node.type in ("int", "unsigned int", "long int", "long long int", "unsigned long int"):
        return int(text, 0)
    return UNKNOWN


def _type_of(node: Any) -> tuple[str, bool, list[Any]]:
    """The name of a type, whether it is a pointer, and the extents of an array."""
    pointer, dimensions = False, []
    while not isinstance(node, c_ast.IdentifierType):
        if isinstance(node, c_ast.PtrDecl):
            pointer = True
        elif isinstance(node, c_ast.ArrayDecl):
            dimensions.append(node.dim)
        node = node.type
    return " ".join(node.names), pointer, dimensions


def _qualifiers(node: Any) -> set[str]:
    found = set(node.quals)
    inner = node.type
    while not isinstance(inner, c_ast.IdentifierType):
        found |= set(getattr(inner, "quals", ()) or ())
        inner = inner.type
    return found


def _element(name: str) -> tuple[str, int]:
    match = VECTOR.match(name)
    return (match.group(1), int(match.group(2) or 1)) if match else (name, 1)


def _counted(node: Any) -> tuple[str, Any, Any, Any] | None:
    """(variable, first value, bound, step) of a loop that counts up to a bound."""
    declared = node.init.decls[0] if isinstance(node.init, c_ast.DeclList) and len(node.init.decls) == 1 else None
    condition, after = node.cond, node.next
    if declared is None or not isinstance(condition, c_ast.BinaryOp) or condition.op != "<":
        return None
    if not isinstance(condition.left, c_ast.ID) or condition.left.name != declared.name:
        return None
    if isinstance(after, c_ast.UnaryOp) and after.op in ("++", "p++"):
        return declared.name, declared.init, condition.right, c_ast.Constant("int", "1")
    if isinstance(after, c_ast.Assignment) and after.op == "+=":
        return declared.name, declared.init, condition.right, after.rvalue
    return None

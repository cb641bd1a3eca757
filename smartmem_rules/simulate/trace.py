"""Runs a kernel for its addresses alone: all sampled work-items side by side, loops as axes of arrays.

What a kernel computes from the contents of tensors stays unknown; what it computes from its work-item and loop
variables, which is what the index maps of a plan are made of, is exact. Work-items run in lockstep: an access in a loop
has one time for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import numpy as np
from pycparser import c_ast

from smartmem_rules.records import dataclass
from smartmem_rules.simulate.accesses import Access, Items, Loop, Parameter, Slice
from smartmem_rules.simulate.evaluate import FLOATS, Evaluator, element, type_of
from smartmem_rules.simulate.source import GIVEN, KernelText, SimulationError, item_size, qualifiers
from smartmem_rules.simulate.values import UNKNOWN, Number, Pointer, Space, Unknown, Value, aligned, binary, is_number

SEQUENTIAL_LIMIT = 1 << 14
"""Steps of a loop that has to be followed one by one."""


class _Carried(Exception):
    """A loop hands a number on from one step to the next: its steps cannot be taken side by side."""


@dataclass
class _Frame:
    names: dict[str, Value] = field(default_factory=dict)
    seen: set[tuple[Any, ...]] = field(default_factory=set)


class Tracer(Evaluator):
    """Follows a kernel.

    Args:
        merge: read once what the kernel does not write and the text reads twice in nested blocks or without change in a
            loop, as compilers do; False keeps every access of the text.
        slices: for loops (by the order in which they are met), which of their steps are followed.
        seldom: whether what stands behind `smr_seldom`, for unusual data, is followed too.
    """

    def __init__(
        self,
        text: KernelText,
        parameters: Mapping[str, Parameter],
        items: Items,
        merge: bool = True,
        slices: Mapping[int, Slice] | None = None,
        seldom: bool = False,
    ) -> None:
        super().__init__(parameters, items)
        self.text, self.merge, self.seldom = text, merge, seldom
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
                self._frames[0].names[name] = Pointer(
                    Space(kind="global", name=name, item_bytes=parameter.item_bytes), 0
                )
        self._block(self.text.tables)
        if self.text.shared is not None:
            name, floats = self.text.shared
            item, group = GIVEN
            given = {item: self.items.ids[0], group: self.items.groups[0]}
            self._frames[0].names |= {
                **given,
                name: Pointer(Space(kind="local", name=name, item_bytes=4, elements=floats), 0),
            }
        self._block(self.text.body.block_items or ())
        return self.accesses

    # --- scopes ---

    @contextmanager
    def branch(self, condition: Value | None = None) -> Iterator[None]:
        """A block, in which only the work-items of a condition run; what it declares ends with it."""
        before = self._mask
        if condition is not None and is_number(condition):
            self._mask = binary("&&", before, condition)  # type: ignore[assignment]
        self._frames.append(_Frame())
        try:
            yield
        finally:
            self._frames.pop()
            self._mask = before

    def lookup(self, name: str) -> Value:
        for frame in reversed(self._frames):
            if name in frame.names:
                return frame.names[name]
        return UNKNOWN

    def assign(self, name: str, value: Value) -> None:
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
        mask, before, after = aligned(self._mask, old, new)
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
                with self.branch():
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
        if not self.seldom and isinstance(node.cond, c_ast.FuncCall) and node.cond.name.name == "smr_seldom":
            return
        condition = self.value(node.cond)
        returns = [s for s in _statements(node.iftrue) if isinstance(s, c_ast.Return)]
        if returns and len(self._frames) == 1:
            if is_number(condition):
                self._mask = binary("&&", self._mask, binary("==", condition, 0))  # type: ignore[assignment]
            return
        with self.branch(condition if is_number(condition) else self._known_part(node.cond)):
            self._statement(node.iftrue)
        if node.iffalse is not None:
            with self.branch(binary("==", condition, 0)):
                self._statement(node.iffalse)

    def _known_part(self, condition: Any) -> Value:
        """What a condition that depends on memory says without it: `i < n && data[i] > 0` keeps to `i < n`."""
        if isinstance(condition, c_ast.BinaryOp) and condition.op == "&&":
            left, right = self._known_part(condition.left), self._known_part(condition.right)
            if not is_number(left):
                return right
            return binary("&&", left, right) if is_number(right) else left
        return UNKNOWN if _touches_memory(condition) else self.value(condition)

    def _declare(self, node: Any) -> None:
        base, pointer, dimensions = type_of(node.type)
        kind, width = element(base)
        name, names = node.name, self._frames[-1].names
        if dimensions:
            names[name] = self._array(node, base, dimensions)
            return
        value = UNKNOWN if node.init is None else self.value(node.init)
        elements = kind in FLOATS or (width > 1 and is_number(value))  # one number for all lanes is none to follow
        if not pointer and elements and not isinstance(value, Pointer):
            value = UNKNOWN
        elif node.init is None and not pointer:
            value = 0
        names[name] = value

    def _array(self, node: Any, base: str, dimensions: list[Any]) -> Pointer:
        kind, width = element(base)
        elements = 1
        for dimension in dimensions:
            extent = self.value(dimension)
            if not isinstance(extent, int):
                raise SimulationError(f"the extent of the array {node.name} is no constant ({node.coord})")
            elements *= extent
        if isinstance(node.init, c_ast.InitList) and kind == "int":
            table = [self.value(e) for e in node.init.exprs]
            if all(isinstance(v, int) for v in table):
                values: tuple[Any, ...] = tuple(table)
                return Pointer(Space(kind="table", name=node.name, item_bytes=4, elements=elements, values=values), 0)
        local = "volatile" in qualifiers(node)
        return Pointer(
            Space(
                kind="local" if local else "private",
                name=node.name,
                item_bytes=item_size(kind),
                elements=elements * width,
            ),
            0,
        )

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
        assert is_number(span)
        steps = int(np.max(-(-np.maximum(span, 0) // step))) if np.size(span) else 0
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
            with self.branch(binary("<", value, stop) if isinstance(span, np.ndarray) else None):
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
        with self.branch():
            self._statement(node.init)
            for _ in range(SEQUENTIAL_LIMIT):
                condition = self.value(node.cond)
                if not is_number(condition):
                    raise SimulationError(f"how often a loop runs depends on what a tensor holds ({node.coord})")
                # work-items that the launch does not have stay where they are
                if not np.any(np.asarray(binary("&&", self._mask, condition))):
                    return
                with self.branch(condition):
                    self._statement(node.stmt)
                    self.value(node.next)
        raise SimulationError(f"a loop has more than {SEQUENTIAL_LIMIT} steps ({node.coord})")

    # --- accesses ---

    def record(self, space: Space, write: bool, place: tuple[Number, ...], width: int, inside: Value = 1) -> None:
        """Note an access, unless a compiler would have it already."""
        arrays = [np.asarray(v, dtype=np.int64) for v in place]
        mask = np.asarray(binary("&&", self._mask, inside))
        once = self.merge and not write and space.kind in ("global", "image") and self.parameters[space.name].constant
        if once:
            key = (space.name, width, *((a.shape, a.tobytes()) for a in arrays))
            if any(key in frame.seen for frame in self._frames):
                return
            self._frames[-1].seen.add(key)
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


def _statements(node: Any) -> list[Any]:
    return list(node.block_items or ()) if isinstance(node, c_ast.Compound) else [node]


def _touches_memory(node: Any) -> bool:
    """Whether an expression reads, writes or calls, so that it must be evaluated once only."""
    if isinstance(node, (c_ast.ArrayRef, c_ast.FuncCall, c_ast.Assignment)):
        return True
    if isinstance(node, c_ast.UnaryOp) and node.op in ("*", "++", "--", "p++", "p--"):
        return True
    return any(_touches_memory(child) for _, child in node.children())


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

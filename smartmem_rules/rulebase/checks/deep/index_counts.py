"""Definitions that read a tensor with too many or too few indices, whatever they are used with.

The left side `y[*i]` of an equation stands for all axes of `y`, so how many indices `x[*i, k]` has follows from the
shape of the result as well. Which of the three is wrong, the shape, the left side or the read, the text does not say:
each is changed and tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from smartmem_rules.analysis.tries import MISCOUNTED, tried
from smartmem_rules.analysis.violations import smallest_violation
from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice, replacement
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.rebuilding import rebuilt
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.instantiate import Definitions

_NAMES = "jklmnpqr"
_MOST_SHOWN = 3
_NOTE = "found by trying operand types that its signature admits and its requirements allow"
_Way = tuple[str, s.Span | None, str, s.Operator]
"""What to write, where it stands for what is there and with which text, and the definition that it gives."""


def miscounted(
    base: Definitions, written: s.Operator, made: s.Operator, failure: str, place: s.Span, example: str | None = None
) -> Diagnostic | None:
    """The message about a read or a left side with a wrong number of indices; None of other failures.

    Args:
        base: the definitions that this one uses.
        written: the operator as its author wrote it.
        made: the same with predicates and constants written out.
        failure: how its uses fail.
        place: where the read or the equation begins.
        example: a use that fails; None where each does.
    """
    told = MISCOUNTED.search(failure)
    if told is None:
        return None
    too_many = int(told[1]) - int(told[2])
    for equation in written.equations:
        for read in nodes(equation.body):
            if isinstance(read, s.Subscript) and read.span[:3] == place[:3] and isinstance(read.base, s.Name):
                return _Miscounted(base, written, made, equation, read, read.base.id, too_many, example).message()
        if equation.span[:3] == place[:3]:
            return _left_side(written, equation, example)
    return None


def _left_side(written: s.Operator, equation: s.EquationSyntax, example: str | None) -> Diagnostic | None:
    """An equation with single indices for a result that has as many axes as its operand."""
    output = next((one for one in written.outputs if one.name == equation.tensor), None)
    names = [one.name for one in equation.indices if one.kind == "loop"]
    if output is None:
        return None
    if len(names) != len(equation.indices):
        return _two_lists(equation)
    shape = output.type.shape
    place = next((n for n, extent in enumerate(shape) if isinstance(extent, s.Splat)), None)
    more = len(names) - len(shape) + 1
    shown = ", ".join(map(print_expression, shape))
    fix = advice("write one index for each extent of its shape, `*i` for a list of them")
    if place is not None and more == 1:
        name = names[place]
        given = ", ".join("N" if n == place else print_expression(one) for n, one in enumerate(shape))
        fix = advice(
            f"write `*{name}` for `{name}` here and in the reads, or name the axis: `[{given}]` for `[{shown}]`"
        )
    return Diagnostic(
        Code.INDEX_COUNT,
        "error",
        f"`{equation.tensor}` has the axes `{shown}`, any number, but is written with `{', '.join(names)}`",
        equation.place("name"),
        secondary=(output.span, "its shape is given here"),
        note=_NOTE if example is None else f"for example at {written.name}{example}",
        fix=fix,
    )


def _two_lists(equation: s.EquationSyntax) -> Diagnostic | None:
    """An equation with two lists of indices."""
    lists = [one.name for one in equation.indices if one.kind == "loops"]
    if len(lists) < 2:
        return None
    first, second = lists[:2]
    message = f"nothing says where `*{first}` ends and `*{second}` begins: a left side has one list of indices"
    parts = f"`*{first}[:rank(S)]` for `*{first}` and `*{first}[rank(S):]` for `*{second}` in the reads"
    fix = advice(f"write `{equation.tensor}[*{first}] = ...`, with {parts}")
    return Diagnostic(Code.INDEX_COUNT, "error", message, equation.place("name"), fix=fix)


@dataclass(frozen=True)
class _Miscounted:
    base: Definitions
    written: s.Operator
    made: s.Operator
    equation: s.EquationSyntax
    read: s.Subscript
    tensor: str
    too_many: int
    example: str | None

    def message(self) -> Diagnostic:
        number = abs(self.too_many)
        count = "one index" if number == 1 else f"{number} indices"
        read, what = print_expression(self.read), "too many" if self.too_many > 0 else "too few"
        output, loops = self._output, self._loops
        stands = ""
        if output is not None and loops is not None:
            single = [f"`{one.name}`" for one in self.equation.indices if one.kind != "loops"]
            but = f" but for {' and '.join(single)}" if single else ""
            shape = ", ".join(map(print_expression, output.type.shape))
            stands = f": `*{loops}` stands for all axes of `{output.name}`, `{shape}`,{but}".rstrip(",")
        message = f"`{self.tensor}` has {count} {what} in `{read}`{stands}"
        if self.example is not None and self._operand is not None and self._operand.type is not None:
            axes = ", ".join(map(print_expression, self._operand.type.shape))
            message = f"`{self.tensor}` has the axes `{axes}`, but is read as `{read}`{stands}"
        return Diagnostic(
            Code.INDEX_COUNT,
            "error",
            message,
            self.read.span,
            secondary=None if self._operand is None else (self._operand.span, "its shape is given here"),
            note=_NOTE if self.example is None else f"for example at {self.written.name}{self.example}",
            fix=self._fix(),
        )

    @property
    def _output(self) -> s.Output | None:
        return next((one for one in self.written.outputs if one.name == self.equation.tensor), None)

    @property
    def _operand(self) -> s.Input | None:
        return next((one for one in self.written.inputs if one.name == self.tensor), None)

    @property
    def _loops(self) -> str | None:
        """The index of the left side that the read uses as a list."""
        lists = {one.name for one in self.equation.indices if one.kind == "loops"}
        return next((node.id for node in nodes(self.read.items) if isinstance(node, s.Name) and node.id in lists), None)

    def _fix(self) -> Fix:
        ways = [way for way in {way[0]: way for way in self._ways()}.values() if self._helps(way[3])]
        if not ways:
            return advice("write one index for each extent of its shape")
        shown, place, text, _ = ways[0]
        if len(ways) == 1 and place is not None:
            return replacement(f"write {shown}", place, text)
        return advice(f"write {', or '.join(way[0] for way in ways[:_MOST_SHOWN])}")

    def _helps(self, operator: s.Operator) -> bool:
        trial = tried(self.base, operator, 1)
        return trial.failure is None and bool(trial.probes) and smallest_violation(self.base, operator) is None

    def _ways(self) -> Iterator[_Way]:
        yield from self._read_by_shape()
        if self.too_many > 0:
            yield from self._output_without()
            yield from self._left_with()
            yield from self._read_without()
        elif self.too_many == -1:
            body = {node.id for node in nodes(self.equation.body) if isinstance(node, s.Name)}
            idle = [one for one in self._reductions if one.name not in body]
            if idle:
                yield from self._read_with(idle)
                return
            yield from self._output_with()
            yield from self._left_without()
            yield from self._read_with([*self.equation.indices, *self._reductions])

    def _read_by_shape(self) -> Iterator[_Way]:
        """The read with the index of the left side that stands for each of its extents, where none is a list."""
        output, operand = self._output, self._operand
        if output is None or operand is None or operand.type is None:
            return
        pairs = zip(self.equation.indices[::-1], output.type.shape[::-1], strict=False)
        named = {extent.id: one.name for one, extent in pairs if isinstance(extent, s.Name) and one.kind == "loop"}
        names = [named.get(extent.id) if isinstance(extent, s.Name) else None for extent in operand.type.shape]
        items = [s.Name(self.read.span, name) for name in names if name is not None]
        if items and len(items) == len(names) and not self._reductions:
            yield self._of_read(items)

    # --- fewer indices in the read ---

    def _output_without(self) -> Iterator[_Way]:
        """The shape of the result without as many of its extents; those of indices that the equation adds up first."""
        output = self._output
        if output is None:
            return
        summed = {print_expression(one.bound) for one in self._reductions}
        shape = output.type.shape
        places = [n for n, extent in enumerate(shape) if not isinstance(extent, s.Splat)]
        named = [n for n in places if print_expression(shape[n]) in summed]
        for left_out in combinations((named if len(named) >= self.too_many else places)[::-1], self.too_many):
            yield self._of_shape(output, [extent for n, extent in enumerate(shape) if n not in left_out])

    def _left_with(self) -> Iterator[_Way]:
        """Indices of their own on the left side for axes behind or before those of the list."""
        output, indices = self._output, self.equation.indices
        loops = next((n for n, one in enumerate(indices) if one.kind == "loops"), None)
        if output is None or loops is None:
            return
        lists = [n for n, extent in enumerate(output.type.shape) if isinstance(extent, s.Splat)]
        if len(lists) != 1:
            return
        used = {one.name for one in nodes(self.written) if isinstance(one, s.Binder)}
        used |= {one.id for one in nodes(self.written) if isinstance(one, s.Name)}
        names = [one for one in _NAMES if one not in used][: self.too_many]
        at = indices[loops].span
        made = [s.Binder(at, name, "loop", s.Name(at, "_")) for name in names]
        behind = len(output.type.shape) - lists[0] - 1 - (len(indices) - loops - 1)
        if len(made) == self.too_many == behind:
            yield from self._left_and_reads((*indices[: loops + 1], *made, *indices[loops + 1 :]), loops, names)
        elif len(made) == self.too_many == lists[0] - loops:
            yield from self._left_and_reads((*indices[:loops], *made, *indices[loops:]), loops, names)

    def _left_and_reads(self, indices: Sequence[s.Binder], loops: int, names: Sequence[str]) -> Iterator[_Way]:
        """Another left side; where others are read with the whole list, with the new indices there as well."""
        yield self._of_left(indices)
        whole = self.equation.indices[loops].name
        inner: tuple[s.Expression, ...] = tuple(
            s.Splat(one.span, s.Name(one.span, one.name)) if one.kind == "loops" else s.Name(one.span, one.name)
            for one in indices
        )
        plain = tuple(s.Name(self.read.span, name) for name in names)
        reads = {
            node: replace(node, items=inner if self._is_spread(node) else plain)
            for node in nodes(self.equation.body)
            if isinstance(node, s.Subscript) and [print_expression(one) for one in node.items] == [f"*{whole}"]
        }
        if reads and self._spread_tensors:
            shown, _, _, made = self._of_left(indices)
            others = " and ".join(
                f"`{print_expression(new)}` for `{print_expression(old)}`" for old, new in reads.items()
            )

            def change(node: s.Syntax) -> s.Syntax | None:
                return reads.get(node) if isinstance(node, s.Subscript) else None

            yield f"{shown} with {others}", None, "", rebuilt(made, change)

    def _is_spread(self, read: s.Subscript) -> bool:
        return isinstance(read.base, s.Name) and read.base.id in self._spread_tensors

    @property
    def _spread_tensors(self) -> set[str]:
        """Operands and local tensors that have a list of axes."""
        operands = {i.name for i in self.written.inputs if i.type and any(isinstance(e, s.Splat) for e in i.type.shape)}
        locals_ = {e.tensor for e in self.written.equations if any(one.kind == "loops" for one in e.indices)}
        return operands | locals_

    def _read_without(self) -> Iterator[_Way]:
        """The read without one of its indices, of those that nothing adds up."""
        summed = {one.name for one in self._reductions}
        for place, item in enumerate(self.read.items if self.too_many == 1 else ()):
            if isinstance(item, s.Splat | s.Broadcast | s.Slice):
                continue
            if summed.isdisjoint(node.id for node in nodes(item) if isinstance(node, s.Name)):
                yield self._of_read(self.read.items[:place] + self.read.items[place + 1 :])

    # --- one index more ---

    def _output_with(self) -> Iterator[_Way]:
        """The result with the shape of the operand, or with an extent more for an index of the left side."""
        output, operand = self._output, self._operand
        if output is None:
            return
        if operand is not None and operand.type is not None:
            yield self._of_shape(output, operand.type.shape)
        for binder in self.equation.indices:
            extent = self._extent_of(binder.name) if binder.kind == "loop" else None
            if extent is not None and extent not in output.type.shape:
                yield self._of_shape(output, (*output.type.shape, extent))

    def _extent_of(self, index: str) -> s.Expression | None:
        """The extent of an axis that the equation reads at an index alone."""
        shapes = {one.name: one.type.shape for one in self.written.inputs if one.type is not None}
        for node in nodes(self.equation.body):
            if isinstance(node, s.Subscript) and isinstance(node.base, s.Name) and node.base.id in shapes:
                shape = shapes[node.base.id]
                for item, extent in zip(node.items, shape, strict=False):
                    if len(shape) == len(node.items) and item == s.Name(s.NOWHERE, index):
                        return extent
        return None

    def _left_without(self) -> Iterator[_Way]:
        """The left side without an index that the right side does not use."""
        used = {node.id for node in nodes(self.equation.body) if isinstance(node, s.Name)}
        for place, binder in enumerate(self.equation.indices):
            if binder.kind != "loops" and binder.name not in used:
                yield self._of_left(self.equation.indices[:place] + self.equation.indices[place + 1 :])

    def _read_with(self, binders: Sequence[s.Binder]) -> Iterator[_Way]:
        """The read with an index that is there and that it does not use."""
        used = {node.id for node in nodes(self.read.items) if isinstance(node, s.Name)}
        for binder in binders:
            if binder.name not in used and binder.kind == "loop":
                item = s.Name(self.read.span, binder.name)
                for place in range(len(self.read.items), -1, -1):
                    yield self._of_read((*self.read.items[:place], item, *self.read.items[place:]))

    # --- what changes give ---

    @property
    def _reductions(self) -> list[s.Binder]:
        """The indices of reductions around the read."""
        return [
            binder
            for node in nodes(self.equation.body)
            if isinstance(node, s.Reduction) and any(inner is self.read for inner in nodes(node.body))
            for binder in node.binders
        ]

    def _of_shape(self, output: s.Output, shape: Sequence[s.Expression]) -> _Way:
        def change(node: s.Syntax) -> s.Syntax | None:
            if isinstance(node, s.Output) and node.name == output.name:
                return replace(node, type=replace(node.type, shape=tuple(shape)))
            return None

        shown = f"{output.type.dtype}[{', '.join(map(print_expression, shape))}]"
        return f"`-> {output.name}: {shown}`", output.type.span, shown, rebuilt(self.made, change)

    def _of_left(self, indices: Sequence[s.Binder]) -> _Way:
        def change(node: s.Syntax) -> s.Syntax | None:
            if isinstance(node, s.EquationSyntax) and node.span == self.equation.span:
                return replace(node, indices=tuple(indices))
            return None

        inner = ", ".join("*" * (one.kind == "loops") + one.name for one in indices)
        return f"`{self.equation.tensor}[{inner}] = ...`", None, "", rebuilt(self.made, change)

    def _of_read(self, items: Sequence[s.Expression]) -> _Way:
        def change(node: s.Syntax) -> s.Syntax | None:
            if isinstance(node, s.Subscript) and (node.base, node.items) == (self.read.base, self.read.items):
                return replace(node, items=tuple(items))
            return None

        same = [node for node in nodes(self.written) if isinstance(node, s.Subscript) and node == self.read]
        shown = print_expression(replace(self.read, items=tuple(items), default=None))
        place = self.read.span if len(same) == 1 and self.read.default is None else None
        return f"`{shown}`", place, shown, rebuilt(self.made, change)

"""The ways to mend a read that leaves its tensor: what each of them writes, and where."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from smartmem_rules.analysis.axes import extent_meant
from smartmem_rules.analysis.linear_forms import Linear, linear
from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice, replacement
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.rebuilding import rebuilt
from smartmem_rules.records import dataclass

ELEMENT = re.compile(r"element (-?\d+)(?: of axis (\d+))? of \w+ is read, whose extent is (\d+)")
"""What messages say of a read that leaves its tensor."""
Mend = Callable[[s.Operator], s.Operator]
"""Makes a definition another one."""


@dataclass(frozen=True, kw_only=True)
class LeavingRead:
    """An index that leaves its axis, and what is known of the names in it."""

    operator: s.Operator
    equation: s.EquationSyntax
    read: s.Subscript
    item: s.Expression
    axis: int
    element: int
    extent: int
    form: Linear
    axis_extent: Linear
    below: Mapping[str, Linear]
    """The extent below which each index runs."""
    reduced: Mapping[str, s.Binder]
    """The indices of reductions around the read."""
    condition: s.Expression | None
    """The innermost condition around the read that speaks of its index."""

    @staticmethod
    def of(
        operator: s.Operator, read: s.Subscript, reason: str, place: int, extent: s.Expression
    ) -> LeavingRead | None:
        """What is known of one index of a read; None where it is no sum of multiples of names."""
        told = ELEMENT.search(reason)
        equation = next((one for one in operator.equations if any(node is read for node in nodes(one))), None)
        if told is None or equation is None or equation.scan:
            return None
        lets = {one.name: one.value for one in operator.lets}
        reduced = {
            binder.name: binder
            for node in nodes(equation.body)
            if isinstance(node, s.Reduction) and any(inner is read for inner in nodes(node.body))
            for binder in node.binders
            if binder.kind == "loop"
        }
        bounds = {name: binder.bound for name, binder in reduced.items()}
        output = next((one for one in operator.outputs if one.name == equation.tensor), None)
        for number, binder in enumerate(equation.indices):
            if binder.kind == "loops":
                continue
            if not isinstance(binder.bound, s.Name) or binder.bound.id != "_":
                bounds[binder.name] = binder.bound
            elif output is not None and len(output.type.shape) == len(equation.indices):
                bounds[binder.name] = output.type.shape[number]
        form = linear(read.items[place], bounds, lets)
        axis_extent = linear(extent, (), lets)
        below = {name: one for name, bound in bounds.items() if (one := linear(bound, bounds, lets)) is not None}
        if form is None or axis_extent is None or not {*bounds} & {*form.terms} <= below.keys():
            return None
        return LeavingRead(
            operator=operator,
            equation=equation,
            read=read,
            item=read.items[place],
            axis=place,
            element=int(told[1]),
            extent=int(told[3]),
            form=form,
            axis_extent=axis_extent,
            below=below,
            reduced=reduced,
            condition=_condition(equation, read, form),
        )

    @property
    def loops(self) -> dict[str, int]:
        """The indices in the index, with their factors."""
        return {name: factor for name, factor in self.form.terms.items() if name in self.below}

    def fix(self, helps: Callable[[Mend], bool]) -> Fix | None:
        """The first way to mend the read that helps, with others that do."""
        ways = self._below_zero(helps) if self.element < 0 else self._beyond(helps)
        return next(ways, None)

    def _beyond(self, helps: Callable[[Mend], bool]) -> Iterator[Fix]:
        over = self.element - self.extent + 1
        loops = self.loops
        outer = [name for name in loops if name not in self.reduced]
        if self.condition is not None:
            yield from self._asked(helps, f"{print_expression(self.item)} < {self.axis_extent.shown()}")
        elif not loops and self.form.terms and not self._excess.terms:
            yield from self._shifted(helps, -over, f", the last of which is `{self.axis_extent.shifted(-1).shown()}`")
        elif any(factor < 0 for factor in loops.values()):
            yield from self._shifted(helps, -over, "")
        elif len(loops) == 1 and not outer:
            yield from self._shorter_loop(helps, next(iter(loops)))
        elif len(outer) == 1 and loops[outer[0]] > 1:
            yield from self._shifted(helps, -over, "")
        if self._excess.terms.keys() & self.axis_extent.terms.keys():
            yield from self._required(helps)
        yield from self._other_index(helps, outer)
        yield from self._shorter_result(helps, outer)
        yield from self._required(helps)
        if extent_meant(self.operator, self.read) is None:
            highest = self._end(False).shown()
            said = f"may be `{highest}`, and {self._place} has {self.axis_extent.shown()} elements"
            asked = f", or ask `if {print_expression(self.item)} < {self.axis_extent.shown()} then ...`"
            yield from self._otherwise(helps, said, asked)

    def _below_zero(self, helps: Callable[[Mend], bool]) -> Iterator[Fix]:
        loops = self.loops
        if self.condition is not None:
            yield from self._asked(helps, f"{print_expression(self.item)} >= 0")
        yield from self._required(helps)
        if any(factor < 0 for factor in loops.values()):
            yield from self._shifted(helps, -self.element, "")
        shown, said = print_expression(self.item), "may be below 0"
        asked = f", or ask `if {shown} >= 0 then ...`"
        if len(loops) == 1 and set(loops.values()) == {1}:
            (name,) = loops
            least = Linear().plus(self.form.without(name), -1).shown()
            said, asked = f"is below 0 for `{name} < {least}`", f", or ask `if {name} >= {least} then ...`"
        yield from self._otherwise(helps, said, asked)

    # --- the ways ---

    def _end(self, lowest: bool) -> Linear:
        """The index where it is lowest or highest."""
        form = self.form
        for name, factor in self.loops.items():
            at = Linear() if (factor > 0) is lowest else self.below[name].shifted(-1)
            form = form.without(name).plus(at, factor)
        return form

    def _shifted(self, helps: Callable[[Mend], bool], by: int, more: str) -> Iterator[Fix]:
        """Another constant in the index."""
        backwards = any(factor < 0 for factor in self.loops.values())
        new = self.form.shifted(by).shown(self.loops if backwards else ())
        if helps(_replacing(self.item.span, new)):
            said = f"{self._place} has {self.axis_extent.shown()} elements{more}: write `{new}`"
            yield replacement(said, self.item.span, new)

    def _asked(self, helps: Callable[[Mend], bool], new: str) -> Iterator[Fix]:
        """Another condition around the read."""
        assert self.condition is not None
        if helps(_replacing(self.condition.span, new)):
            shown = print_expression(self.condition)
            said = f"`{shown}` lets through what {self._place} does not have: ask `{new}`"
            yield replacement(said, self.condition.span, new)

    @property
    def _place(self) -> str:
        assert isinstance(self.read.base, s.Name)
        return f"axis {self.axis} of `{self.read.base.id}`" if len(self.read.items) > 1 else f"`{self.read.base.id}`"

    def _shorter_loop(self, helps: Callable[[Mend], bool], name: str) -> Iterator[Fix]:
        """A smaller range of the reduction that the index runs over."""
        place = self.reduced[name].bound.span
        bound = self.below[name].plus(self._excess, -1).shown()
        if self.loops[name] != 1 or not helps(_replacing(place, bound)):
            return
        said = f"{self._place} has {self.axis_extent.shown()} elements: write `{name} < {bound}`"
        if not self.form.constant:
            yield replacement(said, place, bound)
        else:
            yield advice(f"{said}, or another index than `{print_expression(self.item)}`")

    def _other_index(self, helps: Callable[[Mend], bool], outer: list[str]) -> Iterator[Fix]:
        """Where the result is a multiple of the operand: each element several times, or all of them again."""
        if not isinstance(self.item, s.Name) or outer != [self.item.id]:
            return
        name, extent = self.item.id, self.axis_extent
        times = [n for n in range(2, 9) if self.below[name] == Linear().plus(extent, n)]
        if times and helps(_replacing(self.item.span, f"{name} // {times[0]}")):
            below = self.below[name].shown()
            yield advice(
                f"`{name}` runs below {below}, and {self._place} has {extent.shown()} elements: write "
                f"`{name} // {times[0]}` for each of them {times[0]} times, `{name} % {extent.shown()}` for all, "
                "again and again"
            )
            return
        bound = _bound(self.operator, self.equation, name)
        other = _other_factor(bound, extent.shown())
        new = f"{name} // {other}"
        if other is not None and helps(_replacing(self.item.span, new)):
            said = f"`{name}` runs below {print_expression(bound)}, and {self._place} has {extent.shown()} elements"
            quotients = [one for one in self.read.items if isinstance(one, s.Binary) and one.operator == "//"]
            beside = [print_expression(one) for one in quotients if print_expression(one.right) == other]
            if beside:
                yield replacement(f"{said}: write `{new}`, as `{beside[0]}` beside it", self.item.span, new)
            else:
                yield advice(f"{said}: write `{new}`, or `{name} % {extent.shown()}`")
            return
        behind = self._behind()
        if behind is not None and helps(_replacing(self.item.span, behind)):
            said = f"`{name}` goes on where the other branch ends, and {self._place} begins at 0"
            yield replacement(f"{said}: write `{behind}`", self.item.span, behind)

    def _behind(self) -> str | None:
        """The index counted from where `i < N`, of which this read is the other case, ends."""
        for node in nodes(self.equation.body):
            if not isinstance(node, s.Conditional) or all(inner is not self.read for inner in nodes(node.otherwise)):
                continue
            match node.condition:
                case s.Binary(operator="<", left=left, right=s.Name(id=bound)) if left == self.item:
                    return f"{print_expression(self.item)} - {bound}"
                case _:
                    pass
        return None

    @property
    def _excess(self) -> Linear:
        """By how much the highest index is beyond the last element."""
        return self._end(False).plus(self.axis_extent.shifted(-1), -1)

    def _shorter_result(self, helps: Callable[[Mend], bool], outer: list[str]) -> Iterator[Fix]:
        """The extent of the result for which the read stays inside."""
        output = next((one for one in self.operator.outputs if one.name == self.equation.tensor), None)
        known = extent_meant(self.operator, self.read) is not None
        if len(outer) != 1 or self.loops[outer[0]] != 1 or output is None or known:
            return
        (name,) = outer
        axis = [binder.name for binder in self.equation.indices].index(name)
        extent = self.below[name].plus(self._excess, -1)
        shape = [print_expression(one) for one in output.type.shape]
        shape[axis] = extent.shown()
        result = f"-> {output.name}: {output.type.dtype}[{', '.join(shape)}]"
        item, most = print_expression(self.item), self.axis_extent.shown()
        said = (
            f"`{item}` stays below {most} for `{name} < {extent.shown()}` only: give the result that extent, `{result}`"
        )
        if item == name:
            runs = self.below[name].shown()
            said = f"`{item}` runs below {runs}, and {self._place} has {most}: give the result as many, `{result}`"
        otherwise = f"{'leave `view` out and ' * self.equation.view}write `{self._with_else}`"
        ways = f", or {otherwise}"
        if item == name and not isinstance(output.type.shape[axis], s.Name):  # the author computed this extent
            said = f"`{item}` runs below {runs}, and {self._place} has {most}: {otherwise}"
            ways = f", or give the result as many, `{result}`"
        shorter = _replacing(output.type.shape[axis].span, extent.shown())
        needed = Linear(1).plus(extent, -1).at_most_zero()
        if helps(shorter):
            yield advice(f"{said}{ways}")
        elif helps(lambda one: _requiring(needed)(shorter(one))):
            yield advice(f"{said}, and `require {needed}`{ways}")

    def _required(self, helps: Callable[[Mend], bool]) -> Iterator[Fix]:
        """The requirement under which the read stays inside, where it speaks of the axis."""
        low = Linear().plus(self._end(True), -1)
        high = self._excess
        speaks = bool(high.terms.keys() & self.axis_extent.terms.keys()) or (not self.loops and bool(high.terms))
        both = [one for one in (low, high) if one.terms]
        ways = [[high] if speaks else [], [low] if low.terms else [], both if speaks else []]
        if not self.loops:
            ways = [both]
        elif self.element < 0:
            ways = [ways[1], ways[0], ways[2]]
        for way in ways:
            text = " and ".join(one.at_most_zero() for one in way)
            if way and helps(_requiring(text)):
                yield advice(f"{self._place} has {self.axis_extent.shown()} elements: write `require {text}`")
                return

    def _otherwise(self, helps: Callable[[Mend], bool], said: str, asked: str) -> Iterator[Fix]:
        """What stands for elements that are not there."""
        other, shown = self._with_else, print_expression(self.item)
        if self.equation.view:
            yield advice(f"`{shown}` {said}: leave `view` out and write `{other}`, or another value{asked}")
        elif helps(_replacing(self.read.span, other)):
            yield replacement(f"`{shown}` {said}: write `{other}`, or another value{asked}", self.read.span, other)

    @property
    def _with_else(self) -> str:
        return f"({print_expression(self.read)} else 0)"


def strided(
    operator: s.Operator, read: s.Subscript, place: int, extent: s.Expression, helps: Callable[[Mend], bool]
) -> Fix | None:
    """The extent of the result where windows begin every so many elements: `x[i * stride + k]`."""
    equation = next((one for one in operator.equations if any(node is read for node in nodes(one))), None)
    output = next((one for one in operator.outputs if equation is not None and one.name == equation.tensor), None)
    if equation is None or output is None or len(output.type.shape) != len(equation.indices):
        return None
    names = {binder.name: n for n, binder in enumerate(equation.indices) if binder.kind != "loops"}
    item = read.items[place]
    digits = _digits(item, {name: output.type.shape[n] for name, n in names.items()})
    if digits is not None and helps(_replacing(item.span, digits[0])):
        new, last, width = digits
        return replacement(f"`{last}` runs below {width}: write `{new}`", item.span, new)
    first, rest = (item.left, item.right) if isinstance(item, s.Binary) and item.operator == "+" else (item, None)
    if not isinstance(first, s.Binary) or first.operator != "*":
        return None
    sides = (first.left, first.right), (first.right, first.left)
    found = next(((one.id, step) for one, step in sides if isinstance(one, s.Name) and one.id in names), None)
    bounds = {
        binder.name: binder.bound
        for node in nodes(equation.body)
        if isinstance(node, s.Reduction)
        for binder in node.binders
    }
    furthest = Linear(1)
    if isinstance(rest, s.Name) and rest.id in bounds:
        furthest = linear(bounds[rest.id]) or furthest
    elif rest is not None:
        return None
    whole = linear(extent)
    if found is None or whole is None:
        return None
    name, step = found
    new = f"({whole.plus(furthest, -1).shown()}) // {print_expression(step)} + 1"
    shape = [print_expression(one) for one in output.type.shape]
    shape[names[name]] = new
    if not helps(_replacing(output.type.shape[names[name]].span, new)):
        return None
    result = f"-> {output.name}: {output.type.dtype}[{', '.join(shape)}]"
    return advice(
        f"`{print_expression(item)}` stays below {whole.shown()} for `{name} < {new}` only: give the result that "
        f"extent, `{result}`, or write `({print_expression(read)} else 0)`"
    )


def _digits(item: s.Expression, bounds: Mapping[str, s.Expression]) -> tuple[str, str, str] | None:
    """`b * (N // n) + i` for `b * n + i`: a digit counts by how many values the one behind it has."""
    match item:
        case s.Binary(operator="+", left=s.Binary(operator="*", left=s.Name(id=first)), right=s.Name(id=last)) if (
            first in bounds and last in bounds
        ):
            width = print_expression(bounds[last])
            shown = width if isinstance(bounds[last], s.Name) else f"({width})"
            return f"{first} * {shown} + {last}", last, width
        case _:
            return None


def _bound(operator: s.Operator, equation: s.EquationSyntax, name: str) -> s.Expression:
    """The extent of the result that an index of it runs over."""
    place = [binder.name for binder in equation.indices].index(name)
    output = next((one for one in operator.outputs if one.name == equation.tensor), None)
    return equation.indices[place].bound if output is None else output.type.shape[place]


def _other_factor(bound: s.Expression, extent: str) -> str | None:
    """What an extent is multiplied by to give a bound."""
    match bound:
        case s.Binary(operator="*", left=left, right=right):
            pairs = (left, right), (right, left)
            other = next((times for one, times in pairs if print_expression(one) == extent), None)
            return print_expression(other) if isinstance(other, s.Name) else None
        case _:
            return None


def _condition(equation: s.EquationSyntax, read: s.Subscript, form: Linear) -> s.Expression | None:
    found = None
    for node in nodes(equation.body):
        if not isinstance(node, s.Conditional) or all(inner is not read for inner in nodes(node.then)):
            continue
        if {one.id for one in nodes(node.condition) if isinstance(one, s.Name)} & form.terms.keys():
            found = node.condition
    return found


def _expression(text: str) -> s.Expression:
    (item,) = parse_text(f"function given() = {text}").items
    assert isinstance(item, s.Function)
    return item.body


def _replacing(span: s.Span, text: str) -> Mend:
    """A definition with another expression at a place."""
    new = _expression(text)

    def change(node: s.Syntax) -> s.Syntax | None:
        return replace(new, span=span) if node.span == span and isinstance(node, s.Expression) else None

    return lambda operator: rebuilt(operator, change)


def _requiring(text: str) -> Mend:
    """A definition with one more requirement."""
    return lambda operator: replace(operator, requires=(*operator.requires, _expression(text)))

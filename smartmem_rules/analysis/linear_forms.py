"""Indices and extents as sums of multiples of names, as an author reads them: `2 * i + K - 1`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import field

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.records import dataclass


@dataclass(frozen=True)
class Linear:
    """A constant and multiples of what has a name, which may be the text of an expression: `N // 2`."""

    constant: int = 0
    terms: Mapping[str, int] = field(default_factory=dict, hash=False)

    def plus(self, other: Linear, times: int = 1) -> Linear:
        """The sum with a multiple of another form."""
        terms = dict(self.terms)
        for name, factor in other.terms.items():
            terms[name] = terms.get(name, 0) + times * factor
        return Linear(self.constant + times * other.constant, {name: f for name, f in terms.items() if f})

    def shifted(self, by: int) -> Linear:
        """The form with another constant."""
        return Linear(self.constant + by, self.terms)

    def without(self, name: str) -> Linear:
        """The form without the multiple of one name."""
        return Linear(self.constant, {one: factor for one, factor in self.terms.items() if one != name})

    def shown(self, last: Collection[str] = ()) -> str:
        """The form as an expression: what is added, what is taken away, the constant; names in `last` stand last."""
        ordered = sorted(self.terms.items(), key=lambda term: term[0] in last)
        added = [(_multiple(name, factor), "+") for name, factor in ordered if factor > 0]
        taken = [(_multiple(name, -factor), "-") for name, factor in ordered if factor < 0 and name not in last]
        constant = [(str(abs(self.constant)), "+" if self.constant > 0 else "-")] if self.constant else []
        loops = [(_multiple(name, -factor), "-") for name, factor in ordered if factor < 0 and name in last]
        parts = [*added, *taken, *constant, *loops] or [("0", "+")]
        (first, sign), *rest = parts
        return ("-" if sign == "-" else "") + " ".join([first, *(f"{sign} {text}" for text, sign in rest)])

    def at_most_zero(self) -> str:
        """That the form is at most 0, with what is taken away on the right side: `M + K - 1 <= N`."""
        left = Linear(0, {name: factor for name, factor in self.terms.items() if factor > 0})
        right = Linear(0, {name: -factor for name, factor in self.terms.items() if factor < 0})
        if not left.terms:
            return f"{right.shown()} >= {self.constant}"
        if self.constant == 1:
            return f"{left.shown()} < {right.shown()}"
        return f"{left.shifted(self.constant).shown()} <= {right.shown()}"


def linear(
    expr: s.Expression, loops: Collection[str] = (), lets: Mapping[str, s.Expression] | None = None
) -> Linear | None:
    """The linear form of an expression; None where indices in it are not simply added up.

    Args:
        loops: the names of indices.
        lets: what names stand for; those whose value has no form of its own stay names.
    """
    lets = lets or {}
    match expr:
        case s.Number(value=int(value)):
            return Linear(value)
        case s.Name(id=name):
            meant = linear(lets[name], loops, lets) if name in lets else None
            if meant is not None and all(one.isidentifier() for one in meant.terms):
                return meant
            return Linear(0, {name: 1})
        case s.Unary(operator="-", operand=operand):
            inner = linear(operand, loops, lets)
            return None if inner is None else Linear().plus(inner, -1)
        case s.Binary(operator="+" | "-" as sign, left=left, right=right):
            one, other = linear(left, loops, lets), linear(right, loops, lets)
            if one is None or other is None:
                return None
            return one.plus(other, 1 if sign == "+" else -1)
        case s.Binary(operator="*", left=left, right=right):
            one, other = linear(left, loops, lets), linear(right, loops, lets)
            if one is None or other is None:
                return None
            if not one.terms or not other.terms:
                factor, form = (one.constant, other) if not one.terms else (other.constant, one)
                return Linear().plus(form, factor)
        case _:
            pass
    names = {node.id for node in nodes(expr) if isinstance(node, s.Name)}
    if not names.isdisjoint(loops) or any(isinstance(node, s.Subscript | s.Splat) for node in nodes(expr)):
        return None
    return Linear(0, {print_expression(expr): 1})


_ONE_CALL = re.compile(r"\w+(\([^()]*\))?")


def _multiple(name: str, factor: int) -> str:
    shown = name if _ONE_CALL.fullmatch(name) else f"({name})"
    return shown if factor == 1 else f"{factor} * {shown}"

"""The sums of neighbouring windows, each in a register, one step of the window's last axis after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from smartmem_rules.emit.c.expressions import Expressions
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import (
    Apply,
    Condition,
    Const,
    Expr,
    Logic,
    Reduce,
    Select,
    logic,
    select,
    substitute_variables,
)
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index


def window_sums(
    expressions: Expressions, window: Reduce, places: Sequence[Mapping[Var, Index]], lane: Var, most_steps: int
) -> list[str]:
    """Write the sums of a window's products for each place.

    Args:
        window: with the lane's variable in place of the axis of the vectors.
        places: what each of the places has for the variables of the axes that they lie along.
        most_steps: loops of at most so many steps are unrolled.

    Returns:
        The names of the vectors.
    """
    *outer, last = window.variables
    sums = [expressions.temporary() for _ in places]
    for name in sums:
        expressions.writer.line(f"float{lane.extent} {name} = 0.0f;")
    bodies = [
        (name, substitute_variables(window.body, {**place, last: Index(step)}))
        for step in range(last.extent)
        for name, place in zip(sums, places, strict=True)
    ]
    _steps(expressions, tuple(outer), bodies, lane, most_steps)
    return sums


def _steps(
    expressions: Expressions, outer: tuple[Var, ...], bodies: list[tuple[str, Expr]], lane: Var, most_steps: int
) -> None:
    if outer:
        if not is_symbolic(outer[0].extent) and outer[0].extent <= most_steps:
            expressions.writer.line("#pragma unroll")
        with expressions.loop(outer[0]):
            _steps(expressions, outer[1:], bodies, lane, most_steps)
        return
    # places that lie outside add zeros, whichever of the group asks for them
    shared = set.intersection(*(_conditions(body) for _, body in bodies))
    test = logic("and", tuple(sorted(shared, key=repr)))
    with expressions.scope(f"if ({expressions.condition(test)})" if not isinstance(test, bool) else ""):
        for name, body in bodies:
            _add(expressions, name, _without(body, shared), lane)


def _add(expressions: Expressions, name: str, body: Expr, lane: Var) -> None:
    assert isinstance(body, Apply)
    factors = [expressions.spread(expressions.value(a, lane), "float32", lane.extent) for a in body.arguments]
    expressions.writer.line(f"{name} += {' * '.join(factors)};")


def _padded(factor: Expr) -> bool:
    """Whether a factor of a product is zero where its condition does not hold."""
    return isinstance(factor, Select) and isinstance(factor.otherwise, Const) and factor.otherwise.value == 0


def _conditions(body: Expr) -> set[Condition]:
    """Comparisons without which a product is zero."""
    assert isinstance(body, Apply)
    found: set[Condition] = set()
    for factor in body.arguments:
        if isinstance(factor, Select) and _padded(factor):
            found |= set(_comparisons(factor.condition))
    return found


def _comparisons(condition: Condition) -> tuple[Condition, ...]:
    return condition.operands if isinstance(condition, Logic) and condition.operator == "and" else (condition,)


def _without(body: Expr, known: set[Condition]) -> Expr:
    """The product where the comparisons are known to hold."""
    assert isinstance(body, Apply)
    factors: list[Expr] = []
    for factor in body.arguments:
        if isinstance(factor, Select) and _padded(factor):
            rest = logic("and", tuple(c for c in _comparisons(factor.condition) if c not in known))
            factors.append(select(rest, factor.then, factor.otherwise))
        else:
            factors.append(factor)
    return replace(body, arguments=tuple(factors))

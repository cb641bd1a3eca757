"""Tensors that are compared with what is selected from them: they have one value, whoever reads them.

An element that is compared with the largest of its row is equal to one of them.  That holds only if both sides saw the
element after the same roundings: a reader that computes the element again, in single precision, finds it unequal to
what another kernel has stored as a half.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from smartmem_rules.tensor.expr import Apply, Equation, Expr, Reduce, tensors_read, walk

_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_SELECTIONS = frozenset({"max", "min", "select", "neg", "abs", "and", "or", "not", *_COMPARISONS})
"""Elementwise functions whose results are operands, or truth values."""


def compared_tensors(equations: Mapping[str, Equation]) -> frozenset[str]:
    """The tensors that an equation compares with what is selected from the same tensors, by whatever way."""
    found: set[str] = set()
    for equation in equations.values():
        for left, right in _comparisons(equation.body):
            sides = _sources(left, equations), _sources(right, equations)
            if not sides[0].isdisjoint(sides[1]):
                found |= sides[0] | sides[1]
    return frozenset(found)


def _comparisons(body: Expr) -> Iterator[tuple[Expr, Expr]]:
    for node in walk(body):
        if isinstance(node, Apply) and node.function in _COMPARISONS and node.arguments[0] != node.arguments[1]:
            yield node.arguments[0], node.arguments[1]


def _sources(side: Expr, equations: Mapping[str, Equation]) -> set[str]:
    """What a side reads, and what that was moved or selected from."""
    found: set[str] = set()
    waiting = tensors_read(side)
    while waiting:
        tensor = waiting.pop()
        if tensor in found:
            continue
        found.add(tensor)
        equation = equations.get(tensor)
        if equation is not None and selects(equation.body):
            waiting.extend(tensors_read(equation.body))
    return found


def selects(body: Expr) -> bool:
    """Whether every element is one of the operands' elements, or a constant."""
    return not any(
        (isinstance(node, Apply) and node.function not in _SELECTIONS)
        or (isinstance(node, Reduce) and node.kind not in ("max", "min"))
        for node in walk(body)
    )

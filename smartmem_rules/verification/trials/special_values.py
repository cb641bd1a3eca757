"""Compares the two sides of an instance at signed zeros, infinities, NaN and denormals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from contextlib import suppress

import numpy as np

from smartmem_rules.tensor.binding import FLOATS
from smartmem_rules.verification.instances.case import Case
from smartmem_rules.verification.semantics.bounded import Bounded
from smartmem_rules.verification.semantics.domains import Array, Domain, Undefined, Value
from smartmem_rules.verification.semantics.evaluate import TooLarge
from smartmem_rules.verification.semantics.terms import Application, Term, compute, functions_used, subterms
from smartmem_rules.verification.trials.comparison import Comparison, with_numbers
from smartmem_rules.verification.trials.outcome import Difference, Outcome

ROUNDED_ONCE = frozenset({
    "add", "sub", "mul", "div", "recip", "neg", "abs", "min", "max", "sqrt", "select", "fma", "cast",
    "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not",
})  # fmt: skip
"""Primitives of which every device gives the float nearest to the exact value."""
_CLOSE = 2e-3
_LEAST_NORMAL = 2.0**-126
_CLOSE_ROUNDED = {"bfloat16": 2**-6}
"""How far sides may be apart whose last step is rounded to 8 bits on one of them."""


def at_special(comparison: Comparison, case: Case, tensors: Mapping[str, Value], outcome: Outcome) -> Difference | None:
    """What both sides are at given special values; over the reals where the rule reassociates."""
    assert case.right is not None
    if "reassociation" in comparison.relaxes:
        return _over_the_reals(comparison, case, tensors, outcome)
    domain = Domain()
    try:
        left = compute(case.left, tensors, domain)[0]
        right = compute(case.right, with_numbers(case, tensors, domain), domain)[0]
    except (IndexError, TooLarge):
        return None  # ordinary values show it too
    if case.left.type.dtype not in FLOATS:
        return _special_integers(comparison, case, tensors, left, right, outcome)
    left, right = (np.broadcast_to(np.asarray(v, np.float64), case.left.type.shape) for v in (left, right))
    outcome.special += 1
    # halves are rounded where an operator ends, and the two sides end theirs at different places
    whole = case.left.type.dtype in ("float32", "float64")
    exact = whole and (functions_used(case.left) | functions_used(case.right)) <= ROUNDED_ONCE
    excused = np.isnan(left) & (_infinite_inside(case.left, tensors) if "infinities" in comparison.relaxes else False)
    close = 0.0 if exact else _CLOSE_ROUNDED.get(case.left.type.dtype, _CLOSE)
    scale = np.zeros(left.shape) if whole else _largest_operands(case, tensors, domain)
    return _shown(_wrong_special(comparison.relaxes, left, right, close, scale) & ~excused, tensors, left, right)


def _largest_operands(case: Case, tensors: Mapping[str, Value], domain: Domain) -> Array:
    """Of each element, the largest magnitude among the operands of the last operators: where they cancel each other,
    the rounding of one of them may be all that is left."""
    assert case.right is not None
    shape = case.left.type.shape
    largest = np.zeros(shape)
    given = with_numbers(case, tensors, domain)
    for side in (case.left, case.right):
        for operand in side.operands if isinstance(side, Application) else ():
            if operand is None or operand.type.dtype not in FLOATS:
                continue
            array = np.abs(np.asarray(compute(operand, given, domain)[0], np.float64))
            with suppress(ValueError):
                largest = np.maximum(largest, np.broadcast_to(np.where(np.isfinite(array), array, 0.0), shape))
    return largest


def _special_integers(
    comparison: Comparison, case: Case, tensors: Mapping[str, Value], left: Array, right: Array, outcome: Outcome
) -> Difference | None:
    """What comparisons and conversions give at special values; over the reals roundings may decide them."""
    sides = [side for side in (case.left, case.right) if side is not None]
    for word, test in (("infinities", np.isinf), ("nan", np.isnan)):
        if word in comparison.relaxes and any(_inside(side, tensors, test) for side in sides):
            return None
    outcome.special += 1
    left, right = (np.broadcast_to(v, case.left.type.shape) for v in (left, right))
    return _shown(left != right, tensors, left, right)


def _over_the_reals(
    comparison: Comparison, case: Case, tensors: Mapping[str, Value], outcome: Outcome
) -> Difference | None:
    """With zeros among the operands both sides are equal, and they are defined at the same points."""
    assert case.right is not None
    domain = Bounded(comparison.near)
    try:
        left = compute(case.left, tensors, domain)
        right = compute(case.right, with_numbers(case, tensors, domain), domain)
    except (IndexError, TooLarge, Undefined, ZeroDivisionError):
        return None
    outcome.special += 1
    a, b = (np.broadcast_to(v[0], case.left.type.shape) for v in (left, right))
    wrong = np.broadcast_to(comparison.wrong(left, right, domain, case.left.type.dtype), a.shape)
    if case.left.type.dtype in FLOATS:
        undefined = np.isfinite(a) != np.isfinite(b)
        if not case.constants:
            # both divide by a zero of the run, and only one adds the infinities up: b / 0 + c / 0 and (b + c) / 0
            undefined |= np.isnan(a) != np.isnan(b)
        both = np.isfinite(a) & np.isfinite(b)
        wrong = np.where(both, wrong, undefined & (not {"nan", "infinities"} & comparison.relaxes))
    return _shown(wrong, tensors, a, b, f"{domain.name}, zeros")


def _shown(
    wrong: Array, tensors: Mapping[str, Value], left: Array, right: Array, domain: str = "float32, special values"
) -> Difference | None:
    if not np.any(wrong):
        return None
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    shown = {name: value[0] for name, value in tensors.items()}
    return Difference(
        place=place,
        left=left[place],
        right=right[place],
        domain=domain,
        tensors=shown,
        left_values=left,
        right_values=right,
    )


def _wrong_special(relaxes: Set[str], left: Array, right: Array, close: float, scale: Array) -> Array:
    nan = np.isnan(left) != np.isnan(right)
    infinite = (np.isinf(left) != np.isinf(right)) | (np.isinf(left) & (left != right))
    infinite &= ~np.isnan(left) & ~np.isnan(right)
    zero = (left == 0) & (right == 0) & (np.signbit(left) != np.signbit(right))
    with np.errstate(all="ignore"):
        # a rule that does not say that it reassociates gives the very same floats
        near = np.isclose(left, right, rtol=close, atol=1e-30) if close else left == right
        near |= ~np.isfinite(left) | ~np.isfinite(right) | (np.abs(left - right) <= close * scale) & (scale > 0)
        # below the least normal number one side may round what the other does not, and devices flush to zero
        near |= (np.abs(left) < _LEAST_NORMAL) & (np.abs(right) < _LEAST_NORMAL)
    excluded = np.zeros(left.shape, bool)
    if "nan" in relaxes:
        excluded |= np.isnan(left)
    if "infinities" in relaxes:
        excluded |= np.isinf(left) | np.isinf(right)
    if "signed_zero" in relaxes:
        zero = np.zeros(left.shape, bool)
    return np.asarray((nan | infinite | zero | ~near) & ~excluded, bool)


def _infinite_inside(term: Term, tensors: Mapping[str, Value]) -> bool:
    """Whether an infinity arises on the way: what is NaN may come of it."""
    return _inside(term, tensors, np.isinf)


def _inside(term: Term, tensors: Mapping[str, Value], test: Callable[[Array], Array]) -> bool:
    """Whether a value of a kind arises on the way."""
    return any(
        np.any(test(np.asarray(compute(part, tensors, Domain())[0], np.float64)))
        for part in subterms(term)
        if part.type.dtype in FLOATS
    )

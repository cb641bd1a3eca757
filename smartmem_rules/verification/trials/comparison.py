"""Compares the two sides of an instance: in which arithmetic, and by how much they may differ there."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from smartmem_rules.tensor.binding import FLOATS
from smartmem_rules.verification.instances.case import Case
from smartmem_rules.verification.semantics.bounded import SAFETY, Bounded
from smartmem_rules.verification.semantics.domains import (
    FIELD,
    ORDERED,
    Array,
    Domain,
    Loose,
    PrimeField,
    Rationals,
    ReadsOutside,
    Undefined,
    Value,
)
from smartmem_rules.verification.semantics.terms import Application, compute, functions_used, leaves, subterms
from smartmem_rules.verification.trials.outcome import Difference

_ROUNDING = 2.0**-10
"""How far numbers may be apart by rounding, some operations with halves included; differences may be `SAFETY` times as
large."""


class Comparison:
    """Compares both sides of instances of one rule.

    Args:
        near: numbers near to which the rule's guards hold a constant.
        relaxes: what the rule says that it does not keep.
    """

    def __init__(self, near: tuple[float, ...], relaxes: frozenset[str]) -> None:
        self.near = near
        self.relaxes = relaxes

    def domains(self, case: Case) -> list[Domain]:
        """The arithmetics in which an instance is compared, exact ones where its operations allow."""
        assert case.right is not None
        types = {t.type.dtype for side in (case.left, case.right) for t in subterms(side)}
        if not types & set(FLOATS):
            return [Domain()]
        if case.is_empty:
            return [Loose()] if case.left.type.dtype in FLOATS else [Bounded(self.near)]
        used = functions_used(case.left) | functions_used(case.right)
        infinite = any(not np.isfinite(array).all() for array in case.elements.values() if array.dtype.kind == "f")
        if self.near or infinite or _inexact(case):
            return [Bounded(self.near)]
        if used <= FIELD and types <= set(FLOATS):
            return [PrimeField(), PrimeField(), PrimeField(), Rationals()]
        if used <= ORDERED:
            return [Rationals()]
        return [Bounded(self.near)]

    def compare(self, case: Case, domain: Domain, tensors: Mapping[str, Value]) -> Difference | None:
        """The first element at which both sides differ more than the domain allows."""
        assert case.right is not None
        shape = case.left.type.shape
        try:
            left = compute(case.left, tensors, domain)
        except IndexError as error:
            raise ReadsOutside("the left side reads outside of an operand") from error
        try:
            right = compute(case.right, with_numbers(case, tensors, domain), domain)
        except IndexError as error:
            shown, first = {n: v[0] for n, v in tensors.items()}, np.broadcast_to(left[0], shape)
            nothing = np.full(shape, np.nan)
            return Difference(
                place=(0,) * len(shape),
                left=first.flat[0],
                right=f"undefined ({error})",
                domain=domain.name,
                tensors=shown,
                left_values=first,
                right_values=nothing,
            )
        if isinstance(domain, Bounded) and case.left.type.dtype not in FLOATS and _undecided(left, right):
            raise Undefined("rounding decides every element")
        wrong = self.wrong(left, right, domain, case.left.type.dtype)
        wrong = np.broadcast_to(wrong, shape)
        if "reassociation" in self.relaxes and np.any(wrong):
            wrong = wrong & ~self._tied(case, domain, tensors)
        if not np.any(wrong):
            return None
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        first, second = np.broadcast_to(left[0], shape), np.broadcast_to(right[0], shape)
        shown = {name: value[0] for name, value in tensors.items()}
        return Difference(
            place=place,
            left=first[place],
            right=second[place],
            domain=domain.name,
            tensors=shown,
            left_values=first,
            right_values=second,
        )

    def _tied(self, case: Case, domain: Domain, tensors: Mapping[str, Value]) -> Array:
        """Where a side hangs on a number exactly half-way between two integers: in floats, rounding decides those."""
        assert case.right is not None
        tied = np.zeros(case.left.type.shape, bool)
        given = with_numbers(case, tensors, domain)
        for side in (case.left, case.right):
            if "round" in functions_used(side):
                up, down = (compute(side, given, domain.rounding(ties))[0] for ties in ("up", "down"))
                tied = tied | (np.asarray(up) != np.asarray(down))
        return np.asarray(tied)

    def wrong(self, left: Value, right: Value, domain: Domain, dtype: str) -> Array:
        """Where two values differ more than their error bounds and what the rule relaxes allow."""
        a, b = left[0], right[0]
        if isinstance(domain, Loose) and dtype in FLOATS:
            a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
            slack = _ROUNDING * (_finite(a) + _finite(b) + np.max(_finite(a), initial=0.0))
            return self.wrong((a, slack), (b, np.zeros(b.shape)), Bounded(self.near), dtype)
        if not isinstance(domain, Bounded):
            return np.asarray(a != b, bool)
        with np.errstate(all="ignore"):
            errors = sum(np.nan_to_num(v[1], nan=np.inf) for v in (left, right) if len(v) == 2)
            if dtype not in FLOATS:
                return np.asarray((a != b) & (errors == 0), bool)  # a doubtful comparison decides nothing
            far = np.abs(a - b) > SAFETY * errors + 1e-300
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            wrong = ~same & (far | np.isnan(a) != np.isnan(b))
        wrong = np.where(np.isnan(a) & ~np.isnan(b), "nan" not in self.relaxes, wrong)
        if "reassociation" in self.relaxes:
            wrong = wrong & (np.isfinite(a) | np.isfinite(b))  # over the real numbers neither side has a value
        infinite = np.isinf(a) | np.isinf(b)
        if "infinities" in self.relaxes:
            wrong = wrong & ~infinite
        return np.asarray(wrong, bool)


def with_numbers(case: Case, tensors: Mapping[str, Value], domain: Domain) -> dict[str, Value]:
    """The tensors with the numbers that the right side names."""
    assert case.right is not None
    found = dict(tensors)
    for name, leaf in leaves(case.right).items():
        if name not in found and leaf.number is not None:
            found[name] = domain.constant(leaf.number, leaf.type.dtype)
    return found


def _finite(values: Array) -> Array:
    """The magnitudes of numbers, 0 of all else."""
    return np.where(np.isfinite(values), np.abs(values), 0.0)


def _undecided(left: Value, right: Value) -> bool:
    """Whether the error bounds say nothing about any element."""
    errors = [v[1] for v in (left, right) if len(v) == 2]
    return bool(errors) and left[0].size > 0 and bool(np.all(~np.isfinite(sum(errors))))


def _inexact(case: Case) -> bool:
    """Whether a float that is no short binary fraction takes part: what the engine computed with it is rounded."""
    assert case.right is not None
    for side in (case.left, case.right):
        for term in subterms(side):
            given = term.attributes.values() if isinstance(term, Application) else [term.number]
            if any(map(_is_rounded, given)):
                return True
    return False


def _is_rounded(value: object) -> bool:
    return isinstance(value, float) and value == value and abs(value) < 1e30 and (value * 2**20) % 1 != 0

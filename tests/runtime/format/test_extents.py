"""Extents in plan files: numbers as themselves, formulas in a list."""

from __future__ import annotations

import pytest

from smartmem_rules.runtime.format import plan_pb2 as pb
from smartmem_rules.runtime.format.container import DamageError
from smartmem_rules.runtime.format.extents import FormulaReader, FormulaWriter
from smartmem_rules.tensor.extents import Dimension, at, symbol
from smartmem_rules.tensor.ranges import maximum, minimum

N = Dimension("n", 1, 64)
M = Dimension("m", 2, 9)


def test_extents_come_back() -> None:
    n, m = symbol(N), symbol(M)
    shape = (3, n, n * m + 5, -(-n // 4), (n + m) // m * 2, -(-1000 // m), n)
    writer = FormulaWriter((N, M))
    written = writer.extents(shape)
    found = FormulaReader(writer.formulas, (N, M)).shape(written)
    assert found == shape
    assert written[0] == 3
    assert written[1] == written[6] < 0
    values = {"n": 7, "m": 3}
    assert [at(extent, values) for extent in found] == [at(extent, values) for extent in shape]


def test_the_least_and_the_greatest_come_back_and_nothing_is_divided_by_zero() -> None:
    n, m = symbol(Dimension("n", 0, 64)), symbol(Dimension("m", 0, 9))
    shape = (minimum(n, 8), maximum(m, n) * 2, 3 + (n + m) // m, minimum(n * m, 7, m + 2))
    writer = FormulaWriter((Dimension("n", 0, 64), Dimension("m", 0, 9)))
    written = writer.extents(shape)
    found = FormulaReader(writer.formulas, (Dimension("n", 0, 64), Dimension("m", 0, 9))).shape(written)
    assert found == shape
    assert [at(extent, {"n": 20, "m": 6}) for extent in found] == [8, 40, 7, 7]
    assert [at(extent, {"n": 5, "m": 0}) for extent in found] == [5, 10, 9, 0]


def test_unknown_pairs_are_damage() -> None:
    formula = pb.Formula(terms=[pb.Term(coefficient=1, factors=[pb.Factor(dividend=1, divisor=1, pair=7)])])
    with pytest.raises(DamageError, match="unknown kind 7"):
        FormulaReader([formula], (N, M))


@pytest.mark.parametrize("factor", [pb.Factor(dimension=2), pb.Factor(dividend=-1, divisor=1)])
def test_formulas_point_backwards_only(factor: pb.Factor) -> None:
    formula = pb.Formula(terms=[pb.Term(coefficient=1, factors=[factor])])
    with pytest.raises(DamageError, match="there is no"):
        FormulaReader([formula], (N, M))

"""Extents in plan files: numbers as themselves, formulas in a list."""

from __future__ import annotations

import pytest

from smartmem_rules.runtime.format import plan_pb2 as pb
from smartmem_rules.runtime.format.container import DamageError
from smartmem_rules.runtime.format.extents import FormulaReader, FormulaWriter
from smartmem_rules.tensor.extents import Dimension, at, symbol

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


@pytest.mark.parametrize("factor", [pb.Factor(dimension=2), pb.Factor(dividend=-1, divisor=1)])
def test_formulas_point_backwards_only(factor: pb.Factor) -> None:
    formula = pb.Formula(terms=[pb.Term(coefficient=1, factors=[factor])])
    with pytest.raises(DamageError, match="there is no"):
        FormulaReader([formula], (N, M))

"""Index arithmetic as text: kernels that differ in names of variables only have one text."""

from __future__ import annotations

import pytest

from smartmem_rules.emit.c.indices import Indices
from smartmem_rules.emit.c.writer import Writer
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.index import variable


@pytest.mark.parametrize("names", [("k8.r", "k9.r"), ("k9.r", "k10.r"), ("b", "a")])
def test_the_order_of_terms_does_not_depend_on_names(names: tuple[str, str]) -> None:
    outer, inner = (Var(name, 40) for name in names)
    indices = Indices(Writer(), {})
    assert (indices.name(outer), indices.name(inner)) == ("i0", "i1")
    assert indices.index(variable(outer) * 8 + variable(inner) * 320 + 5) == "(i0 * 8 + i1 * 320 + 5)"
    quotients = variable(inner) // 3 + variable(outer) // 4 * 100 + variable(inner) * 7
    assert indices.index(quotients) == "(i1 * 7 + (i0 / 4) * 100 + (i1 / 3))"


def test_the_tenth_variable_follows_the_ninth() -> None:
    indices = Indices(Writer(), {})
    loops = [Var(f"v{number}", 4) for number in range(12)]
    for loop in loops:
        indices.name(loop)
    assert indices.index(variable(loops[10]) + variable(loops[9]) * 4) == "(i9 * 4 + i10)"

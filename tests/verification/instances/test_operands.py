"""Elements that are drawn for leaves: each is one of its element type."""

from __future__ import annotations

import random

import numpy as np
import pytest

from smartmem_rules.tensor.definitions.values import Scope
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.tensor.types import NARROW
from smartmem_rules.verification.instances.case import Case, representable
from smartmem_rules.verification.instances.operands import Range, draw_values
from smartmem_rules.verification.semantics.domains import Domain
from smartmem_rules.verification.semantics.terms import Leaf


@pytest.mark.parametrize("dtype", [*NARROW, "int8", "uint64"])
def test_elements_are_those_of_their_type(dtype: str) -> None:
    leaf = Leaf("x", TensorType(dtype, (40,)))
    case = Case(leaf, leaf, Scope({}, {}, {}, {}), {}, frozenset(), {})
    source, drawn, seen = random.Random(1), Range(literals=(3.0, 100.0), extreme_share=0.5), set()
    for _ in range(30):
        (array,) = draw_values(case, Domain(), source, drawn)["x"]
        assert np.array_equal(array, array.astype(storage_dtype(dtype)).astype(array.dtype)), array
        seen |= set(array.tolist())
    assert len(seen) > 3
    assert all(representable(number, dtype) for number in seen)

"""Which equations are contractions, and what their axes are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smartmem_rules.plan.fusion.contraction import MatchedContraction, match_contraction
from smartmem_rules.plan.kernel.model import PlanError
from smartmem_rules.plan.schedule.scheduler import candidates
from tests.plan.models import Array, Node, normal
from tests.plan.programs import program_of, rules


def matched(
    node: Node, feeds: dict[str, Array], constants: dict[str, Array] | None = None
) -> MatchedContraction | None:
    program = program_of([node], feeds, "y", constants)
    (definition,) = [d for d in program.definitions if d.reduces]
    return match_contraction(definition.equation, program.names, program.constants.__contains__)


def extents(contraction: MatchedContraction | None) -> tuple[Any, ...]:
    assert contraction is not None
    c = contraction
    k = [v.extent for v in c.reduce.variables]
    return [v.extent for v in c.batch], [v.extent for v in c.m], c.n.extent, k


def test_a_matrix_product() -> None:
    found = matched(("MatMul", "a b", "y"), {"a": normal(5, 7), "b": normal(7, 9)})
    assert extents(found) == ([], [5], 9, [7])


def test_a_batched_product() -> None:
    found = matched(("MatMul", "a b", "y"), {"a": normal(2, 3, 5, 7), "b": normal(2, 3, 7, 9)})
    assert extents(found) == ([2, 3], [5], 9, [7])


def test_a_shared_right_factor_has_no_batch() -> None:
    found = matched(("MatMul", "a b", "y"), {"a": normal(2, 3, 5, 7)}, {"b": normal(7, 9)})
    assert extents(found) == ([], [2, 3, 5], 9, [7])


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_transposed_operands(first: int, second: int) -> None:
    a, b = normal(5, 7), normal(7, 9)
    node: Node = ("Gemm", "a b", "y", {"transA": first, "transB": second})
    found = matched(node, {"a": a.T if first else a, "b": b.T if second else b})
    assert extents(found) == ([], [5], 9, [7])


def test_constants_are_the_right_factor() -> None:
    found = matched(("MatMul", "a b", "y"), {"b": normal(7, 9)}, {"a": normal(5, 7)})
    assert extents(found) == ([], [9], 5, [7])


def test_a_convolution() -> None:
    found = matched(("Conv", "x w", "y"), {"x": normal(2, 3, 8, 9)}, {"w": normal(5, 3, 3, 3)})
    assert extents(found) == ([], [2, 6, 7], 5, [3, 3, 3])


def test_a_grouped_convolution_splits_its_channels() -> None:
    found = matched(("Conv", "x w", "y", {"group": 2}), {"x": normal(1, 4, 8, 9)}, {"w": normal(6, 2, 3, 3)})
    batch, m, n, k = extents(found)
    assert (batch, n, k) == ([2], 3, [2, 3, 3])
    assert np.prod(m) == 42


def test_a_depthwise_convolution_is_none() -> None:
    assert matched(("Conv", "x w", "y", {"group": 4}), {"x": normal(1, 4, 8, 9)}, {"w": normal(4, 1, 3, 3)}) is None


def test_double_precision_is_none() -> None:
    feeds = {"a": normal(5, 7, dtype="float64"), "b": normal(7, 9, dtype="float64")}
    assert matched(("MatMul", "a b", "y"), feeds) is None


def test_a_plain_sum_is_none() -> None:
    assert matched(("GlobalAveragePool", "x", "y"), {"x": normal(1, 4, 8, 9)}) is None


def test_schedules_of_every_device() -> None:
    base = rules()
    for kind in ("cpu", "gpu", "texture_gpu"):
        for memory in ("buffer", "image"):
            for tuned in (False, True):
                found = candidates(base.schedules, kind, memory, tuned)
                assert found
                assert tuned or not any(s.tuned for s in found)
                assert all(s.kind in (kind, "any") and s.memory in (memory, "any") for s in found)
    assert candidates(base.schedules, "cpu", "buffer", True)[0].template == "panel"
    with pytest.raises(PlanError, match=r"contraction.* cpu device"):
        candidates({}, "cpu", "buffer", True)

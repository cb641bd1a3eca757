"""Which equations are contractions, and what their axes are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smartmem_rules.plan.fusion.contraction import MatchedContraction, match_contraction
from smartmem_rules.plan.kernel.model import PlanError
from smartmem_rules.plan.schedule.scheduler import candidates
from tests.plan.models import Array, Node, model, normal
from tests.plan.programs import program_of, rules
from tests.plan.running import Mode, run


def matched(
    node: Node, feeds: dict[str, Array], constants: dict[str, Array] | None = None
) -> MatchedContraction | None:
    program = program_of([node], feeds, "y", constants)
    (definition,) = [d for d in program.definitions if d.reduces]
    return match_contraction(definition.equation, program.names, program.constants)


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


TRANSPOSED: Node = ("ConvTranspose", "x w", "y", {"strides": [2, 2]})


def test_a_transposed_convolution_of_finite_weights() -> None:
    found = matched(TRANSPOSED, {"x": normal(2, 3, 8, 9)}, {"w": normal(3, 5, 3, 3)})
    assert extents(found) == ([], [2, 17, 19], 5, [3, 3, 3])


def test_weights_that_may_be_infinite_are_read_where_they_take_part() -> None:
    """A product with 0 in their place would be NaN."""
    x, w = normal(2, 3, 8, 9), normal(3, 5, 3, 3)
    assert matched(TRANSPOSED, {"x": x, "w": w}) is None
    w[1, 2, 0, 0] = np.inf
    assert matched(TRANSPOSED, {"x": x}, {"w": w}) is None


@pytest.mark.covering
@pytest.mark.parametrize(
    "mode", [Mode(), Mode("none"), Mode(device="adreno_740", memory="image"), Mode(device="nvidia")]
)
@pytest.mark.parametrize("constant", [False, True])
def test_a_weight_takes_part_where_the_data_is_hit(mode: Mode, constant: bool) -> None:
    x, w = normal(1, 3, 4, 5), normal(3, 5, 3, 3)
    w[1, 2, 0, 1], w[0, 4, 2, 2] = np.nan, np.inf
    expected = np.zeros((1, 5, 9, 11))
    for i, j in np.ndindex(4, 5):
        expected[0, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] += np.einsum("c,cokl->okl", x[0, :, i, j], w, dtype=float)
    built = model([TRANSPOSED], {"x": x} if constant else {"x": x, "w": w}, "y", {"w": w} if constant else None)
    assert np.isnan(expected).any()
    np.testing.assert_allclose(run(built, mode, {"x": x, "w": w})["y"], expected, rtol=1e-4, atol=1e-5)


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

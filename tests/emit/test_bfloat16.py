"""Plans that store floats as bfloat16: what is rounded, how, and where such plans are refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from smartmem_rules import optimize
from smartmem_rules.plan.kernel.model import PlanError
from tests.plan.models import model
from tests.plan.running import Mode, prepare, run

BITS = np.array(
    [0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F808001, 0x7F7FFFFF, 0xFF7F0000, 0x7F800000, 0x80000001, 0x00008000,
     0x7F800001, 0xFFFFFFFF, 0x80000000], np.uint32,
)  # fmt: skip
"""Ties to either side, the greatest numbers, an infinity, denormals, NaN whose bits all lie beyond bfloat16, -0."""


def _rounded(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return x.astype(ml_dtypes.bfloat16).astype(np.float32)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rows", [1, 4, 7])
@pytest.mark.parametrize("device", ["auto", "nvidia"])
@pytest.mark.parametrize("debug", [False, True])
def test_a_tensor_between_kernels_is_rounded_to_the_nearest_and_keeps_nan(rows: int, device: str, debug: bool) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, 12)).astype(np.float32)
    x[0] = BITS.view(np.float32)
    # each operator is a kernel of its own, and -(-x) is what memory has kept of -x
    proto = model([("Neg", "x", "h"), ("Neg", "h", "y")], {"x": x}, "y")
    mode = Mode(level="none", device=device, dtype="bfloat16")
    got = prepare(proto, mode, debug)[1].run({"x": x})["y"]
    np.testing.assert_array_equal(got, _rounded(x))
    assert np.isnan(got[0, 9:11]).all()


def test_products_add_rounded_factors_in_single_precision() -> None:
    draw = np.random.default_rng(3)
    x, w = (draw.standard_normal(shape).astype(np.float32) for shape in ((33, 300), (300, 20)))
    proto = model([("Neg", "x", "h"), ("MatMul", "h w", "y")], {"x": x}, "y", {"w": w})
    got = run(proto, Mode(level="none", dtype="bfloat16"), {"x": x})["y"]
    wanted = _rounded(-x).astype(np.float64) @ _rounded(w).astype(np.float64)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())


def test_values_beyond_float16_stay_within_the_type() -> None:
    x, w = np.full((3, 8), 1e20, np.float32), np.full((8, 4), 1e10, np.float32)
    proto = model([("MatMul", "x w", "h"), ("Neg", "h", "y")], {"x": x}, "y", {"w": w})
    plan = optimize(proto, dtype="bfloat16")
    assert not plan.plan.statistics.stored_wide
    np.testing.assert_allclose(plan.run({"x": x})["y"], -8e30, rtol=2.0**-7)
    assert plan.check().passed


def test_where_it_cannot_be_stored() -> None:
    x = np.ones((4, 4), np.float32)
    proto = model([("Neg", "x", "y")], {"x": x}, "y")
    with pytest.raises(PlanError, match="adreno_740 stores floats as float16, float32, not as bfloat16"):
        optimize(proto, device="adreno_740", dtype="bfloat16")
    with pytest.raises(PlanError, match="images hold no bfloat16"):
        optimize(proto, dtype="bfloat16", memory="image")

"""Index tables that are too long for a kernel's text lie in memory."""

from __future__ import annotations

import re

import numpy as np
import onnx
import onnxruntime
import pytest

import smartmem_rules as sm
from smartmem_rules.rulebase.base import load_rules
from tests.certificate.making import certified
from tests.plan.models import Array, model

DRAW = np.random.default_rng(8)
X = DRAW.standard_normal((3, 300)).astype(np.float32)
PLACES = DRAW.permutation(300) - 150
SHORT = DRAW.permutation(200)


def _gathers(*places: Array) -> onnx.ModelProto:
    """exp of elements at the places of one table after the other; negative places count from the end."""
    names = [f"places{n}" for n in range(len(places))]
    nodes = [("Gather", f"t{n} {name}", f"t{n + 1}", {"axis": 1}) for n, name in enumerate(names)]
    return model([("Exp", "x", "t0"), *nodes], {"x": X}, f"t{len(places)}", dict(zip(names, places, strict=True)))


def _tables(plan: sm.Plan) -> list[int]:
    """How many elements the tables in the texts of a plan's kernels have."""
    return [int(n) for source in plan.sources for n in re.findall(r"__constant int \w+\[(\d+)\]", source.text)]


@pytest.mark.covering
@pytest.mark.parametrize("level", ["none", "eliminate", "smartmem"])
@pytest.mark.parametrize("device", ["pocl", "nvidia", "adreno_740"])
def test_a_long_table_is_read_from_memory(device: str, level: str) -> None:
    proto = _gathers(PLACES)
    optimized = sm.optimize(proto, device=device, level=level)
    assert max(_tables(optimized.plan), default=0) <= load_rules().devices[device].memory.table_elements
    assert np.allclose(optimized.run({"x": X})["t1"], np.exp(X.astype(float))[:, PLACES], rtol=1e-6)


def test_a_short_table_stays_in_the_text() -> None:
    optimized = sm.optimize(_gathers(SHORT))
    assert _tables(optimized.plan) == [200]


def test_equal_tables_are_one_and_a_table_at_the_place_of_another_is_read() -> None:
    again = DRAW.permutation(300)
    optimized = sm.optimize(_gathers(again, PLACES, again))
    constants = {
        name: stored.type.shape for name, stored in optimized.plan.tensors.items() if stored.role == "constant"
    }
    assert list(constants.values()) == [(300,), (300,)]
    assert np.allclose(optimized.run({"x": X})["t3"], np.exp(X.astype(float))[:, again][:, PLACES][:, again], rtol=1e-6)


def test_plans_with_long_tables_are_certified() -> None:
    made = certified(_gathers(PLACES, SHORT))
    assert made.certificate["uncertified"] == []


def _enlarged(mode: str) -> onnx.ModelProto:
    return model(
        [("Resize", "x none scales", "y", {"mode": mode, "coordinate_transformation_mode": "pytorch_half_pixel"})],
        {"x": X},
        "y",
        {"none": np.zeros(0, np.float32), "scales": np.array([1, 1.9], np.float32)},
    )


@pytest.mark.parametrize(("mode", "device"), [("linear", "pocl"), ("cubic", "pocl"), ("linear", "adreno_740")])
def test_weights_are_tensors_of_numbers(mode: str, device: str) -> None:
    """Their last axis runs over the results, so that the weights of neighbouring results are read as a vector."""
    proto = _enlarged(mode)
    optimized = sm.optimize(proto, device=device)
    weights = [s for s in optimized.plan.tensors.values() if s.role == "constant" and s.storage == "float32"]
    assert [one.type.shape for one in weights] == [(570, 2 if mode == "linear" else 4)]
    assert weights[0].layout.order[-1] == 0
    reference = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": X})[0]
    assert np.allclose(optimized.run({"x": X})["y"], reference, rtol=1e-5, atol=1e-5)


def test_enlarging_with_long_tables_is_certified() -> None:
    assert certified(_enlarged("linear")).certificate["uncertified"] == []

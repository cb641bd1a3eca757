"""Why two nodes are not one kernel: the rule that came nearest and the figure that failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smartmem_rules import pipeline
from smartmem_rules.api import explain_pair
from smartmem_rules.errors import SmartmemError
from smartmem_rules.runtime.target import Target
from tests.checking import models
from tests.checking.models import Net, drawn


@pytest.fixture(autouse=True)
def profiles_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans for device profiles as they stand, whatever device this computer has."""
    monkeypatch.setattr(pipeline, "target_of", lambda name, base: Target(base.devices[name], None))


def normalised(row: int) -> Net:
    """A row that is normalised and multiplied."""
    net = Net(0)
    x = net.input(net.normal(4, row))
    normal = net.node("LayerNormalization", x, net.normal(row), net.normal(row), axis=-1)
    net.node("MatMul", normal, net.normal(row, 8))
    return net


def apart(net: Net, first: str, second: str, **options: Any) -> dict[str, Any]:
    return explain_pair(net.model(f"t{len(net.nodes) - 1}"), first, second, **{"device": "pocl", **options})


def test_a_row_that_does_not_fit_on_chip() -> None:
    assert apart(normalised(64), "LayerNormalization_0", "MatMul_1")["answer"] == "they are one kernel, k0_contraction"
    row = 1 << 18
    data = apart(normalised(row), "LayerNormalization_0", "MatMul_1")
    nearest = next(one for one in data["refusals"] if one["rule"] == "row_prologue")
    assert not data["together"]
    assert nearest["reason"] == "bytes of a row on chip"
    assert nearest["figure"] == 4 * row > nearest["limit"]
    assert Path(nearest["file"]).name == "fusion.smr"
    assert nearest["writer"] == ["LayerNormalization_0"]


def test_a_level_without_the_rule() -> None:
    data = apart(normalised(64), "LayerNormalization_0", "MatMul_1", disable=["row_prologue", "row_chain"])
    assert not data["together"]
    assert "came nearest" in data["answer"]
    assert data["refusals"]


def test_repeated_operations() -> None:
    """A costly function is not computed again for each of the windows that read it."""
    net = Net(0)
    costly = net.input(net.normal(1, 4, 20, 20))
    for _ in range(6):
        costly = net.node("Sin", costly)
    net.node("MaxPool", costly, kernel_shape=[5, 5])
    data = apart(net, "Sin_5", "MaxPool_6")
    (nearest,) = [one for one in data["refusals"] if one["rule"] == "producer_into_window"]
    assert (
        data["answer"].startswith("producer_into_window came nearest; operations repeated")
        or "launch" in data["answer"]
    )
    assert nearest["figure"] > nearest["limit"] == 2


def test_nodes_that_share_a_kernel_or_have_none() -> None:
    model = drawn(models.attention, 0)[0]
    assert explain_pair(model, "MatMul_1", "MatMul_4", device="pocl")["together"]
    assert "no kernel computes Transpose_3" in explain_pair(model, "Transpose_3", "MatMul_11", device="pocl")["answer"]
    with pytest.raises(SmartmemError, match="no node 'MatMul_99'"):
        explain_pair(model, "MatMul_99", "MatMul_11", device="pocl")


def test_kernels_that_need_nothing_of_each_other() -> None:
    net = Net(0)
    one, other = (net.input(np.ones((4, 4), np.float32)) for _ in range(2))
    outputs = [net.node("Softmax", one), net.node("MatMul", other, net.normal(4, 4))]
    data = explain_pair(net.model(*outputs), "Softmax_0", "MatMul_1", device="adreno_740")
    assert "neither kernel reads what the other writes" in data["answer"]

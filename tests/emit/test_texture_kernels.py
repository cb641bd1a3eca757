"""Kernels for texture GPUs give the right values; here PoCL runs them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from smartmem_rules.graph.importer import import_model
from smartmem_rules.plan.build import Profile, build
from tests.plan.models import model, normal
from tests.plan.programs import rules

pytest.importorskip("pyopencl")
onnxruntime = pytest.importorskip("onnxruntime")

CASES = {
    # rows and columns that fill register blocks, that fill none, and that leave some of the last one
    "whole": ((16, 12), (12, 16)),
    "small": ((3, 8), (8, 5)),
    "rows_left": ((21, 16), (16, 32)),
    "columns_left": ((8, 20), (20, 39)),
    "odd_reduction": ((9, 7), (7, 22)),
    "batches": ((2, 3, 17, 12), (2, 3, 12, 21)),
}


@pytest.mark.parametrize("memory", ["image", "buffer"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", sorted(CASES))
def test_products(name: str, transposed: bool, memory: str) -> None:
    from smartmem_rules.runtime.devices import devices
    from smartmem_rules.runtime.executor import Executor

    left, right = CASES[name]
    given = right[:-2] + right[:-3:-1] if transposed else right
    feeds = {"a": normal(*left), "b": default_rng(3).standard_normal(given).astype(np.float32)}
    order = [*range(len(right) - 2), len(right) - 1, len(right) - 2]
    turned = [("Transpose", "b", "c", {"perm": order})] if transposed else [("Identity", "b", "c")]
    made = model([*turned, ("MatMul", "a c", "p"), ("Relu", "p", "y")], feeds, "y", {})
    base = rules()
    graph = import_model(made, base, {})
    plan = build(graph, base, Profile.of(base.devices["adreno_740"]), "smartmem", "float32", memory)
    found = Executor(plan, devices()[0]).run(feeds)["y"]
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(found, session.run(None, feeds)[0], rtol=1e-5, atol=1e-5)

"""Groups that need each other only by way of one that goes on after them never join each other."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from smartmem_rules.planned import plan_only
from tests.plan.models import model, normal

STEPS, NEAR = 24, 9


def products_and_sums(seed: int) -> onnx.ModelProto:
    """Products by constants, half of them of results shortly before, and sums of such results."""
    draw = np.random.default_rng(seed)
    tensors, nodes, constants = ["x", "v"], [], {}

    def near() -> str:
        return tensors[max(0, len(tensors) - 1 - int(draw.integers(0, NEAR)))]

    for step in range(STEPS):
        kind = draw.integers(0, 10)
        if kind < 4:
            constants[f"w{step}"] = draw.standard_normal((16, 16)).astype(np.float32) / 4
            left = "x" if draw.integers(0, 3) == 0 else near()
            nodes.append(("MatMul", f"{left} w{step}", f"t{step}"))
        elif kind < 8:
            nodes.append((["Add", "Mul", "Sub"][int(draw.integers(0, 3))], f"{near()} {near()}", f"t{step}"))
        else:
            nodes.append(("Relu", near(), f"t{step}"))
        tensors.append(f"t{step}")
    read = {name for _, operands, _ in nodes for name in operands.split()}
    result, *others = [name for name in tensors[2:] if name not in read]
    for number, other in enumerate(others):
        nodes.append(("Add", f"{result} {other}", f"z{number}"))
        result = f"z{number}"
    return model(nodes, {"x": normal(8, 16), "v": normal(8, 16)}, result, constants)


@pytest.mark.parametrize(("seed", "device"), [(47, "nvidia"), (48, "nvidia"), (50, "pocl"), (126, "pocl")])
def test_graphs_of_products_and_sums_have_plans(seed: int, device: str) -> None:
    """The search for dependences that leaves out what ends early found circles of kernels in these."""
    assert plan_only(products_and_sums(seed), device=device).launches

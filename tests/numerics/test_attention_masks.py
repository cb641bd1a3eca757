"""Attention with masks of all types: masked scores are -inf wherever they show, rows masked everywhere give zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.plan.running import Mode, run

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(11)
Q, K, V = (RNG.standard_normal(shape).astype(np.float32) for shape in ((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4)))
ALLOWED = np.array([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 1]], bool)
MASKS: dict[str, Array] = {
    "bool": ALLOWED,
    "bool_short": ALLOWED[:, :4],
    "int64": RNG.integers(-3, 3, (3, 5)),
    "int32_short": RNG.integers(-3, 3, (3, 4)).astype(np.int32),
    "float32": np.where(ALLOWED, 0.25, -np.inf).astype(np.float32),
    "float32_short": np.where(ALLOWED, 0.25, -np.inf).astype(np.float32)[:, :4],
}
SCORES = ("scores", "capped", "masked", "weights")


def expected(mask: Array, causal: bool) -> dict[str, Array]:
    """The results in double precision; what a short mask leaves out is masked."""
    scores = np.einsum("bhid,bhjd->bhij", Q.astype(np.float64), K) / 2
    short = 5 - mask.shape[-1]
    if mask.dtype == bool:
        added = np.where(np.pad(mask, ((0, 0), (0, short))), 0, -np.inf)
    else:
        added = np.pad(mask.astype(np.float64), ((0, 0), (0, short)), constant_values=-np.inf)
    if causal:
        added = added + np.where(np.arange(5) <= np.arange(3)[:, None], 0, -np.inf)
    masked = scores + added
    with np.errstate(invalid="ignore"):
        e = np.exp(masked - masked.max(-1, keepdims=True))
        weights = np.nan_to_num(e / e.sum(-1, keepdims=True), nan=0.0)
    return {"y": weights @ V, "scores": scores, "capped": scores, "masked": masked, "weights": weights}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("name", MASKS)
def test_masks(name: str, causal: int) -> None:
    mask = MASKS[name]
    nodes = [
        helper.make_node(
            "Attention",
            ["q", "k", "v", "m"],
            ["y" if mode == 0 else f"y{mode}", "", "", output],
            qk_matmul_output_mode=mode,
            is_causal=causal,
        )
        for mode, output in enumerate(SCORES)
    ]
    feeds = {"q": Q, "k": K, "v": V, "m": mask}
    graph = helper.make_graph(
        nodes,
        "masks",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()],
        [helper.make_empty_tensor_value_info(output) for output in ("y", *SCORES)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    results = run(model, Mode(), feeds)
    for output, wanted in expected(mask, bool(causal)).items():
        np.testing.assert_allclose(results[output], wanted, rtol=2e-6, atol=2e-6, err_msg=output)

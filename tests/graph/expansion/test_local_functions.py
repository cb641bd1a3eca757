"""Functions of a model that name other versions of operator sets than the model."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser

import smartmem_rules as sm
from smartmem_rules.graph.errors import GraphError


def _calling(body: str, version: int) -> onnx.ModelProto:
    return parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 18, "my": 1]>
        g (float[2, 3, 4] x, bool b) => (float[a, b, c] y) {{ y = my.F(x, b) }}
        <domain: "my", opset_import: ["": {version}]> F(x, b) => (y) {{ {body} }}"""
    )


@pytest.mark.parametrize("version", [13, 17, 18, 20])
@pytest.mark.parametrize(
    "body",
    [
        "y = Softmax <axis = 1> (x)",
        "y = If (b) <then_branch = t () => (float[2, 3, 4] p) { p = Softmax <axis = 1> (x) },"
        " else_branch = e () => (float[2, 3, 4] q) { q = Softmax <axis = 1> (x) }>",
    ],
    ids=["alone", "in a branch"],
)
def test_operators_that_did_not_change(body: str, version: int) -> None:
    x = np.random.default_rng(version).standard_normal((2, 3, 4)).astype(np.float32)
    shifted = np.exp(x - x.max(1, keepdims=True))
    found = sm.optimize(_calling(body, version if "If" not in body else 18)).run({"x": x, "b": np.array(True)})["y"]
    np.testing.assert_allclose(found, shifted / shifted.sum(1, keepdims=True), rtol=1e-5)


def test_operators_that_changed_are_named() -> None:
    """In version 11 Softmax goes over all axes from its own one on."""
    with pytest.raises(GraphError, match=r"my::F is of version 11 of ai\.onnx and the model of version 18, .* Softmax"):
        sm.optimize(_calling("y = Softmax (x)", 11))
    body = (
        "y = If (b) <then_branch = t () => (float[2, 3, 4] p) { p = Softmax (x) },"
        " else_branch = e () => (float[2, 3, 4] q) { q = Identity (x) }>"
    )
    with pytest.raises(GraphError, match="between which Identity, If, Softmax changed"):
        sm.optimize(_calling(body, 11))

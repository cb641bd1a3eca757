"""Models whose dimensions a source has opened say nothing that is false at another extent."""

from __future__ import annotations

import numpy as np
import onnxruntime
from onnx import parser

from smartmem_rules.fuzzing.case import Case, Mode
from smartmem_rules.fuzzing.expected.outputs import Reference
from smartmem_rules.fuzzing.sources.symbolic import opened

NEVER = """
<ir_version: 8, opset_import: ["": 17]>
g (float[3, 2] x) => (float[0, 3, 2] y) <int64 none = {0}, bool on = {1}> {
    y = Loop (none, on) <body = outer (int64 i, bool g) => (bool h, float[3, 2] each) {
        h = Identity (g)
        each = If (g) <then_branch = yes () => (float[3, 2] a) { a = Exp (x) },
            else_branch = no () => (float[3, 2] b) { b = Neg (x) }>
    }>
}"""


def test_bodies_describe_no_shape_of_before() -> None:
    """Specialised 2441001062: ONNX Runtime takes what a loop of no steps gives from the body's description."""
    case = Case("never", parser.parse_model(NEVER), {"x": np.ones((3, 2), np.float32)}, Mode())
    extents = set()
    for seed in range(8):
        made = opened(case, np.random.default_rng(seed))
        assert made.mode.dims
        session = onnxruntime.InferenceSession(made.model.SerializeToString(), providers=["CPUExecutionProvider"])
        (found,) = session.run(None, dict(made.feeds))
        wanted = (0, *made.feeds["x"].shape)
        assert Reference(made.model, made.feeds).native_outputs()["y"].shape == wanted
        assert all(one in (0, other) for one, other in zip(found.shape, wanted, strict=True))  # 0 where it is open
        extents.add(wanted)
    assert len(extents) > 1

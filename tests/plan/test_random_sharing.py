"""Random models whose tensors meet themselves, in drawn modes, against ONNX Runtime without graph optimizations."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import assume, given, note, strategies as st

from tests.plan.models import Array, Model
from tests.plan.random_sharing import in_halves, sharing_models
from tests.plan.running import LEVELS, MEMORIES, Mode, drawing, run
from tests.with_all import with_all

ort = pytest.importorskip("onnxruntime")

TOLERANCES = {"float32": 3e-5, "float16": 3e-2}
"""Errors relative to the largest value on the way, as in `test_random_graphs`."""
EXAMPLES = with_all(6, 3)
MORE_EXAMPLES = with_all(15, 6)
"""Of each kind of models, and where all cases run."""
MODES = [
    *(Mode(level, memory, dtype) for level in LEVELS for memory in MEMORIES for dtype in TOLERANCES),
    Mode(device="adreno_740", memory="image"),
    Mode(device="nvidia"),
]


def reference(model: Model) -> tuple[dict[str, Array], float] | None:
    """The outputs, and the largest magnitude of any tensor; None where ONNX Runtime does not take the model."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    names = list(dict.fromkeys(name for node in proto.graph.node for name in node.output))
    del proto.graph.output[:]
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(proto.SerializeToString(), options)
        values = dict(zip(names, session.run(None, model.feeds), strict=True))
    except Exception as error:  # its errors have no base class of their own
        note(f"ONNX Runtime: {error}")
        return None
    largest = max([1.0, *(float(np.abs(v).max()) for v in (*values.values(), *model.feeds.values()) if v.size)])
    return {output.name: values[output.name] for output in model.proto.graph.output}, largest


@pytest.mark.parametrize("halves", [False, True])
def test_random_models_of_shared_tensors(halves: bool, fresh_seeds: bool, examples: int, all_cases: bool) -> None:
    @drawing(examples or (MORE_EXAMPLES if all_cases else EXAMPLES), fresh_seeds)
    @given(drawn=sharing_models(), mode=st.sampled_from(MODES), debug=st.integers(0, 4))
    def test(drawn: Model, mode: Mode, debug: int) -> None:
        model, single = in_halves(drawn) if halves else (drawn, drawn)
        found = reference(single)
        assume(found is not None)
        assert found is not None
        expected, scale = found
        assume(np.isfinite(scale) and scale < 1e3)
        note(f"{mode} debug={debug == 0}")
        actual = run(model.proto, mode, model.feeds, debug=debug == 0)
        assert set(actual) == set(expected)
        for name, wanted in expected.items():
            got = actual[name]
            assert (got.shape, got.dtype) == (wanted.shape, np.dtype(np.float16 if halves else np.float32)), name
            error = np.abs(got.astype(np.float64) - wanted)
            worst = float(error.max(initial=0.0))
            place = np.unravel_index(int(error.argmax()), error.shape) if error.size else ()
            limit = TOLERANCES["float16" if halves else mode.dtype]
            assert worst <= limit * scale, f"{name} is off by {worst} of {scale} at {place}"

    test()

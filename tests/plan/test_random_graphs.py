"""Random small models on the device, at every level, in both memories and both storages, against ONNX's evaluator."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, note
from onnx.reference import ReferenceEvaluator

from tests.plan.models import Array, Model
from tests.plan.random_graphs import models
from tests.plan.running import LEVELS, MEMORIES, Mode, drawing, run
from tests.with_all import with_all

pytestmark = pytest.mark.sampled(24)

TOLERANCES = {"float32": 2e-5, "float16": 2e-2}
"""Errors relative to the largest value on the way.  A rounding is 6e-8 of a value (4.9e-4 in half precision); a model
has up to some thirty roundings one after the other, and its operators enlarge errors by small factors only.
"""
MODES = [
    *(Mode(level, memory, dtype) for level in LEVELS for memory in MEMORIES for dtype in TOLERANCES),
    Mode(device="adreno_740", memory="image"),
    Mode(device="adreno_740", memory="image", dtype="float16"),
    Mode(device="nvidia"),
]
EXAMPLES = with_all(10, 4)


def reference(model: Model) -> tuple[dict[str, Array], float]:
    """The outputs, and the largest magnitude of any tensor of the model."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    del proto.graph.output[:]
    names = [name for node in proto.graph.node for name in node.output]
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    values = dict(zip(names, ReferenceEvaluator(proto).run(None, model.feeds), strict=True))
    largest = max([1.0, *(float(np.abs(v).max()) for v in (*values.values(), *model.feeds.values()) if v.size)])
    return {output.name: values[output.name] for output in model.proto.graph.output}, largest


def check(model: Model, mode: Mode) -> None:
    note(str(mode))
    expected, scale = reference(model)
    actual = run(model.proto, mode, model.feeds)
    assert set(actual) == set(expected)
    for name, wanted in expected.items():
        got = actual[name]
        assert (got.shape, got.dtype) == (wanted.shape, np.float32), name
        error = np.abs(got.astype(np.float64) - wanted)
        worst = float(error.max(initial=0.0))
        place = np.unravel_index(int(error.argmax()), error.shape) if error.size else ()
        assert worst <= TOLERANCES[mode.dtype] * scale, f"{name} is off by {worst} of {scale} at {place}"


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_random_models(mode: Mode, fresh_seeds: bool, examples: int) -> None:
    @drawing(examples or EXAMPLES, fresh_seeds)
    @given(model=models())
    def test(model: Model) -> None:
        check(model, mode)

    test()

"""Plans an ONNX model and runs it on the device at hand, without the command line around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, Phase, settings
from onnx.reference import ReferenceEvaluator

from smartmem_rules.api import Clock
from smartmem_rules.pipeline import Request, make_plan
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.runtime.executor import Executor

Array = np.ndarray[Any, np.dtype[Any]]
LEVELS = ("none", "dnnfusion", "eliminate", "layout", "smartmem")
MEMORIES = ("buffer", "image")


@dataclass(frozen=True)
class Mode:
    """How a model is planned; the device names a profile, whose kernels also run on a CPU that stands in for it."""

    level: str = "smartmem"
    memory: str = "buffer"
    dtype: str = "float32"
    device: str = "pocl"
    layout: str = "exact"

    def __str__(self) -> str:
        return f"{self.level}-{self.memory}-{self.dtype}-{self.device}"


def drawing(examples: int, fresh_seeds: bool) -> settings:
    """How models are drawn: the same ones in each run unless fresh ones are asked for, shrunk where one fails."""
    return settings(
        max_examples=examples,
        derandomize=not fresh_seeds,
        deadline=None,
        database=None,
        print_blob=True,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


def prepare(model: onnx.ModelProto, mode: Mode, debug: bool = False) -> tuple[Plan, Executor]:
    """The plan of a model, and the plan ready to run; `debug`: its kernels check their accesses."""
    plan, target = make_plan(_request(model, mode), Clock())
    assert target.device is not None
    return plan, Executor(plan, target.device, debug=debug)


def plan_of(model: onnx.ModelProto, mode: Mode) -> Plan:
    """The plan of a model, whose kernels are not compiled."""
    return make_plan(_request(model, mode), Clock())[0]


def _request(model: onnx.ModelProto, mode: Mode) -> Request:
    return Request(model, (), mode.device, mode.level, mode.dtype, mode.memory, (), {}, mode.layout)


def run(model: onnx.ModelProto, mode: Mode, feeds: Mapping[str, Array], debug: bool = False) -> dict[str, Array]:
    """The outputs for the feeds that are still inputs of the plan; the memory between them held NaN before."""
    plan, executor = prepare(model, mode, debug)
    executor.poison()
    return executor.run({name: feeds[name] for name in plan.inputs})


def by_onnxruntime(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs that ONNX Runtime gives, without its own fusion.

    They are what a plan is compared with: a plan of one kernel for each operator would say the same, and take the time
    of compiling all of these kernels.
    """
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in model.graph.output]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def agrees(
    proto: onnx.ModelProto, feeds: dict[str, Array], mode: Mode, tolerance: float = 1e-5, expected: Any = None
) -> None:
    """Hold a model's outputs against ONNX's reference evaluator: integers exactly, floats by the largest output."""
    wanted = ReferenceEvaluator(proto).run(None, feeds) if expected is None else expected
    got = run(proto, mode, feeds)
    for output, value in zip(proto.graph.output, wanted, strict=True):
        actual = got[output.name]
        assert (actual.dtype, actual.shape) == (np.asarray(value).dtype, np.asarray(value).shape)
        if actual.dtype.kind in "iub":
            np.testing.assert_array_equal(actual, value, err_msg=output.name)
        else:
            scale = max(1.0, float(np.abs(np.asarray(value, np.float64)).max(initial=0)))
            wide = actual.astype(np.float64), np.asarray(value).astype(np.float64)
            np.testing.assert_allclose(*wide, rtol=0, atol=tolerance * scale, err_msg=output.name)

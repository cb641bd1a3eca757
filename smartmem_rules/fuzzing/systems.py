"""Others that run or simplify ONNX models, as subjects of the judge.

A simplifier's model is run by ONNX Runtime without graph optimizations, so that what differs is the simplifier's.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx

from smartmem_rules.errors import SmartmemError
from smartmem_rules.fuzzing.case import SELF, Array
from smartmem_rules.records import dataclass

Feeds = Mapping[str, Array]


class SystemRefuses(SmartmemError):
    """A system does not take a model, or is not installed; the message says why."""


class BrokenModel(Exception):
    """What a simplifier made of a model that runs does not run; the message says why."""


@dataclass(frozen=True, kw_only=True)
class System:
    """One that computes the outputs of a model.

    Attributes:
        package: what to install, and whose version counts.
        run: gives the outputs by name; whatever it raises, it does not take the model.
        narrows: element types that it computes in narrower ones, as its documentation says.
    """

    package: str
    run: Callable[[onnx.ModelProto, Feeds], dict[str, Array]]
    narrows: frozenset[str] = frozenset()

    @property
    def version(self) -> str:
        return importlib.metadata.version(self.package)


def _session(model: onnx.ModelProto, optimized: bool) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _by_session(session: Any, feeds: Feeds) -> dict[str, Array]:
    wanted = {one.name for one in session.get_inputs()}
    names = [one.name for one in session.get_outputs()]
    values = session.run(None, {name: value for name, value in feeds.items() if name in wanted})
    return {name: np.asarray(value) for name, value in zip(names, values, strict=True)}


def _onnxruntime(model: onnx.ModelProto, feeds: Feeds) -> dict[str, Array]:
    return _by_session(_session(model, optimized=True), feeds)


def _openvino(model: onnx.ModelProto, feeds: Feeds) -> dict[str, Array]:
    import openvino

    settings = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    core: Any = openvino.Core()
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", settings)
    wanted = {name for one in compiled.inputs for name in one.names}
    results = compiled({name: value for name, value in feeds.items() if name in wanted})
    names = [one.name for one in model.graph.output]
    return {name: np.array(results[place]) for place, name in enumerate(names)}


def _simplified(simplify: Callable[[onnx.ModelProto], onnx.ModelProto], model: onnx.ModelProto, feeds: Feeds) -> Any:
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    made = simplify(copied)
    try:
        return _by_session(_session(made, optimized=False), feeds)
    except Exception as failure:  # other people's code raises whatever it likes
        _by_session(_session(model, optimized=False), feeds)
        raise BrokenModel(str(failure)) from failure


def _onnxsim(model: onnx.ModelProto, feeds: Feeds) -> dict[str, Array]:
    import onnxsim

    return dict(_simplified(lambda one: onnxsim.simplify(one)[0], model, feeds))


def _onnxslim(model: onnx.ModelProto, feeds: Feeds) -> dict[str, Array]:
    import onnxslim

    return dict(_simplified(onnxslim.slim, model, feeds))


SYSTEMS: Mapping[str, System] = {
    "onnxruntime": System(package="onnxruntime", run=_onnxruntime),
    "openvino": System(
        package="openvino",
        run=_openvino,
        narrows=frozenset({"float64", "int64", "uint64", "uint32", "int16", "uint16"}),
    ),
    "onnxsim": System(package="onnxsim", run=_onnxsim),
    "onnxslim": System(package="onnxslim", run=_onnxslim),
}
"""By name; our own engine, `self`, stands beside them."""


def missing(name: str) -> str | None:
    """What to install for a system; None where it is here.

    Raises:
        KeyError: there is no such system.
    """
    if name == SELF:
        return None
    package = SYSTEMS[name].package
    return None if importlib.util.find_spec(package) else f"{name} is not installed: pip install {package}"


def run_by(name: str, model: onnx.ModelProto, feeds: Feeds) -> dict[str, Array]:
    """The outputs of a model by a system other than our own.

    Raises:
        SystemRefuses: it does not take the model.
        BrokenModel: it made a model of it that does not run.
    """
    try:
        return SYSTEMS[name].run(model, feeds)
    except BrokenModel:
        raise
    except Exception as refusal:  # other people's code raises whatever it likes
        raise SystemRefuses(
            f"{name}: {str(refusal).strip().splitlines()[0][:200] if str(refusal) else refusal!r}"
        ) from refusal

"""The reference of models that cannot be computed node by node (sequences, optional values): ONNX Runtime as a whole.

The reference is then in single precision, without graph optimizations, and draws perturb inputs and weights only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from smartmem_rules.checking.kernels import ONNXRUNTIME, SINGLE, NoKernelError, as_working
from smartmem_rules.checking.rounding import NARROWED, ROUNDING, narrowed
from smartmem_rules.checking.walk import PARAMETERS, Walk, settled
from smartmem_rules.graph.loading import all_nodes
from smartmem_rules.graph.weights import is_external
from smartmem_rules.runtime.reference import ENDS_WHERE_EMPTY
from smartmem_rules.tensor.primitives import Array

_STEPS = 4.0
"""Ulps by which inputs and weights are changed, times the noise asked for: nodes between them round as well."""


def run_whole(
    model: onnx.ModelProto, feeds: Mapping[str, Array], draws: int, seed: int, dtype: str, noise: float
) -> Walk:
    """The outputs of a model, and those for perturbed inputs and weights.

    Raises:
        NoKernelError: ONNX Runtime is not installed or does not take the model.
    """
    if any(is_external(tensor) for tensor in model.graph.initializer):
        raise NoKernelError("its weights are outside of its file, and it cannot be computed node by node")
    ends = any(node.op_type in ENDS_WHERE_EMPTY for node in all_nodes(model.graph.node))
    if ends and not all(np.asarray(array).size for array in feeds.values()):
        raise NoKernelError(f"{ONNXRUNTIME} ends the process where recurrences have no elements")
    walk = Walk(draws=draws)
    walk.by[ONNXRUNTIME] += 1
    walk.single["all nodes"] += 1
    try:
        reference = _run(model, feeds)
        samples = [_run(*_perturbed(model, feeds, [seed, draw], dtype, noise)) for draw in range(draws)]
    except Exception as error:  # other people's code: whatever it raises, it does not take the model
        raise NoKernelError(f"{ONNXRUNTIME}: {error}") from error
    for name, array in reference.items():
        if isinstance(array, np.ndarray):
            wide = as_working(array, np.dtype(np.float64))
            walk.outputs[name] = settled(wide, [sample[name] for sample in samples])
    return walk


def _run(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> dict[str, Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(feeds)), strict=True))


def _perturbed(
    model: onnx.ModelProto, feeds: Mapping[str, Array], seed: list[int], dtype: str, noise: float
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    generator = np.random.default_rng(seed)
    step = _STEPS * noise * ROUNDING[dtype]

    def changed(array: Array) -> Array:
        if array.dtype.kind != "f" or array.size <= PARAMETERS:
            return array
        factor = 1 + step * (2 * generator.random(array.shape) - 1)
        stored = narrowed(array.astype(SINGLE), dtype) if dtype in NARROWED else array
        return np.asarray((stored * factor).astype(array.dtype))

    made = onnx.ModelProto()
    made.CopyFrom(model)
    for tensor in made.graph.initializer:
        if tensor.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE):
            tensor.CopyFrom(numpy_helper.from_array(changed(numpy_helper.to_array(tensor)), tensor.name))
    return made, {name: changed(np.asarray(array)) for name, array in feeds.items()}

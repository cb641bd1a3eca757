"""Other systems on models of a few nodes, without copies: inputs and outputs stay where they lie.

`nodes.py` starts this module with a system, a model, its inputs' .npz and the number of threads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from served import answer_turns

from smartmem_rules.runtime.feeds import Array

Run = Callable[[], object]


def open_onnxruntime(model: str, feeds: Mapping[str, Array], threads: int) -> Run:
    """ONNX Runtime's CPU provider, with all that it does to a graph."""
    import onnxruntime  # one of the systems may be missing

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    session: Any = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_cpu_input(name, array)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    return lambda: session.run_with_iobinding(binding)


def open_openvino(model: str, feeds: Mapping[str, Array], threads: int) -> Run:
    """OpenVINO's CPU plugin, in single precision."""
    import openvino  # one of the systems may be missing

    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    core: Any = openvino.Core()
    request = core.compile_model(model, "CPU", settings).create_infer_request()
    for name, array in feeds.items():
        request.set_tensor(name, openvino.Tensor(array, shared_memory=True))

    def run() -> None:
        request.start_async()
        request.wait()

    return run


SYSTEMS = {"onnxruntime": open_onnxruntime, "openvino": open_openvino}


if __name__ == "__main__":
    system, model, inputs, count = sys.argv[1:5]
    with np.load(inputs) as archive:
        arrays = {name: np.ascontiguousarray(archive[name]) for name in archive.files}
    answer_turns(lambda: SYSTEMS[system](model, arrays, int(count)), int(count))

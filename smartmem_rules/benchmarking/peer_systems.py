"""Other systems that run ONNX models, each in a process of its own: `python -m` this module.

The process loads the model, says `{"device": ..., "kernels": ...}`, and then answers each line `run` on its standard
input with the milliseconds of one inference, from arrays on the host to arrays on the host.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from smartmem_rules.records import dataclass
from smartmem_rules.runtime.feeds import Array

Feeds = Mapping[str, Array]


@dataclass(frozen=True)
class Opened:
    """A model that a system has loaded; `kernels` is None where the system does not tell."""

    run: Callable[[Feeds], dict[str, Array]]
    device: str
    kernels: int | None


def open_onnxruntime(model: str, threads: int, device: str) -> Opened:
    """ONNX Runtime's CPU provider."""
    import onnxruntime

    del device
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]

    def run(feeds: Feeds) -> dict[str, Array]:
        return dict(zip(names, session.run(None, dict(feeds)), strict=True))

    return Opened(run, f"CPU, {threads} threads", None)


def open_openvino(model: str, threads: int, device: str) -> Opened:
    """OpenVINO's CPU plugin, in single precision."""
    import openvino

    del device
    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    core: Any = openvino.Core()
    compiled = core.compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()

    def run(feeds: Feeds) -> dict[str, Array]:
        results = request.infer(dict(feeds))
        return {output.get_any_name(): results[output].copy() for output in compiled.outputs}

    return Opened(run, f"CPU, {threads} threads", None)


def open_tinygrad(model: str, threads: int, device: str) -> Opened:
    """tinygrad on the OpenCL device of this computer."""
    import pyopencl

    del threads
    name = pyopencl.get_platforms()[0].get_devices()[0].name.strip()
    if device not in ("", name):
        raise RuntimeError(f"tinygrad takes the first OpenCL device, which is {name}, not {device}")
    # the OpenCL loader that pyopencl brings along serves tinygrad too
    os.environ["OPENCL_PATH"] = _loaded("libOpenCL")
    os.environ["DEV"] = "CL"
    from tinygrad.engine.jit import TinyJit
    from tinygrad.nn.onnx import OnnxRunner
    from tinygrad.tensor import Tensor

    runner: Any = OnnxRunner(model)
    jit: Any = TinyJit
    jitted = jit(lambda **inputs: {key: value.realize() for key, value in runner(inputs).items()})

    def run(feeds: Feeds) -> dict[str, Array]:
        given = {key: Tensor(value).realize() for key, value in feeds.items()}
        return {key: value.numpy() for key, value in jitted(**given).items()}

    return Opened(run, name, None)


def open_torch(model: str, threads: int, device: str) -> Opened:
    """PyTorch through onnx2torch, compiled by inductor where it can be; on CUDA where the device is NVIDIA's."""
    import torch
    from onnx2torch import convert

    torch.set_num_threads(threads)
    place = "cuda" if "NVIDIA" in device and torch.cuda.is_available() else "cpu"
    import onnx

    proto = onnx.load(model)
    inputs = [value.name for value in proto.graph.input if value.name not in {t.name for t in proto.graph.initializer}]
    outputs = [value.name for value in proto.graph.output]
    convert_model: Any = convert
    module: Any = torch.compile(
        convert_model(proto).eval().to(place), mode="reduce-overhead" if place == "cuda" else "default"
    )

    def run(feeds: Feeds) -> dict[str, Array]:
        with torch.inference_mode():
            results = module(*(torch.from_numpy(feeds[name]).to(place) for name in inputs))
        results = results if isinstance(results, tuple | list) else (results,)
        return {name: value.cpu().numpy() for name, value in zip(outputs, results, strict=True)}

    return Opened(run, place, None)


def open_ncnn(model: str, threads: int, device: str) -> Opened:
    """ncnn through its converter pnnx."""
    import tempfile
    from pathlib import Path

    import ncnn
    import pnnx

    del device
    import onnx

    proto = onnx.load(model, load_external_data=False)
    known = {tensor.name for tensor in proto.graph.initializer}
    shapes = {
        value.name: [d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in proto.graph.input
        if value.name not in known
    }
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "model"
        pnnx.convert(model, list(shapes.values()), ncnnparam=f"{base}.param", ncnnbin=f"{base}.bin")
        net: Any = ncnn.Net()
        net.opt.num_threads = threads
        net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = net.opt.use_fp16_packed = False
        net.load_param(f"{base}.param")
        net.load_model(f"{base}.bin")
    outputs = [value.name for value in proto.graph.output]

    def run(feeds: Feeds) -> dict[str, Array]:
        extractor = net.create_extractor()
        for place, name in enumerate(shapes):
            extractor.input(f"in{place}", ncnn.Mat(feeds[name][0]).clone())
        import numpy as np

        return {name: np.array(extractor.extract(f"out{i}")[1])[None] for i, name in enumerate(outputs)}

    return Opened(run, f"CPU, {threads} threads", None)


SYSTEMS: dict[str, tuple[Callable[[str, int, str], Opened], tuple[str, ...]]] = {
    "onnxruntime": (open_onnxruntime, ("onnxruntime",)),
    "openvino": (open_openvino, ("openvino",)),
    "tinygrad": (open_tinygrad, ("tinygrad",)),
    "torch": (open_torch, ("torch", "onnx2torch")),
    "ncnn": (open_ncnn, ("ncnn", "pnnx")),
}
"""How each system opens a model, and the packages that it needs."""


def _loaded(stem: str) -> str:
    """The path of a shared library that is in this process."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            if os.path.basename(path).startswith(stem):
                return "/" + path
    raise RuntimeError(f"no {stem} is loaded")


def main() -> None:
    """Serve one system: its name, the model's path, the inputs' .npz, the file for outputs, threads, device."""
    import numpy as np

    system, model, inputs, outputs, threads, device = sys.argv[1:]
    # whatever a system prints must not come between the answers
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    with np.load(inputs) as archive:
        feeds = {name: archive[name] for name in archive.files}
    opened = SYSTEMS[system][0](model, int(threads), device)
    for _ in range(3):  # systems that record a run do it in the first two
        results = opened.run(feeds)
    np.savez(outputs, *map(np.asarray, results.values()))
    json.dump({"device": opened.device, "kernels": opened.kernels, "outputs": list(results)}, answers)
    answers.write("\n")
    for line in sys.stdin:
        if line.strip() != "run":
            break
        start = time.perf_counter()
        opened.run(feeds)
        answers.write(f"{(time.perf_counter() - start) * 1e3}\n")


if __name__ == "__main__":
    main()

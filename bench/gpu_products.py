"""Products of halves of one NVIDIA device: kernels on each of its matrix units beside cuBLAS; torch with CUDA.

`python bench/gpu_products.py` prints medians of one kernel, ours by OpenCL's profile and cuBLAS's by PyTorch's, in
microseconds, and the largest error of our outputs in single precision's sums, relative to the largest output.
`--batch N` takes N images or sentences at a time.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from typing import Any

import numpy as np
import onnx
from markdown_tables import markdown
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules import OptimizedPlan, optimize

SHAPES = (
    (2048, 2048, 2048), (197, 768, 2304), (197, 768, 768), (197, 768, 3072), (197, 3072, 768), (3136, 96, 384),
    (784, 192, 768), (196, 384, 1536), (49, 768, 3072), (128, 768, 3072), (128, 3072, 768),
)  # fmt: skip
"""Rows, depth and columns: a square one, and those of ViT-B, Swin-T or ConvNeXt-T, and BERT-base at batch 1."""
HEADER = "rows x depth x columns | tile | ours | on fragments | cuBLAS | cuBLAS / ours | error"
RUNS = 60


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="nvidia")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--first", type=int, default=len(SHAPES), help="only so many of the shapes")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        print(f"{error}; install torch with CUDA", file=sys.stderr)
        return 2
    rows = []
    for m, k, n in SHAPES[: arguments.first]:
        shape = (m * arguments.batch, k, n)
        plan = optimize(product(*shape), device=arguments.device, dtype="float16")
        other = optimize(
            product(*shape), device=arguments.device, dtype="float16", disable=("contraction_group_local",)
        )
        ours, before, theirs = microseconds(plan), microseconds(other), cublas(torch, *shape)
        times = [f"{ours:.1f}", f"{before:.1f}", f"{theirs:.1f}", f"{theirs / ours:.2f}"]
        rows.append([" x ".join(map(str, shape)), tile(plan), *times, f"{error_of(plan, *shape):.1e}"])
        print(rows[-1], file=sys.stderr, flush=True)
    print(markdown(HEADER, rows))
    return 0


def product(m: int, k: int, n: int) -> onnx.ModelProto:
    """A product with a constant factor, both of halves, and a rectifier behind it."""
    weights = np.random.default_rng(1).standard_normal((k, n)).astype(np.float16)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["a", "b"], ["c"]), helper.make_node("Relu", ["c"], ["y"])],
        "product",
        [helper.make_tensor_value_info("a", TensorProto.FLOAT16, (m, k))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, (m, n))],
        [numpy_helper.from_array(weights, "b")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def feeds(m: int, k: int) -> dict[str, np.ndarray]:
    """Random numbers."""
    return {"a": np.random.default_rng(2).standard_normal((m, k)).astype(np.float16)}


def error_of(plan: OptimizedPlan, m: int, k: int, n: int) -> float:
    """The largest difference from double precision, relative to the largest output."""
    given = feeds(m, k)
    weights = np.random.default_rng(1).standard_normal((k, n)).astype(np.float16)
    wanted = np.maximum(given["a"].astype(np.float64) @ weights.astype(np.float64), 0)
    return float(np.abs(plan.run(given)["y"].astype(np.float64) - wanted).max() / wanted.max())


def microseconds(plan: OptimizedPlan) -> float:
    """Of the plan's kernels on the device, one inference behind the other."""
    import pyopencl as cl

    executor, given = plan.prepare(), dict(plan.random_feeds())
    with executor.taken() as context:
        context.run(given, {})
        queue = cl.CommandQueue(context.queue.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        runs = [context.enqueue(queue) for _ in range(RUNS)]
        queue.finish()
        times = [sum(e.profile.end - e.profile.start for e in events) * 1e-3 for events in runs[8:]]
        return float(statistics.median(times))


def cublas(torch: Any, m: int, k: int, n: int) -> float:
    """Microseconds of PyTorch's kernels of the product, without a rectifier."""
    a, b = (torch.randn(*shape, device="cuda", dtype=torch.half) for shape in ((m, k), (k, n)))
    for _ in range(8):
        torch.mm(a, b)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(RUNS):
            torch.mm(a, b)
        torch.cuda.synchronize()
    times = [event.device_time for event in profile.events() if event.device_time > 0]
    kernels = len(times) // RUNS
    return float(statistics.median(sum(times[i : i + kernels]) for i in range(0, len(times) - kernels + 1, kernels)))


def tile(plan: OptimizedPlan) -> str:
    """The sizes of the plan's product."""
    schedule = plan.kernels[-1].schedule
    return "-" if schedule is None else " ".join(map(str, schedule.sizes().values()))


if __name__ == "__main__":
    sys.exit(main())

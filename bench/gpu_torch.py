"""Ours beside torch.compile with CUDA graphs (TF32 off) on one NVIDIA device, in turns; torch with CUDA and timm.

`python bench/gpu_torch.py` prints medians: ours from host to host, torch with its input on the device, and
torch with its input from and its output to the host.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from markdown_tables import markdown
from networks import FOLDER

from smartmem_rules import optimize

MODELS = {
    "swin_tiny": "swin_tiny_patch4_window7_224",
    "vit_base": "vit_base_patch16_224",
    "convnext_tiny": "convnext_tiny",
    "resnet50": "resnet50",
}
HEADER = "model | kernels | ours ms | torch on the device ms | torch host to host ms | torch / ours, host to host"
RUNS = 60


def main() -> int:
    """Measure and print."""
    try:
        import timm
        import torch
    except ImportError as error:
        print(f"{error}; install torch with CUDA, and timm", file=sys.stderr)
        return 2
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    rows, ratios = [], []
    for name, timm_name in MODELS.items():
        plan = optimize(FOLDER / f"{name}.onnx", device="nvidia")
        feeds = plan.random_feeds()
        with torch.inference_mode():
            compiled = torch.compile(timm.create_model(timm_name).cuda().eval(), mode="reduce-overhead")
            there, here = torch.randn(1, 3, 224, 224, device="cuda"), torch.randn(1, 3, 224, 224).pin_memory()

            def on_device(network: Any = compiled, x: Any = there) -> None:
                network(x)
                torch.cuda.synchronize()

            def from_host(network: Any = compiled, x: Any = there, y: Any = here) -> Any:
                return network(x.copy_(y, non_blocking=True)).cpu()

            def own(plan: Any = plan, feeds: Any = feeds) -> Any:
                return plan.run(feeds)

            ours, device, host = in_turns(own, on_device, from_host)
        ratios.append(host / ours)
        rows.append([name, str(len(plan.kernels)), *(f"{t:.2f}" for t in (ours, device, host)), f"{host / ours:.2f}x"])
    rows.append(["geometric mean", "", "", "", "", f"{statistics.geometric_mean(ratios):.2f}x"])
    print(markdown(HEADER, rows))
    return 0


def in_turns(*contenders: Callable[[], Any]) -> list[float]:
    """Median milliseconds of each, after a warm-up; each runs once before it is timed, as in a row of inferences."""
    for contender in contenders:
        for _ in range(8):
            contender()
    times: list[list[float]] = [[] for _ in contenders]
    for _ in range(RUNS):
        for contender, found in zip(contenders, times, strict=True):
            contender()
            began = time.perf_counter()
            contender()
            found.append((time.perf_counter() - began) * 1e3)
    return [statistics.median(found) for found in times]


if __name__ == "__main__":
    sys.exit(main())

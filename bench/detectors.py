"""torchvision's detectors, whole: boxes that are left after non-maximum suppression, beside ONNX Runtime's.

python bench/detectors.py FOLDER --export   # small models with random weights; needs torchvision
python bench/detectors.py FOLDER            # each at several images, by `smartmem_rules` and by ONNX Runtime

Weights are drawn, so scores lie close together: where two differ by rounding alone, boxes may change places. `moved`
counts boxes that lie elsewhere than ONNX Runtime's box of the same place in the order of scores.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

IMAGE = (3, 96, 112)
BRIGHTNESS = (0.3, 1.0, 4.0, 9.0)
CLOSE = 1e-3
"""How far boxes may be from each other, relative to the largest image side."""


def main() -> None:
    """Export, or run and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--export", action="store_true")
    given = parser.parse_args()
    if given.export:
        export(given.folder)
        return
    for path in sorted(given.folder.glob("*.onnx")):
        compare(path)


def compare(path: Path) -> None:
    """Print one line for a model and one for each image."""
    import onnxruntime  # an environment that exports need not have them

    import smartmem_rules as sm

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    reference = onnxruntime.InferenceSession(path, options)
    start = time.perf_counter()
    plan = sm.optimize(path)
    print(f"{path.stem}: {len(plan.kernels)} launches, planned and built in {time.perf_counter() - start:.1f} s")
    generator = np.random.default_rng(0)
    (given,) = reference.get_inputs()
    for brightness in BRIGHTNESS:
        feeds = {given.name: (generator.random(IMAGE) * brightness).astype(np.float32)}
        wanted, found = reference.run(None, feeds), list(plan.run(feeds).values())
        print(f"  {len(wanted[0])} boxes: {_verdict(wanted, found)}")


def _verdict(wanted: list[np.ndarray[Any, Any]], found: list[np.ndarray[Any, Any]]) -> str:
    if [one.shape for one in wanted] != [one.shape for one in found]:
        return f"WRONG, {[one.shape for one in found]} for {[one.shape for one in wanted]}"
    boxes, others = wanted[0], found[0]
    moved = int((np.abs(boxes - others).max(axis=1, initial=0) > CLOSE * max(IMAGE)).sum())
    scores = max(
        (float(np.abs(a - b).max(initial=0)) for a, b in zip(wanted, found, strict=True) if a.ndim == 1), default=0
    )
    return (
        f"{moved} moved, scores and labels differ by at most {scores:.1e}"
        if moved
        else f"equal, scores to {scores:.1e}"
    )


def export(folder: Path) -> None:
    """Write the models, with weights that are drawn large enough for some boxes to be kept."""
    import torch
    from torchvision.models import detection

    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    torch.manual_seed(3)
    for name, make in _models(detection).items():
        model = make().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim > 1:
                    parameter.mul_(2.0)
        torch.onnx.export(model, ([torch.rand(IMAGE)],), folder / f"{name}.onnx", opset_version=17, dynamo=False)


def _models(detection: Any) -> dict[str, Callable[[], Any]]:
    def backbone() -> Any:
        return detection.backbone_utils.mobilenet_backbone(backbone_name="mobilenet_v3_small", weights=None, fpn=True)

    def anchors(sizes: tuple[int, ...], ratios: tuple[float, ...]) -> Any:
        return detection.anchor_utils.AnchorGenerator(tuple((size,) for size in sizes), (ratios,) * len(sizes))

    unlearnt = {"weights": None, "weights_backbone": None, "num_classes": 4}
    size = {"min_size": 64, "max_size": 96}
    few = {"topk_candidates": 25, "detections_per_img": 15}
    return {
        "ssdlite": lambda: detection.ssdlite320_mobilenet_v3_large(**unlearnt, score_thresh=0.2, **few),
        "retinanet": lambda: detection.RetinaNet(
            backbone(), 4, score_thresh=0.005, anchor_generator=anchors((16, 32, 64), (0.5, 1.0, 2.0)), **size, **few
        ),
        "fcos": lambda: detection.FCOS(
            backbone(), 4, score_thresh=0.05, anchor_generator=anchors((8, 16, 32), (1.0,)), **size, **few
        ),
        "fasterrcnn": lambda: detection.fasterrcnn_mobilenet_v3_large_320_fpn(
            **unlearnt, min_size=96, max_size=128, box_score_thresh=0.1, box_detections_per_img=20,
            rpn_post_nms_top_n_test=40, rpn_pre_nms_top_n_test=60,
        ),
    }  # fmt: skip


if __name__ == "__main__":
    main()

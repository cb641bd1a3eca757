"""Ours beside torch.compile with CUDA graphs (TF32 off) on one NVIDIA device, in turns; torch with CUDA and timm.

`python bench/gpu_torch.py` prints medians: ours from host to host, and in each of torch.compile's modes torch with its
input on the device, and with its input from and its output to the host. The last column has the better of the modes.
Inputs lie in pinned memory on both sides, images as halves where both sides compute in halves. `--dtype float16` (or
`bfloat16`) also has our plan in single precision in the same turns, which takes floats, and errors relative to the
largest value of the first output: ours from ONNX Runtime in single precision, torch's, which has weights of its own,
from its own double precision. BERT needs transformers. With `--batch N` or `--exported`, and for other models of timm
by their names there, our plan is made of the network that torch runs, exported to ONNX: both errors are then from its
double precision.
"""

from __future__ import annotations

import argparse
import copy
import io
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx
from markdown_tables import markdown
from networks import FOLDER
from onnx import helper

from smartmem_rules import optimize

MODELS = {
    "swin_tiny": "swin_tiny_patch4_window7_224",
    "vit_base": "vit_base_patch16_224",
    "convnext_tiny": "convnext_tiny",
    "resnet50": "resnet50",
    "bert_base": "",
}
OTHERS = {
    "resnext50": "resnext50_32x4d",
    "regnetx_032": "regnetx_032",
    "mobilenetv2": "mobilenetv2_100",
    "efficientnet_b0": "efficientnet_b0",
}
"""Models by whose times nobody chose tiles for matrix units."""
TOKENS = 128
MODES = ("reduce-overhead", "max-autotune")
RUNS = 60
HALF = ("float16", "bfloat16")
TYPES = {
    "float32": onnx.TensorProto.FLOAT,
    "float16": onnx.TensorProto.FLOAT16,
    "bfloat16": onnx.TensorProto.BFLOAT16,
}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "models",
        nargs="*",
        default=list(MODELS),
        help=f"by default {', '.join(MODELS)}; {', '.join(OTHERS)}; and timm's models by their names",
    )
    parser.add_argument("--dtype", choices=("float32", *HALF), default="float32")
    parser.add_argument("--modes", nargs="+", default=list(MODES), help="of torch.compile")
    parser.add_argument("--batch", type=int, default=1, help="images at once")
    parser.add_argument("--exported", action="store_true", help="our plan is made of torch's network at batch 1, too")
    arguments = parser.parse_args()
    try:
        import timm  # noqa: F401
        import torch
    except ImportError as error:
        print(f"{error}; install torch with CUDA, and timm", file=sys.stderr)
        return 2
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    rows, ratios = [], []
    for name in arguments.models:
        row, ratio = measured(name, arguments.dtype, arguments.modes, arguments.batch, arguments.exported)
        rows.append(row)
        ratios.append(ratio)
        print(row, file=sys.stderr, flush=True)
    rows.append(["geometric mean", *[""] * (len(rows[0]) - 2), f"{statistics.geometric_mean(ratios):.2f}x"])
    print(markdown(header(arguments.dtype, arguments.modes), rows))
    return 0


def header(dtype: str, modes: Sequence[str]) -> str:
    """Names of the columns."""
    columns = ["model", "launches", "ours ms"]
    columns += ["ours in float32 ms"] if dtype in HALF else []
    for mode in modes:
        columns += [f"{mode} on the device ms", f"{mode} host to host ms"]
    columns += ["error, ours", "error, torch"] if dtype in HALF else []
    return " | ".join([*columns, "torch / ours, host to host"])


def measured(
    name: str, dtype: str, modes: Sequence[str], batch: int = 1, export: bool = False
) -> tuple[list[str], float]:
    """A row, and how many times as long as ours torch takes in the better of its modes."""
    import torch

    half = dtype in HALF
    network, example = peer(name, batch)
    ours_alone = batch == 1 and name in MODELS | OTHERS and not export
    source = onnx.load(FOLDER / f"{name}.onnx", load_external_data=False) if ours_alone else exported(network, example)
    plans = [optimize(taking(source, one), device="nvidia", dtype=one) for one in dict.fromkeys((dtype, "float32"))]
    feeds = plans[-1].random_feeds() if ours_alone else {"input": example.cpu().numpy()}
    given = fed_as(feeds, dtype)
    with torch.inference_mode():
        exact = first(copy.deepcopy(network).double()(example.double() if example.is_floating_point() else example))
        network = network.to(getattr(torch, dtype)) if half else network
        there = example.to(getattr(torch, dtype)) if half and example.is_floating_point() else example
        here = there.cpu().pin_memory()

        def on_device(compiled: Any) -> None:
            compiled(there)
            torch.cuda.synchronize()

        def from_host(compiled: Any) -> Any:
            return first(compiled(there.copy_(here, non_blocking=True))).cpu()

        own = [partial(p.run, p.pinned(fed)) for p, fed in zip(plans, (given, feeds), strict=False)]
        peers: list[Callable[[], Any]] = []
        for mode in modes:
            compiled = torch.compile(network, mode=mode)
            peers += [partial(on_device, compiled), partial(from_host, compiled)]
        times = in_turns(*own, *peers)
        error = max(float((run().double() - exact.cpu()).abs().max() / exact.abs().max()) for run in peers[1::2])
    ratio = min(times[len(own) + 1 :: 2]) / times[0]
    errors: list[str] = []
    if half:
        # of the first output, as torch's
        outputs = plans[0].run(given)
        if ours_alone:
            found = plans[0].check_or_reason().outputs.get(next(iter(outputs)))
        else:
            wanted = exact.cpu().numpy()
            found = float(abs(next(iter(outputs.values())) - wanted).max() / abs(wanted).max())
        errors = ["-" if found is None else f"{found:.1e}", f"{error:.1e}"]
    return [name, str(len(plans[0].kernels)), *(f"{time:.2f}" for time in times), *errors, f"{ratio:.2f}x"], ratio


def taking(source: onnx.ModelProto, dtype: str) -> onnx.ModelProto:
    """The model with inputs of a type in the place of floats."""
    if dtype == "float32":
        return source
    found = onnx.ModelProto()
    found.CopyFrom(source)
    for given in found.graph.input:
        if given.type.tensor_type.elem_type != onnx.TensorProto.FLOAT:
            continue
        given.type.tensor_type.elem_type = TYPES[dtype]
        widened = f"{given.name}_widened"
        for node in found.graph.node:
            node.input[:] = [widened if name == given.name else name for name in node.input]
        found.graph.node.insert(0, helper.make_node("Cast", [given.name], [widened], to=onnx.TensorProto.FLOAT))
    return found


def fed_as(feeds: Mapping[str, np.ndarray], dtype: str) -> dict[str, np.ndarray]:
    """The inputs of such a model."""
    narrow = helper.tensor_dtype_to_np_dtype(TYPES[dtype])
    return {name: fed.astype(narrow) if fed.dtype == np.float32 else fed for name, fed in feeds.items()}


def exported(network: Any, example: Any) -> onnx.ModelProto:
    """A network as an ONNX model."""
    import torch

    written = io.BytesIO()
    torch.onnx.export(
        copy.deepcopy(network).cpu(),
        (example.cpu(),),
        written,
        dynamo=False,
        opset_version=17,
        input_names=["input"],
        output_names=["output"],
    )
    return onnx.load_from_string(written.getvalue())


def peer(name: str, batch: int) -> tuple[Any, Any]:
    """The model in PyTorch with weights of its own, and inputs, both on the device."""
    import torch

    if name == "bert_base":
        import transformers

        return transformers.BertModel(transformers.BertConfig()).cuda().eval(), torch.randint(
            0, 30522, (batch, TOKENS), device="cuda"
        )
    import timm

    known = MODELS | OTHERS
    network = timm.create_model(known.get(name, name)).cuda().eval()
    return network, torch.randn(batch, 3, 224, 224, device="cuda")


def first(outputs: Any) -> Any:
    """The first of a model's outputs."""
    return outputs[0] if isinstance(outputs, (tuple, dict)) or hasattr(outputs, "last_hidden_state") else outputs


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

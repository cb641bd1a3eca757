"""Generates models with NNSmith (Liu et al., ASPLOS 2023) for `bench/fuzz.py --models FOLDER`.

NNSmith needs torch and pins nothing, but calls `torch.onnx.export` as torch did before 2.9; this script asks for the
exporter that NNSmith was written for.  Install NNSmith with `pip install 'smartmem-rules[fuzz]'`, best in an
environment of its own (torch is large), and run this script with that environment's Python:

    python bench/nnsmith_models.py build/nnsmith --count 200 --seed 1

Each seed gives FOLDER/nnsmith-SEED.onnx with its inputs beside it (.npz, by the names of the inputs).  A seed for which
NNSmith finds no model in its time leaves nothing; how many those are is printed.
"""

from __future__ import annotations

import argparse
import functools
import logging
import random
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
import torch.onnx

torch.onnx.export = functools.partial(torch.onnx.export, dynamo=False)  # NNSmith takes the function when it is imported

from nnsmith.abstract.extension import activate_ext  # noqa: E402
from nnsmith.graph_gen import model_gen  # noqa: E402
from nnsmith.materialize import Model  # noqa: E402
from nnsmith.narrow_spec import auto_opset  # noqa: E402

METHODS = ("symbolic-cinit", "symbolic-sinit", "concolic")
MOST_NODES = (3, 5, 8, 12, 20)
SECONDS = 10


def operators(model_type: Any) -> Any:
    """NNSmith's operators with the element types that the exporter takes; NNSmith tries them once and keeps a file."""
    opset = auto_opset(model_type, None)
    activate_ext(opset=opset, factory=None)
    return opset


def generate(model_type: Any, opset: Any, seed: int, path: Path) -> int:
    """Write one model and its inputs; the seed decides how large it is. Returns the number of its nodes."""
    chosen = random.Random(seed)
    most, method = chosen.choice(MOST_NODES), chosen.choices(METHODS, (8, 1, 1))[0]
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    generator = model_gen(
        opset=opset, method=method, seed=seed, max_elem_per_tensor=2**12, max_nodes=most, timeout_ms=SECONDS * 1000
    )
    model = model_type.from_gir(generator.make_concrete())
    model.refine_weights()
    oracle = model.make_oracle()
    proto = model.native_model
    proto.producer_name = f"nnsmith {seed}"
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in oracle.input.items()}
    np.savez(path.with_suffix(".npz"), **arrays)
    onnx.save(proto, str(path))
    return len(proto.graph.node)


def main() -> int:
    parser = argparse.ArgumentParser(description="models by NNSmith, with inputs")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="the first seed; the others follow")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="when to stop")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    model_type = Model.init("onnx", backend_target="cpu")
    model_type.add_seed_setter()
    opset = operators(model_type)
    begin, made, nodes, failed = time.monotonic(), 0, 0, dict[str, int]()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        if time.monotonic() - begin > arguments.seconds:
            break
        try:
            nodes += generate(model_type, opset, seed, arguments.folder / f"nnsmith-{seed}.onnx")
            made += 1
        except Exception as error:  # NNSmith, Z3 or the exporter: whatever they raise, this seed gives no model
            reason = f"{type(error).__name__}: {str(error)[:90]}"
            failed[reason] = failed.get(reason, 0) + 1
    print(f"{made} models with {nodes} nodes in {time.monotonic() - begin:.0f} s; without a model: {failed}")
    return 0 if made else 1


if __name__ == "__main__":
    sys.exit(main())

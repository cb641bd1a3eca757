"""Models that ONNX Runtime's quantizers wrote: our time, that of our float32, ONNX Runtime's, and the outputs.

`python bench/quantised_models.py resnet50 mobilenetv2 vit_base bert_base` quantizes shipped models (weights from
seeds) with four random inputs: activations of 8 bits per tensor, weights of int8 per channel, biases of int32. The
systems take turns: a pause, a run that does not count, then three runs. Printed are medians in milliseconds from
Python to Python;
with `--processor` the least processor time of a run instead, which other work on the computer changes less (threads of
ONNX Runtime do not spin then). `differ` is the part of the output's elements that are not ONNX Runtime's, `steps` the
largest difference in steps of the last quantizer. `--form dynamic` takes the dynamic quantizer (weights of int8 by
column, activations quantized when the model runs): outputs are floats then, and `steps` is the largest difference over
the largest output. `--float-biases` makes the biases floats, as quantization-aware training leaves them; ONNX Runtime
rounds them anew. `--disable RULE` leaves a rule out of ours.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from markdown_tables import markdown
from onnx import TensorProto, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from turns import in_turns

import smartmem_rules
from smartmem_rules.graph.zoo import save_materialized, shipped_model

Array = np.ndarray[Any, np.dtype[Any]]
Feeds = dict[str, Array]
MODELS = ("resnet50", "mobilenetv2", "vit_base", "bert_base")
TYPES = {"uint8": QuantType.QUInt8, "int8": QuantType.QInt8}
CALIBRATIONS = 4
RUNS = 3


def drawn(session: Any, seed: int) -> Feeds:
    """Inputs of a model: normally distributed floats, numbers of words, and ones and zeros of masks."""
    random = np.random.default_rng(seed)
    found: Feeds = {}
    for given in session.get_inputs():
        if "float" in given.type:
            found[given.name] = random.standard_normal(given.shape).astype(np.float32)
        else:
            most = 2 if "mask" in given.name or "type" in given.name else 1000
            found[given.name] = random.integers(0, most, given.shape).astype(np.int64)
    return found


class Calibration(CalibrationDataReader):  # type: ignore[misc]
    """Random inputs, of which the quantizer takes the ranges of activations."""

    def __init__(self, session: Any) -> None:
        self.session, self.seed = session, 0

    def get_next(self) -> Feeds | None:
        self.seed += 1
        return drawn(self.session, self.seed) if self.seed <= CALIBRATIONS else None


def session_of(path: Path, threads: int, spinning: bool = True) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if spinning else "0")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def quantized(name: str, folder: Path, form: str, kind: str) -> tuple[Path, Path]:
    """The model in floats, with normalizations folded as quantizers ask for, and its quantized form."""
    source, floats, target = (folder / f"{name}.{what}.onnx" for what in ("source", "float", form))
    save_materialized(shipped_model(name), source)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(floats)
    session = onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    if form == "dynamic":
        quantize_dynamic(floats, target, per_channel=True, weight_type=QuantType.QInt8)
        return floats, target
    quantize_static(
        str(floats),
        str(target),
        Calibration(session),
        quant_format=QuantFormat.QDQ if form == "qdq" else QuantFormat.QOperator,
        per_channel=True,
        activation_type=TYPES[kind],
        weight_type=QuantType.QInt8,
    )
    return floats, target


def with_float_biases(path: Path) -> None:
    """Compute what is dequantized of integers of 32 bits, and write the model again."""
    model = onnx.load(str(path))
    held = {one.name: one for one in model.graph.initializer}
    for node in list(model.graph.node):
        bias = held.get(node.input[0]) if node.op_type == "DequantizeLinear" else None
        if bias is not None and bias.data_type == TensorProto.INT32:
            floats = numpy_helper.to_array(bias).astype(np.float32) * numpy_helper.to_array(held[node.input[1]])
            model.graph.initializer.append(numpy_helper.from_array(floats.astype(np.float32), node.output[0]))
            model.graph.node.remove(node)
    onnx.save(model, str(path))


def times(systems: dict[str, Callable[[], object]], turns: int, processor: bool) -> dict[str, float]:
    """Milliseconds of each system."""
    found = in_turns(systems, turns, RUNS, time.process_time if processor else time.perf_counter)
    return {name: 1e3 * (min(all_) if processor else statistics.median(all_)) for name, all_ in found.items()}


def row(name: str, given: argparse.Namespace) -> list[str]:
    """The figures of one model."""
    with tempfile.TemporaryDirectory() as folder:
        floats, target = quantized(name, Path(folder), given.form, given.activations)
        if given.float_biases:
            with_float_biases(target)
        session = session_of(target, given.threads, not given.processor)
        integers = smartmem_rules.optimize(target, device="pocl", disable=given.disable)
        single = smartmem_rules.optimize(floats, device="pocl")
    feeds = drawn(session, 77)
    found = times(
        {
            "ours": lambda: integers.run(feeds),
            "float32": lambda: single.run(feeds),
            "ort": lambda: session.run(None, feeds),
        },
        given.turns,
        given.processor,
    )
    ours = next(iter(integers.run(feeds).values())).astype(np.float64)
    expected = np.asarray(session.run(None, feeds)[0], np.float64)
    apart = np.abs(ours - expected)
    largest = apart.max() / np.diff(np.unique(expected)).min(initial=np.inf)
    off = f"{apart.max() / np.abs(expected).max():.1e}" if given.form == "dynamic" else f"{largest:.0f}"
    return [
        name,
        *(f"{found[system]:.1f}" for system in ("ours", "float32", "ort")),
        f"{found['ours'] / found['float32']:.2f}",
        f"{found['ours'] / found['ort']:.2f}",
        f"{100 * np.mean(apart > 0):.2f} %",
        off,
    ]


def main() -> int:
    """Quantize and measure each model, then print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--form", choices=("qdq", "qoperator", "dynamic"), default="qdq")
    parser.add_argument("--activations", choices=tuple(TYPES), default="uint8")
    parser.add_argument("--float-biases", action="store_true", help="biases that stay floats")
    parser.add_argument("--disable", action="append", default=[], metavar="RULE", help="repeatable")
    parser.add_argument("--threads", type=int, default=2, help="of ONNX Runtime; ours are those of the device")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--processor", action="store_true", help="processor time instead of wall time")
    given = parser.parse_args()
    os.environ["SMARTMEM_PLANS"] = "off"
    rows = [row(name, given) for name in given.models]
    head = "model | ours, ms | our float32 | ONNX Runtime | ours / float32 | ours / ONNX Runtime | differ | steps"
    print(markdown(head, rows))
    print(f"Load of the computer: {os.getloadavg()[0]:.1f}; {os.cpu_count()} cores.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

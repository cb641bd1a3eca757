"""Tokens a second of language models with a cache, beside ONNX Runtime: prompts, then tokens one by one.

`python bench/decoding.py pythia_70m llama_160m` makes models with weights from seeds (`bench/zoo/decoders.py`), in
float32 and with weights of 4 bits. Both systems take turns in one process: a pause, in which threads that spin go to
sleep, a prompt of 128 tokens, then tokens one by one, each the greatest. ONNX Runtime keeps its cache in its own memory
(`run_with_ort_values`). Printed are medians of the turns, the peak memory of a process of ours that generates the same
from a file (`--memory`), and whether the tokens are the same.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from markdown_tables import markdown

import smartmem_rules
from smartmem_rules.decoding.report import memory_of

sys.path.insert(0, str(Path(__file__).resolve().parent))

from zoo.decoders import SHAPES, decoder

PAUSE = 0.1
"""Seconds after which no thread of the other system spins any more."""
BLOCK = 32
"""Weights that share a scale."""


@dataclass
class Times:
    """What the turns of a system took.

    Attributes:
        prefill: milliseconds until the first token.
        token: milliseconds of each further one, in the mean of a turn.
        tokens: of the last turn.
    """

    prefill: list[float] = field(default_factory=list)
    token: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def add(self, moments: list[float], tokens: list[int]) -> None:
        """One turn: when it began, and when each token was there."""
        self.prefill.append(1e3 * (moments[1] - moments[0]))
        self.token.append(1e3 * (moments[-1] - moments[1]) / (len(moments) - 2))
        self.tokens = tokens


class Peer:
    """The model in ONNX Runtime, greedy, with its cache in the memory of ONNX Runtime."""

    def __init__(self, path: Path, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.inputs = {value.name: value.shape for value in self.session.get_inputs()}
        self.outputs = [value.name for value in self.session.get_outputs()]

    def turn(self, prompt: list[int], tokens: int, times: Times) -> None:
        """Generate once."""
        moments, found = [time.perf_counter()], []
        cached = {
            name: _value(np.zeros((1, shape[1], 0, shape[3]), np.float32))
            for name, shape in self.inputs.items()
            if name.startswith("past_key_values.")
        }
        given, past = np.array([prompt], np.int64), 0
        for _ in range(tokens):
            count = given.shape[1]
            feeds = {
                "input_ids": _value(given),
                "attention_mask": _value(np.ones((1, past + count), np.int64)),
                **cached,
            }
            if "position_ids" in self.inputs:
                feeds["position_ids"] = _value(np.arange(past, past + count)[None])
            results = self.session.run_with_ort_values(self.outputs, feeds)
            outputs = dict(zip(self.outputs, results, strict=True))
            found.append(int(outputs["logits"].numpy()[0, -1].argmax()))
            moments.append(time.perf_counter())
            cached = {name: outputs[name.replace("past_key_values", "present")] for name in cached}
            past, given = past + count, np.array([[found[-1]]], np.int64)
        times.add(moments, found)


def _value(array: np.ndarray[Any, Any]) -> Any:
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def our_turn(generator: smartmem_rules.Generator, prompt: list[int], tokens: int, times: Times) -> None:
    """Generate once."""
    moments, found = [time.perf_counter()], []
    for (token,) in generator.stream(prompt, tokens):
        found.append(token or 0)
        moments.append(time.perf_counter())
    times.add(moments, found)


def row(name: str, bits: int, given: argparse.Namespace, folder: Path) -> list[str]:
    """The figures of a model."""
    path = folder / f"{name}_{bits}.onnx"
    if not path.exists():
        write(name, bits, path)
    peak = peak_of(path, given)
    generator = smartmem_rules.Generator(path, bound=given.bound, cache=given.cache)
    generator.prepare()
    peer = Peer(path, given.threads)
    prompt = np.random.default_rng(1).integers(0, SHAPES[name].vocabulary, given.prompt).tolist()
    ours, theirs = Times(), Times()
    for _ in range(given.turns):
        time.sleep(PAUSE)
        our_turn(generator, prompt, given.tokens, ours)
        time.sleep(PAUSE)
        peer.turn(prompt, given.tokens, theirs)
    memory = memory_of(generator)
    alike = next((k for k, (a, b) in enumerate(zip(ours.tokens, theirs.tokens, strict=True)) if a != b), given.tokens)
    middle = statistics.median
    needed = (memory.weights + memory.cache) / 2**20
    return [
        name,
        str(bits),
        f"{1e3 / middle(ours.token):.1f}",
        f"{1e3 / middle(theirs.token):.1f}",
        f"{middle(theirs.token) / middle(ours.token):.2f}",
        f"{middle(ours.prefill):.0f}",
        f"{middle(theirs.prefill):.0f}",
        f"{middle(theirs.prefill) / middle(ours.prefill):.2f}",
        f"{needed:.0f}",
        f"{peak:.0f}",
        f"{alike} of {given.tokens}",
    ]


def write(name: str, bits: int, path: Path) -> None:
    """The model as a file."""
    model = decoder(SHAPES[name])
    if bits < 32:
        model = smartmem_rules.quantize(model, weights=f"int{bits}", block=BLOCK)
    large = sum(len(tensor.raw_data) for tensor in model.graph.initializer) > 1_800_000_000
    onnx.save(model, str(path), save_as_external_data=large, location=f"{path.name}.data" if large else None)


def peak_of(path: Path, given: argparse.Namespace) -> float:
    """MiB of a process that generates from a file, at its peak, less what it has before; once its plans are kept."""
    command = [sys.executable, __file__, "--memory", str(path), "--bound", str(given.bound), "--cache", given.cache]
    for _ in range(2):
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(found.split()[-1])


def peak_here(path: Path, bound: int, cache: str) -> float:
    """The same of this process."""
    before = _kib("VmRSS")
    smartmem_rules.Generator(path, bound=bound, cache=cache).generate([1, 2, 3], 4)
    return (_kib("VmHWM") - before) / 1024


def _kib(name: str) -> int:
    """What the system says of this process; its resource usage would begin with that of the one that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def main() -> int:
    """Measure each model, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=["pythia_70m", "llama_160m"])
    parser.add_argument("--bits", type=int, nargs="+", default=[32, 4])
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--bound", type=int, default=512)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2, help="of ONNX Runtime; ours are those of the device")
    parser.add_argument("--cache", default="model", help="our type of cache: model or int8")
    parser.add_argument("--memory", type=Path, help="print the peak of a process that generates with this model")
    parser.add_argument("--folder", type=Path, help="where models and plans are kept for the next call")
    given = parser.parse_args()
    if given.memory is not None:
        print(peak_here(given.memory, given.bound, given.cache))
        return 0
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["SMARTMEM_PLANS"] = str(folder / "plans")
        for name in given.models:
            rows += [row(name, bits, given, folder) for bits in given.bits]
    head = (
        "model | bits | tokens/s | ORT | times | prefill, ms | ORT | times | weights and cache, MiB | peak, MiB | alike"
    )
    print(markdown(head, rows))
    print(f"Load of the computer: {os.getloadavg()[0]:.1f}; {os.cpu_count()} cores.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Tokens a second beside llama.cpp: a Llama with weights from seeds, ours of 4 bits and the same as a file of Q4_0.

`python bench/llama_cpp_turns.py llama_160m` needs the packages `gguf` and `llama-cpp-python`, which builds llama.cpp.
Both systems take turns in one process with `--threads` threads each: a pause, in which threads that spin go to sleep,
a prompt, then tokens one by one. Printed are times of a prompt and of a token, medians of the turns: of one thread its
processor time, which is what the clock would say on a quiet computer, of several what the clock says. Blocks have 32
weights in both; the table of words is of 4 bits in both, too. `--folder` keeps models and plans for the next call.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import llama_cpp
import numpy as np
import onnx
from markdown_tables import markdown

import smartmem_rules

sys.path.insert(0, str(Path(__file__).resolve().parent))

from zoo.decoders import LLAMA, SHAPES, Shape, decoder

Array = np.ndarray[Any, np.dtype[Any]]
PAUSE = 0.1
"""Seconds after which no thread of the other system spins any more."""
NAMES = {
    "attention.query": "attn_q", "attention.key": "attn_k", "attention.value": "attn_v", "attention.out": "attn_output",
    "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down", "input_norm": "attn_norm", "post_norm": "ffn_norm",
}  # fmt: skip
"""What GGUF calls the weights of a layer."""


def write(shape: Shape, model: onnx.ModelProto, path: Path) -> None:
    """The model as a GGUF file: matrices in Q4_0, normalizations in float32, no words."""
    held = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(shape.positions)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_rope_dimension_count(shape.turned)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_tokenizer_model("none")
    _add(writer, "token_embd", held["embed.weight"])
    _add(writer, "output_norm", held["final_norm.weight"])
    _add(writer, "output", held["lm_head.weight"].T)
    for layer in range(shape.layers):
        for ours, theirs in NAMES.items():
            value = held[f"layers.{layer}.{ours}.weight"]
            heads = {"attn_q": shape.heads, "attn_k": shape.kv_heads}.get(theirs)
            turned = value.T if heads is None else _pairs_beside(value.T, heads)
            _add(writer, f"blk.{layer}.{theirs}", turned)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _pairs_beside(rows: Array, heads: int) -> Array:
    """Channels that turn together side by side, where ours are half a head apart."""
    return rows.reshape(heads, 2, -1, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def _add(writer: gguf.GGUFWriter, name: str, value: Array) -> None:
    name, value = f"{name}.weight", np.ascontiguousarray(value, np.float32)
    kind = gguf.GGMLQuantizationType.Q4_0
    if value.ndim == 1:
        writer.add_tensor(name, value)
    else:
        writer.add_tensor(name, gguf.quants.quantize(value, kind), raw_dtype=kind)


class Peer:
    """The file in llama.cpp, greedy."""

    def __init__(self, path: Path, bound: int, threads: int) -> None:
        self.clock = clock_of(threads)
        llama_cpp.llama_log_set(_SILENT, None)
        llama_cpp.llama_backend_init()
        given = llama_cpp.llama_model_default_params()
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), given)
        context = llama_cpp.llama_context_default_params()
        context.n_ctx, context.n_batch, context.n_ubatch = bound, bound, bound
        context.n_threads = context.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, context)
        self.words = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))

    def turn(self, prompt: list[int], tokens: int) -> list[float]:
        """Generate once; gives the moments at which it began and each token was there."""
        time.sleep(PAUSE)
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)
        moments, given = [self.clock()], prompt
        for _ in range(tokens):
            words = (llama_cpp.llama_token * len(given))(*given)
            if llama_cpp.llama_decode(self.context, llama_cpp.llama_batch_get_one(words, len(given))):
                raise SystemExit("llama.cpp does not take the tokens")
            logits = llama_cpp.llama_get_logits_ith(self.context, -1)
            given = [int(np.ctypeslib.as_array(logits, (self.words,)).argmax())]
            moments.append(self.clock())
        return moments


def clock_of(threads: int) -> Callable[[], float]:
    """What tells the time."""
    return time.process_time if threads == 1 else time.perf_counter


def _silent(level: int, text: bytes, data: ctypes.c_void_p) -> None:
    del level, text, data


_SILENT = llama_cpp.llama_log_callback(_silent)


def our_turn(generator: smartmem_rules.Generator, prompt: list[int], tokens: int, threads: int) -> list[float]:
    """The same by ours."""
    time.sleep(PAUSE)
    clock = clock_of(threads)
    moments = [clock()]
    for _ in generator.stream(prompt, tokens):
        moments.append(clock())
    return moments


def row(name: str, given: argparse.Namespace, folder: Path) -> list[str]:
    """The figures of a model."""
    shape = SHAPES[name]
    if shape.form != LLAMA:
        raise SystemExit(f"{name} is no Llama, which is the form that this file writes")
    theirs, ours = folder / f"{name}.gguf", folder / f"{name}.onnx"
    if not ours.exists():
        model = decoder(shape)
        write(shape, model, theirs)
        onnx.save(smartmem_rules.quantize(model, weights="int4", block=32), str(ours))
    generator = smartmem_rules.Generator(ours, bound=given.bound)
    generator.prepare()
    peer = Peer(theirs, given.bound, given.threads)
    prompt = np.random.default_rng(1).integers(0, shape.vocabulary, given.prompt).tolist()
    turns = [
        (our_turn(generator, prompt, given.tokens, given.threads), peer.turn(prompt, given.tokens))
        for _ in range(given.turns)
    ]
    found = []
    for part in (_token, _prompt):
        first, second = (statistics.median(part(moments) for moments in both) for both in zip(*turns, strict=True))
        found += [f"{first:.2f}", f"{second:.2f}", f"{second / first:.2f}"]
    return [name, *found]


def _token(moments: list[float]) -> float:
    return 1e3 * (moments[-1] - moments[1]) / (len(moments) - 2)


def _prompt(moments: list[float]) -> float:
    return 1e3 * (moments[1] - moments[0])


def main() -> int:
    """Measure each model, then print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["llama_160m"])
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--bound", type=int, default=512)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where models and plans are kept")
    given = parser.parse_args()
    if given.threads < (os.cpu_count() or 1):
        # with a number of its own PoCL's threads are not kept on cores of their own, and two often share one
        os.environ["POCL_MAX_PTHREAD_COUNT"] = str(given.threads)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["SMARTMEM_PLANS"] = str(folder / "plans")
        rows = [row(name, given, folder) for name in given.models]
    head = "model | a token, ms | llama.cpp | times | a prompt, ms | llama.cpp | times"
    print(markdown(head, rows))
    print(f"Load of the computer: {os.getloadavg()[0]:.1f}; {os.cpu_count()} cores.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

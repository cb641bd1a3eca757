"""Greedy tokens of language models beside ONNX Runtime's logits: `python bench/greedy.py pythia_70m llama_160m`.

A model with weights from a seed (`bench/zoo/decoders.py`) continues a prompt greedily. ONNX Runtime, without its graph
optimizations, then reads the prompt and all tokens at once, and each token has to be the greatest of its logits behind
the tokens before it. One that is not counts as a tie if its logit is less than 1e-4 below the greatest. So every token
is judged, those behind a tie as well, and both systems see the same text.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime
from decoding import BLOCK, write
from markdown_tables import markdown
from zoo.decoders import SHAPES

import smartmem_rules

HEADER = "model | bits | the greatest | ties | wrong | first below | furthest below | closest two | different tokens"
MODELS = ("pythia_70m", "pythia_160m", "pythia_410m", "pythia_1b", "llama_160m")
TIE = 1e-4
"""Logits that are nearer to each other may change places."""


def judged(name: str, given: argparse.Namespace, folder: Path) -> tuple[list[str], bool]:
    """The row of a model, and whether each of its tokens is the greatest, or one of a tie."""
    path = folder / f"{name}_{given.bits}.onnx"
    if not path.exists():
        write(name, given.bits, path)
    prompt = np.random.default_rng(given.seed).integers(0, SHAPES[name].vocabulary, given.prompt).tolist()
    generator = smartmem_rules.Generator(path, bound=given.prompt + given.tokens)
    tokens = [int(token or 0) for (token,) in generator.stream(prompt, given.tokens)]
    logits = logits_of(path, [*prompt, *tokens])[given.prompt - 1 : -1]
    below = logits.max(axis=-1) - logits[np.arange(len(tokens)), tokens]
    second = np.partition(logits, -2, axis=-1)[:, -2]
    closest = float(np.min(logits.max(axis=-1) - second))
    first = np.flatnonzero(below > 0)
    row = [
        name,
        str(given.bits),
        str(int((below == 0).sum())),
        str(int(((below > 0) & (below < TIE)).sum())),
        str(int((below >= TIE).sum())),
        str(int(first[0])) if first.size else "none",
        f"{below.max():.1e}",
        f"{closest:.1e}",
        str(len(set(tokens))),
    ]
    return row, bool((below < TIE).all())


def logits_of(path: Path, text: list[int]) -> np.ndarray:
    """Of each position of a text, by ONNX Runtime: shape (positions, vocabulary)."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feeds = {
        "input_ids": np.array([text], np.int64),
        "attention_mask": np.ones((1, len(text)), np.int64),
        "position_ids": np.arange(len(text))[None],
    }
    inputs = {value.name: value.shape for value in session.get_inputs()}
    for name, shape in inputs.items():
        if name.startswith("past_key_values."):
            feeds[name] = np.zeros((1, shape[1], 0, shape[3]), np.float32)
    (logits,) = session.run(["logits"], {name: feeds[name] for name in inputs})
    found: np.ndarray = np.asarray(logits)[0]
    return found


def main() -> int:
    """Judge each model, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--bits", type=int, default=32, help=f"of the weights; below 32 in blocks of {BLOCK}")
    parser.add_argument("--prompt", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--seed", type=int, default=1, help="of the prompt")
    parser.add_argument("--folder", type=Path, help="where models are kept for the next call")
    given = parser.parse_args()
    with TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        rows = [judged(name, given, folder) for name in given.models]
    print(markdown(HEADER, [row for row, _ in rows]))
    return 0 if all(good for _, good in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

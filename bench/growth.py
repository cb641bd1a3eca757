"""How the time of optimization grows: Swin-like stacks of 12, 24, 48 and 96 blocks, or graphs of one shape.

`python bench/growth.py` prints CPU seconds by stage, and seconds a block over those of the smallest stack: linear
growth is 1. Blocks attend in windows of 7 x 7 of a 28 x 28 map of 96 channels; every second one shifts its windows.
`python bench/growth.py --shape chain 1000 5000 20000` does the same for a chain of so many nodes; the other shapes are
`wide` (products side by side and the sum of all) and `views` (reshapes and transpositions).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from figures import STAGES, figures
from growth_shapes import SHAPES
from markdown_tables import markdown
from onnx import TensorProto, helper, numpy_helper

SIDE, WINDOW, WIDTH, HEADS = 28, 7, 96, 3
COUNT = SIDE // WINDOW
TOKENS = WINDOW * WINDOW
HEAD = WIDTH // HEADS
STACK = "stack"


class Stack:
    """A graph under construction."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """A node with one output, whose name is given back."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=f"{operator}_{name}", **attributes))
        return name

    def constant(self, value: np.ndarray | list[int]) -> str:
        """A constant tensor."""
        name = f"c{len(self.constants)}"
        array = np.asarray(value, dtype=np.int64) if isinstance(value, list) else value
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape: int) -> str:
        """Random weights of a size that keeps activations in bounds."""
        return self.constant((self.random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def linear(self, x: str, given: int, made: int) -> str:
        """A product with a bias."""
        return self.add("Add", self.add("MatMul", x, self.weight(given, made)), self.weight(made))

    def normalized(self, x: str) -> str:
        """Layer normalisation over the channels."""
        scale = self.constant(np.ones(WIDTH, dtype=np.float32))
        return self.add("LayerNormalization", x, scale, self.weight(WIDTH), axis=-1, epsilon=1e-5)

    def reshaped(self, x: str, *shape: int) -> str:
        """Another shape."""
        return self.add("Reshape", x, self.constant(list(shape)))

    def rolled(self, x: str, by: int) -> str:
        """Rows and columns moved round by some places, as exporters write it: two slices and their concatenation."""
        for axis in (1, 2):
            ends = [(-by, SIDE), (0, -by)]
            parts = []
            for first, last in ends:
                bounds = (self.constant([first]), self.constant([last]), self.constant([axis]))
                parts.append(self.add("Slice", x, *bounds))
            x = self.add("Concat", *parts, axis=axis)
        return x

    def attention(self, x: str, shift: int) -> str:
        """Attention in windows, shifted ones with a mask."""
        x = self.reshaped(x, 1, SIDE, SIDE, WIDTH)
        if shift:
            x = self.rolled(x, -shift)
        x = self.reshaped(x, 1, COUNT, WINDOW, COUNT, WINDOW, WIDTH)
        x = self.reshaped(self.add("Transpose", x, perm=[0, 1, 3, 2, 4, 5]), COUNT**2, TOKENS, WIDTH)
        parts = self.reshaped(self.linear(x, WIDTH, 3 * WIDTH), COUNT**2, TOKENS, 3, HEADS, HEAD)
        parts = self.add("Transpose", parts, perm=[2, 0, 3, 1, 4])
        q, k, v = (self.add("Gather", parts, self.constant(np.array(i)), axis=0) for i in range(3))
        q = self.add("Mul", q, self.constant(np.array(HEAD**-0.5, dtype=np.float32)))
        scores = self.add("MatMul", q, self.add("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.add("Add", scores, self.weight(1, HEADS, TOKENS, TOKENS))
        if shift:
            scores = self.add("Add", scores, self.weight(COUNT**2, 1, TOKENS, TOKENS))
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), v)
        mixed = self.reshaped(self.add("Transpose", mixed, perm=[0, 2, 1, 3]), COUNT**2, TOKENS, WIDTH)
        x = self.reshaped(self.linear(mixed, WIDTH, WIDTH), 1, COUNT, COUNT, WINDOW, WINDOW, WIDTH)
        x = self.reshaped(self.add("Transpose", x, perm=[0, 1, 3, 2, 4, 5]), 1, SIDE, SIDE, WIDTH)
        if shift:
            x = self.rolled(x, shift)
        return self.reshaped(x, 1, SIDE * SIDE, WIDTH)

    def block(self, x: str, shift: int) -> str:
        """Attention and two products, each added to what came in."""
        x = self.add("Add", x, self.attention(self.normalized(x), shift))
        inner = self.linear(self.normalized(x), WIDTH, 4 * WIDTH)
        half = self.constant(np.array(0.5, dtype=np.float32))
        root, one = (self.constant(np.array(c, dtype=np.float32)) for c in (2**0.5, 1.0))
        grown = self.add("Add", self.add("Erf", self.add("Div", inner, root)), one)
        inner = self.add("Mul", self.add("Mul", inner, grown), half)
        return self.add("Add", x, self.linear(inner, 4 * WIDTH, WIDTH))


def stack(blocks: int) -> onnx.ModelProto:
    """A model of so many blocks."""
    made = Stack(blocks)
    x = "x"
    for i in range(blocks):
        x = made.block(x, WINDOW // 2 if i % 2 else 0)
    made.nodes[-1].output[0] = "y"
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, SIDE * SIDE, WIDTH]) for n in ("x", "y")]
    graph = helper.make_graph(made.nodes, f"stack{blocks}", values[:1], values[1:], made.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def main() -> int:
    """Optimize each stack in a process of its own, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("blocks", nargs="*", type=int, help="or nodes, with --shape")
    parser.add_argument("--shape", choices=[STACK, *SHAPES], default=STACK)
    parser.add_argument("--device", default="pocl")
    parser.add_argument("--runs", type=int, default=3, help="of each size, in turns; the fastest counts")
    parser.add_argument("--plot", type=Path, help="draw seconds over sizes into this file (.svg, .png)")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    make, least = (stack, 1) if arguments.shape == STACK else (SHAPES[arguments.shape], 10)
    if arguments.one:
        figures(make(least), "smartmem", arguments.device, "auto")  # what is loaded or compiled once is no growth
        print(json.dumps(figures(make(arguments.blocks[0]), "smartmem", arguments.device, "auto")))
        return 0
    sizes = arguments.blocks or ([12, 24, 48, 96] if arguments.shape == STACK else [1000, 2000, 5000, 10_000, 20_000])
    best: dict[int, dict[str, Any]] = {}
    for _ in range(arguments.runs):
        for blocks in sizes:
            command = [sys.executable, __file__, "--one", str(blocks), "--device", arguments.device]
            command += ["--shape", arguments.shape]
            one = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            if blocks not in best or total(one) < total(best[blocks]):
                best[blocks] = one
    first = sizes[0]
    rows = []
    for blocks, one in best.items():
        relative = total(one) / blocks / (total(best[first]) / first)
        stages = (f"{one['seconds'][s]:.2f}" for s in STAGES)
        rows.append(
            [str(blocks), str(one["operators"]), str(one["kernels"]), *stages, f"{total(one):.2f}", f"{relative:.2f}"]
        )
    unit = "block" if arguments.shape == STACK else "node"
    header = f"{unit}s | operators | kernels | {' | '.join(STAGES)} | all, s of CPU | a {unit}, over the first"
    print(markdown(header, rows))
    if arguments.plot is not None:
        draw({blocks: total(one) for blocks, one in best.items()}, f"{unit}s", arguments.plot)
    return 0


def draw(seconds: dict[int, float], unit: str, path: Path) -> None:
    """Seconds over sizes, beside the line of linear growth from the smallest size on."""
    from matplotlib.figure import Figure

    sizes = sorted(seconds)
    figure = Figure(figsize=(6.0, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(sizes, [seconds[size] for size in sizes], "o-", label="optimize")
    axes.plot(sizes, [seconds[sizes[0]] * size / sizes[0] for size in sizes], "--", color="gray", label="linear")
    axes.set_xlabel(unit)
    axes.set_ylabel("s of CPU")
    axes.set_xticks(sizes)
    axes.legend()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def total(one: dict[str, Any]) -> float:
    """CPU seconds of all stages."""
    return float(sum(one["seconds"].values()))


if __name__ == "__main__":
    sys.exit(main())

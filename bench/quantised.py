"""Products of weights of few bits: size of the plan, time and error, beside float32 and ONNX Runtime.

`python bench/quantised.py --layers 4` measures a model of gated perceptrons for one row instead (1024 to 2816 columns
and back, with normalizations), as a step of decoding has them.

`python bench/quantised.py` measures `MatMulNBits` models with weights from seeds: the plan with packed weights, the
plan with the same weights as float32 (`disable=["weights_in_words"]`), and ONNX Runtime's own operator on two threads.
They take turns: a pause, in which threads that spin go to sleep, a run that does not count, then five runs. Printed are
medians in microseconds, from Python to Python; the bytes of the plan's file over those of the weights in halves; and
the largest error over the largest output, from products in double precision.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from markdown_tables import markdown
from onnx import TensorProto, helper, numpy_helper
from turns import in_turns

import smartmem_rules

Array = np.ndarray[Any, np.dtype[Any]]
SHAPES = ("1x2048x2048", "1x2048x8192", "1x8192x2048", "16x2048x2048", "128x2048x2048")
WIDTH, HIDDEN = 1024, 2816
RUNS = 5
"""Runs of one turn."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A product x [rows, depth] times weights [depth, columns]."""

    rows: int
    depth: int
    columns: int
    bits: int
    block: int

    @property
    def drawn(self) -> tuple[Array, Array]:
        """The integers and the scales, from a seed, of the columns one after the other."""
        random = np.random.default_rng(self.depth + self.columns + self.bits)
        blocks = -(-self.depth // self.block)
        integers = random.integers(0, 2**self.bits, (self.columns, blocks * self.block), dtype=np.uint8)
        return integers, (random.random((self.columns, blocks), dtype=np.float32) + 1) / 100

    def node(self, x: str, name: str) -> tuple[onnx.NodeProto, list[onnx.TensorProto]]:
        """The product as `MatMulNBits`, with the zero points that it has by itself, and its constants."""
        integers, scales = self.drawn
        each = 8 // self.bits
        places = (np.arange(each) * self.bits).astype(np.uint8)
        packed = np.bitwise_or.reduce(integers.reshape(self.columns, -1, each) << places, axis=2)
        constants = [
            numpy_helper.from_array(packed.reshape(self.columns, scales.shape[1], -1), f"{name}.weights"),
            numpy_helper.from_array(scales, f"{name}.scales"),
        ]
        names = [x, *(one.name for one in constants)]
        node = helper.make_node("MatMulNBits", names, [name], name, domain="com.microsoft")
        for key, size in (("K", self.depth), ("N", self.columns), ("bits", self.bits), ("block_size", self.block)):
            node.attribute.append(helper.make_attribute(key, size))
        return node, constants

    @property
    def model(self) -> onnx.ModelProto:
        """The product alone."""
        node, constants = self.node("x", "y")
        return whole([node], constants, "y", (self.rows, self.depth), (self.rows, self.columns))

    def product(self, x: Array) -> Array:
        """The product in double precision."""
        integers, scales = self.drawn
        values = (integers - 2.0 ** (self.bits - 1)) * scales.astype(np.float64).repeat(self.block, axis=1)
        exact: Array = x.astype(np.float64) @ values[:, : self.depth].T
        return exact


def whole(
    nodes: list[onnx.NodeProto],
    constants: list[onnx.TensorProto],
    output: str,
    given: tuple[int, int],
    made: tuple[int, int],
) -> onnx.ModelProto:
    """A model with the input `x`."""
    graph = helper.make_graph(
        nodes,
        "quantised",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, given)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, made)],
        constants,
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def perceptrons(layers: int, bits: int, block: int) -> onnx.ModelProto:
    """Gated perceptrons with residual sums, for one row."""
    wide = Case(rows=1, depth=WIDTH, columns=HIDDEN, bits=bits, block=block)
    back = Case(rows=1, depth=HIDDEN, columns=WIDTH, bits=bits, block=block)
    nodes, constants, x = [], [], "x"
    for layer in range(layers):
        n, y = f"n{layer}", f"y{layer}"
        constants.append(numpy_helper.from_array(np.ones(WIDTH, np.float32), f"{n}.scale"))
        nodes.append(helper.make_node("SimplifiedLayerNormalization", [x, f"{n}.scale"], [n], n, axis=-1))
        parts = [wide.node(n, f"gate{layer}"), wide.node(n, f"up{layer}"), back.node(f"h{layer}", f"down{layer}")]
        constants += [tensor for _, held in parts for tensor in held]
        nodes += [node for node, _ in parts[:2]]
        nodes.append(helper.make_node("Sigmoid", [f"gate{layer}"], [f"s{layer}"]))
        nodes.append(helper.make_node("Mul", [f"gate{layer}", f"s{layer}"], [f"a{layer}"]))
        nodes.append(helper.make_node("Mul", [f"a{layer}", f"up{layer}"], [f"h{layer}"]))
        nodes += [parts[2][0], helper.make_node("Add", [x, f"down{layer}"], [y])]
        x = y
    return whole(nodes, constants, x, (1, WIDTH), (1, WIDTH))


def medians(systems: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Microseconds of each system."""
    return {name: 1e6 * statistics.median(times) for name, times in in_turns(systems, turns, RUNS).items()}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A model's plans and outputs.

    Attributes:
        times: microseconds of each system.
        size: bytes of the plan's file.
    """

    times: dict[str, float]
    packed: Array
    reference: Array
    size: int


def measured(model: onnx.ModelProto, feeds: dict[str, Array], threads: int, turns: int) -> Measured:
    """Run a model in all ways."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    packed = smartmem_rules.optimize(model, device="pocl")
    floats = smartmem_rules.optimize(model, device="pocl", disable=["weights_in_words"])
    with tempfile.TemporaryDirectory() as folder:
        packed.save(Path(folder) / "product.plan")
        size = (Path(folder) / "product.plan").stat().st_size
    times = medians(
        {
            "packed": lambda: packed.run(feeds),
            "floats": lambda: floats.run(feeds),
            "onnxruntime": lambda: session.run(None, feeds),
        },
        turns,
    )
    (output,) = packed.run(feeds).values()
    return Measured(times=times, packed=output, reference=np.asarray(session.run(None, feeds)[0]), size=size)


def row(name: str, bits: int, weights: int, found: Measured, exact: Array | None) -> list[str]:
    """The figures of a model.

    Args:
        exact: its output in double precision; None compares the output with ONNX Runtime's.
    """

    def error(output: Array, expected: Array) -> str:
        return f"{np.abs(output - expected).max() / np.abs(expected).max():.1e}"

    times = found.times
    right = found.reference if exact is None else exact
    return [
        name,
        str(bits),
        f"{found.size / (2 * weights):.3f}",
        *(f"{times[system]:.0f}" for system in ("packed", "floats", "onnxruntime")),
        f"{times['floats'] / times['packed']:.2f}",
        f"{times['onnxruntime'] / times['packed']:.2f}",
        error(found.packed, right),
        "" if exact is None else error(found.reference, exact),
    ]


def product_row(case: Case, threads: int, turns: int) -> list[str]:
    """The figures of a product."""
    x = np.random.default_rng(1).standard_normal((case.rows, case.depth)).astype(np.float32)
    found = measured(case.model, {"x": x}, threads, turns)
    name = f"{case.rows} x {case.depth} x {case.columns}"
    return row(name, case.bits, case.depth * case.columns, found, case.product(x))


def layers_row(layers: int, bits: int, block: int, threads: int, turns: int) -> list[str]:
    """The figures of gated perceptrons."""
    x = np.random.default_rng(1).standard_normal((1, WIDTH)).astype(np.float32)
    found = measured(perceptrons(layers, bits, block), {"x": x}, threads, turns)
    return row(f"{layers} layers", bits, 3 * layers * WIDTH * HIDDEN, found, None)


def main() -> int:
    """Measure each product, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", nargs="*", default=SHAPES, help="ROWSxDEPTHxCOLUMNS")
    parser.add_argument("--layers", type=int, help="of gated perceptrons, in the place of products")
    parser.add_argument("--bits", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2, help="of ONNX Runtime; ours are those of the device")
    given = parser.parse_args()
    os.environ["SMARTMEM_PLANS"] = "off"
    rows = []
    for bits in given.bits if given.layers else ():
        rows.append(layers_row(given.layers, bits, given.block, given.threads, given.turns))
    for shape in () if given.layers else given.shapes:
        sizes = dict(zip(("rows", "depth", "columns"), map(int, shape.split("x")), strict=True))
        for bits in given.bits:
            case = Case(**sizes, bits=bits, block=given.block)
            rows.append(product_row(case, given.threads, given.turns))
    head = "product | bits | file / halves | packed, us | float32, us | ORT, us | float32 / packed | ORT / packed | "
    print(markdown(head + "error | ORT", rows))
    print(f"Load of the computer: {os.getloadavg()[0]:.1f}; {os.cpu_count()} cores.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

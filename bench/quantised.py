"""Products of weights of few bits: size of the plan, time and error, beside float32 and ONNX Runtime.

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
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from markdown_tables import markdown
from onnx import TensorProto, helper, numpy_helper

import smartmem_rules

Array = np.ndarray[Any, np.dtype[Any]]
SHAPES = ("1x2048x2048", "1x2048x8192", "1x8192x2048", "16x2048x2048", "128x2048x2048")
PAUSE = 0.05
"""Seconds after which no thread of the other system spins any more."""
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

    @property
    def model(self) -> onnx.ModelProto:
        """The product as `MatMulNBits`, with the zero points that it has by itself."""
        integers, scales = self.drawn
        each = 8 // self.bits
        places = (np.arange(each) * self.bits).astype(np.uint8)
        packed = np.bitwise_or.reduce(integers.reshape(self.columns, -1, each) << places, axis=2)
        constants = [
            numpy_helper.from_array(packed.reshape(self.columns, scales.shape[1], -1), "weights"),
            numpy_helper.from_array(scales, "scales"),
        ]
        node = helper.make_node("MatMulNBits", ["x", "weights", "scales"], ["y"], "product", domain="com.microsoft")
        for name, size in (("K", self.depth), ("N", self.columns), ("bits", self.bits), ("block_size", self.block)):
            node.attribute.append(helper.make_attribute(name, size))
        graph = helper.make_graph(
            [node],
            "product",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, (self.rows, self.depth))],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, (self.rows, self.columns))],
            constants,
        )
        imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)

    def product(self, x: Array) -> Array:
        """The product in double precision."""
        integers, scales = self.drawn
        values = (integers - 2.0 ** (self.bits - 1)) * scales.astype(np.float64).repeat(self.block, axis=1)
        exact: Array = x.astype(np.float64) @ values[:, : self.depth].T
        return exact


def medians(systems: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Microseconds of each system."""
    found: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(turns):
        for name, run in systems.items():
            time.sleep(PAUSE)
            run()
            for _ in range(RUNS):
                begin = time.perf_counter()
                run()
                found[name].append(1e6 * (time.perf_counter() - begin))
    return {name: statistics.median(times) for name, times in found.items()}


def row(case: Case, threads: int, turns: int) -> list[str]:
    """The figures of a product."""
    model = case.model
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    packed = smartmem_rules.optimize(model, device="pocl")
    floats = smartmem_rules.optimize(model, device="pocl", disable=["weights_in_words"])
    feeds = {"x": np.random.default_rng(1).standard_normal((case.rows, case.depth)).astype(np.float32)}
    exact = case.product(feeds["x"])

    def error(output: Array) -> float:
        return float(np.abs(output - exact).max() / np.abs(exact).max())

    with tempfile.TemporaryDirectory() as folder:
        packed.save(Path(folder) / "product.plan")
        size = (Path(folder) / "product.plan").stat().st_size
    found = medians(
        {
            "packed": lambda: packed.run(feeds),
            "floats": lambda: floats.run(feeds),
            "onnxruntime": lambda: session.run(None, feeds),
        },
        turns,
    )
    return [
        f"{case.rows} x {case.depth} x {case.columns}",
        str(case.bits),
        f"{size / (2 * case.depth * case.columns):.3f}",
        *(f"{found[name]:.0f}" for name in ("packed", "floats", "onnxruntime")),
        f"{found['floats'] / found['packed']:.2f}",
        f"{found['onnxruntime'] / found['packed']:.2f}",
        f"{error(packed.run(feeds)['y']):.1e}",
        f"{error(session.run(None, feeds)[0]):.1e}",
    ]


def main() -> int:
    """Measure each product, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", nargs="*", default=SHAPES, help="ROWSxDEPTHxCOLUMNS")
    parser.add_argument("--bits", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2, help="of ONNX Runtime; ours are those of the device")
    given = parser.parse_args()
    os.environ["SMARTMEM_PLANS"] = "off"
    rows = []
    for shape in given.shapes:
        sizes = dict(zip(("rows", "depth", "columns"), map(int, shape.split("x")), strict=True))
        for bits in given.bits:
            case = Case(**sizes, bits=bits, block=given.block)
            rows.append(row(case, given.threads, given.turns))
    head = "product | bits | file / halves | packed, us | float32, us | ORT, us | float32 / packed | ORT / packed | "
    print(markdown(head + "error | ORT", rows))
    print(f"Load of the computer: {os.getloadavg()[0]:.1f}; {os.cpu_count()} cores.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

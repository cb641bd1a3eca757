"""Operators round their outputs alone: what they compute on the way may exceed halves, at all levels alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from smartmem_rules.graph.importer import import_model
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.tensor.primitives import storage_dtype
from tests.plan.running import LEVELS, Mode, prepare

Array = np.ndarray[Any, np.dtype[Any]]
ROW = 300
"""The sum of as many squares of numbers beyond 300 is 400 times what halves hold."""
HALVES = ("float16", "bfloat16")
ULP = {"float16": 2.0**-10, "bfloat16": 2.0**-7}


@dataclass(frozen=True)
class Drawn:
    """One node: operands of sizes between 300 and 1000, then operands near 1, of these shapes."""

    operator: str
    large: Sequence[tuple[int, ...]]
    near_one: Sequence[tuple[int, ...]] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    domain: str = ""

    def operands(self, rng: np.random.Generator, dtype: str) -> list[Array]:
        large = [rng.choice([-1, 1], shape) * rng.uniform(300, 1000, shape) for shape in self.large]
        near_one = [rng.uniform(0.5, 1.5, shape) for shape in self.near_one]
        return [values.astype(storage_dtype(dtype)) for values in (*large, *near_one)]


ROWS, CHANNELS = (2, ROW), (2, 3, ROW)
NODES = [
    Drawn("MeanVarianceNormalization", [CHANNELS], attributes={"axes": [0, 2]}),
    Drawn("LpNormalization", [ROWS], attributes={"p": 2}),
    Drawn("GroupNormalization", [CHANNELS], [(3,), (3,)], {"num_groups": 1}),
    Drawn("SkipSimplifiedLayerNormalization", [(1, 2, ROW), (1, 2, ROW)], [(ROW,)], domain="com.microsoft"),
    Drawn("LogSoftmax", [ROWS]),
    Drawn("LpPool", [CHANNELS], attributes={"kernel_shape": [9]}),
]
FURTHER_NODES = [
    Drawn("LpNormalization", [ROWS], attributes={"p": 1}),
    Drawn("LpNormalization", [CHANNELS], attributes={"p": 2, "axis": 1}),
    Drawn("LayerNormalization", [ROWS], [(ROW,), (ROW,)]),
    Drawn("RMSNormalization", [ROWS], [(ROW,)]),
    Drawn("SimplifiedLayerNormalization", [ROWS], [(ROW,)]),
    Drawn("SkipLayerNormalization", [(1, 2, ROW), (1, 2, ROW)], [(ROW,), (ROW,)], domain="com.microsoft"),
    Drawn("InstanceNormalization", [CHANNELS], [(3,), (3,)]),
    Drawn("BatchNormalization", [CHANNELS], [(3,)] * 4, {"training_mode": 1}),
    Drawn("LRN", [CHANNELS], attributes={"size": 3, "alpha": 1.0}),
    Drawn("Softmax", [ROWS]),
    Drawn("ReduceLogSumExp", [ROWS]),
    Drawn("ReduceL2", [ROWS]),
    Drawn("ReduceMean", [ROWS]),
    Drawn("GlobalLpPool", [CHANNELS]),
    Drawn("Attention", [(1, 2, 4, 64)] * 2, [(1, 2, 4, 64)]),
]
EVERY_MODE = [
    Mode(level, memory, dtype, device)
    for level, dtype, (device, memory) in product(
        LEVELS, ("float32", "float16"), (("pocl", "buffer"), ("adreno_740", "image"), ("nvidia", "buffer"))
    )
]


def model_of(drawn_nodes: Sequence[Drawn], operands: Sequence[Sequence[Array]], constant: bool) -> onnx.ModelProto:
    """One model of all nodes; outputs are `oNODE`, inputs `iNODE_PLACE`, or constants where that is asked for."""
    nodes, inputs, constants, outputs = [], [], [], []
    for number, (drawn, arrays) in enumerate(zip(drawn_nodes, operands, strict=True)):
        names = [f"i{number}_{place}" for place in range(len(arrays))]
        made = [f"o{number}", f"m{number}", f"v{number}"] if drawn.operator == "BatchNormalization" else [f"o{number}"]
        nodes.append(helper.make_node(drawn.operator, names, made, domain=drawn.domain, **drawn.attributes))
        outputs.append(helper.make_empty_tensor_value_info(f"o{number}"))
        for name, array in zip(names, arrays, strict=True):
            dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
            if constant:
                constants.append(numpy_helper.from_array(array, name))
            else:
                inputs.append(helper.make_tensor_value_info(name, dtype, array.shape))
    graph = helper.make_graph(nodes, "inside", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=11)


@pytest.mark.parametrize("level", ["none", "smartmem"])
def test_operators_round_their_outputs_alone(level: str) -> None:
    agrees(NODES, "float16", Mode(level, dtype="float16"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("mode", EVERY_MODE, ids=str)
def test_operators_round_their_outputs_alone_in_every_mode(dtype: str, mode: Mode) -> None:
    agrees([*NODES, *FURTHER_NODES], dtype, mode)


def agrees(nodes: Sequence[Drawn], dtype: str, mode: Mode) -> None:
    """Compare the nodes' results on the device with those of their definitions."""
    rng = np.random.default_rng(23)
    operands = [drawn.operands(rng, dtype) for drawn in nodes]
    wanted = import_model(model_of(nodes, operands, True), load_rules()).constants
    _, executor = prepare(model_of(nodes, operands, False), mode)
    found = executor.run({f"i{n}_{p}": a for n, arrays in enumerate(operands) for p, a in enumerate(arrays)})
    wrong = []
    for number, drawn in enumerate(nodes):
        mine, theirs = (values[f"o{number}"].astype(np.float64) for values in (found, wanted))
        error, largest = np.abs(mine - theirs).max(), np.abs(theirs).max()
        if not error <= ULP[dtype] * largest:
            wrong.append(f"{drawn.operator} {drawn.attributes}: off by {error:g}, the largest result is {largest:g}")
    assert wrong == []

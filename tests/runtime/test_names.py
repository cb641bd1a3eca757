"""Whatever a model calls its tensors and nodes, kernels are built, and plans are saved, loaded and explained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import smartmem_rules
from smartmem_rules.api import explain_model

pytestmark = pytest.mark.sampled(4)

NAMES = {
    "comment": "*/ } __kernel void evil(void) { /*",
    "line comment": "// x",
    "quotes": "\"'`",
    "backslash": "a\\",
    "line ends": "a\nb\r\nc\x0b\x0c\u2028",
    "nothing": "\0",
    "directive": "\n#error no\n#define float int\n",
    "trigraph": "??/",
    "words": "__kernel",
    "template": "{{ 1 / 0 }}{% for %}",
    "format": "%s{0}{x}",
    "egglog": '")) (panic "x") (',
    "number": "$0",
    "local": "%0",
    "long": "n" * 10_000,
    "blank": " ",
    "characters": "é漢字🦀",
}


def model(name: str) -> onnx.ModelProto:
    """Softmax of a product with a bias, transposed: each tensor and node has the name somewhere."""
    called = {letter: f"{name}{letter}" for letter in "xwbprsty"}
    x, w, b, p, r, s, t, y = called.values()
    node = helper.make_node
    nodes = [
        node("MatMul", [x, w], [p], name=f"{name}m"),
        node("Add", [p, b], [r], name=f"{name}a"),
        node("Softmax", [r], [s], axis=-1, name=f"{name}s"),
        node("Transpose", [s], [t], perm=[1, 0], name=f"{name}t"),
        node("ReduceSum", [t], [y], keepdims=0, name=f"{name}r"),
    ]
    random = np.random.default_rng(3)
    held = [
        numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), n)
        for n, shape in ((w, (6, 5)), (b, (5,)))
    ]
    inputs = [helper.make_tensor_value_info(x, TensorProto.FLOAT, [4, 6])]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in (t, y)]
    graph = helper.make_graph(nodes, name, inputs, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("level", ["smartmem", "none"])
def test_names(kind: str, level: str, tmp_path: Path) -> None:
    name = NAMES[kind]
    made = model(name)
    x, w, b = (np.random.default_rng(seed).standard_normal(s) for seed, s in ((1, (4, 6)), (2, (6, 5)), (3, (5,))))
    w, b = (numpy_helper.to_array(tensor).astype(np.float64) for tensor in made.graph.initializer)
    e = np.exp(x.astype(np.float32).astype(np.float64) @ w + b)
    wanted = (e / e.sum(-1, keepdims=True)).T
    plan = smartmem_rules.optimize(made, level=level, debug=level == "none")
    path = tmp_path / "names.plan"
    plan.save(path)
    for one in (plan, smartmem_rules.load(path)):
        outputs = one.run({f"{name}x": x.astype(np.float32)})
        np.testing.assert_allclose(outputs[f"{name}t"], wanted, rtol=1e-5)
        np.testing.assert_allclose(outputs[f"{name}y"], wanted.sum(), rtol=1e-5)
    assert explain_model(made, f"{name}s", level=level)["kernels"]


def test_names_of_dimensions() -> None:
    name = NAMES["comment"] + NAMES["quotes"] + NAMES["line ends"]
    made = model("")
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_param = name
    plan = smartmem_rules.optimize(made, dims={name: (1, 9)})
    for extent in (1, 4, 9):
        assert plan.run({"x": np.ones((extent, 6), np.float32)})["t"].shape == (5, extent)

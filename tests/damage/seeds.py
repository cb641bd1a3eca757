"""What is damaged: small whole models, rule texts and files, in an order that never changes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bench.zoo.decoders import SHAPES, decoder
from smartmem_rules.api import quantize
from tests.plan.random_graphs import OPSET, Builder

MOST_BYTES = 40_000
"""Larger node tests take longer to optimize and hold hardly anything but weights."""
_RANDOM_MODELS = 40


@cache
def models() -> tuple[tuple[str, bytes], ...]:
    """Names and bytes of models: graphs that the random suite draws, control flow, functions, ONNX's node tests."""
    found = [(f"random_{seed}", _random(seed).SerializeToString()) for seed in range(_RANDOM_MODELS)]
    found += [(name, model.SerializeToString()) for name, model in _own()]
    found += [(name, data) for name, data in _node_tests() if len(data) <= MOST_BYTES]
    return tuple(found)


@cache
def few_models() -> tuple[tuple[str, bytes], ...]:
    """The models that need no generation of all node tests, which takes seconds."""
    found = [(f"random_{seed}", _random(seed).SerializeToString()) for seed in range(8)]
    return tuple(found + [(name, model.SerializeToString()) for name, model in _own()])


@cache
def language_models() -> tuple[bytes, ...]:
    """Models with a cache: of three forms, and with weights of few bits."""
    found = [decoder(SHAPES[name]) for name in ("llama_tiny", "grouped_tiny", "pythia_tiny")]
    return tuple(model.SerializeToString() for model in (*found, quantize(found[0], least=64)))


def _random(seed: int) -> onnx.ModelProto:
    builder = Builder(np.random.default_rng(seed))
    builder.input(builder.shape(1, 4))
    while len(builder.nodes) < 5:
        builder.step()
    wanted = [helper.make_tensor_value_info(builder.nodes[-1].output[0], TensorProto.FLOAT, None)]
    graph = helper.make_graph(builder.nodes, "drawn", builder.inputs, wanted, builder.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def _node_tests() -> Iterator[tuple[str, bytes]]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases: list[Any] = load_model_tests(kind="node")
    for case in sorted(cases, key=lambda case: str(case.name)):
        if case.model is not None:
            yield case.name, case.model.SerializeToString()


def _own() -> Iterator[tuple[str, onnx.ModelProto]]:
    node = helper.make_node
    flag = numpy_helper.from_array(np.array(True), "flag")
    three = numpy_helper.from_array(np.array(3, np.int64), "three")
    then = helper.make_graph([node("Relu", ["x"], ["a"])], "then", [], [_value("a")])
    otherwise = helper.make_graph([node("Neg", ["x"], ["b"])], "else", [], [_value("b")])
    choice = node("If", ["flag"], ["y"], then_branch=then, else_branch=otherwise, name="choice")
    yield "if_known", _model([choice], [flag])
    yield "if_computed", _model([choice], [], {"x": [2, 3], "flag": []}, {"flag": TensorProto.BOOL})
    body = helper.make_graph(
        [node("Add", ["state", "x"], ["next"]), node("Identity", ["going"], ["on"])],
        "body",
        [_value("step", TensorProto.INT64, []), _value("going", TensorProto.BOOL, []), _value("state")],
        [_value("on", TensorProto.BOOL, []), _value("next")],
    )
    loop = node("Loop", ["three", "", "x"], ["y"], body=body, name="loop")
    yield "loop", _model([loop], [three])
    scanned = helper.make_graph(
        [node("Add", ["s", "p"], ["t"]), node("Identity", ["t"], ["o"])],
        "scanned",
        [_value("s", shape=[3]), _value("p", shape=[3])],
        [_value("t", shape=[3]), _value("o", shape=[3])],
    )
    zeros = numpy_helper.from_array(np.zeros(3, np.float32), "zeros")
    scan = node("Scan", ["zeros", "x"], ["last", "y"], body=scanned, num_scan_inputs=1)
    yield "scan", _model([scan], [zeros])
    twice = helper.make_function(
        "mine", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 17)]
    )
    call = helper.make_function(
        "mine", "Four", ["a"], ["b"],
        [node("Twice", ["a"], ["c"], domain="mine"), node("Twice", ["c"], ["b"], domain="mine")],
        [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)],
    )  # fmt: skip
    yield "functions", _model([node("Four", ["x"], ["y"], domain="mine")], functions=[twice, call])
    shape = numpy_helper.from_array(np.array([3, -1], np.int64), "shape")
    weights = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "weights")
    drawn = onnx.TensorProto(name="drawn", data_type=1, dims=[3, 4], data_location=TensorProto.EXTERNAL)
    entries = {"location": "seeded-normal", "offset": "7", "std": "0.5", "mean": "0", "min": "-2", "max": "2"}
    for key, value in entries.items():
        drawn.external_data.add(key=key, value=value)
    nodes = [
        node("Constant", [], ["c"], value=weights, name="constant"),
        node("Add", ["x", "c"], ["sum"]),
        node("MatMul", ["sum", "drawn"], ["product"]),
        node("Softmax", ["product"], ["soft"], axis=-1),
        node("Transpose", ["x"], ["t"], perm=[1, 0]),
        node("Reshape", ["t", "shape"], ["r"]),
        node("ReduceSum", ["soft"], ["total"], keepdims=1),
        node("Mul", ["r", "total"], ["y"]),
    ]
    yield "constants", _model(nodes, [shape, drawn])
    sparse = onnx.SparseTensorProto(dims=[2, 3])
    sparse.values.CopyFrom(numpy_helper.from_array(np.array([1, 2], np.float32), "sparse"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([0, 4], np.int64), "sparse_indices"))
    model = _model([node("Add", ["x", "sparse"], ["y"])])
    model.graph.sparse_initializer.append(sparse)
    yield "sparse", model
    yield "open", _model([node("Shape", ["x"], ["s"]), node("Reshape", ["x", "s"], ["y"])], inputs={"x": ["n", 3]})


def _value(name: str, dtype: int = TensorProto.FLOAT, shape: list[int | str] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, [2, 3] if shape is None else shape)


def _model(
    nodes: list[onnx.NodeProto],
    constants: list[onnx.TensorProto] | None = None,
    inputs: dict[str, list[int | str]] | None = None,
    dtypes: dict[str, int] | None = None,
    functions: list[onnx.FunctionProto] | None = None,
) -> onnx.ModelProto:
    given = [_value(n, (dtypes or {}).get(n, 1), s) for n, s in (inputs or {"x": [2, 3]}).items()]
    wanted = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "own", given, wanted, constants or [])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=functions or [], ir_version=9)

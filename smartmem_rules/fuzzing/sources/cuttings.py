"""Pieces of the models that come with the project: operators in the company that real exporters give them."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from smartmem_rules.fuzzing.case import Array, Case
from smartmem_rules.fuzzing.sources.modes import draw_mode
from smartmem_rules.resources import models_path

MOST_NODES = 24
MOST_ELEMENTS = 30_000
MOST_WEIGHTS = 150_000
TRIES = 1000
"""One in twelve is small enough."""

Types = dict[str, tuple[int, tuple[int, ...]]]


@cache
def _files() -> tuple[Path, ...]:
    return tuple(sorted(models_path().glob("*.onnx")))


@cache
def _model(path: Path) -> tuple[onnx.ModelProto, Types]:
    """A model without its weights, and the types of its tensors as far as they are known."""
    model = onnx.load(str(path), load_external_data=False)
    inferred = onnx.shape_inference.infer_shapes(model)
    types: Types = {}
    for described in (*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output):
        tensor = described.type.tensor_type
        if tensor.HasField("shape") and all(d.HasField("dim_value") for d in tensor.shape.dim):
            types[described.name] = (tensor.elem_type, tuple(d.dim_value for d in tensor.shape.dim))
    types.update({t.name: (t.data_type, tuple(t.dims)) for t in model.graph.initializer})
    return model, types


def cut(seed: int) -> Case:
    """Some nodes that follow each other in a shipped model, with drawn weights and inputs."""
    random = np.random.default_rng(seed)
    for _ in range(TRIES):
        model, types = _model(_files()[int(random.integers(len(_files())))])
        nodes = model.graph.node
        begin = int(random.integers(len(nodes)))
        piece = list(nodes[begin : begin + int(random.integers(2, MOST_NODES))])
        made = _piece(model, piece, types, random)
        if made is not None:
            piece_model, feeds = made
            return Case(f"cut-{seed}", piece_model, feeds, draw_mode(random))
    raise ValueError(f"no piece that is small enough in {TRIES} tries")


def _piece(
    model: onnx.ModelProto, nodes: list[onnx.NodeProto], types: Types, random: np.random.Generator
) -> tuple[onnx.ModelProto, dict[str, Array]] | None:
    if any(a.type == onnx.AttributeProto.GRAPH for n in nodes for a in n.attribute):
        return None
    made = [o for n in nodes for o in n.output if o]
    read = {i for n in nodes for i in n.input if i}
    given = {t.name: t for t in model.graph.initializer if t.name in read}
    outside = [i for i in dict.fromkeys(i for n in nodes for i in n.input) if i and i not in made]
    if any(n not in types for n in (*made, *outside)):
        return None
    weights = [n for n in outside if n in given]
    if any(math.prod(types[n][1]) > MOST_ELEMENTS for n in (*made, *(o for o in outside if o not in given))):
        return None
    if any(math.prod(types[n][1]) > MOST_WEIGHTS for n in weights):
        return None
    feeds = {n: _drawn(types[n], random) for n in outside if n not in given}
    constants = [_weight(given[n], random) for n in weights]
    used = {i for n in model.graph.node if n not in nodes for i in n.input}
    outputs = [n for n in made if n not in read or n in used]
    graph = helper.make_graph(
        nodes,
        "piece",
        [helper.make_tensor_value_info(n, types[n][0], types[n][1]) for n in feeds],
        [helper.make_tensor_value_info(n, types[n][0], types[n][1]) for n in outputs[-6:]],
        constants,
    )
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version), feeds


def _drawn(type_: tuple[int, tuple[int, ...]], random: np.random.Generator) -> Array:
    dtype = helper.tensor_dtype_to_np_dtype(type_[0])
    if dtype.kind in "iub":
        return np.asarray(random.integers(0, 2, type_[1]), dtype)
    return np.asarray(random.standard_normal(type_[1]), dtype)


def _weight(tensor: onnx.TensorProto, random: np.random.Generator) -> onnx.TensorProto:
    """A constant itself where the file holds its values, else one of its type that keeps magnitudes as they are."""
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return tensor
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    shape = tuple(tensor.dims)
    if dtype.kind != "f":
        return numpy_helper.from_array(np.zeros(shape, dtype), tensor.name)
    if len(shape) < 2:  # a variance among others: positive
        return numpy_helper.from_array(np.asarray(random.uniform(0.3, 1.5, shape), dtype), tensor.name)
    values = random.standard_normal(shape) / math.sqrt(max(1, math.prod(shape[1:])))
    return numpy_helper.from_array(np.asarray(values, dtype), tensor.name)

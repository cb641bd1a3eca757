"""Index maps as ONNX nodes, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.index import Index, add, div, mod, scale, variable
from smartmem_rules.tensor.views import IndexMap, axis_variables, identity, index_map
from smartmem_rules.writing.expressing import described
from smartmem_rules.writing.views import Writer, write_view


def transposed() -> IndexMap:
    i, j, k = map(variable, axis_variables((4, 2, 3)))
    return index_map((4, 2, 3), (2, 3, 4), (j, k, i))


def sliced() -> IndexMap:
    """Every second column backwards, and one row."""
    (i,) = map(variable, axis_variables((2,)))
    return index_map((2,), (3, 4), (Index(1), add(scale(i, -2), Index(2))))


def backwards() -> IndexMap:
    (i,) = map(variable, axis_variables((4,)))
    return index_map((4,), (4,), (add(scale(i, -1), Index(3)),))


def expanded() -> IndexMap:
    _, j = map(variable, axis_variables((5, 3)))
    return index_map((5, 3), (3,), (j,))


def reshaped() -> IndexMap:
    (i,) = map(variable, axis_variables((12,)))
    return index_map((12,), (3, 4), (div(i, 4), mod(i, 4)))


def rolled() -> IndexMap:
    (i,) = map(variable, axis_variables((5,)))
    return index_map((5,), (5,), (mod(add(i, Index(3)), 5),))


@pytest.mark.parametrize(
    ("map_", "operator"),
    [
        (identity((2, 3)), "Identity"), (transposed(), "Transpose"), (sliced(), "Slice"), (backwards(), "Slice"),
        (expanded(), "Expand"), (reshaped(), "Reshape"), (rolled(), "Gather"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)  # fmt: skip
def test_a_view_is_what_its_map_says(map_: IndexMap, operator: str) -> None:
    writer = Writer("e.")
    write_view(map_, "x", "y", writer)
    graph = helper.make_graph(
        writer.nodes,
        "view",
        [described("x", TensorType("float32", map_.source))],
        [described("y", TensorType("float32", map_.shape))],
        writer.initializers(),
    )
    x = np.random.default_rng(1).standard_normal(map_.source).astype(np.float32)
    (y,) = ReferenceEvaluator(helper.make_model(graph)).run(None, {"x": x})
    assert operator in {node.op_type for node in writer.nodes}
    for place in np.ndindex(map_.shape):
        at = tuple(index.constant for index in map_.apply([Index(p) for p in place]))
        assert y[place] == x[at]

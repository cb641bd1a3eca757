"""Index maps as ONNX nodes, against numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.extents import Dimension, at, symbol
from smartmem_rules.tensor.index import Index, add, div, mod, scale, variable
from smartmem_rules.tensor.substitution import substitute
from smartmem_rules.tensor.views import IndexMap, axis_variables, identity, index_map
from smartmem_rules.writing.expressing import described
from smartmem_rules.writing.views import NotExpressible, Writer, shape_in_numbers, view_steps, write_view


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


N, M = (symbol(Dimension(name, 0, 1 << 20)) for name in "nm")


@pytest.mark.parametrize(
    ("source", "shape", "wanted"),
    [
        ((N, M, 6), (N, M, 2, 3), [0, 0, 2, 3]),
        ((N, 6), (N * 2, 3), [-1, 3]),
        ((N, M), (N * M,), [-1]),
        ((N, M, 6), (N, 6, M), None),  # one of two is to follow from the other, which may be 0
        ((N * M,), (N, M), None),
        ((4, 0), (0, 4), None),  # 0 would be the extent of the operand, 4
        ((0, 4), (0, 2), [0, 2]),
    ],
)
def test_an_open_shape_is_a_list_of_numbers_where_that_says_the_same(
    source: tuple[int, ...], shape: tuple[int, ...], wanted: list[int] | None
) -> None:
    assert shape_in_numbers(source, shape) == wanted


def from_the_third_row() -> IndexMap:
    i, j = map(variable, axis_variables((N, 4)))
    return index_map((N, 4), (N + 2, 4), (add(i, Index(2)), j))


def up_to_the_last_two() -> IndexMap:
    i, j = map(variable, axis_variables((N, 4)))
    return index_map((N, 4), (N + 2, 4), (i, j))


def with_axes_of_one() -> IndexMap:
    i, _, j, _ = map(variable, axis_variables((N, 1, M, 1)))
    return index_map((N, 1, M, 1), (N, M), (i, j))


def without_axes_of_one() -> IndexMap:
    i, j = map(variable, axis_variables((N, M)))
    return index_map((N, M), (N, 1, M), (i, Index(0), j))


def repeated() -> IndexMap:
    _, i = map(variable, axis_variables((3, N)))
    return index_map((3, N), (N,), (i,))


def turned() -> IndexMap:
    i, j = map(variable, axis_variables((N, M)))
    return index_map((N, M), (M, N), (j, i))


@pytest.mark.parametrize(
    "build", [from_the_third_row, up_to_the_last_two, with_axes_of_one, without_axes_of_one, repeated, turned]
)
def test_a_view_of_open_extents_is_what_its_map_says_for_each_of_them(build: Callable[[], IndexMap]) -> None:
    map_, writer = build(), Writer("e.")
    write_view(map_, "x", "y", writer)
    made = helper.make_model(
        helper.make_graph(
            writer.nodes,
            "open",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [None] * len(map_.source))],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [None] * len(map_.shape))],
            writer.initializers(),
        ),
        opset_imports=[helper.make_opsetid("", 18)],
    )
    for n, m in ((0, 1), (1, 1), (3, 2)):
        x = np.arange(int(np.prod(sizes(map_.source, n, m))), dtype=np.float32).reshape(sizes(map_.source, n, m))
        (got,) = ReferenceEvaluator(made).run(None, {"x": x})
        assert got.shape == sizes(map_.shape, n, m)
        for place in np.ndindex(got.shape):
            values = dict(zip(map_.variables, map(Index, place), strict=True))
            indices = tuple(substitute(index, values).constant for index in map_.indices)
            assert got[place] == x[indices]


def sizes(shape: tuple[int, ...], n: int, m: int) -> tuple[int, ...]:
    return tuple(int(at(extent, {"n": n, "m": m})) for extent in shape)


def backwards_from_the_end() -> IndexMap:
    (i,) = map(variable, axis_variables((N,)))
    return index_map((N,), (N,), (add(scale(i, -1), Index(N - 1)),))


def spread_over_rows() -> IndexMap:
    _, j = map(variable, axis_variables((N, 3)))
    return index_map((N, 3), (3,), (j,))


def apart() -> IndexMap:
    i, j = map(variable, axis_variables((N, M)))
    return index_map((N, M), (N * M,), (add(scale(i, M), j),))


@pytest.mark.parametrize("build", [backwards_from_the_end, spread_over_rows, apart])
def test_a_view_that_needs_an_extent_as_a_number_is_not_written(build: Callable[[], IndexMap]) -> None:
    with pytest.raises(NotExpressible):
        view_steps(build())


def test_a_view_without_elements_is_not_written() -> None:
    with pytest.raises(NotExpressible):
        view_steps(index_map((0, 4, 2), (2, 1, 0), (Index(0), Index(0), Index(0))))

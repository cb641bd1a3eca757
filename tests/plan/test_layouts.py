"""Layouts: every element has one place, and packing puts it there."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smartmem_rules.emit.access import offset, texel
from smartmem_rules.plan.layout_choice import LayoutProblem
from smartmem_rules.plan.layouts import ImageLimits, image_layout, with_innermost
from smartmem_rules.plan.model import Layout, Stored, row_major
from smartmem_rules.plan.packing import pack
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.index import Index
from tests.plan.models import Node, i64, model, normal
from tests.plan.running import Mode, prepare

SHAPES = st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple)


def stored(shape: tuple[int, ...], layout: Layout) -> Stored:
    return Stored("t", TensorType("float32", shape), layout, "intermediate", "float32")


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(1, math.prod(shape) + 1, dtype=np.float32).reshape(shape)


def places(shape: tuple[int, ...]) -> itertools.product[tuple[int, ...]]:
    return itertools.product(*map(range, shape))


@settings(derandomize=True, deadline=None)
@given(SHAPES, st.data())
def test_a_buffer_holds_every_element_once(shape: tuple[int, ...], data: st.DataObject) -> None:
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    tensor = stored(shape, Layout("buffer", order))
    values = numbered(shape)
    packed = pack(values, tensor.layout, "float32")
    assert packed.shape == (values.size,)
    for place in places(shape):
        position = offset(tensor, tuple(map(Index, place)))
        assert packed[position.constant] == values[place]


@settings(derandomize=True, deadline=None)
@given(SHAPES, st.data())
def test_an_image_holds_every_element_once(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.sampled_from([None, *range(len(shape))]))
    limits = ImageLimits(data.draw(st.integers(1, 200)), data.draw(st.integers(1, 200)))
    layout = image_layout(stored(shape, row_major(len(shape))), axis, limits)
    if layout is None:
        return
    width, height = layout.image_size(shape)
    assert width <= limits.width
    assert height <= limits.height
    tensor = stored(shape, layout)
    values = numbered(shape)
    packed = pack(values, layout, "float32")
    assert packed.shape == (height, width, 4)
    seen = np.zeros_like(packed, bool)
    for place in places(shape):
        x, y, lane = (i.constant for i in texel(tensor, tuple(map(Index, place))))
        assert packed[y, x, lane] == values[place]
        assert not seen[y, x, lane]
        seen[y, x, lane] = True
    assert not packed[~seen].any(), "lanes that hold no element are zero"


def test_an_element_a_texel() -> None:
    layout = image_layout(stored((3, 5), row_major(2)), None, ImageLimits(100, 100))
    assert layout is not None
    assert (layout.order, layout.lane_axis) == ((0, 1, -1), None)
    assert math.prod(layout.image_size((3, 5))) == 15
    assert pack(numbered((3, 5)), layout, "float32")[..., 1:].any() == False  # noqa: E712


@pytest.mark.parametrize(
    ("shape", "axis", "limits", "size"),
    [
        ((6, 10), 1, (3, 6), (3, 6)),  # the widest way first: rows in y
        ((6, 10), 0, (2, 10), (2, 10)),
        ((6, 10), 1, (18, 1), (18, 1)),  # all in one row of texels
        ((6, 10), 1, (2, 6), None),
        ((6, 10), 1, (17, 5), None),
        ((2, 3, 8), 2, (6, 2), (6, 2)),
    ],
)
def test_limits(shape: tuple[int, ...], axis: int, limits: tuple[int, int], size: tuple[int, int] | None) -> None:
    layout = image_layout(stored(shape, row_major(len(shape))), axis, ImageLimits(*limits))
    assert (layout.image_size(shape) if layout else None) == size


def test_innermost() -> None:
    assert with_innermost(4, 1) == (0, 2, 3, 1)
    assert Layout("buffer", (0, 2, 3, 1)).strides((2, 3, 4, 5)) == (60, 1, 15, 3)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_choice_for_the_whole_graph_is_the_best_one(seed: int) -> None:
    """Against all choices, for random costs of tensors and pairs; never worse than where the search starts."""
    random = np.random.default_rng(seed)
    axes = {f"t{i}": tuple(int(a) for a in random.permutation(3)) for i in range(5)}
    problem = LayoutProblem(axes, float(random.integers(9)))
    for name, axis in itertools.product(axes, range(3)):
        problem.add(name, axis, float(random.integers(0, 20)))
    for first, second in itertools.combinations(axes, 2):
        if random.random() < 0.5:
            for pair in itertools.product(range(3), repeat=2):
                problem.add_pair(first, second, (pair[0], pair[1]), float(random.integers(0, 20)))
    start = {name: own[0] for name, own in axes.items()}
    found = problem.solve(start, 10.0)
    best = min(problem.cost(dict(zip(axes, chosen, strict=True))) for chosen in itertools.product(*axes.values()))
    assert found.status == "optimal"
    assert found.cost == pytest.approx(best)
    assert found.bound <= found.cost <= found.local_cost
    assert problem.cost(found.innermost) == pytest.approx(found.cost)


@pytest.mark.parametrize("layout", ["exact", "local"])
def test_costs_taken_apart_are_the_costs_of_the_kernels(layout: str) -> None:
    """A pointwise kernel ties its operands to its output; the program's cost is that of the kernels themselves."""
    nodes: list[Node] = [
        ("MatMul", "x w", "p"),
        ("Transpose", "p", "q", {"perm": [0, 2, 1]}),
        ("Softmax", "q", "s"),
        ("ReduceMean", "s one", "m", {"keepdims": 1}),
        ("Mul", "p m", "y"),
    ]
    constants = {"w": normal(9, 12), "one": i64(1)}
    plan, _ = prepare(model(nodes, {"x": normal(4, 12, 9)}, "y", constants), Mode(layout=layout))
    choice = plan.statistics["layouts"]
    assert choice["status"] == ("optimal" if layout == "exact" else "local")
    assert choice["bound"] <= choice["cost"] <= choice["local_cost"]

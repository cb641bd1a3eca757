"""Layouts: every element has one place, and packing puts it there."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from smartmem_rules.emit.c.access import offset, texel
from smartmem_rules.language.blocks.device import ImageLimits
from smartmem_rules.plan.kernel.model import Layout, Stored
from smartmem_rules.plan.kernel.packing import pack
from smartmem_rules.plan.layout.options import image_layout, with_innermost
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.index import Index

SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=6).filter(lambda s: math.prod(s) < 2000).map(tuple)


def stored(shape: tuple[int, ...], layout: Layout) -> Stored:
    return Stored(name="t", type=TensorType("float32", shape), layout=layout, role="intermediate", storage="float32")


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
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    if data.draw(st.booleans()):
        order = (*order, -1)
    limits = ImageLimits(data.draw(st.integers(1, 200)), data.draw(st.integers(1, 200)))
    inner = data.draw(st.integers(0, len(order) - 1))
    layout = image_layout(shape, order, limits, data.draw(st.none() | st.integers(0, 5)), inner)
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
    layout = image_layout((3, 5), (0, 1, -1), ImageLimits(100, 100))
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
    layout = image_layout(shape, with_innermost(len(shape), axis), ImageLimits(*limits))
    assert (layout.image_size(shape) if layout else None) == size


def test_two_reduction_axes_of_a_texture() -> None:
    """SmartMem's L0[D1, D2, D3] with reduction axes D1 and D3: lane d1 % 4, x = d1 // 4 * D3 + d3, y = d2."""
    shape = (10, 3, 5)
    layout = image_layout(shape, with_innermost(3, 2, 0), ImageLimits(100, 100), inner=1)
    assert layout == Layout("image", (1, 2, 0), 1, 1)
    assert str(layout) == "image[d1(d0/4)d2d0]"
    assert layout.places == "image, d0 in the lanes, x d0/4 d2, y d1"
    assert layout.image_size(shape) == (3 * 5, 3)
    for d1, d2, d3 in places(shape):
        x, y, lane = texel(stored(shape, layout), (Index(d1), Index(d2), Index(d3)))
        assert (x.constant, y.constant, lane.constant) == (d1 // 4 * 5 + d3, d2, d1 % 4)


def test_innermost() -> None:
    assert with_innermost(4, 1) == (0, 2, 3, 1)
    assert with_innermost(4, 2, 1) == (0, 3, 2, 1)
    assert Layout("buffer", (0, 2, 3, 1)).strides((2, 3, 4, 5)) == (60, 1, 15, 3)

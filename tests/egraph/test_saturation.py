"""What saturation finds, what it refuses, and that it does not grow beyond the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smartmem_rules.egraph import Bounds, saturate
from smartmem_rules.egraph.encode import MOST_COLUMNS
from smartmem_rules.egraph.model import Saturation
from smartmem_rules.extraction import extract
from smartmem_rules.graph.model import VIEW, Graph
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.rulebase.base import RuleBase, collect
from smartmem_rules.tensor.atoms import Mod
from smartmem_rules.tensor.views import IndexMap
from tests.egraph.building import Builder, feeds_of, run

RULESETS = ["eliminate", "recognise", "algebra", "eliminate"]
WINDOW = ((1, 8, 7, 8, 7, 6), (0, 1, 3, 2, 4, 5), (64, 49, 6))
FAR = 9**18


def number(value: float) -> np.ndarray[Any, Any]:
    return np.array(value, np.float32)


def optimized(graph: Graph, base: RuleBase) -> tuple[Graph, Saturation]:
    saturation = saturate(graph, base, RULESETS)
    extracted, report = extract(saturation, graph, base.devices["pocl"])
    assert report.status == "optimal"
    feeds = feeds_of(graph, signed=True)
    for expected, actual in zip(run(graph, feeds), run(extracted, feeds), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5)
    return extracted, saturation


def operators(graph: Graph) -> list[str]:
    return [node.operator for node in graph.nodes]


def partition(builder: Builder, tensor: str) -> str:
    split = builder.add("Reshape", tensor, shape=WINDOW[0])
    turned = builder.add("Transpose", split, perm=WINDOW[1])
    return builder.add("Reshape", turned, shape=WINDOW[2])


def reverse(builder: Builder, tensor: str) -> str:
    split = builder.add("Reshape", tensor, shape=(1, 8, 8, 7, 7, 6))
    turned = builder.add("Transpose", split, perm=WINDOW[1])
    return builder.add("Reshape", turned, shape=(1, 56, 56, 6))


def roll(builder: Builder, tensor: str, axis: int, by: int) -> str:
    tail = builder.add("Slice", tensor, starts=(by,), ends=(FAR,), axes=(axis,))
    head = builder.add("Slice", tensor, starts=(0,), ends=(by,), axes=(axis,))
    return builder.add("Concat", tail, head, axis=axis)


def test_window_partition_and_reverse_disappear(base: RuleBase) -> None:
    builder = Builder(base)
    x = builder.input("x", (1, 56, 56, 6))
    y = builder.add("Relu", reverse(builder, partition(builder, builder.add("Relu", x))))
    extracted, _ = optimized(builder.finish(y), base)
    assert operators(extracted) == ["Relu"]


@pytest.mark.parametrize("count", [MOST_COLUMNS, MOST_COLUMNS + 1])
def test_many_operands_are_rows_of_one_column(base: RuleBase, count: int) -> None:
    """Around them rules apply as elsewhere, and equal nodes become one."""
    builder = Builder(base)
    parts = [builder.input(f"x{place}", (1, 2)) for place in range(count)]
    turned = [builder.add("Identity", part) for part in parts]
    sums = [builder.add("Concat", *operands, axis=0) for operands in (turned, turned)]
    both = builder.add("Add", builder.add("Relu", sums[0]), builder.add("Tanh", sums[1]))
    extracted, saturation = optimized(builder.finish(both), base)
    assert sorted(operators(extracted)) == ["Add", "Concat", "Relu", "Tanh"]
    (joined,) = [node for one in saturation.classes.values() for node in one.nodes if node.operator == "Concat"]
    assert joined.children == tuple(saturation.tensor_class[part] for part in parts)


def test_views_of_each_other_are_not_composed_in_circles(base: RuleBase) -> None:
    """All elements of `many` are equal, so that it equals its turned self, whose powers are new maps."""
    builder = Builder(base)
    many = builder.add("Tile", builder.input("x", (1,)), repeats=(105,))
    turned = builder.add("Transpose", builder.add("Reshape", many, shape=(5, 7, 3)), perm=(1, 0, 2))
    row = builder.add("Reshape", turned, shape=(105,))
    part = builder.add("Slice", row, starts=(85,), ends=(89,), axes=(0,))
    optimized(builder.finish(builder.add("Relu", part)), base)


@pytest.mark.exhaustive
def test_views_of_one_element_are_not_composed_in_circles(base: RuleBase) -> None:
    """Two ways to turn `many` are maps to itself; each of their products in each order is another map."""
    builder = Builder(base)
    many = builder.add("Reshape", builder.add("Tile", builder.input("x", (1,)), repeats=(24,)), shape=(3, 4, 1, 2))
    row = builder.add("Reshape", many, shape=(24,))
    first = builder.add("Reshape", builder.add("Transpose", many, perm=(3, 0, 1, 2)), shape=(24,))
    second = builder.add("Reshape", builder.add("Transpose", many, perm=(1, 0, 2, 3)), shape=(24,))
    parts = [builder.add("Slice", of, starts=(7,), ends=(23,), axes=(0,)) for of in (row, first, second)]
    total = builder.add("Add", builder.add("Add", parts[0], parts[1]), parts[2])
    optimized(builder.finish(builder.add("Relu", total)), base)


def test_views_of_nothing_are_not_composed_in_circles(base: RuleBase) -> None:
    """Each slice of the empty rows is one of its own, one element further."""
    builder = Builder(base)
    empty = builder.add("Slice", builder.input("x", (1, 3)), starts=(1,), ends=(1,), axes=(0,))
    again = builder.add("Slice", empty, starts=(0,), ends=(2,), axes=(0,))
    optimized(builder.finish(builder.add("Relu", again)), base)


def test_window_partition_is_one_view(base: RuleBase) -> None:
    builder = Builder(base)
    y = builder.add("Relu", partition(builder, builder.input("x", (1, 56, 56, 6))))
    extracted, _ = optimized(builder.finish(y), base)
    assert operators(extracted) == [VIEW, "Relu"]
    assert extracted.nodes[0].origin == ("Reshape_0", "Transpose_1", "Reshape_2")


def test_cyclic_shift_is_a_view_with_a_modulo(base: RuleBase) -> None:
    builder = Builder(base)
    x = builder.input("x", (1, 56, 56, 6))
    y = builder.add("Relu", roll(builder, roll(builder, x, 1, 3), 2, -3))
    extracted, saturation = optimized(builder.finish(y), base)
    assert operators(extracted) == [VIEW, "Relu"]
    map_ = extracted.nodes[0].attributes["map"]
    assert isinstance(map_, IndexMap)
    assert all(isinstance(map_.indices[axis].terms[0][0], Mod) for axis in (1, 2))
    assert saturation.statistics["cyclic_shift"].fired


def test_shift_and_shift_back_disappear(base: RuleBase) -> None:
    builder = Builder(base)
    x = builder.input("x", (1, 56, 6))
    y = builder.add("Relu", roll(builder, roll(builder, x, 1, 3), 1, -3))
    extracted, _ = optimized(builder.finish(y), base)
    assert operators(extracted) == ["Relu"]


def test_pieces_with_a_gap_are_no_cyclic_shift(base: RuleBase) -> None:
    builder = Builder(base)
    x = builder.input("x", (1, 56, 6))
    tail = builder.add("Slice", x, starts=(4,), ends=(FAR,), axes=(1,))
    head = builder.add("Slice", x, starts=(0,), ends=(3,), axes=(1,))
    y = builder.add("Concat", tail, head, axis=1)
    _, saturation = optimized(builder.finish(y), base)
    assert not saturation.statistics["cyclic_shift"].fired
    assert any(m.rule == "cyclic_shift" and "piece_end" in m.reason for m in saturation.near_misses)


ELIMINATED: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("Reshape", (2, 6), {"shape": (3, 4)}),
    ("Flatten", (2, 3, 2), {}),
    ("Squeeze", (2, 1, 3), {"axes": (1,)}),
    ("Unsqueeze", (2, 3), {"axes": (0,)}),
    ("Transpose", (2, 3), {}),
    ("DepthToSpace", (1, 8, 2, 3), {"blocksize": 2}),
    ("SpaceToDepth", (1, 2, 4, 6), {"blocksize": 2}),
    ("Slice", (5, 3), {"starts": (3,), "ends": (0,), "steps": (-2,)}),
    ("Expand", (3, 1), {"shape": (2, 3, 4)}),
    ("Tile", (2, 3), {"repeats": (2, 2)}),
    ("Identity", (2, 3), {}),
    ("Dropout", (2, 3), {}),
    ("Pad", (2, 3), {"pads": (0, -1, 0, 0)}),
]


@pytest.mark.parametrize(("operator", "shape", "attributes"), ELIMINATED, ids=lambda v: v if isinstance(v, str) else "")
def test_layout_operators_become_views(
    operator: str, shape: tuple[int, ...], attributes: dict[str, Any], base: RuleBase
) -> None:
    builder = Builder(base)
    y = builder.add("Relu", builder.add(operator, builder.input("x", shape), **attributes))
    extracted, _ = optimized(builder.finish(y), base)
    assert set(operators(extracted)) <= {VIEW, "Relu"}


def test_real_padding_stays(base: RuleBase) -> None:
    builder = Builder(base)
    y = builder.add("Pad", builder.input("x", (2, 3)), pads=(0, 1, 0, 0))
    extracted, _ = optimized(builder.finish(y), base)
    assert operators(extracted) == ["Pad"]


def test_outputs_of_a_split_are_views(base: RuleBase) -> None:
    builder = Builder(base)
    x = builder.add("Relu", builder.input("x", (2, 6)))
    builder.add("Split", x, outputs=2, axis=1, num_outputs=2)
    y = builder.add("Add", "Split_1.0", "Split_1.1")
    extracted, _ = optimized(builder.finish(y), base)
    assert sorted(operators(extracted)) == ["Add", "Relu", VIEW, VIEW]


def test_scale_that_is_no_constant_stays_out_of_the_weights(base: RuleBase) -> None:
    builder = Builder(base)
    x, k = builder.input("x", (2, 4)), builder.input("k", (6,))
    product = builder.add("MatMul", x, builder.constant("w", np.ones((4, 6), np.float32)))
    _, saturation = optimized(builder.finish(builder.add("Mul", product, k)), base)
    assert not saturation.statistics["scale_after_matmul"].fired
    miss = next(m for m in saturation.near_misses if m.rule == "scale_after_matmul")
    assert (miss.tensor, miss.reason, miss.values) == ("Mul_1.0", "constant(k)", {"k": "float32[6]"})


def test_scale_along_the_rows_stays_out_of_the_weights(base: RuleBase) -> None:
    builder = Builder(base)
    product = builder.add("MatMul", builder.input("x", (4, 4)), builder.constant("w", np.eye(4, dtype=np.float32)))
    scale = builder.constant("k", np.arange(4, dtype=np.float32).reshape(4, 1))
    _, saturation = optimized(builder.finish(builder.add("Mul", product, scale)), base)
    assert not saturation.statistics["scale_after_matmul"].fired


def test_gelu_with_another_factor_is_no_gelu(base: RuleBase) -> None:
    builder = Builder(base)
    x = builder.input("x", (2, 4))
    inner = builder.add("Erf", builder.add("Div", x, builder.constant("c", number(1.5))))
    outer = builder.add("Mul", x, builder.add("Add", inner, builder.constant("one", number(1))))
    extracted, saturation = optimized(
        builder.finish(builder.add("Mul", outer, builder.constant("h", number(0.5)))), base
    )
    assert not saturation.statistics["gelu"].fired
    assert "Gelu" not in operators(extracted)


def test_mean_along_other_axes_is_no_layer_normalization(base: RuleBase) -> None:
    builder = Builder(base)
    x = builder.input("x", (3, 4))
    d = builder.add("Sub", x, builder.add("ReduceMean", x, axes=(0,)))
    variance = builder.add("ReduceMean", builder.add("Mul", d, d), axes=(0,))
    root = builder.add("Sqrt", builder.add("Add", variance, builder.constant("e", number(1e-3))))
    _, saturation = optimized(builder.finish(builder.add("Div", d, root)), base)
    assert not saturation.statistics["layer_normalization"].fired
    assert any("are_last" in m.reason for m in saturation.near_misses if m.rule == "layer_normalization")


def test_addition_of_zero_that_broadcasts_is_kept(base: RuleBase) -> None:
    builder = Builder(base)
    zero = builder.constant("zero", np.zeros((3, 1), np.float32))
    y = builder.add("Add", builder.input("x", (4,)), zero)
    extracted, saturation = optimized(builder.finish(y), base)
    assert operators(extracted) == ["Add"]
    assert any(m.rule == "add_zero" and "another type" in m.reason for m in saturation.near_misses)


def test_constants_are_computed(base: RuleBase) -> None:
    builder = Builder(base)
    x = builder.input("x", (2, 3))
    for place in range(3):
        x = builder.add("Add", x, builder.constant(f"c{place}", np.full(3, place, np.float32)))
    extracted, _ = optimized(builder.finish(x), base)
    assert operators(extracted) == ["Add"]
    assert [value.tolist() for value in extracted.constants.values()] == [[3.0, 3.0, 3.0]]


def test_outputs_keep_their_names(base: RuleBase) -> None:
    builder = Builder(base)
    x = builder.input("x", (2, 3))
    y = builder.add("Relu", x)
    z = builder.add("Identity", y)
    graph = builder.finish(y, z, builder.add("Identity", x))
    extracted, _ = optimized(graph, base)
    assert extracted.outputs == graph.outputs
    assert sorted(operators(extracted)) == ["Relu", VIEW, VIEW]


def test_unsound_and_disabled_rules_never_run(base: RuleBase) -> None:
    builder = Builder(base)
    a, b, c = (builder.input(name, (2,)) for name in "abc")
    y = builder.add("Add", builder.add("Mul", a, c), builder.add("Mul", a, b))
    saturation = saturate(builder.finish(y), base, RULESETS, disable=["factor_common_multiplicand"])
    assert "common_factor_as_printed" not in saturation.statistics
    assert "factor_common_multiplicand" not in saturation.statistics
    assert saturation.enode_count == 6


def test_growth_is_linear_in_the_depth(base: RuleBase) -> None:
    sizes = []
    for depth in (2, 4, 8):
        builder = Builder(base)
        x = builder.input("x", (1, 56, 56, 6))
        weight = builder.constant("w", np.ones((6, 6), np.float32))
        for _ in range(depth):
            shifted = roll(builder, x, 1, 3)
            windows = builder.add("MatMul", partition(builder, shifted), weight)
            scaled = builder.add("Mul", windows, builder.constant(f"c{len(builder.graph.nodes)}", number(0.5)))
            x = builder.add("Add", x, reverse(builder, scaled))
        saturation = saturate(builder.finish(x), base, RULESETS)
        assert saturation.stopped is None
        sizes.append(saturation.enode_count)
    assert sizes[2] - sizes[1] <= 2 * (sizes[1] - sizes[0]) + 8


def test_a_bound_that_stops_is_reported(base: RuleBase) -> None:
    grow = parse_text("rewrite grow in growing  # grows\n    Relu(x) => Relu(Neg(Neg(x)))\n", "grow.smr")
    rules = collect([grow], [])
    rules.operators.update(base.operators)
    builder = Builder(base)
    graph = builder.finish(builder.add("Relu", builder.input("x", (2,))))
    saturation = saturate(graph, rules, ["growing"], bounds=Bounds(enodes=200, iterations=10_000))
    assert saturation.stopped is not None
    assert saturation.stopped.startswith("growing: ")

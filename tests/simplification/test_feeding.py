"""Random inputs at several values of open dimensions, of which one may be the sum of others."""

from __future__ import annotations

import itertools

import onnx

from smartmem_rules.simplification.feeding import RUNS, Inputs


def model(*shapes: list[int | str | None]) -> onnx.ModelProto:
    values = [
        onnx.helper.make_tensor_value_info(f"x{place}", onnx.TensorProto.INT64, shape)
        for place, shape in enumerate(shapes)
    ]
    return onnx.helper.make_model(onnx.helper.make_graph([], "inputs", values, []))


def shapes_of(given: onnx.ModelProto, count: int) -> list[list[tuple[int, ...]]]:
    draws = itertools.islice(Inputs.of(given, {}).draws(), count)
    return [[array.shape for array in feeds.values()] for feeds in draws]


def test_different_dimensions_have_different_extents_and_then_one() -> None:
    (first, ones, *_) = shapes_of(model(["b", 4, "n"], ["n"]), RUNS)
    assert first == [(2, 4, 3), (3,)]
    assert ones == [(1, 4, 1), (1,)]


def test_an_extent_that_is_a_sum_of_others_is_their_sum() -> None:
    for ids, mask, key in shapes_of(model(["b", "n"], ["b", "past + n"], ["b", "past"]), RUNS):
        assert mask == (ids[0], key[1] + ids[1])
    assert [x[0] for _, x in shapes_of(model(["n"], ["2 * n"]), 2)] == [4, 2]


def test_a_name_with_a_sign_whose_parts_are_no_dimensions_is_a_name() -> None:
    ((first, second), *_) = shapes_of(model(["n"], ["past + n"]), 1)
    assert first != second, "nothing says what `past` is"


def test_each_dimension_is_empty_once() -> None:
    inputs = Inputs.of(model(["b", "n"], ["past + n", "past"]), {})
    ran = next(inputs.draws())
    empty = [[array.shape for array in feeds.values()] for feeds in inputs.empty_draws(ran)]
    assert empty == [[(0, 3), (8, 5)], [(2, 0), (5, 5)], [(2, 3), (3, 0)]]


def test_inputs_whose_extents_are_numbers_are_drawn_as_they_are() -> None:
    given = model([2, 3])
    assert shapes_of(given, RUNS) == [[(2, 3)]] * RUNS
    assert not list(Inputs.of(given, {}).empty_draws({}))


def test_indices_lie_within_what_is_known_of_them() -> None:
    draws = list(itertools.islice(Inputs.of(model(["n"]), {"x0": 7}).draws(), 8))
    assert max(int(feeds["x0"].max()) for feeds in draws) > 1
    assert max(int(feeds["x0"].max()) for feeds in draws) < 7

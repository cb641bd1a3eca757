"""Launches of several kernels: which kernels share one, and that their results stay right."""

from __future__ import annotations

import numpy as np
import pytest

import smartmem_rules as sm
from smartmem_rules.environment import COMPUTE_UNITS
from smartmem_rules.plan.kernel.launch import Ordered
from tests.plan.models import Array, Node, model, normal
from tests.plan.running import Mode, by_onnxruntime, plan_of, prepare

TOLERANCE = 2e-5


def planned(nodes: list[Node], feeds: dict[str, Array], constants: dict[str, Array], outputs: str = "y") -> list[str]:
    """The forms of the kernels, also where one launch runs them in order, after their results were compared with those
    of ONNX Runtime."""
    proto = model(nodes, feeds, outputs, constants)
    plan, executor = prepare(proto, Mode())
    expected = by_onnxruntime(proto, feeds)
    for name, array in executor.run(feeds).items():
        scale = max(1.0, float(np.abs(expected[name]).max()))
        assert float(np.abs(array - expected[name]).max()) <= TOLERANCE * scale
    return [
        one.form for launch in plan.launches for one in (launch.steps if isinstance(launch, Ordered) else (launch,))
    ]


def weights(*shape: int) -> Array:
    return normal(*shape, seed=sum(shape)) / 8


PERCEPTRON: list[Node] = [("MatMul", "x u", "a"), ("Relu", "a", "h"), ("MatMul", "h v", "b"), ("Add", "b x", "y")]


@pytest.mark.parametrize("rows", [1, 49, 97, 400])
def test_the_products_of_a_perceptron_share_a_launch(rows: int) -> None:
    constants = {"u": weights(24, 64), "v": weights(64, 24)}
    assert planned(PERCEPTRON, {"x": normal(rows, 24)}, constants) == ["chain"]


def test_what_is_read_elsewhere_is_still_written() -> None:
    nodes: list[Node] = [
        ("MatMul", "x u", "a"),
        ("Relu", "a", "h"),
        ("MatMul", "h v", "y"),
        ("Transpose", "h", "z", {"perm": [1, 0]}),
    ]
    constants = {"u": weights(24, 32), "v": weights(32, 16)}
    assert "chain" in planned(nodes, {"x": normal(100, 24)}, constants, "y z")


def test_rows_may_be_visited_in_another_order() -> None:
    """The second product reads the rows of the first one in windows."""
    nodes: list[Node] = [
        ("MatMul", "x u", "p"),
        ("Relu", "p", "a"),
        ("Reshape", "a split", "b"),
        ("Transpose", "b", "c", {"perm": [0, 2, 1, 3, 4]}),
        ("Reshape", "c windows", "d"),
        ("MatMul", "d v", "y"),
    ]
    constants = {
        "u": weights(24, 32),
        "v": weights(32, 16),
        "split": np.array([8, 7, 8, 7, 32], np.int64),
        "windows": np.array([64, 49, 32], np.int64),
    }
    feeds = {"x": normal(56 * 56, 24)}
    assert planned(nodes, feeds, constants) == ["chain"]
    plan = plan_of(model(nodes, feeds, "y", constants), Mode())
    assert list(plan.placement) == []  # each work-item keeps its rows in their new order


def test_pixels_next_to_each_other_need_other_rows() -> None:
    """A 3 x 3 convolution reads what other work-items make, the 1 x 1 convolution after it does not."""
    nodes: list[Node] = [
        ("Conv", "x p", "a"),
        ("Relu", "a", "b"),
        ("Conv", "b q", "c", {"pads": [1, 1, 1, 1]}),
        ("Relu", "c", "d"),
        ("Conv", "d r", "y"),
    ]
    constants = {"p": weights(16, 8, 1, 1), "q": weights(16, 16, 3, 3), "r": weights(32, 16, 1, 1)}
    assert planned(nodes, {"x": normal(1, 8, 20, 20)}, constants) == ["contraction", "chain"]


def test_products_head_by_head_share_a_launch() -> None:
    """A linear attention: the product of keys and values stays with its head."""
    nodes: list[Node] = [("MatMul", "k v", "kv"), ("MatMul", "q kv", "y")]
    feeds = {"q": normal(16, 64, 16), "k": normal(16, 16, 64, seed=1), "v": normal(16, 64, 24, seed=2)}
    assert planned(nodes, feeds, {}) == ["chain"]


def test_products_that_mix_rows_stay_apart() -> None:
    nodes: list[Node] = [
        ("MatMul", "x u", "p"),
        ("Relu", "p", "a"),
        ("Transpose", "a", "b", {"perm": [1, 0]}),
        ("MatMul", "b v", "y"),
    ]
    constants = {"u": weights(96, 96), "v": weights(96, 96)}
    assert "chain" not in planned(nodes, {"x": normal(96, 96)}, constants)


def test_unlike_kernels_run_side_by_side() -> None:
    nodes: list[Node] = [
        ("MatMul", "x u", "a"),
        ("Softmax", "z", "s"),
        ("MatMul", "a w", "y"),
        ("Transpose", "s", "t", {"perm": [1, 0]}),
    ]
    constants = {"u": weights(16, 16), "w": weights(16, 16)}
    feeds = {"x": normal(12, 16), "z": normal(9, 7, seed=3)}
    forms = planned(nodes, feeds, constants, "y t")
    assert forms.count("beside") == 1
    assert len(forms) <= 2


@pytest.mark.covering
@pytest.mark.parametrize("cores", [1, 2, 64])
@pytest.mark.parametrize("axes", [[0, 1, 2, 3], [0, 2], [2]], ids=str)
def test_a_reduction_over_a_products_rows_keeps_its_own_rows(cores: int, axes: list[int]) -> None:
    """Where a work-item owns all rows of a batch, a kernel that joins it may have fewer of them."""
    feeds, constants = {"x": normal(3, 3, 5, 7), "u": weights(7, 8)}, {"axes": np.array(axes)}
    proto = model([("MatMul", "x u", "a"), ("ReduceMin", "a axes", "y")], feeds, "y", constants)
    with COMPUTE_UNITS.set_to(str(cores)):
        optimized = sm.optimize(proto)
    assert np.allclose(optimized.run(feeds)["y"], by_onnxruntime(proto, feeds)["y"], rtol=TOLERANCE)
    if cores == 1 and len(axes) == 4:
        assert [launch.form for launch in optimized.plan.launches] == ["chain"]

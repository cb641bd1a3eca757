"""Few rows read right factors that are no constants where they lie: the attention of a step of one token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.plan.models import Array, normal
from tests.plan.running import Mode, plan_of, run

CPU = Mode("smartmem")


@dataclass(frozen=True, kw_only=True)
class Attention:
    """One token behind a cache; heads share keys."""

    heads: int
    keys: int
    channels: int
    past: int

    def model(self) -> onnx.ModelProto:
        shared = self.heads // self.keys
        own, cached = [1, self.heads, 1, self.channels], [1, self.keys, self.past, self.channels]
        nodes = []
        for name in "kv":
            nodes += [
                helper.make_node("Concat", [f"past_{name}", f"new_{name}"], [f"all_{name}"], axis=2),
                helper.make_node("Unsqueeze", [f"all_{name}", "axis"], [f"one_{name}"]),
                helper.make_node("Expand", [f"one_{name}", "many"], [f"expanded_{name}"]),
                helper.make_node("Reshape", [f"expanded_{name}", "heads"], [name]),
            ]
        nodes += [
            helper.make_node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]),
            helper.make_node("MatMul", ["q", "t"], ["s"]),
            helper.make_node("Mul", ["s", "scale"], ["m"]),
            helper.make_node("Softmax", ["m"], ["a"], axis=-1),
            helper.make_node("MatMul", ["a", "v"], ["y"]),
        ]
        extents = (
            {"q": own}
            | {f"past_{n}": cached for n in "kv"}
            | {f"new_{n}": [1, self.keys, 1, self.channels] for n in "kv"}
        )
        constants = {
            "axis": np.array([2], np.int64),
            "many": np.array([1, self.keys, shared, self.past + 1, self.channels], np.int64),
            "heads": np.array([1, self.heads, self.past + 1, self.channels], np.int64),
            "scale": np.array(self.channels**-0.5, np.float32),
        }
        graph = helper.make_graph(
            nodes,
            "attention",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in extents.items()],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, own)],
            [numpy_helper.from_array(value, name) for name, value in constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)

    def feeds(self) -> dict[str, Array]:
        cached = (1, self.keys, self.past, self.channels)
        new = (1, self.keys, 1, self.channels)
        return {"q": normal(1, self.heads, 1, self.channels, seed=1)} | {
            f"{kind}_{name}": normal(*shape, seed=seed)
            for seed, (kind, name, shape) in enumerate(
                ((kind, name, shape) for kind, shape in (("past", cached), ("new", new)) for name in "kv"), 2
            )
        }

    def expected(self, feeds: dict[str, Array]) -> Array:
        exact = {name: value.astype(np.float64) for name, value in feeds.items()}
        k, v = (
            np.concatenate([exact[f"past_{n}"], exact[f"new_{n}"]], axis=2).repeat(self.heads // self.keys, axis=1)
            for n in "kv"
        )
        scores = exact["q"] @ k.swapaxes(2, 3) * self.channels**-0.5
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True) @ v)


IN_PLACE = [
    Attention(heads=2, keys=2, channels=16, past=3),
    Attention(heads=6, keys=2, channels=64, past=21),
    Attention(heads=8, keys=1, channels=32, past=40),
]
PACKED = [
    Attention(heads=2, keys=2, channels=20, past=9),  # rows that are no whole vectors
    Attention(heads=24, keys=2, channels=16, past=9),  # more rows than the schedule has
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("attention", [*IN_PLACE, *PACKED], ids=str)
def test_attention_over_one_token_is_that_of_doubles(attention: Attention) -> None:
    feeds = attention.feeds()
    expected = attention.expected(feeds)
    found = run(attention.model(), CPU, feeds)["y"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize("attention", IN_PLACE, ids=str)
def test_keys_and_values_are_not_packed(attention: Attention) -> None:
    assert not any(
        " columns[" in one.text or "inner_columns[" in one.text for one in plan_of(attention.model(), CPU).sources
    )


@pytest.mark.parametrize("attention", PACKED, ids=str)
def test_others_are(attention: Attention) -> None:
    assert any(" columns[" in one.text for one in plan_of(attention.model(), CPU).sources)


def test_rows_that_are_normalised_behind_their_product_are_packed() -> None:
    """Another template, whose tiles read panels only."""
    nodes = [helper.make_node("MatMul", ["a", "b"], ["s"]), helper.make_node("Softmax", ["s"], ["y"], axis=-1)]
    extents = {"a": [2, 4, 24], "b": [2, 24, 32]}
    graph = helper.make_graph(
        nodes,
        "rows",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in extents.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4, 32])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    feeds = {name: normal(*shape, seed=seed) for seed, (name, shape) in enumerate(extents.items())}
    exact = np.exp(feeds["a"].astype(np.float64) @ feeds["b"].astype(np.float64))
    expected = exact / exact.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(run(model, CPU, feeds)["y"], expected, rtol=0, atol=2e-6)

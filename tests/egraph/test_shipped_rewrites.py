"""Every shipped rewrite on one random instance: it fires, and both of its sides compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smartmem_rules.egraph import saturate
from smartmem_rules.egraph.model import CONSTANT, INPUT
from smartmem_rules.extraction import extract
from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.base import RuleBase, load_rules
from tests.egraph.building import Builder, feeds_of, run

pytestmark = pytest.mark.sampled(2)

X = (2, 3, 4, 4)


def number(value: float) -> np.ndarray[Any, Any]:
    return np.array(value, np.float32)


def random(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).uniform(0.5, 1.5, shape).astype(np.float32)


CONV = {"x": X, "w": random(5, 3, 3, 3), "b": random(5), "k": random(5, 1, 1), "@c": {"pads": (1, 1, 1, 1)}}
BATCH_NORM = CONV | {name: random(5) for name in "somv"} | {"e": 1e-3}
PRODUCT = {"x": X, "w": random(4, 6), "b": random(6), "k": random(6)}
PACKED = {
    "x": (2, 3, 32),
    "w": np.arange(96, dtype=np.uint8).reshape(6, 1, 16),
    "s": random(6, 1),
    "i": np.array([[1], [2]]),
    "b": 1,
    "@m": {"K": 32, "N": 6, "bits": 4, "block_size": 32},
}
GEMM = {"a": (3, 4), "w": random(4, 6), "b": random(6), "k": number(1.5), "p": 0.5, "q": 1.0}
GELU = {"c": number(0.70710678)}
TANH = {"c": number(0.044715), "k": number(0.79788456)}
LAYER = {"a": (-1,), "b": (-1,), "e": number(1e-3), "s": random(4)}
ATTENTION = {"q": X, "k": (2, 3, 4, 5), "c": number(0.25)}
SLICES = {"a": 2, "p": (2,), "u": (2,), "q": (1,), "v": None}
ONE = {"x": (2, 1, 4), "a": (1,), "k": 0, "n": 0}

BYTES = {"dtype": "uint8", "s": number(0.25), "z": np.array(3, np.uint8)}
SUM = {f"s{name}": number(scale) for name, scale in (("a", 0.25), ("b", 0.5), ("x", 0.25), ("y", 0.125))}
SUM |= {f"z{name}": np.array(zero, np.uint8) for name, zero in (("a", 2), ("b", 1), ("x", 3), ("y", 100))}
SUM |= {"dtype": "uint8"}
WEIGHTS = SUM | {
    "w": np.arange(135, dtype=np.uint8).reshape(5, 3, 3, 3),
    "sw": random(5), "zw": np.full(5, 60, np.uint8), "@c": {"pads": (1, 1, 1, 1)}, "p": 0, "q": 0,
}  # fmt: skip
"""Operands of QLinear operators; what lies between dequantized and quantized tensors is in steps of an eighth."""

SPECS: dict[str, dict[str, Any]] = {
    "on_integers.Reshape": BYTES | {"@m": {"shape": (6, 16)}},
    "on_integers.Transpose": BYTES | {"@m": {"perm": (0, 2, 3, 1)}},
    "on_integers.Squeeze": BYTES | {"x": (2, 1, 4), "@m": {"axes": (1,)}},
    "on_integers.Unsqueeze": BYTES | {"@m": {"axes": (1,)}},
    "on_integers.Flatten": BYTES | {"@m": {"axis": 2}},
    "on_integers.Slice": BYTES | {"@m": {"starts": (1,), "ends": (3,), "axes": (2,)}},
    "on_integers.Expand": BYTES | {"@m": {"shape": (3, 2, 3, 4, 4)}},
    "on_integers.DepthToSpace": BYTES | {"x": (2, 4, 4, 4), "@m": {"blocksize": 2}},
    "on_integers.SpaceToDepth": BYTES | {"@m": {"blocksize": 2}},
    "on_integers.MaxPool": BYTES | {"@m": {"kernel_shape": (2, 2)}},
    "quantized_again": BYTES,
    "product_of_integers": SUM | {"b": (4, 6), "p": 1},
    "convolution_of_integers": WEIGHTS,
    "biased_convolution_of_integers": WEIGHTS | {
        "b": np.arange(5, dtype=np.int32), "sb": random(5) * np.float32(0.25), "zb": np.zeros(5, np.int32),
    },
    "gemm_of_integers": SUM | {
        "a": (3, 4), "b": (4, 6), "p": 1, "q": 0, "t": 0, "u": 0,
        "c": np.arange(6, dtype=np.int32), "sc": np.full(6, 0.125, np.float32), "zc": np.zeros(6, np.int32),
        "sb": np.full(6, 0.5, np.float32), "zb": np.ones(6, np.uint8),
    },
    "unbiased_gemm_of_integers": SUM | {
        "a": (3, 4), "b": (4, 6), "p": 1, "t": 0, "u": 0,
        "sb": np.full(6, 0.5, np.float32), "zb": np.ones(6, np.uint8),
    },
    "scaled_product_of_integers": SUM | {"b": (4, 6), "p": 1},
    "scaled_gemm_of_integers": SUM | {
        "a": (3, 4), "b": (4, 6), "p": 1, "c": random(6), "sb": np.full(6, 0.5, np.float32), "zb": np.ones(6, np.uint8),
    },
    "scaled_gemm_of_turned_integers": SUM | {
        "a": (3, 4), "b": (6, 4), "p": 0, "c": random(6), "sb": np.full(6, 0.5, np.float32), "zb": np.ones(6, np.uint8),
    },
    "scaled_convolution_of_integers": WEIGHTS,
    "biased_scaled_convolution_of_integers": WEIGHTS | {"b": random(5)},
    "sum_of_integers": SUM,
    "elementwise_product_of_integers": SUM,
    "softmax_of_integers": SUM | {"a": -1, "sy": number(1 / 256)},
    "mean_of_integers": SUM,
    "concat_of_one": {"Concat": {"axis": 1}},
    "concat_of_consecutive_slices": SLICES | {"s": (0,), "e": (3,), "t": (3,), "f": (9**18,)},
    "cyclic_shift": SLICES | {"s": (-1,), "e": (9**18,), "t": (0,), "f": (-1,)},
    "concat_of_split": {"parts": 2, "s": 2, "a": -2, "z": (1, 3)},
    "concat_of_split_in_three": {"parts": 3, "x": (2, 3, 6), "s": 2, "a": -1, "n": 3},
    "cast_to_same_type": {"t": "float32"},
    "layer_normalization": LAYER,
    "layer_normalization_scale": LAYER | {"a": -1, "e": 1e-3},
    "layer_normalization_bias": LAYER | {"a": -1, "e": 1e-3, "b": random(4)},
    "rms_normalization": LAYER,
    "rms_normalization_scale": LAYER | {"a": -1, "e": 1e-3},
    "group_normalization": {
        "x": (2, 6, 4, 4), "p": (0, 3, -1), "g": np.ones(3, np.float32), "z": np.zeros(3, np.float32),
        "e": 1e-3, "s": random(6, 1, 1), "b": random(6, 1, 1), "Reshape": {"shape": (2, 6, 4, 4)},
    },
    "softmax": {"a": (3,), "b": (-1,)},
    "unshifted_softmax": {"a": (1,), "x": random(2, 3, 4)},
    "root_of_power": {"x": random(2, 3, 4)},
    "roots_of_one_tensor": {"b": random(2, 3, 4, 4)},
    "l2_norm": {"a": (1,), "k": 0},
    "gelu": GELU, "gelu_of_half": GELU, "gelu_of_half_sum": GELU,
    "gelu_tanh": TANH, "gelu_tanh_of_sum": TANH, "gelu_tanh_of_half_sum": TANH,
    "swish": {"c": number(1.5)},
    "hard_swish": {"a": 1 / 6, "b": 0.5},
    "hard_sigmoid": {"c": number(1 / 6)},
    "hard_swish_of_product": {"c": number(1 / 6)},
    "scale_of_queries": ATTENTION,
    "scale_of_keys": ATTENTION,
    "scale_of_transposed_keys": {"k": X, "c": number(0.25), "p": (0, 1, 3, 2)},
    "batch_normalization_into_conv": BATCH_NORM,
    "batch_normalization_into_conv_bias": BATCH_NORM,
    "batch_normalization_as_scale_and_bias": {name: random(3) for name in "somv"} | {"e": 1e-3},
    "scale_after_conv": CONV,
    "scale_after_conv_bias": CONV,
    "bias_after_conv": CONV,
    "bias_after_conv_bias": CONV,
    "scale_before_conv": CONV | {"k": random(1, 3, 1, 1)},
    "scale_before_conv_bias": CONV | {"k": random(3, 1, 1)},
    "scale_after_matmul": PRODUCT,
    "scale_before_matmul": PRODUCT | {"k": random(4)},
    "scale_after_biased_matmul": PRODUCT,
    "biased_matmul": PRODUCT | {"x": (3, 4)},
    "bias_after_gemm": GEMM | {"k": random(6)},
    "bias_after_gemm_bias": GEMM | {"k": random(3, 6)},
    "scale_after_gemm": GEMM,
    "product_of_constant_products": {"v": random(4, 6), "w": random(6, 5)},
    "rows_of_product": PRODUCT | {"i": np.array([[1], [2]]), "b": 1},
    "rows_of_packed_product": PACKED,
    "rows_of_packed_product_with_zeros": PACKED | {"z": np.full((6, 1), 0x18, np.uint8)},
    "sum_of_products": {"v": random(4, 6), "w": random(4, 6) * 2},
    "of_one_element.ReduceSum": ONE, "of_one_element.ReduceMean": ONE, "of_one_element.ReduceMax": ONE,
    "of_one_element.ReduceMin": ONE, "of_one_element.ReduceProd": ONE,
    "squared_sum": {"a": X, "b": X, "c": X, "t": (1,), "k": 1},
    "product_of_exponentials": {"a": (1,), "k": 1},
    "clip_as_relu": {"a": 0.0},
    "clip_of_relu": {"a": -0.5, "b": 1.0},
    "relu_of_clip": {"a": -0.5, "b": 1.0},
    "clip_of_clip": {"a": -0.5, "b": 1.2, "c": -0.7, "d": 1.0},
    "double_not": {"dtype": "bool"},
    "and_true": {"dtype": "bool", "c": np.ones(1, bool)},
    "or_false": {"dtype": "bool", "c": np.zeros(1, bool)},
}  # fmt: skip
"""What a rule needs besides tensors of shape X and constant numbers where its guards ask for constants."""


def shipped() -> list[ast.Rewrite]:
    """Those that derive facts make nothing equal; `test_shipped_facts.py` tests them."""
    return [rule for rule in load_rules().rewrites if rule.unsound is None and rule.derives is None]


def guarded_constants(rule: ast.Rewrite) -> set[str]:
    return {
        guard.arguments[0].id
        for guard in rule.guards
        if isinstance(guard, ast.Call) and guard.function == "constant" and isinstance(guard.arguments[0], ast.Name)
    }


def variables(pattern: ast.Pattern) -> set[str]:
    if isinstance(pattern, ast.PatternVariable):
        return {pattern.name}
    if isinstance(pattern, ast.PatternOperator):
        return set().union(*(variables(a) for a in pattern.arguments))
    return set()


def spec_of(rule: ast.Rewrite) -> dict[str, Any]:
    """An instance on which all guards hold."""
    constants = guarded_constants(rule)
    spec: dict[str, Any] = {
        name: number(0.75 + 0.5 * place) if name in constants else X
        for place, name in enumerate(sorted(variables(rule.left)))
    }
    return spec | SPECS.get(rule.name, {})


def is_signed(rule: ast.Rewrite) -> bool:
    return not {"nan", "infinities"} & set(rule.relaxes)


@pytest.mark.parametrize("rule", shipped(), ids=lambda rule: rule.name)
def test_both_sides_are_equal(rule: ast.Rewrite, base: RuleBase) -> None:
    spec = spec_of(rule)
    builder = Builder(base)
    root = builder.pattern(rule.left, spec)
    assert root is not None
    graph = builder.finish(root)
    saturation = saturate(graph, base, [rule.ruleset], disable=base.rule_names() - {rule.name})
    assert saturation.statistics[rule.name].fired, saturation.near_misses
    # only what the rule made is left of the root's class
    kept = saturation.classes[saturation.tensor_class[root]]
    made = [n for n in kept.nodes if n.rules or n.operator in (INPUT, CONSTANT)]
    kept.nodes = made or kept.nodes
    extracted, _ = extract(saturation, graph, base.devices["pocl"])
    feeds = feeds_of(graph, signed=is_signed(rule))
    for expected, actual in zip(run(graph, feeds), run(extracted, feeds), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5)

"""`Unique` of numbers and slices with NaN, which ONNX leaves open: all NaN are one value behind all numbers."""

from __future__ import annotations

from functools import cmp_to_key

import numpy as np
import onnx
import pytest

import smartmem_rules as sm

pytestmark = pytest.mark.sampled(3)

VALUES = np.array([np.nan, -np.inf, np.inf, -1, 0, -0.0, 1, 2])


def order(one: np.ndarray, other: np.ndarray) -> int:
    """-1, 0 or 1, by the first elements that differ."""
    for a, b in zip(one.ravel(), other.ravel(), strict=True):
        if a == b or (a != a and b != b):
            continue
        return 1 if b == b and (a != a or a > b) else -1
    return 0


def expected(slices: list[np.ndarray], is_sorted: bool) -> tuple[list[int], list[int], list[int]]:
    """The places of first occurrences, for each slice the place of its value among them, and how often it occurs."""
    first = [next(g for g in range(len(slices)) if order(slices[g], one) == 0) for one in slices]
    values = sorted(set(first))
    if is_sorted:
        values.sort(key=cmp_to_key(lambda f, g: order(slices[f], slices[g])))
    return values, [values.index(f) for f in first], [first.count(v) for v in values]


@pytest.mark.covering
@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_unique(is_sorted: int, axis: int | None, dtype: type) -> None:
    random = np.random.default_rng(5)
    values = VALUES if np.issubdtype(dtype, np.floating) else np.arange(-2, 3)
    for _ in range(4):
        x = random.choice(values, (3, 2, 2) if axis == 0 else (2, 4)).astype(dtype)
        wanted_axis = "" if axis is None else f", axis = {axis}"
        kind = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
        name = onnx.TensorProto.DataType.Name(kind).lower()
        extents = ", ".join(map(str, x.shape))
        model = onnx.parser.parse_model(
            f'<ir_version: 8, opset_import: ["" : 17]> f ({name}[{extents}] x) => ({name}[] y, int64[] i, int64[] v, '
            f"int64[] c) {{ y, i, v, c = Unique <sorted = {is_sorted}{wanted_axis}> (x) }}"
        )
        for output in model.graph.output:
            output.type.tensor_type.ClearField("shape")
        found = sm.optimize(model).run({"x": x})
        slices = list(x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0))
        first, inverse, counts = expected(slices, bool(is_sorted))
        y = x.reshape(-1)[first] if axis is None else np.take(x, first, axis)
        np.testing.assert_array_equal(found["y"], y)
        for output, wanted in zip("ivc", (first, inverse, counts), strict=True):
            np.testing.assert_array_equal(found[output], wanted)

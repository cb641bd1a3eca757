"""Described weights: what is drawn, and how much memory that takes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from onnx import TensorProto

from smartmem_rules.graph.described import Ahead
from smartmem_rules.graph.model import GraphError
from smartmem_rules.graph.weights import Values, tensor_value

MOMENTS = {"std": "0.5", "mean": "0.25", "min": "-0.5", "max": "1"}


def described(code: int, *shape: int, **changed: str) -> TensorProto:
    tensor = TensorProto(data_type=code, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "seeded-normal", "offset": "3", **MOMENTS, **changed}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


@pytest.mark.parametrize(("code", "dtype"), [(TensorProto.FLOAT, np.float32), (TensorProto.FLOAT16, np.float16)])
@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (1 << 16,), (3, 70_001)])
def test_pieces_are_what_is_drawn_at_once(code: int, dtype: type[np.generic], shape: tuple[int, ...]) -> None:
    drawn = np.random.Generator(np.random.PCG64(3)).standard_normal(shape, dtype=np.float32)
    expected = np.clip(drawn * np.float32(0.5) + np.float32(0.25), -0.5, 1).astype(dtype)
    found = tensor_value("w", described(code, *shape), None)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)


def test_threads_allocate_little() -> None:
    """What they allocate stays with the process, and each time other threads may keep it."""
    size = 1 << 22
    values = Values(None, Ahead())
    tracemalloc.start()
    try:
        values.add("w", described(TensorProto.FLOAT, size))
        array = values["w"]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak - array.nbytes < 2 << 20, peak


def taken_in(tensor: TensorProto) -> np.ndarray:
    values = Values(None, Ahead())
    values.add("w", tensor)
    return values["w"]


@pytest.mark.parametrize(("shape", "changed"), [((1 << 17,), {"std": "wide"}), ((-(1 << 9), -(1 << 9)), {})])
def test_damage_is_found_beside_the_main_thread_too(shape: tuple[int, ...], changed: dict[str, str]) -> None:
    tensor = described(TensorProto.FLOAT, *shape, **changed)
    with pytest.raises(GraphError, match=r"tensor 'w' cannot be read"):
        taken_in(tensor)

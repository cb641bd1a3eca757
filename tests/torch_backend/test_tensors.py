"""Tensors and arrays of one memory, and strides of outputs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.torch_backend.torch_extra import torch

from smartmem_rules.torch_backend.errors import RefusedError  # isort: skip
from smartmem_rules.torch_backend.tensors import Placement, as_array, as_tensor  # isort: skip


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "int8", "int64", "bool", "complex64"])
def test_arrays_and_tensors_share_memory(name: str) -> None:
    tensor = torch.ones(3, 4).to(getattr(torch, name))
    back = as_tensor(as_array(tensor))
    assert back.data_ptr() == tensor.data_ptr()
    assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)


def test_a_lazily_conjugated_tensor_is_computed() -> None:
    tensor = torch.tensor([1 + 2j]).conj()
    assert as_array(tensor)[0] == 1 - 2j


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((3, 4), (4, 1)), ((3, 4), (1, 3)), ((3, 4), (0, 1)), ((2, 3, 4), (1, 8, 2)), ((1, 4), (9, 1)), ((0, 4), (4, 1))],
)
def test_outputs_get_the_strides_of_the_example(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    example = torch.arange(64.0).as_strided(shape, strides)
    placed = Placement(example).placed(example.contiguous().clone())
    torch.testing.assert_close(placed, example)
    assert placed.stride() == strides


def test_an_array_without_elements_gets_the_strides_of_the_example() -> None:
    placed = Placement(torch.empty(0, 4)).placed(as_tensor(np.empty((0, 4), np.float32)))
    assert (placed.shape, placed.stride()) == ((0, 4), (4, 1))


def test_overlapping_elements_are_refused() -> None:
    with pytest.raises(RefusedError, match="overlapping strides"):
        Placement(torch.arange(8.0).as_strided((3, 4), (1, 1)))

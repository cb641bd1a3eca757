"""Tensors of PyTorch as arrays and back, without copies where the memory allows it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

from smartmem_rules.tensor.primitives import Array
from smartmem_rules.torch_backend.errors import RefusedError


def as_array(tensor: Any) -> Array:
    """A CPU tensor as an array of the same memory; a lazily conjugated or negated one is computed first."""
    if tensor.dtype == torch.bfloat16:
        bits: Array = tensor.detach().resolve_neg().view(torch.int16).numpy()
        return bits.view(ml_dtypes.bfloat16)
    found: Array = tensor.numpy(force=True)
    return found


def as_tensor(array: Array) -> Any:
    """An array as a CPU tensor of the same memory."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


class Placement:
    """The strides that eager execution gives an output.

    An axis of stride 0 is stored once. Strides under which other elements share memory are refused.
    """

    def __init__(self, example: Any) -> None:
        """Args:
        example: the tensor that eager execution gave.

        Raises:
            RefusedError: elements share memory in another way than along whole axes.
        """
        self._shape = tuple(example.shape)
        self._strides = tuple(example.stride())
        self._is_contiguous = example.is_contiguous()
        self._stored = tuple(
            1 if stride == 0 else extent for extent, stride in zip(self._shape, self._strides, strict=True)
        )
        if not self._is_contiguous and not _is_injective(self._stored, self._strides):
            raise RefusedError(f"an output of shape {list(self._shape)} has overlapping strides {self._strides}")

    def placed(self, tensor: Any) -> Any:
        """A contiguous tensor with the strides of the example."""
        if self._is_contiguous:  # strides of axes that are never followed may be any
            return tensor if tensor.stride() == self._strides else tensor.as_strided(self._shape, self._strides)
        stored = tensor[tuple(slice(0, extent) for extent in self._stored)]
        result = torch.empty_strided(self._stored, self._strides, dtype=tensor.dtype)
        result.copy_(stored)
        return result.expand(self._shape)


def _is_injective(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether no two elements share an address: sufficient, as each stride passes all of the smaller axes."""
    reach = 0
    for stride, extent in sorted((s, n) for n, s in zip(shape, strides, strict=True) if n > 1):
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True

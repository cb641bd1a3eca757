"""Whether the parameters of a module are still those that a plan was made with."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from smartmem_rules.tensor.primitives import Array
from smartmem_rules.torch_backend.tensors import as_array

_SAMPLES = 16
"""Elements of each parameter that every run looks at: `parameter.data` and arrays that share its memory can be written
without a trace, and what writes to them changes nearly always more than a few."""


_version = operator.attrgetter("_version")


def state_of(tensor: Any) -> tuple[int, int]:
    """Where a tensor lies and how often it was written; a tensor of inference mode is not counted."""
    return tensor.data_ptr(), -1 if torch.is_inference(tensor) else tensor._version


def states_of(tensors: Sequence[Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """`state_of` each, as addresses and versions: every run asks, and models have hundreds of parameters."""
    try:
        versions = tuple(map(_version, tensors))
    except RuntimeError:  # a tensor of inference mode is among them
        versions = tuple(state_of(tensor)[1] for tensor in tensors)
    return tuple(map(torch.Tensor.data_ptr, tensors)), versions


class Constants:
    """The parameters of a plan, which keeps them alive so that nothing else comes to lie in their places."""

    def __init__(self, tensors: Mapping[int, Any]) -> None:
        """Args:
        tensors: by their places among the inputs.
        """
        self.tensors = {place: tensor.detach() for place, tensor in tensors.items()}
        self._states = {place: state_of(tensor) for place, tensor in tensors.items()}
        self._views = [_sampled(as_array(tensor)) for tensor in self.tensors.values()]
        self._samples = self._sample()

    def are_unchanged(self) -> bool:
        """Whether a sample of the elements is what it was."""
        return self._sample() == self._samples

    def _sample(self) -> list[bytes]:
        return list(map(np.ndarray.tobytes, self._views))

    def rewritten(self, inputs: Sequence[Any]) -> set[int]:
        """The places at which inputs lie in the memory of these parameters, but were written since."""
        found = {place: state_of(inputs[place]) for place in self._states}
        return {place for place, old in self._states.items() if found[place][0] == old[0] and found[place] != old}


def _sampled(array: Array) -> Array:
    """A few elements of an array, in its own memory where it has no gaps."""
    flat = array.transpose(np.argsort(array.strides)[::-1]).reshape(-1)
    return flat[:: max(1, flat.size // _SAMPLES)]

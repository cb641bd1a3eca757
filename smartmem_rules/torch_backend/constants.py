"""Whether the parameters of a module are still those that a plan was made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from smartmem_rules.tensor.primitives import Array
from smartmem_rules.torch_backend.tensors import as_array

_SAMPLES = 16
"""Elements of each parameter that every run looks at: `parameter.data` and arrays that share its memory can be written
without a trace, and what writes to them changes nearly always more than a few."""


def state_of(tensor: Any) -> tuple[int, int]:
    """Where a tensor lies and how often it was written; a tensor of inference mode is not counted."""
    return tensor.data_ptr(), -1 if torch.is_inference(tensor) else tensor._version


class Constants:
    """The parameters of a plan, which keeps them alive so that nothing else comes to lie in their places."""

    def __init__(self, tensors: Mapping[int, Any]) -> None:
        """Args:
        tensors: by their places among the inputs.
        """
        self.tensors = {place: tensor.detach() for place, tensor in tensors.items()}
        self._states = {place: state_of(tensor) for place, tensor in tensors.items()}
        self._samples = [(view, view.tobytes()) for view in map(_sampled, map(as_array, self.tensors.values()))]

    def are_unchanged(self) -> bool:
        """Whether a sample of the elements is what it was."""
        return all(view.tobytes() == before for view, before in self._samples)

    def rewritten(self, inputs: Sequence[Any]) -> set[int]:
        """The places at which inputs lie in the memory of these parameters, but were written since."""
        found = {place: state_of(inputs[place]) for place in self._states}
        return {place for place, old in self._states.items() if found[place][0] == old[0] and found[place] != old}


def _sampled(array: Array) -> Array:
    """A few elements of an array, in its own memory where it has no gaps."""
    flat = array.transpose(np.argsort(array.strides)[::-1]).reshape(-1)
    return flat[:: max(1, flat.size // _SAMPLES)]

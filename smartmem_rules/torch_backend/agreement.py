"""Whether outputs of a plan are those of PyTorch, as far as rounding allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_STEPS = 4096
"""Roundings of the element type that an output may differ by, relative to its largest magnitude: wrong semantics
differ by far more, sums in another order by less."""
_MOST = 0.25
"""What coarse element types may differ by at most."""


def disagreement(found: Sequence[Any], wanted: Sequence[Any], stored: Any) -> str | None:
    """What differs between two lists of tensors; None where nothing does.

    Args:
        stored: the element type in which the plan stores floats.
    """
    for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
        problem = _difference(one, other, torch.finfo(stored).eps)
        if problem is not None:
            return f"output {number}, {problem}"
    return None


def _difference(found: Any, wanted: Any, stored: float) -> str | None:
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype} of shape {list(found.shape)} instead of {wanted.dtype} of shape {list(wanted.shape)}"
    if not wanted.dtype.is_floating_point:
        differing = int((found != wanted).sum())
        return f"{differing} of {wanted.numel()} elements differ" if differing else None
    one, other = found.double(), wanted.double()
    finite = torch.isfinite(other)
    if not torch.equal(torch.isfinite(one), finite) or not torch.equal(
        one[~finite].nan_to_num(), other[~finite].nan_to_num()
    ):
        return "infinite values or NaN at other places"
    if not bool(finite.any()):
        return None
    scale = float(other[finite].abs().max())
    error = float((one[finite] - other[finite]).abs().max())
    bound = min(_MOST, _STEPS * max(stored, torch.finfo(wanted.dtype).eps))
    if error <= bound * scale or error <= torch.finfo(wanted.dtype).tiny:
        return None
    return f"the largest difference is {error:.3g} where values reach {scale:.3g}"

"""Why a PyTorch model cannot be compiled."""

from __future__ import annotations

from smartmem_rules.errors import SmartmemError


class TorchError(SmartmemError):
    """A PyTorch model or its inputs cannot be used; the message says what and what to do."""


class RefusedError(SmartmemError):
    """Something in a graph cannot be planned, so that it is left to PyTorch; the message says why."""


class LeftToEagerWarning(UserWarning):
    """Parts of a model run in PyTorch: the message lists their operators with the lines of the model's source."""

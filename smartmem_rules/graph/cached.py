"""What inputs and outputs that hold keys and values of earlier tokens are called, by transformers and ONNX Runtime."""

from __future__ import annotations

PAST, PRESENT = ("past_key_values.", "past_key."), "present."


def present_of(name: str) -> str | None:
    """The output that holds what an input of a cache becomes; None where an input has no such name."""
    prefix = next((one for one in PAST if name.startswith(one)), None)
    return None if prefix is None else PRESENT + name.removeprefix(prefix)

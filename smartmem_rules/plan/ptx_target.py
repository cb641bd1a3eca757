"""How a kernel says that its PTX is for another target than the one for which the driver compiles OpenCL C."""

from __future__ import annotations

from collections.abc import Iterable

_ASKS = "-DSMR_TARGET="
IS_SET = "-DSMR_TARGET_IS_SET"
"""The option with which a runtime compiles that sets the target: without it, the texts refuse to compile."""


def target_option(target: str) -> tuple[str, ...]:
    """The options of a kernel for a PTX target; none for the driver's own, ``""``."""
    return (_ASKS + target,) if target else ()


def asked_target(options: Iterable[str]) -> str:
    """The PTX target that the options of a kernel ask for, ``""`` for the driver's own."""
    return next((option[len(_ASKS) :] for option in options if option.startswith(_ASKS)), "")

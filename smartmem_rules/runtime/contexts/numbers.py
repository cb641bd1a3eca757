"""Numbers as arguments of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np


def set_number(kernel: Any, place: int, number: int) -> None:
    """Set an argument of type int.

    `set_arg` of pyopencl tries a number as memory first and fails inside, which takes 10 us; its own function for bytes
    takes 0.1 us. Releases that have none get the number as it is.
    """
    getattr(kernel, "_set_arg_buf", kernel.set_arg)(place, np.int32(number))

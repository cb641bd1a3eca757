"""Whether this process may use the processor's unit for products of bytes (Intel AMX, `amx_int8`).

The unit's registers are 8 KiB, which Linux saves for a process only after it has asked for that
(https://docs.kernel.org/arch/x86/xstate.html); without the permission, the first instruction ends the process. Threads
of the process and its children have the permission, too.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache
from pathlib import Path

from smartmem_rules.runtime.processor.flags import PROCESSORS, processor_flags

_FLAGS = frozenset({"amx_tile", "amx_int8"})
"""Of /proc/cpuinfo."""
_ARCH_PRCTL = 158
"""The number of the system call on x86-64."""
_REQUEST_PERMISSION, _TILE_DATA = 0x1023, 18
"""ARCH_REQ_XCOMP_PERM, and the state that it is asked for."""


@cache
def has_byte_unit(processors: Path = PROCESSORS) -> bool:
    """Whether the processor has the unit and this process may use it; asks for the permission.

    Args:
        processors: where the flags of the processor are read.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    flags = processor_flags(processors)
    if flags is None or not flags >= _FLAGS:
        return False
    system = ctypes.CDLL(None, use_errno=True)
    return int(system.syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA)) == 0

"""Changes the target of the PTX that NVIDIA's driver makes of OpenCL C.

The driver compiles for `sm_90`, whatever the options say, and refuses instructions that only `sm_90a` has. The kernel's
text therefore has such instructions behind `//@`, a comment of PTX, which comes out of the compiler with its registers
filled in. The driver takes the changed PTX as the binary of a program (clCreateProgramWithBinary).
"""

from __future__ import annotations

import re

_MARK = "//@ "
_TARGET = re.compile(r"^\.target (sm_\d+)\b", re.M)


class TargetError(Exception):
    """The driver's binary is no PTX, or is for another processor than the wanted target."""


def with_target(binary: bytes, target: str) -> bytes:
    """The driver's PTX for another target, with the instructions that only this target has.

    Args:
        binary: of a program, as the driver gives it (CL_PROGRAM_BINARIES).
        target: as `.target` of PTX names it, such as `sm_90a`.

    Raises:
        TargetError: the binary is no PTX, is for another processor, or has none of the instructions.
    """
    text = binary.rstrip(b"\0").decode("utf-8", errors="replace")
    found = _TARGET.search(text)
    if found is None:
        raise TargetError("the driver's binary is no PTX")
    if target[:-1] != found[1]:
        raise TargetError(f"the driver's PTX is for {found[1]}, and the kernel for {target}")
    if _MARK not in text:
        raise TargetError(f"the driver's PTX has lost the instructions of {target}")
    changed = text[: found.start(1)] + target + text[found.end(1) :]
    return changed.replace(_MARK, "").encode() + b"\0"

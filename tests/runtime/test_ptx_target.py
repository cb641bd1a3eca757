"""The PTX of NVIDIA's driver for a target for which it does not compile: what is changed, and what is refused."""

from __future__ import annotations

import pytest

from smartmem_rules.plan.ptx_target import IS_SET, asked_target, target_option
from smartmem_rules.runtime.ptx_target import TargetError, with_target

PTX = b""".version 9.0
.target sm_90, texmode_independent
.address_size 64
// begin inline asm
//@ wgmma.fence.sync.aligned;
// end inline asm
\0"""


def test_instructions_come_out_of_their_comments() -> None:
    assert with_target(PTX, "sm_90a").decode().split("\n") == [
        ".version 9.0",
        ".target sm_90a, texmode_independent",
        ".address_size 64",
        "// begin inline asm",
        "wgmma.fence.sync.aligned;",
        "// end inline asm",
        "\0",
    ]


@pytest.mark.parametrize(
    ("binary", "reason"),
    [
        (b"\x7fELF", "no PTX"),
        (PTX.replace(b"sm_90", b"sm_80"), "is for sm_80"),
        (PTX.replace(b"sm_90", b"sm_100"), "is for sm_100"),
        (PTX.replace(b"//@", b"//"), "lost the instructions"),
    ],
)
def test_other_binaries_are_refused(binary: bytes, reason: str) -> None:
    with pytest.raises(TargetError, match=reason):
        with_target(binary, "sm_90a")


def test_a_kernel_asks_by_its_options() -> None:
    assert asked_target(("-DOTHER", *target_option("sm_90a"), IS_SET)) == "sm_90a"
    assert asked_target((IS_SET,)) == ""
    assert target_option("") == ()

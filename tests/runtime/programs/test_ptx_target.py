"""The PTX of NVIDIA's driver for a target for which it does not compile: what is changed, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from smartmem_rules.plan.ptx_target import IS_SET, asked_target, target_option
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.runtime.checks import checked
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.programs.ptx_target import TargetError, with_target
from smartmem_rules.runtime.target import _within_limits
from tests.emit.kernel_cases import CASES

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


@pytest.mark.parametrize(
    ("capability", "there", "arrays"),
    [
        ((7, 5), False, 0),
        ((8, 0), False, 101376),
        ((8, 9), False, 101376),
        ((9, 0), True, 204800),
        ((10, 0), False, 101376),
    ],
)
def test_capability_9_alone_has_the_unit(capability: tuple[int, int], there: bool, arrays: int) -> None:
    found = _within_limits(load_rules().devices["nvidia"], replace(choose(), capability=capability))
    assert ("nvidia_wgmma_f16" in {unit.name for unit in found.units}) == there
    assert found.memory.array_memory == arrays


@pytest.mark.parametrize("name", sorted(name for name, case in CASES.items() if case.holds_ptx))
def test_debug_builds_leave_assembly_as_it_is(name: str) -> None:
    """Also what stands behind `//` in it."""
    plan = CASES[name].plan()
    strings = re.compile(r'"(?:[^"\\\n]|\\.)*"')
    for source in plan.sources:
        assert strings.findall(checked(source, plan.tensors).text) == strings.findall(source.text)

"""Whether a process may use the processor's matrix unit."""

from __future__ import annotations

from pathlib import Path

import pytest

from smartmem_rules.runtime.processor.matrix_unit import has_byte_unit


@pytest.mark.parametrize("flags", ["fpu avx512f avx512_vnni", "fpu amx_tile amx_bf16", ""])
def test_a_processor_without_the_flags_has_none(tmp_path: Path, flags: str) -> None:
    processors = tmp_path / "cpuinfo"
    processors.write_text(f"processor : 0\nflags : {flags}\n")
    assert not has_byte_unit(processors)


def test_a_computer_that_does_not_say_has_none(tmp_path: Path) -> None:
    assert not has_byte_unit(tmp_path / "none")

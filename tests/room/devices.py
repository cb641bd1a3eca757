"""Device files with little memory, which stand for smaller devices."""

from __future__ import annotations

from pathlib import Path

from smartmem_rules.resources import rules_path

_LARGEST = 1 << 50


def device_file(folder: Path, memory: int = _LARGEST, allocation: int = _LARGEST) -> Path:
    """The profile of the CPU with so many bytes of memory, of which it allocates so many at once."""
    text = (rules_path() / "devices" / "pocl.smr").read_text("utf-8")
    path = folder / f"small_{memory}_{allocation}.smr"
    limits = f"device small {{\n    global_memory {memory};\n    allocation {allocation};"
    path.write_text(text.replace("device pocl {", limits, 1), "utf-8")
    return path

"""What instructions the processor has, as Linux lists them."""

from __future__ import annotations

from pathlib import Path

PROCESSORS = Path("/proc/cpuinfo")


def processor_flags(processors: Path = PROCESSORS) -> frozenset[str] | None:
    """The flags of the first processor (`avx2`, `amx_int8`); None where the system does not list them."""
    try:
        lines = processors.read_text().splitlines()
    except OSError:
        return None
    return next((frozenset(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), None)

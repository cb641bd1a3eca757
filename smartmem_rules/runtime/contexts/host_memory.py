"""How much memory this process may still take.

Drivers for CPUs promise memory that is not there: it is taken when a kernel first touches it, and then the driver or
the system ends the process. So what a plan needs is compared with what is free before anything is allocated.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_UNBOUNDED = 1 << 60


def available_bytes() -> int | None:
    """The bytes that this process may still take; None where the system does not tell."""
    return min(_bounds(), default=None)


def _bounds() -> Iterator[int]:
    with contextlib.suppress(OSError, ValueError, KeyError):
        system = _numbers(Path("/proc/meminfo"))
        yield (system["MemAvailable"] + system.get("SwapFree", 0)) * 1024
    with contextlib.suppress(OSError, ValueError):
        limit, used = (int((_CGROUP / f"memory.{name}").read_text()) for name in ("max", "current"))
        kept = _numbers(_CGROUP / "memory.stat")
        # what the system gives up when memory is short
        yield limit - used + sum(kept.get(key, 0) for key in ("active_file", "inactive_file", "slab_reclaimable"))
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if 0 <= limit < _UNBOUNDED:
            yield limit - int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _numbers(path: Path) -> dict[str, int]:
    """The first number of each line `NAME: NUMBER ...` or `NAME NUMBER`."""
    lines = (line.replace(":", " ").split() for line in path.read_text().splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}

"""Temporary files of tests lie in memory, where the system has a file system there with room.

Tests and compilers write and remove thousands of small files. On a disk that is told of each block that becomes free,
each removal waits for the disk, and no core works meanwhile.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM = 4 << 30
"""Free bytes that it takes; the tests need a fiftieth of it."""


def keep_temporary_files_in_memory() -> None:
    """From now on, in this process and those that it starts, unless the user names a folder for temporary files."""
    if any(name in os.environ for name in ("TMPDIR", "TEMP", "TMP", "PYTEST_DEBUG_TEMPROOT")):
        return
    try:
        found = os.statvfs(MEMORY)
    except OSError:
        return
    # tests compile programs and start them, which some containers forbid there
    runs_programs = not found.f_flag & os.ST_NOEXEC and os.access(MEMORY, os.W_OK | os.X_OK)
    if runs_programs and found.f_bavail * found.f_frsize >= ROOM:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None

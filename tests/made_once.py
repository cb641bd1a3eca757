"""What takes long to make and is needed by several processes of tests: one makes it, the others wait."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

BUILD = Path(__file__).parents[1] / "build"


def made_once(name: str, sources: Sequence[Path], make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills, once for each state of the sources, also with several processes of tests.

    Args:
        name: of the folder below build/, before a digest of the sources.
        sources: files that it depends on.
    """
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(path.read_bytes())
    folder = BUILD / f"{name}-{digest.hexdigest()[:16]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            (folder / "made").touch()
    return folder

"""A measurement in a process of its own, so that none changes the next one's memory and caches."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

SECONDS = 3600


def in_own_process(script: str, *arguments: str) -> dict[str, Any]:
    """The JSON object in the last line that a script prints, or the error under the key `error`."""
    try:
        done = subprocess.run(
            [sys.executable, script, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no result after {SECONDS} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"error": lines[-1] if lines else f"exit code {done.returncode}"}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result

"""Which line of a model's source a node of a graph comes from."""

from __future__ import annotations

import re
from typing import Any

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)\n\s*(?P<text>.*)')


def source_line(stack: str | None) -> str:
    """The innermost frame of a stack trace as `FILE:LINE: TEXT`."""
    frames = list(_FRAME.finditer(stack or ""))
    if not frames:
        return "a line that PyTorch does not know"
    last = frames[-1]
    return f"{last['file']}:{last['line']}: {last['text'].strip()}"


def node_line(node: Any) -> str:
    """The line of a node of a graph."""
    return source_line(node.meta.get("stack_trace") or getattr(node, "stack_trace", None))

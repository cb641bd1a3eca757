"""Copies of syntax trees with some nodes replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from smartmem_rules.language import syntax as s

_Node = TypeVar("_Node", bound=s.Syntax)


def rebuilt(node: _Node, change: Callable[[s.Syntax], s.Syntax | None]) -> _Node:
    """The tree with every node for which `change` gives another one replaced, outermost first; spans stay."""
    return _rebuilt(node, change)  # type: ignore[return-value]


def _rebuilt(node: object, change: Callable[[s.Syntax], s.Syntax | None]) -> object:
    if isinstance(node, tuple):
        parts = tuple(_rebuilt(part, change) for part in node)
        return node if all(new is old for new, old in zip(parts, node, strict=True)) else parts
    if not isinstance(node, s.Syntax):
        return node
    changed = change(node)
    if changed is not None:
        return changed
    values: dict[str, Any] = {}
    for name in s.parts_of(node):
        old = getattr(node, name)
        new = _rebuilt(old, change)
        if new is not old:
            values[name] = new
    return replace(node, **values) if values else node

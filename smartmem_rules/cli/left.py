"""What no rule took, for a reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def print_left(screen: Console, left: Sequence[Mapping[str, Any]]) -> None:
    """The nodes that kernels still compute, by the rule that came nearest and what failed; then those without one."""
    screen.print("\nleft by the rules" if left else "\nno rule nearly took anything else", markup=False)
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in left:
        nearest = one["near_misses"][0] if one["near_misses"] else {}
        groups.setdefault((nearest.get("rule", ""), nearest.get("reason", "")), []).append(one)
    for (rule, reason), nodes in sorted(groups.items(), key=lambda item: -sum(one["moves_only"] for one in item[1])):
        screen.print(f"  {rule}: {reason}" if rule else "  no rule matched nearly", markup=False)
        for one in nodes:
            moves = ", which only moves data" if one["moves_only"] else ""
            screen.print(f"    {one['operator']} {one['node']} in {', '.join(one['kernels'])}{moves}", markup=False)

"""What no rule took, for a reader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from smartmem_rules.explanation.documents import LeftNode


def print_left(screen: Console, left: Sequence[LeftNode]) -> None:
    """The nodes that kernels still compute, by the rule that came nearest and what failed; then those without one."""
    screen.print("\nleft by the rules" if left else "\nno rule nearly took anything else", markup=False)
    groups: dict[tuple[str, str], list[LeftNode]] = {}
    for one in left:
        nearest = one["near_misses"][0] if one["near_misses"] else None
        key = ("", "") if nearest is None else (nearest["rule"], nearest["reason"])
        groups.setdefault(key, []).append(one)
    for (rule, reason), nodes in sorted(groups.items(), key=lambda item: -sum(one["moves_only"] for one in item[1])):
        screen.print(f"  {rule}: {reason}" if rule else "  no rule matched nearly", markup=False)
        for one in nodes:
            moves = ", which only moves data" if one["moves_only"] else ""
            screen.print(f"    {one['operator']} {one['node']} in {', '.join(one['kernels'])}{moves}", markup=False)

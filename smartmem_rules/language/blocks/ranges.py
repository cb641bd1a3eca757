"""Which numbers a key of a block may have: what is outside of them would end a later stage, or never end it."""

from __future__ import annotations

from smartmem_rules.records import dataclass

LARGEST = 1 << 62
"""What no number of a block exceeds."""


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`.

    Attributes:
        above: `low` is none of them.
        only: where there are so few that they can be listed, all of them.
        usual: one of them that most authors would mean.
    """

    low: float = 0
    high: float = LARGEST
    above: bool = False
    only: tuple[int, ...] = ()
    usual: float | None = None

    def admits(self, value: float) -> bool:
        """Whether a number is one of them."""
        if self.only:
            return value in self.only
        return (value > self.low if self.above else value >= self.low) and value <= self.high

    def told(self, value: float) -> str:
        """Which numbers there may be, to the author of another one."""
        if self.only:
            return f"one of {', '.join(map(str, self.only))}"
        begin = f"above {self.low:g}" if self.above else f"from {self.low:g}"
        if self.high >= LARGEST >= value:
            return begin if self.above else f"{begin} on"
        high = int(self.high) if float(self.high).is_integer() else self.high
        return f"{begin} {'and at most' if self.above else 'to'} {high}"


ANY = Range()
SIGNED = Range(low=-LARGEST)
POSITIVE = Range(above=True)
FROM_ONE = Range(low=1)
PART = Range(above=True, high=1)
"""A part of a whole."""
WIDTHS = Range(only=(1, 2, 4, 8, 16), usual=4)
"""Elements of OpenCL's vectors."""
WIDTHS_OR_NONE = Range(only=(0, *WIDTHS.only), usual=0)
FEW = Range(low=1, high=64)
"""Rows or vectors of a tile in registers: no device has more of them."""
FEW_OR_NONE = Range(high=64)
ITEMS = Range(low=1, high=1 << 20)
"""Work-items of a work-group or of a launch of its own, and what is shared out among them."""
ITEMS_OR_NONE = Range(high=1 << 20)

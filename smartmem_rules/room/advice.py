"""What is said of a plan that needs more memory than its device has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smartmem_rules.records import dataclass
from smartmem_rules.room.needs import Needs, Room, TooLargeError


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A change after which a plan would need less.

    Attributes:
        text: what to change, and how.
    """

    text: str
    needs: Needs


def refusal(subject: str, room: Room, needs: Needs, remedies: Sequence[Remedy]) -> TooLargeError:
    """The error for a plan that does not fit.

    Args:
        subject: whose plan it is.
        remedies: changes; those that do not suffice are not advised.
    """
    fitting = [one for one in remedies if one.needs.fits(room)]
    least = min(remedies, key=lambda one: one.needs.total, default=None)
    if fitting:
        listed = "; ".join(f"{one.text}: {shown(one.needs.total)}" for one in fitting)
        advice = f"what would fit: {listed}"
    elif least is None:
        advice = "take a device with more memory, or a smaller model"
    else:
        advice = (
            f"nothing of this fits: the least is {shown(least.needs.total)}, with {least.text}; take a device with "
            "more memory, or a smaller model"
        )
    return TooLargeError(f"{_lack(subject, room, needs)}; {advice}")


def _lack(subject: str, room: Room, needs: Needs) -> str:
    parts = {"weights": needs.weights, "intermediates, inputs and outputs": needs.others, "cache": needs.cache}
    listed = ", ".join(f"{shown(sum(pieces))} of {name}" for name, pieces in parts.items() if pieces)
    if needs.total > room.total:
        return f"{subject} needs {shown(needs.total)} ({listed}), and {room.device} has {shown(room.total)}"
    return (
        f"{subject} needs a piece of {shown(needs.largest)} ({listed}), and {room.device} allocates at most "
        f"{shown(room.largest)} at once"
    )


def shown(size: int) -> str:
    """Bytes as text, rounded up."""
    unit, name = (1 << 20, "MiB") if size >= 1 << 20 else (1 << 10, "KiB")
    tenths = -(-size * 10 // unit)
    return f"{tenths // 10}.{tenths % 10} {name}"


def largest_that(needs: Callable[[int], Needs], room: Room, low: int, high: int) -> int:
    """The largest number of a range with which there is room, where all below one have it, too; else the lowest."""
    while low < high:
        middle = (low + high + 1) // 2
        if needs(middle).fits(room):
            low = middle
        else:
            high = middle - 1
    return low

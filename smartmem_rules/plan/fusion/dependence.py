"""Which groups need which while groups join each other, for thousands of questions between the joins."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from smartmem_rules.records import dataclass

G = TypeVar("G", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class Around:
    """The watched groups around a group, as the bits of their numbers.

    Attributes:
        needed: all that the group needs, directly or through others.
        needing: those that need the group without another watched one in between.
    """

    needed: int
    needing: int


class Watched(Generic[G]):
    """The groups that are asked about. Of each it is kept which other watched ones it needs.

    A search from another group ends at the first watched ones: it stays short where thousands of groups have become
    one.
    """

    def __init__(
        self, order: Iterable[G], producers: Callable[[G], Iterable[G]], consumers: Callable[[G], Iterable[G]]
    ) -> None:
        """Args:
        order: all groups, each behind those that it needs.
        producers: the groups whose results a group reads; consumers: those that read the results of a group.
        """
        self._place = {group: place for place, group in enumerate(order)}
        self._producers = producers
        self._consumers = consumers
        self._number: dict[G, int] = {}
        self._needed: list[int] = []
        self._wanted = 0
        """Those that another watched group needs."""
        self._first, self._last = len(self._place), -1
        """The places between which all watched groups stand, and all that joined them."""

    def around(self, group: G) -> Around:
        """The watched groups around another one."""
        needed = 0
        for number in self._met(group, self._producers, lambda one: self._place[one] > self._first):
            needed |= self._needed[number] | 1 << number
        needing = self._met(group, self._consumers, lambda one: self._place[one] < self._last)
        return Around(needed=needed, needing=sum(1 << number for number in needing))

    def apart(self, watched: G, around: Around) -> bool:
        """Whether a watched group neither needs the group in the middle nor is needed by it."""
        number = self._number[watched]
        return not around.needed >> number & 1 and not self._needs(number, around.needing)

    def watch(self, group: G, around: Around) -> None:
        """Watch one more group."""
        number = self._number[group] = len(self._needed)
        self._needed.append(around.needed)
        self._wanted |= around.needed
        self._spread(group, 1 << number, around.needing)

    def join(self, watched: G, group: G, around: Around) -> None:
        """A group becomes part of a watched one from which it was apart."""
        number = self._number[watched]
        self._needed[number] |= around.needed
        self._wanted |= around.needed
        needing = around.needing | (1 << number if self._wanted >> number & 1 else 0)
        self._spread(group, self._needed[number] | 1 << number, needing)

    def _spread(self, group: G, needed: int, needing: int) -> None:
        """Whatever needs one of some watched groups, or is one of them, needs others as well."""
        self._first, self._last = min(self._first, self._place[group]), max(self._last, self._place[group])
        if not needing:
            return
        for number in range(len(self._needed)):
            own = 1 << number
            if not own & needed and self._needs(number, needing):
                self._needed[number] |= needed
                self._wanted |= needed

    def _needs(self, number: int, others: int) -> bool:
        """Whether a watched group is one of others or needs one of them."""
        return bool((self._needed[number] | 1 << number) & others)

    def _met(self, group: G, following: Callable[[G], Iterable[G]], may: Callable[[G], bool]) -> set[int]:
        """The numbers of the first watched groups on all ways from a group.

        Args:
            may: whether watched groups may lie beyond an unwatched one.
        """
        met: set[int] = set()
        stack, seen = [group] if self._number else [], {group}
        while stack:
            for one in following(stack.pop()):
                number = self._number.get(one)
                if number is not None:
                    met.add(number)
                elif one not in seen and may(one):
                    seen.add(one)
                    stack.append(one)
        return met

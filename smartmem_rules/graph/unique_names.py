"""Names of which no two are the same."""

from __future__ import annotations

from dataclasses import field

from smartmem_rules.records import dataclass


@dataclass
class UniqueNames:
    """Names that are taken, and for each the last number that made another name of it."""

    taken: set[str] = field(default_factory=set)
    numbers: dict[str, int] = field(default_factory=dict)

    def add(self, name: str) -> str:
        """The name itself, or the name with the first number that makes it one of its own; it is taken from now on."""
        found = name
        while found in self.taken:
            number = self.numbers[name] = self.numbers.get(name, 1) + 1
            found = f"{name}_{number}"
        self.taken.add(found)
        return found

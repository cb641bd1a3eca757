"""The atoms of an index: loop variables, floor divisions, moduli, table look-ups and elements of integer tensors.

Every atom says between which values it lies, what it depends on, and how it is printed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smartmem_rules.records import unguarded
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.lazy import lazy
from smartmem_rules.tensor.printer import variable_text
from smartmem_rules.tensor.ranges import largest, smallest

if TYPE_CHECKING:
    from smartmem_rules.tensor.index import Index

UNKNOWN_EXTENT = 1 << 40
"""The extent of a gathered value of which nothing is known: it may be negative too."""
NOTHING: frozenset[str] = frozenset()


def without_hash(record: object) -> dict[str, object]:
    """What another process may know of a record: hashes of texts differ between processes."""
    return {name: value for name, value in vars(record).items() if name not in ("_hash", "variables")}


@unguarded(frozen=True)
class Var:
    """A loop variable that runs over [0, extent)."""

    name: str
    extent: int

    size = 1

    @lazy
    def _hash(self) -> int:
        return hash((self.name, self.extent))

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> object:
        return without_hash(self)

    @property
    def interval(self) -> tuple[int, int]:
        return 0, self.extent - 1

    @lazy
    def variables(self) -> frozenset[Var]:
        return frozenset((self,))

    @property
    def gathered(self) -> frozenset[str]:
        return NOTHING

    @property
    def is_open(self) -> bool:
        return is_symbolic(self.extent)

    @property
    def sort_text(self) -> str:
        return self.name

    def __str__(self) -> str:
        return variable_text(self)


@unguarded(frozen=True)
class _Division:
    """One of the two results of a division by a positive number."""

    value: Index
    divisor: int

    @lazy
    def _hash(self) -> int:
        return hash((self.value, self.divisor))

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> object:
        return without_hash(self)

    @property
    def size(self) -> int:
        return 1 + self.value.size

    @property
    def variables(self) -> frozenset[Var]:
        return self.value.variables

    @property
    def gathered(self) -> frozenset[str]:
        return self.value.gathered

    @property
    def is_open(self) -> bool:
        return is_symbolic(self.divisor) or self.value.is_open


@unguarded(frozen=True)
class Div(_Division):
    """floor(value / divisor), divisor > 1."""

    __hash__ = _Division.__hash__

    @lazy
    def interval(self) -> tuple[int, int]:
        low, high = self.value.interval
        return low // self.divisor, high // self.divisor

    @property
    def sort_text(self) -> str:
        return f"({self.value.sort_text}) // {self.divisor}"

    def __str__(self) -> str:
        return f"{_operand_text(self.value)} // {self.divisor}"


@unguarded(frozen=True)
class Mod(_Division):
    """value mod divisor, never negative."""

    __hash__ = _Division.__hash__

    @property
    def interval(self) -> tuple[int, int]:
        return 0, self.divisor - 1

    @property
    def sort_text(self) -> str:
        return f"({self.value.sort_text}) % {self.divisor}"

    def __str__(self) -> str:
        return f"{_operand_text(self.value)} % {self.divisor}"


@unguarded(frozen=True)
class Lookup:
    """table[position]: a constant integer table."""

    table: tuple[int, ...]
    position: Index

    @property
    def size(self) -> int:
        return 1 + self.position.size

    @lazy
    def interval(self) -> tuple[int, int]:
        if self._is_plain:
            return min(self.table), max(self.table)
        return min(map(smallest, self.table)), max(map(largest, self.table))

    @lazy
    def _is_plain(self) -> bool:
        return {int}.issuperset(map(type, self.table))

    @property
    def variables(self) -> frozenset[Var]:
        return self.position.variables

    @property
    def gathered(self) -> frozenset[str]:
        return self.position.gathered

    @property
    def is_open(self) -> bool:
        return (not self._is_plain and any(map(is_symbolic, self.table))) or self.position.is_open

    @property
    def sort_text(self) -> str:
        return f"table{list(self.table)}[{self.position.sort_text}]"

    def __str__(self) -> str:
        return f"table{list(self.table)}[{self.position}]"


@unguarded(frozen=True)
class Gathered:
    """An element of an integer tensor used as an index; with `wrap`, negative values count from the end."""

    tensor: str
    indices: tuple[Index, ...]
    extent: int
    wrap: bool

    @property
    def size(self) -> int:
        return 1 + sum(index.size for index in self.indices)

    @property
    def interval(self) -> tuple[int, int]:
        if self.extent == UNKNOWN_EXTENT and not self.wrap:
            return -UNKNOWN_EXTENT, UNKNOWN_EXTENT
        return 0, self.extent - 1 if is_symbolic(self.extent) else max(0, self.extent - 1)

    @property
    def variables(self) -> frozenset[Var]:
        return frozenset().union(*(index.variables for index in self.indices))

    @property
    def gathered(self) -> frozenset[str]:
        return frozenset((self.tensor,)).union(*(index.gathered for index in self.indices))

    @property
    def is_open(self) -> bool:
        return is_symbolic(self.extent) or any(index.is_open for index in self.indices)

    @property
    def sort_text(self) -> str:
        return f"{self.tensor}[{', '.join(index.sort_text for index in self.indices)}]"

    def __str__(self) -> str:
        return f"{self.tensor}[{', '.join(map(str, self.indices))}]"


Atom = Var | Div | Mod | Lookup | Gathered


def _operand_text(index: Index) -> str:
    """An index before a sign that binds like a product: a sole variable without brackets."""
    return f"({index})" if index.loop is None else str(index)

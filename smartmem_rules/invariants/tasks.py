"""What must hold of a launch whose work-groups take tasks in order, by the numbers in its kernel's text.

Three things make such a launch end with the right results however the device runs its work-groups:

- A step waits for all earlier steps with which it shares memory that one of the two writes, itself or by way of steps
  that it waits for. So every read is behind its write, and every write behind the reads of what lay there before.
- A step waits only for steps before it. Tasks are taken in order, so the first task that is not done never waits.
- Each counter that is waited for reaches exactly the number of tasks of its step, and all are set to zero at the end.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from smartmem_rules.invariants.violation import InvariantError
from smartmem_rules.plan.artefact import Argument, Place, Source
from smartmem_rules.plan.kernel.launch import Launch, Ordered
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.storage import SLACK, stored_bytes
from smartmem_rules.plan.kernel.work_items import Grid
from smartmem_rules.records import dataclass

STAGE = "launch"
_TABLE = r"__constant int smr_order_{}\[\d+\] = \{{ ([\d, ]+) \}};"
_CASE = re.compile(r"^ *case (\d+): (\w+)\(", re.M)
_FETCH = "_ahead"  # how functions end that run before their task waits
_COMMENT = re.compile(r"/\*.*?\*/", re.S)
_CONSTANT = re.compile(r"__global const \w+\* restrict (\w+)$")
_RESET = re.compile(r"for \(int place = 0; place < (\d+); \+\+place\)")
_COUNTERS, _LINE = 3, 16  # before those of the steps; elements from one to the next


@dataclass(frozen=True)
class _Numbers:
    """The order of tasks as the text of a kernel has it."""

    first: tuple[int, ...]
    waits: tuple[int, ...]
    awaited: tuple[int, ...]
    cases: tuple[int, ...]
    fetches: tuple[str, ...]
    reset: int


def check_tasks(launch: Ordered, source: Source, tensors: Mapping[str, Stored], placement: Mapping[str, Place]) -> None:
    """Check a launch whose work-groups take tasks in order.

    Raises:
        InvariantError: a step may begin before another one is done that it needs, waits for one that comes later, or
            counts what nobody waits for.
    """
    numbers = _numbers(launch, source)
    _check_numbers(launch, numbers)
    _check_counters(launch, source, numbers, tensors)
    _check_fetches(launch, source, numbers)
    behind = _behind(launch, numbers)
    touched = [_touched(step, tensors, placement) for step in launch.steps]
    for later, own in enumerate(touched):
        for earlier in range(later):
            if earlier not in behind[later] and (shared := _shared(touched[earlier], own)):
                name = launch.steps[earlier].name
                raise _wrong(launch, f"{launch.steps[later].name} does not wait for {name}", shared)


def check_parts(launch: Ordered, tensors: Mapping[str, Stored], placement: Mapping[str, Place]) -> None:
    """Check that tensors which are parts of others lie inside of them, and share memory only where they did before.

    Args:
        placement: of intermediates before they became parts.

    Raises:
        InvariantError: a part reaches beyond its tensor, or over another part.
    """
    pieces = [(name, part, part.offset + stored_bytes(tensors[name])) for name, part in launch.held.items()]
    # a part may only overlap with those that had the same memory, at the same distance
    base = {name: part.offset - placement[name].offset for name, part, _ in pieces if name in placement}
    for name, part, end in pieces:
        if part.offset < 0 or end > stored_bytes(tensors[part.container]):
            raise _wrong(launch, f"it lies outside of {part.container}", name)
    pieces.sort(key=lambda piece: (piece[1].container, piece[1].offset))
    reach: dict[str, list[tuple[str, int]]] = {}
    for name, part, end in pieces:
        live = reach[part.container] = [one for one in reach.get(part.container, []) if one[1] > part.offset]
        for other, _ in live:
            same = name in base and other in base and placement[name].slot == placement[other].slot
            if not same or base[name] != base[other]:
                raise _wrong(launch, f"it lies over {other!r}", name)
        live.append((name, end))


def _wrong(launch: Launch, what: str, tensor: str = "") -> InvariantError:
    return InvariantError(STAGE, launch.name, tensor, what)


def _numbers(launch: Launch, source: Source) -> _Numbers:
    tables = []
    for name in ("first", "waits", "awaited"):
        found = re.findall(_TABLE.format(name), source.text)
        if len(found) != 1:
            raise _wrong(launch, f"its text has {len(found)} tables {name}")
        tables.append(tuple(map(int, found[0].split(", "))))
    first, waits, awaited = tables
    reset = _RESET.findall(source.text)
    if len(reset) != 1 or not waits:
        raise _wrong(launch, "its text does not say which counters are set to zero")
    # a table has an element where there are no waits at all
    awaited = awaited[: waits[-1]] if not waits[-1] else awaited
    called = _CASE.findall(source.text)
    cases = tuple(int(case) for case, name in called if not name.endswith(_FETCH))
    fetches = tuple(name for _, name in called if name.endswith(_FETCH))
    return _Numbers(first, waits, awaited, cases, fetches, int(reset[0]))


def _check_numbers(launch: Ordered, numbers: _Numbers) -> None:
    steps = len(launch.steps)
    tasks = [0 if step.grid is None else step.grid.items // max(1, launch.group_items) for step in launch.steps]
    expected = [sum(tasks[:n]) for n in range(steps + 1)]
    if list(numbers.first) != expected or 0 in tasks:
        raise _wrong(launch, f"tasks begin at {list(numbers.first)}, and those of its steps at {expected}")
    if numbers.cases != tuple(range(steps)):
        raise _wrong(launch, "its text does not compute each step once")
    waits = numbers.waits
    rising = all(one <= other for one, other in itertools.pairwise(waits))
    if len(waits) != steps + 1 or waits[0] != 0 or waits[-1] != len(numbers.awaited) or not rising:
        raise _wrong(launch, f"waits begin at {list(waits)}, and there are {len(numbers.awaited)} of {steps} steps")
    if any(one.local_size != (launch.group_items,) for one in _grids(launch)):
        raise _wrong(launch, "its steps have work-groups of different sizes")


def _grids(launch: Ordered) -> list[Grid]:
    return [one.grid for one in (launch, *launch.steps) if one.grid is not None]


def _check_counters(launch: Ordered, source: Source, numbers: _Numbers, tensors: Mapping[str, Stored]) -> None:
    """There is a counter for each step, all begin as zeros, and all become zeros again."""
    waiting, needed, name = source.waiting, _COUNTERS + len(launch.steps), launch.tasks.state
    packed = tensors[name].packed
    taken = Argument(name, "write") in source.arguments
    if not taken or packed is None or packed.size < needed * _LINE or packed.any():
        raise _wrong(launch, f"it needs {needed} counters that begin at zero", name)
    if waiting is None or launch.note is None or source.arguments[waiting.noted].tensor != launch.note.tensor:
        raise _wrong(launch, "nothing says whether its work-groups have waited in vain")
    size = stored_bytes(tensors[launch.note.tensor])
    if not size <= waiting.element * 4 <= size + SLACK - 4 or len(waiting.steps) != len(launch.steps):
        raise _wrong(launch, "its note lies in the elements of a tensor, or too far behind", launch.note.tensor)
    if numbers.reset != needed:
        raise _wrong(launch, f"{numbers.reset} of {needed} counters are set to zero", name)
    if launch.tasks.patience < 1:
        raise _wrong(launch, "its work-groups give up at once")


def _check_fetches(launch: Ordered, source: Source, numbers: _Numbers) -> None:
    """What runs before its task waits reads constants alone, and writes nothing outside of local memory."""
    for name in dict.fromkeys(numbers.fetches):
        found = re.search(rf"static void {name}\(\s*(.*?)\) \{{(.*?)^\}}", source.text, re.S | re.M)
        if found is None:
            raise _wrong(launch, f"its text has no function {name}")
        for parameter in _COMMENT.sub("", found[1]).split(","):
            used = re.search(rf"\b{parameter.split()[-1].lstrip('*')}\b", found[2])
            if "__global" in parameter and used is not None and not _CONSTANT.match(parameter.strip()):
                raise _wrong(launch, f"{name} uses {used[0]} before its task waits")


def _behind(launch: Ordered, numbers: _Numbers) -> list[set[int]]:
    """The steps that are done before each one begins."""
    found: list[set[int]] = []
    for number in range(len(launch.steps)):
        own: set[int] = set()
        for other in numbers.awaited[numbers.waits[number] : numbers.waits[number + 1]]:
            if other >= number:
                raise _wrong(launch, f"step {number} waits for step {other}, which does not come before it")
            own |= {other, *found[other]}
        found.append(own)
    return found


@dataclass(frozen=True)
class _Piece:
    """Bytes of memory that a step reads or writes."""

    tensor: str
    home: object
    begin: int
    end: int
    write: bool

    def meets(self, other: _Piece) -> bool:
        """Whether one of two steps has to be over before the other begins."""
        same = self.home == other.home and self.begin < other.end and other.begin < self.end
        return same and (self.write or other.write)


def _touched(step: Launch, tensors: Mapping[str, Stored], placement: Mapping[str, Place]) -> list[_Piece]:
    found = []
    for kernel in step.kernels:
        for name, write in [*((n, False) for n in kernel.reads), *((n, True) for n in kernel.writes)]:
            place, size = placement.get(name), stored_bytes(tensors[name])
            home, begin = (name, 0) if place is None else (place.slot, place.offset)
            found.append(_Piece(name, home, begin, begin + size, write))
    return found


def _shared(earlier: Sequence[_Piece], later: Sequence[_Piece]) -> str:
    """A tensor for which the later one has to wait; empty if there is none."""
    return next((own.tensor for own in later for other in earlier if own.meets(other)), "")

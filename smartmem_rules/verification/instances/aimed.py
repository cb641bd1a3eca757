"""Instances that are drawn for the sake of attributes: those that a pattern leaves open, one by one and all together,
and those that had one value in all instances before."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING

from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.verification.instances.case import Case, Choices
from smartmem_rules.verification.instances.corners import is_telling, made_longer, open_attributes

if TYPE_CHECKING:
    from smartmem_rules.verification.instances.cases import Search

_AIMED = 6
_AIMED_TRIES = 8
_JOINT = 12
_MISSED = 2
"""Instances of an attribute that a pattern leaves open, how often each of them is begun, instances of all attributes
of an operator together, and how many may fail."""
_BESIDE = 30
_LONGER = 3
"""Instances with longer axes that are tried beside each of them, and how many of these are used."""

_STEPS = (1, 2, -1)
_CHANGED = 30
_VARIED = 4
_SOUGHT = 3
"""Values that are tried for a name that had one value, the instances with another that are enough, and how often the
rest of an instance is drawn anew for such a value."""


@dataclass
class Varied:
    """The whole numbers that names of attributes stood for in the instances so far.

    Attributes:
        numbers: by slot, of lists their elements.
        is_done: whether other values have been tried.
    """

    numbers: dict[str, set[int]] = field(default_factory=dict)
    is_done: bool = False

    def note(self, choices: Choices) -> None:
        """An instance satisfied the guards."""
        for slot, value in choices.items():
            if slot.startswith("name:"):
                whole = [n for n in (value if isinstance(value, tuple) else (value,)) if type(n) is int]
                self.numbers.setdefault(slot, set()).update(whole)

    def constant(self) -> list[str]:
        """The slots that were one number, or lists of one number, in all instances."""
        return sorted(slot for slot, numbers in self.numbers.items() if len(numbers) == 1)


def varied_cases(search: Search) -> Iterator[Case]:
    """Instances in which a name that stood for one number, or for lists of it, stands for another: a rule may be right
    for that number alone."""
    search.varied.is_done = True
    near = search.example or {}
    for slot in search.varied.constant():
        found = sought = 0
        for value in itertools.islice(_changed(near.get(slot), search.random), _CHANGED):
            case = search.build({**near, slot: value})
            if case is not None and not case.satisfied:
                continue  # guards speak of the name
            if (case is None or case.right is None) and sought < _SOUGHT:
                sought += 1
                case = search.satisfy(near, {slot: value})
            if case is not None and case.right is not None:
                found += 1
                yield case
            if found == _VARIED:
                break


def _changed(value: Value, source: random.Random) -> Iterator[Value]:
    """Values beside a number; beside a list those with one other element, and some with several."""
    if type(value) is int:
        yield from (value + step for step in _STEPS)
    elif isinstance(value, tuple) and value and all(type(n) is int for n in value):
        single = list(itertools.product(_STEPS, range(len(value))))
        source.shuffle(single)
        for step, place in single:
            yield (*value[:place], value[place] + step, *value[place + 1 :])  # type: ignore[operator]


def open_attribute_cases(search: Search) -> Iterator[Case | None]:
    """Instances with attributes that the pattern leaves open: repairs give up first what easily makes both sides
    differ in type, and that is what makes a rule wrong."""
    for path, formal in open_attributes(search.left, search.instances.base.operators):
        search.draws.aimed = path, formal.name
        missed = 0
        for _ in range(_AIMED):
            start = _with_attribute(search, path, formal)
            found = None if start is None else search.satisfy(start, {s: start[s] for s in _slots_of(path)})
            missed = 0 if found is not None else missed + 1
            yield found
            if found is not None:
                yield from _longer(search, found)
            if start is None or missed > _MISSED:
                break
    search.draws.aimed = None
    yield from _joint_attributes(search)


def _joint_attributes(search: Search) -> Iterator[Case | None]:
    """Instances in which all attributes that an operator leaves open are there: some matter only together, or where
    the extents are equal and a wrong axis changes no type."""
    paths = dict.fromkeys(path for path, _ in open_attributes(search.left, search.instances.base.operators))
    for path in paths:
        search.draws.jointly = path
        missed = 0
        for number in range(_JOINT):
            made = (search.build({"alike": 2 + number % 2} if number % 3 else {}) for _ in range(_AIMED_TRIES))
            near = next((one for one in made if one is not None), None)
            if near is None or missed > _MISSED:
                break
            found = search.satisfy(near.choices, {slot: near.choices[slot] for slot in _slots_of(path)})
            missed = 0 if found is not None else missed + 1
            yield found
    search.draws.jointly = None


def _longer(search: Search, case: Case) -> Iterator[Case]:
    """Instances beside one whose result has more elements along an axis that has one element there."""
    if 1 not in case.left.type.shape:
        return
    found = 0
    for choices in itertools.islice(made_longer(case, search.random), _BESIDE):
        other = search.build(choices)
        if other is None or not other.satisfied or other.right is None:
            continue
        shape, before = other.left.type.shape, case.left.type.shape
        if len(shape) == len(before) and any(m > n == 1 for m, n in zip(shape, before, strict=True)):
            yield other
            found += 1
        if found == _LONGER:
            break


def _with_attribute(search: Search, path: str, formal: ast.Attribute | ast.Input) -> Choices | None:
    """The choices of an instance, satisfied or not, in which an operator has an attribute."""
    for number in range(_AIMED_TRIES):
        # beside an instance that satisfies the guards, or a new one
        near = {} if search.example is None or number < _AIMED_TRIES // 2 else search.example
        case = search.build({slot: value for slot, value in near.items() if slot not in _slots_of(path)})
        if case is not None and is_telling(formal, case.choices.get(f"given:{path}", {}).get(formal.name)):
            return case.choices
    return None


def _slots_of(path: str) -> tuple[str, str]:
    return f"present:{path}", f"given:{path}"

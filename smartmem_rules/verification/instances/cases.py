"""Instances of a rule's left side that satisfy its guards, found by construction and repair."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence

from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.instantiate import names_in
from smartmem_rules.verification.instances.aimed import Varied, open_attribute_cases, varied_cases
from smartmem_rules.verification.instances.assembly import Assembly
from smartmem_rules.verification.instances.case import DTYPES, OTHER_DTYPES, Case, Choices, NoInstance
from smartmem_rules.verification.instances.corners import (
    counted_otherwise,
    has_word,
    overloads_together,
    sums_narrow,
    with_one_axis_more,
    words_of,
)
from smartmem_rules.verification.instances.draws import Draws, extents_of
from smartmem_rules.verification.instances.early_guards import Ways, early_guards
from smartmem_rules.verification.instances.element_guards import ElementGuards
from smartmem_rules.verification.instances.emptied import without_elements
from smartmem_rules.verification.instances.roles import hints_of
from smartmem_rules.verification.instances.wishes import wishes_of
from smartmem_rules.verification.list_guards import ListGuards
from smartmem_rules.verification.semantics.terms import leaves

_DTYPE_WEIGHTS = (60, 5, 5, 12, 4, 4, 10, 3, 2)
_NAMED_WEIGHT = 60
"""Of an element type that a guard names."""
_PROBES = 4
_CORNERS = 4
_LONG = 8
"""Instances whose sums of 8-bit integers have more terms than a byte counts."""
_WORDS = 80
"""Instances in all that are drawn for the sake of words."""
_EMPTY = 14
_EMPTY_OF_TYPE = 4
_EMPTY_OF_ONE = 2
"""Instances with a tensor of no elements: in all, of one element type of the operands, and made of one other."""
_EMPTY_AT_ONCE = 8
_EMPTY_ALONE = 80
"""Instances of which empty ones are made where guards hold of no others."""
_NOT_EMPTY = 60
"""Attempts to find instances with elements where guards seem to hold of empty tensors alone."""
_SEEN = 8
"""Satisfied instances after which names that stood for one value in all of them are made to stand for others."""
_EMPTY_ATTEMPTS = 40
"""How many are tried to be made of one instance, and in all; as many more for each that is found."""
SIBLINGS = 0.3
"""The share of instances beside which those are tried that count an axis otherwise, or that have one more."""
MOST_ELEMENTS = 1500
LARGEST_WANTED = 1 << 18
"""Elements of a tensor that guards may want: more of them take too much of a rule's time."""
_OF_ATTRIBUTES = ("given:", "present:", "name:")
_INDIFFERENT = ("uses:", "one:", "overload:")
"""Choices that hardly change what is compared."""
_REPAIRS = 60
HARD = 8
"""Repairs for each satisfied instance from which on a rule is hard to satisfy."""
COSTLY = 20
"""Attempts for each satisfied instance from which on operands are aimed at."""


@dataclass
class Statistics:
    """How the search went."""

    generated: int = 0
    satisfied: int = 0
    refused: int = 0

    @property
    def share(self) -> float:
        """Satisfied of generated instances."""
        return self.satisfied / self.generated if self.generated else 0.0


class Search:
    """Finds instances of one direction of a rewrite."""

    def __init__(
        self,
        rule: ast.Rewrite,
        left: ast.Pattern,
        right: ast.Pattern,
        instances: Instances,
        seed: int,
        repairs: int = _REPAIRS,
    ) -> None:
        self.rule = rule
        self.left = left
        self.right = right
        self.instances = instances
        self.hints = hints_of(rule.guards, right, left)
        self.wishes = wishes_of(rule.guards)
        self.elements = ElementGuards(rule.guards)
        self.lists = ListGuards(rule.guards)
        self.early = early_guards(rule.guards, instances.base.functions)
        self.random = random.Random(seed)
        self.draws = Draws(self.random, extents_of(self.hints.literals))
        self.dtypes = (*DTYPES, *(word for word in dict.fromkeys(self.hints.words) if word in OTHER_DTYPES))
        self.statistics = Statistics()
        self.failures: dict[str, int] = {}
        self.built: set[str] = set()
        self.ways = Ways()
        self.looks_early = False
        """Whether guards are looked at while an instance is drawn."""
        self.tries = 0
        """Operators that were drawn."""
        self.steps = 0
        self.assembled = 0
        self.aims = False
        """Whether operands are drawn of the types and shapes that guards and readers want: chance finds too few."""
        self.patience: int | None = None
        """Attempts without any instance after which there surely is none: repairs are of no use from then on."""
        self.repairs = repairs
        self.probes = repairs == _REPAIRS
        """Whether every element type is tried; not where a search is for one or two instances only."""
        wanted = min(2 * self.wishes.most_elements, LARGEST_WANTED)
        self.most_elements = max(MOST_ELEMENTS, 8 * max(self.draws.named, default=0), wanted)
        self.in_corners = False
        """Whether the instance was made for the sake of its overloads or words; such come beside all others."""
        self.strict = True
        """Whether instances in which an operator reads outside of an operand count as none."""
        self.empties = False
        """Whether instances with a tensor of no elements come beside the others."""
        self.results_may_be_empty = False
        """Whether instances count whose results have no elements, so that they cannot differ."""
        self.example: Choices | None = None
        """The choices of the satisfied instance that was found last."""
        self.narrow: str | None = None
        """The element type of an instance that sums up integers of 8 bits."""
        self.empty_attempts = 0
        self.empty_found: Counter[frozenset[str]] = Counter()
        """How many were found, by the element types of the operands."""
        self.only_empty = False
        """Whether guards hold of empty tensors alone."""
        self.varied = Varied()
        self.one_sided = False
        """Whether only the left side is wanted; both are then the same."""

    def cases(self, most_attempts: int) -> Iterator[Case | None]:
        """Satisfied instances whose sides have one type; None for every attempt that gave none."""
        if self.probes:
            yield from self._every_dtype()
            if self.empties and not self.statistics.satisfied:
                yield from self._empty_alone()
                if self.statistics.satisfied:
                    yield from self._others_than_empty()
                    if self.only_empty:
                        return
            self.in_corners = True
            yield from self._corners()
            self.in_corners = False
        previous: Case | None = None
        found: Case | None = None
        while self.statistics.generated < most_attempts:
            if self.statistics.satisfied >= _SEEN and not self.varied.is_done:
                yield from self._varied()
            start: Choices = {}
            hard = self.steps > HARD * max(1, self.statistics.satisfied)
            if found is not None:
                yield from self._siblings(found)
                yield from self._without_elements(found)
            if previous is not None and self.random.random() < (0.93 if hard else 0.7):
                # where new instances are hard to find, most are changed ones
                start = dict(previous.choices)
                telling = sorted(slot for slot in start if not slot.startswith(_INDIFFERENT))
                count = min(len(telling), self.random.randint(1, 2 if hard else 3))
                for slot in self.random.sample(telling, count):
                    del start[slot]
            found = self.satisfy(start)
            if found is not None:
                previous = found
            yield found

    def _every_dtype(self) -> Iterator[Case | None]:
        """Some instances of each element type that the left side admits: rules go wrong for one of them only."""
        for dtype in self.dtypes:
            for _ in range(_PROBES):
                if self._assemble({"dtype": dtype}) is None and dtype not in self.built:
                    continue
                for _ in range(2):
                    found = self.satisfy({"dtype": dtype})
                    yield found
                    if found is not None:
                        yield from self._without_elements(found)
                break

    def _corners(self) -> Iterator[Case | None]:
        """Some instances of each combination of overloads, and of each word."""
        base = self.instances.base
        for choices in overloads_together(self.left, base.operators, self.wishes, self.random):
            if any(self._assemble(dict(choices)) is not None for _ in range(_PROBES)):
                for _ in range(_CORNERS):
                    yield self.satisfy({}, choices)
        words = words_of(self.left, base.operators, base.functions)
        found: list[Case] = []
        for word in words:
            self.draws.word = word
            seen = False
            for number in range(max(_CORNERS, min(3 * _CORNERS, _WORDS // len(words)))):
                if self.aims and number >= _CORNERS // 2 and not seen:
                    break  # guards leave no room for the word, as for the element type of a result that they name
                case = self.satisfy(self._operands_of(found) if number % _CORNERS else {})
                seen = seen or (case is not None and has_word(case, word))
                if case is not None:
                    found.append(case)
                yield case
        self.draws.word = None
        yield from open_attribute_cases(self)
        yield from self._long_sums()
        yield from self._empty_lists()

    def _empty_lists(self) -> Iterator[Case]:
        """Instances in which a list that the pattern names is empty: it may stand for all axes, or for none."""
        near = self.example or {}
        for slot, value in sorted(near.items()):
            if slot.startswith("name:") and isinstance(value, tuple) and value:
                start = {s: v for s, v in near.items() if s.startswith(("name:", "shape:", "overload:"))}
                for _ in range(2 * _CORNERS):
                    found = self.satisfy({**start, slot: ()}, {slot: ()})
                    if found is None:
                        break  # guards leave no room for it
                    yield found

    def _long_sums(self) -> Iterator[Case | None]:
        """Instances of which sums have more terms than a byte counts, where such sums have 8 bits."""
        if self.narrow is not None:
            self.draws.long = True
            for _ in range(_LONG):
                yield self.satisfy({"dtype": self.narrow})
            self.draws.long = False

    def _operands_of(self, found: Sequence[Case]) -> Choices:
        """The operands of one of some instances, for other attributes; nothing where chance finds enough instances."""
        if not self.aims or not found:
            return {}
        choices = self.random.choice(found).choices
        return {slot: value for slot, value in choices.items() if not slot.startswith(_OF_ATTRIBUTES)}

    def satisfy(self, start: Choices, kept: Choices | None = None) -> Case | None:
        """An instance that begins with some choices; those that are kept no repair changes."""
        self.looks_early = self.aims and self.ways.early()
        early, before = self.looks_early, self.tries
        case = self._found(start, kept)
        if self.aims:
            self.ways.note(early, case is not None, self.tries - before)
        self.looks_early = False
        return case

    def _found(self, start: Choices, kept: Choices | None) -> Case | None:
        kept = kept or {}
        self.statistics.generated += 1
        case = self._assemble({**start, **kept})
        for _ in range(self.repairs):
            if case is None:
                if self._is_hopeless:
                    break
                case = self._assemble(dict(kept))
                continue
            if case.satisfied and case.right is not None:
                self.statistics.satisfied += 1
                self.example = case.choices
                self.varied.note(case.choices)
                if self.narrow is None and sums_narrow(case):
                    self.narrow = case.choices["dtype"]
                return case
            self.steps += 1
            changed = self._assemble({**self._without(case), **kept})
            if changed is not None and _score(changed) <= _score(case):
                case = changed
        if case is not None and case.satisfied:
            self.statistics.satisfied += 1
            self.statistics.refused += 1
        return None

    @property
    def _is_hopeless(self) -> bool:
        return self.patience is not None and not self.built and self.assembled > self.patience

    def _siblings(self, case: Case) -> Iterator[Case]:
        """Instances that differ from one by the end from which an axis is counted, or by a further axis."""
        for change in (counted_otherwise, with_one_axis_more):
            choices = change(case, self.random) if self.random.random() < SIBLINGS else None
            other = None if choices is None else self._assemble(self._with_many_numbers(choices))
            if other is not None and other.satisfied and other.right is not None:
                yield other
                # what a further axis shows may hang on the end from which others are counted
                again = counted_otherwise(other, self.random)
                third = None if again is None else self._assemble(again)
                if third is not None and third.satisfied and third.right is not None:
                    yield third

    def _without_elements(self, case: Case) -> Iterator[Case]:
        """Instances of the same choices in which some tensor is empty, and the result is not."""
        if not self.empties:
            return
        types = frozenset(leaf.type.dtype for leaf in leaves(case.left).values())
        most = min(_EMPTY_OF_ONE, _EMPTY - self.empty_found.total(), _EMPTY_OF_TYPE - self.empty_found[types])
        before, self.in_corners = self.in_corners, True
        for choices in without_elements(case, self.random)[:_EMPTY_AT_ONCE] if most > 0 else ():
            if most == 0 or self.empty_attempts >= _EMPTY_ATTEMPTS * (1 + self.empty_found.total()):
                break
            self.empty_attempts += 1
            other = self._assemble(choices)
            if other is not None and other.satisfied and other.right is not None:
                most -= 1
                self.empty_found[types] += 1
                yield other
        self.in_corners = before

    def _empty_alone(self) -> Iterator[Case]:
        """Instances of guards that hold of empty tensors alone: made of such on which they do not hold."""
        self.results_may_be_empty = True
        for _ in range(_EMPTY_ALONE):
            near = self._assemble({})
            changes = [] if near is None else without_elements(near, self.random)
            for choices in (None, *changes[: _EMPTY_AT_ONCE - 1]):
                self.statistics.generated += 1
                other = near if choices is None else self._assemble(choices)
                if other is not None and other.satisfied and other.right is not None:
                    self.statistics.satisfied += 1
                    self.example = other.choices
                    yield other
        self.results_may_be_empty = False

    def _others_than_empty(self) -> Iterator[Case | None]:
        """Instances with elements of guards that seemed to hold of empty tensors alone, until there is one."""
        self.only_empty = True
        for _ in range(_NOT_EMPTY):
            found = self.satisfy({})
            yield found
            if found is not None:
                self.only_empty = False
                break

    def _varied(self) -> Iterator[Case | None]:
        """Instances in which a name stands for another value than in all before."""
        before, self.in_corners = self.in_corners, True
        yield from varied_cases(self)
        self.in_corners = before

    def _with_many_numbers(self, choices: Choices) -> Choices:
        """The choices with different elements in every constant of which no guard wants one number."""
        ones = {slot: False for slot in choices if slot.startswith("one:") and slot[4:] not in self.hints.uniform}
        return {**choices, **ones}

    def _without(self, case: Case) -> Choices:
        """The choices of a case without one or two that a failing guard depends on."""
        choices = dict(case.choices)
        slots = sorted(choices)
        if case.failing and self.random.random() < 0.9:
            names = names_in(self.random.choice(case.failing))
            names |= {other for name in names for other in self.elements.made_of(name)}
            slots = [s for s in slots if s.partition(":")[2] in names] or slots
            slots += [s for name in sorted(names) for s in sorted(case.slots.get(name, ())) if s in choices]
        for slot in self.random.sample(slots, min(len(slots), self.random.choice((1, 1, 2)))):
            choices.pop(slot, None)
        return choices

    def _assemble(self, choices: Choices) -> Case | None:
        assembly = Assembly(self, dict(choices))
        self.assembled += 1
        self.aims = self.aims or self.assembled > COSTLY * (1 + self.statistics.satisfied)
        try:
            return assembly.case()
        except NoInstance:
            if "dtype" in assembly.choices:
                dtype = assembly.choices["dtype"]
                self.failures[dtype] = self.failures.get(dtype, 0) + 1
            return None

    def dtype(self) -> str:
        """An element type that has not been refused again and again."""
        usable = [d for d in self.dtypes if d in self.built or self.failures.get(d, 0) < 25] or ["float32"]
        weights = [_NAMED_WEIGHT if d in self.hints.words else _DTYPE_WEIGHTS[DTYPES.index(d)] for d in usable]
        return self.random.choices(usable, weights)[0]

    def build(self, choices: Choices) -> Case | None:
        """The instance of given choices, None where it is none."""
        return self._assemble(choices)


def _score(case: Case) -> int:
    return 2 * len(case.failing) + (case.right is None)

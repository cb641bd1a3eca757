"""Enumerates terms over given operators, smallest first, and pairs those that compute the same."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import field

import numpy as np

from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.verification.instances.roles import AXES, operator_roles
from smartmem_rules.verification.operators import run_time_formals
from smartmem_rules.verification.semantics.bounded import Bounded
from smartmem_rules.verification.semantics.domains import ORDERED, Domain, Rationals, Undefined, Value as Elements
from smartmem_rules.verification.semantics.terms import (
    Application,
    Leaf,
    Term,
    apply_operator,
    compute as compute_term,
    equation_functions,
)

SHAPE = (3, 4)
VARIABLES = ("a", "b", "c")
CONSTANTS = (0, 1)
LARGE = 3
"""The size from which on 0 is left out: what it annihilates would be most of all terms."""
_SAMPLES = 2
_DIGITS = 9
MOST_TERMS = 6000


@dataclass
class Entry:
    """A term with the elements that it has at the sampled operands."""

    term: Term
    elements: list[Elements]
    size: int


@dataclass
class Enumeration:
    """The terms found, one for each value, and the pairs of terms of one value."""

    pairs: list[tuple[Term, Term]] = field(default_factory=list)
    terms: int = 0
    exact: bool = True


class Enumerator:
    """Builds terms from smaller ones; of terms with one value only the first is built upon."""

    def __init__(self, operators: Sequence[str], size: int, instances: Instances, seed: int) -> None:
        self.operators = operators
        self.size = size
        self.instances = instances
        self.found = Enumeration()
        used = self._functions()
        self.found.exact = used <= ORDERED
        self.domain: Domain = Rationals() if self.found.exact else Bounded()
        self.leaves = [Leaf(name, TensorType("float32", SHAPE)) for name in VARIABLES]
        numbers = [Leaf(f"{n}", TensorType("float32", ()), n) for n in CONSTANTS if n or size < LARGE]
        self.samples = [self._sample(seed + i, [*self.leaves, *numbers]) for i in range(_SAMPLES)]
        self.first: dict[object, Entry] = {}
        self.by_size: dict[int, list[Entry]] = {0: []}
        for leaf in (*self.leaves, *numbers):
            entry = Entry(leaf, [s[leaf.name] for s in self.samples], 0)
            self.first[self._fingerprint(entry)] = entry
            self.by_size[0].append(entry)

    def run(self) -> Enumeration:
        """All pairs up to the size."""
        for size in range(1, self.size + 1):
            self.by_size[size] = []
            for term in self._terms(size):
                if self.found.terms >= MOST_TERMS:
                    return self.found
                self._add(term, size)
        return self.found

    def _functions(self) -> set[str]:
        used: set[str] = set()
        for name in self.operators:
            for overload in self.instances.base.operators[name]:
                for rank in (2,):
                    types = [TensorType("float32", SHAPE[:rank])] * len(run_time_formals(overload))
                    try:
                        instance = self.instances.get(name, types, self._attributes(overload))
                    except (Unsupported, DefinitionError):
                        continue
                    for equation in instance.equations:
                        used |= equation_functions(equation)
        return used

    def _sample(self, seed: int, leaves: Sequence[Leaf]) -> dict[str, Elements]:
        generator = np.random.default_rng(seed)
        chosen = random.Random(seed)
        sample: dict[str, Elements] = {}
        for leaf in leaves:
            if leaf.number is not None:
                sample[leaf.name] = self.domain.constant(leaf.number, "float32")
            elif self.found.exact:
                values = np.empty(SHAPE, object)
                values[...] = np.vectorize(int, otypes=[object])(generator.integers(2, 60, SHAPE))
                signs = np.vectorize(int, otypes=[object])(generator.choice([-1, 1], SHAPE))
                sample[leaf.name] = (values * signs,)
            else:
                values = generator.uniform(0.3, 2.0, SHAPE)
                sample[leaf.name] = (values, np.zeros(SHAPE))
        chosen.shuffle(list(leaves))
        return sample

    def _attributes(self, overload: ast.Operator) -> dict[str, Value]:
        """One choice of attributes: reductions go over the last axis and keep it."""
        given: dict[str, Value] = {}
        roles = operator_roles(overload, self.instances.base.functions)
        formals: list[tuple[str, str | None, bool]] = [(a.name, a.kind, a.required) for a in overload.attributes]
        formals += [(i.name, i.constant, not i.optional and i.default is None) for i in overload.inputs if i.constant]
        for name, kind, _ in formals:
            if roles[name].use == AXES:
                given[name] = (-1,) if kind == "ints" else -1
            elif name == "keepdims":
                given[name] = 1
        return given

    def _terms(self, size: int) -> Iterator[Term]:
        for name in self.operators:
            overload = self.instances.base.operators[name][0]
            count = len(run_time_formals(overload))
            attributes = self._attributes(overload)
            for sizes in _compositions(size - 1, count):
                for operands in itertools.product(*(list(self.by_size[s]) for s in sizes)):
                    if overload.commutative and str(operands[0].term) > str(operands[1].term):
                        continue
                    if all(isinstance(o.term, Leaf) and o.term.number is not None for o in operands):
                        continue
                    try:
                        yield apply_operator(name, [o.term for o in operands], attributes, 1, 0, self.instances)
                    except (Unsupported, DefinitionError):
                        continue

    def _add(self, term: Term, size: int) -> None:
        assert isinstance(term, Application)
        self.found.terms += 1
        try:
            elements = [compute_term(term, sample, self.domain) for sample in self.samples]
        except (Undefined, ZeroDivisionError, OverflowError):
            return
        entry = Entry(term, elements, size)
        key = self._fingerprint(entry)
        if key is None:
            return
        known = self.first.get(key)
        if known is not None:
            self.found.pairs.append((term, known.term))
            return
        self.first[key] = entry
        self.by_size[size].append(entry)

    def _fingerprint(self, entry: Entry) -> object:
        shape = entry.term.type.shape
        parts: list[object] = [shape]
        for value in entry.elements:
            flat = np.broadcast_to(value[0], shape).reshape(-1)
            if self.found.exact:
                parts.append(tuple(flat.tolist()))
            elif not np.all(np.isfinite(flat.astype(np.float64))):
                return None
            else:
                parts.append(tuple(float(f"{v:.{_DIGITS}g}") for v in flat))
        return tuple(parts)


def _compositions(total: int, count: int) -> Iterator[tuple[int, ...]]:
    if count == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, count - 1):
            yield (first, *rest)

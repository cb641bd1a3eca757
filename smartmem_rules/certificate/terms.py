"""Terms over the tensors of a model, and which of them are proved equal (congruence closure).

Two terms become equal by a step of a certificate, or because they apply one operator to equal terms.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from smartmem_rules.errors import SmartmemError
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances, attribute_key
from smartmem_rules.tensor.binding import operand_name, output_name
from smartmem_rules.tensor.builtins import Unsupported, Value
from smartmem_rules.tensor.expr import Equation, Read, TensorType, is_open_expression
from smartmem_rules.tensor.instantiate import Definitions, Instance
from smartmem_rules.tensor.interpreter.interpret import evaluate_equations
from smartmem_rules.tensor.primitives import Array
from smartmem_rules.tensor.views import IndexMap

INPUT, CONSTANT, OUT, VIEW, OPAQUE = "Input", "Constant", "Out", "View", "Imported"
"""The operators that no rule file defines; an opaque one is a node that only its own equations describe."""
ABSENT = -1
"""Stands for an absent optional operand."""
ENGINES = frozenset({INPUT, CONSTANT, OUT, VIEW, OPAQUE})


class Refused(SmartmemError):
    """Something in a certificate does not hold; the message says what."""


@dataclass(frozen=True, kw_only=True)
class Term:
    """One application.

    Attributes:
        key: the attributes as one hashable value: a text, the map of a view, the place of an `Out`.
        types: of its results.
        folded: for a term whose operands are all known, the terms by which their values are known.
    """

    operator: str
    children: tuple[int, ...]
    attributes: Mapping[str, Value] = field(hash=False, compare=False)
    key: object
    types: tuple[TensorType, ...]
    folded: tuple[int, ...] | None = None

    @property
    def type(self) -> TensorType:
        """The type of its only result."""
        return self.types[0]


class Digests:
    """Names for the elements of arrays with their shape and type, each computed once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Array, str]] = {}

    def of(self, array: Array) -> str:
        """The digest of an array, which is kept as long as this is."""
        if id(array) not in self._known:
            plain = np.ascontiguousarray(array)
            name = hashlib.sha256(f"{plain.dtype.name}{array.shape}".encode())
            name.update(plain.reshape(-1).view(np.uint8).data)
            self._known[id(array)] = array, name.hexdigest()
        return self._known[id(array)][1]


class Terms:
    """All terms by number, equal ones found by `find`."""

    def __init__(self, base: Definitions, digests: Digests | None = None) -> None:
        self.instances = Instances(base)
        self.digests = digests or Digests()
        self.terms: list[Term] = []
        self.arrays: dict[int, Array] = {}
        self._parents: list[int] = []
        self._known: dict[tuple[object, ...], int] = {}
        self._signatures: dict[tuple[object, ...], int] = {}
        self._users: dict[int, list[int]] = {}
        self._constants: dict[int, int] = {}

    # --- building ---

    def input(self, name: str, type_: TensorType) -> int:
        """A tensor that is given when the model runs."""
        return self._add(INPUT, (), name, (type_,))

    def constant(self, array: Array, type_: TensorType) -> int:
        """A tensor of known elements; equal ones are one term."""
        number = self._add(CONSTANT, (), (type_.dtype, self.digests.of(array)), (type_,))
        self.arrays.setdefault(number, array)
        self._constants.setdefault(self.find(number), number)
        return number

    def view(self, child: int, map_: IndexMap) -> int:
        """A tensor read through an index map."""
        type_ = self.terms[child].type
        if type_.shape != map_.source:
            raise Refused(f"an index map over extents {list(map_.source)} does not read a tensor of {type_}")
        return self._add(VIEW, (child,), map_, (TensorType(type_.dtype, map_.shape),))

    def opaque(self, node: str, children: Sequence[int], types: Sequence[TensorType]) -> int:
        """A node that rules cannot read."""
        return self._add(OPAQUE, _trimmed(children), node, tuple(types))

    def application(self, operator: str, children: Sequence[int], attributes: Mapping[str, Value], outputs: int) -> int:
        """An operator of the rule base; with several outputs their joint term, see `out`."""
        if operator in ENGINES:
            raise Refused(f"{operator} is no operator of the rule base")
        given = {name: value for name, value in attributes.items() if value is not None}
        types = self.instance(operator, _trimmed(children), given, outputs).outputs
        return self._add(operator, _trimmed(children), (attribute_key(given), outputs), types, given)

    def out(self, joint: int, place: int) -> int:
        """One result of an operator with several; an operator with one is its result."""
        types = self.terms[joint].types
        if not 0 <= place < len(types):
            raise Refused(f"{self.terms[joint].operator} has no result number {place}")
        return joint if len(types) == 1 else self._add(OUT, (joint,), place, (types[place],))

    def _add(
        self,
        operator: str,
        children: tuple[int, ...],
        key: object,
        types: tuple[TensorType, ...],
        attributes: Mapping[str, Value] | None = None,
    ) -> int:
        known = (operator, children, key)
        number = self._known.get(known)
        if number is not None:
            return number
        number = self._known[known] = len(self.terms)
        term = Term(operator=operator, children=children, attributes=attributes or {}, key=key, types=types)
        folded = self._folded(term)
        term = replace(term, folded=folded)
        self.terms.append(term)
        self._parents.append(number)
        if folded is not None:
            self._constants[number] = number
        for child in term.children:
            if child != ABSENT:
                self._users.setdefault(self.find(child), []).append(number)
        twin = self._signatures.setdefault(self._signature(number), number)
        if twin != number:
            self._merge(number, twin, None)
        return number

    def _folded(self, term: Term) -> tuple[int, ...] | None:
        present = [child for child in term.children if child != ABSENT]
        known = {child: self.constant_of(child) for child in present}
        if not present or None in known.values() or term.operator == OPAQUE:
            return None
        if term.operator not in ENGINES and any(is_open_expression(e.body) for e in self.instance_of(term).equations):
            return None
        return tuple(ABSENT if (one := known.get(child)) is None else one for child in term.children)

    def instance(
        self, operator: str, children: Sequence[int], attributes: Mapping[str, Value], outputs: int
    ) -> Instance:
        """An operator at terms; raises Refused where no definition takes them."""
        types = [None if child == ABSENT else self.terms[child].type for child in children]
        try:
            return self.instances.get(operator, types, attributes, outputs)
        except Unsupported as reason:
            raise Refused(f"{operator} does not take these operands: {reason}") from reason

    def instance_of(self, term: Term) -> Instance:
        """The operator of a term at its operands."""
        return self.instance(term.operator, term.children, term.attributes, len(term.types))

    # --- equality ---

    def find(self, number: int) -> int:
        """The representative of all terms that are equal to one."""
        while self._parents[number] != number:
            self._parents[number] = self._parents[self._parents[number]]
            number = self._parents[number]
        return number

    def equal(self, left: int, right: int) -> bool:
        """Whether two terms (or absent operands) are proved equal."""
        return left == right if ABSENT in (left, right) else self.find(left) == self.find(right)

    def join(self, left: int, right: int, reason: int) -> None:
        """Take in that two terms are equal, by the step of this number."""
        if self.terms[left].types != self.terms[right].types:
            types = " and ".join(", ".join(map(str, self.terms[one].types)) for one in (left, right))
            raise Refused(f"terms of the types {types} cannot be equal")
        self._merge(left, right, reason)

    def _merge(self, left: int, right: int, reason: int | None) -> None:
        pending: list[tuple[int, int, int | None]] = [(left, right, reason)]
        while pending:
            left, right, reason = pending.pop()
            kept, gone = self.find(left), self.find(right)
            if kept == gone:
                continue
            self.merged(left, right, reason)
            if len(self._users.get(kept, ())) < len(self._users.get(gone, ())):
                kept, gone = gone, kept
            self._parents[gone] = kept
            known = [self._constants[one] for one in (kept, gone) if one in self._constants]
            if known:
                self._constants[kept] = min(known)
            moved = self._users.pop(gone, [])
            self._users.setdefault(kept, []).extend(moved)
            for user in moved:
                twin = self._signatures.setdefault(self._signature(user), user)
                if self.find(twin) != self.find(user):
                    pending.append((user, twin, None))

    def merged(self, left: int, right: int, reason: int | None) -> None:
        """Called for each equality as it becomes known: by a step, or (None) because operands are equal."""

    def _signature(self, number: int) -> tuple[object, ...]:
        term = self.terms[number]
        return term.operator, tuple(c if c == ABSENT else self.find(c) for c in term.children), term.key

    # --- values ---

    def constant_of(self, number: int) -> int | None:
        """A term equal to this one whose elements follow from constants alone, None where none is known."""
        return self._constants.get(self.find(number))

    def value(self, number: int) -> Array:
        """The elements of a term that follows from constants alone, computed with the interpreter."""
        if number not in self.arrays:
            self.arrays[number] = self._computed(self.terms[number])
        return self.arrays[number]

    def uniform(self, number: int) -> float | None:
        """The one value that all elements of a known term have, None where they differ or are not known."""
        known = self.constant_of(number)
        if known is None or self.terms[known].type.elements == 0:
            return None
        flat = self.value(known).reshape(-1)
        return float(flat[0]) if bool((flat == flat[0]).all()) else None

    def _computed(self, term: Term) -> Array:
        place, source = 0, term
        if term.operator == OUT and term.folded is not None:
            assert isinstance(term.key, int)
            place, source = term.key, self.terms[term.folded[0]]
        if source.folded is None:
            raise Refused(f"the elements of {source.operator} are not known before the model runs")
        if source.operator == VIEW:
            assert isinstance(source.key, IndexMap)
            equations: Sequence[Equation] = [view_equation("%0", "$0", source.key, source.type.dtype)]
        else:
            equations = self.instance_of(source).equations
        arrays = {operand_name(n): self.value(child) for n, child in enumerate(source.folded) if child != ABSENT}
        return evaluate_equations(equations, arrays)[output_name(place)]


def view_equation(result: str, source: str, map_: IndexMap, dtype: str) -> Equation:
    """What a view computes."""
    return Equation(result, map_.variables, Read(source, map_.indices, dtype), TensorType(dtype, map_.shape))


def _trimmed(children: Sequence[int]) -> tuple[int, ...]:
    """The operands without absent ones at the end."""
    kept = list(children)
    while kept and kept[-1] == ABSENT:
        kept.pop()
    return tuple(kept)

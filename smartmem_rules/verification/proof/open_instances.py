"""Operators at open extents, for proofs: reads are taken to stay inside, and an open question is no failure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from typing import Any

from smartmem_rules.errors import causes
from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances, attribute_key
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.definitions.inside import OutsideError
from smartmem_rules.tensor.definitions.watch import Watch
from smartmem_rules.tensor.expr import Condition, TensorType
from smartmem_rules.tensor.extents import SymbolicExtentError
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.instantiate import Definitions, Instance, instantiate_overload
from smartmem_rules.verification.proof.formulas import Unprovable
from smartmem_rules.verification.proof.paths import Path
from smartmem_rules.verification.semantics.terms import Leaf, Term


class Deaf:
    """Lets definitions read anywhere: whether reads stay inside is asked elsewhere."""

    def inside(self, read: ast.Expression) -> None:
        """A read stays inside."""

    def undecided(self, read: ast.Expression, index: Index, extent: int, conditions: Sequence[Condition]) -> None:
        """Whether it does is open."""


@dataclass
class _Answers:
    """What came of a computation by the answers to what it asked: a tree of questions, with results at its ends."""

    question: tuple[Any, str, Any] | None = None
    branches: dict[bool, _Answers] = field(default_factory=dict)
    result: Instance | Unsupported | None = None

    def found(self, path: Path) -> Instance | Unsupported | None:
        """The result of the answers that a path gives, where it is known. Forks where an answer is open."""
        node: _Answers | None = self
        while node is not None and node.question is not None:
            node = node.branches.get(path.answer(*node.question))
        return None if node is None else node.result

    def enter(self, asked: Sequence[tuple[Any, str, Any, bool]], result: Instance | Unsupported) -> None:
        """Keep the result of some answers."""
        node = self
        for left, operator, right, answer in asked:
            node.question = left, operator, right
            node = node.branches.setdefault(answer, _Answers())
        node.result = result


class OpenInstances(Instances):
    """Operators at open extents; what is open and not answered is no failure of an operator."""

    watch: Watch = Deaf()
    path: Path | None = None
    """Who answers what is open; what is asked in the same order and answered alike is the same on all paths."""

    def __init__(self, base: Definitions) -> None:
        super().__init__(base)
        self._open: dict[tuple[object, ...], _Answers] = {}
        self._meanings: dict[object, int] = {}
        self._numbers: dict[int, tuple[Instance, int]] = {}

    def get(
        self, operator: str, operands: Sequence[TensorType | None], attributes: Mapping[str, Value], outputs: int = 1
    ) -> Instance:
        """The first overload that takes the operands. Raises Unsupported, Unprovable."""
        assert self.path is not None
        key = (operator, tuple(operands), attribute_key(attributes), outputs)
        answers = self._open.setdefault(key, _Answers())
        known = answers.found(self.path)
        if known is None:
            before = len(self.path.asked)
            try:
                known = self._first(operator, operands, attributes, outputs)
            except Unsupported as refusal:
                known = refusal
            answers.enter(self.path.asked[before:], known)
        if isinstance(known, Unsupported):
            raise known
        return known

    def meaning(self, term: Term) -> Hashable:
        """What a term computes: its leaves and equations, the same for attributes that say the same."""
        if isinstance(term, Leaf):
            return term
        known = self._numbers.get(id(term.instance))
        if known is None:
            computed = term.instance.outputs, term.instance.equations
            known = term.instance, self._meanings.setdefault(computed, len(self._meanings))
            self._numbers[id(term.instance)] = known
        return known[1], term.place, tuple(None if o is None else self.meaning(o) for o in term.operands)

    def _first(
        self, operator: str, operands: Sequence[TensorType | None], attributes: Mapping[str, Value], outputs: int
    ) -> Instance:
        reasons: list[Exception] = []
        for overload in self.base.operators.get(operator, ()):
            try:
                return instantiate_overload(self.base, overload, operands, attributes, outputs, watch=self.watch)
            except (Unsupported, DefinitionError) as reason:
                open_question(reason)
                if isinstance(reason, DefinitionError):
                    raise Unsupported(str(reason)) from reason
                reasons.append(reason)
        outside = [reason for reason in reasons if isinstance(reason, OutsideError)]
        raise Unsupported("; ".join(map(str, reasons))) from next(iter(outside), None)


def open_question(failure: BaseException) -> None:
    """Raises Unprovable where a failure comes of a number that is open."""
    for cause in causes(failure):
        if isinstance(cause, SymbolicExtentError):
            raise Unprovable(f"an open number is needed: {cause}")

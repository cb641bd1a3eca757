"""Operators at open extents, for proofs: reads are taken to stay inside, and an open question is no failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.instances import Instances, attribute_key
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.definitions.elements import Watch
from smartmem_rules.tensor.definitions.inside import OutsideError
from smartmem_rules.tensor.expr import Condition, TensorType
from smartmem_rules.tensor.extents import SymbolicExtentError
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.instantiate import Instance, instantiate_overload
from smartmem_rules.verification.proof.formulas import Unprovable
from smartmem_rules.verification.proof.paths import Path


class Deaf:
    """Lets definitions read anywhere: whether reads stay inside is asked elsewhere."""

    def inside(self, read: ast.Expression) -> None:
        """A read stays inside."""

    def undecided(self, read: ast.Expression, index: Index, extent: int, conditions: Sequence[Condition]) -> None:
        """Whether it does is open."""


class OpenInstances(Instances):
    """Operators at open extents; what is open and not answered is no failure of an operator."""

    watch: Watch = Deaf()
    path: Path | None = None
    """Who answers what is open; what it was not asked about is the same on all paths."""

    def get(
        self, operator: str, operands: Sequence[TensorType | None], attributes: Mapping[str, Value], outputs: int = 1
    ) -> Instance:
        """The first overload that takes the operands. Raises Unsupported, Unprovable."""
        key = (operator, tuple(operands), attribute_key(attributes), outputs)
        known = self._known.get(key)
        if known is None:
            before = 0 if self.path is None else self.path.asked
            try:
                known = self._first(operator, operands, attributes, outputs)
            except Unsupported as refusal:
                known = refusal
            if self.path is None or self.path.asked == before:
                self._known[key] = known
        if isinstance(known, Unsupported):
            raise known
        return known

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


def open_question(failure: BaseException | None) -> None:
    """Raises Unprovable where a failure comes of a number that is open."""
    while failure is not None:
        if isinstance(failure, SymbolicExtentError):
            raise Unprovable(f"an open number is needed: {failure}")
        failure = failure.__cause__

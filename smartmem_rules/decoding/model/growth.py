"""Where a model puts new rows of the cache, by the equations of its graph.

The cache can be written in place where all that is read of it later stays where it is: then only the new rows are
computed and stored. A model shows that by keeping the whole past, or by keeping as many positions of each sequence as
an integer counts (`GroupQueryAttention`), behind which it puts the new row and never reads.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smartmem_rules.decoding.model.interface import CachedTensor
from smartmem_rules.graph.model import Graph
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import (
    Apply,
    Compare,
    Equation,
    Expr,
    FromIndex,
    Read,
    Select,
    needed,
    substitute_variables,
    tensors_read,
)
from smartmem_rules.tensor.index import Index, constant, variable
from smartmem_rules.tensor.interpreter.interpret import evaluate_equations

BEHIND, COUNTED, ANEW = "behind", "counted", "anew"
"""Behind all positions, behind as many as count in each sequence, or anywhere: then all rows are written anew."""
_LONGEST = 64
"""Equations that are followed from an output to an input."""


@dataclass(frozen=True, kw_only=True)
class Growth:
    """How the cache grows.

    Attributes:
        kind: `behind`, `counted` or `anew`.
        counts: where it is `counted`, the tensor that says for each sequence how many positions there are before.
    """

    kind: str
    counts: str = ""

    @property
    def in_place(self) -> bool:
        """Whether new rows are all that a step writes."""
        return self.kind != ANEW


WHOLE = Growth(kind=ANEW)
"""Of steps that give the whole present."""


def growth_of(graph: Graph, cached: Sequence[CachedTensor], bound: int) -> Growth:
    """How all cached tensors grow, which has to be the same way.

    Args:
        graph: the imported graph of a step of one token behind a cache, with equations.
        bound: positions that there may be.
    """
    if all(keeps_past(graph, tensor) for tensor in cached):
        return Growth(kind=BEHIND)
    counts = {counts_of(graph, tensor, bound) for tensor in cached}
    found = counts.pop()
    return Growth(kind=ANEW) if counts or found is None else Growth(kind=COUNTED, counts=found)


def keeps_past(graph: Graph, tensor: CachedTensor) -> bool:
    """Whether each element of the present that has a place in the past is the element there.

    Args:
        graph: the imported graph of a step behind a cache, with equations.
    """
    present = _Present.of(graph, tensor)
    return present is not None and present.is_past(present.start)


def counts_of(graph: Graph, tensor: CachedTensor, bound: int) -> str | None:
    """The tensor of whole numbers that says how many positions of each sequence are those of the past.

    The present has to be the past where a position is less than what is computed of that number, which has to be the
    number itself from 0 to `bound`, and nothing may read the past elsewhere. None where the equations do not show that.
    """
    present = _Present.of(graph, tensor)
    chosen = None if present is None else present.chosen()
    if present is None or not isinstance(chosen, Apply) or chosen.function != "select":
        return None
    condition, kept, _ = chosen.arguments
    if not present.is_past(kept) or not isinstance(condition, Apply) or condition.function != "lt":
        return None
    place, limit = condition.arguments
    if place != FromIndex(present.place, "int64") or not isinstance(limit, Read):
        return None
    if limit.indices != present.wanted[:1] or not present.is_read_where_kept():
        return None
    return _counting(graph, limit.tensor, bound)


def _counting(graph: Graph, tensor: str, bound: int) -> str | None:
    """The tensor from another node with which one of the same node agrees, element by element, up to a bound."""
    own = next(node.equations for node in graph.nodes if any(e.tensor == tensor for e in node.equations))
    chain = needed(own, [tensor])
    made = {equation.tensor for equation in chain}
    given = {name for equation in chain for name in tensors_read(equation.body)} - made
    if len(given) != 1:
        return None
    (counts,) = given
    type_ = graph.types[counts]
    sequences = chain[-1].type.shape[0]
    if type_.elements != sequences:
        return None
    for start in range(0, bound + 1, sequences):
        values = np.arange(start, start + sequences)
        held = values.astype(type_.dtype).reshape(type_.shape)
        if (evaluate_equations(chain, {counts: held})[tensor].reshape(-1) != values).any():
            return None
    return counts


@dataclass(frozen=True, kw_only=True)
class _Present:
    """An element of a present, to be followed to the past.

    Attributes:
        wanted: its indices.
        past: how many positions the past has.
    """

    tensor: CachedTensor
    equations: dict[str, Equation]
    start: Read
    wanted: tuple[Index, ...]
    past: int

    @classmethod
    def of(cls, graph: Graph, tensor: CachedTensor) -> _Present | None:
        equations = {equation.tensor: equation for node in graph.nodes for equation in node.equations}
        start = equations.get(tensor.present)
        if start is None:
            return None
        wanted = tuple(
            variable(var) if extent != 1 else constant(0)
            for var, extent in zip(start.variables, start.type.shape, strict=True)
        )
        read = Read(tensor.present, wanted, start.type.dtype)
        past = graph.types[tensor.past].shape[tensor.axis]
        return cls(tensor=tensor, equations=equations, start=read, wanted=wanted, past=past)

    @property
    def place(self) -> Index:
        """The position of the element."""
        return self.wanted[self.tensor.axis]

    def chosen(self) -> Expr:
        """What the element is where its place lies in the past, as far as that is one element of another tensor."""
        return self._followed(self.start)

    def is_past(self, expression: Expr) -> bool:
        """Whether an expression is the element of the past with the same indices, where there is one."""
        found = self._followed(expression)
        return isinstance(found, Read) and found.tensor == self.tensor.past and found.indices == self.wanted

    def is_read_where_kept(self) -> bool:
        """Whether the past is read by one choice alone, in the first of its two cases."""
        past = self.tensor.past
        readers = [e.body for e in self.equations.values() if past in tensors_read(e.body)]
        if len(readers) != 1 or not isinstance(readers[0], Apply) or readers[0].function != "select":
            return False
        condition, _, otherwise = readers[0].arguments
        return past not in (*tensors_read(condition), *tensors_read(otherwise))

    def _followed(self, expression: Expr) -> Expr:
        for _ in range(_LONGEST):
            if isinstance(expression, Select):
                if expression.condition != Compare("<", self.place, constant(self.past)):
                    return expression
                expression = expression.then
            elif isinstance(expression, Read) and self._is_made(expression):
                equation = self.equations[expression.tensor]
                values = dict(zip(equation.variables, expression.indices, strict=True))
                expression = substitute_variables(equation.body, values)
            else:
                return expression
        return expression

    def _is_made(self, read: Read) -> bool:
        """Whether a tensor is computed, and is not the past."""
        return read.tensor in self.equations and read.tensor != self.tensor.past

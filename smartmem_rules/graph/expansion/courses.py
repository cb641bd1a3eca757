"""Loops of an import whose ends depend on data: whether a run has ended those on which its outputs depend."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field

from smartmem_rules.graph.endings import Endings, UnrolledLoop
from smartmem_rules.graph.expansion.bodies import Bodies
from smartmem_rules.graph.model import Node, live_nodes
from smartmem_rules.limits import MOST_VALUES
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.ranges import smallest

Needed = Callable[[Sequence[str]], tuple[Sequence[Node], object]]
"""The nodes that tensors depend on, those included that count their extents."""


@dataclass(frozen=True)
class _Unended:
    """A loop, the scalar tensor that says whether it would take one more step, and what it gives, its steps too."""

    loop: UnrolledLoop
    flag: str
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Courses:
    """The loops of an import that end by data.

    Attributes:
        nodes: what has been imported so far.
        types: of all tensors.
        under: the tensors of which each is true, or each false, where what is being imported counts.
    """

    nodes: Sequence[Node]
    types: Mapping[str, TensorType]
    under: list[tuple[str, bool]] = field(default_factory=list)
    unended: list[_Unended] = field(default_factory=list)

    @contextmanager
    def within(self, condition: str, holds: bool) -> Iterator[None]:
        """Import what counts only if a tensor is true, or false; an empty name: always."""
        if condition:
            self.under.append((condition, holds))
        try:
            yield
        finally:
            if condition:
                self.under.pop()

    def not_ended(self, bodies: Bodies, name: str, steps: int, live: str, outputs: Sequence[str]) -> None:
        """Note that a loop is unrolled for so many steps, and takes more where `live` is true."""
        flag = live
        for number, (condition, holds) in enumerate(self.under):
            condition = bodies.scalar(condition, f"{name}/entered/{number}")
            if not holds:
                condition = bodies.computed("Not", [condition], f"{name}/entered/{number}/not")
            flag = bodies.computed("And", [flag, condition], f"{name}/unended/{number}")
        self.unended.append(_Unended(UnrolledLoop(name, steps), flag, tuple(filter(None, outputs))))

    def endings(self, bodies: Bodies, outputs: Sequence[str], needed: Needed) -> Endings | None:
        """Import what tells which of the loops has not ended on which the outputs depend."""
        loops: list[_Unended] = []
        while self.unended:  # what says whether a loop is entered may depend on another one
            nodes, _ = needed([*outputs, *(one.flag for one in loops)])
            made = {output for node in nodes for output in node.outputs}
            more = [one for one in self.unended if one not in loops and not made.isdisjoint(one.outputs)]
            if not more:
                break
            loops += more
        if not loops:
            return None
        number = bodies.constant(0, "endings/0")
        for place, one in reversed(list(enumerate(loops, 1))):  # the first of several is told
            chosen = "endings" if place == 1 else f"endings/{place}/chosen"
            told = bodies.constant(place, f"endings/{place}")
            number = bodies.computed("Where", [one.flag, told, number], chosen)
        return Endings(number, tuple(one.loop for one in loops))

    def is_of_data(self, tensor: str) -> bool:
        """Whether a tensor depends on inputs that are too large to decide a plan by their values."""
        needed = {name for node in live_nodes(self.nodes, [tensor]) for name in node.operands if name} | {tensor}
        inputs = needed - {output for node in self.nodes for output in node.outputs}
        return any(smallest(self.types[name].elements) > MOST_VALUES for name in inputs if name in self.types)

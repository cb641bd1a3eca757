"""The choice of layouts as a PBQP: the variables are tensors, the states their layouts and layout replicas."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.plan.layout.accesses import lead_of, uses
from smartmem_rules.plan.layout.candidates import LayoutSpace, Node, UseCost
from smartmem_rules.plan.layout.copies import copy_kernel
from smartmem_rules.plan.layout.pbqp import Array, Chosen, Pbqp
from smartmem_rules.records import dataclass
from smartmem_rules.statistics import LayoutCandidate, TensorLayout

State = tuple[int, int | None]
"""A tensor's layout and its second one, by their numbers among its candidates."""

TIE_NS = 1e-3
"""Tie-breaker: a penalty (ns) on every candidate but the first, smaller than any real cost."""
LAST_RESORT = 100
"""How often a tensor goes through a buffer before one is taken where images are asked for and possible."""


@dataclass(frozen=True)
class Copy:
    """A tensor's second layout: its number, the kernels that read it, and whether a kernel of its own makes it."""

    node: Node
    layout: int
    readers: tuple[Kernel, ...]
    separate_kernel: bool


class LayoutProblem:
    """The states of all tensors and what they cost together.

    Args:
        copies: whether tensors may have a second layout.
    """

    def __init__(self, space: LayoutSpace, copies: bool) -> None:
        self.space = space
        self.touches = space.touches_of
        self._copying: dict[Node, Array] = {}
        self.states = {node: self._states(node, copies) for node in space.places}
        self.handicaps = {node: self._handicap(node) for node in space.places}
        self.pairs = Pbqp(single=dict(self.handicaps))
        for touch in space.touches:
            self._add(touch)

    # --- states ---

    def _states(self, node: Node, copies: bool) -> list[State]:
        place = self.space.places[node]
        single: list[State] = [(n, None) for n in range(place.alone)]
        readers = [t for t in self.touches[node] if t.reads is not None]
        in_pieces = sum(t.writes is not None for t in self.touches[node]) > 1
        if not copies or place.stored.role == "constant" or not readers or in_pieces:
            return single
        if node[0] in self.space.where.growing:
            return single
        if len(readers) < 2 and place.alone == len(place.layouts):
            return single
        found = [
            (first, second)
            for first in range(place.alone)
            for second in range(len(place.layouts))
            if second != first and self._can_pay(node, first, second)
        ]
        return [*single, *found]

    def _can_pay(self, node: Node, first: int, second: int) -> bool:
        """Whether a second layout can save more than it costs, whatever the neighbours choose."""
        saved = 0.0
        for touch in self.touches[node]:
            if touch.reads is not None:
                saved += float((touch.reads[:, first] - touch.reads[:, second]).max(initial=0.0))
        if saved <= 0:
            return False
        write = self._write(node)
        beside = np.inf
        if write is not None and write.writes is not None:
            beside = min(self._beside(write, lead, second) for lead in range(len(write.writes)))
        return bool(saved > min(beside, self._copy_cost(node)[first, second]))

    def _write(self, node: Node) -> UseCost | None:
        """The writing of a tensor by a kernel that can write it twice."""
        for touch in self.touches[node]:
            kernel = touch.kernel
            if touch.writes is not None:
                able = not kernel.parts and kernel.form != "scan" and kernel.name not in self.space.where.launched
                return touch if able else None
        return None

    def _copy_cost(self, node: Node) -> Array:
        """What a kernel has to save that only copies the tensor, by the layouts that it reads and writes."""
        if node not in self._copying:
            place, costs = self.space.places[node], self.space.costs
            kernel = copy_kernel(place.stored, "copy")
            leads = [(new, lead_of(kernel, new, self.space.wave)) for new in place.layouts]
            touched = uses(kernel, (), None)
            moved = np.array([
                [sum(costs.of(u, place.stored, new if u.writes else old, lead) for u in touched) for new, lead in leads]
                for old in place.layouts
            ])  # fmt: skip
            whole = self.space.where.device.compute.launch + 2 * costs.passing(place.stored) + moved
            self._copying[node] = whole * self.space.where.costs.copy_gain
        return self._copying[node]

    def _handicap(self, node: Node) -> Array:
        """What keeps a choice from states that are no better, or only a last resort."""
        place = self.space.places[node]
        forced = self.space.where.kinds == ("image",) and place.layouts[0].memory == "image"
        last = LAST_RESORT * self.space.costs.passing(place.stored)
        return np.array([
            (TIE_NS if number else 0.0) + (last if forced and place.layouts[first].memory == "buffer" else 0.0)
            for number, (first, _) in enumerate(self.states[node])
        ])  # fmt: skip

    # --- costs ---

    def _add(self, touch: UseCost) -> None:
        """The costs of a kernel's uses of a tensor, by the states of the tensor and of the leader."""
        node, leader = touch.node, touch.leader
        if leader is None:
            self.pairs.add(node, np.array([self._cost(touch, 0, state) for state in self.states[node]]))
        elif leader == node:
            self.pairs.add(node, np.array([self._cost(touch, state[0], state) for state in self.states[node]]))
        else:
            by_lead = [
                [self._cost(touch, lead, state) for state in self.states[node]]
                for lead in range(self.space.places[leader].alone)
            ]
            table = np.array([by_lead[first] for first, _ in self.states[leader]])
            if len(table) == 1:
                self.pairs.add(node, table[0])
            elif table.shape[1] == 1:
                self.pairs.add(leader, table[:, 0])
            else:
                self.pairs.add_pair(leader, node, table)

    def _cost(self, touch: UseCost, lead: int, state: State) -> float:
        first, second = state
        total = 0.0
        if touch.reads is not None:
            row = touch.reads[lead]
            total += row[first] if second is None else min(row[first], row[second])
        if touch.writes is not None:
            total += touch.writes[lead][first]
            if second is not None:
                total += min(self._beside(touch, lead, second), self._copy_cost(touch.node)[first, second])
        elif second is not None and self._made_by_none(touch):
            total += self._copy_cost(touch.node)[first, second]
        return float(total)

    def _beside(self, touch: UseCost, lead: int, second: int) -> float:
        """What it costs that the kernel that computes the tensor writes its second layout, too."""
        able = self._write(touch.node)
        if able is None or able.writes is None:
            return np.inf
        # another tensor goes to memory, and its readers no longer find in the cache what others read
        further = 2 * self.space.costs.passing(self.space.places[touch.node].stored)
        return float(able.writes[lead][second]) + further

    def _made_by_none(self, touch: UseCost) -> bool:
        """Whether no kernel writes the tensor, and this is the first that reads it."""
        own = self.touches[touch.node]
        return own[0] is touch and all(t.writes is None for t in own)

    # --- what was chosen ---

    def numbers(self, layouts: Mapping[Node, int]) -> Chosen:
        """The numbers of the states in which tensors have these layouts and no second one."""
        return {node: self.states[node].index((layout, None)) for node, layout in layouts.items()}

    def weight(self, chosen: Mapping[Node, int]) -> float:
        """The part of a choice's cost that is no time."""
        total = sum(float(costs[chosen[node]]) for node, costs in self.handicaps.items())
        gain = self.space.where.costs.copy_gain
        for copy in self.copies(chosen):
            if copy.separate_kernel:
                first, _ = self.states[copy.node][chosen[copy.node]]
                total += float(self._copy_cost(copy.node)[first, copy.layout]) * (1 - 1 / gain)
        return total

    def time(self, chosen: Chosen) -> float:
        """Nanoseconds of all uses."""
        return self.pairs.cost(chosen) - self.weight(chosen)

    def copies(self, chosen: Mapping[Node, int]) -> list[Copy]:
        """The second layouts of a choice."""
        found = []
        for node, states in self.states.items():
            first, second = states[chosen[node]]
            if second is None:
                continue
            readers, apart = [], True
            for touch in self.touches[node]:
                lead = 0 if touch.leader is None else self.states[touch.leader][chosen[touch.leader]][0]
                if self._takes(touch, lead, first, second):
                    readers.append(touch.kernel)
                if touch.writes is not None:
                    apart = self._beside(touch, lead, second) > self._copy_cost(node)[first, second]
            if readers:
                found.append(Copy(node, second, tuple(readers), apart))
        return found

    @staticmethod
    def _takes(touch: UseCost, lead: int, first: int, second: int) -> bool:
        """Whether a kernel reads the second of two layouts."""
        return touch.reads is not None and bool(touch.reads[lead][second] < touch.reads[lead][first])

    def described(self, chosen: Mapping[Node, int]) -> dict[str, TensorLayout]:
        """For each tensor its layout, and what each candidate costs beside what the others chose, in microseconds."""
        costs = self.pairs.marginals(chosen)
        found: dict[str, TensorLayout] = {}
        for node, place in self.space.places.items():
            if place.stored.role in ("constant", "input") or not place.stored.type.shape:
                continue
            first, second = self.states[node][chosen[node]]
            own = (costs[node] - self.handicaps[node]) / 1000
            found[node[0]] = TensorLayout(
                layout=place.layouts[first].places,
                copy=None if second is None else place.layouts[second].places,
                reduced=tuple(f"d{axis}" for axis in place.reduced),
                candidates=tuple(
                    LayoutCandidate(
                        layout="; and ".join(place.layouts[n].places for n in state if n is not None),
                        microseconds=round(float(cost), 3) if np.isfinite(cost) else None,
                    )
                    for state, cost in zip(self.states[node], own, strict=True)
                ),
                readers=tuple(t.kernel.name for t in self.touches[node] if t.reads is not None),
            )
        return found

"""Which kernels run and how their tensors lie, chosen together.

The layouts of tensors are a problem of pairs (`layout_choice`); regions of competing kernels (`alternatives`) are
further things of it, whose states are their configurations.  A kernel's time belongs to its region's state.  What its
uses of a tensor cost in each layout is a cost of the pair of region and tensor, zero in configurations without the
kernel; where the layout of its first output decides too, a thing of its own stands for the kernel: its states are that
it does not run, and the ways in which that output leads it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from smartmem_rules.plan.alternatives import Pool, Region
from smartmem_rules.plan.layout_choice import LayoutProblem, State
from smartmem_rules.plan.layout_problem import Array, Chosen, Solution, Thing
from smartmem_rules.plan.layout_space import LayoutSpace, Node, Touch, Where
from smartmem_rules.plan.layouts import LayoutAnswer, solve_layouts
from smartmem_rules.plan.model import Kernel, Stored


@dataclass(frozen=True)
class JointChoice:
    """The kernels of a plan chosen together with its layouts, and what is known of the optimum.

    Attributes:
        kernels: those that run, in an order of execution.
        answer: the layouts of their tensors.
        status: optimal | feasible (the time was over, or kernels that needed each other were given up).
        kernel_cost: modelled microseconds of the kernels without what their tensors' layouts cost.
        cost, bound: of kernels and layouts together; no configuration of the pool costs less than the bound.
        two_step_cost: of the kernels of the fusion rules with the best layouts for them.
        local_cost: of these kernels with layouts edge by edge.
        alternatives: competing kernels besides those of the rules.
        changed: regions that are not as the rules would have them.
    """

    kernels: tuple[Kernel, ...]
    answer: LayoutAnswer
    status: str
    kernel_cost: float
    cost: float
    bound: float
    two_step_cost: float
    local_cost: float
    alternatives: int
    regions: int
    changed: int
    seconds: float

    @property
    def gap(self) -> float:
        return 0.0 if self.cost <= 0 else max(0.0, self.cost - self.bound) / self.cost

    def given_up(self, by_rules: Sequence[Kernel]) -> JointChoice:
        """The kernels of the rules in the place of those chosen; the bound stays."""
        return replace(self, kernels=tuple(by_rules), status="feasible", cost=self.two_step_cost, changed=0)

    def data(self) -> dict[str, object]:
        """What the plan's report says of it: costs in microseconds, the time of the choice in seconds."""
        shown = ("status", "gap", "cost", "bound", "two_step_cost", "local_cost", "kernel_cost")
        counts = ("alternatives", "regions", "changed", "seconds")
        return {name: getattr(self, name) for name in (*shown, *counts)}


class JointProblem(LayoutProblem):
    """The states of all tensors and of all regions, and what they cost together.

    Args:
        times: nanoseconds of each kernel of the pool, by its number.
    """

    def __init__(self, space: LayoutSpace, copies: bool, pool: Pool, times: Mapping[int, float]) -> None:
        self.regions: list[Thing] = [("", f"region {n}") for n in range(len(pool.regions))]
        self.pool = pool
        self.runs: dict[str, tuple[Thing, Array]] = {}
        for thing, region in zip(self.regions, pool.regions, strict=True):
            for number in {n for one in region.configurations for n in one}:
                runs = np.array([number in one for one in region.configurations])
                self.runs[pool.kernels[number].name] = (thing, runs)
        self.led: dict[str, tuple[Thing, Node, Array]] = {}
        super().__init__(space, copies)
        self.pairs.constant += sum(times[n] for n in pool.always)
        for thing, region in zip(self.regions, pool.regions, strict=True):
            self.pairs.add(thing, _times(region, times))

    def _states(self, node: Node, copies: bool) -> list[State]:
        # what only some configurations touch has one layout: who would write the second is open
        return super()._states(node, copies and not any(t.kernel.name in self.runs for t in self.touches[node]))

    def _add(self, touch: Touch) -> None:
        if touch.kernel.name not in self.runs:
            super()._add(touch)
            return
        region, runs = self.runs[touch.kernel.name]
        node, leader, states = touch.node, touch.leader, self.states[touch.node]
        if leader is None or leader == node:
            own = np.array([self._cost(touch, 0 if leader is None else state[0], state) for state in states])
            self._tie(region, node, np.where(runs[:, None], own, 0.0))
            return
        by_lead = np.array([
            [self._cost(touch, first, state) for state in states] for first, _ in self.states[leader]
        ])  # fmt: skip
        if (by_lead == by_lead[0]).all():
            self._tie(region, node, np.where(runs[:, None], by_lead[0], 0.0))
        elif len(states) == 1:
            self._tie(region, leader, np.where(runs[:, None], by_lead[:, 0], 0.0))
        else:
            self.pairs.add_pair(self._follower(touch.kernel, leader), node, np.vstack([np.zeros(len(states)), by_lead]))

    def _tie(self, region: Thing, node: Node, table: Array) -> None:
        if table.shape[1] == 1:
            self.pairs.add(region, table[:, 0])
        else:
            self.pairs.add_pair(region, node, table)

    def _follower(self, kernel: Kernel, leader: Node) -> Thing:
        """What stands for a kernel that may run: state 0 if it does not, else the state of its first output."""
        region, runs = self.runs[kernel.name]
        thing = ("", kernel.name)
        if kernel.name not in self.led:
            self.led[kernel.name] = (thing, leader, runs)
            size = len(self.states[leader])
            self.pairs.add(thing, np.zeros(size + 1))
            idle = np.array([0.0, *[np.inf] * size])
            busy = np.array([np.inf, *[0.0] * size])
            self.pairs.add_pair(region, thing, np.where(runs[:, None], busy, idle))
            same = np.where(np.eye(size, dtype=bool), 0.0, np.inf)
            self.pairs.add_pair(thing, leader, np.vstack([np.zeros(size), same]))
        return thing

    def complete(self, layouts: Mapping[Node, State], configurations: Sequence[int]) -> Chosen:
        """The states of all things, by the layouts of tensors (others have their first) and what regions do."""
        chosen: Chosen = {node: 0 for node in self.states}
        chosen.update({node: self.states[node].index(state) for node, state in layouts.items()})
        chosen.update(zip(self.regions, configurations, strict=True))
        for thing, leader, runs in self.led.values():
            region = self.runs[thing[1]][0]
            chosen[thing] = 1 + chosen[leader] if runs[chosen[region]] else 0
        return chosen


def _times(region: Region, times: Mapping[int, float]) -> Array:
    return np.array([sum(times[n] for n in one) for one in region.configurations])


def choose_kernels(pool: Pool, tensors: Mapping[str, Stored], where: Where, times: Mapping[int, float]) -> JointChoice:
    """The cheapest kernels of a pool and layouts of their tensors; at worst those of the rules, laid out best.

    Args:
        tensors: all that kernels of the pool touch, and the inputs and outputs of the model.
        times: nanoseconds of the kernels by their numbers.
    """
    begin = time.perf_counter()
    used = sorted({*pool.always, *(n for r in pool.regions for one in r.configurations for n in one)})
    space = LayoutSpace([pool.kernels[n] for n in used], tensors, where)
    by_rules = pool.kernels[: pool.first]
    two_step = solve_layouts(space.restricted(by_rules, _touched(by_rules, tensors)))
    fixed = sum(times[n] for n in range(pool.first))
    first, local = fixed + two_step.time, fixed + two_step.problem.time(two_step.local)
    kernels, answer, kernel_cost, cost, bound = by_rules, two_step, fixed, first, fixed + two_step.bound
    status, changed = "optimal" if two_step.solution.optimal else "feasible", 0
    if pool.regions:
        problem = JointProblem(space, where.costs.copies > 0, pool, times)
        solution, acyclic = _solve(problem, two_step)
        picked = [solution.chosen[thing] for thing in problem.regions]
        bound = min(cost, solution.bound - problem.weight(solution.chosen))
        status = "optimal" if solution.optimal and acyclic else "feasible"
        changed = sum(number > 0 for number in picked)
        if changed:
            found = pool.chosen(picked)
            assert found is not None
            kernels = tuple(found)
            kernel_cost = sum(_times(r, times)[n] for r, n in zip(pool.regions, picked, strict=True))
            kernel_cost += sum(times[n] for n in pool.always)
            answer = solve_layouts(space.restricted(kernels, _touched(kernels, tensors)))
            cost = kernel_cost + answer.time
            if cost > first:
                kernels, answer, kernel_cost, cost, changed = by_rules, two_step, fixed, first, 0
        bound = max(0.0, min(bound, cost))
        if status == "optimal":
            bound = cost
    return JointChoice(
        kernels, answer, status, kernel_cost / 1000, cost / 1000, bound / 1000, first / 1000, local / 1000,
        len(pool.kernels) - pool.first, len(pool.regions), changed, time.perf_counter() - begin,
    )  # fmt: skip


def _solve(problem: JointProblem, two_step: LayoutAnswer) -> tuple[Solution, bool]:
    """The cheapest choice whose kernels have an order, and whether it is the cheapest of all."""
    places, own = problem.space.places, two_step.problem
    layouts: dict[Node, State] = {}
    for node, states in own.states.items():
        first, second = states[two_step.solution.chosen[node]]
        found = [
            None if n is None else places[node].layouts.index(own.space.places[node].layouts[n])
            for n in (first, second)
        ]
        assert found[0] is not None
        state = (found[0], found[1])
        layouts[node] = state if state in problem.states[node] else (found[0], None)
    start = problem.complete(layouts, [0] * len(problem.regions))
    seconds = problem.space.where.costs.solver_seconds
    solution, acyclic = problem.pairs.solve(start, seconds), True
    bound = solution.bound
    while (circle := _in_circle(problem, solution.chosen)) is not None:
        # kernels of different regions need each other: one of these does something else
        acyclic = False
        costs = problem.pairs.single[circle].copy()
        costs[solution.chosen[circle]] = np.inf
        problem.pairs.single[circle] = costs
        solution = problem.pairs.solve(start, seconds)
    return Solution(solution.chosen, solution.optimal, solution.cost, bound), acyclic


def _in_circle(problem: JointProblem, chosen: Chosen) -> Thing | None:
    """A region without whose choice the kernels of those before it have an order; None if all together have one."""
    picked = [chosen[thing] for thing in problem.regions]
    if problem.pool.chosen(picked) is not None:
        return None
    for number in range(len(picked)):
        if problem.pool.chosen([*picked[: number + 1], *[0] * (len(picked) - number - 1)]) is None:
            return problem.regions[number]
    raise AssertionError("the kernels of the rules have an order")


def _touched(kernels: Sequence[Kernel], tensors: Mapping[str, Stored]) -> dict[str, Stored]:
    """The tensors of some kernels, and the model's inputs and outputs."""
    names = {t for k in kernels for t in (*k.reads, *k.writes)}
    return {t: stored for t, stored in tensors.items() if t in names or stored.role in ("input", "output")}

"""Chooses kernels and layouts together.

The layouts of tensors are variables of a PBQP (`plan.layout.model`, `plan.layout.pbqp`); regions of competing kernels
(`plan.fusion.alternatives`) are further variables of it, whose states are their configurations.  A kernel's time
belongs to its region's state.  What its uses of a tensor cost in each layout is a cost of the pair of region and
tensor, zero in configurations without the kernel; where the layout of its first output decides too, a variable of its
own stands for the kernel: its states are that it does not run, and the ways in which that output leads it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from smartmem_rules.plan.fusion.alternatives import Pool, Region
from smartmem_rules.plan.kernel.model import Kernel, Stored
from smartmem_rules.plan.layout.candidates import LayoutOptions, LayoutSpace, Node, UseCost
from smartmem_rules.plan.layout.choose import LayoutAnswer, solve_layouts
from smartmem_rules.plan.layout.model import LayoutProblem, State
from smartmem_rules.plan.layout.pbqp import Array, Chosen, Solution, Variable
from smartmem_rules.records import dataclass
from smartmem_rules.statistics import JointStatistics, relative_gap


@dataclass(frozen=True, kw_only=True)
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
        by_rules: how many kernels the rules make.
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
    by_rules: int
    alternatives: int
    regions: int
    changed: int
    seconds: float

    @property
    def gap(self) -> float:
        return relative_gap(self.cost, self.bound)

    def given_up(self, by_rules: Sequence[Kernel]) -> JointChoice:
        """The kernels of the rules in the place of those chosen; the bound stays."""
        return replace(self, kernels=tuple(by_rules), status="feasible", cost=self.two_step_cost, changed=0)

    @property
    def statistics(self) -> JointStatistics:
        """What the plan's report says of it."""
        return JointStatistics(
            status=self.status,
            gap=self.gap,
            cost=self.cost,
            bound=self.bound,
            two_step_cost=self.two_step_cost,
            local_cost=self.local_cost,
            kernel_cost=self.kernel_cost,
            by_rules=self.by_rules,
            alternatives=self.alternatives,
            regions=self.regions,
            changed=self.changed,
            seconds=self.seconds,
            kernels=len(self.kernels),
        )


class JointProblem(LayoutProblem):
    """The states of all tensors and of all regions, and what they cost together.

    Args:
        times: nanoseconds of each kernel of the pool, by its number.
    """

    def __init__(self, space: LayoutSpace, copies: bool, pool: Pool, times: Mapping[int, float]) -> None:
        self.regions: list[Variable] = [("", f"region {n}") for n in range(len(pool.regions))]
        self.pool = pool
        self.runs: dict[str, tuple[Variable, Array]] = {}
        for variable, region in zip(self.regions, pool.regions, strict=True):
            for number in {n for one in region.configurations for n in one}:
                runs = np.array([number in one for one in region.configurations])
                self.runs[pool.kernels[number].name] = (variable, runs)
        self.led: dict[str, tuple[Variable, Node, Array]] = {}
        super().__init__(space, copies)
        self.pairs.constant += sum(times[n] for n in pool.always)
        for variable, region in zip(self.regions, pool.regions, strict=True):
            self.pairs.add(variable, _times(region, times))

    def _states(self, node: Node, copies: bool) -> list[State]:
        # what only some configurations touch has one layout: who would write the second is open
        return super()._states(node, copies and not any(t.kernel.name in self.runs for t in self.touches[node]))

    def _add(self, touch: UseCost) -> None:
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

    def _tie(self, region: Variable, node: Node, table: Array) -> None:
        if table.shape[1] == 1:
            self.pairs.add(region, table[:, 0])
        else:
            self.pairs.add_pair(region, node, table)

    def _follower(self, kernel: Kernel, leader: Node) -> Variable:
        """What stands for a kernel that may run: state 0 if it does not, else the state of its first output."""
        region, runs = self.runs[kernel.name]
        variable = ("", kernel.name)
        if kernel.name not in self.led:
            self.led[kernel.name] = (variable, leader, runs)
            size = len(self.states[leader])
            self.pairs.add(variable, np.zeros(size + 1))
            idle = np.array([0.0, *[np.inf] * size])
            busy = np.array([np.inf, *[0.0] * size])
            self.pairs.add_pair(region, variable, np.where(runs[:, None], busy, idle))
            same = np.where(np.eye(size, dtype=bool), 0.0, np.inf)
            self.pairs.add_pair(variable, leader, np.vstack([np.zeros(size), same]))
        return variable

    def complete(self, layouts: Mapping[Node, State], configurations: Sequence[int]) -> Chosen:
        """The states of all variables, by the layouts of tensors (others have their first) and what regions do."""
        chosen: Chosen = {node: 0 for node in self.states}
        chosen.update({node: self.states[node].index(state) for node, state in layouts.items()})
        chosen.update(zip(self.regions, configurations, strict=True))
        for variable, leader, runs in self.led.values():
            region = self.runs[variable[1]][0]
            chosen[variable] = 1 + chosen[leader] if runs[chosen[region]] else 0
        return chosen


@dataclass(frozen=True)
class _Laid:
    """Kernels with the best layouts for them, and nanoseconds of the kernels alone."""

    kernels: tuple[Kernel, ...]
    answer: LayoutAnswer
    time: float

    @property
    def cost(self) -> float:
        return self.time + self.answer.time

    @staticmethod
    def of(space: LayoutSpace, kernels: Sequence[Kernel], tensors: Mapping[str, Stored], time: float) -> _Laid:
        names = {t for k in kernels for t in (*k.reads, *k.writes)}
        kept = names.union(space.where.fixed)  # outputs that no kernel computes
        touched = {t: stored for t, stored in tensors.items() if t in kept or stored.role in ("input", "output")}
        return _Laid(tuple(kernels), solve_layouts(space.restricted(kernels, touched)), time)


def _times(region: Region, times: Mapping[int, float]) -> Array:
    return np.array([sum(times[n] for n in one) for one in region.configurations])


def choose_kernels(
    pool: Pool, tensors: Mapping[str, Stored], where: LayoutOptions, times: Mapping[int, float]
) -> JointChoice:
    """The cheapest kernels of a pool and layouts of their tensors; at worst those of the rules, laid out best.

    Args:
        tensors: all that kernels of the pool touch, and the inputs and outputs of the model.
        times: nanoseconds of the kernels by their numbers.
    """
    begin = time.perf_counter()
    used = sorted({*pool.always, *(n for r in pool.regions for one in r.configurations for n in one)})
    space = LayoutSpace([pool.kernels[n] for n in used], tensors, where)
    first = _Laid.of(space, pool.kernels[: pool.first], tensors, sum(times[n] for n in range(pool.first)))
    best, bound, proved = first, first.time + first.answer.bound, first.answer.solution.optimal
    picked: list[int] = []
    if pool.regions:
        problem = JointProblem(space, where.costs.copies > 0, pool, times)
        solution, acyclic = _solve(problem, first.answer)
        picked = [solution.chosen[variable] for variable in problem.regions]
        bound, proved = solution.bound - problem.weight(solution.chosen), solution.optimal and acyclic
    if any(picked):
        kernels = pool.chosen(picked)
        assert kernels is not None
        own = sum(times[n] for n in pool.always)
        own += sum(times[n] for r, one in zip(pool.regions, picked, strict=True) for n in r.configurations[one])
        other = _Laid.of(space, kernels, tensors, own)
        best = other if other.cost < first.cost - where.costs.least_gain else first
        bound = min(other.cost, first.cost) if proved else bound
    elif proved:
        bound = first.cost
    return JointChoice(
        kernels=best.kernels,
        answer=best.answer,
        status="optimal" if proved else "feasible",
        kernel_cost=best.time / 1000,
        cost=best.cost / 1000,
        bound=max(0.0, min(bound, best.cost)) / 1000,
        two_step_cost=first.cost / 1000,
        local_cost=(first.time + first.answer.problem.time(first.answer.local)) / 1000,
        by_rules=pool.first,
        alternatives=len(pool.kernels) - pool.first,
        regions=len(pool.regions),
        changed=0 if best is first else sum(number > 0 for number in picked),
        seconds=time.perf_counter() - begin,
    )


def _solve(problem: JointProblem, two_step: LayoutAnswer) -> tuple[Solution, bool]:
    """The cheapest choice whose kernels have an order, and whether it is the cheapest of all."""
    places, own = problem.space.places, two_step.problem
    layouts: dict[Node, State] = {}
    for node, states in own.states.items():
        known, found = own.space.places[node].layouts, places[node].layouts
        first, second = states[two_step.solution.chosen[node]]
        state = (found.index(known[first]), None if second is None else found.index(known[second]))
        layouts[node] = state if state in problem.states[node] else (state[0], None)
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


def _in_circle(problem: JointProblem, chosen: Chosen) -> Variable | None:
    """A region without whose choice the kernels of those before it have an order; None if all together have one."""
    picked = [chosen[variable] for variable in problem.regions]
    if problem.pool.chosen(picked) is not None:
        return None
    for number in range(len(picked)):
        if problem.pool.chosen([*picked[: number + 1], *[0] * (len(picked) - number - 1)]) is None:
            return problem.regions[number]
    raise AssertionError("the kernels of the rules have an order")

"""Solves the extraction problem: greedily, then exactly by an integer program."""

from __future__ import annotations

import heapq

import highspy
import numpy as np

from smartmem_rules import linear_programs
from smartmem_rules.extraction.problem import (
    Choice,
    Infeasible,
    Problem,
    components,
    post_order,
    selected_order,
    selection_cost,
)
from smartmem_rules.records import dataclass


@dataclass(frozen=True)
class Solution:
    """A choice for every needed class, how it was found and what is known of the optimum."""

    selection: dict[int, Choice]
    status: str
    cost: float
    bound: float


def solve(problem: Problem, seconds: float) -> Solution:
    """The cheapest selection, or the best one found in the given time; the problem must be pruned."""
    start = greedy(problem)
    cost = selection_cost(problem, start)
    if all(len(choices) == 1 for choices in problem.choices.values()):
        return Solution(start, "optimal", cost, cost)
    return _Program(problem).run(start, cost, seconds)


def greedy(problem: Problem) -> dict[int, Choice]:
    """A good selection: in each class the choice whose required classes cost least together, each once."""
    own = {number: min(c.cost for c in choices) for number, choices in problem.choices.items()}
    order = post_order(problem)
    if not any(len(choices) > 1 for choices in problem.choices.values()):
        return {number: choices[0] for number, choices in problem.choices.items()}
    totals: dict[int, float] = {}

    def total(bits: int) -> float:
        known = totals.get(bits)
        if known is None:
            known, rest = 0.0, bits
            while rest:
                lowest = rest & -rest
                known += own[order[lowest.bit_length() - 1]]
                rest ^= lowest
            totals[bits] = known
        return known

    selection: dict[int, Choice] = {}
    for number, choices in problem.choices.items():
        if len(choices) == 1:
            selection[number] = choices[0]
            continue
        shared = problem.required[number]

        def estimate(choice: Choice, shared: int = shared) -> float:
            needs = 0
            for child in choice.children:
                needs |= problem.required[child]
            return choice.cost + total(needs & ~shared)

        selection[number] = min(choices, key=estimate)
    try:
        selected_order(problem.roots, selection)
    except Infeasible:
        return by_tree_cost(problem)
    return selection


def by_tree_cost(problem: Problem) -> dict[int, Choice]:
    """The cheapest trees (Knuth); never cyclic."""
    users: dict[int, list[tuple[int, Choice]]] = {}
    missing: dict[tuple[int, int], int] = {}
    queue: list[tuple[float, int, int]] = []
    best: dict[int, float] = {}
    selection: dict[int, Choice] = {}
    for number, choices in problem.choices.items():
        for choice in choices:
            needs = set(choice.children)
            missing[number, choice.key] = len(needs)
            for child in needs:
                users.setdefault(child, []).append((number, choice))
            if not needs:
                heapq.heappush(queue, (choice.cost, number, choice.key))
    by_key = {(n, c.key): c for n, choices in problem.choices.items() for c in choices}
    while queue:
        cost, number, key = heapq.heappop(queue)
        if number in best:
            continue
        best[number], selection[number] = cost, by_key[number, key]
        for user, choice in users.get(number, ()):
            missing[user, choice.key] -= 1
            if missing[user, choice.key] == 0 and user not in best:
                total = choice.cost + sum(best[child] for child in choice.children)
                heapq.heappush(queue, (total, user, choice.key))
    return selection


class _Program:
    """Choice and class variables in {0, 1}; level variables only where choices can be cyclic."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.classes = list(problem.choices)
        self.class_column = {number: column for column, number in enumerate(self.classes)}
        self.choice_column: dict[tuple[int, int], int] = {}
        self.costs: list[float] = [0.0] * len(self.classes)
        self.lower: list[float] = [0.0] * len(self.classes)
        self.upper: list[float] = [1.0] * len(self.classes)
        self.level: dict[int, int] = {}
        self.rows: list[tuple[float, float, dict[int, float]]] = []
        self._variables()
        self._constraints()

    def _column(self, cost: float, upper: float) -> int:
        self.costs.append(cost)
        self.lower.append(0.0)
        self.upper.append(upper)
        return len(self.costs) - 1

    def _variables(self) -> None:
        for root in self.problem.roots:
            self.lower[self.class_column[root]] = 1.0
        for number, choices in self.problem.choices.items():
            for choice in choices:
                self.choice_column[number, choice.key] = self._column(choice.cost, 1.0)
        self.integers = len(self.costs)

    def _constraints(self) -> None:
        for number, choices in self.problem.choices.items():
            own = self.class_column[number]
            row = {self.choice_column[number, c.key]: 1.0 for c in choices}
            self.rows.append((0.0, 0.0, {**row, own: -1.0}))
            readers: dict[int, list[int]] = {}
            for choice in choices:
                for child in set(choice.children):
                    readers.setdefault(child, []).append(self.choice_column[number, choice.key])
            for child, columns in readers.items():
                # one row for all choices that read the child: a far tighter relaxation than one each
                row = dict.fromkeys(columns, 1.0)
                self.rows.append((-np.inf, 0.0, {**row, self.class_column[child]: -1.0}))
        for members in components(self.problem):
            self._levels(members)

    def _levels(self, members: list[int]) -> None:
        count = len(members)
        inside = set(members)
        for number in members:
            self.level[number] = self._column(0.0, float(count - 1))
        for number in members:
            for choice in self.problem.choices[number]:
                chosen = self.choice_column[number, choice.key]
                for child in inside.intersection(choice.children):
                    # level(class) >= level(child) + 1 if the choice is taken
                    row = {self.level[number]: 1.0, self.level[child]: -1.0, chosen: -float(count)}
                    self.rows.append((1.0 - count, np.inf, row))

    def run(self, start: dict[int, Choice], start_cost: float, seconds: float) -> Solution:
        solver = linear_programs.solver(seconds, 1e-6)
        solver.passModel(self._model())
        solver.setSolution(self._start(start))
        solver.run()
        status = solver.getModelStatus()
        info = solver.getInfo()
        values = solver.getSolution().col_value
        optimal = status == highspy.HighsModelStatus.kOptimal
        bound = float(info.mip_dual_bound)
        if not np.isfinite(bound) or bound < 0:
            bound = 0.0
        found = self._read(values) if len(values) == len(self.costs) else None
        if found is None or selection_cost(self.problem, found) > start_cost:
            return Solution(start, "optimal" if optimal else "feasible", start_cost, start_cost if optimal else bound)
        cost = selection_cost(self.problem, found)
        return Solution(found, "optimal" if optimal else "feasible", cost, min(bound, cost))

    def _model(self) -> highspy.HighsLp:
        model = highspy.HighsLp()
        model.num_col_ = len(self.costs)
        model.num_row_ = len(self.rows)
        model.col_cost_ = np.array(self.costs)
        model.col_lower_ = np.array(self.lower)
        model.col_upper_ = np.array(self.upper)
        model.row_lower_ = np.array([row[0] for row in self.rows])
        model.row_upper_ = np.array([row[1] for row in self.rows])
        starts = np.cumsum([0, *(len(row[2]) for row in self.rows)])
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = starts
        model.a_matrix_.index_ = np.array([column for row in self.rows for column in row[2]])
        model.a_matrix_.value_ = np.array([value for row in self.rows for value in row[2].values()])
        kinds = [highspy.HighsVarType.kInteger] * self.integers
        kinds += [highspy.HighsVarType.kContinuous] * (len(self.costs) - self.integers)
        model.integrality_ = kinds
        return model

    def _start(self, selection: dict[int, Choice]) -> highspy.HighsSolution:
        values = [0.0] * len(self.costs)
        order = selected_order(self.problem.roots, selection)
        for number in order:
            values[self.class_column[number]] = 1.0
            values[self.choice_column[number, selection[number].key]] = 1.0
        for members in components(self.problem):
            inside = set(members)
            for level, number in enumerate(n for n in order if n in inside):
                values[self.level[number]] = float(level)
        solution = highspy.HighsSolution()
        solution.col_value = values
        return solution

    def _read(self, values: list[float]) -> dict[int, Choice] | None:
        """The selection of a solver's solution, None where rounding broke it."""
        selection = {}
        for number, choices in self.problem.choices.items():
            selection[number] = max(choices, key=lambda c: values[self.choice_column[number, c.key]])
        try:
            selected_order(self.problem.roots, selection)
        except Infeasible:
            return None
        return selection

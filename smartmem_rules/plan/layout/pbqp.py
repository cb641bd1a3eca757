"""Partitioned boolean quadratic programming: one state for each variable, at the least cost of states and pairs.

Things with at most two neighbours are taken out one after the other (each remembers its best answer to its
neighbours' states), as in the reductions of partitioned Boolean quadratic programs; what is left is an integer program
(HiGHS), whose bound says how far the choice can be from the best one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import highspy
import numpy as np

from smartmem_rules import linear_programs
from smartmem_rules.records import dataclass

Array = np.ndarray[Any, np.dtype[np.float64]]
Variable = tuple[str, str]
"""What the variables are called."""
Chosen = dict[Variable, int]


@dataclass(frozen=True)
class Solution:
    """A state for each variable, whether it is proved best, its cost, and what no choice costs less than."""

    chosen: Chosen
    optimal: bool
    cost: float
    bound: float


@dataclass
class Pbqp:
    """Costs of states, and of pairs of states; `inf` for what cannot be.

    Attributes:
        single: for each variable the costs of its states.
        pairs: for two variables the costs by their states.
    """

    constant: float = 0.0
    single: dict[Variable, Array] = field(default_factory=dict)
    pairs: dict[tuple[Variable, Variable], Array] = field(default_factory=dict)

    def add(self, variable: Variable, costs: Array) -> None:
        """Costs of a variable's states, on top of those that it has."""
        self.single[variable] = self.single[variable] + costs if variable in self.single else np.asarray(costs, float)

    def add_pair(self, first: Variable, second: Variable, costs: Array) -> None:
        """Costs of two variables' states, those of the first in the rows."""
        if (second, first) in self.pairs:
            first, second, costs = second, first, costs.T
        known = self.pairs.get((first, second))
        self.pairs[first, second] = np.asarray(costs, float) if known is None else known + costs

    def cost(self, chosen: Mapping[Variable, int]) -> float:
        """What a choice costs."""
        alone = sum(float(costs[chosen[t]]) for t, costs in self.single.items())
        tied = sum(float(costs[chosen[a], chosen[b]]) for (a, b), costs in self.pairs.items())
        return self.constant + alone + tied

    def marginals(self, chosen: Mapping[Variable, int]) -> dict[Variable, Array]:
        """What each state of each variable costs, the others' choices given."""
        found = {variable: costs.copy() for variable, costs in self.single.items()}
        for (a, b), table in self.pairs.items():
            found[a] += table[:, chosen[b]]
            found[b] += table[chosen[a], :]
        return found

    def improved(self, chosen: Mapping[Variable, int], sweeps: int) -> Chosen:
        """Local search: each variable takes the state that is cheapest given its neighbours', several times over."""
        found, touching = dict(chosen), self._touching()
        for _ in range(sweeps):
            changed = False
            for variable, costs in self.single.items():
                total = costs.copy()
                for other, table in touching[variable]:
                    total += table[:, found[other]]
                best = int(np.argmin(total))
                if total[best] < total[found[variable]]:
                    found[variable], changed = best, True
            if not changed:
                break
        return found

    def _touching(self) -> dict[Variable, list[tuple[Variable, Array]]]:
        found: dict[Variable, list[tuple[Variable, Array]]] = {t: [] for t in self.single}
        for (a, b), table in self.pairs.items():
            found[a].append((b, table))
            found[b].append((a, table.T))
        return found

    def solve(self, start: Mapping[Variable, int], seconds: float) -> Solution:
        """The cheapest choice; where the time is over before, one no worse than `start`, with a bound."""
        core, answers = self._reduced()
        chosen: Chosen = {}
        optimal, bound = True, core.constant
        if core.single:
            chosen, optimal, low = _Program(core).run(start, seconds)
            bound += low
        for variable, answer in reversed(answers):
            chosen[variable] = answer(chosen)
        cost = self.cost(chosen)
        first = self.cost(start)
        if first < cost:
            chosen, cost = dict(start), first
        return Solution(chosen, optimal, cost, cost if optimal else min(cost, bound))

    def _reduced(self) -> tuple[Pbqp, list[tuple[Variable, Callable[[Chosen], int]]]]:
        """The problem without variables of at most two neighbours, and their answers to what the others choose."""
        core = Pbqp(self.constant, dict(self.single))
        tables: dict[Variable, dict[Variable, Array]] = {t: {} for t in self.single}

        def tie(a: Variable, b: Variable, table: Array) -> None:
            known = tables[a].get(b)
            tables[a][b] = table if known is None else known + table
            tables[b][a] = tables[a][b].T

        for (a, b), table in self.pairs.items():
            tie(a, b, table)
        answers: list[tuple[Variable, Callable[[Chosen], int]]] = []
        waiting = list(core.single)
        while waiting:
            variable = waiting.pop()
            if variable not in core.single or len(tables[variable]) > 2:
                continue
            costs = core.single.pop(variable)
            around = tables.pop(variable)
            for other in around:
                del tables[other][variable]
            if not around:
                core.constant += float(costs.min())
                best = int(np.argmin(costs))
                answers.append((variable, lambda chosen, best=best: best))  # type: ignore[misc]
                continue
            if len(around) == 1:
                ((other, table),) = around.items()
                total = costs[:, None] + table
                core.single[other] = core.single[other] + total.min(axis=0)
                places = total.argmin(axis=0)
                answers.append((variable, lambda chosen, other=other, places=places: int(places[chosen[other]])))  # type: ignore[misc]
            else:
                (a, left), (b, right) = around.items()
                both = costs[:, None, None] + left[:, :, None] + right[:, None, :]
                tie(a, b, both.min(axis=0))
                where = both.argmin(axis=0)
                answers.append((variable, lambda chosen, a=a, b=b, where=where: int(where[chosen[a], chosen[b]])))  # type: ignore[misc]
            waiting.extend(around)
        order = {t: i for i, t in enumerate(core.single)}
        for a, others in tables.items():
            core.pairs.update({(a, b): table for b, table in others.items() if order[a] < order[b]})
        return core, answers


class _Program:
    """One column for each state of a variable and for each pair of states that can be."""

    def __init__(self, problem: Pbqp) -> None:
        self.problem = problem
        self.columns: dict[tuple[Any, ...], int] = {}
        self.costs: list[float] = []
        self.rows: list[tuple[float, dict[int, float]]] = []
        for variable, costs in problem.single.items():
            own = {self._column((variable, s), c): 1.0 for s, c in enumerate(costs) if np.isfinite(c)}
            self.rows.append((1.0, own))
        self.integers = len(self.costs)
        for (first, second), table in problem.pairs.items():
            self._tie(first, second, table)

    def _column(self, key: tuple[Any, ...], cost: float) -> int:
        self.columns[key] = len(self.costs)
        self.costs.append(float(cost))
        return self.columns[key]

    def _tie(self, first: Variable, second: Variable, table: Array) -> None:
        places = [
            (a, b)
            for a, b in itertools.product(*map(range, table.shape))
            if np.isfinite(table[a, b]) and (first, a) in self.columns and (second, b) in self.columns
        ]
        both = {(a, b): self._column((first, a, second, b), table[a, b]) for a, b in places}
        for variable, side in ((first, 0), (second, 1)):
            for state in range(table.shape[side]):
                if (variable, state) in self.columns:
                    own = {column: 1.0 for place, column in both.items() if place[side] == state}
                    self.rows.append((0.0, {**own, self.columns[variable, state]: -1.0}))

    def run(self, start: Mapping[Variable, int], seconds: float) -> tuple[Chosen, bool, float]:
        """The states, whether they are proved best, and the bound."""
        solver = linear_programs.solver(seconds, 1e-9)
        solver.passModel(self._model())
        solution = highspy.HighsSolution()
        solution.col_value = self._values(start)
        solver.setSolution(solution)
        solver.run()
        optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        values = solver.getSolution().col_value
        bound = float(solver.getInfo().mip_dual_bound)
        low = bound if np.isfinite(bound) else 0.0
        if len(values) != len(self.costs):
            return {t: start[t] for t in self.problem.single}, False, low
        found: Chosen = {}
        for variable, costs in self.problem.single.items():
            states = [s for s in range(len(costs)) if (variable, s) in self.columns]
            found[variable] = max(states, key=lambda s: values[self.columns[variable, s]])
        return found, optimal, low

    def _values(self, chosen: Mapping[Variable, int]) -> list[float]:
        values = [0.0] * len(self.costs)
        for key, column in self.columns.items():
            values[column] = float(all(chosen[t] == s for t, s in zip(key[::2], key[1::2], strict=True)))
        return values

    def _model(self) -> highspy.HighsLp:
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self.costs), len(self.rows)
        model.col_cost_ = np.array(self.costs)
        model.col_lower_ = np.zeros(len(self.costs))
        model.col_upper_ = np.ones(len(self.costs))
        model.row_lower_ = model.row_upper_ = np.array([row[0] for row in self.rows])
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.cumsum([0, *(len(row[1]) for row in self.rows)])
        model.a_matrix_.index_ = np.array([column for row in self.rows for column in row[1]])
        model.a_matrix_.value_ = np.array([value for row in self.rows for value in row[1].values()])
        kinds = [highspy.HighsVarType.kInteger] * self.integers
        model.integrality_ = kinds + [highspy.HighsVarType.kContinuous] * (len(self.costs) - self.integers)
        return model

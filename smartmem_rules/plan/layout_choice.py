"""The contiguous axis of every stored tensor, chosen for the whole graph at once.

A kernel whose vectors run along its output ties the axes of two tensors together; all other costs belong to one tensor.
Untied tensors take their cheapest axis, the rest is an integer program over pairs (HiGHS), whose bound says how far the
choice can be from the best one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import highspy
import numpy as np

Axes = Mapping[str, tuple[int, ...]]
"""The axes that each free tensor may have innermost, the one that it keeps where all cost the same first."""

TIE = 1e-3
"""Cost of leaving the first axis: less than one element out of place."""


@dataclass(frozen=True)
class LayoutChoice:
    """The innermost axes, and what is known of the optimum.

    Attributes:
        status: optimal | feasible (the time was over) | local (chosen edge by edge).
        cost, bound: in elements that are read or written out of place; no choice costs less than the bound.
        local_cost: of the choice edge by edge.
    """

    innermost: dict[str, int]
    status: str
    cost: float
    bound: float
    local_cost: float
    seconds: float = 0.0

    @property
    def gap(self) -> float:
        return 0.0 if self.cost <= 0 else max(0.0, self.cost - self.bound) / self.cost

    def data(self) -> dict[str, object]:
        """What the plan's report says of it."""
        return {
            "status": self.status,
            "gap": self.gap,
            "cost": self.cost,
            "bound": self.bound,
            "local_cost": self.local_cost,
            "tensors": len(self.innermost),
            "seconds": self.seconds,
        }


@dataclass
class LayoutProblem:
    """Costs of single tensors, and of pairs of them, by their innermost axes."""

    axes: Axes
    constant: float = 0.0
    single: dict[tuple[str, int], float] = field(default_factory=dict)
    pairs: dict[tuple[str, str], dict[tuple[int, int], float]] = field(default_factory=dict)

    def add(self, tensor: str, axis: int, cost: float) -> None:
        self.single[tensor, axis] = self.single.get((tensor, axis), 0.0) + cost

    def add_pair(self, first: str, second: str, axes: tuple[int, int], cost: float) -> None:
        table = self.pairs.setdefault((first, second), {})
        table[axes] = table.get(axes, 0.0) + cost

    def cost(self, chosen: Mapping[str, int]) -> float:
        """The cost of a choice of axes."""
        alone = sum(self.single.get((t, chosen[t]), 0.0) for t in self.axes)
        tied = sum(table.get((chosen[a], chosen[b]), 0.0) for (a, b), table in self.pairs.items())
        return self.constant + alone + tied

    def solve(self, start: Mapping[str, int], seconds: float) -> LayoutChoice:
        """The cheapest choice; within the time, one no worse than `start`, with a bound."""
        begin = time.perf_counter()
        tied = {t for pair, table in self.pairs.items() if len(set(table.values())) > 1 or len(table) > 1 for t in pair}
        chosen = {t: min(axes, key=lambda a, t=t: self._alone(t, a)) for t, axes in self.axes.items()}
        local = self.cost(start)
        if not tied:
            cost = self.cost(chosen)
            return LayoutChoice(chosen, "optimal", cost, cost, local, time.perf_counter() - begin)
        program = _Program(self, tied)
        values, optimal, bound = program.run(start, seconds)
        free = sum(self.single.get((t, chosen[t]), 0.0) for t in self.axes if t not in tied)
        chosen.update(values)
        cost = self.cost(chosen)
        if cost > local:
            chosen, cost = dict(start), local
        # the program counts ties, which are no costs
        low = cost if optimal else min(cost, max(0.0, self.constant + free + bound - TIE * len(tied)))
        status = "optimal" if optimal else "feasible"
        return LayoutChoice(chosen, status, cost, low, local, time.perf_counter() - begin)

    def _alone(self, tensor: str, axis: int) -> float:
        return self.single.get((tensor, axis), 0.0) + (TIE if axis != self.axes[tensor][0] else 0.0)


class _Program:
    """One column for each axis of a tied tensor and for each pair of axes of a tie."""

    def __init__(self, problem: LayoutProblem, tied: set[str]) -> None:
        self.problem = problem
        self.columns: dict[object, int] = {}
        self.costs: list[float] = []
        self.rows: list[tuple[float, dict[int, float]]] = []
        self.tied = [t for t in problem.axes if t in tied]
        for tensor in self.tied:
            own = {self._column((tensor, a), problem._alone(tensor, a)): 1.0 for a in problem.axes[tensor]}
            self.rows.append((1.0, own))
        self.integers = len(self.costs)
        for (first, second), table in problem.pairs.items():
            if first in tied and second in tied:
                self._tie(first, second, table)

    def _column(self, key: object, cost: float) -> int:
        self.columns[key] = len(self.costs)
        self.costs.append(cost)
        return self.columns[key]

    def _tie(self, first: str, second: str, table: Mapping[tuple[int, int], float]) -> None:
        axes = self.problem.axes
        both = {
            (a, b): self._column((first, second, a, b), table.get((a, b), 0.0))
            for a in axes[first]
            for b in axes[second]
        }
        for a in axes[first]:
            own = {both[a, b]: 1.0 for b in axes[second]}
            self.rows.append((0.0, {**own, self.columns[first, a]: -1.0}))
        for b in axes[second]:
            own = {both[a, b]: 1.0 for a in axes[first]}
            self.rows.append((0.0, {**own, self.columns[second, b]: -1.0}))

    def run(self, start: Mapping[str, int], seconds: float) -> tuple[dict[str, int], bool, float]:
        """The axes, whether they are proved best, and the bound."""
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("time_limit", seconds)
        solver.setOptionValue("mip_rel_gap", 1e-9)
        solver.passModel(self._model())
        solution = highspy.HighsSolution()
        solution.col_value = self._values(start)
        solver.setSolution(solution)
        solver.run()
        optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        values = solver.getSolution().col_value
        bound = float(solver.getInfo().mip_dual_bound)
        if len(values) != len(self.costs):
            return {t: start[t] for t in self.tied}, False, bound if np.isfinite(bound) else 0.0
        found = {t: max(self.problem.axes[t], key=lambda a, t=t: values[self.columns[t, a]]) for t in self.tied}
        return found, optimal, bound if np.isfinite(bound) else 0.0

    def _values(self, chosen: Mapping[str, int]) -> list[float]:
        values = [0.0] * len(self.costs)
        for key, column in self.columns.items():
            assert isinstance(key, tuple)
            names, axes = key[: len(key) // 2], key[len(key) // 2 :]
            values[column] = float(all(chosen[name] == axis for name, axis in zip(names, axes, strict=True)))
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

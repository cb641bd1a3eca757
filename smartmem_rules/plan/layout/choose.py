"""Chooses the layout of each stored tensor by the reduction dimensions of its readers (SmartMem, section 3.2.2).

Every tensor has candidates (`candidates`), and every use of it costs a time in each of them (`costs`). A kernel whose
vectors run along its first output ties the layouts of its operands to that one; all other costs belong to one tensor.
The cheapest choice for all tensors together is a PBQP, which `model` poses and `pbqp` solves.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np

from smartmem_rules.plan.kernel.model import Kernel, Layout, Stored
from smartmem_rules.plan.kernel.packing import pack
from smartmem_rules.plan.layout.candidates import LayoutSpace
from smartmem_rules.plan.layout.copies import COPY, copy_kernel, reading, writing_copy
from smartmem_rules.plan.layout.model import LayoutProblem
from smartmem_rules.plan.layout.pbqp import Chosen, Solution
from smartmem_rules.records import dataclass
from smartmem_rules.statistics import LayoutStatistics, TensorLayout, relative_gap


@dataclass(frozen=True, kw_only=True)
class LayoutChoice:
    """What was chosen, and what is known of the optimum.

    Attributes:
        status: optimal | feasible (the time was over) | local (chosen edge by edge).
        cost, bound: modelled microseconds of all reads and writes; no choice costs less than the bound.
        local_cost: of the choice edge by edge.
        layouts: of the tensors that were free to choose.
        copies: how many tensors have a second layout.
        copiers: kernels that only make such a layout.
        kernels: all others by name, over the tensors that were made of those kept in several layouts.
        described: for each tensor its layout and what its candidates would have cost.
    """

    status: str
    cost: float
    bound: float
    local_cost: float
    seconds: float
    layouts: Mapping[str, Layout]
    copies: int
    copiers: tuple[Kernel, ...]
    kernels: Mapping[str, Kernel] = field(repr=False)
    described: Mapping[str, TensorLayout] = field(repr=False)

    @property
    def gap(self) -> float:
        return relative_gap(self.cost, self.bound)

    @property
    def statistics(self) -> LayoutStatistics:
        """What the plan's report says of it."""
        images = sum(layout.memory == "image" for layout in self.layouts.values())
        return LayoutStatistics(
            status=self.status,
            gap=self.gap,
            cost=self.cost,
            bound=self.bound,
            local_cost=self.local_cost,
            tensors=len(self.layouts),
            images=images,
            buffers=len(self.layouts) - images,
            copies=self.copies,
            copy_kernels=len(self.copiers),
            seconds=self.seconds,
        )


@dataclass(frozen=True)
class LayoutAnswer:
    """The layouts of certain kernels' tensors, before they are given to them.

    Attributes:
        local: the choice edge by edge.
        solution: the choice for all tensors together.
    """

    problem: LayoutProblem
    local: Chosen
    solution: Solution
    seconds: float

    @property
    def time(self) -> float:
        """Nanoseconds of all uses in the choice for all tensors together."""
        return self.problem.time(self.solution.chosen)

    @property
    def bound(self) -> float:
        """Nanoseconds below which no choice is."""
        if self.solution.optimal:
            return self.time
        return max(0.0, min(self.time, self.solution.bound - self.problem.weight(self.solution.chosen)))


def solve_layouts(space: LayoutSpace, exact: bool = True) -> LayoutAnswer:
    """The cheapest layouts for all tensors of a space together, and those chosen edge by edge.

    Args:
        exact: whether the former will be taken: then tensors may have second layouts.
    """
    begin = time.perf_counter()
    costs = space.where.costs
    problem = LayoutProblem(space, copies=exact and costs.copies > 0)
    local = problem.numbers(space.by_edge(follow=True))
    solution = problem.pairs.solve(problem.pairs.improved(local, costs.sweeps), costs.solver_seconds)
    return LayoutAnswer(problem, local, solution, time.perf_counter() - begin)


def choose_layouts(
    answer: LayoutAnswer, tensors: dict[str, Stored], constants: Mapping[str, np.ndarray], exact: bool = True
) -> LayoutChoice:
    """Set the layout of every tensor, and say how well they were chosen.

    A tensor that is kept in two layouts becomes two, and kernels read the one that suits them; so does a constant
    that is packed for several kernels in several ways (`LayoutChoice.kernels`).

    Args:
        exact: choose for all tensors together; otherwise edge by edge, the paper's heuristic.
    """
    begin = time.perf_counter()
    problem, space = answer.problem, answer.problem.space
    chosen = answer.solution.chosen if exact else answer.local
    proved = "optimal" if answer.solution.optimal else "feasible"
    described = problem.described(chosen)
    copies = problem.copies(chosen)
    copiers = []
    kernels = {kernel.name: kernel for kernel in space.kernels}
    for copy in copies:
        tensor, layout = copy.node[0], space.places[copy.node].layouts[copy.layout]
        made = _keep_copy(tensors, tensor, layout)
        for reader in copy.readers:
            kernels[reader.name] = reading(kernels[reader.name], {tensor: made.writes[0]})
        if copy.separate_kernel:
            copiers.append(made)
        else:
            writer = space.writers[tensor][0][0].name
            kernels[writer] = writing_copy(kernels[writer], tensor, made.writes[0])
    layouts = {node: space.places[node].layouts[states[chosen[node]][0]] for node, states in problem.states.items()}
    _lay_out(space, layouts, tensors, constants, kernels)
    free = {name: layout for (name, _), layout in layouts.items() if space.places[name, _].alone > 1}
    return LayoutChoice(
        status=proved if exact else "local",
        cost=problem.time(chosen) / 1000,
        bound=answer.bound / 1000,
        local_cost=problem.time(answer.local) / 1000,
        seconds=answer.seconds + time.perf_counter() - begin,
        layouts=free,
        copies=len(copies),
        copiers=tuple(copiers),
        kernels=kernels,
        described=described,
    )


def lay_out_row_major(
    space: LayoutSpace, tensors: dict[str, Stored], constants: Mapping[str, np.ndarray]
) -> dict[str, Kernel]:
    """Set the layout of every tensor to row-major, or to what is nearest to it that its kernel can write.

    Returns:
        the kernels by name, over the tensors that were made of constants packed in several ways.
    """
    chosen = space.by_edge(follow=False)
    layouts = {node: space.places[node].layouts[number] for node, number in chosen.items()}
    kernels = {kernel.name: kernel for kernel in space.kernels}
    _lay_out(space, layouts, tensors, constants, kernels)
    return kernels


def _keep_copy(tensors: dict[str, Stored], tensor: str, layout: Layout) -> Kernel:
    """Add a tensor's second layout; gives the kernel that would make it on its own."""
    stored = tensors[tensor]
    copy = f"{tensor}{COPY}"
    tensors[copy] = replace(stored, name=copy, layout=layout, role="intermediate", shown=None)
    return copy_kernel(stored, copy)


def _lay_out(
    space: LayoutSpace,
    layouts: Mapping[tuple[str, str], Layout],
    tensors: dict[str, Stored],
    constants: Mapping[str, np.ndarray],
    kernels: dict[str, Kernel],
) -> None:
    """Give the tensors their layouts; a constant becomes one tensor for each layout that its readers take.

    Args:
        kernels: by name; those that read such a tensor are replaced.
    """
    versions: dict[str, dict[Layout, str]] = {}
    # what its kernel packs in its own way, with but one candidate, keeps its name
    for (name, reader), layout in sorted(layouts.items(), key=lambda one: len(space.places[one[0]].layouts)):
        own = versions.setdefault(name, {})
        if layout not in own:
            own[layout] = f"{name}@layout{len(own)}" if own else name
            stored = tensors[name]
            if own[layout] == name:
                tensors[name] = replace(stored, layout=layout)
            else:
                packed = pack(constants[name], layout, stored.storage)
                tensors[own[layout]] = replace(stored, name=own[layout], layout=layout, packed=packed)
        if own[layout] != name:
            kernels[reader] = reading(kernels[reader], {name: own[layout]})

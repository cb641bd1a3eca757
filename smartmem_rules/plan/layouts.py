"""Chooses how stored tensors lie in memory, by the reduction dimensions of their readers (SmartMem section 3.2.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from smartmem_rules.language.syntax import Block
from smartmem_rules.plan.accounting import expressions
from smartmem_rules.plan.layout_choice import LayoutChoice, LayoutProblem
from smartmem_rules.plan.model import Kernel, Layout, Store, Stored, row_major
from smartmem_rules.tensor.expr import Expr, Read, Reduce, walk
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, Var, add, scale, variable
from smartmem_rules.tensor.ranges import largest, several


@dataclass(frozen=True)
class LayoutCosts:
    """The weights of a `layout` block."""

    scattered_read: float
    strided_read: float
    scattered_write: float
    sweeps: int
    solver_seconds: float

    @staticmethod
    def of(block: Block) -> LayoutCosts:
        entries = {e.key: float(e.values[0]) for e in block.entries}
        return LayoutCosts(
            entries["scattered_read"],
            entries["strided_read"],
            entries["scattered_write"],
            int(entries["sweeps"]),
            entries.get("solver_seconds", 10.0),
        )


@dataclass(frozen=True)
class ImageLimits:
    width: int
    height: int


def advancing(index: Index) -> Var | None:
    """The variable with which an index moves in steps of one."""
    return next((a for a, c in index.terms if isinstance(a, Var) and c == 1), None)


class LayoutSearch:
    """The innermost axis of every stored tensor, by what the kernels that touch it cost."""

    def __init__(
        self, kernels: list[Kernel], tensors: Mapping[str, Stored], costs: LayoutCosts, fixed: Collection[str] = ()
    ) -> None:
        self.kernels = kernels
        self.fixed = fixed
        self.tensors = tensors
        self.costs = costs
        self.innermost = {n: len(t.type.shape) - 1 for n, t in tensors.items() if t.type.shape}
        self.touching: dict[str, list[Kernel]] = {}
        for kernel in kernels:
            for name in dict.fromkeys(kernel.reads + kernel.writes):
                self.touching.setdefault(name, []).append(kernel)

    def run(self, exact: bool) -> LayoutChoice:
        """The innermost axis of every tensor that is free to choose one; `exact`: for all of them together."""
        free = [n for n, t in self.tensors.items() if len(t.type.shape) > 1 and not stays_row_major(t, self.fixed)]
        first = {name: self._axes(name) for name in free}
        self._search(free)
        local = {name: self.innermost[name] for name in free}
        choice = self._problem(first).solve(local, self.costs.solver_seconds)
        return choice if exact else replace(choice, innermost=local, status="local", cost=choice.local_cost)

    def _axes(self, name: str) -> tuple[int, ...]:
        shape, kept = self.tensors[name].type.shape, self.innermost[name]
        return (kept, *(a for a, extent in enumerate(shape) if several(extent) and a != kept))

    def _search(self, free: list[str]) -> None:
        """Local search: each tensor takes the axis that is cheapest given its neighbours' choices."""
        for _ in range(self.costs.sweeps):
            changed = False
            for name in free:
                best = self._best(name)
                changed |= best != self.innermost[name]
                self.innermost[name] = best
            if not changed:
                break

    def _problem(self, axes: dict[str, tuple[int, ...]]) -> LayoutProblem:
        """The same costs, taken apart by the tensors on whose axes they depend."""
        problem = LayoutProblem(axes)
        for kernel in self.kernels:
            # vectors of a kernel without a contraction or rows run along its first output
            leader = None if kernel.contraction is not None or kernel.form == "reduction" else kernel.stores[0].tensor
            leads = (axes.get(leader) if leader is not None else None) or (None,)
            for name in dict.fromkeys(kernel.reads + kernel.writes):
                for lead in leads:
                    if lead is not None and leader is not None:
                        self.innermost[leader] = lead
                    self._add_costs(problem, kernel, name, leader if lead is not None else None)
            if leader is not None and leads[0] is not None:
                self.innermost[leader] = leads[0]
        return problem

    def _add_costs(self, problem: LayoutProblem, kernel: Kernel, name: str, leader: str | None) -> None:
        """The costs of one tensor in a kernel for each of its axes, given the leader's."""
        if name not in problem.axes or name == leader:
            cost = self._kernel_cost(kernel, name)
            if leader is not None:
                problem.add(leader, self.innermost[leader], cost)
            elif name in problem.axes:
                self._add_each(problem, kernel, name, None)
            else:
                problem.constant += cost
            return
        self._add_each(problem, kernel, name, leader)

    def _add_each(self, problem: LayoutProblem, kernel: Kernel, name: str, leader: str | None) -> None:
        current = self.innermost[name]
        for axis in problem.axes[name]:
            self.innermost[name] = axis
            cost = self._kernel_cost(kernel, name)
            if leader is None:
                problem.add(name, axis, cost)
            else:
                problem.add_pair(leader, name, (self.innermost[leader], axis), cost)
        self.innermost[name] = current

    def _best(self, name: str) -> int:
        shape = self.tensors[name].type.shape
        current = self.innermost[name]
        costs: list[tuple[float, int, int]] = []
        for axis, extent in enumerate(shape):
            if several(extent) or axis == current:
                self.innermost[name] = axis
                cost = sum(self._kernel_cost(k) for k in self.touching.get(name, ()))
                costs.append((cost, axis != current, axis))
        self.innermost[name] = current
        return min(costs)[2]

    def _kernel_cost(self, kernel: Kernel, only: str | None = None) -> float:
        """What the kernel's reads and writes cost: all of them, or those of one tensor."""
        cost = 0.0
        lanes = self._lanes(kernel)
        for store in kernel.stores:
            weight = _count(kernel.axes) * _count(store.local)
            if only is not None and store.tensor != only:
                continue
            if self._moving(store.tensor, store.indices) not in lanes:
                cost += weight * self.costs.scattered_write
        for expr, vectors in self._reads(kernel, lanes):
            for read, loops in _reads_with_loops(expr):
                if read.tensor in self.innermost and only in (None, read.tensor):
                    cost += self._read_cost(read, vectors, loops)
        return cost

    def _read_cost(self, read: Read, vectors: set[Var], loops: set[Var]) -> float:
        used = {v for i in read.indices for v in i.variables}
        weight = _count(used)
        moving = self._moving(read.tensor, read.indices)
        if moving in vectors or not used & vectors:
            return 0.0
        return weight * (self.costs.strided_read if moving in loops else self.costs.scattered_read)

    def _moving(self, tensor: str, indices: tuple[Index, ...]) -> Var | None:
        return advancing(indices[self.innermost[tensor]]) if tensor in self.innermost else None

    def _lanes(self, kernel: Kernel) -> set[Var]:
        """The variables over which the kernel can write vectors."""
        if kernel.contraction is not None and kernel.stages:
            return {v for s in kernel.stores for v in s.local}
        if kernel.contraction is not None:
            return {kernel.contraction.n, *(part.n for part in kernel.parts)}
        if kernel.form == "reduction":
            return {v for s in kernel.stores for v in s.local}
        first = kernel.stores[0]
        lane = self._moving(first.tensor, first.indices)
        return {lane} if lane is not None else set()

    def _reads(self, kernel: Kernel, lanes: set[Var]) -> Iterable[tuple[Expr, set[Var]]]:
        """The kernel's expressions, each with the variables over which it would read vectors."""
        c = kernel.contraction
        if c is not None:
            for stage in c.stages:
                yield stage.body, set(stage.axes) or _reduced(stage.body)
            yield c.a, set(c.k)
            yield c.b, {c.n}
            for part in kernel.parts:
                yield part.b, {part.n}
            for stage in kernel.stages:
                yield stage.body, set(stage.axes) or _reduced(stage.body)
            for store in kernel.stores:
                yield store.value, lanes
            return
        if kernel.form != "reduction":
            for expr in expressions(kernel):
                yield expr, lanes
            return
        for stage in kernel.stages:
            yield stage.body, set(stage.axes) or lanes | _reduced(stage.body)
        for store in kernel.stores:
            yield store.value, lanes


def _reduced(expr: Expr) -> set[Var]:
    return {v for node in walk(expr) if isinstance(node, Reduce) for v in node.variables}


def _reads_with_loops(expr: Expr) -> list[tuple[Read, set[Var]]]:
    loops = _reduced(expr)
    return [(node, loops) for node in walk(expr) if isinstance(node, Read)]


def _count(variables: Iterable[Var]) -> int:
    count = 1
    for var in variables:
        count *= largest(var.extent)
    return count


def stays_row_major(stored: Stored, fixed: Collection[str]) -> bool:
    """Whether the host reads or writes the tensor's memory: a constant may be an output of the model, too."""
    return stored.role in ("input", "output") or stored.name in fixed


def with_innermost(rank: int, axis: int) -> tuple[int, ...]:
    return (*(a for a in range(rank) if a != axis), axis)


def image_layout(stored: Stored, axis: int | None, limits: ImageLimits) -> Layout | None:
    """A texture layout whose lanes run along the axis (None: one element a texel) and that fits the limits."""
    shape = stored.type.shape
    order = with_innermost(len(shape), axis) if axis is not None else (*range(len(shape)), -1)
    for rows in range(len(order) - 1, -1, -1):
        layout = Layout("image", order, rows)
        width, height = map(largest, layout.image_size(shape))
        if 0 < width <= limits.width and 0 < height <= limits.height:
            return layout
    return None


def writable_lane(kernel: Kernel, store: Store, axis: int) -> bool:
    """Whether the kernel computes whole texels when the tensor's lanes run along the axis."""
    index = store.indices[axis]
    var = advancing(index)
    if var is None or is_symbolic(var.extent):
        return False
    rest = add(index, scale(variable(var), -1))
    if var in rest.variables or any(c % 4 for _, c in rest.terms) or rest.constant % 4:
        return False
    if any(var in other.variables for a, other in enumerate(store.indices) if a != axis):
        return False
    if rest.terms and var.extent % 4:
        return False
    if kernel.contraction is not None:
        return var in (kernel.contraction.n, *(part.n for part in kernel.parts), *store.local)
    if kernel.form == "reduction":
        return index == variable(var) and (var in store.local or not any(s.local for s in kernel.stores))
    return var in kernel.axes


def choose_layouts(
    kernels: list[Kernel],
    tensors: dict[str, Stored],
    search: bool,
    costs: LayoutCosts,
    limits: ImageLimits | None,
    fixed: Collection[str] = (),
    exact: bool = True,
) -> LayoutChoice | None:
    """Set the layout of every tensor; gives how well the contiguous axes were chosen, None if they were not.

    Args:
        search: choose the contiguous axis by the readers; otherwise tensors stay row-major.
        limits: where given, floating-point tensors go to images that fit these limits.
        fixed: tensors that stay row-major in any case.
        exact: choose for all tensors together; otherwise edge by edge, the paper's heuristic.
    """
    choice = LayoutSearch(kernels, tensors, costs, fixed).run(exact) if search else None
    chosen = {} if choice is None else choice.innermost
    writers = {s.tensor: (k, s) for k in kernels for s in k.stores}
    lanes: dict[str, Var | None] = {}
    for name, stored in tensors.items():
        rank = len(stored.type.shape)
        if stays_row_major(stored, fixed) or rank == 0:
            stored.layout = row_major(rank)
            continue
        axis = chosen.get(name, rank - 1)
        stored.layout = Layout("buffer", with_innermost(rank, axis))
        if limits is not None and stored.type.dtype.startswith("float") and stored.type.dtype != "float64":
            layout = _image(stored, axis, writers.get(name), limits, lanes)
            stored.layout = layout or stored.layout
    return choice


def _image(
    stored: Stored,
    axis: int,
    writer: tuple[Kernel, Store] | None,
    limits: ImageLimits,
    lanes: dict[str, Var | None],
) -> Layout | None:
    if writer is None:
        return image_layout(stored, axis, limits)
    kernel, store = writer
    rank = len(stored.type.shape)
    for candidate in (axis, *(a for a in reversed(range(rank)) if a != axis)):
        if not writable_lane(kernel, store, candidate):
            continue
        lane = advancing(store.indices[candidate])
        local = kernel.form == "reduction" and lane in store.local
        if kernel.contraction is None and not local and lanes.setdefault(kernel.name, lane) != lane:
            continue
        return image_layout(stored, candidate, limits)
    if kernel.form == "pointwise" and lanes.setdefault(kernel.name, None) is not None:
        return None
    return image_layout(stored, None, limits)

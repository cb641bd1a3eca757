"""Whether kernels compute what the graph says: their expressions against the definitions, opened one by one.

A kernel's expressions read tensors in memory; those of the graph read any tensor.  Both are compared from the result
downwards, and where the graph reads a tensor that the kernel does not read, its definition is put in its place.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from smartmem_rules.certificate.codec import Loops, read_expression, read_index
from smartmem_rules.certificate.graphs import MadeGraph
from smartmem_rules.certificate.indices import equal_conditions, equal_indices
from smartmem_rules.certificate.terms import Refused
from smartmem_rules.tensor.expr import (
    Apply,
    Const,
    Equation,
    Expr,
    FreshNames,
    FromIndex,
    Read,
    Reduce,
    Select,
    inline,
    own_indices,
    select,
    substitute_variables,
    tensors_read,
    walk,
)
from smartmem_rules.tensor.index import Index, Var, variable
from smartmem_rules.tensor.printer import element_text, expression_text
from smartmem_rules.tensor.views import IndexMap, compose, identity, keeps_order, map_of_equation

_COMMUTING = frozenset({"add", "mul", "max", "min"})
_ORDERS = 24
"""Orders of the variables of one reduction that are tried."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What a kernel keeps to itself, at the values of its axes."""

    axes: tuple[Var, ...]
    value: Expr


@dataclass(frozen=True, kw_only=True)
class Store:
    """tensor[indices] = value."""

    tensor: str
    indices: tuple[Index, ...]
    value: Expr


@dataclass(frozen=True, kw_only=True)
class KernelClaim:
    """A kernel as a certificate describes it."""

    name: str
    stages: Mapping[str, Stage]
    stores: tuple[Store, ...]


def read_kernel(data: Mapping[str, Any]) -> KernelClaim:
    """A kernel of a certificate.

    Raises:
        Refused: a stage is there twice, or the text of a store says something else than the store.
    """
    loops: Loops = {name: Var(name, extent) for name, extent in data["loops"].items()}
    stages: dict[str, Stage] = {}
    for one in data["stages"]:
        value = read_expression(one["value"], loops)
        later = {n.tensor for n in walk(value) if isinstance(n, Read)} & {s["name"] for s in data["stages"]}
        if one["name"] in stages or not later <= stages.keys():
            raise Refused(f"the kernel {data['name']} reads {one['name']} before it is there, or makes it twice")
        stages[one["name"]] = Stage(axes=tuple(loops[name] for name in one["axes"]), value=value)
    stores = []
    for one in data["stores"]:
        indices = tuple(read_index(index, loops) for index in one["indices"])
        store = Store(tensor=one["tensor"], indices=indices, value=read_expression(one["value"], loops))
        if one["text"] != store_text(store):
            raise Refused(f"the kernel {data['name']} stores {store_text(store)}, not {one['text']}")
        stores.append(store)
    return KernelClaim(name=data["name"], stages=stages, stores=tuple(stores))


def store_text(store: Store) -> str:
    """What a store does, in one line."""
    return f"{element_text(store.tensor, store.indices)} = {expression_text(store.value)}"


class KernelCheck:
    """Kernels in their order, against the graph that was made.

    Args:
        stand_for: tensors that are kept under another name: a copy in a second layout, or an output that is another
            tensor in another shape.
    """

    def __init__(self, made: MadeGraph, stand_for: Mapping[str, str]) -> None:
        self.made = made
        self.stand_for = stand_for
        self.names = FreshNames("@")
        self.ready: set[str] = {*made.model.graph.inputs, *made.constants}
        self.opened: set[str] = set()
        self.stages: Mapping[str, Stage] = {}
        self._written: dict[str, list[tuple[Index, ...]]] = {}

    def aliases(self) -> None:
        """Check the tensors that are kept under another name; raises Refused."""
        for name, meant in self.stand_for.items():
            if name not in self.made.types:
                if meant not in self.made.types:
                    raise Refused(f"there is no tensor {meant} that {name} could stand for")
                continue
            # a tensor of the graph that is kept as another one must have its elements in its order
            map_, tensor = identity(self.made.types[name].shape), name
            while tensor != meant:
                equation = self.made.equations.get(tensor)
                below = None if equation is None or equation.scan else self._view(equation)
                if equation is None or below is None or equation.view is None:
                    raise Refused(f"{name} is not {meant} in another shape")
                map_, tensor = compose(below, map_), equation.view.tensor
            if not keeps_order(map_):
                raise Refused(f"{name} has not the elements of {meant} in their order")

    def _view(self, equation: Equation) -> IndexMap | None:
        read = equation.view
        return None if read is None else map_of_equation(equation, self.made.types[read.tensor].shape)

    def check(self, kernel: KernelClaim) -> None:
        """One more kernel.

        Raises:
            Refused: it computes something else than the graph, or reads what is not there yet.
        """
        self.stages = kernel.stages
        scans = {self._meant(s.tensor) for s in kernel.stores if self._equation(s.tensor).scan}
        for store in kernel.stores:
            equation = self._equation(store.tensor)
            if len(store.indices) != len(equation.variables):
                raise Refused(f"{store.tensor} has {len(equation.variables)} axes, not {len(store.indices)}")
            self.opened.add(equation.tensor)
            value = stripped(inline(equation, store.indices, self.names))
            if not (self._copies(store) or self._same(store.value, value, scans)):
                raise Refused(f"what it stores in {store.tensor} is not what the graph defines: {store_text(store)}")
            running = frozenset(v for index in store.indices for v in index.variables)
            if not self._free(store.value) <= running:
                raise Refused(f"what it stores in {store.tensor} depends on loops that no index has")
            self._written.setdefault(store.tensor, []).append(store.indices)
        for tensor in dict.fromkeys(store.tensor for store in kernel.stores):
            if self.covers(tensor):
                self.ready.add(tensor)

    def covers(self, tensor: str) -> bool:
        """Whether the stores so far write every element of a tensor."""
        shape = self.made.types[self._meant(tensor)].shape
        written = self._written.get(tensor, [])
        if len(written) == 1:
            variables = tuple(sorted({v for i in written[0] for v in i.variables}, key=lambda v: v.name))
            return IndexMap(variables, written[0], shape).inverse is not None
        boxes = [_box(indices) for indices in written]
        if not boxes or None in boxes:
            return False
        known = [box for box in boxes if box is not None]
        apart = all(any(a[1] <= b[0] or b[1] <= a[0] for a, b in zip(x, y, strict=True))
                    for x, y in itertools.combinations(known, 2))  # fmt: skip
        inside = all(
            0 <= low and high <= extent for box in known for (low, high), extent in zip(box, shape, strict=True)
        )
        whole = sum(math.prod(high - low for low, high in box) for box in known) == math.prod(shape)
        return apart and inside and whole

    def _meant(self, tensor: str) -> str:
        return self.stand_for.get(tensor, tensor)

    def _equation(self, tensor: str) -> Equation:
        equation = self.made.equations.get(self._meant(tensor))
        if equation is None:
            raise Refused(f"the graph does not compute {tensor}")
        return equation

    def _free(self, expr: Expr) -> frozenset[Var]:
        found: set[Var] = set()
        for index in own_indices(expr):
            found |= index.variables
        match expr:
            case Read(tensor=tensor) if tensor in self.stages:
                stage = self.stages[tensor]
                found |= self._free(stage.value) - set(stage.axes)
            case Apply(arguments=arguments):
                found = found.union(*map(self._free, arguments))
            case Select(then=then, otherwise=otherwise):
                found |= self._free(then) | self._free(otherwise)
            case Reduce(variables=variables, body=body):
                found |= self._free(body) - set(variables)
        return frozenset(found)

    def _copies(self, store: Store) -> bool:
        """Whether a store only writes a tensor once more that is there already."""
        value = store.value
        there = isinstance(value, Read) and value.tensor in self.ready
        whole = Read(self._meant(store.tensor), store.indices, value.dtype)
        return there and isinstance(value, Read) and self._same_read(value, whole, set())

    # --- comparing ---

    def _same(self, kernel: Expr, graph: Expr, scans: set[str]) -> bool:
        while isinstance(kernel, Read) and kernel.tensor in self.stages:
            stage = self.stages[kernel.tensor]
            if len(stage.axes) != len(kernel.indices):
                return False
            kernel = substitute_variables(stage.value, dict(zip(stage.axes, kernel.indices, strict=True)))
        while isinstance(graph, Read):
            if isinstance(kernel, Read) and self._same_read(kernel, graph, scans):
                return True
            if isinstance(kernel, Const) and self._scalar(graph) == (kernel.value, kernel.dtype):
                return True
            equation = self.made.equations.get(graph.tensor)
            if equation is None or equation.scan:
                return False
            self.opened.add(graph.tensor)
            graph = stripped(inline(equation, graph.indices, self.names))
        match kernel, graph:
            case Const(), Const():
                return kernel == graph
            case FromIndex(), FromIndex():
                return kernel.dtype == graph.dtype and equal_indices(kernel.index, graph.index)
            case Apply(), Apply():
                return self._same_applications(kernel, graph, scans)
            case Select(), Select():
                return (
                    equal_conditions(kernel.condition, graph.condition)
                    and self._same(kernel.then, graph.then, scans)
                    and self._same(kernel.otherwise, graph.otherwise, scans)
                )
            case Reduce(), Reduce():
                return self._same_reductions(kernel, graph, scans)
        return False

    def _same_read(self, kernel: Read, graph: Read, scans: set[str]) -> bool:
        if self._meant(kernel.tensor) != self._meant(graph.tensor) or graph.tensor in self.stand_for:
            return False
        if kernel.tensor not in self.ready and self._meant(kernel.tensor) not in scans:
            raise Refused(f"it reads {kernel.tensor}, which is not there yet")
        return len(kernel.indices) == len(graph.indices) and all(map(equal_indices, kernel.indices, graph.indices))

    def _scalar(self, graph: Read) -> tuple[object, str] | None:
        """The value and type of a constant of one element."""
        number = self.made.constants.get(graph.tensor)
        if number is None or self.made.types[graph.tensor].elements != 1:
            return None
        return self.made.terms.value(number).reshape(-1)[0].item(), self.made.types[graph.tensor].dtype

    def _same_applications(self, kernel: Apply, graph: Apply, scans: set[str]) -> bool:
        if (kernel.function, kernel.dtype, len(kernel.arguments)) != (
            graph.function,
            graph.dtype,
            len(graph.arguments),
        ):
            return False
        orders = [graph.arguments, graph.arguments[::-1]] if kernel.function in _COMMUTING else [graph.arguments]
        return any(
            all(self._same(a, b, scans) for a, b in zip(kernel.arguments, order, strict=True)) for order in orders
        )

    def _same_reductions(self, kernel: Reduce, graph: Reduce, scans: set[str]) -> bool:
        own = [v.extent for v in kernel.variables]
        if kernel.kind != graph.kind or sorted(own) != sorted(v.extent for v in graph.variables):
            return False
        for order in itertools.islice(itertools.permutations(graph.variables), _ORDERS):
            if [v.extent for v in order] == own:
                values = {old: variable(new) for old, new in zip(order, kernel.variables, strict=True)}
                if self._same(kernel.body, substitute_variables(graph.body, values), scans):
                    return True
        return False


def stripped(expr: Expr) -> Expr:
    """The expression without loops over one element."""
    match expr:
        case Reduce(variables=variables, body=body):
            kept = tuple(v for v in variables if v.extent != 1)
            return replace(expr, variables=kept, body=stripped(body)) if kept else stripped(body)
        case Apply(arguments=arguments):
            return replace(expr, arguments=tuple(map(stripped, arguments)))
        case Select(condition=condition, then=then, otherwise=otherwise):
            return select(condition, stripped(then), stripped(otherwise))
        case _:
            return expr


def _box(indices: Sequence[Index]) -> tuple[tuple[int, int], ...] | None:
    """The places that indices run over, each a variable of its own behind a start; None for others."""
    box: list[tuple[int, int]] = []
    seen: set[Var] = set()
    for index in indices:
        match index.terms:
            case ():
                box.append((index.constant, index.constant + 1))
            case ((Var() as var, 1),) if var not in seen:
                seen.add(var)
                box.append((index.constant, index.constant + var.extent))
            case _:
                return None
    return tuple(box)


def cone(made: MadeGraph, tensors: Iterable[str], stored: Iterable[str]) -> set[str]:
    """The tensors of the graph of which some are computed, down to those that lie in memory."""
    ends, found, pending = set(stored), set[str](), list(tensors)
    while pending:
        tensor = pending.pop()
        if tensor in found or tensor not in made.equations:
            continue
        found.add(tensor)
        pending += [t for t in tensors_read(made.equations[tensor].body) if t not in ends]
    return found

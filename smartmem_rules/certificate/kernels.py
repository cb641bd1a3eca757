"""Whether kernels compute what the graph says: their expressions against the definitions, opened one by one.

A kernel's expressions read tensors in memory; those of the graph read any tensor.  Both are compared from the result
downwards, and where the graph reads a tensor that the kernel does not read, its definition is put in its place.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from smartmem_rules.analysis.everywhere import covers, equal_conditions, equal_indices
from smartmem_rules.certificate.graphs import MadeGraph
from smartmem_rules.certificate.terms import Refused
from smartmem_rules.exchange.kernels import OWN_LOOPS, KernelClaim, Stage, Store, store_text
from smartmem_rules.tensor import expr as e, inlining
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Apply, Const, Equation, Expr, FromIndex, Read, Reduce, Select
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.interpreter.split import without_trivial_loops
from smartmem_rules.tensor.substitution import map_gathered
from smartmem_rules.tensor.views import IndexMap, compose, identity, keeps_order, map_of_equation

_COMMUTING = frozenset({"add", "mul", "max", "min"})
_ORDERS = 24
"""Orders of the variables of one reduction that are tried."""


class KernelCheck:
    """Kernels in their order, against the graph that was made.

    Args:
        stand_for: tensors that are kept under another name: a copy in a second layout, or an output that is another
            tensor in another shape.
    """

    def __init__(self, made: MadeGraph, stand_for: Mapping[str, str]) -> None:
        self.made = made
        self.stand_for = stand_for
        self.names = inlining.FreshNames(OWN_LOOPS)
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
        read = {t for value in kernel.values for t in e.tensors_read(value)}
        early = [t for t in read - kernel.stages.keys() - self.ready if self._meant(t) not in scans]
        if early:
            raise Refused(f"it reads {early[0]}, which is not there yet")
        for store in kernel.stores:
            equation = self._equation(store.tensor)
            if len(store.indices) != len(equation.variables):
                raise Refused(f"{store.tensor} has {len(equation.variables)} axes, not {len(store.indices)}")
            value = self._defined(equation, store.indices)
            if not (self._copies(store) or self._same(inlining.refresh(store.value, self.names), value)):
                raise Refused(f"what it stores in {store.tensor} is not what the graph defines: {store_text(store)}")
            running = frozenset(v for index in store.indices for v in index.variables)
            if not self._free(store.value) <= running:
                raise Refused(f"what it stores in {store.tensor} depends on loops that no index has")
            self._written.setdefault(store.tensor, []).append(store.indices)
        for tensor in dict.fromkeys(store.tensor for store in kernel.stores):
            if covers(self._written[tensor], self.made.types[self._meant(tensor)].shape):
                self.ready.add(tensor)

    def _meant(self, tensor: str) -> str:
        return self.stand_for.get(tensor, tensor)

    def _equation(self, tensor: str) -> Equation:
        equation = self.made.equations.get(self._meant(tensor))
        if equation is None:
            raise Refused(f"the graph does not compute {tensor}")
        return equation

    def _defined(self, equation: Equation, indices: tuple[Index, ...]) -> Expr:
        """An element of a tensor of the graph by its definition; tensors that give indices are read through views."""
        self.opened.add(equation.tensor)
        element = without_trivial_loops(inlining.inline(equation, indices, self.names))
        return e.rebuild(element, lambda index: map_gathered(index, self._under), lambda read: read)

    def _under(self, tensor: str, indices: tuple[Index, ...]) -> tuple[str, tuple[Index, ...]]:
        while tensor not in self.ready and (view := self._view(self.made.equations[tensor])) is not None:
            read = self.made.equations[tensor].view
            assert read is not None
            self.opened.add(tensor)
            tensor, indices = read.tensor, view.apply(indices)
        return tensor, indices

    def _free(self, expr: Expr) -> frozenset[Var]:
        found: set[Var] = set()
        for index in e.own_indices(expr):
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
        return there and isinstance(value, Read) and self._same_read(value, whole)

    # --- comparing ---

    def _same(self, kernel: Expr, graph: Expr) -> bool:
        while isinstance(kernel, Read) and kernel.tensor in self.stages:
            stage = self.stages[kernel.tensor]
            if len(stage.axes) != len(kernel.indices) or kernel.dtype != stage.value.dtype:
                return False
            value = inlining.refresh(stage.value, self.names)
            kernel = e.substitute_variables(value, dict(zip(stage.axes, kernel.indices, strict=True)))
        while isinstance(graph, Read):
            if isinstance(kernel, Read) and self._same_read(kernel, graph):
                return True
            if isinstance(kernel, Const) and self._scalar(graph) == (kernel.value, kernel.dtype):
                return True
            equation = self.made.equations.get(graph.tensor)
            if equation is None or equation.scan:
                return False
            graph = self._defined(equation, graph.indices)
        match kernel, graph:
            case Const(), Const():
                return kernel == graph
            case FromIndex(), FromIndex():
                return kernel.dtype == graph.dtype and equal_indices(kernel.index, graph.index)
            case Apply(), Apply():
                return self._same_applications(kernel, graph)
            case Select(), Select():
                return (
                    equal_conditions(kernel.condition, graph.condition)
                    and self._same(kernel.then, graph.then)
                    and self._same(kernel.otherwise, graph.otherwise)
                )
            case Reduce(), Reduce():
                return self._same_reductions(kernel, graph)
        return False

    def _same_read(self, kernel: Read, graph: Read) -> bool:
        if self._meant(kernel.tensor) != graph.tensor or graph.tensor in self.stand_for or kernel.dtype != graph.dtype:
            return False
        return len(kernel.indices) == len(graph.indices) and all(map(equal_indices, kernel.indices, graph.indices))

    def _scalar(self, graph: Read) -> tuple[object, str] | None:
        """The value and type of a constant of one element."""
        number = self.made.constants.get(graph.tensor)
        if number is None or self.made.types[graph.tensor].elements != 1:
            return None
        return self.made.terms.value(number).reshape(-1)[0].item(), self.made.types[graph.tensor].dtype

    def _same_applications(self, kernel: Apply, graph: Apply) -> bool:
        if (kernel.function, kernel.dtype, len(kernel.arguments)) != (
            graph.function,
            graph.dtype,
            len(graph.arguments),
        ):
            return False
        orders = [graph.arguments, graph.arguments[::-1]] if kernel.function in _COMMUTING else [graph.arguments]
        return any(all(self._same(a, b) for a, b in zip(kernel.arguments, order, strict=True)) for order in orders)

    def _same_reductions(self, kernel: Reduce, graph: Reduce) -> bool:
        own = [v.extent for v in kernel.variables]
        if (kernel.kind, kernel.dtype) != (graph.kind, graph.dtype) or sorted(own) != sorted(
            v.extent for v in graph.variables
        ):
            return False
        for order in itertools.islice(itertools.permutations(graph.variables), _ORDERS):
            if [v.extent for v in order] == own:
                values = {old: variable(new) for old, new in zip(order, kernel.variables, strict=True)}
                if self._same(kernel.body, e.substitute_variables(graph.body, values)):
                    return True
        return False

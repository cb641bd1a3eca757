"""The extracted graph as one flat program of equations."""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from smartmem_rules.graph.described import some
from smartmem_rules.graph.model import Graph, Node
from smartmem_rules.plan.fusion.equations.compared import compared_tensors
from smartmem_rules.plan.fusion.equations.outline import Outline, outline_of
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.classify import Classes, classify, moves_only, reduces
from smartmem_rules.tensor.expr import Const, Equation, Expr, Read, TensorType, rebuild, rename_reads, tensors_read
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.inlining import FreshNames, inline
from smartmem_rules.tensor.interpreter.split import without_trivial_loops
from smartmem_rules.tensor.lazy import lazy
from smartmem_rules.tensor.substitution import lookup, map_gathered, ravel
from smartmem_rules.tensor.views import IndexMap, keeps_order, map_of_equation

_LARGEST_VIEW = 64
"""Atoms of an index map above which readers do not read through it: those of models have up to 17."""
_LARGEST_GATHER = 8
"""The same where indices are read at indices (`i[i[k]]`), of which each such step doubles the depth."""


@dataclass(frozen=True)
class Definition:
    """One equation of the program, with the node it came from."""

    equation: Equation
    node: str
    origin: tuple[str, ...]
    classes: Classes

    @property
    def tensor(self) -> str:
        return self.equation.tensor

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The tensors that the equation reads."""
        return tuple(tensors_read(self.equation.body))

    @lazy
    def outline(self) -> Outline:
        """What the size of the equation's expression depends on."""
        return outline_of(self.equation.body)

    @lazy
    def reduces(self) -> bool:
        return reduces(self.equation.body)

    @lazy
    def moves_only(self) -> bool:
        return moves_only(self.equation.body)


@dataclass(frozen=True, kw_only=True)
class StoredTable:
    """An index table that lies in memory.

    Attributes:
        shape: the axes of the tensor, whose elements in their order are the table's.
        least: what is subtracted from the elements in memory: no index is below zero.
    """

    name: str
    table: tuple[int, ...]
    shape: tuple[int, ...]
    least: int
    dtype: str

    @property
    def values(self) -> np.ndarray:
        """The tensor."""
        return (np.asarray(self.table) - self.least).astype(self.dtype).reshape(self.shape)

    def at(self, indices: tuple[Index, ...]) -> Index:
        """The element of the table at places along the axes."""
        return lookup(self.table, ravel(indices, self.shape))


@dataclass(frozen=True, kw_only=True)
class Program:
    """Definitions in topological order; every name that no definition gives is an input or a constant."""

    definitions: list[Definition]
    types: dict[str, TensorType]
    constants: MutableMapping[str, np.ndarray]
    inputs: list[str]
    outputs: list[str]
    names: FreshNames
    packable: MutableMapping[str, np.ndarray] = field(default_factory=dict)
    """The constants with which the plan may compute: those of which no `keep` rule leaves that to the run."""
    shown: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The shape in which the model gives an output, where it is computed in another one of the same element order."""
    tables: dict[str, StoredTable] = field(default_factory=dict)
    """The index tables that lie in memory (`fusion.tables`), by the constants that hold them."""
    prefix: str = "k"
    """What the names of kernels begin with."""
    inner: frozenset[str] = frozenset()
    """Tensors that operators compute on the way; not those that an output only shows in another shape or order."""

    @cached_property
    def compared(self) -> frozenset[str]:
        """Tensors that must have one value for all readers: they are compared with what is selected from them."""
        return compared_tensors({d.tensor: d.equation for d in self.definitions})

    def users(self) -> dict[str, list[Definition]]:
        users: dict[str, list[Definition]] = {}
        for definition in self.definitions:
            for tensor in definition.reads:
                users.setdefault(tensor, []).append(definition)
        return users


def flatten(graph: Graph, through_views: bool, deferred: Collection[str] = ()) -> Program:
    """All equations of the graph.

    Args:
        through_views: consumers read through the views instead of their tensors.
        deferred: operators of constants that the plan may compute, though they were left in the graph.
    """
    names = FreshNames("v")
    types = dict(graph.types)
    definitions: list[Definition] = []
    scalars = {n: graph.constants[n] for n in graph.constants if graph.types[n].elements == 1}
    views: dict[str, tuple[str, IndexMap]] = {}
    inner: set[str] = set()
    for node in graph.nodes:
        inner |= _computed_inside(node)
        operand_types = {o: types[o] for o in node.operands if o is not None}
        classes = classify(node.equations, operand_types)
        for equation in node.equations:
            types[equation.tensor] = equation.type
            body = without_trivial_loops(_with_scalars(equation.body, scalars))
            body = read_through(body, views)
            fresh = tuple(names.var(v.extent) for v in equation.variables)
            indices = tuple(variable(v) for v in fresh)
            body = inline(replace(equation, body=body), indices, names)
            settled = Equation(equation.tensor, fresh, body, equation.type, equation.scan)
            source = None if equation.scan else settled.view
            if source is not None and equation.tensor in node.outputs:
                inner.discard(source.tensor)
            if through_views and source is not None and equation.tensor not in graph.outputs:
                view = map_of_equation(settled, types[source.tensor].shape)
                assert view is not None
                gathers = any(index.gathered for index in view.indices)
                if view.size <= (_LARGEST_GATHER if gathers else _LARGEST_VIEW):
                    views[equation.tensor] = (source.tensor, view)
                    continue
            definitions.append(Definition(settled, node.name, node.origin or (node.name,), classes))
    packed = graph.stays_packed(deferred)
    packable = some(graph.constants, (name for name in graph.constants if name not in packed))
    program = Program(
        definitions=_needed(definitions, graph.outputs),
        types=types,
        constants=graph.constants,
        inputs=graph.inputs,
        outputs=graph.outputs,
        names=names,
        packable=packable,
        inner=frozenset(inner),
        prefix=f"part{graph.part}_k" if graph.part else "k",
    )
    return _with_outputs_in_place(program) if through_views else program


def _needed(definitions: list[Definition], outputs: Collection[str]) -> list[Definition]:
    """Those that outputs need; an equation need not read each operand of its operator (`Gemm` without its `C`)."""
    reads = {definition.tensor: definition.reads for definition in definitions}
    wanted, open_ = set(outputs), [*outputs]
    while open_:  # not in one pass from the last: what a recurrence computes is read by what stands before it
        new = set(reads.get(open_.pop(), ())) - wanted
        wanted |= new
        open_ += new
    return [definition for definition in definitions if definition.tensor in wanted]


def _computed_inside(node: Node) -> set[str]:
    """The tensors that a node computes on its way to its outputs; not those that only hold elements of operands."""
    inside: set[str] = set()
    for equation in node.equations:
        holds_operands = moves_only(equation.body) and inside.isdisjoint(tensors_read(equation.body))
        if equation.tensor not in node.outputs and not holds_operands:
            inside.add(equation.tensor)
    return inside


def _with_outputs_in_place(program: Program) -> Program:
    """The program in which an output that only reshapes a tensor is that tensor, shown in another shape."""
    definitions, types, shown = program.definitions, dict(program.types), dict(program.shown)
    made = {d.tensor: d for d in definitions}
    used = {tensor for d in definitions for tensor in tensors_read(d.equation.body)}
    for output in program.outputs:
        definition = made.get(output) if output not in used else None
        read = None if definition is None or definition.equation.scan else definition.equation.view
        if definition is None or read is None or read.tensor not in made or read.tensor in program.outputs:
            continue
        view = map_of_equation(definition.equation, types[read.tensor].shape)
        if view is None or not keeps_order(view):
            continue
        shown[output] = definition.equation.type.shape
        types[output] = types[read.tensor]
        origin = definition.origin
        definitions = [_renamed(d, read.tensor, output, origin) for d in definitions if d.tensor != output]
        made = {d.tensor: d for d in definitions}
    return replace(program, definitions=definitions, types=types, shown=shown)


def _renamed(definition: Definition, old: str, new: str, origin: tuple[str, ...]) -> Definition:
    equation = definition.equation
    if equation.tensor != old and old not in definition.reads:
        return definition
    body = rename_reads(equation.body, {old: new})
    if equation.tensor != old:
        return replace(definition, equation=replace(equation, body=body))
    equation = replace(equation, tensor=new, body=body)
    return replace(definition, equation=equation, origin=tuple(dict.fromkeys((*definition.origin, *origin))))


def _with_scalars(body: Expr, scalars: Mapping[str, np.ndarray]) -> Expr:
    def read(node: Read) -> Expr:
        value = scalars.get(node.tensor)
        return node if value is None else Const(value.reshape(-1)[0].item(), node.dtype)

    return rebuild(body, lambda index: index, read)


def read_through(body: Expr, views: Mapping[str, tuple[str, IndexMap]]) -> Expr:
    """The body with every read of a view replaced by a read of what lies under it."""
    if not views:
        return body

    def through(tensor: str, indices: tuple[Index, ...]) -> tuple[str, tuple[Index, ...]]:
        found = views.get(tensor)
        return (tensor, indices) if found is None else (found[0], found[1].apply(indices))

    def read(node: Read) -> Expr:
        return Read(*through(node.tensor, node.indices), node.dtype)

    return rebuild(body, lambda index: map_gathered(index, through), read)

"""Tensors taken at the extents that their operators count while the model runs.

Where a node has to know such an extent, it becomes an open dimension of the graph: the tensor, which has room for as
many elements as there can be, is cut to it, and all that follows is computed for the extent as for that of an input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

import numpy as np

from smartmem_rules.graph.counting.dimensions_read import dimensions_of
from smartmem_rules.graph.known.shapes import extents_equation
from smartmem_rules.graph.model import EXTENTS, OPENED, Counted, Node, live_nodes
from smartmem_rules.graph.weights import Values
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Const, Equation, Expr, Read, TensorType, compare, logic, select
from smartmem_rules.tensor.extents import Dimension, symbol
from smartmem_rules.tensor.index import constant, variable
from smartmem_rules.tensor.ranges import largest


@dataclass
class Opened:
    """What is known of such tensors so far.

    Attributes:
        taken: names of dimensions that the inputs have.
        names: of each tensor with room for all elements the tensor that is cut.
        counted: the dimensions, with the scalar tensors that hold them.
        alike: of a scalar tensor that counts what another one has counted, that one.
    """

    taken: frozenset[str] = frozenset()
    names: dict[str, str] = field(default_factory=dict)
    counted: dict[str, Counted] = field(default_factory=dict)
    alike: dict[str, str] = field(default_factory=dict)
    _first: dict[tuple[object, ...], str] = field(default_factory=dict)

    def cut(self, tensor: str, type_: TensorType, counts: Mapping[int, str], name: Callable[[str], str]) -> Node:
        """The node that cuts a tensor to its extents, which become dimensions.

        Args:
            counts: by axis the scalar tensor that holds the extent.
            name: makes a name that is not taken.
        """
        shape = list(type_.shape)
        for axis, count in counts.items():
            shape[axis] = symbol(self._dimension(count, largest(type_.shape[axis])))
        variables = tuple(Var(f"i{axis}", extent) for axis, extent in enumerate(shape))
        indices = tuple(map(variable, variables))
        inside = tuple(compare("<", indices[axis], constant(type_.shape[axis])) for axis in counts)
        read: Expr = Read(tensor, indices, type_.dtype)
        body = select(logic("and", inside), read, Const(0, type_.dtype))
        output = self.names[tensor] = name(f"{tensor}:{OPENED}")
        equation = Equation(output, variables, body, TensorType(type_.dtype, tuple(shape)))
        return Node(output, OPENED, (tensor,), {}, (output,), (), (equation,))

    def counts_alike(self, node: Node, counts: Sequence[str]) -> None:
        """Note what a node counts: nodes of one operator with equal operands and attributes count the same."""
        key = node.operator, node.operands, *((name, _known(node.attributes[name])) for name in sorted(node.attributes))
        for place, count in enumerate(counts):
            self.alike[count] = self._first.setdefault((*key, place), count)

    def _dimension(self, count: str, high: int) -> Dimension:
        count = self.alike.get(count, count)
        if count not in self.counted:
            name = count
            while name in self.taken:
                name += "'"
            self.counted[count] = Counted(Dimension(name, 0, high), count)
        return self.counted[count].dimension


def extents_nodes(
    nodes: Sequence[Node], outputs: Sequence[str], values: Values, name: Callable[[str], str]
) -> Iterator[Node]:
    """What computes known tensors of open extents when the model runs, those that nodes read or that are outputs.

    Args:
        name: makes a name of a node that is not taken.
    """
    for tensor in dict.fromkeys([*(o for node in nodes for o in node.operands if o is not None), *outputs]):
        if values.is_open(tensor):
            equation = extents_equation(tensor, values[tensor], values.types[tensor].dtype)
            yield Node(name(f"{tensor}:{EXTENTS}"), EXTENTS, (), {}, (tensor,), (), (equation,))


def _known(value: object) -> object:
    """A value of an attribute as part of a key."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, tuple(value.reshape(-1).tolist())
    return tuple(map(_known, value)) if isinstance(value, tuple | list) else value


def live_and_counted(
    nodes: Sequence[Node], outputs: Sequence[str], counted: Mapping[str, Counted]
) -> tuple[list[Node], tuple[Counted, ...]]:
    """The nodes that the outputs depend on, and the dimensions that they count: the extents depend on them, too."""
    used: dict[str, Counted] = {}
    while True:
        kept = live_nodes(nodes, [*outputs, *used])
        names = {dimension.name for dimension in dimensions_of([e for node in kept for e in node.equations])}
        more = {tensor: one for tensor, one in counted.items() if one.dimension.name in names}
        if more.keys() == used.keys():
            return kept, tuple(used.values())
        used = more

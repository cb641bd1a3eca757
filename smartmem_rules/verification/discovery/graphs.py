"""Terms as a graph, for saturation and for models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartmem_rules.graph.model import Graph, Node
from smartmem_rules.tensor.binding import operand_name, output_name
from smartmem_rules.tensor.expr import TensorType, rename_reads
from smartmem_rules.tensor.primitives import Array, storage_dtype
from smartmem_rules.verification.semantics.terms import Application, Leaf, Term


class GraphWriter:
    """Writes terms as nodes of one graph; equal terms are one node.

    Attributes:
        given: the elements of leaves that are constants; the others are inputs.
    """

    def __init__(self) -> None:
        self.graph = Graph(name="terms", nodes=[], types={}, constants={}, inputs=[], outputs=[])
        self.names: dict[Term, str] = {}
        self.given: dict[str, Array] = {}

    def write(self, term: Term) -> str:
        """The tensor of a term."""
        if term in self.names:
            return self.names[term]
        name = self._leaf(term) if isinstance(term, Leaf) else self._application(term)
        self.names[term] = name
        return name

    def _leaf(self, leaf: Leaf) -> str:
        name = leaf.name if leaf.number is None else f"number_{leaf.name}"
        self.graph.types[name] = leaf.type
        if name in self.given:
            self.graph.constants[name] = self.given[name]
        elif leaf.number is None:
            self.graph.inputs.append(name)
        else:
            self.graph.constants[name] = np.full(leaf.type.shape, leaf.number, storage_dtype(leaf.type.dtype))
        return name

    def _application(self, term: Application) -> str:
        operands = tuple(None if o is None else self.write(o) for o in term.operands)
        name = f"n{len(self.graph.nodes)}"
        outputs = [name if place == term.place else f"{name}.{place}" for place in range(len(term.instance.outputs))]
        names = {output_name(place): output for place, output in enumerate(outputs)}
        names |= {operand_name(i): o for i, o in enumerate(operands) if o is not None}
        names |= {e.tensor: f"{name}.{e.tensor}" for e in term.instance.equations if e.tensor not in names}
        equations = tuple(
            replace(e, tensor=names[e.tensor], body=rename_reads(e.body, names)) for e in term.instance.equations
        )
        self.graph.types.update({e.tensor: TensorType(e.type.dtype, e.type.shape) for e in equations})
        node = Node(name, term.operator, operands, dict(term.attributes), tuple(outputs), (name,), equations)
        self.graph.nodes.append(node)
        return name

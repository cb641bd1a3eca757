"""Expressions over stored tensors: tensors without memory are computed where they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from smartmem_rules.plan.fusion.equations.program import Program
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import Equation, Expr, Read, substitute_reads
from smartmem_rules.tensor.inlining import inline

Handler = Callable[[Read], Expr]


def on_chip(tensor: str) -> str:
    """The name of a tensor's values that a kernel keeps to itself."""
    return f"{tensor}#"


@dataclass
class Expander:
    """Replaces reads of tensors that have no memory by what computes them."""

    program: Program
    inlined: Mapping[str, Equation]
    handlers: dict[str, Handler]

    def expand(self, expr: Expr) -> Expr:
        def read(node: Read) -> Expr:
            handler = self.handlers.get(node.tensor)
            if handler is not None:
                return handler(node)
            equation = self.inlined.get(node.tensor)
            if equation is None:
                return node
            return self.expand(inline(equation, node.indices, self.program.names))

        return substitute_reads(expr, read)

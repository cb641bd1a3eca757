"""How deep the expression of a kernel becomes whose members are written into one another.

Planning and emission walk expressions by recursion, and compilers do; a chain of hundreds of operators is several
kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from smartmem_rules.plan.fusion.program import Definition
from smartmem_rules.plan.fusion.reads import reads_of
from smartmem_rules.tensor.expr import Expr, children


def own_depth(definition: Definition) -> int:
    """Nested operations of one definition, and one more for its place in another one."""
    return 1 + _levels(definition.equation.body)


def depth_after(definition: Definition, depths: Mapping[str, int]) -> int:
    """The depth of a definition's expression, given those of tensors that are written into it."""
    read = {r.tensor for r in reads_of(definition.equation.body)}
    return own_depth(definition) + max((depths.get(tensor, 0) for tensor in read), default=0)


def depth_of(members: Iterable[Definition]) -> int:
    """The depth of the deepest member, all of them written into one another; producers stand before consumers."""
    depths: dict[str, int] = {}
    for member in members:
        depths[member.tensor] = depth_after(member, depths)
    return max(depths.values(), default=0)


def _levels(expr: Expr) -> int:
    return 1 + max((_levels(child) for child in children(expr)), default=0)

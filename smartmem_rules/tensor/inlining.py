"""An equation's expression in the place of a read: loop variables of its reductions get names of their own."""

from __future__ import annotations

from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Apply, Equation, Expr, Reduce, Select, substitute_variables
from smartmem_rules.tensor.index import Index, variable


class FreshNames:
    """Gives loop variables that occur nowhere else in one kernel."""

    def __init__(self, prefix: str = "v") -> None:
        self._prefix = prefix
        self._count = 0

    def var(self, extent: int) -> Var:
        """A loop variable that no expression has yet."""
        self._count += 1
        return Var(f"{self._prefix}{self._count}", extent)


def refresh(expr: Expr, names: FreshNames) -> Expr:
    """The expression with fresh variables in its reductions, so that it can be placed beside itself."""
    match expr:
        case Reduce(kind=kind, variables=variables, body=body, dtype=dtype):
            fresh = tuple(names.var(v.extent) for v in variables)
            renamed = substitute_variables(body, {v: variable(f) for v, f in zip(variables, fresh, strict=True)})
            return Reduce(kind, fresh, refresh(renamed, names), dtype)
        case Apply(function=function, arguments=arguments, dtype=dtype):
            return Apply(function, tuple(refresh(a, names) for a in arguments), dtype)
        case Select(condition=condition, then=then, otherwise=otherwise, dtype=dtype):
            return Select(condition, refresh(then, names), refresh(otherwise, names), dtype)
        case _:
            return expr


def inline(equation: Equation, indices: tuple[Index, ...], names: FreshNames) -> Expr:
    """The element of an equation's tensor at the given indices, as an expression over its inputs."""
    values = dict(zip(equation.variables, indices, strict=True))
    return refresh(substitute_variables(equation.body, values), names)

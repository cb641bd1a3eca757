"""What an operator of one's own says that it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.formals import by_formals
from smartmem_rules.tensor.builtins import DefinitionError, describe
from smartmem_rules.tensor.definitions.values import Scope, TensorList, TensorName, evaluate
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.instantiate import Instance
from smartmem_rules.tensor.ranges import largest


def own_costs(
    instance: Instance, operands: Sequence[TensorType | None], functions: Mapping[str, ast.Function]
) -> dict[str, float]:
    """The quantities that `cost` clauses of the operator give, at these operands; the most where dimensions are open.

    Raises:
        DefinitionError: one cannot be computed, or is no number from zero on.
    """
    if not instance.operator.costs:
        return {}
    tensors: dict[str, TensorName | TensorList | None] = {}
    for name, one in by_formals(instance.operator, operands).items():
        if isinstance(one, TensorType):
            tensors[name] = TensorName(name, one)
        else:
            tensors[name] = TensorList(tuple(TensorName(f"{name}{j}", member) for j, member in enumerate(one)))
    scope = Scope(dict(instance.values), tensors, functions)
    return {cost.quantity: _number(cost, evaluate(cost.value, scope)) for cost in instance.operator.costs}


def _number(cost: ast.Cost, value: object) -> float:
    if isinstance(value, int) and is_symbolic(value):
        value = largest(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < 0:  # type: ignore[arg-type, operator]
        shown = describe(value)  # type: ignore[arg-type]
        raise DefinitionError(f"{cost.value.span}: `cost {cost.quantity}` is {shown}, not a number from zero on")
    return float(value)  # type: ignore[arg-type]

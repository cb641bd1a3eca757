"""What requirements of an operator say that attributes and shapes are: chance seldom draws packed weights that fit."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import conjuncts
from smartmem_rules.tensor.binding import bind
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.definitions.values import Scope, evaluate, truth
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.instantiate import names_in

_LETS = (DefinitionError, Unsupported)


def met_requirements(
    operator: ast.Operator,
    operands: Sequence[TensorType | None],
    given: Mapping[str, Value],
    functions: Mapping[str, ast.Function],
    free: frozenset[str],
    source: random.Random,
) -> dict[str, Value]:
    """Values of free names with which equations of the requirements hold that do not hold now.

    Args:
        free: the attributes, and the names of whole shapes, that may be another value.
    """
    scope = Scope({}, {}, functions, {})
    try:
        bind(operator, operands, given, scope)
    except Unsupported:
        return {}
    solver = _Solver(scope, source)
    targets = {name: name for name in free}
    lets = list(operator.lets)
    for requirement in conjuncts(*operator.requires):
        asked = names_in(requirement)
        while lets and asked & {let.name for let in lets}:
            let = lets.pop(0)
            try:
                scope.values[let.name] = evaluate(let.value, scope)
            except _LETS:
                return solver.found
        solver.settle(requirement, scope, targets)
    return solver.found


@dataclass
class _Solver:
    """Makes conditions hold by giving names other values.

    Attributes:
        scope: what all names of the operator are.
        found: the new values.
    """

    scope: Scope
    source: random.Random
    found: dict[str, Value] = field(default_factory=dict)

    def settle(self, condition: ast.Expression, scope: Scope, targets: Mapping[str, str]) -> bool:
        """Whether a condition holds, or does so from now on.

        Args:
            scope: what the names of the condition are.
            targets: those of them that may be another value, and what the operator calls them.
        """
        try:
            if truth(condition, scope):
                return True
            return self._solved(condition, scope, targets)
        except (DefinitionError, Unsupported):
            return False

    def _solved(self, condition: ast.Expression, scope: Scope, targets: Mapping[str, str]) -> bool:
        match condition:
            case ast.Binary(operator="and", left=left, right=right):
                return self.settle(left, scope, targets) and self.settle(right, scope, targets)
            case ast.Binary(operator="or", left=left, right=right):
                ways = [left, right]
                self.source.shuffle(ways)
                return any(self.settle(way, scope, targets) for way in ways)
            case ast.Binary(operator="==", left=left, right=right):
                return self._equated(left, right, scope, targets) or self._equated(right, left, scope, targets)
            case ast.Call(function=name, arguments=arguments) if name in scope.functions:
                called = scope.functions[name]
                values = {p: evaluate(a, scope) for p, a in zip(called.parameters, arguments, strict=True)}
                inner = {
                    p: targets[a.id]
                    for p, a in zip(called.parameters, arguments, strict=True)
                    if isinstance(a, ast.Name) and a.id in targets
                }
                return self.settle(called.body, scope.with_values(**values), inner)
        return False

    def _equated(self, one: ast.Expression, other: ast.Expression, scope: Scope, targets: Mapping[str, str]) -> bool:
        if not isinstance(one, ast.Name) or one.id not in targets:
            return False
        value = evaluate(other, scope)
        self.found[targets[one.id]] = self.scope.values[targets[one.id]] = value
        return True

"""Gives drawn operands the shapes that requirements of an operator say: chance seldom draws packed weights that fit."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import conjuncts
from smartmem_rules.tensor.binding import bind
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value, integers
from smartmem_rules.tensor.definitions.values import Scope, evaluate, truth
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.instantiate import names_in
from smartmem_rules.verification.instances.case import Choices
from smartmem_rules.verification.instances.draws import Shape, divisible_extents
from smartmem_rules.verification.instances.signature import Signature
from smartmem_rules.verification.semantics.terms import Leaf, Term


@dataclass(frozen=True)
class Drawn:
    """The operands of one operator, of which the new ones may still get another shape.

    Attributes:
        operands: all of them, in the order of the signature.
        fresh: the tensors that were drawn for this operator.
        scope: what is known of the instance before.
    """

    signature: Signature
    operands: list[Term | None]
    fresh: dict[str, Leaf]
    choices: Choices
    scope: Scope
    source: random.Random

    def make_divisible(self, values: Mapping[str, Value]) -> None:
        """Change extents of new operands to multiples of what requirements divide them by.

        Args:
            values: the extents and attributes by the names of the signature.
        """
        for extent, divisor in divisible_extents(self.signature.overload, values, self.scope):
            multiple = divisor * self.source.choice((1, 2, 2, 3))
            for place, (formal, operand) in enumerate(zip(self.signature.formals, self.operands, strict=True)):
                if not isinstance(operand, Leaf) or operand.name not in self.fresh or formal.type is None:
                    continue
                shape = tuple(
                    multiple if isinstance(item, ast.Name) and item.id == extent else n
                    for item, n in zip(formal.type.shape, operand.type.shape, strict=False)
                )
                if len(shape) == len(operand.type.shape):
                    self._reshape(place, operand, shape)

    def meet_requirements(
        self, pattern: ast.PatternOperator | None, path: str, given: dict[str, Value], most_elements: int
    ) -> None:
        """Give attributes that a pattern leaves open, and shapes of new operands, the values that requirements say.

        Args:
            pattern: None where all attributes are fixed.
            given: the attributes, which are changed.

        Raises:
            Unsupported: a shape is none, or has more elements than an instance may have.
        """
        overload = self.signature.overload
        if not overload.requires:
            return
        shapes = self.signature.whole_shapes(self.operands, self.fresh)
        attributes = set()
        if pattern is not None:
            attributes = {a.name for a in overload.attributes} - {a.name for a in pattern.attributes}
        types = [None if o is None else o.type for o in self.operands]
        free = frozenset(shapes.keys() | attributes)
        for name, value in met_requirements(overload, types, given, self.scope.functions, free, self.source).items():
            if name in attributes:
                given[name] = value
                self.choices[f"given:{path}"] = {**self.choices[f"given:{path}"], name: value}
                continue
            shape = integers(value)
            if not all(n > 0 for n in shape) or math.prod(shape) > most_elements:
                raise Unsupported(f"{value} is no shape of a small tensor")
            for place, leaf in shapes[name]:
                self._reshape(place, leaf, shape)

    def _reshape(self, place: int, leaf: Leaf, shape: Shape) -> None:
        self.choices[f"shape:{leaf.name}"] = shape
        self.fresh[leaf.name] = Leaf(leaf.name, TensorType(leaf.type.dtype, shape), leaf.number)
        self.operands[place] = self.fresh[leaf.name]


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
            except (DefinitionError, Unsupported):
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

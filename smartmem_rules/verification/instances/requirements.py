"""Gives drawn operands the shapes that requirements of an operator say: chance seldom draws packed weights that fit."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.by_identity import ByIdentity
from smartmem_rules.language.expressions import conjuncts, nodes
from smartmem_rules.records import dataclass, unguarded
from smartmem_rules.tensor.binding import bind
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value, integers
from smartmem_rules.tensor.definitions.values import Scope, evaluate, truth
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.instantiate import names_in
from smartmem_rules.verification.instances.case import Choices
from smartmem_rules.verification.instances.draws import Shape
from smartmem_rules.verification.instances.roles import nodes as expressions_in
from smartmem_rules.verification.instances.signature import Signature
from smartmem_rules.verification.semantics.terms import Leaf, Term

_MOST = 64
"""The largest extent that a requirement is followed to."""

Equations = list[tuple[str, ast.Expression]]
_EQUATED: ByIdentity[ast.Operator, Equations] = ByIdentity(4096)


@unguarded(frozen=True)
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
        for extent, divisor in _divisible_extents(self.signature.overload, values, self.scope):
            self._change(extent, divisor * self.source.choice((1, 2, 2, 3)))

    def make_equal(self, values: Mapping[str, Value]) -> None:
        """Change extents of new operands to what requirements `G == 3 * H` or `D == f(x)` say that they are.

        Args:
            values: the extents and attributes by the names of the signature.
        """
        equations = _EQUATED.get(self.signature.overload, _equated_extents)
        known = dict(values) if equations else {}
        for name, right in 2 * equations:  # one may stand before what it is made of
            try:
                wanted = evaluate(right, self.scope.with_values(**known))
            except (DefinitionError, Unsupported):
                continue
            if isinstance(wanted, int) and 0 < wanted <= _MOST and known.get(name) != wanted:
                self._change(name, wanted)
                known[name] = wanted

    def _change(self, extent: str, value: int) -> None:
        """Give an extent of the signature a value in all new operands that have it."""
        for place, (formal, operand) in enumerate(zip(self.signature.formals, self.operands, strict=True)):
            if not isinstance(operand, Leaf) or operand.name not in self.fresh or formal.type is None:
                continue
            shape = tuple(
                value if isinstance(item, ast.Name) and item.id == extent else n
                for item, n in zip(formal.type.shape, operand.type.shape, strict=False)
            )
            if len(shape) == len(operand.type.shape):
                self._reshape(place, operand, shape)

    def meet_requirements(
        self, pattern: ast.PatternOperator | None, path: str, given: dict[str, Value], most_elements: int, alone: bool
    ) -> None:
        """Give attributes that a pattern leaves open, and shapes of new operands, the values that requirements say.

        Args:
            pattern: None where all attributes are fixed.
            given: the attributes, which are changed.
            alone: whether no other overload takes what this one refuses.

        Raises:
            Unsupported: a shape is none, or has more elements than an instance may have, or no change is known with
                which the requirements hold.
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
        met = met_requirements(overload, types, given, self.scope.functions, free, self.source)
        if alone and met.is_hopeless:
            raise Unsupported("a requirement does not hold")  # seen here, it need not be seen again with the reason
        for name, value in met.found.items():
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


def _divisible_extents(operator: ast.Operator, values: Mapping[str, Value], scope: Scope) -> Iterator[tuple[str, int]]:
    """The extents that a requirement `N % e == 0` wants to be multiples of e, where they are not."""
    wishes = _MULTIPLES.get(operator.requires, _wanted_multiples)
    if not wishes:
        return
    known = scope.with_values(**values)
    for name, divisor in wishes:
        try:
            wanted, actual = evaluate(divisor, known), values.get(name)
        except (DefinitionError, Unsupported):
            continue
        if isinstance(wanted, int) and isinstance(actual, int) and 1 < wanted <= 16 and actual % wanted:
            yield name, wanted


def _wanted_multiples(requires: tuple[ast.Expression, ...]) -> tuple[tuple[str, ast.Expression], ...]:
    """The names of which requirements `N % e == 0` speak, and what divides them."""
    return tuple(
        (node.left.left.id, node.left.right)
        for requirement in requires
        for node in expressions_in(requirement)
        if isinstance(node, ast.Binary)
        and node.operator == "=="
        and isinstance(node.left, ast.Binary)
        and node.left.operator == "%"
        and isinstance(node.left.left, ast.Name)
        and isinstance(node.right, ast.Number)
        and node.right.value == 0
    )


_MULTIPLES: ByIdentity[tuple[ast.Expression, ...], tuple[tuple[str, ast.Expression], ...]] = ByIdentity(4096)


def _equated_extents(operator: ast.Operator) -> Equations:
    """The extents that requirements equate with a multiple or with what a function gives."""
    shapes = (formal.type.shape for formal in operator.inputs if formal.type is not None)
    extents = {item.id for shape in shapes for item in shape if isinstance(item, ast.Name)}
    found: Equations = []
    for node in nodes(operator.requires):
        match node:
            case ast.Binary(operator="==", left=ast.Name(id=name), right=right) if name in extents:
                match right:
                    case ast.Call() | ast.Binary(operator="*", left=ast.Number(), right=ast.Name()):
                        found.append((name, right))
    return found


@dataclass(frozen=True)
class Met:
    """How requirements are met.

    Attributes:
        found: the new values of names.
        holds: whether all hold then, as far as is known.
    """

    found: dict[str, Value]
    holds: bool

    @property
    def is_hopeless(self) -> bool:
        """Whether the operator refuses its operands, as some requirement does not hold and nothing is changed."""
        return not self.holds and not self.found


def met_requirements(
    operator: ast.Operator,
    operands: Sequence[TensorType | None],
    given: Mapping[str, Value],
    functions: Mapping[str, ast.Function],
    free: frozenset[str],
    source: random.Random,
) -> Met:
    """Values of free names with which equations of the requirements hold that do not hold now.

    Args:
        free: the attributes, and the names of whole shapes, that may be another value.
    """
    scope = Scope({}, {}, functions, {})
    # of outputs, which a requirement may count, nothing is known here
    unknown = any(output.index is not None for output in operator.outputs)
    try:
        bind(operator, operands, given, scope)
    except Unsupported:
        return Met({}, False)
    holds = True
    solver = _Solver(scope, source)
    targets = {name: name for name in sorted(free)}
    for requirement, lets in _REQUIRED.get(operator, _required):
        for let in lets:
            try:
                scope.values[let.name] = evaluate(let.value, scope)
            except (DefinitionError, Unsupported):
                return Met(solver.found, unknown)
        holds &= solver.settle(requirement, scope, targets)
    return Met(solver.found, holds or unknown)


_Required = tuple[tuple[ast.Expression, tuple[ast.Let, ...]], ...]
_REQUIRED: ByIdentity[ast.Operator, _Required] = ByIdentity(4096)


def _required(operator: ast.Operator) -> _Required:
    """What an operator requires, part by part, each with the lets that it needs and no part before it."""
    found: list[tuple[ast.Expression, tuple[ast.Let, ...]]] = []
    lets = list(operator.lets)
    for requirement in conjuncts(*operator.requires):
        asked = names_in(requirement)
        count = max((place for place, let in enumerate(lets, 1) if let.name in asked), default=0)
        found.append((requirement, tuple(lets[:count])))
        del lets[:count]
    return tuple(found)


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
        match one:
            case ast.Name(id=name) if name in targets:
                value = evaluate(other, scope)
            case ast.Binary(operator="*", left=factor, right=ast.Name(id=name)) if name in targets:
                product, divisor = evaluate(other, scope), evaluate(factor, scope)
                if not isinstance(product, int) or not isinstance(divisor, int) or divisor <= 0 or product % divisor:
                    return False
                value = product // divisor
            case _:
                return False
        self.found[targets[name]] = self.scope.values[targets[name]] = value
        return True

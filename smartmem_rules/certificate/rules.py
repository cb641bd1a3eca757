"""One step of a certificate: a rule of the rule base at given terms, with all that it asks for computed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

import numpy as np

from smartmem_rules.analysis.everywhere import equal_indices
from smartmem_rules.certificate.terms import ABSENT, OUT, Refused, Term, Terms
from smartmem_rules.exchange.certificates import GuardData
from smartmem_rules.guards.computed import computed_number
from smartmem_rules.guards.constant_elements import over_elements
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.roots import roots_of
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.patterns import is_absent, operators_of_all, rest_of, right_outputs, run_time_arguments
from smartmem_rules.rulebase.queries import queries_of
from smartmem_rules.tensor.binding import operand_name, output_name
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value, describe
from smartmem_rules.tensor.definitions.values import Scope, TensorList, TensorName, evaluate, truth
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.instantiate import Definitions, names_in
from smartmem_rules.tensor.primitives import Array, storage_dtype
from smartmem_rules.tensor.views import IndexMap, map_of_equation

Bound = int | tuple[int, ...]


Uses = tuple[Mapping[str, int], Callable[[int], frozenset[int]]]
"""How many readers tensors have, for rules that ask it: as the certificate says, and how many a term may have."""


@dataclass(frozen=True, kw_only=True)
class Applied:
    """A rule at terms.

    Attributes:
        left, right: the terms that are equal by it.
        made: the terms of the right side's operators, operands first.
        bound: what the names of the pattern stand for.
        guards: each with the values of its names.
        needed: pairs of terms that had to be equal already.
    """

    left: int
    right: int
    made: tuple[int, ...]
    bound: Mapping[str, Bound]
    guards: list[GuardData]
    needed: tuple[tuple[int, int], ...]


def rewrite(
    terms: Terms,
    rule: ast.Rewrite,
    backward: bool,
    operators: Sequence[int],
    swapped: frozenset[int],
    uses: Uses,
) -> Applied:
    """A rewrite rule at terms.

    Args:
        operators: a term for each operator of the left side, operands first, as `operators_of_all` has them.
        swapped: the numbers of those whose two operands are taken in the other order.

    Raises:
        Refused: the left side does not match, or a guard does not hold.
    """
    if rule.unsound is not None:
        raise Refused(f"{rule.name} is marked unsound")
    if backward and not rule.bidirectional:
        raise Refused(f"{rule.name} holds from left to right only")
    left, right = (rule.right, rule.left) if backward else (rule.left, rule.right)
    match = _Match(terms, operators_of_all(left), tuple(operators), swapped, uses)
    scope = match.run(left)
    guards = [checked_guard(guard, scope, match.bound, terms) for guard in rule.guards]
    try:
        result = match.build(right, scope)
    except (Unsupported, DefinitionError) as reason:
        raise Refused(f"the right side of {rule.name} cannot be made: {reason}") from reason
    return Applied(
        left=operators[-1],
        right=result,
        made=tuple(match.made),
        bound=match.bound,
        guards=guards,
        needed=tuple(match.needed),
    )


@dataclass
class _Match:
    terms: Terms
    patterns: list[ast.PatternOperator]
    operators: tuple[int, ...]
    swapped: frozenset[int]
    uses: Uses
    bound: dict[str, Bound] = field(default_factory=dict)
    needed: list[tuple[int, int]] = field(default_factory=list)
    made: list[int] = field(default_factory=list)
    bundles: dict[str, Mapping[str, Value]] = field(default_factory=dict)

    def run(self, left: ast.Pattern) -> Scope:
        """Match the whole left side; the scope of its names."""
        if len(self.operators) != len(self.patterns) or not self.patterns:
            raise Refused(f"the left side has {len(self.patterns)} operators, not {len(self.operators)}")
        end = 0
        for pattern in reversed(roots_of(left)):
            self._visit(pattern, end := end + len(operators_of_all(pattern)), self.operators[end - 1])
        scope = _scope({}, self.bound, self.terms, self.uses, self.needed)
        self._attributes(scope)
        return scope

    def _equal(self, one: int, other: int, what: str) -> None:
        if not self.terms.equal(one, other):
            raise Refused(f"{what} is another term than the one that stands there")
        self.needed.append((one, other))

    def _visit(self, pattern: ast.Pattern, end: int, actual: int) -> int:
        """Match a pattern with a term; its operators are those before number `end`. Gives the number of the first."""
        if is_absent(pattern):
            if actual != ABSENT:
                raise Refused("an operand stands where the rule wants none")
        elif actual == ABSENT:
            raise Refused("an operand is absent that the rule wants")
        elif isinstance(pattern, ast.PatternVariable):
            self._bind(pattern.name, actual)
        elif isinstance(pattern, ast.PatternNumber):
            self._number(pattern.value, actual)
        elif isinstance(pattern, ast.PatternOperator):
            return self._operator(pattern, end, actual)
        return end

    def _bind(self, name: str, actual: int) -> None:
        first = self.bound.setdefault(name, actual)
        if first != actual:
            if not isinstance(first, int):
                raise Refused(f"{name} stands for a list and for a tensor")
            self._equal(first, actual, name)

    def _number(self, value: float, actual: int) -> None:
        known = self.terms.constant_of(actual)
        uniform = None if known is None else self.terms.uniform(known)
        if known is None or uniform is None or np.float32(uniform) != np.float32(value):
            raise Refused(f"the rule wants the constant {value}, not {uniform}")
        self.needed.append((actual, known))

    def _operator(self, pattern: ast.PatternOperator, end: int, actual: int) -> int:
        number = end - 1
        given = self.operators[number]
        self._equal(given, actual, pattern.operator)
        term = application_of(self.terms, given, pattern.output or 0)
        if term.operator != pattern.operator:
            raise Refused(f"the rule wants {pattern.operator}, not {term.operator}")
        arguments = run_time_arguments(pattern)
        children = list(term.children)
        if len(children) < len(arguments) or (len(children) > len(arguments) and pattern.variadic is None):
            raise Refused(f"{pattern.operator} has {len(children)} operands, not {len(arguments)}")
        if number in self.swapped:
            if len(children) != 2 or len(term.types) != 1 or not commutes(self.terms.instances.base, term.operator):
                raise Refused(f"{term.operator} does not commute")
            children.reverse()
        if pattern.variadic is not None:
            self._list(pattern.variadic, tuple(children[len(arguments) :]))
        for argument, child in reversed(list(zip(arguments, children, strict=False))):
            number = self._visit(argument, number, child)
        return number

    def _list(self, name: str, actual: tuple[int, ...]) -> None:
        first = self.bound.setdefault(name, actual)
        if not isinstance(first, tuple) or len(first) != len(actual) or ABSENT in actual:
            raise Refused(f"*{name} stands for different lists")
        for one, other in zip(first, actual, strict=True):
            self._equal(one, other, name)

    def _attributes(self, scope: Scope) -> None:
        marks = [pattern.bundle for pattern in self.patterns]
        repeated = {mark for mark in marks if mark is not None and marks.count(mark) > 1}
        rests: dict[str, dict[str, Value]] = {}
        for pattern, number in zip(self.patterns, self.operators, strict=True):
            term = application_of(self.terms, number, pattern.output or 0)
            if pattern.bundle is not None:
                self.bundles.setdefault(pattern.bundle, term.attributes)
            if not pattern.attributes and pattern.bundle not in repeated:
                continue
            instance = self.terms.instance_of(term)
            known = {**instance.values, **term.attributes}
            if pattern.bundle in repeated:
                rest = rest_of(pattern, instance.operator, known)
                if rests.setdefault(str(pattern.bundle), rest) != rest:
                    raise Refused(f"@{pattern.bundle} stands for different attributes")
            for attribute in pattern.attributes:
                self._attribute(attribute, known.get(attribute.name), scope)

    @staticmethod
    def _attribute(attribute: ast.PatternAttribute, actual: Value, scope: Scope) -> None:
        wanted = attribute.value
        if isinstance(wanted, ast.Name) and wanted.id not in scope.values:
            scope.values[wanted.id] = actual
            return
        try:
            expected = evaluate(wanted, scope)
        except (DefinitionError, Unsupported) as reason:
            raise Refused(f"{attribute.name} = {print_expression(wanted)}: {reason}") from reason
        if expected != actual and (expected,) != actual:
            raise Refused(f"{attribute.name} is {describe(actual)}, the rule wants {print_expression(wanted)}")

    def build(self, pattern: ast.Pattern, scope: Scope) -> int:
        """The term of a right side."""
        if is_absent(pattern):
            return ABSENT
        if isinstance(pattern, ast.PatternVariable):
            number = self.bound[pattern.name]
            assert isinstance(number, int)
            return number
        dtype = self.terms.terms[self.operators[-1]].type.dtype
        if isinstance(pattern, ast.PatternComputed):
            pattern = ast.PatternNumber(pattern.span, computed_number(pattern.value, scope, dtype))
        if isinstance(pattern, ast.PatternNumber):
            return self.terms.constant(np.asarray(pattern.value, storage_dtype(dtype)), TensorType(dtype, ()))
        assert isinstance(pattern, ast.PatternOperator)
        children = [self.build(argument, scope) for argument in run_time_arguments(pattern)]
        if pattern.variadic is not None:
            members = self.bound[pattern.variadic]
            assert isinstance(members, tuple)
            children += members
        attributes: dict[str, Value] = dict(self.bundles[pattern.bundle]) if pattern.bundle is not None else {}
        for attribute in pattern.attributes:
            attributes[attribute.name] = evaluate(attribute.value, scope)
        outputs = right_outputs(pattern, self.terms.instances.base.operators)
        joint = self.terms.application(pattern.operator, children, attributes, outputs)
        self.made.append(self.terms.out(joint, pattern.output or 0))
        return self.made[-1]


def eliminate(
    terms: Terms, rule: ast.Eliminate, number: int, operand: int, map_: IndexMap | None, uses: Uses
) -> tuple[Applied, IndexMap]:
    """An operator's result as a view of one of its operands.

    Args:
        number: the result.
        map_: a cheaper form of the index map, None for the one that the definition gives.

    Raises:
        Refused: a guard does not hold, or the operator is no view of the operand.
    """
    place = terms.terms[number].key if terms.terms[number].operator == OUT else 0
    assert isinstance(place, int)
    term = application_of(terms, number, place)
    if term.operator != rule.operator:
        raise Refused(f"{rule.name} is about {rule.operator}, not {term.operator}")
    if not 0 <= operand < len(term.children) or ABSENT in term.children:
        raise Refused(f"{term.operator} has no operand number {operand}")
    types = [terms.terms[child].type for child in term.children]
    instance = terms.instance_of(term)
    formals = [formal.name for formal in instance.operator.inputs if formal.constant is None]
    bound: dict[str, Bound] = dict(zip(formals, term.children, strict=False))
    needed: list[tuple[int, int]] = []
    scope = _scope(instance.values, bound, terms, uses, needed)
    guards = [checked_guard(guard, scope, bound, terms) for guard in rule.guards]
    equation = next(e for e in instance.equations if e.tensor == output_name(place))
    read = equation.view
    found = None if equation.scan else map_of_equation(equation, types[operand].shape)
    if read is None or found is None or read.tensor != operand_name(operand) or any(i.gathered for i in found.indices):
        raise Refused(f"{term.operator} is no view of its operand {operand}")
    view = terms.view(term.children[operand], same_map(found, map_))
    applied = Applied(left=number, right=view, made=(view,), bound=bound, guards=guards, needed=tuple(needed))
    return applied, found


def same_map(computed: IndexMap, claimed: IndexMap | None) -> IndexMap:
    """The claimed form of a map, which must be equal to the computed one at every element."""
    if claimed is None or claimed == computed:
        return computed
    if claimed.variables != computed.variables or claimed.source != computed.source:
        raise Refused("the index map is over other extents")
    if not all(map(equal_indices, claimed.indices, computed.indices)):
        raise Refused(f"the index map is {computed}, not {claimed}")
    return claimed


def checked_guard(guard: ast.Expression, scope: Scope, bound: Mapping[str, Bound], terms: Terms) -> GuardData:
    """A guard that holds, with what its names stand for."""
    try:
        holds = truth(guard, scope)
    except (DefinitionError, Unsupported) as reason:
        raise Refused(f"the guard {print_expression(guard)} cannot be decided: {reason}") from reason
    values: dict[str, str] = {}
    for name in sorted(names_in(guard)):
        subject = bound.get(name)
        if subject is not None:
            members = [subject] if isinstance(subject, int) else subject
            values[name] = ", ".join(str(terms.terms[member].type) for member in members)
        elif name in scope.values:
            values[name] = describe(scope.values[name])
    text = print_expression(guard)
    if not holds:
        raise Refused(f"the guard {text} does not hold: {values}")
    return {"guard": text, "values": values}


@dataclass(frozen=True)
class _Answers:
    """What guards ask; `needed` takes in which terms had to be known constants."""

    terms: Terms
    given: Mapping[str, int]
    possible: Callable[[int], frozenset[int]]
    needed: list[tuple[int, int]]

    def rank(self, number: int) -> int:
        return len(self.terms.terms[number].type.shape)

    def constant(self, number: int) -> bool:
        known = self.terms.constant_of(number)
        if known is not None:
            self.needed.append((number, known))
        return known is not None

    def value(self, number: int) -> float | None:
        return self.terms.uniform(number) if self.constant(number) else None

    def uses(self, number: int, name: str) -> int:
        possible = self.possible(number)
        count = self.given.get(name, min(possible))
        if count not in possible:
            raise Refused(f"{name} has {' or '.join(map(str, sorted(possible)))} readers, not {count}")
        return count


def application_of(terms: Terms, number: int, place: int) -> Term:
    """The application of which a term is the result at a place."""
    term = terms.terms[number]
    if term.operator != OUT:
        if place or len(term.types) != 1:
            raise Refused(f"the rule wants result {place} of an operator with several, not one of {term.operator}")
        return term
    if term.key != place:
        raise Refused(f"the rule wants result {place}, not {term.key}")
    return terms.terms[term.children[0]]


def commutes(base: Definitions, operator: str) -> bool:
    """Whether an operator's two operands may change places, by its definition."""
    return any(overload.commutative for overload in base.operators.get(operator, ()))


def _scope(
    values: Mapping[str, Value], bound: Mapping[str, Bound], terms: Terms, uses: Uses, needed: list[tuple[int, int]]
) -> Scope:
    """What guards see."""

    def tensor(name: str, subject: Bound) -> TensorName | TensorList:
        if isinstance(subject, int):
            return TensorName(name, terms.terms[subject].type)
        return TensorList(tuple(TensorName(f"{name}{j}", terms.terms[one].type) for j, one in enumerate(subject)))

    def array(name: str) -> Array | None:
        subject = bound.get(name)
        if not isinstance(subject, int) or (known := terms.constant_of(subject)) is None:
            return None
        needed.append((subject, known))
        return terms.value(known)

    tensors = {name: tensor(name, subject) for name, subject in bound.items()}
    queries = queries_of(bound, _Answers(terms, *uses, needed))
    scope = Scope(dict(values), dict(tensors), terms.instances.base.functions, queries)
    scope.elements = over_elements(array)
    return scope

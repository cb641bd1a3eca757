"""Whether both sides of a rewrite have one type for all ranks, extents and dtypes that the signatures admit.

Variables of a pattern stand for shapes with unknowns.  The left side is typed under every overload of its operators,
and all that a match implies is assumed: equal extents, shapes that broadcast, requirements, guards.  The right side is
typed from that alone.  A definition that leaves this language (variadic operands, most of all) gives no answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from smartmem_rules.analysis.types.environment import Clash, Environment, Unproven
from smartmem_rules.analysis.types.shapes import Atom, Rest, Shape
from smartmem_rules.analysis.types.signatures import Signatures
from smartmem_rules.analysis.types.symbolic_lists import Symbolic
from smartmem_rules.analysis.types.symbolic_values import Evaluator, Names, Type
from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.binding import DTYPE_CLASSES
from smartmem_rules.tensor.instantiate import Definitions

MOST_WAYS = 256
"""Ways to choose overloads; beyond that nothing is claimed."""
ABSENT = "_"
_ANY = frozenset(DTYPE_CLASSES["any"])


@dataclass(frozen=True)
class Proof:
    """That both sides have one type, or where they have not: how each side's type reads."""

    holds: bool
    left: str = ""
    right: str = ""

    @property
    def shown(self) -> bool:
        """Whether the types have names for all their parts."""
        return "?" not in self.left + self.right


def prove_types(base: Definitions, left: s.Pattern, right: s.Pattern, guards: Sequence[s.Expression]) -> Proof | None:
    """The proof that a directed rewrite keeps the type; None where the question has no symbolic form.

    `holds` is False where the sides' types read differently, which guards that have no symbolic form may still mend.
    """
    try:
        return _Typist(base=base, guards=guards, signatures=Signatures(base.functions)).prove(left, right)
    except (Unproven, RecursionError):
        return None


@dataclass
class _Match:
    """One way to match the left side."""

    environment: Environment
    tensors: dict[str, Type | None] = field(default_factory=dict)
    values: dict[str, Symbolic] = field(default_factory=dict)
    bundles: dict[str, tuple[s.Operator, dict[str, Symbolic]]] = field(default_factory=dict)
    made: dict[s.Pattern, tuple[Type, ...]] = field(default_factory=dict)
    optional: set[Atom] = field(default_factory=set)
    """Attributes of which it is not known whether they are there."""
    overloads: dict[s.Pattern, s.Operator] = field(default_factory=dict)
    """What was chosen for each application."""

    def copy(self) -> _Match:
        return _Match(
            self.environment.copy(),
            dict(self.tensors),
            dict(self.values),
            dict(self.bundles),
            dict(self.made),
            set(self.optional),
            dict(self.overloads),
        )

    def names(self) -> Names:
        return Names(dict(self.values), dict(self.tensors))


@dataclass(kw_only=True)
class _Typist:
    base: Definitions
    guards: Sequence[s.Expression]
    signatures: Signatures
    ways: int = 0
    results: dict[s.Pattern, int] = field(default_factory=dict)

    def prove(self, left: s.Pattern, right: s.Pattern) -> Proof | None:
        start = _Match(Environment())
        for node in nodes(left):
            if isinstance(node, s.PatternOperator):
                self.results[_node(node)] = max(self.results.get(_node(node), 0), node.output or 0)
        for name in dict.fromkeys(_variables(left)):
            atom = start.environment.fresh(name)
            dtype = start.environment.new_dtype(_ANY)
            start.tensors[name] = Type(dtype, Shape((Rest(atom),)))
        proofs = []
        for expected, match in self._typed(left, start):
            proof = self._attempt(expected, match.copy(), right)
            if proof is None or not proof.holds:
                proof = self._second_look(left, right, start, match)
            # where no right side can be made the rule does not fire
            if proof is not None:
                proofs.append(proof)
        return next((proof for proof in proofs if not proof.holds), proofs[0] if proofs else None)

    def _attempt(self, expected: Type, match: _Match, right: s.Pattern) -> Proof | None:
        try:
            return self._side(expected, match, right)
        except Unproven:
            return None

    def _second_look(self, left: s.Pattern, right: s.Pattern, start: _Match, first: _Match) -> Proof | None:
        """What the first look at a way to match finds out (ranks, mostly) makes the second one more exact."""
        again = start.copy()
        environment, learned = again.environment, first.environment
        environment.made = learned.made
        environment.shapes, environment.dims = dict(learned.shapes), dict(learned.dims)
        environment.dtypes, environment.allowed = dict(learned.dtypes), dict(learned.allowed)
        environment.free, environment.within = set(learned.free), list(learned.within)
        again.values = dict(first.values)
        again.overloads = first.overloads
        proof = None
        for expected, match in self._typed(left, again):
            proof = self._side(expected, match, right)
        return proof

    def _typed(self, left: s.Pattern, start: _Match) -> Iterator[tuple[Type, _Match]]:
        for expected, match in self._left(left, start.copy()):
            try:
                self.signatures.assume(self.guards, match.environment, match.names())
            except Clash:
                continue
            if expected is not None:
                yield expected, match

    def _side(self, expected: Type, match: _Match, right: s.Pattern) -> Proof | None:
        """Whether all ways to make the right side give the expected type."""
        match.environment.fix()
        proof = None
        for made, way in self._right(right, match.copy(), expected.dtype):
            environment = way.environment
            one, other = environment.dtype(expected.dtype), environment.dtype((made or expected).dtype)
            alike = one == other or environment.allowed[one] == environment.allowed[other]
            same = made is not None and environment.shape(made.shape) == environment.shape(expected.shape)
            proof = Proof(same and alike, _shown(way, expected), "absent" if made is None else _shown(way, made))
            if not proof.holds:
                return proof
        return proof

    # --- the left side ---

    def _left(self, pattern: s.Pattern, match: _Match) -> Iterator[tuple[Type | None, _Match]]:
        if isinstance(pattern, s.PatternVariable):
            yield (None if pattern.name == ABSENT else match.tensors[pattern.name]), match
            return
        if isinstance(pattern, s.PatternNumber):
            yield Type(match.environment.new_dtype(_ANY), Shape()), match
            return
        assert isinstance(pattern, s.PatternOperator)
        if pattern.variadic is not None:
            raise Unproven
        key = _node(pattern)
        if key in match.made:
            yield match.made[key][pattern.output or 0], match
            return
        for operands, known in self._operands(pattern.arguments, match):
            chosen = match.overloads.get(key)
            for operator in (chosen,) if chosen is not None else self.base.operators.get(pattern.operator, ()):
                self._count()
                way = known.copy()
                way.overloads[key] = operator
                try:
                    attributes = self._left_attributes(pattern, operator, way)
                    types = self.signatures.applied(
                        operator, operands, attributes, way.environment, self._results(pattern)
                    )
                except Clash:
                    continue
                way.made[key] = types
                yield types[pattern.output or 0], way

    def _operands(self, arguments: tuple[s.Pattern, ...], match: _Match) -> Iterator[tuple[list[Type | None], _Match]]:
        if not arguments:
            yield [], match
            return
        for before, known in self._operands(arguments[:-1], match):
            for last, way in self._left(arguments[-1], known):
                yield [*before, last], way

    def _left_attributes(self, pattern: s.PatternOperator, operator: s.Operator, match: _Match) -> dict[str, Symbolic]:
        evaluator = Evaluator(match.environment, self.base.functions)
        given = {attribute.name: attribute.value for attribute in pattern.attributes}
        values: dict[str, Symbolic] = {}
        first = match.bundles.get(pattern.bundle or "")
        for name, required, default in _attributes(operator):
            written = given.pop(name, None)
            if written is None and first is not None and name in first[1]:
                values[name] = first[1][name]
            elif written is None:
                values[name] = match.environment.fresh(name)
            elif isinstance(written, s.Name):
                values[name] = match.values.setdefault(written.id, match.environment.fresh(written.id))
            else:
                values[name] = evaluator.value(written, match.names())
            found = values[name]
            if isinstance(found, Atom) and not required and default is None:
                match.optional.add(found)
        if given:
            raise Clash
        if pattern.bundle is not None:
            match.bundles.setdefault(pattern.bundle, (operator, values))
        return values

    # --- the right side ---

    def _right(self, pattern: s.Pattern, match: _Match, dtype: str) -> Iterator[tuple[Type | None, _Match]]:
        if isinstance(pattern, s.PatternVariable):
            yield (None if pattern.name == ABSENT else match.tensors[pattern.name]), match
            return
        if isinstance(pattern, s.PatternNumber | s.PatternComputed):
            yield Type(dtype, Shape()), match
            return
        assert isinstance(pattern, s.PatternOperator)
        if pattern.variadic is not None:
            raise Unproven
        place = pattern.output or 0
        for operands, known in self._right_operands(pattern.arguments, match, dtype):
            for operator in self.base.operators.get(pattern.operator, ()):
                self._count()
                way = known.copy()
                try:
                    attributes = self._right_attributes(pattern, operator, way)
                    made = self.signatures.applied(operator, operands, attributes, way.environment, place + 1)[place]
                except Clash:
                    continue
                yield made, way
                if _same_dtypes(operands, known.environment, way.environment):
                    break  # the first overload that takes the operands is the one

    def _right_operands(
        self, arguments: tuple[s.Pattern, ...], match: _Match, dtype: str
    ) -> Iterator[tuple[list[Type | None], _Match]]:
        if not arguments:
            yield [], match
            return
        for before, known in self._right_operands(arguments[:-1], match, dtype):
            for last, way in self._right(arguments[-1], known, dtype):
                yield [*before, last], way

    def _right_attributes(self, pattern: s.PatternOperator, operator: s.Operator, match: _Match) -> dict[str, Symbolic]:
        evaluator = Evaluator(match.environment, self.base.functions)
        given: dict[str, Symbolic] = {}
        if pattern.bundle is not None:
            source, values = match.bundles[pattern.bundle]
            if list(_attributes(source)) != list(_attributes(operator)):
                raise Unproven
            given |= values
        own = {attribute.name: evaluator.value(attribute.value, match.names()) for attribute in pattern.attributes}
        values = {}
        for name, required, default in _attributes(operator):
            value = own.pop(name) if name in own else given.get(name)
            if isinstance(value, Atom) and value in match.optional and (required or default is not None):
                match.environment.known(Atom("present", (value,)))
            if value is None and required:
                raise Clash
            values[name] = evaluator.value(default, Names()) if value is None and default is not None else value
        if own:
            raise Clash
        return values

    def _results(self, pattern: s.PatternOperator) -> int:
        """How many results of an application the left side speaks of."""
        return 1 + max(self.results.get(_node(pattern), 0), pattern.output or 0)

    def _count(self) -> None:
        self.ways += 1
        if self.ways > MOST_WAYS:
            raise Unproven


def _variables(pattern: s.Pattern) -> Iterator[str]:
    if isinstance(pattern, s.PatternVariable) and pattern.name != ABSENT:
        yield pattern.name
    elif isinstance(pattern, s.PatternOperator):
        for argument in pattern.arguments:
            yield from _variables(argument)


def _node(pattern: s.PatternOperator) -> s.Pattern:
    """What equal applications in one left side share, whichever of its results is meant."""
    return s.PatternOperator(
        pattern.span,
        pattern.operator,
        pattern.arguments,
        pattern.attributes,
        pattern.bundle,
        pattern.variadic,
        None,
    )


def _attributes(operator: s.Operator) -> Iterator[tuple[str, bool, s.Expression | None]]:
    """Attributes and compile-time operands: the name, whether it must be there, the default."""
    for item in operator.inputs:
        if item.constant is not None:
            yield item.name, item.default is None and not item.optional, item.default
    for attribute in operator.attributes:
        yield attribute.name, attribute.required, attribute.default


def _same_dtypes(operands: Sequence[Type | None], before: Environment, after: Environment) -> bool:
    """Whether an overload takes the operands whatever their dtypes."""
    names = [operand.dtype for operand in operands if operand is not None]
    return all(before.allowed[before.dtype(name)] == after.allowed[after.dtype(name)] for name in names)


def _shown(match: _Match, type_: Type) -> str:
    environment = match.environment
    allowed = environment.allowed[environment.dtype(type_.dtype)]
    dtype = next(iter(allowed)) if len(allowed) == 1 else "T"
    return f"{dtype}{environment.shape(type_.shape)}"

"""Instances of a rule's left side at open extents: every choice that an instance makes is one of a path."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.patterns import is_absent, operators_of, run_time_arguments
from smartmem_rules.rulebase.queries import queries_of
from smartmem_rules.tensor.binding import bind_operands
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.definitions.values import Scope, TensorName, evaluate, truth
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.instantiate import names_in
from smartmem_rules.tensor.ranges import agree
from smartmem_rules.verification.instances.attributes import Formal, is_required, kind_of
from smartmem_rules.verification.instances.draws import dtypes_of, formals_of
from smartmem_rules.verification.instances.roles import AXES, PERMUTATION, Hints, Role, operator_roles
from smartmem_rules.verification.proof.formulas import Unprovable
from smartmem_rules.verification.proof.open_instances import OpenInstances, open_question
from smartmem_rules.verification.proof.paths import Path
from smartmem_rules.verification.proof.signatures import bound_names, has_list_as_default, list_lengths, used_names
from smartmem_rules.verification.semantics.terms import Application, Leaf, Term, apply_operator, build_right

SPLAT = 2
"""Axes that a list of axes of a signature has at most."""
LEAST_RANK = 3
_DTYPE = "float32"


class NoInstance(Exception):
    """The choices of a path make no instance of the rule."""


def rank_bound(rule: ast.Rewrite, base: Mapping[str, Sequence[ast.Operator]]) -> int:
    """The rank up to which operands are looked at: that of the largest signature, of each list two axes."""
    most = LEAST_RANK
    for side in (rule.left, rule.right):
        for pattern in operators_of(side):
            for overload in base.get(pattern.operator, ()):
                for formal in overload.inputs:
                    if formal.type is not None:
                        lists = sum(isinstance(item, ast.Splat) for item in formal.type.shape)
                        most = max(most, len(formal.type.shape) - lists + SPLAT * bool(lists))
    return most


@dataclass
class OpenCase:
    """One instance along a path."""

    rule: ast.Rewrite
    pattern: ast.Pattern
    path: Path
    instances: OpenInstances
    bound: int
    hints: Hints
    leaves: dict[str, Leaf] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    bundles: dict[str, dict[str, Value]] = field(default_factory=dict)
    terms: dict[ast.Pattern, Term] = field(default_factory=dict)
    uniform: dict[str, int] = field(default_factory=dict)
    """The constants that are one number."""
    _constants: dict[str, bool] = field(default_factory=dict)
    _numbers: dict[str, int | None] = field(default_factory=dict)
    _names: int = 0

    def __post_init__(self) -> None:
        self.scope = Scope(self.values, {}, self.instances.base.functions)
        self.waiting = list(self.rule.guards)
        self.bindable = bound_names(self.pattern)

    # --- the sides ---

    def left(self) -> Application:
        """The left side. Raises NoInstance where the guards or definitions refuse it."""
        try:
            self._operands(self.pattern)
            self._ask_guards()
            term = self._term(self.pattern)
        except Unsupported as refusal:
            open_question(refusal)
            raise NoInstance(str(refusal)) from refusal
        self._ask_guards(everything=True)
        assert isinstance(term, Application)
        return term

    def right(self, pattern: ast.Pattern, left: Application) -> Term:
        """The right side as the engine builds it. Raises NoInstance where it turns the match down."""
        try:
            made = build_right(
                pattern, self.leaves.__getitem__, _no_members, self.bundles, self.scope, self.instances, left.type.dtype
            )
        except (Unsupported, DefinitionError) as refusal:
            open_question(refusal)
            raise NoInstance(str(refusal)) from refusal
        if made.type.dtype != left.type.dtype or not agree(made.type.shape, left.type.shape):
            raise NoInstance("the sides differ in type")
        return made

    def _term(self, pattern: ast.Pattern) -> Term | None:
        assert isinstance(pattern, ast.PatternOperator)
        if pattern.variadic is not None:
            raise Unprovable(f"{pattern.operator} takes any number of operands")
        arguments = run_time_arguments(pattern)
        overloads = self._overloads(pattern)
        operands = [self._operand(a, place, len(arguments), overloads) for place, a in enumerate(arguments)]
        if len(overloads) == 1:
            overload = overloads[0]
        else:
            if not overloads:
                raise NoInstance(f"{pattern.operator} takes no {len(arguments)} operands")
            overload = overloads[self.path.choose(len(overloads))]
        outputs = self._outputs(pattern, overload)
        self._ask_operands(overload, operands)
        given = self._attributes(pattern, overload, operands)
        self._ask_guards()
        term = apply_operator(pattern.operator, operands, given, outputs, pattern.output or 0, self.instances)
        if term.instance.operator is not overload:
            raise NoInstance("another overload takes the operands")
        self._bind(pattern, term, given)
        self.terms[pattern] = term
        self.scope.term = lambda asked: self._asked(asked).type
        return term

    def _ask_operands(self, overload: ast.Operator, operands: Sequence[Term | None]) -> None:
        """Ask what an operator requires of its operands alone, before each of its attributes is chosen."""
        scope = Scope(functions=self.instances.base.functions)
        try:
            bind_operands(overload, [None if o is None else o.type for o in operands], scope)
            known = scope.values.keys() | scope.tensors.keys()
            for requirement in overload.requires:
                if names_in(requirement) <= known and not truth(requirement, scope):
                    raise NoInstance(f"a requirement of {overload.name} does not hold ({requirement.span})")
        except (DefinitionError, Unsupported) as refusal:
            open_question(refusal)
            raise NoInstance(str(refusal)) from refusal

    def _operands(self, pattern: ast.Pattern) -> None:
        """Choose the shapes of all operands: most guards speak of these alone."""
        assert isinstance(pattern, ast.PatternOperator)
        arguments = run_time_arguments(pattern)
        overloads = self._overloads(pattern)
        for place, argument in enumerate(arguments):
            if isinstance(argument, ast.PatternOperator):
                self._operands(argument)
            elif isinstance(argument, ast.PatternVariable):
                self._operand(argument, place, len(arguments), overloads)

    def _overloads(self, pattern: ast.PatternOperator) -> list[ast.Operator]:
        count = len(run_time_arguments(pattern))
        return [o for o in self.instances.base.operators.get(pattern.operator, ()) if formals_of(o, count)]

    def _operand(self, argument: ast.Pattern, place: int, count: int, overloads: list[ast.Operator]) -> Term | None:
        if isinstance(argument, ast.PatternOperator):
            return self._term(argument)
        if is_absent(argument):
            return None
        if isinstance(argument, ast.PatternVariable) and argument.name in self.leaves:
            return self.leaves[argument.name]
        formals = [formals[place] for o in overloads if (formals := formals_of(o, count))]
        dtype = self._dtype([d for o, f in zip(overloads, formals, strict=True) for d in dtypes_of(o, f)])
        ranks = sorted({rank for formal in formals for rank in self._ranks(formal)})
        if not ranks:
            raise NoInstance("an operand of too high a rank")
        rank = ranks[self.path.choose(len(ranks))]
        number = None
        if isinstance(argument, ast.PatternVariable):
            name = argument.name
        else:
            assert isinstance(argument, ast.PatternNumber)
            self._names += 1
            name, number = f"number{self._names}", argument.value
        shape = tuple(self.path.extent(f"{name}.{axis}") for axis in range(rank))
        leaf = self.leaves[name] = Leaf(name, TensorType(dtype, shape), number)
        self.scope.tensors[name] = TensorName(name, leaf.type)
        return leaf

    def _dtype(self, allowed: Sequence[str]) -> str:
        if _DTYPE not in allowed:
            raise Unprovable("the proof is of real numbers")
        return _DTYPE

    def _ranks(self, formal: ast.Input) -> range:
        assert formal.type is not None
        lists = sum(isinstance(item, ast.Splat) for item in formal.type.shape)
        fixed = len(formal.type.shape) - lists
        return range(fixed, (self.bound if lists else fixed) + 1)

    def _outputs(self, pattern: ast.PatternOperator, overload: ast.Operator) -> int:
        least = 1 + (pattern.output or 0)
        if not any(o.index is not None for o in overload.outputs):
            return least
        others = [1 + (p.output or 0) for p in operators_of(self.pattern) if p.operator == pattern.operator]
        return least + self.path.choose(2 + max(others) - least)

    # --- attributes ---

    def _attributes(
        self, pattern: ast.PatternOperator, overload: ast.Operator, operands: Sequence[Term | None]
    ) -> dict[str, Value]:
        formals: dict[str, Formal] = {a.name: a for a in overload.attributes}
        formals |= {i.name: i for i in overload.inputs if i.constant is not None}
        roles = operator_roles(overload, self.instances.base.functions)
        lengths = list_lengths(overload, operands)
        given: dict[str, Value] = {}
        for attribute in pattern.attributes:
            formal = formals.get(attribute.name)
            if formal is None:
                raise NoInstance(f"this overload has no {attribute.name}")
            wanted = attribute.value
            if isinstance(wanted, ast.Name) and wanted.id not in self.values:
                given[attribute.name] = self._any(wanted.id, formal, roles[attribute.name], operands, lengths)
            else:
                value = evaluate(wanted, self.scope)
                listed = kind_of(formal) in ("ints", "floats") and not isinstance(value, tuple) and value is not None
                given[attribute.name] = (value,) if listed else value
        again = self.bundles.get(pattern.bundle) if pattern.bundle is not None else None
        used = used_names(overload)
        for name, formal in formals.items():
            if name in given:
                continue
            if again is not None:
                given[name] = again.get(name)
            elif name in used or is_required(formal):
                self._names += 1
                given[name] = self._any(f"{name}{self._names}", formal, roles[name], operands, lengths)
        return {name: value for name, value in given.items() if value is not None}

    def _any(self, name: str, formal: Formal, role: Role, operands: Sequence[Term | None], lengths: set[int]) -> Value:
        """Any value that an attribute may have; that of a default is one of them."""
        kind = kind_of(formal)
        shapes = [o.type.shape for o in operands if o is not None]
        options: list[Value] = []
        if not is_required(formal) and not self._is_covered(formal, role, lengths):
            options.append(None)
        if kind == "string":
            words = sorted({*map(str, role.literals), *self.hints.words})
            # what is compared with no word names an element type: those of floats are all real numbers
            options += [*words, "another word"] if words else [_DTYPE]
        elif kind == "int" and role.use == AXES:
            most = max(map(len, shapes), default=0)
            options += range(-most - 1, most + 2)
        elif kind == "ints" and role.use == AXES:
            options += self._lists_of_axes(max(map(len, shapes), default=0))
        elif kind == "ints" and role.use == PERMUTATION:
            options += itertools.permutations(range(len(shapes[0])))
        elif kind == "ints":
            options += self._lists(name, formal, lengths)
        elif kind in ("int", "bool"):
            options += self._integers(name, formal, max(map(len, shapes), default=0))
        elif kind == "float":
            options.append(self.path.real(name))
        else:
            raise Unprovable(f"an operand of the kind {kind} decides the definition")
        if not options:
            raise NoInstance("no value of an attribute")
        return options[self.path.choose(len(options))]

    def _is_covered(self, formal: Formal, role: Role, lengths: set[int]) -> bool:
        """Whether the default of an attribute is one of the values that are looked at."""
        default = formal.default
        if kind_of(formal) != "ints":
            return default is not None and not (isinstance(default, ast.Name) and default.id == "none")
        named = isinstance(default, ast.Call) and default.function in ("ones", "zeros") and role.use is None
        return named and bool(lengths)

    def _integers(self, name: str, formal: Formal, most: int) -> Iterator[Value]:
        """Any integer."""
        yield self.path.integer(name)

    def _lists(self, name: str, formal: Formal, lengths: set[int]) -> Iterator[Value]:
        """Lists with one or two numbers for each axis of a list of axes, as the default has; others are refused.

        Raises:
            Unprovable: the list has no default, and may be of any length.
        """
        if not has_list_as_default(formal):
            raise Unprovable(f"{formal.name} may be of any length")
        for length in sorted(lengths | {2 * n for n in lengths}):
            yield tuple(self.path.integer(f"{name}.{place}") for place in range(length))

    def _lists_of_axes(self, most: int) -> Iterator[Value]:
        """Ascending lists of different axes, counted from the front or from the end."""
        for length in range(most + 1):
            for axes in itertools.combinations(range(most), length):
                yield axes
                if axes:
                    yield tuple(axis - most for axis in axes)

    def _bind(self, pattern: ast.PatternOperator, term: Application, given: dict[str, Value]) -> None:
        actual = {**term.instance.values, **given}
        for attribute in pattern.attributes:
            wanted = attribute.value
            value = actual.get(attribute.name)
            if isinstance(wanted, ast.Name) and wanted.id not in self.values:
                self.values[wanted.id] = value
            elif isinstance(wanted, ast.Name) and not agree(self.values[wanted.id], value):
                raise NoInstance(f"{attribute.name} has another value")
        if pattern.bundle is not None:
            self.bundles.setdefault(pattern.bundle, given)

    # --- guards ---

    def _ask_guards(self, everything: bool = False) -> None:
        """Ask the guards of which all names are known."""
        bound: dict[str, Term | Sequence[Term]] = dict(self.leaves)
        self.scope.queries = queries_of(bound, self, self._asked)  # type: ignore[misc]
        for guard in list(self.waiting):
            unknown = names_in(guard) & self.bindable - self.leaves.keys() - self.values.keys()
            if unknown and not everything:
                continue
            self.waiting.remove(guard)
            try:
                holds = truth(guard, self.scope)
            except (DefinitionError, Unsupported) as failure:
                open_question(failure)
                holds = False
            if not holds:
                raise NoInstance("a guard does not hold")

    def _asked(self, pattern: ast.Pattern) -> Term:
        known = self.terms.get(pattern)
        if known is not None:
            return known
        return build_right(
            pattern, self.leaves.__getitem__, _no_members, self.bundles, self.scope, self.instances, _DTYPE
        )

    def rank(self, subject: Term) -> int:
        """What the guards may ask: the rank of a tensor."""
        return len(subject.type.shape)

    def constant(self, subject: Term) -> bool:
        """Whether a tensor is known when the model is optimized: any may be."""
        if not isinstance(subject, Leaf):
            return bool(self.path.choose(2))
        if subject.number is not None or subject.name in self.hints.constant:
            return True
        if subject.name in self.hints.variable:
            return False
        if subject.name not in self._constants:
            self._constants[subject.name] = bool(self.path.choose(2))
        return self._constants[subject.name]

    def value(self, subject: Term) -> float | None:
        """The number that all elements of a constant are, None where they are not one number."""
        if not isinstance(subject, Leaf):
            raise Unprovable("a guard asks for the value of a term")
        if subject.number is not None:
            return subject.number
        if subject.name not in self._numbers:
            single = self.path.choose(2) == 0
            self._numbers[subject.name] = self.path.real(f"value of {subject.name}") if single else None
        found = self._numbers[subject.name]
        if found is not None:
            self.uniform[subject.name] = found
        return found

    def uses(self, subject: Term, name: str) -> int:
        """How many operators read a tensor: any number."""
        return self.path.extent(f"uses of {name}")


def _no_members(name: str) -> tuple[Term, ...]:
    raise Unprovable("it takes any number of operands")

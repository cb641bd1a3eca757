"""Instances of a rule's left side that satisfy its guards, found by construction and repair."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from smartmem_rules.egraph.instances import Instances
from smartmem_rules.egraph.matching import queries
from smartmem_rules.egraph.model import Meta
from smartmem_rules.egraph.patterns import is_absent, operators_of, run_time_arguments
from smartmem_rules.language import syntax as ast
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.instantiate import FLOATS, names_in
from smartmem_rules.tensor.values import Scope, TensorList, TensorName, evaluate, truth
from smartmem_rules.verify.draws import DYADIC, Draws, Extents, bind_extents, dtypes_of, formals_of, hinted
from smartmem_rules.verify.roles import Hints, hints_of, operator_roles
from smartmem_rules.verify.terms import Application, Leaf, Term, apply_operator, build_right, reads_inside, subterms

Choices = dict[str, Any]
"""What makes up an instance, by slot: `shape:x`, `name:a`, `given:PATH`, `dtype`, `uniform:x` and the like."""

_DTYPES = ("float32", "float16", "float64", "int32", "int64", "uint8", "bool")
_DTYPE_WEIGHTS = (60, 5, 5, 12, 4, 4, 10)
_LOCAL_TRIES = 14
_PROBES = 4
_REPAIRS = 60
_HARD = 8
"""Repairs for each satisfied instance from which on a rule is hard to satisfy."""
MOST_ELEMENTS = 1500


class NoInstance(Exception):
    """A left side could not be built with some choices."""


@dataclass
class Case:
    """One instance of a rule: both sides at concrete types and attributes.

    Attributes:
        right: None where the engine turns the right side down (its type differs or no operator takes it).
        uniform: constants all of whose elements have one value.
        failing: the guards that do not hold.
    """

    left: Term
    right: Term | None
    scope: Scope
    choices: Choices
    constants: frozenset[str]
    uniform: dict[str, float]
    failing: list[ast.Expression] = field(default_factory=list)
    refusal: str | None = None
    slots: dict[str, set[str]] = field(default_factory=dict)

    @property
    def satisfied(self) -> bool:
        """Whether all guards hold."""
        return not self.failing


@dataclass
class Statistics:
    """How the search went."""

    generated: int = 0
    satisfied: int = 0
    refused: int = 0

    @property
    def share(self) -> float:
        """Satisfied of generated instances."""
        return self.satisfied / self.generated if self.generated else 0.0


class Search:
    """Finds instances of one direction of a rewrite."""

    def __init__(
        self,
        rule: ast.Rewrite,
        left: ast.Pattern,
        right: ast.Pattern,
        instances: Instances,
        seed: int,
        repairs: int = _REPAIRS,
    ) -> None:
        self.rule = rule
        self.left = left
        self.right = right
        self.instances = instances
        self.hints = hints_of(rule.guards, right)
        self.random = random.Random(seed)
        self.draws = Draws(self.random)
        self.statistics = Statistics()
        self.failures: dict[str, int] = {}
        self.built: set[str] = set()
        self.steps = 0
        self.repairs = repairs

    def cases(self, most_attempts: int) -> Iterator[Case | None]:
        """Satisfied instances whose sides have one type; None for every attempt that gave none."""
        yield from self._every_dtype()
        previous: Case | None = None
        while self.statistics.generated < most_attempts:
            start: Choices = {}
            hard = self.steps > _HARD * max(1, self.statistics.satisfied)
            if previous is not None and self.random.random() < (0.93 if hard else 0.7):
                # where new instances are hard to find, most are changed ones
                start = dict(previous.choices)
                for slot in self.random.sample(sorted(start), min(len(start), self.random.randint(1, 2 if hard else 3))):
                    del start[slot]
            found = self._satisfy(start)
            if found is not None:
                previous = found
            yield found

    def _every_dtype(self) -> Iterator[Case | None]:
        """Some instances of each element type that the left side admits: rules go wrong for one of them only."""
        for dtype in _DTYPES:
            for _ in range(_PROBES):
                if self._assemble({"dtype": dtype}) is None and dtype not in self.built:
                    continue
                for _ in range(2):
                    yield self._satisfy({"dtype": dtype})
                break

    def _satisfy(self, start: Choices) -> Case | None:
        self.statistics.generated += 1
        case = self._assemble(start)
        for _ in range(self.repairs):
            if case is None:
                case = self._assemble({})
                continue
            if case.satisfied and case.right is not None:
                self.statistics.satisfied += 1
                return case
            self.steps += 1
            changed = self._assemble(self._without(case))
            if changed is not None and _score(changed) <= _score(case):
                case = changed
        if case is not None and case.satisfied:
            self.statistics.satisfied += 1
            self.statistics.refused += 1
        return None

    def _without(self, case: Case) -> Choices:
        """The choices of a case without one or two that a failing guard depends on."""
        choices = dict(case.choices)
        slots = sorted(choices)
        if case.failing and self.random.random() < 0.9:
            names = names_in(self.random.choice(case.failing))
            slots = [s for s in slots if s.partition(":")[2] in names] or slots
            slots += [s for name in names for s in sorted(case.slots.get(name, ())) if s in choices]
        for slot in self.random.sample(slots, min(len(slots), self.random.choice((1, 1, 2)))):
            choices.pop(slot, None)
        return choices

    def _assemble(self, choices: Choices) -> Case | None:
        assembly = Assembly(self, dict(choices))
        try:
            return assembly.case()
        except NoInstance:
            if "dtype" in assembly.choices:
                dtype = assembly.choices["dtype"]
                self.failures[dtype] = self.failures.get(dtype, 0) + 1
            return None

    def dtype(self) -> str:
        """An element type that has not been refused again and again."""
        usable = [d for d in _DTYPES if d in self.built or self.failures.get(d, 0) < 25] or ["float32"]
        weights = [_DTYPE_WEIGHTS[_DTYPES.index(d)] for d in usable]
        return self.random.choices(usable, weights)[0]

    def build(self, choices: Choices) -> Case | None:
        """The instance of given choices, None where it is none."""
        return self._assemble(choices)


def _in_type(value: Value, formal: ast.Attribute | ast.Input, operands: list[Term | None]) -> Value:
    """A compile-time operand that is a number has the element type of the data."""
    data = next((o for o in operands if o is not None), None)
    if not isinstance(formal, ast.Input) or formal.constant != "float" or not isinstance(value, float) or data is None:
        return value
    if representable(value, data.type.dtype):
        return value
    return float(int(abs(value)))


def representable(number: float, dtype: str) -> bool:
    """Whether a number is a value of an element type."""
    if dtype in FLOATS:
        return True
    least = 0 if dtype.startswith("uint") or dtype == "bool" else -128
    return number == int(number) and least <= number <= (1 if dtype == "bool" else 127)


def _score(case: Case) -> int:
    return 2 * len(case.failing) + (case.right is None)


class Assembly:
    """Builds one instance; draws what the choices leave open."""

    def __init__(self, search: Search, choices: Choices) -> None:
        self.search = search
        self.choices = choices
        self.random = search.random
        self.leaves: dict[str, Leaf] = {}
        self.members: dict[str, tuple[Term, ...]] = {}
        self.values: dict[str, Value] = {}
        self.bundles: dict[str, dict[str, Value]] = {}
        self.given: dict[str, list[dict[str, Value]]] = {}
        self.slots: dict[str, set[str]] = {}
        self.scope = Scope(self.values, {}, search.instances.base.functions, {})

    def choose(self, slot: str, draw: Any) -> Any:
        """The chosen value of a slot, drawn where there is none."""
        if slot not in self.choices:
            self.choices[slot] = draw()
        return self.choices[slot]

    def case(self) -> Case:
        """The whole instance. Raises NoInstance."""
        dtype = self.choose("dtype", self.search.dtype)
        left = self._term(self.search.left, "0", dtype)
        assert left is not None
        if left.type.elements == 0 or any(t.type.elements > MOST_ELEMENTS for t in subterms(left)):
            raise NoInstance("empty or too large")
        self.search.built.add(dtype)
        constants, uniform = self._constants()
        self._complete_scope(constants, uniform)
        case = Case(left, None, self.scope, self.choices, constants, uniform, slots=self.slots)
        for guard in self.search.rule.guards:
            try:
                holds = truth(guard, self.scope)
            except (DefinitionError, Unsupported):
                holds = False
            if not holds:
                case.failing.append(guard)
        if not case.failing:
            self._right(case, left)
        return case

    def _right(self, case: Case, left: Term) -> None:
        try:
            right = build_right(
                self.search.right, self._leaf_or_fail, self._members_or_fail, self.bundles, self.scope,
                self.search.instances, left.type.dtype,
            )  # fmt: skip
        except (DefinitionError, Unsupported) as refusal:
            case.refusal = str(refusal)
            return
        if right.type != left.type:
            case.refusal = f"{left.type} became {right.type}"
            return
        case.right = right

    def _leaf_or_fail(self, name: str) -> Leaf:
        return self.leaves[name]

    def _members_or_fail(self, name: str) -> tuple[Term, ...]:
        return self.members[name]

    # --- the left side ---

    def _term(self, pattern: ast.Pattern, path: str, dtype: str) -> Term | None:
        assert isinstance(pattern, ast.PatternOperator)
        arguments = run_time_arguments(pattern)
        operands: dict[int, Term | None] = {}
        for place, argument in enumerate(arguments):
            if isinstance(argument, ast.PatternOperator):
                operands[place] = self._term(argument, f"{path}.{place}", dtype)
            elif is_absent(argument):
                operands[place] = None
            elif isinstance(argument, ast.PatternVariable) and argument.name in self.leaves:
                operands[place] = self.leaves[argument.name]
        count = len(arguments)
        if pattern.variadic is not None:
            count += self.choose(f"members:{pattern.variadic}", lambda: self.random.choice((1, 2, 3)))
        return self._apply(pattern, path, dtype, operands, count)

    def _apply(
        self, pattern: ast.PatternOperator, path: str, dtype: str, operands: dict[int, Term | None], count: int
    ) -> Term:
        overloads = [
            o for o in self.search.instances.base.operators.get(pattern.operator, ()) if formals_of(o, count) is not None
        ]
        if not overloads:
            raise NoInstance(f"{pattern.operator} takes no {count} operands")
        overload = overloads[self.choose(f"overload:{path}", lambda: self.random.randrange(len(overloads))) % len(overloads)]
        formals = formals_of(overload, count) or []
        outputs = self._outputs(pattern, path, overload)
        before = set(self.choices)
        reason = ""
        for attempt in range(_LOCAL_TRIES):
            if attempt:
                for slot in set(self.choices) - before:
                    del self.choices[slot]
                if attempt > _LOCAL_TRIES // 2:
                    for slot in [s for s in before if s.startswith(("given:" + path, "shape:#" + path))]:
                        self.choices.pop(slot, None)
            try:
                return self._try(pattern, path, dtype, overload, formals, dict(operands), outputs)
            except (Unsupported, DefinitionError) as refusal:
                reason = str(refusal)
        raise NoInstance(reason)

    def _outputs(self, pattern: ast.PatternOperator, path: str, overload: ast.Operator) -> int:
        least = 1 + (pattern.output or 0)
        if not any(o.index is not None for o in overload.outputs):
            return least
        other = self.given.get(pattern.operator, [])
        same = [int(g["#outputs"]) for g in other if "#outputs" in g]  # type: ignore[call-overload]
        others = [p for p in operators_of(self.search.left) if p.operator == pattern.operator]
        usual = max(least, *(1 + (p.output or 0) for p in others)) if self.random.random() < 0.8 else least

        def draw() -> int:
            if same and same[0] >= least and self.random.random() < 0.8:
                return same[0]
            return usual + self.random.choice((0, 0, 0, 1))

        return int(self.choose(f"outputs:{path}", draw))

    def _try(
        self,
        pattern: ast.PatternOperator,
        path: str,
        dtype: str,
        overload: ast.Operator,
        formals: list[ast.Input],
        operands: dict[int, Term | None],
        outputs: int,
    ) -> Term:
        known: Extents = {}
        fresh: dict[str, Leaf] = {}
        for place, formal in enumerate(formals):
            operand = operands.get(place)
            if operand is not None:
                bind_extents(formal, operand.type.shape, known)
        arguments = run_time_arguments(pattern)
        members: list[Term] = []
        for place, formal in enumerate(formals):
            if place in operands:
                continue
            leaf = self._leaf(arguments, place, pattern, path, formal, overload, known, dtype, fresh)
            operands[place] = leaf
            if place >= len(arguments):
                members.append(leaf)
        ordered = [operands.get(place) for place in range(len(formals))]
        values = dict(self.values)
        given = self._attributes(pattern, path, overload, ordered, known, values, outputs, fresh)
        term = apply_operator(pattern.operator, ordered, given, outputs, pattern.output or 0, self.search.instances)
        if not reads_inside(term):
            raise Unsupported("an operand is smaller than what is read of it")
        self._bind(pattern, term, given, values)
        self.values.update(values)
        self.leaves.update(fresh)
        self.given.setdefault(pattern.operator, []).append({**given, "#outputs": outputs})
        if pattern.bundle is not None:
            self.bundles[pattern.bundle] = given
        if pattern.variadic is not None:
            self.members[pattern.variadic] = tuple(members)
        return term

    def _leaf(
        self,
        arguments: tuple[ast.Pattern, ...],
        place: int,
        pattern: ast.PatternOperator,
        path: str,
        formal: ast.Input,
        overload: ast.Operator,
        known: Extents,
        dtype: str,
        fresh: dict[str, Leaf],
    ) -> Leaf:
        number: int | float | None = None
        name = f"{pattern.variadic}{place - len(arguments)}"
        if place < len(arguments):
            argument = arguments[place]
            if isinstance(argument, ast.PatternNumber):
                name, number = f"#{path}.{place}", argument.value
            else:
                assert isinstance(argument, ast.PatternVariable)
                name = argument.name
        if name in fresh:
            return fresh[name]
        seen = [leaf.type.shape for leaf in (*self.leaves.values(), *fresh.values())]
        if number is not None:
            shape = self.choose(f"shape:{name}", lambda: self._number_shape(formal, known, seen))
        else:
            shape = self.choose(f"shape:{name}", lambda: self.search.draws.shape(formal, known, seen))
        bind_extents(formal, shape, known)
        allowed = dtypes_of(overload, formal)
        if number is not None:
            allowed = tuple(d for d in allowed if representable(number, d))
            if not allowed:
                raise Unsupported(f"{number} is no value of this type")
        preferred = dtype if dtype in allowed else next((d for d in _DTYPES if d in allowed), allowed[0])
        if preferred in ("float32", "int32") and self.random.random() < 0.04:
            other = self.random.choice([d for d in _DTYPES if d in allowed])
            preferred = self.choose(f"dtype:{name}", lambda: other)
        else:
            preferred = self.choices.get(f"dtype:{name}", preferred)
        leaf = fresh[name] = Leaf(name, TensorType(preferred, tuple(shape)), number)
        return leaf

    def _number_shape(self, formal: ast.Input, known: Extents, seen: list[tuple[int, ...]]) -> tuple[int, ...]:
        """Numbers are mostly scalars in models, but any constant of equal elements matches."""
        if self.random.random() < 0.6:
            return ()
        return self.search.draws.shape(formal, known, seen)

    def _attributes(
        self,
        pattern: ast.PatternOperator,
        path: str,
        overload: ast.Operator,
        operands: list[Term | None],
        known: Extents,
        values: dict[str, Value],
        outputs: int,
        fresh: Mapping[str, Leaf],
    ) -> dict[str, Value]:
        roles = operator_roles(overload, self.search.instances.base.functions)
        formals: dict[str, ast.Attribute | ast.Input] = {a.name: a for a in overload.attributes}
        formals |= {i.name: i for i in overload.inputs if i.constant is not None}
        shapes = [o.type.shape for o in operands if o is not None]
        mentioned = {a.name: a for a in pattern.attributes}
        given: dict[str, Value] = {}
        scope = self._partial_scope(fresh, values)
        for name, attribute in mentioned.items():
            formal = formals.get(name)
            if formal is None:
                raise Unsupported(f"this overload has no {name}")
            wanted = attribute.value
            kind = formal.kind if isinstance(formal, ast.Attribute) else formal.constant
            if isinstance(wanted, ast.Name) and wanted.id not in values:
                self.slots.setdefault(wanted.id, set()).add(f"name:{wanted.id}")

                def draw(formal: Any = formal, name: str = name, wanted: ast.Name = wanted, kind: str | None = kind) -> Value:
                    return self._named(wanted.id, kind, formal, roles[name], shapes, known, scope, outputs, values)

                given[name] = _in_type(self.choose(f"name:{wanted.id}", draw), formal, operands)
                values[wanted.id] = given[name]
            else:
                expected = evaluate(wanted, scope)
                given[name] = (expected,) if kind in ("ints", "floats") and not isinstance(expected, tuple | None) else expected
        open_names = [n for n in formals if n not in mentioned]
        if open_names:
            slot = f"given:{path}"
            if pattern.bundle is not None:
                self.slots.setdefault(pattern.bundle, set()).add(slot)
            free: dict[str, Value] = self.choose(
                slot, lambda: self._open(pattern, open_names, formals, roles, operands, known, scope, outputs)
            )
            given |= free
        return {name: value for name, value in given.items() if value is not None}

    def _open(
        self,
        pattern: ast.PatternOperator,
        names: list[str],
        formals: Mapping[str, ast.Attribute | ast.Input],
        roles: Mapping[str, Any],
        operands: list[Term | None],
        known: Extents,
        scope: Scope,
        outputs: int,
    ) -> dict[str, Value]:
        """Attributes that the pattern does not mention: it matches whatever they are."""
        earlier = self.given.get(pattern.operator, [])
        if earlier and self.random.random() < 0.7:
            return {n: earlier[-1].get(n) for n in names}
        found: dict[str, Value] = {}
        shapes = [o.type.shape for o in operands if o is not None]
        for name in names:
            formal = formals[name]
            required = formal.required if isinstance(formal, ast.Attribute) else (formal.default is None and not formal.optional)
            if required or self.random.random() < 0.35:
                drawn = self.search.draws.attribute(formal, roles[name], shapes, known, scope, outputs)
                found[name] = _in_type(drawn, formal, operands)
        return found

    def _named(
        self,
        name: str,
        kind: str | None,
        formal: ast.Attribute | ast.Input,
        role: Any,
        shapes: list[tuple[int, ...]],
        known: Extents,
        scope: Scope,
        outputs: int,
        values: Mapping[str, Value],
    ) -> Value:
        """A value for a name that the pattern binds: one that guards name, one that is bound already, or a new one."""
        hints: Hints = self.search.hints
        optional = isinstance(formal, ast.Attribute) or formal.optional or formal.default is not None
        chance = self.random.random()
        if name in hints.absent or (optional and name not in hints.present and chance < 0.2):
            return None
        listed = hinted(hints.values, name, kind)
        if listed and chance < 0.65:
            return self.random.choice(listed)
        listed = self._compared(name, scope, kind)
        if listed and chance < 0.8:
            return self.random.choice(listed)
        alike = [v for v in values.values() if v is not None and isinstance(v, tuple) == (kind in ("ints", "floats"))]
        alike = [v for v in alike if isinstance(v, str) == (kind == "string")]
        if alike and chance < 0.92 and chance > 0.5:
            return self.random.choice(alike)
        inner = [v[0] for v in values.values() if isinstance(v, tuple) and len(v) == 1]
        if inner and kind == "int" and chance > 0.5:
            return self.random.choice(inner)
        return self.search.draws.attribute(formal, role, shapes, known, scope, outputs)

    def _compared(self, name: str, scope: Scope, kind: str | None) -> list[Value]:
        """What guards of the form `name == e` ask for, where it can be computed already."""
        found: list[Value] = []
        for guard in self.search.rule.guards:
            if isinstance(guard, ast.Binary) and guard.operator == "==":
                for one, other in ((guard.left, guard.right), (guard.right, guard.left)):
                    if isinstance(one, ast.Name) and one.id == name:
                        try:
                            value = evaluate(other, scope)
                        except (DefinitionError, Unsupported):
                            continue
                        found.append((value,) if kind in ("ints", "floats") and not isinstance(value, tuple) else value)
        return found

    def _bind(self, pattern: ast.PatternOperator, term: Application, given: Mapping[str, Value], values: dict[str, Value]) -> None:
        """Give names what the engine gives them: the attribute with its default."""
        actual = {**term.instance.values, **given}
        for attribute in pattern.attributes:
            wanted = attribute.value
            value = actual.get(attribute.name)
            if isinstance(wanted, ast.Name) and wanted.id not in self.values:
                values[wanted.id] = value
            elif isinstance(wanted, ast.Name):
                expected = values[wanted.id]
                if expected != value and (expected,) != value:
                    raise Unsupported(f"{attribute.name} is {value}, not {expected}")

    # --- what guards see ---

    def _partial_scope(self, fresh: Mapping[str, Leaf], values: dict[str, Value]) -> Scope:
        tensors = {leaf.name: TensorName(leaf.name, leaf.type) for leaf in (*self.leaves.values(), *fresh.values())}
        metas = {name: Meta(t.type) for name, t in tensors.items()}
        return Scope(values, dict(tensors), self.scope.functions, queries(_HOST, metas))

    def _constants(self) -> tuple[frozenset[str], dict[str, float]]:
        hints = self.search.hints
        constants, uniform = set(), {}
        for name, leaf in self.leaves.items():
            if leaf.number is not None:
                constants.add(name)
                uniform[name] = float(leaf.number)
                continue
            fixed = True if name in hints.constant else False if name in hints.variable else None
            is_constant = fixed if fixed is not None else self.choose(f"constant:{name}", lambda: self.random.random() < 0.2)
            if not is_constant:
                continue
            constants.add(name)
            wanted = name in hints.uniform
            if leaf.type.elements == 1 or self.choose(
                f"one:{name}", lambda wanted=wanted: self.random.random() < (0.95 if wanted else 0.2)
            ):
                uniform[name] = self.choose(f"uniform:{name}", lambda name=name, leaf=leaf: self._uniform(name, leaf))
                if not representable(uniform[name], leaf.type.dtype):
                    raise NoInstance(f"{uniform[name]} is no {leaf.type.dtype}")
        return frozenset(constants), uniform

    def _uniform(self, name: str, leaf: Leaf) -> float:
        listed = self.search.hints.values.get(name, ())
        numbers = [float(v) for v in listed if not isinstance(v, str) and representable(v, leaf.type.dtype)]
        if numbers and self.random.random() < 0.8:
            return self.random.choice(numbers)
        return self.random.choice([v for v in DYADIC if representable(v, leaf.type.dtype)])

    def _complete_scope(self, constants: frozenset[str], uniform: Mapping[str, float]) -> None:
        bound: dict[str, Meta | list[Meta]] = {}
        numbers: dict[int, float] = {}
        for name, leaf in self.leaves.items():
            number = None
            if name in constants:
                number = len(numbers)
                numbers[number] = uniform.get(name, float("nan"))
            uses = self.choose(f"uses:{name}", lambda: self.random.choice((1, 2, 2, 3)))
            bound[name] = Meta(leaf.type, number, uses)
            self.scope.tensors[name] = TensorName(name, leaf.type)
        for name, members in self.members.items():
            bound[name] = [Meta(m.type) for m in members]
            self.scope.tensors[name] = TensorList(tuple(TensorName(f"{name}{j}", m.type) for j, m in enumerate(members)))
        known = {n: None if v != v else v for n, v in numbers.items()}
        host = SimpleNamespace(constants=SimpleNamespace(uniform=known.get))
        self.scope.queries = queries(host, bound)  # type: ignore[arg-type]


_HOST: Any = SimpleNamespace(constants=SimpleNamespace(uniform=lambda number: None))

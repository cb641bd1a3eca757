"""Whether both sides of a rewrite have the same type, by trying: where `analysis.symbolic` has no proof.

The left side is solved for operand types from its leaves upward: each operator draws the types that are still open
under its own signature.  Uses that the guards admit are then built from the right side as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from random import Random

from smartmem_rules.analysis.probes import Drawing, Operand
from smartmem_rules.analysis.types.bold import alike_drawn, named_value
from smartmem_rules.analysis.types.facts import Facts
from smartmem_rules.guards.computed import computed_number
from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.printing.printer import print_pattern
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import DefinitionError, Value
from smartmem_rules.tensor.definitions.values import Scope, TensorList, TensorName, evaluate, truth
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.instantiate import Definitions, Instance, instantiate, instantiate_overload

ATTEMPTS = 48
WANTED = 12
_BOLD = 32
"""Further attempts where the left side names attributes."""
_CUBES = 0.3
"""Share of these in which all extents of a tensor are equal, as guards may ask."""
ABSENT = "_"


@dataclass(frozen=True, kw_only=True)
class Typing:
    """What was found: uses at which both sides agree, one at which they do not, and whether any was found at all."""

    agreed: int
    differing: str | None = None
    left: str = ""
    right: str = ""
    refused: str | None = None
    """Of uses that no guard admits one."""


@dataclass(kw_only=True)
class _Use:
    """The types, attributes and facts that one attempt has chosen."""

    tensors: dict[str, Operand] = field(default_factory=dict)
    lists: dict[str, list[TensorType]] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    bundles: dict[str, Mapping[str, Value]] = field(default_factory=dict)
    instances: dict[str, Instance] = field(default_factory=dict)


class _NoUse(Exception):
    """This attempt cannot be completed."""


def check_types(
    base: Definitions, left: s.Pattern, right: s.Pattern, guards: tuple[s.Expression, ...], wanted: int = WANTED
) -> Typing:
    """Try a directed rewrite at several operand types, until both sides agreed at `wanted` of them."""
    facts = Facts.of(guards)
    agreed = 0
    found = Typing(agreed=0)
    parts = 1 + max((node.output or 0 for node in nodes(left) if isinstance(node, s.PatternOperator)), default=0)
    refused: str | None = None
    bold = _BOLD if _binds_attributes(left) else 0
    for number in range(ATTEMPTS + bold):
        if (number < ATTEMPTS and agreed >= wanted) or (number >= ATTEMPTS and found.differing is not None):
            continue
        solver = Solver.of(base, number, facts, parts)
        expected = solver.attempt(left)
        if expected is None:
            continue
        scope = solver.scope()
        try:
            holds = all(truth(guard, scope) for guard in guards)
        except Exception:
            holds = False
        if not holds:
            refused = refused or solver.shown()
            continue
        actual = solver.build(right, expected)
        if actual == str(expected):
            agreed += 1
        elif found.differing is None and _is_computable(base, left, number, facts, parts):
            found = Typing(agreed=0, differing=solver.shown(), left=str(expected), right=actual)
    return Typing(agreed=agreed, differing=found.differing, left=found.left, right=found.right, refused=refused)


def _meant(overloads: Sequence[s.Operator], count: int) -> Sequence[s.Operator]:
    """The overloads that a pattern of so many operands may mean: of the newest opset, if any is."""
    newest = [one for one in overloads if one.onnx is None or one.onnx.until is None] or overloads
    tensors = ([item for item in one.inputs if item.constant is None] for one in newest)
    fitting = [
        one
        for one, items in zip(newest, tensors, strict=True)
        if len(items) >= count or any(item.variadic for item in items)
    ]
    return fitting or newest


def _is_computable(base: Definitions, left: s.Pattern, number: int, facts: Facts, parts: int) -> bool:
    """Whether the left side has a value at a use, and not only a type."""
    return replace(Solver.of(base, number, facts, parts), types_only=False).attempt(left) is not None


def _binds_attributes(left: s.Pattern) -> bool:
    return any(isinstance(node, s.PatternAttribute) and isinstance(node.value, s.Name) for node in nodes(left))


@dataclass(kw_only=True)
class Solver:
    """One attempt to give the variables of a left side types at which it has a type."""

    base: Definitions
    random: Random
    number: int
    use: _Use
    facts: Facts
    parts: int
    """How many results of an operator with a variadic output the pattern speaks of."""
    types_only: bool = True
    bold: bool = False
    """Whether attributes that the pattern names are drawn though they have defaults, and shapes like earlier ones."""

    @staticmethod
    def of(base: Definitions, number: int, facts: Facts, parts: int) -> Solver:
        """The attempt of a number."""
        bold = number >= ATTEMPTS
        return Solver(base=base, random=Random(number), number=number, use=_Use(), facts=facts, parts=parts, bold=bold)

    @staticmethod
    def drawn(base: Definitions, number: int, facts: Facts, left: s.Pattern) -> str | None:
        """Why the attempt of a number gives a left side no type; None where it does."""
        parts = 1 + max((node.output or 0 for node in nodes(left) if isinstance(node, s.PatternOperator)), default=0)
        solver = Solver.of(base, number, facts, parts)
        try:
            solver.solve(left)
        except Exception as failure:  # as in `attempt`
            return str(failure) or type(failure).__name__
        return None

    def attempt(self, left: s.Pattern) -> TensorType | None:
        """`solve`, None where this attempt cannot be completed."""
        try:
            return self.solve(left)
        except Exception:  # an author's definition may break anything; that must not end the check
            return None

    def solve(self, pattern: s.Pattern) -> TensorType:
        """The type of a left side whose variables are given types."""
        assert isinstance(pattern, s.PatternOperator)
        overloads = _meant(self.base.operators[pattern.operator], len(self._arguments(pattern)))
        operator = overloads[0] if self.number < 3 else self.random.choice(overloads)
        drawing = Drawing(self.base, operator, self.random, self.number, wanted=self.facts.wanted(self.number))
        known = self._known(pattern, drawing)
        arguments = self._arguments(pattern)
        count = len(arguments) + (2 if pattern.variadic is not None else 0)
        operands = drawing.operands(known, count if pattern.variadic is None else None)
        for place, argument in enumerate(arguments):
            if isinstance(argument, s.PatternVariable) and argument.name != ABSENT:
                operands[place] = self._tensor(argument.name, operands[place])
        if pattern.variadic is not None:
            members = [operand for operand in operands[len(arguments) :] if operand is not None]
            self.use.lists.setdefault(pattern.variadic, members)
        given = self._given(pattern, drawing)
        first = self.use.bundles.get(pattern.bundle or "")
        if first is not None:
            given = {**{n: v for n, v in first.items() if n not in {a.name for a in pattern.attributes}}, **given}
        attributes = drawing.attributes(given)
        outputs = max(drawing.outputs, (pattern.output or 0) + 1)
        if drawing.outputs > 1:
            outputs = max(outputs, self.parts)
        key = _shape_of(pattern)
        instance = self.use.instances.get(key)
        if instance is None:
            instance = instantiate_overload(self.base, operator, operands, attributes, outputs, self.types_only)
            self.use.instances[key] = instance
        self._bind(pattern, {**instance.values, **attributes})
        if pattern.bundle is not None:
            self.use.bundles.setdefault(pattern.bundle, attributes)
        if (pattern.output or 0) >= len(instance.outputs):
            raise _NoUse
        return instance.outputs[pattern.output or 0]

    def _known(self, pattern: s.PatternOperator, drawing: Drawing) -> dict[int, Operand]:
        known: dict[int, Operand] = {}
        for place, argument in enumerate(self._arguments(pattern)):
            if isinstance(argument, s.PatternOperator):
                known[place] = self.solve(argument)
            elif isinstance(argument, s.PatternVariable):
                if argument.name == ABSENT:
                    known[place] = None
                elif argument.name in self.use.tensors:
                    known[place] = self.use.tensors[argument.name]
                elif self.bold and (same := self.use.tensors.get(self.facts.alike.get(argument.name, ""))) is not None:
                    known[place] = same
                elif argument.name in self.facts.ranks:
                    cube = self.bold and self.random.random() < _CUBES
                    extents = tuple(self.random.choice((2, 3)) for _ in range(self.facts.ranks[argument.name]))
                    extents = extents[:1] * len(extents) if cube else extents
                    known[place] = TensorType(drawing.fitting(place, self._neighbour(known)), extents)
                elif argument.name in self.facts.values or self._is_small(argument.name):
                    dtype = drawing.fitting(place, self._neighbour(known))
                    known[place] = TensorType(dtype, self._shape_of_number())
                elif self.bold and (alike := alike_drawn(self.use.tensors, self.random)) is not None:
                    known[place] = alike
        for place, argument in enumerate(self._arguments(pattern)):
            if isinstance(argument, s.PatternNumber):
                known[place] = TensorType(drawing.fitting(place, self._neighbour(known)), ())
        return known

    def _shape_of_number(self) -> tuple[int, ...]:
        """A number may have axes: an exporter writes [1, 1, 1] as well as []."""
        return (1,) * self.random.choice((1, 2, 4)) if self.number % 4 == 3 else ()

    def _is_small(self, name: str) -> bool:
        return name in self.facts.constants and self.random.random() < 0.3

    def _neighbour(self, known: Mapping[int, Operand]) -> str:
        return next((type_.dtype for type_ in known.values() if type_ is not None), self._first_dtype())

    def _first_dtype(self) -> str:
        """What is drawn where nothing says which element type is meant."""
        return next(iter(self.facts.wanted(self.number)), "float32")

    def _arguments(self, pattern: s.PatternOperator) -> list[s.Pattern]:
        arguments = list(pattern.arguments)
        while arguments and _is_absent(arguments[-1]) and pattern.variadic is None:
            arguments.pop()
        return arguments

    def _tensor(self, name: str, drawn: Operand) -> Operand:
        return self.use.tensors.setdefault(name, drawn)

    def _given(self, pattern: s.PatternOperator, drawing: Drawing) -> dict[str, Value]:
        """Attributes that the pattern fixes: literals, and names that have a value already."""
        given: dict[str, Value] = {}
        for attribute in pattern.attributes:
            if not isinstance(attribute.value, s.Name):
                given[attribute.name] = evaluate(attribute.value, self.scope())
            elif attribute.value.id in self.use.values:
                value = self.use.values[attribute.value.id]
                if value is not None:
                    given[attribute.name] = value
            elif attribute.value.id in self.facts.values:
                given[attribute.name] = self.facts.values[attribute.value.id]
            elif attribute.value.id in self.facts.present:
                given[attribute.name] = drawing.value_of(attribute.name)
            elif self.bold and (value := named_value(drawing, attribute.name)) is not None:
                given[attribute.name] = value
        return given

    def _bind(self, pattern: s.PatternOperator, actual: Mapping[str, Value]) -> None:
        for attribute in pattern.attributes:
            if isinstance(attribute.value, s.Name):
                value = actual.get(attribute.name)
                bound = self.use.values.setdefault(attribute.value.id, value)
                if bound != value and (bound,) != value:
                    raise _NoUse

    def scope(self) -> Scope:
        """What guards and attributes of the right side see."""
        tensors: dict[str, TensorName | TensorList | None] = {
            name: None if type_ is None else TensorName(name, type_) for name, type_ in self.use.tensors.items()
        }
        for name, members in self.use.lists.items():
            tensors[name] = TensorList(tuple(TensorName(f"{name}{n}", type_) for n, type_ in enumerate(members)))
        return Scope(dict(self.use.values), tensors, self.base.functions, self._queries(), self._term, self._elements)

    @staticmethod
    def _elements(expr: s.Reduction, _: Scope) -> Value:
        """Elements are drawn by no attempt: they are taken to be what guards ask."""
        return True if expr.kind in ("all", "any") else 1

    def _term(self, pattern: s.Pattern) -> TensorType | None:
        return self._build(pattern, next((t.dtype for t in self.use.tensors.values() if t is not None), "float32"))

    def _queries(self) -> dict[str, Callable[..., Value]]:
        def subject(expr: s.Call) -> str:
            argument = expr.arguments[0] if expr.arguments else None
            if isinstance(argument, s.Term):
                # of what is computed nothing is known but its type
                return print_pattern(argument.pattern)
            if isinstance(argument, s.Subscript):
                argument = argument.base
            if not isinstance(argument, s.Name) or argument.id not in {*self.use.tensors, *self.use.lists}:
                raise DefinitionError(f"{expr.span}: {expr.function} needs a tensor that the left side binds")
            return argument.id

        def value(expr: s.Call, _: Scope) -> Value:
            name = subject(expr)
            return self.facts.values.get(name, 2.5 if name in self.facts.constants else None)

        def rank(expr: s.Call, scope: Scope) -> Value:
            argument = expr.arguments[0]
            type_ = self.use.tensors.get(argument.id) if isinstance(argument, s.Name) else None
            if isinstance(argument, s.Term):
                type_ = self._term(argument.pattern)
            if type_ is not None:
                return len(type_.shape)
            items = evaluate(argument, scope)
            if not isinstance(items, tuple):
                raise DefinitionError(f"{expr.span}: rank needs a tensor or a list")
            return len(items)

        return {
            "constant": lambda expr, _: subject(expr) in self.facts.constants,
            "value": value,
            "uses": lambda expr, _: 2 if subject(expr) else 0,
            "rank": rank,
        }

    # --- the right side ---

    def build(self, right: s.Pattern, expected: TensorType) -> str:
        """The type of the right side as text, or why it cannot be made."""
        try:
            return str(self._build(right, expected.dtype))
        except Exception as failure:
            return f"none: {failure}"

    def _build(self, pattern: s.Pattern, dtype: str) -> Operand:
        if isinstance(pattern, s.PatternVariable):
            return None if pattern.name == ABSENT else self.use.tensors.get(pattern.name)
        if isinstance(pattern, s.PatternNumber):
            return TensorType(dtype, ())
        if isinstance(pattern, s.PatternComputed):
            computed_number(pattern.value, self.scope(), dtype)
            return TensorType(dtype, ())
        assert isinstance(pattern, s.PatternOperator)
        operands = [self._build(argument, dtype) for argument in self._arguments(pattern)]
        operands += self.use.lists.get(pattern.variadic or "", [])
        attributes: dict[str, Value] = dict(self.use.bundles.get(pattern.bundle or "", {}))
        for attribute in pattern.attributes:
            attributes[attribute.name] = evaluate(attribute.value, self.scope())
        given = {name: value for name, value in attributes.items() if value is not None}
        place = pattern.output or 0
        outputs = max(place + 1, max(len(o.outputs) for o in self.base.operators[pattern.operator]) if place else 1)
        return instantiate(self.base, pattern.operator, operands, given, outputs, types_only=True).outputs[place]

    def shown(self) -> str:
        """The types of all variables in one line."""
        types = [f"{name}: {type_ if type_ is not None else 'absent'}" for name, type_ in self.use.tensors.items()]
        types += [f"{name}: {', '.join(map(str, members))}" for name, members in self.use.lists.items()]
        types += [f"{name} = {_text(value)}" for name, value in self.use.values.items()]
        return ", ".join(types)


def _text(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    return "none" if value is None else str(value)


def _is_absent(pattern: s.Pattern) -> bool:
    return isinstance(pattern, s.PatternVariable) and pattern.name == ABSENT


def _shape_of(pattern: s.PatternOperator) -> str:
    """Equal applications in one left side are one node; results of one node share its attributes."""
    return repr((pattern.operator, pattern.arguments, pattern.attributes))

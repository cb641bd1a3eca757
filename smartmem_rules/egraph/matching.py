"""Judges a match of a rewrite rule: its guards, its attributes and the types of its right side."""

from __future__ import annotations

import linecache
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

from smartmem_rules.egraph.host import Host
from smartmem_rules.egraph.model import Meta
from smartmem_rules.egraph.patterns import Left, has_attributes
from smartmem_rules.guards.computed import computed_number
from smartmem_rules.guards.constant_elements import over_elements
from smartmem_rules.guards.magnitudes import keeps_number
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.analyses import operator_name
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.patterns import is_absent, rest_of, right_outputs, run_time_arguments
from smartmem_rules.rulebase.queries import queries_of
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value, describe
from smartmem_rules.tensor.definitions.values import Scope, TensorList, TensorName, evaluate, truth
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.instantiate import names_in
from smartmem_rules.tensor.primitives import Array

UNRELIABLE = "a constant holds NaN, infinities or numbers too large to be reassociated"
LOST = "a number of the right side would overflow or underflow"


class Refused(Exception):
    """A match is no application of its rule; the message says why, `values` what was looked at."""

    def __init__(self, reason: str, values: Mapping[str, str], place: ast.Span | None = None, passed: int = 0) -> None:
        """Args:
        place: of what failed in the rule file: a guard, an attribute, the right side.
        passed: how many guards held before the one that failed.
        """
        super().__init__(reason)
        self.values = values
        self.place = place
        self.passed = passed

    def alone(self) -> Refused:
        """Without where it was raised: the frames there would keep the host and all constants."""
        self.__traceback__ = self.__cause__ = self.__context__ = None
        return self


@dataclass
class Application:
    """One direction of a rewrite at fixed operand counts; called by the host for each match.

    Attributes:
        sides: for each rule its pattern of the left side and its right side, None where it derives a fact; several
            are the equations of one rule of several patterns.
    """

    sides: Mapping[str, tuple[ast.Pattern, ast.Pattern | None]]
    left: Left
    guards: Sequence[ast.Expression]
    derives: str | None = None
    """The analysis whose fact it derives."""
    reassociates: bool = False
    """Whether constants have to be reliable: infinities and overflow make order matter."""
    _known: dict[tuple[object, ...], str | Refused] = field(default_factory=dict)
    _orders: dict[tuple[str, ...], Sequence[str]] = field(default_factory=dict)
    """The order in which the same tensors matched several patterns first."""

    def __call__(self, host: Host, texts: Sequence[str]) -> str:
        """The pieces of the right side as one text, "" where the rule does not apply."""
        began = time.perf_counter()
        metas = {slot: host.meta(text) for slot, text in enumerate(texts) if text[0] in "mC"}
        key = tuple(m.seen if (m := metas.get(s)) else text for s, text in enumerate(texts))
        answer = self._known.get(key)
        if answer is None:
            try:
                answer = " ".join(self._judge(host, texts, metas)) or "yes"
            except Refused as refusal:
                answer = refusal.alone()
            self._known[key] = answer
        if len(self.left.roots) > 1 and not isinstance(answer, Refused):
            answer = self._together(host, texts, metas, answer)
        milliseconds = (time.perf_counter() - began) * 1000 / len(self.sides)
        for rule, (pattern, _) in self.sides.items():
            host.statistics[rule].tried += 1
            host.statistics[rule].milliseconds += milliseconds
            if isinstance(answer, Refused):
                host.miss(rule, metas[self.left.roots[pattern].slot], answer, len(self.left.operators))
        return "" if isinstance(answer, Refused) else answer

    def _together(self, host: Host, texts: Sequence[str], metas: Mapping[int, Meta], answer: str) -> str | Refused:
        """The answer for several patterns, unless the tensors match in another order or need one another."""
        if self._orders.setdefault(tuple(sorted(texts)), texts) != texts:
            return ""
        slots = [*self.left.tensors.values(), *(slot for slots in self.left.variadics.values() for slot in slots)]
        operands = {tensor for slot in slots if (tensor := metas[slot].tensor) is not None}
        for root in self.left.roots.values():
            tensor = metas[root.slot].tensor
            needing = next((one for one in sorted(operands) if tensor and host.needs(one, tensor)), None)
            if needing is not None:
                return Refused(f"{needing} is computed from {tensor}, which it would be computed with", {})
        return answer

    def _judge(self, host: Host, texts: Sequence[str], metas: Mapping[int, Meta]) -> list[str]:
        scope = Scope({}, {}, host.instances.base.functions)
        try:
            return self._judged(host, texts, metas, scope)
        finally:
            scope.queries, scope.term = {}, None  # they hold the scope

    def _judged(self, host: Host, texts: Sequence[str], metas: Mapping[int, Meta], scope: Scope) -> list[str]:
        bundles, bound = self._bind(host, texts, metas, scope)
        for passed, guard in enumerate(self.guards):
            try:
                holds = truth(guard, scope)
            except (DefinitionError, Unsupported) as failure:
                raise Refused(
                    f"{source_text(guard)} ({failure})", shown_values(guard, scope), guard.span, passed
                ) from failure
            if not holds:
                raise Refused(source_text(guard), shown_values(guard, scope), guard.span, passed)
        constants = self._checked(host, bound) if self.reassociates else {}
        pieces: list[str] = []
        for pattern, right in self.sides.values():
            root = metas[self.left.roots[pattern].slot]
            if right is None:
                self._check_known(host, root)
                continue
            self._build(
                _Builder(
                    host=host,
                    scope=scope,
                    bundles=bundles,
                    bound=bound,
                    dtype=root.type.dtype,
                    pieces=pieces,
                    reassociates=self.reassociates,
                    constants=constants,
                ),
                pattern,
                right,
                root,
            )
        for number, refusal in constants.items():
            if not host.constants.is_reliable(number):
                raise refusal
        return pieces

    def _checked(self, host: Host, bound: Mapping[str, Meta | list[Meta]]) -> dict[int, Refused]:
        """The large constants of the left side, with why each may be refused; small ones are reliable."""
        large: dict[int, Refused] = {}
        for name, subject in bound.items():
            for meta in [subject] if isinstance(subject, Meta) else subject:
                if meta.constant is None:
                    continue
                refusal = Refused(UNRELIABLE, {name: str(meta.type)}, None, len(self.guards))
                if host.constants.is_large(meta.constant):
                    large[meta.constant] = refusal
                elif not host.constants.is_reliable(meta.constant):
                    raise refusal
        return large

    def _check_known(self, host: Host, root: Meta) -> None:
        """A fact is known of the element types that its analysis is about."""
        try:
            host.instances.get(operator_name(str(self.derives)), [root.type], {}, 1)
        except Unsupported as failure:
            raise Refused(f"{self.derives} says nothing of it: {failure}", {}) from failure

    def _build(self, builder: _Builder, left: ast.Pattern, right: ast.Pattern, root: Meta) -> None:
        """Build a right side for a pattern of the left one."""
        try:
            meta = builder.build(right, root=True)
        except (DefinitionError, Unsupported) as failure:
            raise Refused(f"the right side: {failure}", {}, right.span, len(self.guards)) from failure
        if meta is None or meta.type != root.type:
            types = {"left": str(root.type), "right": str(meta and meta.type)}
            raise Refused("the right side has another type", types, right.span, len(self.guards))
        if meta.constant is not None and root.kept:
            # equal to a constant, it would be computed now
            raise Refused("a `keep` rule leaves the left side to the run", {}, left.span, len(self.guards))

    def _bind(
        self, host: Host, texts: Sequence[str], metas: Mapping[int, Meta], scope: Scope
    ) -> tuple[dict[str, Mapping[str, Value]], dict[str, Meta | list[Meta]]]:
        """The bundles of attributes and the tensors of the left side; the scope learns what guards may ask."""
        bound: dict[str, Meta | list[Meta]] = {name: metas[slot] for name, slot in self.left.tensors.items()}
        bound.update({name: [metas[slot] for slot in slots] for name, slots in self.left.variadics.items()})
        tensors = scope.tensors
        for name, subject in bound.items():
            if isinstance(subject, Meta):
                tensors[name] = TensorName(name, subject.type)
            else:
                tensors[name] = TensorList(tuple(TensorName(f"{name}{j}", m.type) for j, m in enumerate(subject)))
        dtype = metas[next(reversed(self.left.roots.values())).slot].type.dtype
        bundles: dict[str, Mapping[str, Value]] = {}

        def term(pattern: ast.Pattern) -> Meta | None:
            slot = self.left.terms.get(pattern)
            if slot is not None:
                return metas[slot]
            return _Builder(host=host, scope=scope, bundles=bundles, bound=bound, dtype=dtype, pieces=[]).build(pattern)

        scope.queries = queries(host, bound, term)
        scope.elements = elements(host, bound)
        scope.term = lambda pattern: meta.type if (meta := term(pattern)) is not None else None
        marks = [matched.pattern.bundle for matched in self.left.operators]
        repeated = {mark for mark in marks if mark is not None and marks.count(mark) > 1}
        rests: dict[str, dict[str, Value]] = {}
        for matched in self.left.operators:
            given = host.attribute(texts[matched.attributes])
            bundle = matched.pattern.bundle
            if bundle is not None:
                bundles.setdefault(bundle, given)
            if not matched.pattern.attributes and bundle not in repeated:
                continue
            operands = [None if slot is None else metas[slot].type for slot in matched.operands]
            try:
                instance = host.instances.get(matched.pattern.operator, operands, given, matched.outputs)
            except Unsupported as failure:
                raise Refused(str(failure), {}, matched.pattern.span) from failure
            known = instance.values
            if bundle in repeated:
                rest = rest_of(matched.pattern, instance.operator, {**known, **given})
                self._check_rest(str(bundle), matched.pattern, rest, rests.setdefault(str(bundle), rest))
            for attribute in matched.pattern.attributes:
                self._bind_attribute(attribute, {**known, **given}.get(attribute.name), scope)
        return bundles, bound

    @staticmethod
    def _check_rest(
        bundle: str, pattern: ast.PatternOperator, rest: Mapping[str, Value], first: Mapping[str, Value]
    ) -> None:
        differing = [name for name in dict.fromkeys((*first, *rest)) if first.get(name) != rest.get(name)]
        if differing:
            values = {name: f"{describe(first.get(name))}, {describe(rest.get(name))}" for name in differing}
            raise Refused(f"@{bundle} stands for other attributes the second time", values, pattern.span)

    def _bind_attribute(self, attribute: ast.PatternAttribute, actual: Value, scope: Scope) -> None:
        wanted = attribute.value
        if isinstance(wanted, ast.Name) and wanted.id not in scope.values:
            scope.values[wanted.id] = actual
            return
        try:
            expected = evaluate(wanted, scope)
        except (DefinitionError, Unsupported) as failure:
            raise Refused(f"{attribute.name} = {source_text(wanted)} ({failure})", {}, attribute.span) from failure
        if expected != actual and (expected,) != actual:
            raise Refused(
                f"{attribute.name} = {source_text(wanted)}", {attribute.name: describe(actual)}, attribute.span
            )


def pick(_: Host, texts: Sequence[str]) -> str:
    """One piece of the answer that a match gave."""
    return texts[0].split(" ")[int(texts[1])]


@dataclass(kw_only=True)
class _Builder:
    """Computes attributes, constants and metas of a right side, in the order in which its actions ask for them."""

    host: Host
    scope: Scope
    bundles: Mapping[str, Mapping[str, Value]]
    bound: Mapping[str, Meta | list[Meta]]
    dtype: str
    pieces: list[str]
    reassociates: bool = False
    constants: dict[int, Refused] = field(default_factory=dict)
    """The large constants of the left side whose elements no constant of the right side shows."""

    def build(self, pattern: ast.Pattern, root: bool = False) -> Meta | None:
        if is_absent(pattern):
            return None
        if isinstance(pattern, ast.PatternVariable):
            meta = self.bound[pattern.name]
            assert isinstance(meta, Meta)
            return meta
        if isinstance(pattern, ast.PatternComputed):
            pattern = ast.PatternNumber(pattern.span, computed_number(pattern.value, self.scope, self.dtype))
        if isinstance(pattern, ast.PatternNumber):
            number = self.host.constants.scalar(pattern.value, self.dtype)
            meta = Meta(TensorType(self.dtype, ()), number)
            self.pieces += [f"k{number}", self.host.meta_name(meta)]
            return meta
        assert isinstance(pattern, ast.PatternOperator)
        return self._operator(pattern, root)

    def _operator(self, pattern: ast.PatternOperator, root: bool) -> Meta:
        operands: list[Meta | None] = [self.build(argument) for argument in run_time_arguments(pattern)]
        if pattern.variadic is not None:
            members = self.bound[pattern.variadic]
            assert isinstance(members, list)
            operands += members
        attributes: dict[str, Value] = dict(self.bundles[pattern.bundle]) if pattern.bundle is not None else {}
        for attribute in pattern.attributes:
            value = attributes[attribute.name] = evaluate(attribute.value, self.scope)
            if self.reassociates and isinstance(value, float) and not keeps_number(value):
                raise Refused(LOST, {attribute.name: describe(value)}, attribute.span)
        name = self.host.attribute_name(attributes)
        if has_attributes(pattern):
            self.pieces.append(name)
        outputs = right_outputs(pattern, self.host.instances.base.operators)
        types = [None if o is None else o.type for o in operands]
        instance = self.host.instances.get(pattern.operator, types, self.host.attribute(name), outputs)
        place = pattern.output or 0
        meta = self.host.derived_meta(instance, name, place, operands)
        if self.reassociates and meta.constant is not None:
            self._check_reliable(pattern, meta, meta.constant)
        if not root:
            self.pieces.append(self.host.meta_name(meta))
        return meta

    def _check_reliable(self, pattern: ast.PatternOperator, meta: Meta, number: int) -> None:
        """A constant that the rule computes keeps its elements."""
        if not self.host.constants.is_reliable(number):
            raise Refused(LOST, {pattern.operator: str(meta.type)}, pattern.span)
        for shown in self.host.constants.judged_with(number):
            self.constants.pop(shown, None)


def elements(host: Host, bound: Mapping[str, Meta | list[Meta] | None]) -> Callable[[ast.Reduction, Scope], Value]:
    """What computes the loops of guards over the elements of constants."""

    def array(name: str) -> Array | None:
        meta = bound.get(name)
        known = isinstance(meta, Meta) and meta.constant is not None
        return host.constants.looked_at(meta.constant) if known else None  # type: ignore[union-attr, arg-type]

    return over_elements(array)


def queries(
    host: Host, bound: Mapping[str, Meta | list[Meta]], term: Callable[[ast.Pattern], Meta | None] | None = None
) -> dict[str, Callable[..., Value]]:
    """What guards may ask of the tensors that a pattern bound, and of the terms that a rule names by `let`."""
    return queries_of(bound, _Answers(host), term)


@dataclass(frozen=True)
class _Answers:
    host: Host

    def rank(self, meta: Meta) -> int:
        return len(meta.type.shape)

    def constant(self, meta: Meta) -> bool:
        return meta.constant is not None

    def value(self, meta: Meta) -> float | None:
        return None if meta.constant is None else self.host.constants.uniform(meta.constant)

    def uses(self, meta: Meta, name: str) -> int:
        del name
        return meta.uses


def source_text(expr: ast.Expression) -> str:
    """The text of a guard as its author wrote it."""
    span = expr.span
    lines = [linecache.getline(span.file, line) for line in range(span.line, span.end_line + 1)]
    if not lines or not lines[0]:
        return f"the guard at {span}"
    lines[-1] = lines[-1][: span.end_column - 1]
    lines[0] = lines[0][span.column - 1 :]
    return " ".join(" ".join(lines).split())


def shown_values(expr: ast.Expression, scope: Scope) -> dict[str, str]:
    """The names of a guard with what they stand for."""
    return dict(_shown(expr, scope))


def _shown(expr: ast.Expression, scope: Scope) -> Iterator[tuple[str, str]]:
    for name in sorted(names_in(expr)):
        tensor = scope.tensors.get(name)
        if isinstance(tensor, TensorName):
            yield name, str(tensor.type)
        elif isinstance(tensor, TensorList):
            yield name, ", ".join(str(member.type) for member in tensor.members)
        elif name in scope.values:
            yield name, describe(scope.values[name])

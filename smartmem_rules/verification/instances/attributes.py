"""Draws the attributes of one operator of a left side: those that the pattern binds, and those that it leaves open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.by_identity import ByIdentity
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.definitions.values import Scope, evaluate
from smartmem_rules.tensor.lazy import lazy
from smartmem_rules.verification.instances.case import representable
from smartmem_rules.verification.instances.draws import Draws, Extents
from smartmem_rules.verification.instances.roles import AXES, Hints, Role
from smartmem_rules.verification.list_guards import ListGuards
from smartmem_rules.verification.semantics.terms import Term

Formal = ast.Attribute | ast.Input

_OF_AXES = 0.8
"""The share of lists that are drawn for the axes which their operator names."""


@dataclass(kw_only=True)
class AttributeDraws:
    """What is known where the attributes of one operator are drawn.

    Attributes:
        seen: makes the scope of what may be asked, where something is.
        values: the names that are bound already, and those that this operator binds.
        earlier: the attributes of earlier applications of the operator.
        rests: what names of the rest of attributes stand for.
        known: the extents that its signature has bound.
        outputs: how many outputs the operator has.
        axes: those that the operator names in a list, as soon as they are drawn.
    """

    guards: Sequence[ast.Expression]
    lists: ListGuards
    hints: Hints
    draws: Draws
    choose: Callable[[str, Callable[[], Any]], Any]
    slots: dict[str, set[str]]
    formals: Mapping[str, Formal]
    roles: Mapping[str, Role]
    operands: Sequence[Term | None]
    known: Extents
    seen: Callable[[], Scope]
    values: dict[str, Value]
    earlier: Sequence[Mapping[str, Value]]
    rests: Mapping[str, Mapping[str, Value]]
    outputs: int
    axes: Sequence[int] | None = None

    @lazy
    def scope(self) -> Scope:
        """What expressions of the rule may ask here."""
        return self.seen()

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the operands that are there."""
        return [o.type.shape for o in self.operands if o is not None]

    def all(self, pattern: ast.PatternOperator, path: str) -> dict[str, Value]:
        """Values for all attributes; absent ones are left out.

        Raises:
            Unsupported: the overload has no such attribute.
        """
        missing = next((one.name for one in pattern.attributes if one.name not in self.formals), None)
        if missing is not None:
            raise Unsupported(f"this overload has no {missing}")
        # lists of axes first: other lists have a number for each of the axes
        in_order = sorted(pattern.attributes, key=lambda one: not self._is_of_axes(one.name))
        drawn = {one.name: self._mentioned(one, self.formals[one.name]) for one in in_order}
        given = {one.name: drawn[one.name] for one in pattern.attributes}
        names = [n for n in self.formals if n not in given]
        if names:
            slot = f"given:{path}"
            if pattern.bundle is not None:
                self.slots.setdefault(pattern.bundle, set()).add(slot)
            again = self.rests.get(pattern.bundle) if pattern.bundle is not None else None
            if again is not None:
                given |= {name: again.get(name) for name in names}
            else:
                kept = self.choose(f"present:{path}", lambda: self._present(names, path))
                given |= self.choose(slot, lambda: self._open(names, kept, path))
        return {name: value for name, value in given.items() if value is not None}

    def _mentioned(self, attribute: ast.PatternAttribute, formal: Formal) -> Value:
        wanted, kind = attribute.value, kind_of(formal)
        if isinstance(wanted, ast.Name) and wanted.id not in self.values:
            name, slot = wanted.id, f"name:{wanted.id}"
            self.slots.setdefault(name, set()).add(slot)
            value = self.choose(slot, lambda: self._fitted(name, formal, self.roles[attribute.name]))
            self.values[name] = _in_type(value, formal, self.operands)
            if self._is_of_axes(attribute.name):
                self._note_axes(self.values[name])
            return self.values[name]
        expected = evaluate(wanted, self.scope)
        listed = kind in ("ints", "floats") and not isinstance(expected, tuple) and expected is not None
        return (expected,) if listed else expected

    def _is_of_axes(self, name: str) -> bool:
        return self.roles[name].use == AXES and kind_of(self.formals[name]) == "ints"

    def _present(self, names: Sequence[str], path: str) -> tuple[str, ...]:
        """Which of the attributes that a pattern does not mention are there; most of them where a word is looked at."""
        if path == self.draws.jointly or (self.draws.word is not None and self.draws.random.random() < 0.7):
            return tuple(names)
        aimed = self.draws.aimed
        return tuple(
            n for n in names
            if is_required(self.formals[n]) or (path, n) == aimed or self.draws.random.random() < 0.45
        )  # fmt: skip

    def _open(self, names: Sequence[str], present: Sequence[str], path: str) -> dict[str, Value]:
        """Attributes that the pattern does not mention: it matches whatever they are."""
        aimed = self.draws.aimed
        alike = 0.75 if aimed is None else 0.0 if aimed[0] == path else 0.3
        if self.draws.jointly is not None:
            alike = 0.0 if path == self.draws.jointly else 0.3
        if self.earlier and self.draws.random.random() < alike:
            again = {n: self.earlier[-1].get(n) for n in names}
            return again if self.draws.random.random() < 0.7 else self._turned(again)
        return {
            name: _in_type(self._draw(formal, self.roles[name]), formal, self.operands)
            for name in present
            if (formal := self.formals.get(name)) is not None
        }

    def _turned(self, given: dict[str, Value]) -> dict[str, Value]:
        """The attributes with the values of one list in another order: often all types stay."""
        lists = [n for n, v in given.items() if isinstance(v, tuple) and len(set(v)) > 1]
        if not lists:
            return given
        name = self.draws.random.choice(lists)
        value = given[name]
        assert isinstance(value, tuple)
        half = len(value) // 2
        turned = (*value[half:], *value[:half]) if self.draws.random.random() < 0.6 else value[::-1]
        return {**given, name: turned}

    def _draw(self, formal: Formal, role: Role) -> Value:
        shapes = self.shapes
        if self.axes is not None and role.use is None and self.draws.random.random() < _OF_AXES:
            whole = max(shapes, key=len, default=())
            shapes = [tuple(whole[axis] for axis in self.axes if -len(whole) <= axis < len(whole))]
        return self.draws.attribute(formal, role, shapes, self.known, lambda: self.scope, self.outputs)

    def _note_axes(self, value: Value) -> None:
        """Remember which axes the operator names: its other lists have a number for each of them."""
        if isinstance(value, tuple):
            self.axes = [axis for axis in value if isinstance(axis, int)]

    def _fitted(self, name: str, formal: Formal, role: Role) -> Value:
        """A value for a name that the pattern binds, of which guards of its elements hold."""
        drawn = self._named(name, formal, role)
        scope = self.scope.with_values(**self.values)
        return self.lists.fitted(name, drawn, scope, self.draws.random)

    def _named(self, name: str, formal: Formal, role: Role) -> Value:
        """A value for a name that the pattern binds: one that guards name, one that is bound already, or a new one."""
        random, hints, kind = self.draws.random, self.hints, kind_of(formal)
        optional = isinstance(formal, ast.Attribute) or formal.optional or formal.default is not None
        chance = random.random()
        if name in hints.absent or (optional and name not in hints.present and chance < 0.2):
            return None
        listed = hinted(hints.values, name, kind)
        near = [value for value in listed if value in hints.near]
        if near:
            return random.choice(near)
        if listed and chance < (0.4 if name in hints.bounded else 0.65):
            return random.choice(listed)
        listed = self._compared(name, kind)
        if listed and chance < 0.8:
            return random.choice(listed)
        if 0.5 < chance < 0.92:
            alike = self._alike(kind)
            if alike:
                return random.choice(alike)
        return self._draw(formal, role)

    def _alike(self, kind: str | None) -> list[Value]:
        """Bound values of the same kind, of lists of one their element."""
        bound = [v for v in self.values.values() if v is not None]
        listed = kind in ("ints", "floats")
        alike = [v for v in bound if isinstance(v, tuple) == listed and isinstance(v, str) == (kind == "string")]
        inner = [v[0] for v in bound if isinstance(v, tuple) and len(v) == 1] if kind == "int" else []
        return alike + inner

    def _compared(self, name: str, kind: str | None) -> list[Value]:
        """What guards of the form `name == e` ask for, where it can be computed already."""
        found: list[Value] = []
        for guard in self.guards:
            if not isinstance(guard, ast.Binary) or guard.operator != "==":
                continue
            for one, other in ((guard.left, guard.right), (guard.right, guard.left)):
                if isinstance(one, ast.Name) and one.id == name:
                    try:
                        value = evaluate(other, self.scope)
                    except (DefinitionError, Unsupported):
                        continue
                    found.append((value,) if kind in ("ints", "floats") and not isinstance(value, tuple) else value)
        return found


def bind_names(
    pattern: ast.PatternOperator, given: Mapping[str, Value], before: Mapping[str, Value], values: dict[str, Value]
) -> None:
    """Give the names of a pattern's attributes what the engine gives them.

    Args:
        given: the attributes, those that are left out with their defaults.
        before: the names that other operators bind.
        values: what all names are, which is changed.

    Raises:
        Unsupported: an attribute is not what its name stands for already.
    """
    for attribute in pattern.attributes:
        wanted = attribute.value
        value = given.get(attribute.name)
        if isinstance(wanted, ast.Name) and wanted.id not in before:
            values[wanted.id] = value
        elif isinstance(wanted, ast.Name):
            expected = values[wanted.id]
            if expected != value and (expected,) != value:
                raise Unsupported(f"{attribute.name} is {value}, not {expected}")


_FORMALS: ByIdentity[ast.Operator, Mapping[str, Formal]] = ByIdentity(4096)


def formals_by_name(overload: ast.Operator) -> Mapping[str, Formal]:
    """The attributes and compile-time operands of an operator."""
    return _FORMALS.get(overload, _formals_by_name)


def _formals_by_name(overload: ast.Operator) -> Mapping[str, Formal]:
    attributes: dict[str, Formal] = {a.name: a for a in overload.attributes}
    return attributes | {i.name: i for i in overload.inputs if i.constant is not None}


def kind_of(formal: Formal) -> str | None:
    """The kind of value that an attribute or compile-time operand takes."""
    return formal.kind if isinstance(formal, ast.Attribute) else formal.constant


def is_required(formal: Formal) -> bool:
    """Whether an instance has to give the attribute or compile-time operand."""
    if isinstance(formal, ast.Attribute):
        return formal.required
    return formal.default is None and not formal.optional


def _in_type(value: Value, formal: Formal, operands: Sequence[Term | None]) -> Value:
    """A compile-time operand that is a number has the element type of the data."""
    data = next((o for o in operands if o is not None), None)
    if not isinstance(formal, ast.Input) or formal.constant != "float" or not isinstance(value, float) or data is None:
        return value
    if representable(value, data.type.dtype):
        return value
    return float(int(abs(value)))


def hinted(values: Mapping[str, Sequence[int | float | str]], name: str, kind: str | None) -> list[Value]:
    """The values that guards name for an attribute, in the attribute's kind."""
    found: list[Value] = []
    for value in values.get(name, ()):
        if kind in ("ints", "floats") and not isinstance(value, str):
            found.append((value,))
        elif (kind == "string") == isinstance(value, str):
            found.append(float(value) if kind == "float" and not isinstance(value, str) else value)
    return found

"""Definitions at open extents, for proofs of their reads: what only decides values is left open, and all is looked at.

A definition is instantiated along a way of `paths`. Whether an operand is present is chosen where a shape or an index
depends on it; where it only decides which of two values an element is, both are computed. An attribute on which no
index and no extent depends has no value at all, and what is asked of it is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Protocol

from smartmem_rules.errors import causes
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import conjuncts
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.binding import operand_name
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value, integers
from smartmem_rules.tensor.definitions.elements import COMPARISONS, LOGICAL, Elements
from smartmem_rules.tensor.definitions.inside import OutsideError
from smartmem_rules.tensor.definitions.literals import WEAK, unify
from smartmem_rules.tensor.definitions.values import Scope, TensorList, TensorName, condition, evaluate
from smartmem_rules.tensor.definitions.watch import Watch
from smartmem_rules.tensor.expr import (
    Compare,
    Condition,
    Const,
    Expr,
    Logic,
    TensorType,
    condition_indices,
    logic,
    select,
)
from smartmem_rules.tensor.extents import SymbolicExtentError
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.inlining import FreshNames
from smartmem_rules.tensor.instantiate import Definitions, Instantiation, names_in
from smartmem_rules.verification.instances.roles import nodes
from smartmem_rules.verification.proof.paths import Path
from smartmem_rules.verification.proof.reads.late_scope import (
    Chosen,
    LateMembers,
    LateScope,
    LateTensors,
    LateValues,
    Presence,
    Undecided,
)


class ReadWatch(Watch):
    """Who is told where a definition reads, and where that failed."""

    def outside(self, read: ast.Expression, reason: str) -> None:
        """A read leaves its tensor."""

    def later(self, read: ast.Expression, since: Index, conditions: Sequence[Condition]) -> None:
        """A scan reads what it may not have computed yet, unless `since` is 0 or more."""

    def failed(self, part: ast.Expression, reason: str) -> None:
        """The reads of a part of the definition were not looked at."""


class OpenElements(Elements):
    """Builds elements of which not all conditions are known: both sides of such a one are built."""

    def __init__(self, names: FreshNames, watch: ReadWatch, presence: Presence, unknown: set[str]) -> None:
        super().__init__(names, watch=watch)
        self.told = watch
        self.presence = presence
        self.unknown = unknown
        self._open: dict[object, Condition] = {}
        self._names: dict[int, tuple[ast.Expression, frozenset[str]]] = {}
        """The names in each expression, by its identity."""

    def element(self, expr: ast.Expression, scope: Scope) -> Expr:
        if self.unknown and self._is_value_alone(expr, scope):
            return Const(True, "bool") if _is_truth(expr) else Const(1, WEAK)
        if isinstance(expr, ast.Call) and expr.function == "present" and self._is_open(expr, scope):
            return Const(True, "bool")
        return super().element(expr, scope)

    def _is_value_alone(self, expr: ast.Expression, scope: Scope) -> bool:
        """Whether an expression is made of what has no value, and reads nothing."""
        known = self._names.get(id(expr))
        if known is None:
            known = self._names[id(expr)] = expr, frozenset(names_in(expr))
        names = known[1]
        return bool(self.unknown & names - scope.values.keys()) and not any(n in scope.tensors for n in names)

    def _is_open(self, expr: ast.Call, scope: Scope) -> bool:
        try:
            with self.presence.of_values():
                evaluate(expr, scope)
        except Undecided:
            return True
        return False

    def _conditional(self, expr: ast.Conditional, scope: Scope) -> Expr:
        try:
            decided = self._condition(expr.condition, scope)
        except DefinitionError:
            return super()._conditional(expr, scope)
        if isinstance(decided, bool):
            return self.element(expr.then if decided else expr.otherwise, scope)
        for index in condition_indices(decided):
            self._check_positions(index, expr.condition, scope)
        sides = []
        refusals: list[Unsupported] = []
        for part, holds in ((expr.then, decided), (expr.otherwise, Logic("not", (decided,)))):
            try:
                with self._where(holds):
                    sides.append(self.element(part, scope))
            except OutsideError:
                raise
            except Unsupported as refusal:
                refusals.append(refusal)
        if not sides:
            raise refusals[0]
        return sides[0] if len(sides) == 1 else select(decided, *unify(sides[0], sides[1], expr))

    @contextmanager
    def _where(self, *conditions: Condition) -> Iterator[None]:
        before = len(self.conditions)
        self.conditions.extend(conditions)
        try:
            yield
        finally:
            del self.conditions[before:]

    def _condition(self, expr: ast.Expression, scope: Scope) -> Condition | bool:
        """A condition of indices, of which parts may be open."""
        match expr:
            case ast.Binary(operator="and" | "or" as operator, left=left, right=right):
                return logic(operator, (self._condition(left, scope), self._condition(right, scope)))
            case ast.Unary(operator="not", operand=operand):
                return logic("not", (self._condition(operand, scope),))
            case _:
                pass
        if self.unknown & names_in(expr) - scope.values.keys():
            if any(isinstance(node, ast.Subscript) for node in nodes(expr)):
                self.element(expr, scope)
            return self._any_truth(expr)
        try:
            with self.presence.of_values():
                return condition(expr, scope)
        except Undecided:
            return self._any_truth(expr)

    def _any_truth(self, expr: ast.Expression) -> Condition:
        """A condition of which nothing is known; of what is not chosen alone it is the same wherever it is written."""
        same_everywhere = names_in(expr) <= self.unknown | self.presence.optional
        key = _written(expr) if same_everywhere else len(self._open)
        if key not in self._open:
            self._open[key] = Compare("==", variable(Var(f"open{len(self._open)}", 2)), Index(0))
        return self._open[key]

    def _check_inside(
        self, expr: ast.Expression, name: str, indices: tuple[Index, ...], extents: tuple[int, ...]
    ) -> None:
        try:
            super()._check_inside(expr, name, indices, extents)
        except OutsideError as reason:
            self.told.outside(expr, str(reason))

    def _check_step(self, expr: ast.Expression, name: str, indices: tuple[Index, ...]) -> None:
        try:
            super()._check_step(expr, name, indices)
        except OutsideError:
            assert self.step is not None
            since = self.step.now - indices[0] - (0 if name in self.step.done else 1)
            self.told.later(expr, since, tuple(self.conditions))


def _is_truth(expr: ast.Expression) -> bool:
    if isinstance(expr, ast.Binary):
        return expr.operator in COMPARISONS or expr.operator in LOGICAL
    return isinstance(expr, ast.Unary) and expr.operator == "not"


def _written(expr: object) -> object:
    """An expression without its place in the text."""
    if isinstance(expr, tuple):
        return tuple(map(_written, expr))
    if not isinstance(expr, ast.Syntax):
        return expr
    names = (name for name in expr.__dataclass_fields__ if name != "span")
    return (type(expr).__name__, *(_written(getattr(expr, name)) for name in names))


class OpenOperands(Protocol):
    """What is chosen of operands and attributes, each when it is asked for."""

    def dtype_of(self, formal: ast.Input) -> str:
        """The element type."""

    def shape_of(self, formal: ast.Input, member: int) -> tuple[int, ...]:
        """The shape of an operand, or of a member of a list of them."""

    def extents_of(self, name: str, formal: ast.Input) -> Value:
        """The extent or list of extents that a signature names, by the first operand that has it."""

    def members_of(self, formal: ast.Input) -> int:
        """How many operands a list has."""

    def attribute_of(self, formal: ast.Attribute | ast.Input, default: Value) -> Value:
        """An attribute or compile-time operand, None for one that is absent."""


class OpenDefinition(Instantiation):
    """One way through a definition: all of its equations, those that failed included."""

    def __init__(
        self,
        base: Definitions,
        operator: ast.Operator,
        operands: OpenOperands,
        outputs: int,
        path: Path,
        unknown: frozenset[str],
    ) -> None:
        super().__init__(base, operator, (), {}, outputs)
        self.chosen = operands
        self.unknown = set(unknown)
        self.is_guessed = False
        """Whether the element type of a tensor is a guess, because its equation failed."""
        optional = frozenset(i.name for i in operator.inputs if i.constant is None and i.optional)
        self.presence = Presence(path, optional, self.unknown)
        queries = {"present": self.presence.ask}
        self.scope = LateScope(LateValues({}, {}, {}), LateTensors({}), base.functions, queries)
        self.tensors = LateTensors({})
        self.scope.tensors = self.tensors

    def look(self, watch: ReadWatch) -> None:
        """Tell somebody of every read.

        Raises:
            Unsupported: the operator does not take these operands and attributes.
            SymbolicExtentError: a number is needed that is open.
        """
        self._bind()
        for output in self.operator.outputs:
            if output.index is not None:
                nothing = TensorName("", TensorType("float32", ()))
                self.scope.tensors[output.name] = TensorList((nothing,) * self.wanted)
        lets = {let.name for let in self.operator.lets}
        parts = list(conjuncts(*self.operator.requires))
        self._hold(part for part in parts if not names_in(part) & lets)
        for let in self.operator.lets:
            if names_in(let.value) & self.unknown:
                self.unknown.add(let.name)
            else:
                self.scope.values[let.name] = evaluate(let.value, self.scope)
        self._hold(part for part in parts if names_in(part) & lets)
        outputs = self._output_types()
        self._counts(outputs)
        self._look_at_equations(watch)

    def _bind(self) -> None:
        """Let shapes and attributes be chosen when a requirement, an extent or an index asks for them."""
        values = self.scope.values
        assert isinstance(values, LateValues)
        dtypes: dict[str, str] = {}
        formals = [i for i in self.operator.inputs if i.constant is None]
        for place, formal in enumerate(formals):
            assert formal.type is not None
            dtypes.setdefault(formal.type.dtype, self.chosen.dtype_of(formal))
            self.tensors.late[formal.name] = partial(self._tensor, formal, place)
            for item in formal.type.shape:
                inner = item.operand if isinstance(item, ast.Splat) else item
                if isinstance(inner, ast.Name):
                    values.late.setdefault(inner.id, partial(self._extents, inner.id, formal))
        self.dtypes = dtypes
        constants = [i for i in self.operator.inputs if i.constant is not None]
        attributes: list[ast.Attribute | ast.Input] = [*self.operator.attributes, *constants]
        for attribute in attributes:
            if attribute.name not in self.unknown:
                values.late[attribute.name] = partial(self._attribute, attribute)

    def _tensor(self, formal: ast.Input, place: int) -> TensorName | TensorList | None:
        if not self.presence.chosen.get(formal.name, True):
            return None
        dtype = self.chosen.dtype_of(formal)
        members = [
            lambda n=n: TensorName(operand_name(place + n), TensorType(dtype, self.chosen.shape_of(formal, n)))
            for n in range(self.chosen.members_of(formal))
        ]
        return TensorList(LateMembers(members)) if formal.variadic else members[0]()

    def _extents(self, name: str, formal: ast.Input) -> Value:
        if formal.optional and not self.presence.choose(formal.name):
            lists = [i.operand for i in formal.type.shape if isinstance(i, ast.Splat)] if formal.type else []
            if any(isinstance(one, ast.Name) and one.id == name for one in lists):
                return ()
            raise Unsupported(f"{name} is an extent of {formal.name}, which is absent")
        return self.chosen.extents_of(name, formal)

    def _attribute(self, formal: ast.Attribute | ast.Input) -> Value:
        default = None if formal.default is None else evaluate(formal.default, self.scope)
        value = self.chosen.attribute_of(formal, default)
        return default if value is None else value

    def _hold(self, parts: Iterator[ast.Expression]) -> None:
        """What is required of values that are open is not used."""
        for part in parts:
            if not names_in(part) & self.unknown:
                self._require(part)

    def _look_at_equations(self, watch: ReadWatch) -> None:
        elements = OpenElements(FreshNames("r"), watch, self.presence, self.unknown)
        self._declare_scans()
        self.presence.is_building = True
        for equation in self.operator.equations:
            while not self._is_looked_at(equation, elements, watch):
                pass

    def _is_looked_at(self, equation: ast.EquationSyntax, elements: OpenElements, watch: ReadWatch) -> bool:
        """Whether an equation was looked at to its end, and not given up because an operand was chosen."""
        try:
            self._look_at(equation, elements)
        except Chosen:
            self._forget_absent()
            return False
        except (SymbolicExtentError, Undecided) as failure:
            self._skip(equation, watch, failure)
        except (DefinitionError, ArithmeticError, LookupError, ValueError) as refusal:
            if self._is_open(refusal):
                self._skip(equation, watch, refusal)
                return True
            open_ = sorted((self.presence.optional & names_in(equation.body)) - self.presence.chosen.keys())
            if not open_:
                raise Unsupported(str(refusal)) from refusal
            with suppress(Chosen):
                self.presence.choose(open_[0])
            self._forget_absent()
            return False
        return True

    def _forget_absent(self) -> None:
        for name, is_there in self.presence.chosen.items():
            if not is_there:
                self.tensors[name] = None

    def _look_at(self, equation: ast.EquationSyntax, elements: OpenElements) -> None:
        target = self.scope.tensors.get(equation.tensor)
        if isinstance(target, TensorList):
            for number, member in enumerate(target.members):
                scope = self.scope.with_values(**({equation.member: number} if equation.member else {}))
                self._equation(equation, member, scope, elements)
        elif isinstance(target, TensorName):
            self._equation(equation, target, self.scope, elements)
        elif equation.tensor not in {o.name for o in self.operator.outputs}:
            self._local(equation, elements)

    def _is_open(self, failure: Exception) -> bool:
        """Whether a failure comes of what is not known, and not of the operands."""
        if needs_number(failure) or self.is_guessed:
            return True
        return any(f"{name} has no value here" in str(failure) for name in self.unknown)

    def _skip(self, equation: ast.EquationSyntax, watch: ReadWatch, failure: Exception) -> None:
        watch.failed(equation.body, f"{equation.tensor}: {type(failure).__name__} {failure}")
        if equation.tensor not in self.scope.tensors:
            shape = tuple(e for b in equation.indices for e in integers(evaluate(b.bound, self.scope)))
            self.scope.tensors[equation.tensor] = TensorName(equation.tensor, TensorType("float32", shape))
            self.is_guessed = True


def needs_number(failure: BaseException) -> bool:
    """Whether a failure comes of a number that is open."""
    return any(isinstance(cause, SymbolicExtentError) for cause in causes(failure))

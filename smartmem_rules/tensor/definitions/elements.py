"""Turns the right side of an equation into a tensor expression."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace

from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import UNKNOWN_EXTENT, Gathered, Var
from smartmem_rules.tensor.builtins import DefinitionError, Value, as_list, integers
from smartmem_rules.tensor.definitions.choices import first_of, implies
from smartmem_rules.tensor.definitions.inside import OutsideError, is_natural, outside, read_positions
from smartmem_rules.tensor.definitions.literals import WEAK, compared, from_value, settle, unify
from smartmem_rules.tensor.definitions.terms import combined
from smartmem_rules.tensor.definitions.values import (
    ABSENT,
    Scope,
    TensorName,
    condition,
    evaluate,
    read_indices,
    tensor_of,
)
from smartmem_rules.tensor.definitions.watch import Watch
from smartmem_rules.tensor.expr import (
    ALL_DTYPES,
    Apply,
    Condition,
    Const,
    Expr,
    FromIndex,
    Logic,
    Read,
    Reduce,
    compare,
    condition_indices,
    logic,
    select,
)
from smartmem_rules.tensor.extents import SymbolicExtentError, is_symbolic
from smartmem_rules.tensor.index import Index, as_index, variable
from smartmem_rules.tensor.inlining import FreshNames
from smartmem_rules.tensor.substitution import gathered

UNARY = frozenset([
    "exp", "log", "sqrt", "rsqrt", "recip", "expm1", "log1p", "abs", "neg", "sign", "floor", "ceil", "round",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "erf", "sigmoid", "asinh", "acosh",
    "atanh",
])  # fmt: skip
BINARY = frozenset(["min", "max", "pow", "mod", "fmod", "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right"])
TESTS = frozenset({"isnan", "isinf"})
INFIX = {"+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow", "//": "floordiv", "%": "mod"}
NEUTRAL = {"+": 0, "-": 0, "*": 1, "/": 1}
COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
LOGICAL = {"and": "and", "or": "or"}
ELEMENT_FUNCTIONS = UNARY | BINARY | TESTS | {"select", "fma", "cast", "bitcast", "float"}


@dataclass(frozen=True)
class Step:
    """The step of a scan that is computed: all scans of the definition, and those that are done with it."""

    now: Index
    scans: frozenset[str]
    done: frozenset[str]


@dataclass
class Elements:
    """Builds the expressions of one operator instance; loop variables are fresh within it."""

    names: FreshNames
    conditions: list[Condition] = field(default_factory=list)
    """What holds of indices where the expression in hand is computed."""
    loops: list[Var] = field(default_factory=list)
    """The loop variables around it."""
    step: Step | None = None
    """Of the scan that is being built."""
    watch: Watch | None = None
    """Told of every read without `else`; then what open extents leave undecided ends nothing."""

    @contextmanager
    def _where(self, *conditions: Condition) -> Iterator[None]:
        self.conditions.extend(conditions)
        yield
        del self.conditions[len(self.conditions) - len(conditions) :]

    def build(
        self, expr: ast.Expression, scope: Scope, dtype: str, loops: Sequence[Var] = (), step: Step | None = None
    ) -> Expr:
        """The right side of an equation over some loop variables, its literals given the dtype.

        Raises:
            OutsideError: it reads outside of a tensor, or what a scan does not hold yet.
        """
        self.loops, self.step = list(loops), step
        return settle(self.element(expr, scope), dtype)

    def element(self, expr: ast.Expression, scope: Scope) -> Expr:
        match expr:
            case ast.Number(value=value):
                return Const(value, WEAK)
            case ast.Truth(value=value):
                return Const(value, "bool")
            case ast.Unary(operator="-", operand=operand):
                return self._negate(self.element(operand, scope))
            case ast.Unary(operand=operand):
                return Apply("not", (self.element(operand, scope),), "bool")
            case ast.Binary():
                return self._binary(expr, scope)
            case ast.Conditional():
                return self._conditional(expr, scope)
            case ast.Reduction():
                return self._reduction(expr, scope)
            case ast.Subscript():
                return self._subscript(expr, scope)
            case ast.Call() if expr.function in ELEMENT_FUNCTIONS:
                return self._call(expr, scope)
            case _:
                made = from_value(evaluate(expr, scope), expr)
                if isinstance(made, FromIndex):
                    self._check_positions(made.index, expr, scope)
                return made

    def _negate(self, operand: Expr) -> Expr:
        if isinstance(operand, Const) and operand.dtype == WEAK:
            return Const(-operand.value, WEAK)
        return Apply("neg", (operand,), operand.dtype)

    def _binary(self, expr: ast.Binary, scope: Scope) -> Expr:
        if expr.operator in LOGICAL:
            operands = self.element(expr.left, scope), self.element(expr.right, scope)
            return Apply(LOGICAL[expr.operator], operands, "bool")
        left, right = self.element(expr.left, scope), self.element(expr.right, scope)
        if expr.operator in COMPARISONS and (exact := compared(expr.operator, left, right)) is not None:
            if isinstance(exact, bool):
                return Const(exact, "bool")
            return Apply(COMPARISONS[exact[0]], exact[1:], "bool")
        left, right = unify(left, right, expr)
        if left.dtype == WEAK:
            return self._untyped(expr, left, right, scope)
        if expr.operator in COMPARISONS:
            return Apply(COMPARISONS[expr.operator], (left, right), "bool")
        neutral = NEUTRAL.get(expr.operator)
        if neutral is not None and left.dtype != "bool":
            # an operand that is absent or has its default costs nothing
            if isinstance(right, Const) and right.value == neutral:
                return left
            if isinstance(left, Const) and left.value == neutral and expr.operator in "+*":
                return right
        return Apply(INFIX[expr.operator], (left, right), left.dtype)

    def _untyped(self, expr: ast.Binary, left: Expr, right: Expr, scope: Scope) -> Expr:
        """Arithmetic of open extents and of sums of literals: what is no integer is computed as elements."""
        try:
            return from_value(evaluate(expr, scope), expr)
        except DefinitionError:
            if expr.operator not in INFIX:
                raise
            return Apply(INFIX[expr.operator], (left, right), WEAK)

    def _conditional(self, expr: ast.Conditional, scope: Scope) -> Expr:
        try:
            decided = condition(expr.condition, scope)
        except DefinitionError:
            test = self.element(expr.condition, scope)
            then, otherwise = unify(self.element(expr.then, scope), self.element(expr.otherwise, scope), expr)
            return Apply("select", (test, then, otherwise), then.dtype)
        if isinstance(decided, bool):
            return self.element(expr.then if decided else expr.otherwise, scope)
        for index in condition_indices(decided):
            self._check_positions(index, expr.condition, scope)
        with self._where(decided):
            then = self.element(expr.then, scope)
        with self._where(Logic("not", (decided,))):
            otherwise = self.element(expr.otherwise, scope)
        return select(decided, *unify(then, otherwise, expr))

    def _call(self, expr: ast.Call, scope: Scope) -> Expr:
        if expr.function in ("cast", "bitcast", "float"):
            return self._cast(expr, scope)
        if expr.function in ("min", "max", "abs", "sqrt", "floor", "ceil", "round", "sign"):
            constant = self._compile_time(expr, scope)
            if constant is not None:
                return constant
        arguments = [self.element(a, scope) for a in expr.arguments]
        if expr.function == "select":
            then, otherwise = unify(arguments[1], arguments[2], expr)
            return Apply("select", (settle(arguments[0], "bool"), then, otherwise), then.dtype)
        if expr.function == "fma":
            if any(argument.dtype not in ("float32", WEAK) for argument in arguments):
                raise DefinitionError(f"{expr.span}: fma is of float32")
            return Apply("fma", tuple(settle(argument, "float32") for argument in arguments), "float32")
        if expr.function in TESTS:
            return Apply(expr.function, tuple(arguments), "bool")
        if expr.function in BINARY:
            result = arguments[0]
            for argument in arguments[1:]:
                left, right = unify(result, argument, expr)
                result = Apply(expr.function, (left, right), left.dtype)
            return result
        return Apply(expr.function, (arguments[0],), arguments[0].dtype)

    def _compile_time(self, expr: ast.Expression, scope: Scope) -> Expr | None:
        try:
            return from_value(evaluate(expr, scope), expr)
        except DefinitionError:
            return None

    def _cast(self, expr: ast.Call, scope: Scope) -> Expr:
        target = "float32"
        if expr.function != "float":
            name = expr.arguments[1]
            value = evaluate(name, scope) if not (isinstance(name, ast.Name) and name.id in ALL_DTYPES) else name.id
            if value not in ALL_DTYPES:
                raise DefinitionError(f"{expr.span}: {value!r} is no dtype")
            target = str(value)
        operand = self.element(expr.arguments[0], scope)
        if expr.function == "bitcast":
            return operand if operand.dtype == target else Apply("bitcast", (operand,), target)
        if isinstance(operand, FromIndex):
            return FromIndex(operand.index, target)
        if operand.dtype in (WEAK, target):
            return settle(operand, target)
        return Apply("cast", (operand,), target)

    def _reduction(self, expr: ast.Reduction, scope: Scope) -> Expr:
        if expr.kind == "mean":
            total = replace(expr, kind="sum")
            count = ast.Number(expr.span, _element_count(expr, scope))
            return self.element(ast.Binary(expr.span, "/", total, count), scope)
        if expr.binders and expr.binders[0].kind == "unrolled":
            return self._unrolled(expr, scope)
        inner = scope
        variables: list[Var] = []
        for binder in expr.binders:
            extents = integers(evaluate(binder.bound, inner))
            fresh = tuple(self.names.var(extent) for extent in extents)
            variables.extend(fresh)
            indices: tuple[Value, ...] = tuple(variable(v) for v in fresh)
            inner = inner.with_values(**{binder.name: indices if binder.kind == "loops" else indices[0]})
        self.loops += variables
        body = self.element(expr.body, inner)
        del self.loops[len(self.loops) - len(variables) :]
        looping = tuple(v for v in variables if v.extent != 1)
        _check_truth(expr, body)
        return Reduce(expr.kind, looping, body, body.dtype) if looping else body

    def _unrolled(self, expr: ast.Reduction, scope: Scope) -> Expr:
        (binder,) = expr.binders
        bound = evaluate(binder.bound, scope)
        members = range(bound) if isinstance(bound, int) else as_list(bound)
        scopes = [scope.with_values(**{binder.name: member}) for member in members]
        if not scopes:
            raise DefinitionError(f"{expr.span}: nothing to reduce over")
        if expr.kind == "first":
            return self._first(expr, scopes)
        function = {"sum": "add", "prod": "mul", "all": "and", "any": "or"}.get(expr.kind, expr.kind)
        terms = [self.element(expr.body, inner) for inner in scopes]
        _check_truth(expr, terms[0])
        return combined(function, terms, expr)

    def _first(self, expr: ast.Reduction, scopes: Sequence[Scope]) -> Expr:
        """The body of the first member for which the condition holds; of the last one, where it holds for no other."""
        assert expr.condition is not None
        chosen: list[tuple[Condition, Expr]] = []
        before: list[Condition] = []
        for inner in scopes[:-1]:
            decided = condition(expr.condition, inner)
            if decided is False:
                continue
            if decided is True:
                scopes = [inner]
                break
            with self._where(*before, decided):
                chosen.append((decided, self.element(expr.body, inner)))
            if len(chosen) > 1 and implies(chosen[-2][0], decided):
                before.pop()  # not i < 3 says that i is not below 2 either
            before.append(Logic("not", (decided,)))
        with self._where(*before):
            result = self.element(expr.body, scopes[-1])
        return first_of(chosen, result, expr)

    def _subscript(self, expr: ast.Subscript, scope: Scope) -> Expr:
        tensor = tensor_of(expr.base, scope)
        if tensor is None:
            if expr.default is None:
                raise DefinitionError(f"{expr.span}: the operand is absent and the read gives no default")
            return self.element(expr.default, scope)
        if tensor is ABSENT:
            return from_value(evaluate(expr, scope), expr)
        if not isinstance(tensor, TensorName):
            raise DefinitionError(f"{expr.span}: {_written(expr.base)} is a list of tensors, none of which is named")
        indices = tuple(as_index(i) for i in read_indices(expr, tensor, scope))  # type: ignore[arg-type]
        extents = tensor.type.shape
        read = Read(tensor.name, tuple(map(_bounded, indices, extents)), tensor.type.dtype)
        for index in indices:
            self._check_positions(index, expr, scope)
        if expr.default is None:
            self._check_inside(expr, _written(expr.base), indices, extents)
            self._check_step(expr, tensor.name, indices)
            return read
        inside: list[Condition | bool] = []
        for index, extent in zip(indices, extents, strict=True):
            inside.append(compare("<=", Index(0), index))
            inside.append(compare("<", index, Index(extent)))
        # no place lies inside an empty tensor, also where two comparisons do not say so together
        is_empty = any(not is_symbolic(extent) and extent == 0 for extent in extents)
        decided = False if is_empty else logic("and", tuple(inside))
        if decided is not False:
            with self._where(*(() if decided is True else (decided,))):
                self._check_step(expr, tensor.name, indices)
        then, otherwise = unify(read, self.element(expr.default, scope), expr)
        return select(decided, then, otherwise)

    # --- bounds ---

    def _check_inside(
        self, expr: ast.Expression, name: str, indices: tuple[Index, ...], extents: tuple[int, ...]
    ) -> None:
        if any(not is_symbolic(v.extent) and v.extent == 0 for v in self.loops):
            return  # it is never computed
        if self.watch is not None:
            self.watch.inside(expr)
        for axis, (index, extent) in enumerate(zip(indices, extents, strict=True)):
            try:
                found = outside(index, extent, self.conditions)
            except SymbolicExtentError as undecided:
                if self.watch is not None:
                    self.watch.undecided(expr, index, extent, tuple(self.conditions))
                    continue
                raise SymbolicExtentError(f"{expr.span}: {undecided}") from undecided
            if found is not None:
                element = f"element {found.element}" if found.is_certain else f"perhaps element {found.element}"
                what = f"axis {axis} of {name}" if len(extents) > 1 else name
                raise OutsideError(f"{expr.span}: {element} of {what} is read, whose extent is {extent}")

    def _check_positions(self, index: Index, expr: ast.Expression, scope: Scope) -> None:
        """What is read to know an index: tables and integer tensors."""
        for name, indices, extents in read_positions(index):
            if name is None:
                assert extents is not None
                self._check_inside(expr, "a table", indices, extents)
                continue
            for written, tensor in scope.tensors.items():
                if isinstance(tensor, TensorName) and tensor.name == name:
                    self._check_inside(expr, written, indices, tensor.type.shape)
                    self._check_step(expr, name, indices)

    def _check_step(self, expr: ast.Expression, name: str, indices: tuple[Index, ...]) -> None:
        """A scan reads only what scans hold by then: earlier steps, of those before it also its own."""
        if self.step is None or name not in self.step.scans:
            return
        since = self.step.now - indices[0] - (0 if name in self.step.done else 1)
        if not is_natural(since, self.conditions):
            when = "later steps" if name in self.step.done else "its own step or later ones"
            raise OutsideError(f"{expr.span}: a scan reads {when} of {name}, which are not computed by then")


def _written(base: ast.Expression) -> str:
    """A tensor as its author names it."""
    if isinstance(base, ast.Subscript):
        return f"a member of {_written(base.base)}"
    return base.id if isinstance(base, ast.Name) else "the tensor"


def _bounded(index: Index, extent: int) -> Index:
    """A gathered index that says nothing of its range lies inside the axis that it indexes."""
    atom = index.atom
    if isinstance(atom, Gathered) and atom.extent == UNKNOWN_EXTENT:
        return gathered(atom.tensor, atom.indices, extent, atom.wrap)
    return index


def _check_truth(expr: ast.Reduction, body: Expr) -> None:
    if expr.kind in ("any", "all") and body.dtype != "bool":
        word = "numbers" if body.dtype == WEAK else body.dtype
        raise DefinitionError(f"{expr.span}: `{expr.kind}` is of truth values, its definition has {word}")


def _element_count(expr: ast.Reduction, scope: Scope) -> int:
    """How many elements a reduction takes together."""
    count = 1
    for binder in expr.binders:
        bound = evaluate(binder.bound, scope)
        if binder.kind == "unrolled":
            count *= bound if isinstance(bound, int) else len(as_list(bound))
        else:
            count *= math.prod(integers(bound))
    return count

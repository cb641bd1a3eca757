"""One read of a definition at open extents: only what leads to it is built, only what it depends on is chosen.

What is left out (other operands, requirements, the values of elements) may be anything. So an instance of the
definition is always one of those that are looked at, and a read that stays inside here stays inside there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from smartmem_rules.language import syntax as ast
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.builtins import DefinitionError, Value, as_list, integers
from smartmem_rules.tensor.definitions.elements import ELEMENT_FUNCTIONS
from smartmem_rules.tensor.definitions.literals import WEAK
from smartmem_rules.tensor.definitions.values import Scope, TensorList, TensorName, evaluate
from smartmem_rules.tensor.expr import Condition, Const, Expr, TensorType
from smartmem_rules.tensor.extents import SymbolicExtentError
from smartmem_rules.tensor.index import variable
from smartmem_rules.tensor.inlining import FreshNames
from smartmem_rules.tensor.instantiate import Definitions, names_in
from smartmem_rules.verification.instances.roles import nodes
from smartmem_rules.verification.proof.formulas import Unprovable
from smartmem_rules.verification.proof.open_views import BOUND
from smartmem_rules.verification.proof.paths import Path
from smartmem_rules.verification.proof.reads.late_scope import LateValues, Presence, Undecided
from smartmem_rules.verification.proof.reads.open_elements import OpenDefinition, OpenElements, OpenOperands, ReadWatch
from smartmem_rules.verification.proof.reads.slices import ReadSlice, axes_of
from smartmem_rules.verification.proof.reads.value_kinds import LIST, NUMBER, kinds_of

_ANYTHING = Const(1, WEAK)
"""What stands for every part of an equation that does not lead to the read."""
_DTYPE = "int64"
"""The element type of what a definition computes: one whose elements may be indices."""


class SlicedElements(OpenElements):
    """Builds of an equation only what leads to one read."""

    def __init__(
        self, names: FreshNames, watch: ReadWatch, presence: Presence, unknown: set[str], part: ReadSlice
    ) -> None:
        super().__init__(names, watch, presence, unknown)
        self.part = part

    def element(self, expr: ast.Expression, scope: Scope) -> Expr:
        if id(expr) not in self.part.trail:
            return _ANYTHING
        if expr is self.part.read:
            self._subscript(expr, scope)
            return _ANYTHING
        match expr:
            case ast.Subscript(default=default) if default is not None:
                self.element(default, scope)
            case ast.Conditional(then=then, otherwise=otherwise) if not self.part.has_conditions:
                self.element(then, scope)
                self.element(otherwise, scope)
            case ast.Conditional():
                self._conditional(expr, scope)
            case ast.Reduction():
                self._loops(expr, scope)
            case ast.Unary(operand=operand):
                self.element(operand, scope)
            case ast.Binary(left=left, right=right):
                self.element(left, scope)
                self.element(right, scope)
            case ast.Call(function=function, arguments=arguments) if function in ELEMENT_FUNCTIONS:
                for argument in arguments:
                    self.element(argument, scope)
            case _:
                super().element(expr, scope)
        return _ANYTHING

    def _condition(self, expr: ast.Expression, scope: Scope) -> Condition | bool:
        try:
            return super()._condition(expr, scope)
        except SymbolicExtentError:
            return self._unless_read(expr)
        except DefinitionError as failure:
            if isinstance(failure.__cause__, SymbolicExtentError):
                return self._unless_read(expr)
            raise

    def _unless_read(self, expr: ast.Expression) -> Condition:
        """What is not decided may be true or false, unless the read stands in it."""
        if id(expr) in self.part.trail:
            raise Undecided("a condition that holds the read needs an open number")
        return self._any_truth(expr)

    def _loops(self, expr: ast.Reduction, scope: Scope) -> None:
        if expr.binders and expr.binders[0].kind == "unrolled":
            self._each_member(expr, scope)
            return
        inner = scope
        variables: list[Var] = []
        for binder in expr.binders:
            if binder.name in self.part.names:
                fresh = tuple(self.names.var(extent) for extent in integers(evaluate(binder.bound, inner)))
                variables.extend(fresh)
                indices: tuple[Value, ...] = tuple(variable(v) for v in fresh)
                inner = inner.with_values(**{binder.name: indices if binder.kind == "loops" else indices[0]})
        self.loops += variables
        self.element(expr.body, inner)
        del self.loops[len(self.loops) - len(variables) :]

    def _each_member(self, expr: ast.Reduction, scope: Scope) -> None:
        (binder,) = expr.binders
        bound = evaluate(binder.bound, scope)
        members = range(bound) if isinstance(bound, int) else as_list(bound)
        scopes = [scope.with_values(**{binder.name: member}) for member in members]
        if expr.kind == "first" and scopes and self.part.has_conditions:
            self._first(expr, scopes)
            return
        for inner in scopes:
            self.element(expr.body, inner)


class SlicedDefinition(OpenDefinition):
    """One way to one read of a definition."""

    def __init__(
        self,
        base: Definitions,
        operator: ast.Operator,
        operands: OpenOperands,
        outputs: int,
        path: Path,
        unknown: frozenset[str],
        part: ReadSlice,
    ) -> None:
        super().__init__(base, operator, operands, outputs, path, unknown)
        self.part = part
        self.path = path
        self.kinds = kinds_of(operator, base.functions)

    def look(self, watch: ReadWatch) -> None:
        self._bind()
        self._bind_tensors()
        values = self.scope.values
        assert isinstance(values, LateValues)
        for let in self.operator.lets:
            if names_in(let.value) & self.unknown:
                self.unknown.add(let.name)
            else:
                values.late[let.name] = partial(self._let, let)
        for part in self.part.requires:
            self._hold_if_known(part)
        for let in self.operator.lets:
            if let.name in self.part.lets and let.name not in self.unknown:
                values[let.name]
        elements = SlicedElements(FreshNames("r"), watch, self.presence, self.unknown, self.part)
        self.presence.is_building = True
        while not self._is_looked_at(self.part.equation, elements, watch):
            pass

    def _hold_if_known(self, part: ast.Expression) -> None:
        if names_in(part) & self.unknown:
            return
        try:
            self._require(part)
        except (SymbolicExtentError, Undecided):
            return  # it is not used
        except DefinitionError as failure:
            if not self._is_open(failure):
                raise

    # --- what the read depends on ---

    def _let(self, let: ast.Let) -> Value:
        if not self._is_opaque(let):
            try:
                return evaluate(let.value, self.scope)
            except SymbolicExtentError:
                pass
            except DefinitionError as failure:
                if not self._is_open(failure):
                    raise
        match self.kinds[let.name]:
            case kind if kind == NUMBER:
                return self.path.integer(f"let {let.name}")
            case kind if kind == LIST:
                return tuple(self.path.integer(f"let {let.name}.{n}") for n in range(self.path.choose(BOUND + 1)))
            case _:
                raise Undecided(f"{let.name} is neither a number nor a list of numbers")

    def _is_opaque(self, let: ast.Let) -> bool:
        if not self.part.is_opaque or self.kinds[let.name] not in (NUMBER, LIST):
            return False
        functions = self.scope.functions
        return any(
            isinstance(node, ast.Conditional) or (isinstance(node, ast.Call) and node.function in functions)
            for node in nodes(let.value)
        )

    def _bind_tensors(self) -> None:
        """Outputs and local tensors have a type when somebody asks."""
        for place, output in enumerate(self.operator.outputs):
            self.tensors.late[output.name] = partial(self._output, output, f"%{place}")
        for equation in self.operator.equations:
            self.tensors.late.setdefault(equation.tensor, partial(self._computed, equation))

    def _output(self, output: ast.Output, name: str) -> TensorName | TensorList:
        if output.index is None:
            return TensorName(name, TensorType(_DTYPE, self._output_shape(output, self.scope, name)))
        members = []
        for number in range(self.wanted):
            scope = self.scope.with_values(**{output.index: number})
            shape = self._output_shape(output, scope, name)
            members.append(TensorName(f"{name}.{number}", TensorType(_DTYPE, shape)))
        return TensorList(tuple(members))

    def _computed(self, equation: ast.EquationSyntax) -> TensorName:
        shape = tuple(e for binder in equation.indices for e in integers(evaluate(binder.bound, self.scope)))
        return TensorName(equation.tensor, TensorType(_DTYPE, shape))

    # --- the equation ---

    def _look_at(self, equation: ast.EquationSyntax, elements: OpenElements) -> None:
        output = next((o for o in self.operator.outputs if o.name == equation.tensor), None)
        if output is None:
            self._look_at_local(equation, elements)
            return
        if not self.part.names & {binder.name for binder in equation.indices} and output.index is None:
            self._build(equation, self.scope, (), elements)
            return
        axes = axes_of(equation, output)
        if axes is not None:
            self._look_at_axes(equation, output, axes, elements)
            return
        target = self.scope.tensors[equation.tensor]
        assert target is not None
        for number, member in enumerate(target.members if isinstance(target, TensorList) else (target,)):
            scope = self.scope.with_values(**({equation.member: number} if equation.member else {}))
            variables = tuple(elements.names.var(extent) for extent in member.type.shape)
            self._build(equation, self._index_scope(equation, variables, scope), variables, elements)

    def _look_at_axes(
        self,
        equation: ast.EquationSyntax,
        output: ast.Output,
        axes: Sequence[tuple[ast.Binder, ast.Expression]],
        elements: OpenElements,
    ) -> None:
        """Only the axes whose variables the read uses have an extent."""
        variables: list[Var] = []
        bound: dict[str, Value] = {}
        for binder, item in axes:
            if binder.name in self.part.names:
                alone = replace(output, type=replace(output.type, shape=(item,)))
                fresh = tuple(elements.names.var(e) for e in self._output_shape(alone, self.scope, output.name))
                variables.extend(fresh)
                indices = tuple(variable(v) for v in fresh)
                bound[binder.name] = indices if binder.kind == "loops" else indices[0]
        self._build(equation, self.scope.with_values(**bound), tuple(variables), elements)

    def _look_at_local(self, equation: ast.EquationSyntax, elements: OpenElements) -> None:
        variables: list[Var] = []
        bound: dict[str, Value] = {}
        for place, binder in enumerate(equation.indices):
            if binder.name in self.part.names or (equation.scan and not place):
                fresh = tuple(elements.names.var(e) for e in integers(evaluate(binder.bound, self.scope)))
                variables.extend(fresh)
                indices = tuple(variable(v) for v in fresh)
                bound[binder.name] = indices if binder.kind == "loops" else indices[0]
        self._build(equation, self.scope.with_values(**bound), tuple(variables), elements)

    def _build(
        self, equation: ast.EquationSyntax, scope: Scope, variables: Sequence[Var], elements: OpenElements
    ) -> None:
        elements.loops, elements.step = list(variables), self._step(equation, variables)
        del elements.conditions[:]
        elements.element(equation.body, scope)

    def _is_open(self, failure: Exception) -> bool:
        # a loop that nothing seemed to use has no variable
        return super()._is_open(failure) or "has no value here" in str(failure)


def refuse_guessed_types(operator: ast.Operator) -> None:
    """Raise Unprovable where a definition asks for the element type of what it computes itself."""
    computed = {equation.tensor for equation in operator.equations}
    parts = [*(e.body for e in operator.equations), *(let.value for let in operator.lets), *operator.requires]
    for node in (node for part in parts for node in nodes(part)):
        if isinstance(node, ast.Call) and node.function == "dtype" and names_in(node) & computed:
            raise Unprovable("the element type of a local tensor decides something")


__all__ = ["SlicedDefinition", "SlicedElements", "refuse_guessed_types"]

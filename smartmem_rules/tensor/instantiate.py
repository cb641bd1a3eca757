"""Instantiates an operator of the rule base at concrete operand types and attributes.

From the one definition come the output types (shape inference), the equations (reference semantics and kernel body)
and, through `tensor.classify`, the operator's class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.by_identity import ByIdentity
from smartmem_rules.language.expressions import nodes
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.binding import bind, output_name
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value, integers
from smartmem_rules.tensor.definitions.elements import Elements, Step
from smartmem_rules.tensor.definitions.inside import OutsideError
from smartmem_rules.tensor.definitions.values import Scope, TensorList, TensorName, evaluate, truth
from smartmem_rules.tensor.definitions.watch import Watch
from smartmem_rules.tensor.expr import ALL_DTYPES, Equation, TensorType, needed
from smartmem_rules.tensor.extents import dimensions_needed
from smartmem_rules.tensor.index import variable
from smartmem_rules.tensor.inlining import FreshNames
from smartmem_rules.tensor.ranges import maximum
from smartmem_rules.tensor.unmet import UnmetError

COUNT = TensorType("int64", ())
"""What holds an extent that depends on data."""


class Definitions(Protocol):
    """What instantiation needs of a rule base."""

    @property
    def operators(self) -> Mapping[str, Sequence[ast.Operator]]: ...

    @property
    def functions(self) -> Mapping[str, ast.Function]: ...


@dataclass(frozen=True)
class Size:
    """An axis of an output of which only the first elements count; output number `count`, a scalar, says how many."""

    output: int
    axis: int
    count: int


@dataclass(frozen=True, kw_only=True)
class Instance:
    """An operator at concrete types.

    Equations are in the order of computation.  They name the operands `$0`, `$1`, ... (a variadic operand's members
    go on counting), the outputs `%0`, `%1`, ..., and local tensors by their own names.
    """

    operator: ast.Operator
    outputs: tuple[TensorType, ...]
    equations: tuple[Equation, ...]
    values: Mapping[str, Value] = field(default_factory=dict, compare=False, repr=False)
    """Attributes with their defaults, extents and lets: what a guard on the operator may use."""
    sizes: tuple[Size, ...] = ()
    """The extents that depend on data. The tensors that hold them are the last of `outputs`."""

    @property
    def declared(self) -> int:
        """How many of the outputs the operator has by its signature."""
        return min((size.count for size in self.sizes), default=len(self.outputs))


def instantiate(
    base: Definitions,
    name: str,
    operands: Sequence[TensorType | None],
    attributes: Mapping[str, Value],
    outputs: int = 1,
    types_only: bool = False,
) -> Instance:
    """The first overload of the operator that accepts the operands.

    Args:
        operands: types of the tensor operands (compile-time operands are attributes); None for an absent one.
        attributes: given attributes and compile-time operands by name.
        outputs: how many outputs are wanted.
        types_only: leave the equations out, which takes most of the time.

    Raises:
        Unsupported: no overload accepts the operands; the message gives each one's reason.
    """
    overloads = base.operators.get(name)
    if not overloads:
        raise Unsupported(f"the rule base defines no operator {name}")
    reasons: list[Unsupported] = []
    for operator in overloads:
        try:
            return Instantiation(base, operator, operands, attributes, outputs).run(types_only)
        except Unsupported as reason:
            reasons.append(reason.with_traceback(None))
        except DefinitionError as failure:
            # an overload that computes with numbers may stand before one for open extents
            if not dimensions_needed(failure):
                raise
            reasons.append(Unsupported(str(failure)))
    raise RefusedByAll(reasons)


class RefusedByAll(Unsupported):
    """No overload accepts the operands. The reasons of each are joined when they are read, as most are never read."""

    def __init__(self, reasons: Sequence[Unsupported]) -> None:
        super().__init__()
        self.reasons = reasons

    def __str__(self) -> str:
        return "; ".join(dict.fromkeys(map(str, self.reasons)))


def instantiate_overload(
    base: Definitions,
    operator: ast.Operator,
    operands: Sequence[TensorType | None],
    attributes: Mapping[str, Value],
    outputs: int = 1,
    types_only: bool = False,
    watch: Watch | None = None,
) -> Instance:
    """One overload of an operator; arguments as for `instantiate`. Raises Unsupported where it does not fit."""
    made = Instantiation(base, operator, operands, attributes, outputs)
    made.watch = watch
    return made.run(types_only)


class Instantiation:
    """The making of one instance; `scope` holds what is known so far, also where it fails."""

    def __init__(
        self,
        base: Definitions,
        operator: ast.Operator,
        operands: Sequence[TensorType | None],
        attributes: Mapping[str, Value],
        outputs: int,
    ) -> None:
        self.operator = operator
        self.operands = operands
        self.attributes = attributes
        self.wanted = outputs
        self.scope = Scope(functions=base.functions)
        self.dtypes: Mapping[str, str] = {}
        self.watch: Watch | None = None
        self.counted: list[tuple[str, int, str]] = []
        """The output, the axis and the local scalar of each extent that depends on data."""

    def run(self, types_only: bool) -> Instance:
        self.dtypes = bind(self.operator, self.operands, self.attributes, self.scope)
        for output in self.operator.outputs:
            if output.index is not None:
                unknown = TensorName("", TensorType("float32", ()))
                self.scope.tensors[output.name] = TensorList((unknown,) * self.wanted)
        requirements = _requirements(self.operator)
        for requirement in requirements[0]:
            self._require(requirement)
        for let, now_known in zip(self.operator.lets, requirements[1:], strict=True):
            self.scope.values[let.name] = evaluate(let.value, self.scope)
            for requirement in now_known:
                self._require(requirement)
        outputs = self._output_types()
        sizes = self._counts(outputs)
        equations = () if types_only else self._equations(outputs)
        return Instance(
            operator=self.operator,
            outputs=tuple(outputs.values()),
            equations=equations,
            values=dict(self.scope.values),
            sizes=sizes,
        )

    def _require(self, requirement: ast.Expression) -> None:
        try:
            holds = truth(requirement, self.scope)
        except Unsupported as said:
            raise UnmetError(self.operator, requirement, self.scope, str(said)) from said
        if not holds:
            raise UnmetError(self.operator, requirement, self.scope, None)

    # --- outputs ---

    def _output_types(self) -> dict[str, TensorType]:
        types: dict[str, TensorType] = {}
        for output in self.operator.outputs:
            if output.index is not None:
                members = []
                for number in range(self.wanted):
                    scope = self.scope.with_values(**{output.index: number})
                    type_ = self._output_type(output, scope, output_name(len(types)))
                    members.append(TensorName(output_name(len(types)), type_))
                    types[output_name(len(types))] = type_
                self.scope.tensors[output.name] = TensorList(tuple(members))
            elif len(types) < max(1, self.wanted):
                type_ = self._output_type(output, self.scope, output_name(len(types)))
                self.scope.tensors[output.name] = TensorName(output_name(len(types)), type_)
                types[output_name(len(types))] = type_
        if len(types) < self.wanted:
            raise Unsupported(f"{self.operator.name} has {len(types)} outputs, not {self.wanted}")
        return types

    def _counts(self, outputs: dict[str, TensorType]) -> tuple[Size, ...]:
        """Declare the scalars that hold extents as further outputs."""
        names = [*outputs]
        for _, _, count in self.counted:
            if count not in self.scope.tensors:
                self.scope.tensors[count] = TensorName(output_name(len(outputs)), COUNT)
                outputs[output_name(len(outputs))] = COUNT
        held = {name: self.scope.tensors[name] for _, _, name in self.counted}
        places = {name: [*outputs].index(t.name) for name, t in held.items() if isinstance(t, TensorName)}
        return tuple(Size(names.index(output), axis, places[count]) for output, axis, count in self.counted)

    def _output_type(self, output: ast.Output, scope: Scope, name: str) -> TensorType:
        shape = self._output_shape(output, scope, name)
        return TensorType(self._dtype(output.type.dtype), shape)

    def _output_shape(self, output: ast.Output, scope: Scope, name: str) -> tuple[int, ...]:
        shape: list[int] = []
        for item in output.type.shape:
            counted = size_of(item)
            if counted is not None:
                count, bound = counted
                self.counted.append((name, len(shape), count))
                # an axis of one element would have no loop variable to be known by
                shape.append(maximum(2, *integers(evaluate(bound, scope))))
            elif isinstance(item, ast.Splat):
                shape.extend(integers(evaluate(item.operand, scope)))
            else:
                shape.extend(integers(evaluate(item, scope)))
        if any(extent < 0 for extent in shape):
            raise Unsupported(f"{self.operator.name} would give the shape {shape}")
        return tuple(shape)

    def _dtype(self, name: str) -> str:
        if name in self.dtypes:
            return self.dtypes[name]
        value = self.scope.values.get(name)
        if isinstance(value, str) and value in ALL_DTYPES:
            return value
        if name in ALL_DTYPES:
            return name
        raise DefinitionError(f"{self.operator.span}: the dtype {name} of an output is not bound by any operand")

    # --- equations ---

    def _equations(self, outputs: Mapping[str, TensorType]) -> tuple[Equation, ...]:
        elements = Elements(FreshNames("r"), watch=self.watch)
        equations: list[Equation] = []
        self._declare_scans()
        for equation in self.operator.equations:
            target = self.scope.tensors.get(equation.tensor)
            if isinstance(target, TensorList):
                for number, member in enumerate(target.members):
                    scope = self.scope.with_values(**({equation.member: number} if equation.member else {}))
                    equations.append(self._equation(equation, member, scope, elements))
            elif isinstance(target, TensorName):
                equations.append(self._equation(equation, target, self.scope, elements))
            elif equation.tensor not in {o.name for o in self.operator.outputs}:
                equations.append(self._local(equation, elements))
        missing = set(outputs) - {e.tensor for e in equations}
        if missing:
            raise DefinitionError(f"{self.operator.span}: an output of {self.operator.name} has no equation")
        return needed(equations, outputs)

    def _equation(self, equation: ast.EquationSyntax, target: TensorName, scope: Scope, elements: Elements) -> Equation:
        variables = tuple(elements.names.var(extent) for extent in target.type.shape)
        inner = self._index_scope(equation, variables, scope)
        body = elements.build(equation.body, inner, target.type.dtype, variables, self._step(equation, variables))
        if body.dtype != target.type.dtype:
            raise DefinitionError(
                f"{equation.span}: {equation.tensor} is {target.type.dtype}, its definition {body.dtype}"
            )
        return Equation(target.name, variables, body, target.type, equation.scan)

    def _declare_scans(self) -> None:
        scans = [equation for equation in self.operator.equations if equation.scan]
        for equation in scans:
            self._declare(equation)
        steps = {e.tensor: t.type.shape[:1] for e in scans if isinstance(t := self.scope.tensors[e.tensor], TensorName)}
        for equation in scans[1:]:
            first, own = steps[scans[0].tensor], steps[equation.tensor]
            if own != first:
                raise OutsideError(
                    f"{equation.span}: the scans of {self.operator.name} step together along their first axes, but"
                    f" {equation.tensor} has {_steps(own)} steps and {scans[0].tensor} {_steps(first)}"
                )

    def _step(self, equation: ast.EquationSyntax, variables: Sequence[Var]) -> Step | None:
        if not equation.scan or not variables:
            return None
        scans = [one.tensor for one in self.operator.equations if one.scan]
        done = scans[: scans.index(equation.tensor)]
        return Step(variable(variables[0]), frozenset(scans), frozenset(done))

    def _declare(self, equation: ast.EquationSyntax) -> None:
        """A scan reads itself: its type is known before its body.  It has the dtype of the first operand."""
        shape = tuple(e for binder in equation.indices for e in integers(evaluate(binder.bound, self.scope)))
        dtype = next((operand.dtype for operand in self.operands if operand), "float32")
        self.scope.tensors[equation.tensor] = TensorName(equation.tensor, TensorType(dtype, shape))

    def _index_scope(self, equation: ast.EquationSyntax, variables: tuple[Var, ...], scope: Scope) -> Scope:
        width = len(variables) - sum(binder.kind == "loop" for binder in equation.indices)
        bound: dict[str, Value] = {}
        axis = 0
        for binder in equation.indices:
            if binder.kind == "loops":
                bound[binder.name] = tuple(variable(v) for v in variables[axis : axis + width])
                axis += width
            else:
                if axis >= len(variables):
                    raise DefinitionError(f"{binder.span}: more indices than {equation.tensor} has axes")
                bound[binder.name] = variable(variables[axis])
                axis += 1
        if axis != len(variables):
            raise DefinitionError(f"{equation.span}: {axis} indices for a tensor of rank {len(variables)}")
        return scope.with_values(**bound)

    def _local(self, equation: ast.EquationSyntax, elements: Elements) -> Equation:
        shape: list[int] = []
        bound: dict[str, Value] = {}
        variables: list[Var] = []
        for binder in equation.indices:
            extents = integers(evaluate(binder.bound, self.scope))
            fresh = tuple(elements.names.var(extent) for extent in extents)
            shape.extend(extents)
            variables.extend(fresh)
            indices = tuple(variable(v) for v in fresh)
            bound[binder.name] = indices if binder.kind == "loops" else indices[0]
        body = elements.build(equation.body, self.scope.with_values(**bound), "float32", variables)
        type_ = TensorType(body.dtype, tuple(shape))
        self.scope.tensors[equation.tensor] = TensorName(equation.tensor, type_)
        return Equation(equation.tensor, tuple(variables), body, type_)


_Requirements = tuple[tuple[ast.Expression, ...], ...]
_REQUIREMENTS: dict[int, tuple[ast.Operator, _Requirements]] = {}


def _requirements(operator: ast.Operator) -> _Requirements:
    """What is required before the lets of a definition have values, and behind each let what needs it and none later.

    A let may have a value only where what is required before it holds: `N // k` where k is above 0.
    """
    # kept by identity: to hash a definition takes longer than to walk what it requires
    known = _REQUIREMENTS.get(id(operator))
    if known is None or known[0] is not operator:
        lets = {let.name: place for place, let in enumerate(operator.lets, 1)}
        found: list[list[ast.Expression]] = [[] for _ in range(len(operator.lets) + 1)]
        for one in operator.requires:
            found[max((lets.get(name, 0) for name in names_in(one)), default=0)].append(one)
        known = _REQUIREMENTS[id(operator)] = operator, tuple(map(tuple, found))
    return known[1]


def _steps(shape: tuple[int, ...]) -> str:
    return str(shape[0]) if shape else "no"


def size_of(extent: ast.Expression) -> tuple[str, ast.Expression] | None:
    """The scalar tensor and the bound of an extent `count <= BOUND`, which depends on data; None for other extents."""
    if isinstance(extent, ast.Binary) and extent.operator == "<=" and isinstance(extent.left, ast.Name):
        return extent.left.id, extent.right
    return None


def names_in(tree: object) -> set[str]:
    """All names that occur in a tree, or in a tuple of trees."""
    return set(_NAMES.get(tree, _names_in))


_NAMES: ByIdentity[object, frozenset[str]] = ByIdentity(1 << 12)


def _names_in(tree: object) -> frozenset[str]:
    found: set[str] = set()
    for node in nodes(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.PatternVariable):
            found.add(node.name)
    return frozenset(found)

"""Applies signatures to operands whose shapes have unknowns, and learns what guards and requirements say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smartmem_rules.analysis.probes import allowed_dtypes
from smartmem_rules.analysis.types.environment import Clash, Environment, Unproven
from smartmem_rules.analysis.types.shapes import Atom, Dim, Shape, dim
from smartmem_rules.analysis.types.symbolic_lists import Symbolic
from smartmem_rules.analysis.types.symbolic_values import Evaluator, Names, Type
from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import conjuncts
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.binding import DTYPE_CLASSES
from smartmem_rules.tensor.expr import ALL_DTYPES
from smartmem_rules.tensor.instantiate import names_in


@dataclass(frozen=True)
class Signatures:
    """Works with the functions of one rule base."""

    functions: Mapping[str, s.Function]

    # --- guards ---

    def assume(self, guards: Sequence[s.Expression], environment: Environment, names: Names) -> None:
        """From now on the guards hold. Raises Clash where they cannot."""
        evaluator = Evaluator(environment, self.functions)
        for guard in conjuncts(*guards):
            try:
                self._assume_one(guard, evaluator, names)
            except Unproven:
                continue

    def _assume_one(self, guard: s.Expression, evaluator: Evaluator, names: Names) -> None:
        environment = evaluator.environment
        match guard:
            case s.Binary(
                operator="==",
                left=s.Call(function="dtype", arguments=(one,)),
                right=s.Call(function="dtype", arguments=(other,)),
            ):
                types = [names.tensors.get(t.id) if isinstance(t, s.Name) else None for t in (one, other)]
                if types[0] is not None and types[1] is not None:
                    environment.equal_dtypes(types[0].dtype, types[1].dtype)
                return
            case s.Binary(
                operator="==",
                left=s.Call(function="rank", arguments=(s.Name(id=name),)),
                right=s.Number(value=int(rank)),
            ) if names.tensors.get(name) is not None:
                type_ = names.tensors[name]
                assert type_ is not None
                axes = tuple(dim(environment.fresh(f"{name}{axis}")) for axis in range(rank))
                environment.equal_shapes(type_.shape, Shape(axes))
                return
            case s.Binary(operator="==", left=left, right=right):
                self._assume_equal(evaluator.value(left, names), evaluator.value(right, names), left, evaluator, names)
        value = evaluator.value(guard, names)
        if value is False:
            raise Clash
        if isinstance(value, Atom):
            environment.facts.add(value)

    def _assume_equal(
        self, one: Symbolic, other: Symbolic, left: s.Expression, evaluator: Evaluator, names: Names
    ) -> None:
        environment = evaluator.environment
        if isinstance(one, Dim) and isinstance(other, Dim):
            environment.equal_dims(one, other)
        elif isinstance(one, Shape) and isinstance(other, Shape):
            if isinstance(left, s.Call) and left.function == "broadcast":
                for argument in left.arguments:
                    part = evaluator.value(argument, names)
                    if isinstance(part, Shape) and part != other:
                        environment.contain(part, other)
            environment.equal_shapes(one, other)

    # --- applications ---

    def applied(
        self,
        operator: s.Operator,
        operands: Sequence[Type | None],
        attributes: Mapping[str, Symbolic],
        environment: Environment,
        outputs: int,
    ) -> tuple[Type, ...]:
        """The output types of an overload. Raises Clash where it takes no such operands."""
        if any(item.variadic for item in operator.inputs) or any(one.index for one in operator.outputs):
            raise Unproven
        evaluator = Evaluator(environment, self.functions)
        formals = [item for item in operator.inputs if item.constant is None]
        given = list(operands)
        while given and given[-1] is None:
            given.pop()
        if len(given) > len(formals) or len(operator.outputs) < outputs:
            raise Clash
        given += [None] * (len(formals) - len(given))
        names = Names(dict(attributes))
        dtypes: dict[str, str] = {}
        for formal, type_ in zip(formals, given, strict=True):
            names.tensors[formal.name] = type_
            if type_ is None:
                if not formal.optional:
                    raise Clash
                continue
            assert formal.type is not None
            self._bind_dtype(operator, formal.type.dtype, type_.dtype, dtypes, environment)
            self._bind_shape(formal.type.shape, type_.shape, evaluator, names)
        for formal in formals:
            if names.tensors[formal.name] is None and formal.type is not None:
                for item in formal.type.shape:
                    if isinstance(item, s.Splat) and isinstance(item.operand, s.Name):
                        names.values.setdefault(item.operand.id, Shape())
        self._require(operator, evaluator, names)
        return tuple(self._output(one, evaluator, names, dtypes) for one in operator.outputs[:outputs])

    def _bind_dtype(
        self, operator: s.Operator, name: str, actual: str, bound: dict[str, str], environment: Environment
    ) -> None:
        variables = {variable.name for variable in operator.dtypes}
        environment.narrow(actual, allowed_dtypes(operator, name))
        if name in variables or name not in DTYPE_CLASSES:
            environment.equal_dtypes(bound.setdefault(name, actual), actual)

    def _bind_shape(self, items: tuple[s.Expression, ...], actual: Shape, evaluator: Evaluator, names: Names) -> None:
        environment = evaluator.environment
        place = next((n for n, item in enumerate(items) if isinstance(item, s.Splat)), None)
        rest = environment.shape(actual)
        leading, trailing = items[:place], items[place + 1 :] if place is not None else ()
        if place is None:
            axes = tuple(dim(environment.fresh("extent")) for _ in items)
            environment.equal_shapes(Shape(axes), rest)
            for item, axis in zip(items, axes, strict=True):
                self._bind_axis(item, environment.dim(axis), evaluator, names)
            return
        for item in reversed(trailing):
            rest, axis = environment.last_axis(rest)
            self._bind_axis(item, axis, evaluator, names)
        for item in leading:
            rest, axis = environment.last_axis(rest, first=True)
            self._bind_axis(item, axis, evaluator, names)
        splat = items[place]
        assert isinstance(splat, s.Splat)
        if isinstance(splat.operand, s.Name) and splat.operand.id not in names.values:
            names.values[splat.operand.id] = rest
            return
        known = evaluator.value(splat.operand, names)
        if not isinstance(known, Shape):
            raise Unproven
        environment.equal_shapes(known, rest)

    def _bind_axis(self, item: s.Expression, axis: Dim, evaluator: Evaluator, names: Names) -> None:
        if isinstance(item, s.Name) and item.id not in names.values:
            names.values[item.id] = axis
            return
        known = evaluator.value(item, names)
        if not isinstance(known, Dim):
            raise Unproven
        evaluator.environment.equal_dims(known, axis)

    def _require(self, operator: s.Operator, evaluator: Evaluator, names: Names) -> None:
        lets = {let.name for let in operator.lets}
        early = [one for one in operator.requires if not lets & names_in(one)]
        late = [one for one in operator.requires if lets & names_in(one)]
        for requirement in early:
            self._hold(requirement, evaluator, names)
        for let in operator.lets:
            names.values[let.name] = evaluator.value(let.value, names)
        for requirement in late:
            self._hold(requirement, evaluator, names)

    def _hold(self, requirement: s.Expression, evaluator: Evaluator, names: Names) -> None:
        """A requirement holds: assumed on the left, to be known on the right."""
        environment = evaluator.environment
        for part in conjuncts(requirement):
            if not environment.is_fixed:
                try:
                    self._assume_one(part, evaluator, names)
                except Unproven:
                    continue
                continue
            value = evaluator.value(part, names)
            if value is False:
                raise Clash
            if isinstance(value, Atom):
                environment.known(value)
            elif value is not True:
                raise Unproven

    def _output(self, output: s.Output, evaluator: Evaluator, names: Names, dtypes: Mapping[str, str]) -> Type:
        shape = evaluator.shape_of(output.type.shape, names)
        name = output.type.dtype
        if name in dtypes:
            return Type(dtypes[name], shape)
        environment = evaluator.environment
        value = names.values.get(name)
        if isinstance(value, Atom):
            raise Unproven
        word = value if isinstance(value, str) else name
        if word not in ALL_DTYPES:
            raise Unproven
        return Type(environment.new_dtype(frozenset({word})), shape)

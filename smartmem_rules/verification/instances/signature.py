"""What the signature of an operator says about an operand beside those that are known."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.by_identity import ByIdentity
from smartmem_rules.language.expressions import conjuncts
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.patterns import is_absent, run_time_arguments
from smartmem_rules.tensor.binding import DTYPE_CLASSES
from smartmem_rules.tensor.builtins import Unsupported, Value
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.instantiate import names_in
from smartmem_rules.verification.instances.case import NoInstance
from smartmem_rules.verification.instances.draws import Extents, Shape, bind_extents, divisors, dtypes_of, formals_of
from smartmem_rules.verification.instances.roles import AXES, operator_roles
from smartmem_rules.verification.instances.wishes import Ranks, Wishes
from smartmem_rules.verification.semantics.terms import Leaf, Term

_WHOLE = 0.6
"""How often an extent that divides another one is all of it."""
_SIGNATURES: ByIdentity[Sequence[ast.Operator], dict[tuple[int, int], list[Signature]]] = ByIdentity(4096)
_FACTORS: ByIdentity[ast.Operator, list[tuple[str, str]]] = ByIdentity(4096)
_RANKS: ByIdentity[ast.Operator, dict[str, int]] = ByIdentity(4096)

Operands = Mapping[int, Term | None]
Operators = Mapping[str, Sequence[ast.Operator]]


def ranks_of(items: Sequence[ast.Expression]) -> Ranks:
    """The least and the greatest number of axes of a shape of a signature."""
    least = sum(not isinstance(item, ast.Splat) for item in items)
    return least, least if least == len(items) else math.inf


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What an operator wants of a result that it reads.

    Attributes:
        formal: what the signature says of the result's shape.
        known: the names of that signature that are bound.
        shape: the only shape that fits; None where there are several.
        rank: the only number of axes that a requirement admits.
        dtypes: the element types that fit.
    """

    formal: ast.Input
    known: Extents
    shape: Shape | None
    rank: int | None
    dtypes: tuple[str, ...]

    def check(self, type_: TensorType) -> None:
        """Raises Unsupported where a result is not of a type or a number of axes that fits."""
        assert self.formal.type is not None
        rank, (least, most) = len(type_.shape), ranks_of(self.formal.type.shape)
        if not least <= rank <= most or self.rank not in (None, rank):
            raise Unsupported(f"its reader wants another rank than {rank}")
        self.check_dtype(type_.dtype)

    def check_dtype(self, dtype: str | None) -> None:
        """Raises Unsupported where a result is of an element type that does not fit, as far as it is known."""
        if dtype is not None and dtype not in self.dtypes:
            raise Unsupported(f"its reader takes no {dtype}")


@dataclass(frozen=True)
class Signature:
    """An overload of an operator, with the formals of its run-time operands."""

    overload: ast.Operator
    formals: list[ast.Input]

    def known(self, operands: Operands, wanted: Wanted | None) -> Extents:
        """What operands, and the shape that is wanted of the result, say about the names of the signature."""
        known: Extents = {}
        for place, formal in enumerate(self.formals):
            operand = operands.get(place)
            if operand is not None:
                bind_extents(formal, operand.type.shape, known)
        if wanted is not None and wanted.shape is not None:
            bind_extents(self.overload.outputs[0], wanted.shape, known)
        return known

    def wants(self, place: int, operands: Operands, outer: Wanted | None, source: random.Random) -> Wanted:
        """What is wanted of an operand beside those before it.

        Args:
            outer: what is wanted of the operator's own result.
        """
        formal, known = self.formals[place], self.known(operands, outer)
        bound = self.bound_type(formal, operands)
        shape = self.only_shape(place, known)
        for product, factor in _FACTORS.get(self.overload, _factors):
            whole = known.get(product)
            if isinstance(whole, int) and factor not in known:
                known[factor] = whole if source.random() < _WHOLE else source.choice(divisors(whole))
        dtypes = dtypes_of(self.overload, formal) if bound is None else (bound,)
        if outer is not None and formal.type is not None and self.overload.outputs[0].type.dtype == formal.type.dtype:
            dtypes = tuple(d for d in dtypes if d in outer.dtypes) or dtypes
        if outer is not None and shape is None and self.gives_shape_of(formal):
            return Wanted(formal=outer.formal, known=outer.known, shape=None, rank=outer.rank, dtypes=dtypes)
        return Wanted(formal=formal, known=known, shape=shape, rank=self.rank(formal), dtypes=dtypes)

    def result_dtype(self, operands: Operands, place: int) -> str | None:
        """The element type of a result, where an operand of the same type variable says it."""
        outputs = self.overload.outputs
        name = outputs[min(place, len(outputs) - 1)].type.dtype
        if name in DTYPE_CLASSES and all(variable.name != name for variable in self.overload.dtypes):
            return None
        for number, formal in enumerate(self.formals):
            operand = operands.get(number)
            if operand is not None and formal.type is not None and formal.type.dtype == name:
                return operand.type.dtype
        return None

    def rank(self, formal: ast.Input) -> int | None:
        """The number of axes that a requirement `rank(S) == n` wants of an operand."""
        assert formal.type is not None
        match formal.type.shape:
            case (ast.Splat(operand=ast.Name(id=name)),):
                return _RANKS.get(self.overload, _required_ranks).get(name)
        return None

    def admits(self, pattern: ast.PatternOperator, wishes: Wishes, operators: Operators) -> bool:
        """Whether the tensors that a pattern binds may have the types and ranks that guards want."""
        for formal, argument in zip(self.formals, run_time_arguments(pattern), strict=False):
            if is_absent(argument):
                continue
            assert formal.type is not None
            if isinstance(argument, ast.PatternVariable):
                types = wishes.types.get(argument.name)
                if types and not set(types) & set(dtypes_of(self.overload, formal)):
                    return False
            name = _of_the_shape(argument, operators)
            wanted, given = wishes.ranks.get(name or ""), ranks_of(formal.type.shape)
            if wanted is not None and (wanted[0] > given[1] or wanted[1] < given[0]):
                return False
        return True

    def gives_shape_of(self, formal: ast.Input) -> bool:
        """Whether the result has the shape of an operand."""
        assert formal.type is not None
        return self.overload.outputs[0].type.shape == formal.type.shape

    def whole_shapes(
        self, operands: Sequence[Term | None], fresh: Mapping[str, Leaf]
    ) -> dict[str, list[tuple[int, Leaf]]]:
        """The names of shapes that new operands alone have, with the places of the operands."""
        found: dict[str, list[tuple[int, Leaf]]] = {}
        taken: set[str] = set()
        for place, (formal, operand) in enumerate(zip(self.formals, operands, strict=True)):
            if operand is None or formal.type is None:
                continue
            match formal.type.shape:
                case (ast.Splat(operand=ast.Name(id=name)),) if isinstance(operand, Leaf) and operand.name in fresh:
                    found.setdefault(name, []).append((place, operand))
                case items:
                    taken |= names_in(items)
        return {name: places for name, places in found.items() if name not in taken}

    def only_shape(self, place: int, known: Extents) -> Shape | None:
        """The only shape that an operand may have; None where there are several."""
        formal = self.formals[place]
        assert formal.type is not None
        shape: list[int] = []
        for item in formal.type.shape:
            name = item.operand if isinstance(item, ast.Splat) else item
            value = known.get(name.id) if isinstance(name, ast.Name) else None
            if isinstance(value, tuple):
                shape += [n for n in value if isinstance(n, int)]
            elif isinstance(value, int):
                shape.append(value)
            else:
                return None
        return tuple(shape)

    def bound_type(self, formal: ast.Input, operands: Operands) -> str | None:
        """The element type that other operands give the type variable of a formal."""
        assert formal.type is not None
        for place, other in enumerate(self.formals):
            operand = operands.get(place)
            if operand is not None and other.type is not None and other.type.dtype == formal.type.dtype:
                return operand.type.dtype
        return None


def _factors(overload: ast.Operator) -> list[tuple[str, str]]:
    """Extents that requirements `C == CG * group` make a multiple of another one by an attribute, and the other one."""
    attributes = {attribute.name for attribute in overload.attributes}
    found = []
    for part in conjuncts(*overload.requires):
        match part:
            case ast.Binary(
                operator="==",
                left=ast.Name(id=product),
                right=ast.Binary(operator="*", left=ast.Name(id=factor), right=ast.Name(id=number)),
            ) if number in attributes:
                found.append((product, factor))
    return found


def signatures(overloads: Sequence[ast.Operator], name: str, count: int) -> list[Signature]:
    """The overloads that take so many run-time operands. Raises NoInstance where there is none."""
    by_count = _SIGNATURES.get(overloads, lambda _: {})
    key = len(overloads), count  # a rule base may get further overloads
    found = by_count.get(key)
    if found is None:
        found = [Signature(one, formals) for one in overloads if (formals := formals_of(one, count)) is not None]
        by_count[key] = found
    if not found:
        raise NoInstance(f"{name} takes no {count} operands")
    return found


def possible(
    found: Sequence[Signature], pattern: ast.PatternOperator, wishes: Wishes, operators: Operators
) -> list[int]:
    """The places of the overloads that the guards leave; of all where they leave none."""
    return [n for n, one in enumerate(found) if one.admits(pattern, wishes, operators)] or [*range(len(found))]


def _of_the_shape(pattern: ast.Pattern, operators: Operators) -> str | None:
    """The tensor that has the shape of a term: the term itself, or what operators that keep shapes are applied to."""
    if isinstance(pattern, ast.PatternVariable):
        return pattern.name
    if not isinstance(pattern, ast.PatternOperator):
        return None
    arguments = run_time_arguments(pattern)
    found = [
        Signature(one, formals)
        for one in operators.get(pattern.operator, ())
        if (formals := formals_of(one, len(arguments))) is not None
    ]
    for place, argument in enumerate(arguments):
        if found and all(one.gives_shape_of(one.formals[place]) for one in found):
            return _of_the_shape(argument, operators)
    return None


def _required_ranks(overload: ast.Operator) -> dict[str, int]:
    """The number of axes that requirements want, by the name of a shape; the first where there are several."""
    found: dict[str, int] = {}
    for part in conjuncts(*overload.requires):
        match part:
            case ast.Binary(
                operator="==",
                left=ast.Call(function="rank", arguments=(ast.Name(id=name),)),
                right=ast.Number(value=number),
            ):
                found.setdefault(name, int(number))
    return found


def names_an_axis_twice(
    overload: ast.Operator,
    given: Mapping[str, Value],
    operands: Sequence[Term | None],
    functions: Mapping[str, ast.Function],
) -> bool:
    """Whether a list of axes, drawn for other operands, counts one axis from the front and from the end."""
    drawn = [(name, value) for name, value in given.items() if isinstance(value, tuple)]
    if not drawn:
        return False
    roles = operator_roles(overload, functions)
    lists = [value for name, value in drawn if name in roles and roles[name].use == AXES]
    if not lists:
        return False
    rank = max((len(o.type.shape) for o in operands if o is not None), default=0)
    return any(len({a + rank if isinstance(a, int) and a < 0 else a for a in axes}) < len(axes) for axes in lists)

"""What the signature of an operator says about an operand beside those that are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smartmem_rules.language import syntax as ast
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.verification.instances.case import NoInstance
from smartmem_rules.verification.instances.draws import Extents, Shape, bind_extents, formals_of
from smartmem_rules.verification.instances.roles import AXES, operator_roles
from smartmem_rules.verification.semantics.terms import Term

Operands = Mapping[int, Term | None]


@dataclass(frozen=True)
class Signature:
    """An overload of an operator, with the formals of its run-time operands."""

    overload: ast.Operator
    formals: list[ast.Input]

    def known(self, operands: Operands, wanted: Shape | None) -> Extents:
        """What operands, and a shape that is wanted of the result, say about the names of the signature."""
        known: Extents = {}
        for place, formal in enumerate(self.formals):
            operand = operands.get(place)
            if operand is not None:
                bind_extents(formal, operand.type.shape, known)
        if wanted is not None:
            bind_extents(self.overload.outputs[0], wanted, known)
        return known

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


def signatures(overloads: Sequence[ast.Operator], name: str, count: int) -> list[Signature]:
    """The overloads that take so many run-time operands. Raises NoInstance where there is none."""
    found = [Signature(one, formals) for one in overloads if (formals := formals_of(one, count)) is not None]
    if not found:
        raise NoInstance(f"{name} takes no {count} operands")
    return found


def names_an_axis_twice(
    overload: ast.Operator,
    given: Mapping[str, Value],
    operands: Sequence[Term | None],
    functions: Mapping[str, ast.Function],
) -> bool:
    """Whether a list of axes, drawn for other operands, counts one axis from the front and from the end."""
    rank = max((len(o.type.shape) for o in operands if o is not None), default=0)
    roles = operator_roles(overload, functions)
    lists = [value for name, value in given.items() if name in roles and roles[name].use == AXES]
    return any(
        isinstance(axes, tuple) and len({a + rank if isinstance(a, int) and a < 0 else a for a in axes}) < len(axes)
        for axes in lists
    )

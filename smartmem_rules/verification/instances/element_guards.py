"""What the guards of a rule say about the elements of constants: the loops over them, and their equations."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from smartmem_rules.guards.constant_elements import body_of, values_at_each_place, values_of
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.by_identity import ByIdentity
from smartmem_rules.language.expressions import conjuncts, tensors_of
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.binding import FLOATS
from smartmem_rules.tensor.definitions.values import Scope, TensorName
from smartmem_rules.tensor.expr import Equation, Read, Reduce, TensorType, own_indices, substitute_reads, walk
from smartmem_rules.tensor.index import variable
from smartmem_rules.tensor.inlining import FreshNames
from smartmem_rules.tensor.instantiate import names_in
from smartmem_rules.tensor.primitives import Array, storage_dtype
from smartmem_rules.verification.instances.roles import nodes


@dataclass(frozen=True)
class ElementGuards:
    """The loops over elements that stand anywhere in the guards of a rule."""

    guards: Sequence[ast.Expression]

    @cached_property
    def wanted(self) -> list[tuple[ast.Reduction, frozenset[str]]]:
        """The loops that have to hold, each with the constants of which it reads elements."""
        loops = [part for part in conjuncts(*self.guards) if isinstance(part, ast.Reduction)]
        return [(loop, frozenset(name for name, _ in tensors_of(loop))) for loop in loops]

    @cached_property
    def equations(self) -> list[tuple[str, ast.Expression]]:
        """The constants whose elements a loop equals to an expression, or holds near to it, and the expressions."""
        loops = [node for guard in self.guards for node in nodes(guard) if isinstance(node, ast.Reduction)]
        return [found for loop in loops if (found := equation_of(loop)) is not None]

    def over(self, name: str, others: Container[str]) -> Iterator[ast.Reduction]:
        """The loops over one constant, and others that are known, that have to hold."""
        for loop, read in self.wanted:
            if name in read and all(one == name or one in others for one in read):
                yield loop

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Constants in the order of their names; those that an equation computes from others come last."""
        made = {name for name, value in self.equations if any(isinstance(node, ast.Subscript) for node in nodes(value))}
        return sorted(names, key=lambda name: (name in made, name))

    def made_of(self, name: str) -> set[str]:
        """The names of which an equation makes a constant."""
        return {other for made, value in self.equations if made == name for other in names_in(value)}


@dataclass(frozen=True)
class Asked:
    """What the guards of a rule say about the elements of one constant.

    Attributes:
        others: the elements of constants that are drawn already.
        literals: the numbers of the rule.
    """

    name: str
    others: Mapping[str, Array]
    guards: ElementGuards
    scope: Scope
    literals: Sequence[float]

    @cached_property
    def loops(self) -> list[ast.Reduction]:
        """The loops over the constant that can be computed."""
        return list(self.guards.over(self.name, self.others))

    def at_each_place(self, loop: ast.Reduction, array: Array) -> Array | None:
        """Where the body of a loop holds for some elements; None where the loop asks for something else."""
        body = self._body(loop)
        return None if body is None else values_of(body, {**self.others, self.name: array})

    def at_each_place_of_all(self, loop: ast.Reduction, arrays: Array) -> Array | None:
        """`at_each_place` for each of some elements, as rows, computed at once where no place reads several elements.

        Args:
            arrays: of the constant's shape, along a first axis.
        """
        body = self._body(loop)
        if body is None:
            return None
        beside = _beside_each_other(body, self.name, len(arrays))
        if beside is not None:
            found = values_of(beside, {**self.others, self.name: arrays})
            return None if found is None else found.reshape(len(arrays), -1)
        rows = [values_of(body, {**self.others, self.name: array}) for array in arrays]
        known = [row for row in rows if row is not None]
        return np.stack(known) if len(known) == len(rows) else None

    def _body(self, loop: ast.Reduction) -> Equation | None:
        if loop.kind != "all":
            return None
        key = id(loop)
        if key not in self._bodies:  # many numbers are tried in one loop
            self._bodies[key] = body_of(loop, self.scope)
        return self._bodies[key]

    @cached_property
    def _bodies(self) -> dict[int, Equation | None]:
        """The bodies of the loops, which the guards keep alive, by their identity."""
        return {}

    def holds(self, array: Array) -> bool:
        """Whether all loops hold for some elements; of one that asks for something else nothing is said."""
        found = (self.at_each_place(loop, array) for loop in self.loops)
        return all(holds is None or bool(holds.all()) for holds in found)

    def solved(self, type_: TensorType) -> Array | None:
        """The elements that an equation of the guards says; None where none does.

        What a guard holds near to an expression is meant as that expression, and is not rounded to the constant's type.
        """
        for loop in self.loops:
            solved = self.right_of(loop)
            if solved is not None and solved.size == type_.elements:
                exact = isinstance(loop.body, ast.Binary) and loop.body.operator == "=="
                return stored(solved, type_) if exact or type_.dtype not in FLOATS else solved.reshape(type_.shape)
        return None

    def right_of(self, loop: ast.Reduction) -> Array | None:
        """The elements that a loop's equation says; None where it has none, or the rest of it is not known."""
        found = equation_of(loop)
        if found is None or found[0] != self.name:
            return None
        equation = _RIGHT_SIDES.get(loop, _right_side)
        arrays = {name: one.astype(np.float64) if one.dtype.kind == "f" else one for name, one in self.others.items()}
        solved = values_at_each_place(equation, _in_doubles(self.scope), arrays, "float64")
        return None if solved is None else solved.astype(np.float64)


def _right_side(loop: ast.Reduction) -> ast.Reduction:
    """The loop over what the equation of a loop says that elements are."""
    found = equation_of(loop)
    assert found is not None
    return replace(loop, kind="sum", body=found[1])


_RIGHT_SIDES: ByIdentity[ast.Reduction, ast.Reduction] = ByIdentity(1 << 8)


def stored(flat: Sequence[float] | Array, type_: TensorType) -> Array:
    """Elements as numbers of a constant's type."""
    with np.errstate(over="ignore"):
        return np.asarray(flat, np.float64).reshape(type_.shape).astype(storage_dtype(type_.dtype))


def equation_of(loop: ast.Reduction) -> tuple[str, ast.Expression] | None:
    """The tensor whose elements the body of a loop equals to an expression, or holds near to it, and the expression."""
    match loop.body:
        case ast.Binary(operator="==", left=ast.Subscript(base=ast.Name(id=name)), right=value):
            return name, value
        case ast.Binary(
            operator="<" | "<=",
            left=ast.Call(
                function="abs",
                arguments=(ast.Binary(operator="-", left=ast.Subscript(base=ast.Name(id=name)), right=value),),
            ),
        ):
            return name, value
    return None


def _beside_each_other(body: Equation, name: str, count: int) -> Equation | None:
    """A loop's body over several arrays of a constant's elements along a first axis; None where their sums would be
    rounded otherwise, or where they are places of others."""
    if any(isinstance(n, Reduce) or any(name in i.gathered for i in own_indices(n)) for n in walk(body.body)):
        return None
    number = FreshNames("one").var(count)

    def along(read: Read) -> Read:
        return Read(name, (variable(number), *read.indices), read.dtype) if read.tensor == name else read

    type_ = TensorType(body.type.dtype, (count, *body.type.shape))
    return Equation(body.tensor, (number, *body.variables), substitute_reads(body.body, along), type_)


def _in_doubles(scope: Scope) -> Scope:
    """The same names with all floats in double precision, in which products of two singles are exact."""
    wide = dict(scope.tensors)
    for name, tensor in scope.tensors.items():
        if isinstance(tensor, TensorName) and tensor.type.dtype in FLOATS:
            wide[name] = TensorName(tensor.name, TensorType("float64", tensor.type.shape))
    return replace(scope, tensors=wide)

"""Draws the tensors that a pattern binds where they are operands of an operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.patterns import run_time_arguments
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.verification.instances.case import DTYPES, Choices, representable
from smartmem_rules.verification.instances.constants import Choose
from smartmem_rules.verification.instances.draws import Extents, Shape, bind_extents, dtypes_of
from smartmem_rules.verification.instances.signature import Signature, Wanted
from smartmem_rules.verification.semantics.terms import Leaf, Term

if TYPE_CHECKING:
    from smartmem_rules.verification.instances.cases import Search

_SCALARS = 0.6
"""The share of numbers that are scalars: most are in models, but any constant of equal elements matches."""
_OTHER_TYPE = 0.04


@dataclass(kw_only=True)
class LeafDraws:
    """What is known where the operands of one operator are drawn.

    Attributes:
        dtype: the element type of the instance.
        placed: the tensors that have a type already.
        known: the extents that the signature has bound; those of the drawn tensors are added.
        wanted: what is wanted of the operator's result.
        fresh: the tensors that are drawn.
        members: those of them that belong to the pattern's list of operands.
    """

    search: Search
    choose: Choose
    choices: Choices
    pattern: ast.PatternOperator
    path: str
    dtype: str
    signature: Signature
    placed: Mapping[str, Leaf]
    known: Extents
    wanted: Wanted | None
    fresh: dict[str, Leaf] = field(default_factory=dict)
    members: list[Term] = field(default_factory=list)

    def all(self, operands: dict[int, Term | None]) -> None:
        """Draw every operand that is not there.

        Raises:
            Unsupported: a number of the pattern is none of the operand's type.
        """
        count = len(run_time_arguments(self.pattern))
        for place, formal in enumerate(self.signature.formals):
            if place in operands:
                continue
            bound = self.signature.bound_type(formal, operands) if self.search.aims else None
            operands[place] = leaf = self._leaf(place, formal, bound)
            if place >= count:
                self.members.append(leaf)

    def _leaf(self, place: int, formal: ast.Input, bound: str | None) -> Leaf:
        name, number = self._named(place)
        if name in self.fresh:
            return self.fresh[name]
        shape = self._shape(name, place, formal, number)
        bind_extents(formal, shape, self.known)
        allowed = dtypes_of(self.signature.overload, formal)
        if number is not None:
            allowed = tuple(d for d in allowed if representable(number, d))
            if not allowed:
                raise Unsupported(f"{number} is no value of this type")
        if bound is not None:
            self.choices[f"dtype:{name}"] = bound  # the same choices give the same instance where nothing is aimed at
        dtype = bound or self._dtype(name, allowed)
        leaf = self.fresh[name] = Leaf(name, TensorType(dtype, tuple(shape)), number)
        return leaf

    def _named(self, place: int) -> tuple[str, int | float | None]:
        """The name of the tensor at a place, and the number that the pattern writes there."""
        arguments = run_time_arguments(self.pattern)
        if place >= len(arguments):
            return f"{self.pattern.variadic}{place - len(arguments)}", None
        argument = arguments[place]
        if isinstance(argument, ast.PatternNumber):
            return f"#{self.path}.{place}", argument.value
        assert isinstance(argument, ast.PatternVariable)
        return argument.name, None

    def _shape(self, name: str, place: int, formal: ast.Input, number: int | float | None) -> Shape:
        slot = f"shape:{name}"
        only = self._only_shape(name, place) if self.search.aims else None
        if only is not None:
            self.choices[slot] = only
            return only
        shape: Shape = self.choose(slot, lambda: self._drawn(name, formal, number))
        return shape

    def _only_shape(self, name: str, place: int) -> Shape | None:
        """The only shape that the signature or the guards admit."""
        only = self.signature.only_shape(place, self.known)
        if only is not None:
            return only
        drawn = self.choices.get(f"shape:{name}")
        return self.search.wishes.only_shape(name, {**self.placed, **self.fresh}, drawn, self.search.random)

    def _drawn(self, name: str, formal: ast.Input, number: int | float | None) -> Shape:
        draws, seen = self.search.draws, [leaf.type.shape for leaf in (*self.placed.values(), *self.fresh.values())]
        if number is not None:
            return () if self.search.random.random() < _SCALARS else draws.shape(formal, self.known, seen)
        if not self.search.aims:
            return draws.shape(formal, self.known, seen)
        wanted, known, rank = self.wanted, self.known, self.signature.rank(formal)
        if wanted is not None and self.signature.gives_shape_of(formal):
            formal, known, rank = wanted.formal, wanted.known, wanted.rank
        return self.search.wishes.of_its_rank(name, rank, lambda: draws.shape(formal, dict(known), seen))

    def _dtype(self, name: str, allowed: tuple[str, ...]) -> str:
        source = self.search.random
        named = [w for w in self.search.wishes.types.get(name, ()) if w in allowed] if self.search.aims else []
        if named:
            # an earlier draw may have noted that the type is the usual one
            return str(self.choose(f"dtype:{name}", lambda: source.choice(named), lambda chosen: chosen in named))
        preferred = self.dtype if self.dtype in allowed else next((d for d in DTYPES if d in allowed), allowed[0])
        often = preferred in ("float32", "int32")

        def draw() -> str | None:
            # noted even where the type is the usual one: the same choices have to give the same instance
            return source.choice([d for d in DTYPES if d in allowed]) if source.random() < _OTHER_TYPE else None

        other = self.choose(f"dtype:{name}", draw) if often else self.choices.get(f"dtype:{name}")
        return str(other or preferred)

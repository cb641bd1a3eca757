"""Constant tensors of the e-graph: those of the model, and those that rules make of them, computed when needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from smartmem_rules.graph.described import Tensors
from smartmem_rules.guards.constant_elements import LOOPED_OVER, uniform_value
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.expr import Equation, TensorType
from smartmem_rules.tensor.interpreter.interpret import evaluate_equations
from smartmem_rules.tensor.primitives import Array, storage_dtype

LOOKED_AT = 1 << 16
"""The largest computed constant, in elements, that a guard may ask the value of."""
SMALL = 64
"""Constants of at most so many elements are computed at once; equal ones are one constant."""


@dataclass(frozen=True)
class Recipe:
    """A constant computed by equations over `$0`, `$1`, ...; it is the tensor named `result`."""

    equations: tuple[Equation, ...] = field(hash=False, compare=False, repr=False)
    operands: tuple[int | None, ...]
    result: str


class Constants:
    """Constants by number; equal recipes have one number."""

    def __init__(self) -> None:
        self._types: list[TensorType] = []
        self._arrays = Tensors[int]()
        self._recipes: dict[int, Recipe] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._uniform: dict[int, float | None] = {}
        self.overflowed = False
        """Whether a constant that was computed is not finite, though those that it is made of are."""

    def given(self, name: str, type_: TensorType, constants: Mapping[str, Array]) -> int:
        """The number of a constant of the model; a large one is not looked at."""
        number = self._add(_value_key(constants[name], type_) if type_.elements <= SMALL else ("given", name), type_)
        if number not in self._arrays:
            self._arrays.take_from(constants, number, name)
        return number

    def scalar(self, value: float, dtype: str) -> int:
        """The number of a constant without axes.

        Raises:
            Unsupported: the element type has no such value.
        """
        kind = storage_dtype(dtype)
        if kind.kind in "iu" and not (value == int(value) and np.iinfo(kind).min <= value <= np.iinfo(kind).max):
            raise Unsupported(f"{value} is no {dtype}")
        array, type_ = np.asarray(value, kind), TensorType(dtype, ())
        number = self._add(_value_key(array, type_), type_)
        self._arrays.setdefault(number, array)
        return number

    def computed(self, key: str, recipe: Recipe, type_: TensorType) -> int:
        """The number of a constant that an operator makes of constants; `key` says which operator."""
        known = (key, recipe.operands, recipe.result)
        number = self._numbers.get(known)
        if number is None and type_.elements <= SMALL and self._is_quick(recipe):
            array = self._compute(recipe)
            number = self._numbers[known] = self._add(_value_key(array, type_), type_)
            self._arrays.setdefault(number, array)
        if number is None:
            number = self._add(known, type_)
            self._recipes[number] = recipe
        return number

    def _is_quick(self, recipe: Recipe) -> bool:
        return all(o is None or (o in self._arrays and self._types[o].elements <= SMALL) for o in recipe.operands)

    def _compute(self, recipe: Recipe) -> Array:
        tensors = {f"${place}": self._arrays[o] for place, o in enumerate(recipe.operands) if o is not None}
        result = evaluate_equations(recipe.equations, tensors)[recipe.result]
        self.overflowed |= not _is_finite(result) and all(map(_is_finite, tensors.values()))
        return result

    def _add(self, key: tuple[object, ...], type_: TensorType) -> int:
        number = self._numbers.setdefault(key, len(self._types))
        if number == len(self._types):
            self._types.append(type_)
        return number

    def type(self, number: int) -> TensorType:
        return self._types[number]

    def array(self, number: int) -> Array:
        """The elements of a constant, computed at the first call."""
        pending = [number]
        while pending:
            current = pending[-1]
            if current in self._arrays:
                pending.pop()
                continue
            recipe = self._recipes[current]
            missing = [o for o in recipe.operands if o is not None and o not in self._arrays]
            if missing:
                pending.extend(missing)
                continue
            self._arrays[current] = self._compute(recipe)
        return self._arrays[number]

    def give(self, number: int, others: Tensors[str], name: str) -> None:
        """Put a constant into another table; one of the model is not looked at."""
        if number not in self._arrays:
            self.array(number)
        others.take_from(self._arrays, name, number)

    def looked_at(self, number: int) -> Array | None:
        """The elements of a constant that a guard may loop over, None where there are too many."""
        most = LOOPED_OVER if number in self._arrays else LOOKED_AT
        return self.array(number) if self._types[number].elements <= most else None

    def uniform(self, number: int) -> float | None:
        """The value of a constant all of whose elements are equal, None for any other or a large computed one."""
        if number not in self._uniform:
            self._uniform[number] = self._find_uniform(number)
        return self._uniform[number]

    def _find_uniform(self, number: int) -> float | None:
        if number not in self._arrays and self._types[number].elements > LOOKED_AT:
            return None
        if number in self._arrays and self._arrays.varies(number):
            return None
        return uniform_value(self.array(number))


def _is_finite(array: Array) -> bool:
    return bool(np.isfinite(array).all())


def _value_key(array: Array, type_: TensorType) -> tuple[object, ...]:
    return ("value", type_.dtype, type_.shape, array.tobytes())

"""Constant tensors of the e-graph: those of the model, and those that rules make of them, computed when needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from smartmem_rules.graph.described import Tensors
from smartmem_rules.guards.constant_elements import LOOPED_OVER, uniform_value
from smartmem_rules.guards.magnitudes import LARGEST, Magnitudes, is_moderate, keeps_elements, magnitudes, moves
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
        self._magnitudes: dict[int, Magnitudes] = {}
        self._lossy: set[int] = set()
        self._relied_on: set[int] = set()

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
            kept = self._keeps(recipe, magnitudes(array) if type_.dtype in LARGEST else None, type_)
            # 0 that is left of an underflow is no zero of the model
            number = self._numbers[known] = self._add(_value_key(array, type_) if kept else ("lossy", *known), type_)
            self._arrays.setdefault(number, array)
            if not kept:
                self._lossy.add(number)
        if number is None:
            number = self._add(known, type_)
            self._recipes[number] = recipe
        return number

    def _is_quick(self, recipe: Recipe) -> bool:
        return all(o is None or (o in self._arrays and self._types[o].elements <= SMALL) for o in recipe.operands)

    def _compute(self, recipe: Recipe) -> Array:
        tensors = {f"${place}": self._arrays[o] for place, o in enumerate(recipe.operands) if o is not None}
        return evaluate_equations(recipe.equations, tensors)[recipe.result]

    def _keeps(self, recipe: Recipe, made: Magnitudes | None, type_: TensorType) -> bool:
        """Whether equations lost no element of what they computed; integers wrap in any order to the same."""
        if made is None:
            return True

        def operands() -> list[Magnitudes]:
            found = (self._magnitudes_of(operand) for operand in recipe.operands if operand is not None)
            return [one for one in found if one is not None]

        return keeps_elements(recipe.equations, made, operands, type_.dtype)

    def _magnitudes_of(self, number: int) -> Magnitudes | None:
        """The magnitudes of a constant that is there; None where it is no float."""
        if number not in self._magnitudes and self._types[number].dtype in LARGEST:
            self._magnitudes[number] = magnitudes(self._arrays[number])
        return self._magnitudes.get(number)

    def is_reliable(self, number: int) -> bool:
        """Whether a rule that relaxes reassociation may compute with a constant, or may have computed it.

        Its elements are moderate, and none was lost where the constant was computed. A large one is taken to be so
        until `relies_on_others` looks at it.
        """
        if self.is_large(number) and number not in self._lossy and number not in self._magnitudes:
            self._relied_on.add(number)
            return True
        return self._is_reliable(number)

    def is_large(self, number: int) -> bool:
        """Whether a constant has too many elements to look at while the rules run."""
        return self._types[number].elements > LOOKED_AT

    def _is_reliable(self, number: int) -> bool:
        if number not in self._arrays:
            self.array(number)
        found = self._magnitudes_of(number)
        return number not in self._lossy and (found is None or is_moderate(found, self._types[number].dtype))

    def judged_with(self, number: int) -> set[int]:
        """The constants that a large one is computed from, through views: what they lack is seen in its elements."""
        found: set[int] = set()
        recipe = self._recipes.get(number)
        pending = [] if recipe is None or moves(recipe.equations) else [recipe]
        while pending:
            operands = [o for o in pending.pop().operands if o is not None]
            found.update(operands)
            made = [one for o in operands if (one := self._recipes.get(o)) is not None]
            pending += [one for one in made if moves(one.equations)]
        return found

    def relies_on_others(self) -> bool:
        """Whether a large constant that rules relied on is not reliable: they refuse that constant from now on.

        Constants that nobody computed are left out: no form that was chosen holds them.
        """
        relied_on, self._relied_on = self._relied_on, set()
        return not all([self._is_reliable(number) for number in relied_on if number in self._arrays])

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
            if not self._keeps(recipe, self._magnitudes_of(current), self._types[current]):
                self._lossy.add(current)
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


def _value_key(array: Array, type_: TensorType) -> tuple[object, ...]:
    return ("value", type_.dtype, type_.shape, array.tobytes())

"""Which tensors of an instance are constants, and what their elements are."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Mapping, Sized
from functools import partial
from typing import Any, Protocol

from smartmem_rules.tensor.binding import FLOATS
from smartmem_rules.tensor.definitions.values import Scope
from smartmem_rules.tensor.primitives import Array
from smartmem_rules.verification.instances.case import NoInstance, representable
from smartmem_rules.verification.instances.constant_draws import draw_elements, fitting_elements
from smartmem_rules.verification.instances.draws import DYADIC
from smartmem_rules.verification.instances.element_guards import Asked, ElementGuards, stored
from smartmem_rules.verification.instances.roles import Hints
from smartmem_rules.verification.semantics.terms import Leaf

LARGE = (100.0, -100.0, 127.0, -128.0, 255.0, -32768.0, 2.0**31 - 1, -(2.0**31), 2.0**62)
_LARGE_SHARE = 0.15
"""Of the integers that are drawn for a constant without a hint: those near to which arithmetic wraps."""


class Choose(Protocol):
    """The chosen value of a slot, drawn where there is none or one that does not fit."""

    def __call__(self, slot: str, draw: Callable[[], Any], fits: Callable[[Any], bool] | None = None, /) -> Any: ...


def choose_constants(
    leaves: Mapping[str, Leaf], hints: Hints, choose: Choose, source: random.Random
) -> tuple[frozenset[str], dict[str, float]]:
    """The names of the constants, and the value of those whose elements all have one.

    Raises:
        NoInstance: an element type has no such value.
    """
    constants, uniform = set(), {}
    for name, leaf in leaves.items():
        if leaf.number is not None:
            constants.add(name)
            uniform[name] = float(leaf.number)
            continue
        fixed = True if name in hints.constant else False if name in hints.variable else None
        if not (choose(f"constant:{name}", partial(_happens, 0.2, source)) if fixed is None else fixed):
            continue
        constants.add(name)
        often = 0.95 if name in hints.uniform else 0.2
        if leaf.type.elements == 1 or choose(f"one:{name}", partial(_happens, often, source)):
            fits = partial(representable, dtype=leaf.type.dtype)
            uniform[name] = choose(f"uniform:{name}", partial(_uniform, name, leaf, hints, source), fits)
            if not representable(uniform[name], leaf.type.dtype):
                raise NoInstance(f"{uniform[name]} is no {leaf.type.dtype}")
    return frozenset(constants), uniform


def choose_elements(
    constants: Mapping[str, Leaf],
    uniform: dict[str, float],
    guards: ElementGuards,
    hints: Hints,
    scope: Callable[[], Scope],
    choose: Choose,
    source: random.Random,
    aims: bool,
) -> dict[str, Array]:
    """All elements of the constants over which guards loop; one that has one number is noted in `uniform`.

    Args:
        aims: whether elements that an equation of a guard says are those.
    """
    found: dict[str, Array] = {}
    for name in guards.in_order(hints.elements & constants.keys()):
        type_ = constants[name].type
        asked = Asked(name, found, guards, scope(), (*hints.literals, *hints.infinities))
        slot, array = f"elements:{name}", asked.solved(type_) if aims else None
        if array is None:
            draw = fitting_elements if aims else draw_elements
            flat = choose(slot, partial(draw, type_, asked, source), partial(_has, type_.elements))
            array = stored(flat, type_)
        else:
            # noted as any choice: counterexamples are built again from choices, without aims
            solved = tuple(map(float, array.reshape(-1)))
            choose(slot, partial(tuple, solved), partial(operator.eq, solved))
        uniform.pop(name, None)
        if array.size and bool((array == array.flat[0]).all()):
            uniform[name] = float(array.flat[0])
        found[name] = array
    return found


def _has(count: int, elements: Sized) -> bool:
    return len(elements) == count


def _happens(share: float, source: random.Random) -> bool:
    return source.random() < share


def _uniform(name: str, leaf: Leaf, hints: Hints, source: random.Random) -> float:
    numbers = [
        float(v) for v in hints.values.get(name, ()) if not isinstance(v, str) and representable(v, leaf.type.dtype)
    ]
    near = [n for n in numbers if n in hints.near]
    if near:
        return source.choice(near)
    if numbers and source.random() < (0.4 if name in hints.bounded else 0.8):
        return source.choice(numbers)
    if leaf.type.dtype not in FLOATS and source.random() < _LARGE_SHARE:
        return source.choice([v for v in LARGE if representable(v, leaf.type.dtype)] or [1.0])
    return source.choice([v for v in DYADIC if representable(v, leaf.type.dtype)])

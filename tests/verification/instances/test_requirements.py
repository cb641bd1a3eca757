"""Requirements that drawn operands are made to meet, and those that nothing makes them meet."""

from __future__ import annotations

import random

import pytest

from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.builtins import Unsupported, Value
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.verification.instances.draws import RANKS, Draws
from smartmem_rules.verification.instances.requirements import met_requirements

TRIES = 300


@pytest.mark.parametrize("name", ["Reshape", "Gemm", "Conv", "Concat"])
def test_what_is_hopeless_is_refused(name: str) -> None:
    """No instance is lost where an operator that surely refuses its operands is not made at all."""
    base, source = load_rules(), random.Random(1)
    (operator,) = base.operators[name]
    instances, counts = Instances(base), {True: 0, False: 0}
    for _ in range(TRIES):
        types, given = drawn(name, source)
        met = met_requirements(operator, types, dict(given), base.functions, frozenset(), source)
        assert not met.found
        try:
            instances.get(name, types, given)
        except Unsupported:
            refused = True
        else:
            refused = False
        assert not met.is_hopeless or refused, (types, given)
        counts[met.is_hopeless] += 1
    assert min(counts.values()) > 10, counts


def test_what_counts_outputs_is_not_hopeless() -> None:
    """How many outputs an operator has is not known where its operands are drawn."""
    base = load_rules()
    (operator,) = base.operators["Split"]
    operand, given = TensorType("float32", (4,)), dict[str, Value](split=(2, 2), axis=0)
    met = met_requirements(operator, [operand], given, base.functions, frozenset(), random.Random(1))
    assert not met.is_hopeless
    assert len(Instances(base).get("Split", [operand], given, 2).outputs) == 2


def drawn(name: str, source: random.Random) -> tuple[list[TensorType | None], dict[str, Value]]:
    def shape(least: int, most: int) -> tuple[int, ...]:
        return tuple(source.choice((1, 2, 2)) for _ in range(source.randint(least, most)))

    def tensor(least: int, most: int) -> TensorType:
        return TensorType("float32", shape(least, most))

    match name:
        case "Reshape":
            return [tensor(0, 3)], {"shape": shape(0, 3)}
        case "Gemm":
            return [tensor(2, 2), tensor(2, 2)], {"transA": source.randint(0, 1)}
        case "Conv":
            return [tensor(3, 4), tensor(3, 4)], {"group": source.randint(1, 2)}
        case _:
            return [tensor(1, 2), tensor(1, 2)], {"axis": source.randint(-2, 1)}


def test_kinds_are_drawn_as_by_the_standard_library() -> None:
    weights = (6, 28, 56, 78, 92, 96, 100)
    one, other = random.Random(7), random.Random(7)
    draws = Draws(one)
    assert [draws.weighted(RANKS, weights) for _ in range(500)] == [
        other.choices(RANKS, cum_weights=weights)[0] for _ in range(500)
    ]
    assert one.random() == other.random()

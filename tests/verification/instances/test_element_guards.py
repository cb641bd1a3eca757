"""Loops over the elements of constants: what is computed at once, and what is kept, is what each loop says alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from smartmem_rules.guards.constant_elements import over_elements, values_at_each_place
from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.queries import QUERIES, queries_of
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported
from smartmem_rules.tensor.definitions.values import Scope
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.verification.instances.element_guards import Asked, ElementGuards, stored
from smartmem_rules.verification.instances.guard_scope import partial_scope
from smartmem_rules.verification.semantics.terms import Leaf

TYPES = [
    TensorType(dtype, shape)
    for shape in ((), (1,), (3,), (2, 3), (0,), (2, 2, 2))
    for dtype in ("float32", "int32", "uint8", "bool")
]
BASE = load_rules()


def loops() -> Iterator[tuple[str, ElementGuards, ast.Reduction]]:
    """The loops of all rules over the elements of one constant."""
    for rule in BASE.rewrites:
        guards = ElementGuards(rule.guards)
        for loop, names in guards.wanted:
            if len(names) == 1 and loop.kind == "all":
                yield next(iter(names)), guards, loop


def scope_of(name: str, type_: TensorType) -> Scope:
    return partial_scope([Leaf(name, type_)], {}, BASE.functions, {})


def test_many_elements_at_once_are_those_one_by_one() -> None:
    generator, seen = np.random.default_rng(1), 0
    for name, guards, loop in loops():
        for type_ in TYPES:
            asked = Asked(name, {}, guards, scope_of(name, type_), ())
            arrays = np.stack([stored(generator.integers(0, 3, type_.elements), type_) for _ in range(5)])
            each = [asked.at_each_place(loop, array) for array in arrays]
            found = asked.at_each_place_of_all(loop, arrays)
            if found is None:
                assert any(one is None for one in each), (str(loop.span), type_)
                continue
            seen += 1
            assert found.shape[0] == 5
            for row, one in zip(found, each, strict=True):
                assert one is not None
                np.testing.assert_array_equal(row, one)
    assert seen > 50


def test_a_loop_that_was_built_before_is_the_same_for_other_types() -> None:
    generator, truths = np.random.default_rng(1), list[bool]()
    for name, _, loop in loops():
        for type_ in (*TYPES, *TYPES):
            scope, array = scope_of(name, type_), stored(generator.integers(0, 2, type_.elements), type_)
            places = values_at_each_place(loop, scope, {name: array})
            try:
                found = over_elements({name: array}.get)(loop, scope)
            except (DefinitionError, Unsupported):
                assert places is None
                continue
            assert places is not None
            assert found is bool(places.all()), (str(loop.span), type_)
            truths.append(found)
    assert min(truths.count(True), truths.count(False)) > 50


def test_a_loop_that_was_built_before_is_another_one_in_another_type() -> None:
    name, _, loop = next(loops())
    numbers = replace(loop, kind="sum", body=ast.Number(loop.span, 0.1))
    scope = scope_of(name, TensorType("float32", (3,)))
    for dtype in ("float32", "float64", "float32"):
        found = values_at_each_place(numbers, scope, {}, dtype)
        assert found is not None
        assert found.tolist() == [float(np.dtype(dtype).type(0.1))] * 3


def test_what_guards_may_ask_of_tensors_is_there_when_it_is_asked() -> None:
    scope = partial_scope([Leaf("x", TensorType("float32", (2,)))], {}, BASE.functions, {"x": 0.5})
    made = queries_of({}, None)  # type: ignore[arg-type]
    assert made.keys() == scope.queries.keys() == QUERIES
    value = scope.queries.get("value")
    assert value is not None
    asked = ast.Call(ast.NOWHERE, "value", (ast.Name(ast.NOWHERE, "x"),))
    assert value(asked, scope) == 0.5
    assert scope.queries.get("shape") is None

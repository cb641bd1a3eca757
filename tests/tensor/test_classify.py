"""Classes of layout operators, read off their definitions."""

from __future__ import annotations

from typing import Any

import pytest

from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.tensor.binding import operand_name
from smartmem_rules.tensor.classify import Classes, classify
from smartmem_rules.tensor.expr import TensorType, walk
from smartmem_rules.tensor.instantiate import instantiate

SHAPE = tuple[int, ...]


def classes(operator: str, *shapes: SHAPE, dtype: str = "float32", **attributes: Any) -> Classes:
    types = [TensorType(dtype, shape) for shape in shapes]
    instance = instantiate(load_rules(), operator, types, attributes)
    return classify(instance.equations, {operand_name(i): t for i, t in enumerate(types)})


@pytest.mark.parametrize(
    ("operator", "shape", "attributes", "layout", "mapping"),
    [
        ("Reshape", (2, 6), {"shape": (3, 4)}, "ILD.Fixed", "reorganize"),
        ("Reshape", (4, 9), {"shape": (6, 6)}, "ILD.Fixed", "reorganize"),
        ("Reshape", (2, 6), {"shape": (12,)}, "ILD.Fixed", "reorganize"),
        ("Transpose", (2, 6), {"perm": (1, 0)}, "ILD.Fixed", "shuffle"),
        ("Tile", (2, 6), {"repeats": (1, 2)}, "ILI.Fixed", "one_to_many"),
        ("Upsample", (2, 6), {"scales": (1.0, 2.0)}, "ILI.Fixed", "one_to_many"),
        ("Expand", (1, 6), {"shape": (3, 6)}, "ILI.Fixed", "one_to_many"),
        ("Slice", (4, 6), {"starts": (1,), "ends": (3,), "axes": (0,)}, "ILI.Fixed", "one_to_one"),
        ("Tanh", (4, 6), {}, "ILI.Variable", "one_to_one"),
    ],
)
def test_classes(operator: str, shape: SHAPE, attributes: dict[str, Any], layout: str, mapping: str) -> None:
    assert classes(operator, shape, **attributes) == Classes(layout, mapping)


def test_a_reshape_has_its_inverse() -> None:
    from smartmem_rules.tensor.views import map_of_equation

    instance = instantiate(load_rules(), "Reshape", [TensorType("float32", (2, 6))], {"shape": (3, 4)})
    view = map_of_equation(instance.equations[0], (2, 6))
    assert view is not None
    assert view.inverse is not None
    assert view.inverse.shape == (2, 6)


def test_absent_operands_cost_nothing() -> None:
    types = [TensorType("float32", (1, 2, 5)), TensorType("float32", (3, 2, 3))]
    body = instantiate(load_rules(), "Conv", types, {}).equations[0].body
    assert [getattr(node, "function", None) for node in walk(body)].count("add") == 0
    types = [TensorType("float32", (2, 5)), TensorType("float32", (5, 3))]
    body = instantiate(load_rules(), "Gemm", types, {}).equations[0].body
    assert [getattr(node, "function", None) for node in walk(body)].count("mul") == 1

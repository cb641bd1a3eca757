"""Import for ranges of extents: shape arithmetic stays symbolic; other uses of extents are computed at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.loading import open_dimensions
from smartmem_rules.graph.model import EXTENTS, Graph, GraphError
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.tensor.extents import Dimension, symbol
from tests.plan.open_models import open_model

N = symbol(Dimension("n", 1, 20))


@pytest.fixture(scope="module")
def base() -> RuleBase:
    """The shipped rules."""
    return load_rules()


def imported(base: RuleBase, nodes: Any, constants: dict[str, Any], outputs: str = "y") -> Graph:
    model: onnx.ModelProto = open_model(nodes, {"x": ["n", 8]}, outputs, constants)
    return import_model(model, base, {"n": (1, 20)})


SHAPES = [("Shape", "x", "s"), ("Gather", "s zero", "n", {"axis": 0}), ("Unsqueeze", "n zeros", "n1")]
HELD = {"zero": np.array(0), "zeros": np.array([0]), "two": np.array([2]), "four": np.array([4])}


def test_shape_arithmetic_becomes_extents(base: RuleBase) -> None:
    nodes = [
        *SHAPES,
        ("Mul", "n1 two", "doubled"),
        ("Concat", "doubled four", "shape", {"axis": 0}),
        ("Reshape", "x shape", "y"),
    ]
    graph = imported(base, nodes, HELD)
    assert graph.types["y"].shape == (N * 2, 4)
    assert [node.operator for node in graph.nodes] == ["Reshape"]
    assert graph.dimensions == (Dimension("n", 1, 20),)


@pytest.mark.parametrize(("shape", "known"), [("n1 minus", True), ("minus n1", False), ("minus eight", True)])
def test_a_reshape_whose_zero_would_copy_another_extent_is_refused(base: RuleBase, shape: str, known: bool) -> None:
    """Beside a -1, an extent that is 0 in a run is the data's extent in its place: known only where both agree."""
    nodes = [*SHAPES, ("Concat", shape, "shape", {"axis": 0}), ("Reshape", "x shape", "y")]
    constants = {**HELD, "minus": np.array([-1]), "eight": np.array([8])}
    model = open_model(nodes, {"x": ["n", 8]}, "y", {k: v for k, v in constants.items() if k in f"{SHAPES} {shape}"})
    assert import_model(model, base, {"n": (1, 20)}).types["y"].shape
    if known:
        assert import_model(model, base, {"n": (0, 20)}).types["y"].shape
    else:
        with pytest.raises(GraphError, match="whether n == 0 depends on the extent"):
            import_model(model, base, {"n": (0, 20)})


def test_the_idiom_of_expand(base: RuleBase) -> None:
    """Exporters replace the -1 of a wanted shape by the operand's own extents."""
    nodes = [
        *SHAPES,
        ("Concat", "n1 minus", "wanted", {"axis": 0}),
        ("Equal", "wanted minus", "same"),
        ("Where", "same eight wanted", "shape"),
        ("Expand", "row shape", "y"),
    ]
    held = {**HELD, "minus": np.array([-1]), "eight": np.array([8, 8]), "row": np.zeros((1, 8), np.float32)}
    assert imported(base, nodes, held).types["y"].shape == (N, 8)


def test_an_extent_as_a_value(base: RuleBase) -> None:
    nodes = [*SHAPES, ("Cast", "n", "f", {"to": onnx.TensorProto.FLOAT}), ("Div", "x f", "y")]
    graph = imported(base, nodes, HELD)
    assert EXTENTS in {node.operator for node in graph.nodes}
    assert graph.types["y"].shape == (N, 8)


def test_a_row_of_a_table_at_an_extent_is_read_when_the_model_runs(base: RuleBase) -> None:
    nodes = [*SHAPES, ("Gather", "table n", "y", {"axis": 0})]
    graph = imported(base, nodes, {**HELD, "table": np.zeros((32, 4), np.float32)})
    assert [node.operator for node in graph.nodes] == ["Gather"]


def test_a_shape_as_an_output(base: RuleBase) -> None:
    graph = imported(base, SHAPES, HELD, "s")
    assert [node.operator for node in graph.nodes] == [EXTENTS]
    assert graph.types["s"].dtype == "int64"


def test_undecided_equality_is_refused(base: RuleBase) -> None:
    nodes = [*SHAPES, ("Equal", "n1 four", "same"), ("Where", "same two n1", "k"), ("Expand", "row k", "y")]
    with pytest.raises(GraphError, match=r"Expand[^\n]*'k' is computed"):
        imported(base, nodes, {**HELD, "row": np.zeros((1,), np.float32)})


def test_what_ranges_may_be() -> None:
    assert open_dimensions({"a": 3, "b": (1, 4), "c": (2, 2)}) == (Dimension("b", 1, 4),)
    assert open_dimensions({"n": (0, 3)}) == (Dimension("n", 0, 3),)
    for wrong in ((-1, 3), (4, 3), (1,), "1..3", 2.5, (1, 2.5)):
        with pytest.raises(GraphError, match="the dimension 'a'"):
            open_dimensions({"a": wrong})  # type: ignore[dict-item]

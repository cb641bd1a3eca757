"""Operators of constants that `keep` rules leave to the run, on import and where rules make them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import smartmem_rules as sm
from smartmem_rules.egraph import saturate
from smartmem_rules.extraction import extract
from smartmem_rules.graph.errors import GraphError
from smartmem_rules.graph.importer import import_model
from smartmem_rules.rulebase.base import RuleBase, load_rules

UNPACK = """operator Unpack(w: int8[*S]) -> y: float32[*S] {
    onnx my.ops::Unpack ;
    y[*i] = cast(w[*i], float32)
}
"""
KEEP = "keep packed Unpack{guard}\n"
AS_CAST = """rewrite as_cast in algebra
    Unpack(w) => Cast(w; to = "float32")
    explores
"""
TURNED = """rewrite turned in algebra
    Transpose(Unpack(w); perm = p) => Unpack(Transpose(w; perm = p))
    explores
"""


def rules_of(folder: Path, *texts: str) -> RuleBase:
    path = folder / "mine.smr"
    path.write_text("".join(texts))
    return load_rules([path])


def model(*between: onnx.NodeProto, value: int | None = None) -> onnx.ModelProto:
    """y = x between(unpack(w))."""
    last = between[-1].output[0] if between else "weights"
    unpack = helper.make_node("Unpack", ["w"], ["weights"], "unpack", domain="my.ops")
    nodes = [unpack, *between, helper.make_node("MatMul", ["x", last], ["y"], "product")]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 6)) for name in ("x", "y")]
    numbers = np.arange(36).reshape(6, 6) - 18 if value is None else np.full((6, 6), value)
    graph = helper.make_graph(nodes, "kept", ends[:1], ends[1:], [numpy_helper.from_array(numbers.astype("i1"), "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)])


@pytest.mark.parametrize(
    ("guard", "value", "operators"),
    [
        ("", None, ["Unpack", "MatMul"]),
        (" where rank(w) == 3", None, ["MatMul"]),
        (" where value(w) == 3", 3, ["Unpack", "MatMul"]),
        (" where value(w) == 3", None, ["MatMul"]),
        (" where all(*i < shape(w)) (w[*i] < 0)", None, ["MatMul"]),
        (" where all(*i < shape(w)) (w[*i] < 20)", None, ["Unpack", "MatMul"]),
    ],
)
def test_guards_decide_what_the_importer_folds(
    tmp_path: Path, guard: str, value: int | None, operators: list[str]
) -> None:
    graph = import_model(model(value=value), rules_of(tmp_path, UNPACK, KEEP.format(guard=guard)))
    assert [node.operator for node in graph.nodes] == operators
    assert graph.stays_packed() == ({"w"} if "Unpack" in operators else set())


def test_what_follows_is_not_folded_either(tmp_path: Path) -> None:
    turn = helper.make_node("Transpose", ["weights"], ["turned"], "turn", perm=[1, 0])
    graph = import_model(model(turn), rules_of(tmp_path, UNPACK, KEEP.format(guard="")))
    assert [node.operator for node in graph.nodes] == ["Unpack", "Transpose", "MatMul"]


def test_no_rule_makes_a_constant_of_what_is_kept(tmp_path: Path) -> None:
    base = rules_of(tmp_path, UNPACK, KEEP.format(guard=""), AS_CAST)
    graph = import_model(model(), base)
    saturation = saturate(graph, base, ["algebra"], disable=base.rule_names() - {"as_cast"})
    assert saturation.statistics["as_cast"].fired == 0
    (miss,) = saturation.near_misses
    assert "keep" in miss.reason


@pytest.mark.parametrize("kept", [True, False])
def test_what_a_rule_makes_of_constants_is_kept(tmp_path: Path, kept: bool) -> None:
    """The transposition moves to the packed weights, where it is folded; unpacking stays for the run."""
    turn = helper.make_node("Transpose", ["weights"], ["turned"], "turn", perm=[1, 0])
    base = rules_of(tmp_path, UNPACK, KEEP.format(guard="" if kept else " where value(w) == 1"), TURNED)
    graph = import_model(model(turn), base)
    saturation = saturate(graph, base, ["algebra"], disable=base.rule_names() - {"turned"})
    extracted, _ = extract(saturation, graph, base.devices["pocl"])
    assert [node.operator for node in extracted.nodes] == (["Unpack", "MatMul"] if kept else ["MatMul"])
    if kept:
        (packed,) = (one for one in extracted.constants.values() if one.dtype == np.int8)
        np.testing.assert_array_equal(packed, (np.arange(36).reshape(6, 6) - 18).T)
        assert len(extracted.stays_packed()) == 1


def test_a_value_that_the_import_needs_is_an_error_that_names_the_rule(tmp_path: Path) -> None:
    path = tmp_path / "mine.smr"
    path.write_text("keep casts Cast\n")
    nodes = [
        helper.make_node("Cast", ["sizes"], ["shape"], "to_long", to=TensorProto.INT64),
        helper.make_node("Reshape", ["x", "shape"], ["y"], "reshape"),
    ]
    ends = [helper.make_tensor_value_info(*end) for end in (("x", 1, (4, 6)), ("y", 1, (6, 4)))]
    sizes = numpy_helper.from_array(np.array([6, 4], np.int32), "sizes")
    graph = helper.make_graph(nodes, "kept", ends[:1], ends[1:], [sizes])
    one = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(GraphError, match="left to the run by the `keep` rule `casts`"):
        sm.optimize(one, rules=[path])

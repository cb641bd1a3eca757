"""Simplified models: fewer nodes, the same outputs, and all that is no business of rules stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, parser

import smartmem_rules as sm
from smartmem_rules.simplification import attempts as module
from smartmem_rules.simplification.feeding import CheckError
from smartmem_rules.simplification.options import Options, SimplifyError
from smartmem_rules.simplification.simplify import simplify_file, simplify_model
from tests.simplification.models import drawn, kinds, model, run


def node(operator: str, inputs: str, outputs: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def test_views_vanish_constants_fold_and_equal_nodes_become_one() -> None:
    nodes = [
        node("Transpose", "x", "a", perm=[1, 0], name="first"),
        node("Transpose", "a", "b", perm=[1, 0], name="second"),
        node("Add", "k k", "c", name="sum"),
        node("Mul", "b c", "d", name="left"),
        node("Mul", "b c", "e", name="right"),
        node("Sub", "d z", "f", name="nothing"),
        node("Add", "e f", "y", name="last"),
        node("Relu", "x", "unread", name="dead"),
    ]
    given = model(nodes, {"x": [3, 4]}, ["y"], {"k": drawn([4]), "z": np.zeros(1, np.float32)})
    made, report = simplify_model(given, Options())
    feeds = {"x": drawn([3, 4], 1)}
    np.testing.assert_allclose(run(made, feeds)[0], run(given, feeds)[0], rtol=1e-5)
    assert len(made.graph.node) <= 2
    removed = {use.rule: use.removed for use in report.rules}
    assert removed["constant folding"] == ("Add 'sum'",)
    assert removed["unused"] == ("Relu 'dead'",)
    assert all(use.verdict.startswith(("proved", "tested", "by definition")) for use in report.rules)
    assert report.check is not None
    assert report.check.runs >= 2


def test_what_rules_do_not_touch_stays_as_it_is() -> None:
    nodes = [
        node("Identity", "x", "a", name="copy"),
        node("Gelu", "a", "b", name="gelu", doc_string="exported from gelu()"),
        node("LayerNormalization", "b s", "y", name="norm", axis=-1, epsilon=1e-6),
    ]
    given = model(nodes, {"x": [2, 8]}, ["y"], {"s": drawn([8])}, producer_name="exporter")
    given.metadata_props.add(key="licence", value="none")
    given.graph.node[1].metadata_props.add(key="module", value="block.0")
    made = sm.simplify(given)
    assert kinds(made) == ["Gelu", "LayerNormalization"]
    assert [one.name for one in made.graph.node] == ["gelu", "norm"]
    assert made.graph.node[0].doc_string == "exported from gelu()"
    assert [(p.key, p.value) for p in made.graph.node[0].metadata_props] == [("module", "block.0")]
    assert made.graph.node[1].attribute == given.graph.node[2].attribute
    assert (made.producer_name, made.opset_import, made.ir_version) == ("exporter", given.opset_import, 10)
    assert [(p.key, p.value) for p in made.metadata_props] == [("licence", "none")]
    assert made.graph.input == given.graph.input
    assert made.graph.output == given.graph.output


def test_a_model_that_is_as_simple_as_can_be_is_written_unchanged(tmp_path: Path) -> None:
    given = model([node("Relu", "x", "y")], {"x": [2]}, ["y"])
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(given, source)
    report = simplify_file(source, target, Options())
    assert not report.changed
    assert "no form" in report.reason
    assert target.read_bytes() == source.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.onnx", "out.onnx"]


@pytest.mark.parametrize("padding", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_a_convolution_that_pads_by_itself_is_written_without_pads(padding: str) -> None:
    nodes = [node("Mul", "x k", "a"), node("Conv", "a w b", "y", auto_pad=padding, strides=[2])]
    constants = {"k": drawn([3, 1], 1), "w": drawn([4, 3, 2], 2), "b": drawn([4], 3)}
    given = model(nodes, {"x": [2, 3, 7]}, ["y"], constants)
    made, report = simplify_model(given, Options())
    assert report.reason == ""
    assert kinds(made) == ["Conv"]
    feeds = {"x": drawn([2, 3, 7])}
    np.testing.assert_allclose(run(made, feeds)[0], run(given, feeds)[0], rtol=1e-4, atol=1e-5)


def test_a_kept_node_and_a_switched_off_rule_stay() -> None:
    nodes = [node("Relu", "x", "a", name="one"), node("Relu", "a", "b", name="two"), node("Neg", "b", "y", name="n")]
    given = model(nodes, {"x": [4]}, ["y"])
    assert kinds(sm.simplify(given)) == ["Relu", "Neg"]
    assert kinds(sm.simplify(given, keep=["two"])) == ["Relu", "Relu", "Neg"]
    assert kinds(sm.simplify(given, disable=["double_relu"])) == ["Relu", "Relu", "Neg"]
    with pytest.raises(SimplifyError, match=r"no node .twoo. to keep; did you mean .two"):
        sm.simplify(given, keep=["twoo"])


def test_a_constant_node_that_is_kept_alone_defines_its_tensor() -> None:
    nodes = [helper.make_node("Constant", [], ["c"], "kept", value_floats=[1.0, 2.0]), node("Add", "x c", "a")]
    given = model([*nodes, node("Relu", "a", "b"), node("Relu", "b", "y")], {"x": [2]}, ["y"])
    made = sm.simplify(given, keep=["kept"])
    assert kinds(made) == ["Constant", "Add", "Relu"]
    assert not made.graph.initializer


def test_only_rules_that_keep_every_bit_where_that_is_asked_for() -> None:
    nodes = [node("Mul", "x a", "m"), node("Mul", "m b", "n"), node("Relu", "n", "r"), node("Relu", "r", "y")]
    given = model(nodes, {"x": [4]}, ["y"], {"a": drawn([4]), "b": drawn([4], 1)})
    assert kinds(sm.simplify(given)) == ["Mul", "Relu"]
    assert kinds(sm.simplify(given, exact=True)) == ["Mul", "Mul", "Relu"]


def test_the_scale_of_a_normalization_stays_apart_where_every_bit_counts() -> None:
    nodes = [node("LayerNormalization", "x one", "n", axis=-1), node("Mul", "n s", "y")]
    given = model(nodes, {"x": [3, 4]}, ["y"], {"one": np.ones(4, np.float32), "s": drawn([4])})
    assert kinds(sm.simplify(given)) == ["LayerNormalization"]
    assert sm.simplify(given, exact=True) == given


def test_pairs_of_quantization_stay_and_weights_stay_packed() -> None:
    weights = {"w": np.arange(12, dtype=np.int8).reshape(3, 4), "s": np.float32(0.1), "z": np.int8(0)}
    nodes = [
        node("Identity", "x", "i"),
        node("QuantizeLinear", "i s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("DequantizeLinear", "w s z", "dw"),
        node("MatMul", "d dw", "y"),
    ]
    given = model(nodes, {"x": [2, 3]}, ["y"], {k: np.asarray(v) for k, v in weights.items()})
    made = sm.simplify(given)
    assert kinds(made) == ["QuantizeLinear", "DequantizeLinear", "DequantizeLinear", "MatMul"]
    assert [t.name for t in made.graph.initializer if t.data_type == onnx.TensorProto.INT8] == ["w", "z"]


def test_bodies_sequences_strings_and_unknown_domains_are_barriers() -> None:
    body = helper.make_graph(
        [node("Add", "a a", "t")], "then", [], [helper.make_tensor_value_info("t", onnx.TensorProto.FLOAT, [4])]
    )
    other = helper.make_graph(
        [node("Neg", "a", "e")], "else", [], [helper.make_tensor_value_info("e", onnx.TensorProto.FLOAT, [4])]
    )
    nodes = [
        node("Neg", "x", "n"),
        node("Neg", "n", "a"),
        node("ReduceMax", "x", "most", keepdims=0),
        node("Cast", "most", "condition", to=onnx.TensorProto.BOOL),
        helper.make_node("If", ["condition"], ["b"], then_branch=body, else_branch=other),
        node("SequenceConstruct", "b a", "sequence"),
        node("Constant", "", "zero", value=onnx.numpy_helper.from_array(np.array(0))),
        node("SequenceAt", "sequence zero", "c"),
        node("Relu", "a", "r"),
        node("Relu", "r", "s"),
        node("Add", "c s", "y"),
    ]
    given = model(nodes, {"x": [4]}, ["y"])
    made, report = simplify_model(given, Options())
    feeds = {"x": drawn([4])}
    np.testing.assert_array_equal(run(made, feeds)[0], run(given, feeds)[0])
    assert kinds(made).count("Relu") == 1
    assert "Neg" not in kinds(made)
    assert {"If", "SequenceConstruct", "SequenceAt"} <= set(kinds(made))
    assert any("body" in reason for reason in report.kept)


def branch(nodes: list[onnx.NodeProto], output: str, constants: dict[str, np.ndarray] | None = None) -> onnx.GraphProto:
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    return helper.make_graph(nodes, "branch", [], [helper.make_empty_tensor_value_info(output)], tensors)


def test_the_branch_that_is_always_taken_stands_in_place_of_the_choice() -> None:
    """The condition is computed from a shape, as exporters write `squeeze`; names of branches are those of others."""
    inner = node("If", "yes", "i", then_branch=branch([node("Sin", "k", "t")], "t"),
                 else_branch=branch([node("Cos", "k", "t")], "t"), name="inside")  # fmt: skip
    taken = branch([node("Mul", "x two", "k"), inner, node("Add", "i k", "sum")], "sum", {"two": np.float32([2])})
    others = branch([node("Abs", "x", "k")], "k")
    same = branch([node("Identity", "x", "k")], "k")
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s place", "extent", axis=0),
        node("Equal", "extent one", "is_one"),
        node("If", "is_one", "a", then_branch=others, else_branch=taken, name="first"),
        node("If", "yes", "b", then_branch=same, else_branch=others, name="second"),
        node("Relu", "a", "k"),
        node("Sub", "k b", "y"),
    ]
    constants = {"place": np.int64(0), "one": np.int64(1), "yes": np.array([True])}
    given = model(nodes, {"x": [3, 4]}, ["y"], constants)
    made, report = simplify_model(given, Options())
    onnx.checker.check_model(made)
    assert kinds(made) == ["Mul", "Sin", "Add", "Relu", "Sub"]
    feeds = {"x": drawn([3, 4])}
    np.testing.assert_array_equal(run(made, feeds)[0], run(given, feeds)[0])
    removed = {use.rule: use.removed for use in report.rules}
    assert removed["known branches"] == ("If 'first'", "If 'second'", "If 'inside'")
    assert "If" in kinds(sm.simplify(given, keep=["first"]))


def test_a_choice_of_the_caller_stays() -> None:
    nodes = [
        node("Relu", "x", "a"),
        node("Relu", "a", "r"),
        node("ReduceMax", "r", "most", keepdims=0),
        node("Cast", "most", "any", to=onnx.TensorProto.BOOL),
        node("If", "any", "y", then_branch=branch([node("Abs", "r", "t")], "t"),
             else_branch=branch([node("Neg", "r", "t")], "t")),
    ]  # fmt: skip
    assert kinds(sm.simplify(model(nodes, {"x": [3]}, ["y"]))) == ["Relu", "ReduceMax", "Cast", "If"]


def test_a_constant_that_would_blow_up_the_file_is_not_computed() -> None:
    shape = np.array([1000, 1000], np.int64)
    nodes = [node("ConstantOfShape", "shape", "c"), node("Identity", "x", "i"), node("Add", "i c", "y")]
    given = model(nodes, {"x": [1000, 1000]}, ["y"], {"shape": shape})
    made = sm.simplify(given)
    assert kinds(made) == ["ConstantOfShape", "Add"]
    assert made.ByteSize() < 2000
    assert "ConstantOfShape" not in kinds(sm.simplify(given, fold_limit=1 << 23))


def test_a_constant_that_others_read_is_not_stored_twice() -> None:
    nodes = [
        node("Transpose", "table", "t", perm=[1, 0]),
        node("MatMul", "x t", "m"),
        node("Gather", "table ids", "g", axis=0),
        node("Identity", "m", "i"),
        node("Add", "i g", "y"),
    ]
    constants = {"table": drawn([600, 600]), "ids": np.arange(600)}
    given = model(nodes, {"x": [600, 600]}, ["y"], constants)
    assert sm.simplify(given).ByteSize() < 1.1 * given.ByteSize()


def test_an_initializer_that_a_caller_may_replace_is_no_constant() -> None:
    nodes = [node("Add", "x k", "a"), node("Relu", "a", "r"), node("Relu", "r", "y")]
    given = model(nodes, {"x": [4], "k": [4]}, ["y"], {"k": np.zeros(4, np.float32)})
    made = sm.simplify(given)
    assert kinds(made) == ["Add", "Relu"]
    assert [value.name for value in made.graph.input] == ["x", "k"]
    assert [tensor.name for tensor in made.graph.initializer] == ["k"]


def test_another_opset_is_chosen() -> None:
    nodes = [node("Squeeze", "x", "a", axes=[0]), node("Relu", "a", "b"), node("Relu", "b", "y")]
    given = model(nodes, {"x": [1, 4]}, ["y"], opset=11)
    assert sm.simplify(given).opset_import[0].version == 11
    made = sm.simplify(given, opset=17)
    assert made.opset_import[0].version == 17
    onnx.checker.check_model(made)
    feeds = {"x": drawn([1, 4])}
    np.testing.assert_array_equal(run(made, feeds)[0], run(given, feeds)[0])
    with pytest.raises(SimplifyError, match="no opset 999"):
        sm.simplify(given, opset=999)


def test_views_are_written_in_old_opsets() -> None:
    nodes = [
        node("Unsqueeze", "x", "a", axes=[0]),
        node("Transpose", "a", "b", perm=[0, 2, 1]),
        node("Squeeze", "b", "c", axes=[0]),
        node("Transpose", "c", "d", perm=[1, 0]),
        node("Neg", "d", "y"),
    ]
    for opset in (7, 9, 11, 12):
        made = sm.simplify(model(nodes, {"x": [3, 4]}, ["y"], opset=opset))
        assert kinds(made) == ["Neg"]


def test_fused_forms_of_other_domains_come_only_when_they_are_asked_for() -> None:
    nodes = [node("Sigmoid", "x", "s"), node("Mul", "x s", "m"), node("Relu", "m", "r"), node("Relu", "r", "y")]
    given = model(nodes, {"x": [4]}, ["y"])
    assert kinds(sm.simplify(given)) == ["Sigmoid", "Mul", "Relu"]


@pytest.mark.parametrize(
    ("operator", "reason"), [("Abs", "the relative error is"), ("Nothing", "does not load")], ids=["differs", "fails"]
)
def test_a_wrong_result_is_never_taken(
    operator: str, reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = model([node("Relu", "x", "a"), node("Relu", "a", "y")], {"x": [4]}, ["y"])
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(given, source)
    right = module.simplified

    def wrong(*arguments: object) -> object:
        found = right(*arguments)  # type: ignore[arg-type]
        found.model.graph.node[0].op_type = operator
        return found

    monkeypatch.setattr(module, "simplified", wrong)
    report = simplify_file(source, target, Options())
    assert report.differed
    assert reason in report.reason
    assert target.read_bytes() == source.read_bytes()


def test_a_model_that_onnx_runtime_does_not_take_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    nodes = [node("Relu", "x", "a", name="twice"), node("Relu", "a", "y", name="twice")]
    given = model(nodes, {"x": [4]}, ["y"])
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(given, source)
    with pytest.raises(CheckError, match="two nodes with same node name"):
        simplify_file(source, target, Options())
    assert [p.name for p in tmp_path.iterdir()] == ["in.onnx"]


def test_a_sparse_initializer_stays_the_only_one_of_its_name() -> None:
    given = model([node("Relu", "x", "a"), node("Relu", "a", "b"), node("Add", "b k", "y")], {"x": [2, 3]}, ["y"])
    values = onnx.numpy_helper.from_array(np.float32([5, 7]), "k")
    places = onnx.numpy_helper.from_array(np.array([1, 3]), "places")
    given.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [2, 3]))
    given.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 3]))
    made = sm.simplify(given)
    onnx.checker.check_model(made)
    assert kinds(made) == ["Relu", "Add"]
    feeds = {"x": drawn([2, 3])}
    np.testing.assert_array_equal(run(made, feeds)[0], run(given, feeds)[0])


def test_text_does_not_keep_rules_from_the_rest() -> None:
    nodes = [
        helper.make_node("Constant", [], ["word"], value_string="a"),
        node("Equal", "s word", "same"),
        node("Cast", "same", "number", to=onnx.TensorProto.FLOAT),
        node("Relu", "x", "a"),
        node("Relu", "a", "b"),
        node("Mul", "b number", "y"),
    ]
    given = model(nodes, {"x": [3], "s": [3]}, ["y"])
    given.graph.input[1].type.tensor_type.elem_type = onnx.TensorProto.STRING
    made = sm.simplify(given)
    assert sorted(kinds(made)) == ["Cast", "Constant", "Equal", "Mul", "Relu"]
    feeds = {"x": drawn([3]), "s": np.array(["a", "b", "a"], object)}
    np.testing.assert_array_equal(run(made, feeds)[0], run(given, feeds)[0])


def test_what_a_body_names_stays_where_its_node_reads_it_as_well() -> None:
    given = parser.parse_model(
        """<ir_version: 10, opset_import: ["": 18]>
        g (float[4] a, int64 k) => (float[4] r, float[n, 4] all) <bool t = {1}> {
            c = Identity (a)
            r, all = Loop (k, t, c) <body = b (int64 i, bool go, float[4] x) => (bool on, float[4] z, float[4] o) {
                on = Identity (go)
                z = Add (x, a)
                o = Mul (c, z)
            }>
        }"""
    )
    made, _ = simplify_model(given, Options())
    feeds = {"a": drawn([4]), "k": np.array(3)}
    for found, wanted in zip(run(made, feeds), run(given, feeds), strict=True):
        np.testing.assert_array_equal(found, wanted)

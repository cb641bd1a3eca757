"""Every way in which a model or its inputs can be wrong has one clear message."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.instead import ML
from smartmem_rules.graph.model import GraphError
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.runtime.feeds import check_feeds

Build = Callable[..., onnx.ModelProto]

NODE = helper.make_node


def message(source: object, base: RuleBase, **dims: int) -> str:
    with pytest.raises(GraphError) as error:
        import_model(source, base, dims)  # type: ignore[arg-type]
    return str(error.value)


def test_missing_file_names_a_near_one(base: RuleBase, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    text = message(tmp_path / "modle.onnx", base)
    assert "there is no such file" in text
    assert "did you mean `model.onnx`?" in text


@pytest.mark.parametrize("data", [b"", b"this is a text file", b"\x08\x07\xff\xff\xff", bytes(range(256))])
def test_files_that_are_no_models(base: RuleBase, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(data)
    text = message(path, base)
    assert str(path) in text
    assert "no ONNX model" in text


def test_a_truncated_model(base: RuleBase, build: Build) -> None:
    data = build([NODE("Relu", ["x"], ["y"])], {"x": [2]}, ["y"]).SerializeToString()
    assert "damaged" in message(data[:-20], base)


def test_cycles_are_shown(base: RuleBase, build: Build) -> None:
    nodes = [NODE("Add", ["x", "b"], ["a"], name="first"), NODE("Relu", ["a"], ["b"], name="second")]
    text = message(build(nodes, {"x": [2]}, ["b"]), base)
    assert text == "the graph has a cycle: Add 'first' -> Relu 'second' -> Add 'first'"


def test_undefined_tensors_are_named(base: RuleBase, build: Build) -> None:
    text = message(build([NODE("Add", ["x", "lost"], ["y"], name="sum")], {"x": [2]}, ["y", "gone"]), base)
    assert "nothing defines 'lost', an input of Add 'sum'" in text
    assert "nothing defines 'gone', an output of the graph" in text


def test_tensors_defined_twice(base: RuleBase, build: Build) -> None:
    nodes = [NODE("Relu", ["x"], ["y"]), NODE("Relu", ["x"], ["y"], name="again")]
    assert "'y' is defined twice, the second time by Relu 'again'" in message(build(nodes, {"x": [2]}, ["y"]), base)


def test_unbound_dimensions_are_listed_together(base: RuleBase, build: Build) -> None:
    model = build([NODE("Add", ["x", "z"], ["y"])], {"x": ["batch", "n"], "z": ["batch", None]}, ["y"])
    text = message(model, base)
    assert "batch: 'x' axis 0, 'z' axis 0" in text
    assert "n: 'x' axis 1" in text
    assert "--dim batch=N --dim n=N --dim z.1=N" in text


def test_names_of_dimensions_are_written_as_a_shell_takes_them(base: RuleBase, build: Build) -> None:
    model = build([NODE("Relu", ["x"], ["y"])], {"x": ["past + new", "n"]}, ["y"])
    assert "--dim 'past + new'=N --dim n=N" in message(model, base)


def test_unknown_and_senseless_dimensions(base: RuleBase, build: Build) -> None:
    model = build([NODE("Relu", ["x"], ["y"])], {"x": ["batch"]}, ["y"])
    assert "did you mean `batch`?" in message(model, base, batch=2, bach=3)
    assert "cannot be 0" in message(model, base, batch=0)


def test_unsupported_operators_come_together(base: RuleBase, build: Build) -> None:
    nodes = [
        NODE("NonZero", ["x"], ["a"], name="one"),
        NODE("Relu", ["a"], ["b"], name="quiet"),
        NODE("NonZero", ["x"], ["c"], name="two"),
        NODE("Softmax", ["x"], ["d"], name="three", beta=2.0),
        NODE("Reshape", ["x", "s"], ["e"], name="four"),
        NODE("Scal", ["x"], ["f"], domain="my.domain"),
        NODE("Hidden", ["x"], ["g"]),
        NODE("RandomNormal", [], ["h"], shape=[2], name="dice"),
    ]
    text = message(build(nodes, {"x": [2], "s": [1]}, list("bcdefgh")), base)
    assert text.startswith("7 nodes cannot be imported:")
    assert "ai.onnx::NonZero (one, two): the rule base defines no such operator" in text
    assert "quiet" not in text
    assert "ai.onnx::Softmax (three): Softmax has no attribute beta" in text
    assert "needs shape as a constant, but 's' is computed" in text
    assert "my.domain::Scal (Scal_5): the rule base defines no such operator; did you mean `Scale`?" in text
    assert "Hidden_6" in text
    assert "ai.onnx::RandomNormal (dice): the rule base defines no such operator" in text


OPEN_BRANCH = """<ir_version: 8, opset_import: ["" : 18]>
f (float[2, 2] x, bool c) => (float[2, 2] y) {
    y = If (c) < then_branch = g () => (float[2, 2] p) { p = Neg (x) },
                 else_branch = h (float[2, 2] r) => (float[2, 2] q) { q = Abs (r) } >
}"""


def test_a_branch_with_inputs(base: RuleBase) -> None:
    assert "nothing gives 'r', inputs of its body 'h'" in message(onnx.parser.parse_model(OPEN_BRANCH), base)


BEHIND_A_FAILURE = """<ir_version: 8, opset_import: ["" : 18, "my.domain" : 1]>
f (float[1, 1, 2, 2] x, bool c) => (float[?, ?, ?, ?] y, float[?, ?, ?, ?] z, float[?, ?, ?, ?] w) {
    a = my.domain.Nothing (x)
    go = my.domain.Nothing (c)
    y = If (go) < then_branch = g () => (float[?, ?, ?, ?] p) { p = Neg (x) },
                  else_branch = h () => (float[?, ?, ?, ?] q) { q = Abs (x) } >
    s = Constant <value_ints = [1, 2]> ()
    z = CenterCropPad <axes = [2, 3]> (a, s)
    l = SequenceConstruct (a)
    w = ConcatFromSequence <axis = 0> (l)
}"""


def test_what_the_importer_takes_apart_is_no_unknown_operator_behind_a_failure(base: RuleBase) -> None:
    text = message(onnx.parser.parse_model(BEHIND_A_FAILURE), base)
    assert text.startswith("2 nodes cannot be imported:\n  my.domain::Nothing")
    assert "ai.onnx" not in text


def test_opsets(base: RuleBase, build: Build) -> None:
    text = message(build([NODE("Softmax", ["x"], ["y"])], {"x": [2, 2]}, ["y"], opset=11), base)
    assert "the model uses opset 11, its definitions cover 13 and later" in text
    import_model(build([NODE("Relu", ["x"], ["y"])], {"x": [2]}, ["y"], opset=99), base)


def test_missing_data_files(base: RuleBase, build: Build, tmp_path: Path) -> None:
    weights = numpy_helper.from_array(np.zeros(600, np.float32), "c")
    model = build([NODE("Add", ["x", "c"], ["y"])], {"x": [600]}, ["y"], [weights])
    onnx.save(model, str(tmp_path / "m.onnx"), save_as_external_data=True, location="w.bin", size_threshold=0)
    data = (tmp_path / "w.bin").read_bytes()
    (tmp_path / "w.bin").write_bytes(data[:100])
    text = message(tmp_path / "m.onnx", base)
    assert "'c'" in text
    assert "w.bin ends before its data do" in text
    (tmp_path / "w.bin").unlink()
    text = message(tmp_path / "m.onnx", base)
    assert "w.bin: 1 tensor (c)" in text
    assert str(tmp_path) in text
    assert "as a path" in message((tmp_path / "m.onnx").read_bytes(), base)


def test_data_of_the_wrong_size(base: RuleBase, build: Build) -> None:
    weights = onnx.TensorProto(name="c", data_type=onnx.TensorProto.FLOAT, dims=[3], raw_data=b"1234")
    assert "the tensor 'c' has the shape [3], which takes 12 bytes, and holds 4" in message(
        build([NODE("Add", ["x", "c"], ["y"])], {"x": [3]}, ["y"], [weights]), base
    )


def test_control_flow_says_so(base: RuleBase, build: Build) -> None:
    body = helper.make_graph([NODE("Relu", ["x"], ["r"])], "b", [], [helper.make_tensor_value_info("r", 1, [2])])
    nodes = [NODE("SequenceMap", ["c"], ["y"], body=body)]
    text = message(build(nodes, {"x": [2], "c": []}, ["y"]), base)
    assert "ai.onnx::SequenceMap (SequenceMap_0): an operator with subgraphs that cannot be unrolled" in text


def test_inputs_are_checked_together(base: RuleBase, build: Build) -> None:
    graph = import_model(build([NODE("Add", ["x", "z"], ["y"])], {"x": [2], "z": [2]}, ["y"]), base)
    good = np.zeros(2, np.float32)
    assert list(check_feeds({n: graph.types[n] for n in graph.inputs}, {"z": good, "x": good})) == ["x", "z"]
    with pytest.raises(GraphError) as error:
        check_feeds({n: graph.types[n] for n in graph.inputs}, {"xx": good, "x": np.zeros((2, 1))})
    text = str(error.value)
    assert "there is no input 'xx'; did you mean `x`?" in text or "the inputs are x, z" in text
    assert "the input 'z', float32[2], is missing" in text
    assert "'x' has shape [2, 1]; the model takes [2]" in text
    assert "'x' has elements of type float64; the model takes float32" in text


def test_versions_beyond_32_bits(base: RuleBase, build: Build) -> None:
    model = build([NODE("Unheard", ["x"], ["y"], domain="ours")], {"x": [2]}, ["y"])
    model.opset_import.append(helper.make_opsetid("ours", 2**40))
    assert "Unheard" in message(model, base)


def test_a_call_with_more_outputs_than_its_body_gives(base: RuleBase, build: Build) -> None:
    shapes = {name: [1, 1, 2, 2] for name in ("q", "k", "v")}
    node = NODE("FlexAttention", list(shapes), ["y", "more"], domain="ai.onnx.preview")
    model = build([node], shapes, ["y"])
    model.opset_import.append(helper.make_opsetid("ai.onnx.preview", 1))
    assert "it has 2 outputs, and its body gives 1" in message(model, base)


def test_a_node_with_more_outputs_than_its_operator_has(base: RuleBase, build: Build) -> None:
    value = numpy_helper.from_array(np.float32(1))
    model = build([NODE("Constant", [], ["one", "more"], value=value), NODE("Neg", ["more"], ["y"])], {}, ["y"])
    assert "Constant_0): it gives no 'more'" in message(model, base)


_ML = frozenset(s.name for s in onnx.defs.get_all_schemas() if s.domain == "ai.onnx.ml")


@pytest.mark.parametrize("operator", sorted(ML))
def test_operators_of_classical_models_say_what_to_write_instead(base: RuleBase, build: Build, operator: str) -> None:
    model = build([NODE(operator, ["x"], ["y"], domain="ai.onnx.ml")], {"x": [2, 3]}, ["y"])
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    assert f"{operator} ({operator}_0): the rule base defines no such operator; {ML[operator]}" in message(model, base)


def test_each_operator_of_classical_models_is_defined_or_has_an_answer() -> None:
    bindings = [o.onnx for overloads in load_rules().operators.values() for o in overloads if o.onnx is not None]
    defined = {b.name for b in bindings if b.domain == "ai.onnx.ml"} | {"TreeEnsemble"}
    assert defined | set(ML) == _ML
    assert not defined & set(ML)


@pytest.mark.parametrize("version", [-(2**63), -1, 0])
def test_versions_that_no_operator_set_has(base: RuleBase, build: Build, version: int) -> None:
    model = build([NODE("GridSample", ["x"], ["y"])], {"x": [2]}, ["y"])
    model.opset_import[0].version = version
    assert "GridSample" in message(model, base)


def test_values_that_an_operator_cannot_have_are_to_be_corrected(build: Build) -> None:
    """A definition of one's own is what nodes without one need."""
    base = load_rules()
    scales = numpy_helper.from_array(np.array([1, 1, np.nan, 2], np.float32), "scales")
    text = message(build([NODE("Resize", ["x", "", "scales"], ["y"])], {"x": [1, 1, 4, 4]}, ["y"], [scales]), base)
    assert "Resize cannot be computed where scales is [1.0, 1.0, nan, 2.0]" in text
    text += message(build([NODE("Einsum", ["x"], ["y"], equation="ab->ac")], {"x": [2, 3]}, ["y"]), base)
    assert "Einsum cannot be computed where equation is ab->ac" in text
    assert "an empty list has no least and no greatest number" in text
    weights = {"x": [1, 1, 4, 4], "w": [1, 1, 2, 2]}
    text += message(build([NODE("ConvTranspose", ["x", "w"], ["y"], group=0)], weights, ["y"]), base)
    assert "ConvTranspose requires group > 0, and group is 0" in text
    assert text.count("correct the values that these nodes have") == 3
    assert "define an operator or" not in text


def test_scans_of_too_many_steps_say_what_to_do() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]>
    g (float[1] s, float[5000, 1] x) => (float[1] z, float[5000, 1] y) {
        z, y = Scan <num_scan_inputs = 1, body = b (float[1] a, float[1] e) => (float[1] c, float[1] d)
            { c = Add(a, e)  d = Identity(c) }> (s, x)
    }"""
    found = message(onnx.parser.parse_model(text), load_rules())
    assert "a scan of 5000 steps; it can have 1 to 4096" in found
    assert found.endswith("write what it does as operators of whole tensors")

"""Damaged models are refused before anything is done with them, and hostile ones at their limits."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules.errors import SmartmemError
from smartmem_rules.graph.importer import import_model
from smartmem_rules.limits import LimitError, Limits
from smartmem_rules.rulebase.base import RuleBase, load_rules

NODE = helper.make_node
RELU = NODE("Relu", ["x"], ["y"])
Build = Callable[..., onnx.ModelProto]


def message(model: object, base: RuleBase, limits: Limits | None = None) -> str:
    start = time.process_time()
    with pytest.raises(SmartmemError) as error:
        import_model(model, base, limits=limits or Limits())  # type: ignore[arg-type]
    assert time.process_time() - start < 1
    return str(error.value)


@pytest.fixture(scope="module")
def rules() -> RuleBase:
    return load_rules()


# --- damage ---


def without_an_attribute_value(model: onnx.ModelProto) -> None:
    model.graph.node[0].attribute.add(name="value", type=onnx.AttributeProto.TENSOR)


def attribute_twice(model: onnx.ModelProto) -> None:
    model.graph.node[0].attribute.extend([helper.make_attribute("axis", 1)] * 2)


def attribute_without_type(model: onnx.ModelProto) -> None:
    model.graph.node[0].attribute.add(name="axis", i=3)


def attribute_of_no_function(model: onnx.ModelProto) -> None:
    model.graph.node[0].attribute.add(name="axis", ref_attr_name="outer", type=onnx.AttributeProto.INT)


def no_operator(model: onnx.ModelProto) -> None:
    model.graph.node[0].op_type = ""


def no_output(model: onnx.ModelProto) -> None:
    model.graph.node.add(op_type="Relu", input=["x"])


def too_few_data(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(TensorProto(name="w", data_type=1, dims=[2, 3], raw_data=b"1234"))


def too_few_numbers(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(TensorProto(name="w", data_type=1, dims=[2, 3], float_data=[1.0]))


def negative_extent(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(TensorProto(name="w", data_type=1, dims=[-2, -3], raw_data=bytes(24)))


def no_element_type(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(TensorProto(name="w", dims=[1], raw_data=b"1234"))


def unknown_element_type(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(TensorProto(name="w", data_type=777, dims=[1], raw_data=b"1234"))


def initializer_twice(model: onnx.ModelProto) -> None:
    model.graph.initializer.extend([numpy_helper.from_array(np.zeros(2, np.float32), "w")] * 2)


def sparse_of_nothing(model: onnx.ModelProto) -> None:
    model.graph.sparse_initializer.add(dims=[3]).values.name = "w"


def loop_without_body(model: onnx.ModelProto) -> None:
    model.graph.node.append(NODE("Loop", ["", "", "x"], ["z"]))


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (without_an_attribute_value, "the attribute 'value' of the Relu number 0 holds nothing"),
        (attribute_twice, "the Relu number 0 has 2 attributes 'axis'"),
        (attribute_without_type, "the attribute 'axis' of the Relu number 0 has no type"),
        (attribute_of_no_function, "stands for an attribute of a function, but is in none"),
        (no_operator, "has no operator"),
        (no_output, "the Relu number 1 has no output"),
        (too_few_data, "the tensor 'w' has the shape [2, 3], which takes 24 bytes, and holds 4"),
        (too_few_numbers, "the tensor 'w' has the shape [2, 3], which takes 6 numbers, and holds 1"),
        (negative_extent, "the tensor 'w' has the shape [-2, -3]"),
        (no_element_type, "the element type 0 of the tensor 'w'"),
        (unknown_element_type, "the element type 777 of the tensor 'w'"),
        (initializer_twice, "the tensor 'w' is defined 2 times"),
        (sparse_of_nothing, "the element type 0 of the values of the sparse tensor 'w'"),
        (loop_without_body, "the Loop number 1 has no body"),
    ],
)
def test_damage_is_named(
    base: RuleBase, build: Build, damage: Callable[[onnx.ModelProto], None], expected: str
) -> None:
    model = build([RELU], {"x": [2]}, ["y"])
    damage(model)
    text = message(model, base)
    assert text.startswith("the model is damaged")
    assert expected in text


@pytest.mark.parametrize("field", [b"NAME", b"x", b"Relu", b"here"])
def test_names_that_are_no_text(base: RuleBase, build: Build, field: bytes) -> None:
    model = build([NODE("Relu", ["x"], ["y"], name="NAME", domain="here")], {"x": [2]}, ["y"])
    data = model.SerializeToString().replace(field, b"\xff" * len(field))
    assert "not UTF-8" in message(data, base)


def test_several_faults_come_together(base: RuleBase, build: Build) -> None:
    model = build([RELU], {"x": [2]}, ["y"])
    for _ in range(20):
        no_operator(model)
        too_few_data(model)
        no_output(model)
        model.graph.node[-1].name = f"n{len(model.graph.node)}"
    text = message(model, base)
    assert "and 1" in text
    assert len(text.splitlines()) < 12


# --- limits ---


def test_tensors_beyond_the_limits(rules: RuleBase, build: Build) -> None:
    def constant(*values: int) -> onnx.TensorProto:
        return numpy_helper.from_array(np.array(values, np.int64), "s")

    shape = [NODE("ConstantOfShape", ["s"], ["c"]), NODE("Add", ["x", "c"], ["y"])]
    assert "10000000000 elements" in message(build(shape, {"x": [1]}, ["y"], [constant(10**10)]), rules)
    assert "elements" in message(build(shape, {"x": [1]}, ["y"], [constant(2**40, 2**40)]), rules)
    assert "elements" in message(build(shape, {"x": [1]}, ["y"], [constant(50_000, 50_000)]), rules)
    given = {"x": [1, 3]}
    expand = [NODE("Expand", ["x", "s"], ["y"])]
    assert "elements" in message(build(expand, given, ["y"], [constant(2**33, 3)]), rules)
    tile = [NODE("Tile", ["x", "s"], ["y"])]
    assert "elements" in message(build(tile, given, ["y"], [constant(2**62, 2**62)]), rules)
    pad = [NODE("Pad", ["x", "s"], ["y"])]
    assert "elements" in message(build(pad, given, ["y"], [constant(0, 2**40, 0, 0)]), rules)
    ends = [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in (("a", 0), ("b", 10**12), ("c", 1))]
    line = [NODE("Range", ["a", "b", "c"], ["r"]), NODE("Cast", ["r"], ["f"], to=1), NODE("Add", ["x", "f"], ["y"])]
    assert "1000000000000 elements" in message(build(line, {"x": [1]}, ["y"], ends), rules)
    assert "elements along an axis" in message(build([RELU], {"x": [2**40]}, ["y"]), rules)
    assert "axes" in message(build([RELU], {"x": [1] * 50}, ["y"]), rules)


def test_inputs_are_measured_before_definitions_count_along_them(build: Build, tmp_path: Path) -> None:
    own = tmp_path / "counted.smr"
    own.write_text(
        "operator Counted<T: float>(x: T[N]) -> y: T[N] {\n    onnx my.domain::Counted;\n"
        "    let places = [2 * o for o in N]\n    y[i] = x[i] * cast(places[i], dtype(x))\n}\n"
    )
    rules = load_rules([own])
    counted = [NODE("Counted", ["x"], ["y"], domain="my.domain")]
    assert "the input 'x' has 4611686018427387904 elements" in message(build(counted, {"x": [2**62]}, ["y"]), rules)
    assert "2147483647 members" in message(build(counted, {"x": [2**31 - 1]}, ["y"]), rules)


def test_what_is_computed_at_import_is_bounded(rules: RuleBase, build: Build) -> None:
    shape = numpy_helper.from_array(np.array([1 << 20], np.int64), "s")
    model = build([NODE("ConstantOfShape", ["s"], ["c"]), NODE("Add", ["x", "c"], ["y"])], {"x": [1]}, ["y"], [shape])
    import_model(model, rules)
    text = message(model, rules, Limits(folded_bytes=1 << 20))
    assert "--limit folded_bytes=N" in text


def test_long_loops_and_deep_choices(rules: RuleBase, build: Build) -> None:
    flag = numpy_helper.from_array(np.array(True), "flag")
    model = build([NODE("If", ["flag"], ["y"])], {"x": [2]}, ["y"], [flag])
    inner = model.graph.node[0]
    for _ in range(1000):  # from the outside in: protobuf copies nothing that is so deep
        for name in ("else_branch", "then_branch"):
            branch = inner.attribute.add(name=name, type=onnx.AttributeProto.GRAPH).g
            branch.output.add(name="y")
        inner = branch.node.add(op_type="If", input=["flag"], output=["y"])
    assert "levels of subgraphs" in message(model, rules)
    count = numpy_helper.from_array(np.array(10**9, np.int64), "count")
    value = helper.make_tensor_value_info
    step = helper.make_graph(
        [NODE("Relu", ["s"], ["t"]), NODE("Identity", ["go"], ["on"])],
        "step",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("s", 1, [2])],
        [value("on", TensorProto.BOOL, []), value("t", 1, [2])],
    )
    loop = NODE("Loop", ["count", "", "x"], ["y"], body=step)
    model = build([loop], {"x": [2]}, ["y"], [count])
    assert "a loop of more than 4096 steps" in message(model, rules)
    counting = [NODE("Less", ["i", "many"], ["on"]), NODE("Relu", ["s"], ["t"])]
    del step.node[:]
    step.node.extend(counting)
    step.initializer.append(numpy_helper.from_array(np.array(10**8, np.int64), "many"))
    model = build([NODE("Loop", ["count", "", "x"], ["y"], body=step)], {"x": [2]}, ["y"], [count])
    assert "nodes" in message(model, rules, Limits(nodes=100))


@pytest.mark.parametrize("operator", ["Concat", "SequenceConstruct", "Split"])
def test_nodes_of_a_hundred_thousand_operands_or_results(rules: RuleBase, build: Build, operator: str) -> None:
    many = [f"y{place}" for place in range(100_000)]
    node = NODE(operator, ["x"], many) if operator == "Split" else NODE(operator, ["x"] * 100_000, ["y0"])
    assert "100000 operands or results, more than the limit of 4096" in message(
        build([node], {"x": [2]}, ["y0"]), rules
    )


def test_functions_that_never_end(rules: RuleBase, build: Build) -> None:
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("my.domain", 1)]

    def function(name: str, *calls: str) -> onnx.FunctionProto:
        names = ["a", *(f"t{place}" for place in range(len(calls) - 1)), "b"]
        nodes = [NODE(c, [names[i]], [names[i + 1]], domain="my.domain") for i, c in enumerate(calls)]
        return helper.make_function("my.domain", name, ["a"], ["b"], nodes, imports)

    call = NODE("F0", ["x"], ["y"], domain="my.domain")
    model = build([call], {"x": [2]}, ["y"], functions=[function("F0", "F1"), function("F1", "F0")])
    assert "a function calls itself: F0 -> F1 -> F0" in message(model, rules)
    model = build([call], {"x": [2]}, ["y"], functions=[function("F0", "F0")])
    assert "a function calls itself: F0 -> F0" in message(model, rules)
    doubling = [function(f"F{place}", f"F{place + 1}", f"F{place + 1}") for place in range(40)]
    model = build([call], {"x": [2]}, ["y"], functions=[*doubling, function("F40", "Nothing")])
    assert f"{2**40} nodes" in message(model, rules)


def test_a_graph_of_a_million_nodes(rules: RuleBase, build: Build) -> None:
    nodes = [NODE("Relu", ["x"], ["y"])]
    model = build(nodes, {"x": [2]}, ["y"])
    model.graph.node.extend(list(model.graph.node) * 1000)
    model.graph.node.extend(list(model.graph.node) * 1000)
    assert "1002001 nodes, more than the limit of 100000" in message(model, rules)


def test_names(rules: RuleBase, build: Build) -> None:
    model = build([NODE("Relu", ["x"], ["y" * 200_000])], {"x": [2]}, ["y" * 200_000])
    assert "200000 characters" in message(model, rules)


def test_time(rules: RuleBase, build: Build) -> None:
    model = build([RELU], {"x": [2]}, ["y"])
    with pytest.raises(LimitError, match="more than the limit of 1e-09 seconds"):
        import_model(model, rules, limits=Limits(seconds=1e-9))


@pytest.mark.parametrize("wrong", [{"nodes": 0}, {"rank": -1}, {"elements": 2**31}, {"seconds": float("nan")}])
def test_senseless_limits(wrong: dict[str, float]) -> None:
    with pytest.raises(LimitError):
        Limits(**wrong)  # type: ignore[arg-type]


# --- data outside the model ---


def test_data_files_that_lie_elsewhere(base: RuleBase, build: Build, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(8))
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to(tmp_path)
    for place in ("../secret", str(tmp_path / "secret"), "link", "up/secret", "/dev/zero", ".", "", "a\0b", "a" * 5000):
        tensor = TensorProto(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value=place)
        path = folder / "m.onnx"
        path.write_bytes(build([NODE("Add", ["x", "w"], ["y"])], {"x": [2]}, ["y"], [tensor]).SerializeToString())
        text = message(path, base)
        assert "outside the folder" in text or "missing" in text or "cannot be read" in text, (place, text)


@pytest.mark.parametrize(
    "entries",
    [
        {"location": "w.bin", "offset": "-1"},
        {"location": "w.bin", "length": "-8"},
        {"location": "w.bin", "length": "99999999999999999999"},
        {"location": "w.bin", "offset": "many"},
        {"location": "w.bin", "length": "4"},
        {"location": "seeded-normal"},
        {"location": "seeded-normal", "offset": "-3", "std": "1", "mean": "0", "min": "0", "max": "1"},
        {"location": "zlib-base64", "data": "!!!"},
        {},
    ],
)
def test_wrong_descriptions_of_data(base: RuleBase, build: Build, tmp_path: Path, entries: dict[str, str]) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(8))
    tensor = TensorProto(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    path = tmp_path / "m.onnx"
    path.write_bytes(build([NODE("Add", ["x", "w"], ["y"])], {"x": [2]}, ["y"], [tensor]).SerializeToString())
    message(path, base)

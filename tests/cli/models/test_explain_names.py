"""`smartmem explain` and nodes without names: by their place, or by the tensor that they compute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, save

from smartmem_rules.cli import main


@pytest.mark.parametrize("asked", ["y", "Mul_1", "a", "Relu_0"])
def test_a_node_without_a_name_is_explained(tmp_path: Path, asked: str) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Mul", ["a", "x"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 8)) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "unnamed", ends[:1], ends[1:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "unnamed.onnx")
    shown = CliRunner().invoke(main, ["explain", str(tmp_path / "unnamed.onnx"), asked])
    assert shown.exit_code == 0
    assert "the kernel k0_pointwise computes it with 1 other" in shown.stdout
    assert shown.stdout.startswith("Mul Mul_1" if asked in ("y", "Mul_1") else "Relu Relu_0")


def explained(folder: Path, asked: str) -> str:
    """What is said of a node of a graph that has unused, folded and duplicate parts; no node has a name."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Exp", ["k"], ["e"]),
        helper.make_node("Tanh", ["x"], ["unused"]),
        helper.make_node("Neg", ["unused"], ["also_unused"]),
        helper.make_node("Shape", ["x"], ["extents"]),
        helper.make_node("Reshape", ["a", "extents"], ["b"]),
        helper.make_node("Mul", ["b", "e"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 8)) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "parts", ends[:1], ends[1:], [helper.make_tensor("k", 1, [8], [0.5] * 8)])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), folder / "parts.onnx")
    shown = CliRunner().invoke(main, ["explain", str(folder / "parts.onnx"), asked])
    assert shown.exit_code == 0
    return shown.stdout


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("e", "Exp Exp_1: its value depends on no element of an input"),
        ("extents", "Shape Shape_4: its value depends on no element of an input"),
        ("unused", "Tanh Tanh_2: no output of the model depends on it"),
        ("Neg_3", "Neg Neg_3: no output of the model depends on it"),
        ("y", "Mul Mul_6: the kernel"),
    ],
)
def test_what_no_kernel_computes_is_told_apart(tmp_path: Path, asked: str, said: str) -> None:
    assert explained(tmp_path, asked).startswith(said)


def branch(folder: Path) -> Path:
    """y = relu(x) if a condition that is known else tanh(x)."""
    parts = []
    for operator, name in (("Relu", "then"), ("Tanh", "otherwise")):
        node = helper.make_node(operator, ["x"], [name], name=f"/{name}")
        parts.append(
            helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 8))])
        )
    chosen = helper.make_tensor("condition", TensorProto.BOOL, [], [True])
    nodes = [helper.make_node("If", ["condition"], ["y"], name="/choice", then_branch=parts[0], else_branch=parts[1])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 8)) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "branch", ends[:1], ends[1:], [chosen])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), folder / "branch.onnx")
    return folder / "branch.onnx"


def function_call(folder: Path) -> Path:
    """y = twice(x), with a function of the model."""
    opset = helper.make_opsetid("", 17)
    body = [helper.make_node("Add", ["a", "a"], ["b"], name="/sum")]
    function = helper.make_function("example", "twice", ["a"], ["b"], body, [opset])
    nodes = [helper.make_node("twice", ["x"], ["y"], name="/call", domain="example")]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 8)) for name in ("x", "y")]
    model = helper.make_model(
        helper.make_graph(nodes, "function", ends[:1], ends[1:]),
        opset_imports=[opset, helper.make_opsetid("example", 1)],
        functions=[function],
        ir_version=9,
    )
    save(model, folder / "function.onnx")
    return folder / "function.onnx"


@pytest.mark.parametrize(
    ("make", "asked", "said"),
    [(branch, "/choice", "If /choice: it was unfolded"), (function_call, "/call", "twice /call: it was unfolded")],
)
def test_a_node_that_its_body_stands_for_is_no_constant(
    tmp_path: Path, make: Callable[[Path], Path], asked: str, said: str
) -> None:
    shown = CliRunner().invoke(main, ["explain", str(make(tmp_path)), asked])
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith(said), shown.stdout
    assert "computed when the model was imported" not in shown.stdout

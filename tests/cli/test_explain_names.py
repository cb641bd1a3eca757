"""`smartmem explain` and nodes without names: by their place, or by the tensor that they compute."""

from __future__ import annotations

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

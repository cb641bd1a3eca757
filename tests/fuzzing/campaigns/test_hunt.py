"""Our own engine on equal forms of models, and what is made of a finding."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules.cli import main
from smartmem_rules.fuzzing.campaigns.campaign import Answer, answers_here, drawn_requests
from smartmem_rules.fuzzing.campaigns.hunt import gather, requests_for
from smartmem_rules.fuzzing.case import Case, Mode, load_case
from smartmem_rules.fuzzing.equal.hunting import Hunt
from smartmem_rules.fuzzing.equal.rules import BACKWARDS, Admitted, admitted_base
from smartmem_rules.fuzzing.judge import Verdict
from tests.with_all import with_all

RULES = (
    "subtract_negation", f"subtract_negation{BACKWARDS}", "add_negation", "double_relu", "multiply_by_one",
    f"one_over{BACKWARDS}", f"square_of_power{BACKWARDS}", "factor_addend", "transpose",
)  # fmt: skip
MODELS = with_all(4, 2)


def admitted() -> Admitted:
    return Admitted(admitted_base(RULES), dict.fromkeys(RULES, "proved"))


def test_our_engine_computes_equal_forms_alike(tmp_path: Path, examples: int) -> None:
    """The request of a finding is what `smartmem fuzz --source side --seed SEED --count 1` makes again."""
    wanted = Hunt(systems=("self",), forms=2, rules=RULES, seed=1)
    requests = requests_for(drawn_requests("side", 1, examples or MODELS), wanted)
    hunted = gather(answers_here(requests, jobs=1), wanted, admitted(), tmp_path)
    assert hunted.models == len(requests)
    assert hunted.judged > hunted.models / 2
    assert not hunted.findings, "\n".join(line for one in hunted.findings for line in one.lines())


def test_a_finding_is_reduced_kept_and_not_reported_twice(tmp_path: Path) -> None:
    """A model that ONNX Runtime refuses, called an error by the answer: what is kept is what fails alike."""
    node = helper.make_node("Relu", ["x"], ["y"])
    inputs = [helper.make_tensor_value_info("x", 1, [2])]
    graph = helper.make_graph([node], "one", inputs, [helper.make_tensor_value_info("y", 1, [2])])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path = Case("relu", proto, {"x": np.ones(2, np.float32)}, Mode()).save(tmp_path / "models")
    wanted = Hunt(systems=("self",), forms=0, rules=RULES, seed=1)
    (request,) = requests_for([{"file": str(path)}], wanted)
    found = {"system": "self", "place": 0, "verdict": {"kind": "wrong", "detail": "y: 1 of 2 wrong", "seconds": 0.0}}
    answer = Answer(request, Verdict("wrong"), {"judged": 1, "found": [found]})
    hunted = gather([answer, answer], wanted, admitted(), tmp_path / "kept")
    (finding,) = hunted.findings
    assert (finding.operators, hunted.again, hunted.kinds["wrong"]) == (("Relu",), 1, 2)
    assert Path(finding.kept).exists()


def recipe_and_data(folder: Path) -> Path:
    """A model of which one weight is described and the other lies in a data file."""
    names, shape = ("drawn", "stored"), [4, 4]
    nodes = [helper.make_node("MatMul", ["x", names[0]], ["a"]), helper.make_node("MatMul", ["a", names[1]], ["y"])]
    weights = [TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=1) for name in names]
    recipe = {"location": "seeded-normal", "offset": 1, "std": 1, "mean": 0, "min": -2, "max": 2}
    for tensor, entries in zip(weights, (recipe, {"location": "stored.bin"}), strict=True):
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=str(value))
    (folder / "stored.bin").write_bytes(np.eye(4, dtype=np.float32).tobytes())
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "two", ends[:1], ends[1:], weights)
    path = folder / "two.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString())
    return path


def test_weights_may_be_described_or_lie_in_data_files(tmp_path: Path) -> None:
    path = recipe_and_data(tmp_path)
    drawn, stored = (numpy_helper.to_array(tensor) for tensor in load_case(path).model.graph.initializer)
    assert drawn.shape == (4, 4)
    assert 0 < np.abs(drawn).max() <= 2
    np.testing.assert_array_equal(stored, np.eye(4))
    done = CliRunner().invoke(main, ["fuzz", str(path), "--forms", "1", "--keep", str(tmp_path / "kept"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["judged"] > 0


def test_a_missing_data_file_gets_one_message(tmp_path: Path) -> None:
    path = recipe_and_data(tmp_path)
    (tmp_path / "stored.bin").unlink()
    done = CliRunner().invoke(main, ["fuzz", str(path)])
    assert done.exit_code == 2
    assert "stored.bin: 1 tensor (stored)" in done.output


@pytest.mark.parametrize(
    ("options", "said"),
    [(("--against", "openvina"), "did you mean"), (("--against", ""), "no system")],
)
def test_bad_options_get_one_message(options: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(main, ["fuzz", *options])
    assert result.exit_code == 2
    assert said in result.output

"""The commands on small models, as a user types them."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner, Result

from smartmem_rules.cli import main
from smartmem_rules.stages import STAGES
from tests.cli import onnx_files
from tests.plan.models import Node, model as built, normal

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def smartmem(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def data_of(*arguments: object) -> Any:
    result = smartmem(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return onnx_files.chain(tmp_path / "chain.onnx")


def test_optimize_gives_the_promised_keys(model: Path) -> None:
    data = data_of("optimize", model)
    assert data["model"] == "chain"
    assert (data["level"], data["dtype"], data["operators"]) == ("smartmem", "float32", 4)
    assert data["device"]
    assert 1 <= data["kernels"] <= 3
    assert data["layout_operators"] == {"before": 1, "after": 0}
    assert set(data["seconds"]) == {*STAGES, "total"}
    assert sum(data["seconds"].values()) - data["seconds"]["total"] <= data["seconds"]["total"]
    assert data["bytes_moved"] > 0
    assert data["check"]["reference"].endswith("onnxruntime")
    assert data["check"]["max_relative_error"] <= 1e-4
    assert data["check"]["passed"] is True
    assert set(data["extraction"]) >= {"status", "gap"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("level", ["none", "dnnfusion", "eliminate", "layout", "smartmem"])
@pytest.mark.parametrize("memory", ["buffer", "image"])
def test_every_level_and_memory_agrees_with_the_reference(model: Path, level: str, memory: str) -> None:
    data = data_of("optimize", model, "--level", level, "--memory", memory)
    assert data["check"]["max_relative_error"] <= 1e-5


def test_halves_have_their_own_tolerance(model: Path) -> None:
    check = data_of("optimize", model, "--dtype", "float16")["check"]
    assert (check["tolerance"], check["precision"], check["passed"]) == (None, "double", True)
    assert 1e-5 < check["bound"] <= 2e-2
    assert 0 < check["max_relative_error"] <= 2e-2


def test_outputs_that_differ_are_exit_code_1(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from smartmem_rules.runtime import executor

    honest = executor.Executor.run

    def wrong(self: executor.Executor, feeds: Any) -> dict[str, Any]:
        return {name: array + 1 for name, array in honest(self, feeds).items()}

    monkeypatch.setattr(executor.Executor, "run", wrong)
    result = smartmem("optimize", model)
    assert result.exit_code == 1
    assert "outputs differ" in result.stdout
    assert smartmem("optimize", model, "--no-check").exit_code == 0


def test_tables_for_people(model: Path) -> None:
    result = smartmem("optimize", model, "--rule-stats")
    assert result.exit_code == 0
    for text in (
        "Operators of the model",
        "Transpose",
        "Before and after",
        "Seconds",
        "saturate",
        "what rounding explains by 4",
    ):
        assert text in result.stdout
    assert "seed 0" in result.stdout


def test_rule_statistics(model: Path) -> None:
    rules = data_of("optimize", model, "--rule-stats", "--no-check")["rules"]
    assert {"rule", "tried", "fired", "milliseconds", "enodes"} <= set(rules[0])


def test_a_plan_goes_through_a_file(model: Path, tmp_path: Path) -> None:
    plan = tmp_path / "chain.plan"
    data_of("optimize", model, "-o", plan)
    x = np.random.default_rng(5).standard_normal((6, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    outcome = data_of("run", plan, "--input", f"x={tmp_path / 'x.npy'}", "--output", tmp_path / "out")
    assert outcome["outputs"]["y"]["shape"] == [5, 6]
    assert outcome["random_inputs"] == []
    expected = onnxruntime.InferenceSession(str(model)).run(None, {"x": x})[0]
    np.testing.assert_allclose(np.load(tmp_path / "out" / "y.npy"), expected, rtol=1e-5, atol=1e-6)


def test_run_draws_the_same_inputs_for_the_same_seed(model: Path) -> None:
    first, again, other = (data_of("run", model, "--seed", seed)["outputs"]["y"] for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_run_at_a_bound_dimension(tmp_path: Path) -> None:
    model = onnx_files.symbolic(tmp_path)
    assert data_of("run", model, "--dim", "batch=3")["outputs"]["y"]["shape"] == [5, 3]


def test_random_indices_stay_within_what_they_index(tmp_path: Path) -> None:
    summary = data_of("run", onnx_files.embedding(tmp_path / "e.onnx"))["outputs"]["y"]
    assert summary["max"] == 27.0, "all rows of the table are drawn"


def test_bench_takes_turns(model: Path) -> None:
    rows = data_of("bench", model, "--level", "none,smartmem", "--runs", 3, "--against", "onnxruntime")["results"]
    assert [(row["level"], row["peer"]) for row in rows] == [
        ("none", None),
        ("smartmem", None),
        (None, "onnxruntime"),
    ]
    for row in rows:
        assert row["min_ms"] <= row["median_ms"] <= row["max_ms"]
        assert row["runs"] == 3
        assert {"kernels", "device", "model"} <= set(row)
    assert rows[0]["kernels"] == 4


def test_explain_names_the_kernel_and_the_rules(model: Path) -> None:
    data = data_of("explain", model, "/transpose")
    assert data["operator"] == "Transpose"
    assert "transpose" in data["rules"]
    assert all("/transpose" not in kernel["with"] for kernel in data["kernels"])
    assert "Transpose /transpose" in smartmem("explain", model, "/transpose").stdout


def test_explain_says_how_a_tensor_lies_and_why(tmp_path: Path) -> None:
    nodes: list[Node] = [("Conv", "x a", "p"), ("Relu", "p", "q"), ("Conv", "q b", "y")]
    constants = {"a": normal(8, 4, 1, 1), "b": normal(4, 8, 1, 1)}
    file = tmp_path / "two.onnx"
    proto = built(nodes, {"x": normal(1, 4, 6, 6)}, "y", constants)
    for node in proto.graph.node:
        node.name = f"/{node.output[0]}"
    onnx.save(proto, file)
    data = data_of("explain", file, "/p", "--device", "adreno_740")
    (written,) = data["kernels"][0]["writes"]
    assert written["reduced"] == ["d1"]
    assert written["layout"].startswith("image, d1 in the lanes")
    costs = {one["layout"]: one["microseconds"] for one in written["candidates"]}
    assert costs[written["layout"]] == min(costs.values())
    text = smartmem("explain", file, "/p", "--device", "adreno_740").stdout
    assert f"writes {written['tensor']} as {written['layout']}" in text
    assert "along d1" in text


def test_devices_lists_limits() -> None:
    data = data_of("devices")
    assert {"pocl", "nvidia", "adreno_740"} <= set(data["profiles"])
    assert {"name", "platform", "driver", "kind", "images", "image_width", "local_memory"} <= set(data["devices"][0])
    assert data["devices"][0]["name"] in smartmem("devices").stdout


def test_a_profile_can_be_the_device(model: Path) -> None:
    data = data_of("optimize", model, "--device", "adreno_740")
    assert data["profile"] == "adreno_740"
    assert data["check"]["passed"] is True


def test_check_accepts_good_rules_and_names_all_errors(tmp_path: Path) -> None:
    good = tmp_path / "good.smr"
    good.write_text("operator Twice(x: T[*S]) -> y: T[*S] {\n    y[*i < S] = x[*i] * 2\n}\n")
    assert data_of("check", good)["runs"][0]["results"] == []
    first, second = tmp_path / "first.smr", tmp_path / "second.smr"
    first.write_text("rewrite broken in\n")
    second.write_text("rewrite unknown in algebra\n    Nonsense(x) => x\n")
    result = smartmem("check", first, second)
    assert result.exit_code == 2
    assert "first.smr:" in result.stdout
    assert "`Nonsense`" in result.stdout
    assert result.stdout.rstrip().endswith("errors")
    found = json.loads(smartmem("check", first, second, "--json").stdout)
    results = found["runs"][0]["results"]
    assert found["version"] == "2.1.0"
    assert len(results) >= 2
    assert results[0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 1


@pytest.mark.exhaustive  # `make check`, which CI runs, asks the same
def test_built_in_rules_pass_their_own_check() -> None:
    from smartmem_rules.resources import rules_path

    assert data_of("check", rules_path())["runs"][0]["results"] == []


def test_check_watches(tmp_path: Path) -> None:
    pytest.importorskip("watchfiles")
    path = tmp_path / "mine.smr"
    path.write_text("let A = 1\n")
    call = [sys.executable, "-u", "-m", "smartmem_rules.cli", "check", "--watch", path]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "found 0 errors\n"
        for _ in range(20):  # until the watcher has begun
            path.write_text("let a = 1\n")
            if select.select([process.stdout], [], [], 0.5)[0]:
                break
        assert "SMR0108" in process.stdout.readline()
        process.terminate()


def test_fmt_takes_a_byte_order_mark_away(tmp_path: Path) -> None:
    path = tmp_path / "marked.smr"
    path.write_bytes(b"\xef\xbb\xbflet A = 1\n")
    assert smartmem("fmt", "--check", path).exit_code == 1
    assert smartmem("fmt", path).exit_code == 0
    assert path.read_bytes() == b"let A = 1\n"
    path.write_bytes("let A = 1\n".encode("utf-16"))
    refused = smartmem("fmt", path)
    assert refused.exit_code == 2
    assert "it is UTF-16 text" in refused.stderr
    assert path.read_bytes() == "let A = 1\n".encode("utf-16")


def test_fmt_lays_out_and_checks(tmp_path: Path) -> None:
    path = tmp_path / "mine.smr"
    path.write_text("function  f( a )=a+1 # one more\n")
    assert smartmem("fmt", "--check", tmp_path).exit_code == 1
    assert path.read_text().startswith("function  f")
    assert smartmem("fmt", tmp_path).exit_code == 0
    assert path.read_text() == "function f(a) = a + 1 # one more\n"
    assert smartmem("fmt", "--check", path).exit_code == 0
    path.write_text("function f(\n")
    result = smartmem("fmt", path)
    assert result.exit_code == 2
    assert path.read_text() == "function f(\n"


def test_docs_are_pages_that_lead_to_one_another(tmp_path: Path) -> None:
    verdicts = tmp_path / "verdicts.json"
    verdicts.write_text('{"rules": [{"name": "add_zero", "verdict": "proved", "method": "smt"}]}')
    files = data_of("docs", "-o", tmp_path / "site", "--verdicts", verdicts)["files"]
    texts = {Path(file).name: Path(file).read_text() for file in files}
    assert {"index.html", "operators.html", "rewrites.html", "tables.html", "devices.html"} <= set(texts)
    assert "proved (smt)" in texts["rewrites.html"]
    assert "ILD.Variable: it reduces over" in texts["operators.html"]
    for text in texts.values():
        for target, anchor in re.findall(r'href="([\w.]+)#([\w.-]+)"', text):
            assert f'id="{anchor}"' in texts[target], (target, anchor)


def test_explain_a_rule(model: Path) -> None:
    rules = data_of("optimize", model, "--rule-stats", "--no-check")["rules"]
    rule = next(one["rule"] for one in rules if one["in_plan"])  # facts that rules derive have no nodes
    data = data_of("explain", "--rule", rule, model)
    assert data["fired"] > 0
    assert data["nodes"]
    assert data["file"].endswith(".smr")
    refused = smartmem("explain", "--rule", "no_such_rule", model)
    assert refused.exit_code == 2
    assert "no rule 'no_such_rule'" in refused.stderr
    assert smartmem("explain", model).exit_code == 2

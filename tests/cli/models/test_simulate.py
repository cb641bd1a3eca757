"""`smartmem simulate`."""

import json

import pytest
from click.testing import CliRunner
from onnx import helper

from smartmem_rules.cli import main
from tests.cli.onnx_files import chain


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(chain(tmp_path_factory.mktemp("models") / "chain.onnx"))


def test_json_of_two_levels(tmp_path):
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"], axis=1, name="/softmax"),
        helper.make_node("MatMul", ["a", "w"], ["y"], name="/product"),
    ]
    model = str(chain(tmp_path / "product.onnx", nodes=nodes))
    result = CliRunner().invoke(main, ["simulate", model, "--levels", "dnnfusion,smartmem", "--json"])
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert (data["device"], data["dtype"], data["memory"]) == ("adreno_740", "float16", "preferred")
    assert list(data["levels"]) == ["dnnfusion", "smartmem"]
    for one in data["levels"].values():
        assert {"accesses", "misses", "bytes", "estimated_ms", "kernels"} <= set(one)
        assert one["kernels"] == len(one["by_kernel"])
        assert one["misses"] == one["memories"]["texture_l1"]["misses"] + one["memories"]["l2"]["misses"]
        assert 0 < one["misses"] <= 2 * one["accesses"]
        assert one["estimated_ms"] >= 0.02 * one["kernels"]
    assert data["levels"]["smartmem"]["kernels"] < data["levels"]["dnnfusion"]["kernels"]


def test_all_levels_as_a_table(model):
    result = CliRunner().invoke(main, ["simulate", model, "--levels", "--kernels", "--memory", "level"])
    assert result.exit_code == 0, result.output
    for level in ("none", "dnnfusion", "eliminate", "layout", "smartmem"):
        assert level in result.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--device", "adreno_74"], "there is no device profile 'adreno_74'"),
        (["--device", "pocl"], "has no model of its memory"),
        (["--levels", "smartmen"], "there is no level 'smartmen'"),
    ],
)
def test_bad_input_is_one_message(model, options, message):
    result = CliRunner().invoke(main, ["simulate", model, *options])
    assert result.exit_code == 2
    assert message in result.stderr
    assert not result.stdout

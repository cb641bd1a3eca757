"""numpy functions that rule files name: imported when a check asks for them, compared with plans and definitions."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import smartmem_rules as sm
from smartmem_rules.checking.own_references import OwnReferenceError
from smartmem_rules.rulebase.base import load_rules

RULE = """operator Moved<T: float>(x: T[*S, N], by: T[N]?, const at: ints; scale: float = 2.0, mode: string = "plus")
        -> (OUTPUTS) {
    onnx my.ops::Moved ;
    reference "REFERENCE"
    y[*i, n] = x[*i, n] * scale + (by[n] else 0) + at[0]
}
""".replace("(OUTPUTS)", "y: T[*S, N]")
RIGHT = """import numpy as np
def moved(x, by, at, scale, mode):
    assert mode == "plus" and at.ndim == 1
    return x * scale + (0 if by is None else by) + at[0]
"""


def rules(folder: Path, module: str = RIGHT, reference: str = "moved_numpy:moved") -> Path:
    (folder / "moved_numpy.py").write_text(module)
    path = folder / "moved.smr"
    path.write_text(RULE.replace("REFERENCE", reference))
    return path


def model(with_by: bool = True) -> ModelProto:
    operands = ["x", "by" if with_by else "", "at"]
    nodes = [
        helper.make_node("Moved", operands, ["m"], "moved", domain="my.ops", scale=0.5),
        helper.make_node("Relu", ["m"], ["y"], "relu"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (3, 4)) for name in ("x", "y")]
    values = [
        numpy_helper.from_array(np.arange(4, dtype=np.float32), "by"),
        numpy_helper.from_array(np.array([7], np.int64), "at"),
    ]
    graph = helper.make_graph(nodes, "moved", ends[:1], ends[1:], values if with_by else values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)])


@pytest.mark.parametrize("with_by", [True, False])
def test_a_plan_is_compared_with_the_function(tmp_path: Path, with_by: bool) -> None:
    plan = sm.optimize(model(with_by), rules=[rules(tmp_path)])
    check = plan.check()
    assert check.passed is True
    assert "numpy" in check.reference
    assert check.precision == "double"


def test_a_function_that_differs_from_the_kernel_is_found(tmp_path: Path) -> None:
    plan = sm.optimize(model(), rules=[rules(tmp_path, RIGHT.replace("+ at[0]", "+ at[0] * 1.001"))])
    assert plan.check().passed is False


def test_nothing_is_imported_before_a_check(tmp_path: Path) -> None:
    path = rules(tmp_path, "raise ValueError('imported')\n")
    load_rules([path])
    plan = sm.optimize(model(), rules=[path])
    with pytest.raises(OwnReferenceError, match=r"moved.smr:4:15: the reference .* of my.ops::Moved cannot .*imported"):
        plan.check()


def test_an_installed_module_is_taken_where_none_lies_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "my_references"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "moves.py").write_text(RIGHT)
    monkeypatch.syspath_prepend(str(package.parent))
    plan = sm.optimize(model(), rules=[rules(tmp_path, reference="my_references.moves:moved")])
    assert plan.check().passed is True
    assert "my_references.moves" in sys.modules


@pytest.mark.parametrize(
    ("module", "reference", "message"),
    [
        (RIGHT, "nowhere_numpy:moved", "neither .*nowhere_numpy.py nor an installed module"),
        (RIGHT, "moved_numpy:move", "has no function `move`"),
        ("def moved(x, by, at, scale, mode): return x[9]\n", "moved_numpy:moved", "fails: IndexError"),
        ("def moved(x): return x\n", "moved_numpy:moved", "fails: TypeError"),
        ("def moved(*_, **__): return ()\n", "moved_numpy:moved", "gives 0 of 1 results"),
        ("def moved(*_, **__): return 'y'\n", "moved_numpy:moved", "which is no tensor's"),
    ],
)
def test_what_is_wrong_with_a_function_is_said(tmp_path: Path, module: str, reference: str, message: str) -> None:
    plan = sm.optimize(model(), rules=[rules(tmp_path, module, reference)])
    with pytest.raises(OwnReferenceError, match=message):
        plan.check()


def test_verify_compares_the_definition_with_the_function(tmp_path: Path) -> None:
    (right,) = sm.verify(rules(tmp_path), jobs=1, trials=30).rules
    assert (right.kind, right.verdict) == ("operator", "tested")
    assert right.trials >= 20
    other = tmp_path / "other"
    other.mkdir()
    (wrong,) = sm.verify(rules(other, RIGHT.replace("at[0]", "at[-1] + 1e-3")), jobs=1, trials=30).rules
    assert wrong.verdict == "failed"
    assert wrong.counterexample is not None
    assert "by the definition and" in wrong.counterexample.summary

"""Equal forms of models: they are models, they differ, and they compute the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from smartmem_rules.fuzzing.case import Case, Mode
from smartmem_rules.fuzzing.equal.forms import Forms
from smartmem_rules.fuzzing.equal.hunting import Hunt, equal_forms, hunt, unequal
from smartmem_rules.fuzzing.equal.proofs import prove_equal
from smartmem_rules.fuzzing.equal.rules import BACKWARDS, admit, admitted_base, backward
from smartmem_rules.fuzzing.sources.sides import side
from smartmem_rules.fuzzing.systems import SYSTEMS, System
from smartmem_rules.rulebase.base import load_rules

RULES = (
    "subtract_negation", f"subtract_negation{BACKWARDS}", "add_negation", "double_negation", "double_relu",
    f"double_relu{BACKWARDS}", "factor_common_multiplicand", "transpose", "reshape",
)  # fmt: skip


def model() -> Case:
    """relu(x * (y + z)) turned, with (y - -z) in another place."""
    nodes = [
        helper.make_node("Neg", ["z"], ["n"]),
        helper.make_node("Sub", ["y", "n"], ["s"]),
        helper.make_node("Mul", ["x", "s"], ["m"]),
        helper.make_node("Relu", ["m"], ["r"]),
        helper.make_node("Transpose", ["r"], ["o"], perm=[1, 0]),
    ]
    random = np.random.default_rng(3)
    feeds = {name: random.standard_normal((3, 4)).astype(np.float32) for name in "xyz"}
    inputs = [helper.make_tensor_value_info(name, 1, [3, 4]) for name in feeds]
    graph = helper.make_graph(nodes, "one", inputs, [helper.make_tensor_value_info("o", 1, [4, 3])])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return Case("one", proto, feeds, Mode())


def test_forms_differ_and_are_equal() -> None:
    case = model()
    forms = list(equal_forms(case, admitted_base(RULES), 6, 1))
    assert len(forms) >= 3
    texts = {onnx.printer.to_text(form.model.graph) for form in forms}
    assert len(texts) == len(forms)
    for form in forms:
        onnx.checker.check_model(form.model, full_check=True)
        assert unequal(case, form) == ""


def test_a_form_names_the_rules_that_made_it() -> None:
    rules = {name for form in Forms(model().model, admitted_base(RULES)).draw(6, 1) for name in form.rules}
    assert rules & set(RULES)


def test_a_wrong_form_is_seen() -> None:
    case = model()
    wrong = onnx.ModelProto()
    wrong.CopyFrom(case.model)
    wrong.graph.node[1].op_type = "Add"
    assert "wrong" in unequal(case, Case("wrong", wrong, case.feeds, case.mode))


def test_a_proof_has_no_rule_too_many_and_equal_models_have_one() -> None:
    case, base = model(), admitted_base(RULES)
    other = onnx.ModelProto()
    other.CopyFrom(case.model)
    del other.graph.node[0]
    other.graph.node[0].CopyFrom(helper.make_node("Add", ["y", "z"], ["s"]))
    steps = prove_equal(case.model, other, base, {"subtract_negation": "proved (z3)"})
    assert steps is not None
    assert [step.rule.removesuffix(BACKWARDS) for step in steps] == ["subtract_negation"]
    other.graph.node[0].CopyFrom(helper.make_node("Sub", ["y", "z"], ["s"]))
    assert prove_equal(case.model, other, base, {}) is None


def test_rules_are_read_backwards_where_both_sides_bind_the_same() -> None:
    rules = {rule.name: rule for rule in load_rules().rewrites}
    assert backward(rules["gelu"]) is None  # the constant stands on the left only
    assert backward(rules["add_zero"]) is None  # nothing would be matched
    turned = backward(rules["subtract_negation"])
    assert turned is not None
    assert (turned.left, turned.right) == (rules["subtract_negation"].right, rules["subtract_negation"].left)


def test_only_rules_with_a_proof_that_keep_all_values_are_admitted() -> None:
    only = ["double_relu", "subtract_negation", "double_reciprocal", "concat_of_consecutive_slices"]
    admitted = admit(only=only, jobs=1)
    assert set(admitted.names) >= {"double_relu", "subtract_negation"}
    # the first relaxes infinities, the second is only tested
    assert not {"double_reciprocal", "concat_of_consecutive_slices"} & set(admitted.names)
    assert all(verdict.startswith("proved") for verdict in admitted.verdicts.values())


def test_built_in_rules_need_no_verification(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where it fails: `python bench/verdicts.py` verifies the rules that have changed."""
    monkeypatch.setenv("SMARTMEM_CACHE", str(tmp_path))  # where nothing was kept
    monkeypatch.setattr("smartmem_rules.fuzzing.equal.rules.judge_rules", None)
    admitted = admit()
    assert {"double_relu", f"subtract_negation{BACKWARDS}"} <= set(admitted.names)


def test_a_system_that_is_wrong_for_one_form_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Wrong wherever two tensors are added."""
        results = SYSTEMS["onnxruntime"].run(proto, feeds)
        adds = any(node.op_type == "Add" for node in proto.graph.node)
        return {name: value + 0.01 * adds for name, value in results.items()}

    monkeypatch.setitem(SYSTEMS, "planted", System(package="onnxruntime", run=planted))  # type: ignore[arg-type]
    judged, found = hunt(model(), Hunt(systems=("planted",), forms=8, rules=RULES, seed=1))
    assert judged > 4
    assert found
    assert all(one.place > 0 and one.verdict.kind == "wrong" for one in found)


@pytest.mark.parametrize("seed", range(4))
def test_sides_of_rules_are_models_that_compute(seed: int) -> None:
    """`side(SEED)` draws the same model again."""
    case = side(seed)
    onnx.checker.check_model(case.model, full_check=True)
    judged, found = hunt(case, Hunt(systems=("onnxruntime",), forms=0, rules=(), seed=seed))
    assert judged == 1
    assert not found, found

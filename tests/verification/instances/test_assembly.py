"""Instances that the verifier draws: what no valid model has is not among them."""

from __future__ import annotations

import gc
import weakref

from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.verification.instances.cases import Search
from smartmem_rules.verification.operators import single
from smartmem_rules.verification.semantics.terms import Application

CASES = 1500


def test_no_list_of_axes_names_an_axis_twice() -> None:
    base = load_rules()
    operator = base.operators["ReduceL2"][0]
    seen = 0
    for case in single(operator, Instances(base), seed=3).cases(CASES):
        if case is None:
            continue
        assert isinstance(case.left, Application)
        axes, operand = case.left.attributes.get("axes"), case.left.operands[0]
        if isinstance(axes, tuple) and operand is not None and axes:
            seen += 1
            rank = len(operand.type.shape)
            assert len({axis % rank for axis in axes if isinstance(axis, int)}) == len(axes), (axes, operand.type)
    assert seen > CASES // 10


def test_every_word_and_every_overload_is_tried() -> None:
    base = load_rules()
    instances = Instances(base)
    words = {
        case.left.attributes.get("coordinate_transformation_mode")
        for case in single(base.operators["Resize"][0], instances, seed=1).cases(300)
        if case is not None and isinstance(case.left, Application)
    }
    assert {"asymmetric", "align_corners", "tf_crop_and_resize"} <= words


def test_an_operand_before_a_required_one_may_be_absent() -> None:
    base = load_rules()
    operator = next(o for o in base.operators["Dropout"] if o.inputs[-1].name == "bits")
    found = next(case for case in single(operator, Instances(base), seed=1).cases(300) if case is not None)
    assert isinstance(found.left, Application)
    assert [operand is not None for operand in found.left.operands] == [True, False, False, True]


def test_an_instance_that_guards_refuse_is_freed_without_the_collector() -> None:
    base = load_rules()
    (rule,) = (rule for rule in base.rewrites if rule.name == "scale_before_conv")
    search = Search(rule, rule.left, rule.right, Instances(base), 1)
    gc.disable()
    try:
        scopes = []
        for _ in range(60):
            case = search.build({})
            if case is not None and case.failing:
                scopes.append(weakref.ref(case.scope))
            del case
        assert len(scopes) > 10
        assert not any(scope() is not None for scope in scopes)
    finally:
        gc.enable()

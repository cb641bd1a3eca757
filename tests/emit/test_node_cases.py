"""ONNX's own backend node tests on the device: plain and optimized, from buffers and from images.

By default every operator runs, its cases spread over the modes; `--all-node-tests` runs every case in every mode.
What is compile-time in the rule language is bound to its value, because the published cases give it at run time.
A case that is refused with a message is skipped.
"""

from __future__ import annotations

from collections import defaultdict

import onnx
import pytest

from smartmem_rules.graph.model import GraphError
from smartmem_rules.graph.run_number import RUN_NUMBER
from smartmem_rules.plan.kernel.model import PlanError
from smartmem_rules.tensor.builtins import Unsupported
from tests.operators.overloads import Array, overloads
from tests.operators.test_node_suite import as_array, cases, compare, opset_of
from tests.plan.running import Mode, prepare

pytestmark = pytest.mark.sampled(24)

MODES = [Mode(level, memory) for level in ("none", "smartmem") for memory in ("buffer", "image")]
CASES_OF_AN_OPERATOR = 3


def bound_inputs(model: onnx.ModelProto) -> set[str]:
    """The inputs that every definition of a reading operator takes at compile time."""
    found: set[str] = set()
    for node in model.graph.node:
        definitions = overloads(node.op_type, opset_of(model))
        for place, name in enumerate(node.input):
            formals = [o.inputs[place] for o in definitions if place < len(o.inputs)]
            if name and formals and all(formal.constant is not None for formal in formals):
                found.add(name)
    return found


def with_values(model: onnx.ModelProto, values: dict[str, Array]) -> onnx.ModelProto:
    """The model with its compile-time inputs made initializers."""
    bound = bound_inputs(model) & set(values)
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    left = [i for i in changed.graph.input if i.name not in bound]
    del changed.graph.input[:]
    changed.graph.input.extend(left)
    changed.graph.initializer.extend(onnx.numpy_helper.from_array(values[name], name) for name in sorted(bound))
    return changed


def chosen(everything: bool) -> list[tuple[str, Mode]]:
    """Case names and modes; without `everything` some cases of each operator, each in one mode."""
    if everything:
        return [(name, mode) for name in sorted(cases()) for mode in MODES]
    by_operator: dict[str, list[str]] = defaultdict(list)
    for name in sorted(cases()):
        case = cases()[name]
        values = [v for inputs, outputs in case.data_sets for v in (*inputs, *outputs)]
        if not name.endswith("_expanded") and all(_is_held(v) for v in values):
            operators = [n.op_type for n in case.model.graph.node if n.op_type != "Constant"]
            by_operator[operators[0]].append(name)
    picked: list[tuple[str, Mode]] = []
    for number, operator in enumerate(sorted(by_operator)):
        listed = by_operator[operator]
        step = max(1, len(listed) // CASES_OF_AN_OPERATOR)
        for place, name in enumerate(listed[::step][:CASES_OF_AN_OPERATOR]):
            picked.append((name, MODES[(number + place) % len(MODES)]))
    return picked


def _is_held(value: object) -> bool:
    try:
        array = as_array(value)
    except Unsupported:
        return False
    return array.dtype.kind in "fiub" and array.dtype.itemsize > 0


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if {"name", "mode"} <= set(metafunc.fixturenames):
        pairs = chosen(bool(metafunc.config.getoption("--all-node-tests")))
        metafunc.parametrize(("name", "mode"), pairs, ids=[f"{name}-{mode}" for name, mode in pairs])


@pytest.mark.sampled(48)
def test_published_case(name: str, mode: Mode) -> None:
    case = cases()[name]
    for inputs, outputs in case.data_sets:
        given = {i.name: v for i, v in zip(case.model.graph.input, inputs, strict=False)}
        try:
            feeds = {n: as_array(v) for n, v in given.items()}
            plan, executor = prepare(with_values(case.model, feeds), mode)
        except (GraphError, PlanError, Unsupported) as reason:
            pytest.skip(str(reason))
        if RUN_NUMBER in plan.inputs:
            pytest.skip("what is drawn is nobody else's")
        results = executor.run({n: feeds[n] for n in plan.inputs})
        for output, value in zip(case.model.graph.output, outputs, strict=True):
            compare(output.name, results[output.name], as_array(value), case)

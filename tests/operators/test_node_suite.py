"""ONNX's own backend node tests: every definition gives the published results.

A case whose operator or overload has no definition is skipped; `test_coverage` counts those.  Function bodies (the
`_expanded` cases) run node by node.
"""

from __future__ import annotations

import pickle
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from smartmem_rules.graph.known.constants import constant_node_value
from smartmem_rules.tensor.builtins import Unsupported
from tests.made_once import made_once
from tests.operators.overloads import Array, overloads, run_node

pytestmark = pytest.mark.sampled(8)

# Fewer cases than this mean that a definition was lost.
EXPECTED_CASES = 1000
EPSILON = float(np.finfo(np.float32).eps)
HALF_TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2}


@cache
def published() -> dict[str, Any]:
    """All cases by name. ONNX computes their results while it lists them, so one process does it for all."""

    def make(folder: Path) -> None:
        from onnx.backend.test.loader import load_model_tests

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            listed: list[Any] = load_model_tests(kind="node")
        (folder / "cases").write_bytes(pickle.dumps(listed, pickle.HIGHEST_PROTOCOL))

    made = made_once(f"node_cases/{onnx.__version__}", [Path(onnx.__file__)], make)
    return {case.name: case for case in pickle.loads((made / "cases").read_bytes())}


@cache
def cases() -> dict[str, Any]:
    """The cases whose operators have definitions."""
    return {name: case for name, case in published().items() if covered(case.model)}


def opset_of(model: onnx.ModelProto) -> int:
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)


def covered(model: onnx.ModelProto) -> bool:
    """Whether every operator of the model has a definition; constants are values."""
    nodes = [node for node in model.graph.node if node.op_type != "Constant"]
    defined = (node.domain in ("", "ai.onnx") and overloads(node.op_type, opset_of(model)) for node in nodes)
    return bool(nodes) and all(defined)


def as_array(value: Any) -> Array:
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if value is None or isinstance(value, list):
        raise Unsupported("an operand is a sequence or an optional value")
    return np.asarray(value)


def compute(model: onnx.ModelProto, inputs: list[Any]) -> list[tuple[str, Array]]:
    """All results of the model's overloads for each of its outputs.

    Between the nodes of a function body the first overload's results are passed on.
    """
    opset = opset_of(model)
    known: dict[str, Array] = {i.name: as_array(v) for i, v in zip(model.graph.input, inputs, strict=False)}
    known |= {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    wanted = [output.name for output in model.graph.output]
    results: list[tuple[str, Array]] = []
    for node in model.graph.node:
        if node.op_type == "Constant":
            known[node.output[0]] = as_array(constant_node_value(node))
            continue
        runs = run_node(node, opset, [known[name] if name else None for name in node.input])
        for run in runs:
            results += [(name, array) for name, array in zip(node.output, run.outputs, strict=True) if name in wanted]
        known.update(zip(node.output, runs[0].outputs, strict=True))
    return results


def compare(name: str, actual: Array, expected: Array, case: Any) -> None:
    __tracebackhide__ = True
    assert actual.dtype == expected.dtype, f"{name} is {actual.dtype}, not {expected.dtype}"
    assert actual.shape == expected.shape, f"{name} has shape {actual.shape}, not {expected.shape}"
    if expected.dtype.kind not in "fV":
        np.testing.assert_array_equal(actual, expected, err_msg=name)
        return
    relative = max(case.rtol, HALF_TOLERANCE.get(expected.dtype.name, 0))
    wide = actual.astype(np.float64), expected.astype(np.float64)
    # one rounding of the largest value: published sums that should be zero carry as much
    least = EPSILON * float(np.max(np.abs(wide[1]), initial=0, where=np.isfinite(wide[1])))
    np.testing.assert_allclose(*wide, rtol=relative, atol=max(case.atol, least), equal_nan=True, err_msg=name)


@pytest.mark.parametrize("name", sorted(cases()))
def test_published_case(name: str) -> None:
    case = cases()[name]
    for inputs, outputs in case.data_sets:
        expected = {o.name: v for o, v in zip(case.model.graph.output, outputs, strict=True)}
        try:
            results = compute(case.model, inputs)
        except Unsupported as reason:
            pytest.skip(str(reason))
        except Exception:
            print(onnx.printer.to_text(case.model))
            raise
        assert {name for name, _ in results} == set(expected)
        for output, array in results:
            try:
                compare(output, array, as_array(expected[output]), case)
            except AssertionError:
                print(onnx.printer.to_text(case.model))
                for value in inputs:
                    print(repr(value))
                raise


def test_the_cases_have_definitions() -> None:
    assert len(cases()) >= EXPECTED_CASES


@pytest.mark.exhaustive
def test_coverage() -> None:
    """Lists what the definitions refuse."""
    refused: Counter[tuple[str, str]] = Counter()
    computed = 0
    for case in cases().values():
        try:
            compute(case.model, case.data_sets[0][0])
            computed += 1
        except Unsupported as reason:
            refused[case.model.graph.node[0].op_type, str(reason)] += 1
    for (operator, message), count in sorted(refused.items()):
        print(f"{count:4} {operator}: {message}")
    print(f"{computed} cases computed, {sum(refused.values())} refused")
    assert computed >= EXPECTED_CASES

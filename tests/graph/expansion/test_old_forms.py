"""Models of opsets 1 to 13 in forms that later ones do not have, against what ONNX's changelog says that they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from smartmem_rules.errors import SmartmemError
from smartmem_rules.graph.expansion.old_forms import OLD_ATTRIBUTES
from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.model import Graph, GraphError
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.tensor.interpreter.interpret import evaluate_equations
from smartmem_rules.tensor.primitives import Array


@pytest.fixture(scope="module")
def rules() -> RuleBase:
    return load_rules()


def model_of(
    operator: str,
    opset: int,
    operands: Sequence[Array],
    attributes: dict[str, Any],
    outputs: int = 1,
    constants: Sequence[int] = (),
) -> onnx.ModelProto:
    names = [f"i{place}" for place in range(len(operands))]
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, operands, strict=True)
    ]
    weights = [numpy_helper.from_array(operands[place], names[place]) for place in constants]
    results = [f"o{place}" for place in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(operator, names, results, **attributes)],
        "old",
        inputs,
        [onnx.ValueInfoProto(name=name) for name in results],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)


def compute(graph: Graph, operands: Sequence[Array]) -> list[Array]:
    known = dict(graph.constants) | {f"i{place}": array for place, array in enumerate(operands)}
    for node in graph.nodes:
        known.update(evaluate_equations(node.equations, known))
    return [known[name] for name in graph.outputs]


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power,
    "Greater": np.greater, "Less": np.less, "Equal": np.equal,
    "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor,
}  # fmt: skip
SHAPES: list[tuple[tuple[int, ...], tuple[int, ...], int | None]] = [
    ((2, 3, 4, 5), (), None),
    ((2, 3, 4, 5), (5,), None),
    ((2, 3, 4, 5), (4, 5), None),
    ((2, 3, 4, 5), (3, 4), 1),
    ((2, 3, 4, 5), (2,), 0),
    ((2, 3, 4, 5), (3,), -3),
    ((3, 3, 3), (3,), 1),
    ((2, 3), (1,), None),
    ((2, 3), (2, 3), 0),
    ((0, 3), (0,), 0),
]


def operands_of(operator: str, first: tuple[int, ...], second: tuple[int, ...]) -> list[Array]:
    generator = np.random.default_rng(len(first) * 10 + len(second))
    arrays: list[Array] = []
    for shape in (first, second):
        if operator in ("And", "Or", "Xor"):
            arrays.append(np.asarray(generator.integers(0, 2, shape).astype(bool)))
        elif operator == "Equal":
            arrays.append(np.asarray(generator.integers(0, 2, shape, np.int32)))
        else:
            arrays.append(np.asarray(generator.uniform(0.5, 2, shape).astype(np.float32)))
    return arrays


@pytest.mark.parametrize("operator", BINARY)
def test_second_operand_spans_axes_of_the_first(rules: RuleBase, operator: str) -> None:
    for first, second, axis in SHAPES:
        operands = operands_of(operator, first, second)
        attributes = {"broadcast": 1} if axis is None else {"broadcast": 1, "axis": axis}
        graph = import_model(model_of(operator, 6, operands, attributes), rules)
        at = len(first) - len(second) if axis is None else axis % len(first)
        spread = operands[1].reshape(second + (1,) * (len(first) - at - len(second)))
        (result,) = compute(graph, operands)
        np.testing.assert_allclose(result, BINARY[operator](operands[0], spread), rtol=1e-6, err_msg=f"{first} {axis}")


@pytest.mark.parametrize(
    ("first", "second", "attributes", "message"),
    [
        ((2, 3), (3,), {}, r"shapes \[2, 3\] and \[3\]; before opset 7 they broadcast only with"),
        ((2, 3), (3,), {"broadcast": 1, "axis": 0}, r"shape \[3\] does not fit \[2, 3\] from axis 0 on"),
        ((3,), (2, 3), {"broadcast": 1}, r"shape \[2, 3\] does not fit \[3\]"),
        ((2, 3), (3,), {"broadcast": 1, "axis": 7}, r"does not fit \[2, 3\] from axis 7 on"),
    ],
)
def test_operands_that_do_not_fit(
    rules: RuleBase, first: tuple[int, ...], second: tuple[int, ...], attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(GraphError, match=message):
        import_model(model_of("Add", 6, operands_of("Add", first, second), attributes), rules)


@dataclass(frozen=True)
class Case:
    operator: str
    opset: int
    operands: tuple[Array, ...]
    attributes: dict[str, Any]
    wanted: Callable[..., Any]
    constants: tuple[int, ...] = ()
    outputs: int = 1


def numbers(*shape: int) -> Array:
    return np.asarray(np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32))


def padded(x: Array) -> Array:
    return np.pad(x, ((1, 2), (0, 1)), constant_values=1.5)


def normalized(x: Array, scale: Array, b: Array, mean: Array, var: Array) -> Array:
    at = (slice(None), None, None)
    return np.asarray((x - mean[at]) / np.sqrt(var[at] + 1e-5) * scale[at] + b[at])


def trained(x: Array, scale: Array, b: Array, mean: Array, var: Array) -> list[Array]:
    m, v = x.mean((0, 2, 3)), x.var((0, 2, 3))
    return [normalized(x, scale, b, m, v), 0.9 * mean + 0.1 * m, 0.9 * var + 0.1 * v, m, v]


STATISTICS = (numbers(2, 3, 4, 4), numbers(3), numbers(3), numbers(3), np.abs(numbers(3)))
CASES = [
    Case("Concat", 1, (numbers(2, 3), numbers(2, 1)), {}, lambda a, b: np.concatenate([a, b], 1)),
    Case("Cast", 1, (numbers(2, 3) * 9,), {"to": "INT32"}, lambda x: x.astype(np.int32)),
    Case("Cast", 5, (numbers(2, 3),), {"to": "double"}, lambda x: x.astype(np.float64)),
    Case("Pad", 1, (numbers(3, 4),), {"paddings": [1, 0, 2, 1], "value": 1.5}, padded),
    Case("Pad", 2, (numbers(3, 4),), {"pads": [1, 0, 2, 1], "value": 1.5}, padded),
    Case("Pad", 10, (numbers(3, 4),), {"pads": [1, 0, 2, 1], "value": 1.5}, padded),
    Case("Reshape", 1, (numbers(3, 4),), {"shape": [0, 2, -1], "consumed_inputs": [0]}, lambda x: x.reshape(3, 2, 2)),
    Case("Tile", 1, (numbers(3, 4), np.asarray(2, np.float32), np.asarray(1, np.float32)), {},
         lambda x, *_: np.tile(x, (1, 2)), (1, 2)),
    Case("Upsample", 1, (numbers(1, 2, 2, 3),), {"height_scale": 2.0, "width_scale": 3.0},
         lambda x: x.repeat(2, 2).repeat(3, 3)),
    Case("PRelu", 6, (numbers(2, 3, 4, 4), numbers(3)), {}, lambda x, s: np.where(x < 0, x * s[:, None, None], x)),
    Case("PRelu", 6, (numbers(2, 3, 3), numbers(1)), {}, lambda x, s: np.where(x < 0, x * s, x)),
    Case("Dropout", 6, (numbers(3, 4),), {"is_test": 1, "ratio": 0.3}, lambda x: x),
    Case("Gemm", 6, (numbers(2, 3), numbers(3, 4), numbers(4)), {"broadcast": 1, "alpha": 2.0},
         lambda a, b, c: 2 * a @ b + c),
    Case("BatchNormalization", 6, STATISTICS, {"is_test": 1}, normalized),
    Case("BatchNormalization", 1, STATISTICS, {"consumed_inputs": [0, 0, 0, 1, 1]}, normalized),
    Case("BatchNormalization", 6, STATISTICS, {}, trained, (), 5),
    Case("BatchNormalization", 9, STATISTICS, {}, trained, (), 5),
    Case("GlobalLpPool", 1, (numbers(1, 2, 3, 3),), {"p": 2.0},
         lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True))),
    Case("Clip", 1, (numbers(3, 4),), {"min": -0.5, "consumed_inputs": [0]}, lambda x: x.clip(-0.5)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.operator}-{case.opset}")
def test_form_of_its_opset(rules: RuleBase, case: Case) -> None:
    operands = list(map(np.asarray, case.operands))
    model = model_of(case.operator, case.opset, operands, case.attributes, case.outputs, case.constants)
    wanted = case.wanted(*operands)
    for result, reference in zip(
        compute(import_model(model, rules), operands), wanted if case.outputs > 1 else [wanted], strict=True
    ):
        assert result.dtype == reference.dtype
        np.testing.assert_allclose(result, reference, rtol=1e-5, atol=1e-6)


def test_attributes_that_meant_nothing_are_dropped(rules: RuleBase) -> None:
    in_place = next(change for change in OLD_ATTRIBUTES if change.dropped == ("consumed_inputs",))
    listed = {
        s.name for s in onnx.defs.get_all_schemas_with_history() if not s.domain and "consumed_inputs" in s.attributes
    }
    assert set(in_place.operators) == listed
    for operator in ("Relu", "Exp", "Neg"):
        import_model(model_of(operator, 1, [numbers(2, 3)], {"consumed_inputs": [0]}), rules)


def test_random_dropout_is_refused(rules: RuleBase) -> None:
    with pytest.raises(GraphError, match="it drops elements at random"):
        import_model(model_of("Dropout", 6, [numbers(3)], {}), rules)


def test_the_oldest_models_name_no_operator_set(rules: RuleBase) -> None:
    model = model_of("Concat", 1, [numbers(2, 3), numbers(2, 1)], {})
    del model.opset_import[:]
    model.ir_version = 2
    assert import_model(model, rules).types["o0"].shape == (2, 4)


@pytest.mark.parametrize(
    ("operator", "opset", "inputs"),
    [("Add", 6, ["x", ""]), ("Add", 6, ["x"]), ("PRelu", 6, ["x", ""]), ("Resize", 10, ["x", ""])],
    ids=str,
)
def test_operands_that_are_left_out_are_refused(rules: RuleBase, operator: str, opset: int, inputs: list[str]) -> None:
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (1, 2, 3, 4))
    graph = helper.make_graph([helper.make_node(operator, inputs, ["y"])], "one", [x], [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=4)
    with pytest.raises(SmartmemError):
        import_model(model, rules)

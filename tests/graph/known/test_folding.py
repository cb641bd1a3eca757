"""What is known at import is computed by the same definitions as what is computed on a device."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from smartmem_rules.graph.errors import GraphError
from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.known import folding
from smartmem_rules.limits import LimitError
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.instantiate import Instance
from smartmem_rules.tensor.interpreter.interpret import evaluate_instance
from tests.operators.overloads import rules
from tests.operators.test_node_suite import as_array, cases, compare

pytestmark = pytest.mark.sampled(6)

Array = np.ndarray[Any, np.dtype[Any]]
NODE = helper.make_node


def _draws(operator: str) -> bool:
    """Whether the operator may draw random numbers, which it does anew in each run."""
    return operator.startswith("Random") or operator in ("Bernoulli", "Multinomial", "Dropout")


def of_constants(model: onnx.ModelProto, values: dict[str, Array]) -> onnx.ModelProto:
    """The model with all of its inputs made initializers."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    del changed.graph.input[:]
    changed.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in values.items())
    return changed


def test_published_cases_of_constants(all_cases: bool) -> None:
    """ONNX's node tests with all operands known: nothing is left to compute, and the results are the published ones.

    A sixth of them, all with `--all`.
    """
    folded, wrong = 0, []
    names = sorted(cases()) if all_cases else sorted(cases())[::6]
    for name in names:
        case = cases()[name]
        inputs, outputs = case.data_sets[0]
        try:
            values = {i.name: as_array(v) for i, v in zip(case.model.graph.input, inputs, strict=False) if i.name}
            graph = import_model(of_constants(case.model, values), rules())
            expected = {o.name: as_array(v) for o, v in zip(case.model.graph.output, outputs, strict=True)}
        except (GraphError, Unsupported, TypeError, ValueError):  # strings, sequences, four-bit floats
            continue
        if any(_draws(node.op_type) for node in case.model.graph.node):
            continue
        if any(node.operator in rules().deferred for node in graph.nodes):  # weights of 8 bits, which the plan computes
            continue
        try:
            assert not graph.nodes, "it is not computed at import"
            for output, array in expected.items():
                compare(output, graph.constants[output], array, case)
        except AssertionError as error:
            wrong.append(f"{name}: {str(error).strip().splitlines()[0]}")
        folded += 1
    print(f"{folded} cases folded of {len(names)}")
    assert wrong == []
    assert folded >= (1000 if all_cases else 150)


@pytest.mark.parametrize(
    ("nodes", "x"),
    [
        ([NODE("LpNormalization", ["x"], ["y"], axis=0, p=1)], (6,)),
        ([NODE("LRN", ["x"], ["y"], size=5)], (1, 7, 3, 5)),
        ([NODE("GlobalMaxPool", ["x"], ["y"])], (2, 6, 5)),
        ([NODE("MaxPool", ["x"], ["y"], auto_pad="SAME_LOWER", kernel_shape=[3], strides=[2])], (4, 1, 3)),
        ([NODE("Slice", ["x", "start", "end", "axis", "step"], ["y"])], (3, 4)),
    ],
)
def test_where_the_reference_evaluator_is_wrong(nodes: list[onnx.NodeProto], x: tuple[int, ...]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    array = np.random.default_rng(3).standard_normal(x).astype(np.float32)
    places = {"start": [-(2**62)], "end": [-(2**63)], "axis": [0], "step": [-1]}
    constants = [numpy_helper.from_array(np.asarray(v, np.int64), n) for n, v in places.items()]
    read = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "constant",
        [helper.make_tensor_value_info("x", 1, x)],
        [helper.make_empty_tensor_value_info("y")],
        [constant for constant in constants if constant.name in read],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": array})
    result = import_model(of_constants(model, {"x": array}), rules()).constants["y"]
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=2e-6)


def test_the_reference_evaluator_is_not_imported() -> None:
    program = (
        "import sys, onnx; from onnx import helper, numpy_helper, TensorProto; import numpy as np\n"
        "from smartmem_rules.graph.importer import import_model\n"
        "from smartmem_rules.rulebase.base import load_rules\n"
        "c = numpy_helper.from_array(np.ones(3, np.float32), 'c')\n"
        "g = helper.make_graph([helper.make_node('Exp', ['c'], ['y'])], 'g', [],"
        " [helper.make_tensor_value_info('y', 1, [3])], [c])\n"
        "assert not import_model(helper.make_model(g, ir_version=9), load_rules()).nodes\n"
        "assert not [m for m in sys.modules if m.startswith(('onnx.reference', 'onnxruntime'))]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_halves_are_folded_with_the_numbers_of_single_precision(mode: str) -> None:
    """The weights of the taps are fractions of 2^24: as halves they would be infinite."""
    operands = {"x": np.full((1, 1, 3), 3.379, np.float16), "sizes": np.array([1, 1, 7])}
    nodes = [NODE("Resize", ["x", "", "", "sizes"], ["y"], mode=mode)]
    held = [numpy_helper.from_array(value, name) for name, value in operands.items()]
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT16, [1, 1, 7])
    model = helper.make_model(
        helper.make_graph(nodes, "case", [], [y], held), opset_imports=[helper.make_opsetid("", 18)]
    )
    np.testing.assert_allclose(import_model(model, rules()).constants["y"], operands["x"][0, 0, 0], rtol=1e-3)


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators that are computed from now on."""
    computed: list[str] = []

    def evaluate(instance: Instance, operands: Sequence[Array | None]) -> list[Array]:
        computed.append(instance.operator.name)
        return evaluate_instance(instance, operands)

    monkeypatch.setattr(folding, "evaluate_instance", evaluate)
    return computed


def test_equal_shapes_are_computed_once_and_others_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = _counted(monkeypatch)
    values = {"a": [2, 3], "b": [2, 3], "c": [3, 2]}
    nodes = [NODE("Concat", [name, name], [f"y_{name}"], axis=0) for name in values]
    nodes += [NODE("Concat", ["a", "c"], ["y_mixed"], axis=0), NODE("Sub", ["a", "c"], ["y_less"])]
    held = [numpy_helper.from_array(np.array(value), name) for name, value in values.items()]
    outputs = [helper.make_tensor_value_info(n.output[0], onnx.TensorProto.INT64, None) for n in nodes]
    graph = import_model(helper.make_model(helper.make_graph(nodes, "case", [], outputs, held), ir_version=9), rules())
    made = {name: graph.constants[name].tolist() for name in graph.outputs}
    assert made == {
        "y_a": [2, 3, 2, 3], "y_b": [2, 3, 2, 3], "y_c": [3, 2, 3, 2], "y_mixed": [2, 3, 3, 2], "y_less": [-1, 1]
    }  # fmt: skip
    assert sorted(computed) == ["Concat", "Concat", "Concat", "Sub"]


def test_many_elements_are_computed_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = _counted(monkeypatch)
    held = [numpy_helper.from_array(np.ones(200, np.float32), "a")]
    nodes = [NODE("Exp", ["a"], ["y"]), NODE("Exp", ["a"], ["z"])]
    outputs = [helper.make_tensor_value_info(name, 1, [200]) for name in "yz"]
    import_model(helper.make_model(helper.make_graph(nodes, "case", [], outputs, held), ir_version=9), rules())
    assert computed == ["Exp", "Exp"]


def _of_nodes(nodes: Sequence[onnx.NodeProto], held: dict[str, Array], *outputs: str) -> onnx.ModelProto:
    made = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs]
    constants = [numpy_helper.from_array(value, name) for name, value in held.items()]
    return helper.make_model(
        helper.make_graph(nodes, "case", [], made, constants),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,
    )


def _doublings(count: int) -> list[onnx.NodeProto]:
    return [NODE("Concat", [f"t{k}", f"t{k}"], [f"t{k + 1}"], axis=0) for k in range(count)]


ONE = np.ones(1, np.float32)


def test_more_than_the_limit_is_refused_before_it_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []

    def evaluate(instance: Instance, operands: Sequence[Array | None]) -> list[Array]:
        results = evaluate_instance(instance, operands)
        computed.append(sum(result.nbytes for result in results))
        return results

    monkeypatch.setattr(folding, "evaluate_instance", evaluate)
    with pytest.raises(LimitError, match="folded_bytes"):
        import_model(_of_nodes(_doublings(40), {"t0": ONE}, "t40"), rules())
    assert 0 < sum(computed) < 2 * folding.LATER_FROM


def test_large_results_are_computed_where_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = _counted(monkeypatch)
    nodes = [
        *_doublings(19),
        NODE("Neg", ["t19"], ["unread"]),
        NODE("ReduceSum", ["t19"], ["sum"], keepdims=0),
        NODE("Cast", ["sum"], ["count"], to=onnx.TensorProto.INT64),
        NODE("Reshape", ["count", "one"], ["shape"]),
        NODE("Reshape", ["t19", "shape"], ["z"]),
        NODE("Mul", ["z", "sum"], ["y"]),
    ]
    graph = import_model(_of_nodes(nodes, {"t0": ONE, "one": np.array([1])}, "y", "sum"), rules())
    np.testing.assert_array_equal(graph.constants["y"], np.full(1 << 19, 1 << 19, np.float32))
    assert graph.constants["sum"] == 1 << 19
    assert not graph.nodes
    assert sorted(computed) == sorted(["Concat"] * 19 + ["ReduceSum", "Cast", "Reshape", "Reshape", "Mul"])


def test_long_chains_of_results_that_wait() -> None:
    nodes = [*_doublings(19), NODE("ReduceSum", ["t19"], ["n0"], keepdims=0)]
    nodes += [NODE("Neg", [f"n{k}"], [f"n{k + 1}"]) for k in range(sys.getrecursionlimit() + 1)]
    last = nodes[-1].output[0]
    assert abs(import_model(_of_nodes(nodes, {"t0": ONE}, last), rules()).constants[last]) == 1 << 19


def test_indices_that_there_are_not_are_found_in_large_constants_too() -> None:
    indices = np.zeros(1 << 18, np.int64)
    indices[-1] = 9
    nodes = [NODE("Gather", ["x", "indices"], ["y"], name="far"), NODE("Neg", ["y"], ["z"])]
    with pytest.raises(GraphError, match=r"the Gather 'far' cannot be computed: index 9 .* outside"):
        import_model(_of_nodes(nodes, {"x": np.ones(4, np.float32), "indices": indices}, "z"), rules())

"""What a simplified model keeps: names of open dimensions, and weights that a model holds in few bits."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

from smartmem_rules import simplify


def test_names_of_open_dimensions_stay() -> None:
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("Transpose", ["a"], ["b"], perm=[1, 0, 2]),
        helper.make_node("Transpose", ["b"], ["c"], perm=[1, 0, 2]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    shape = ["batch", "rows", 4]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy")
    model = helper.make_model(
        helper.make_graph(nodes, "open", [x], [y]), opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    )
    made = simplify(model)
    checker.check_model(made)
    for value in (made.graph.input[0], made.graph.output[0]):
        dims = value.type.tensor_type.shape.dim
        assert [dim.dim_param or dim.dim_value for dim in dims] == shape


def test_weights_of_few_bits_stay() -> None:
    random = np.random.default_rng(3)
    packed = random.integers(0, 256, (8, 1, 16)).astype(np.uint8)
    scales = random.uniform(0.1, 1, 8).astype(np.float32)
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node(
            "MatMulNBits", ["a", "w", "s"], ["b"], domain="com.microsoft", K=32, N=8, bits=4, block_size=32
        ),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [2, 32]), ("y", [2, 8])))
    constants = [numpy_helper.from_array(packed, "w"), numpy_helper.from_array(scales, "s")]
    model = helper.make_model(
        helper.make_graph(nodes, "packed", [x], [y], constants),
        opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)],
        ir_version=10,
    )
    made = simplify(model)
    assert [node.op_type for node in made.graph.node] == ["MatMulNBits", "Relu"]
    weights = {one.name: numpy_helper.to_array(one) for one in made.graph.initializer}
    kept = next(node for node in made.graph.node if node.op_type == "MatMulNBits")
    assert np.array_equal(weights[kept.input[1]], packed)
    assert {one.name: helper.get_attribute_value(one) for one in kept.attribute}["bits"] == 4

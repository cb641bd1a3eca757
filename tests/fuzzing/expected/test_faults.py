"""Nodes without a reference: each condition holds of the node that showed it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules.fuzzing.expected.faults import evaluator_fault_of
from smartmem_rules.fuzzing.expected.node_runner import NoReference
from smartmem_rules.fuzzing.expected.outputs import Reference
from tests.fuzzing.expected.judged import is_wrong, model_of


def test_windows_of_padding_have_no_place() -> None:
    nodes = [helper.make_node("MaxPool", ["x"], ["v", "y"], kernel_shape=[2], dilations=[3], pads=[1, 1])]
    model = model_of(nodes, (1, 1, 2), TensorProto.FLOAT)
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    with pytest.raises(NoReference, match="largest element of nothing"):
        Reference(model, {"x": np.ones((1, 1, 2), np.float32)})


def test_attributes_that_the_evaluator_does_not_look_at() -> None:
    nodes = [helper.make_node("LSTM", ["x", "w", "r"], ["y"], input_forget=1)]
    model = model_of(nodes, (3, 1, 2))
    constants = {"w": np.linspace(-1, 1, 16).reshape(1, 8, 2), "r": np.linspace(1, -2, 16).reshape(1, 8, 2)}
    model.graph.initializer.extend(numpy_helper.from_array(v.astype(np.float32), n) for n, v in constants.items())
    x = np.linspace(-1, 2, 6).reshape(3, 1, 2).astype(np.float32)
    coupled = Reference(model, {"x": x}).native_outputs()["y"]
    model.graph.node[0].ClearField("attribute")
    assert np.abs(Reference(model, {"x": x}).native_outputs()["y"] - coupled).max() > 0.01


def test_a_variance_that_overflows_has_no_reference() -> None:
    """ONNX's function gives NaN, its evaluator the bias, and ONNX Runtime what the row's length decides."""
    nodes = [helper.make_node("LayerNormalization", ["x", "one"], ["y"])]
    model = model_of(nodes, (1, 3))
    model.graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "one"))
    with pytest.raises(NoReference, match="variance"):
        Reference(model, {"x": np.array([[-1, 0.5, -3e38]], np.float32)})


def test_a_difference_from_the_mean_that_overflows_has_no_reference() -> None:
    model = model_of([helper.make_node("BatchNormalization", ["x", "one", "one", "mean", "one"], ["y"])], (1, 1, 2))
    one, mean = np.ones(1, np.float32), np.array([-3e38], np.float32)
    model.graph.initializer.extend([numpy_helper.from_array(one, "one"), numpy_helper.from_array(mean, "mean")])
    assert Reference(model, {"x": np.array([[[-1, 2]]], np.float32)})
    with pytest.raises(NoReference, match="x - mean overflows"):
        Reference(model, {"x": np.array([[[1, 3e38]]], np.float32)})


def test_padding_of_the_evaluator_is_no_data() -> None:
    """It marks padding by NaN, and leaves out NaN of the data; ONNX Runtime has no such pool of doubles."""
    model = model_of([helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2])], (1, 1, 4), TensorProto.DOUBLE)
    with pytest.raises(NoReference, match="NaN"):
        Reference(model, {"x": np.array([[[1, np.nan, 3, 4]]])})


def test_an_infinity_in_a_fourier_transform_has_no_reference() -> None:
    model = model_of([helper.make_node("DFT", ["x"], ["y"], axis=1, onesided=1)], (1, 3, 1))
    x = np.array([1, 2, np.inf], np.float32).reshape(1, 3, 1)
    with pytest.raises(NoReference, match="a fast transform"):
        Reference(model, {"x": x})


def test_regions_of_no_batch_have_no_reference() -> None:
    nodes = [helper.make_node("RoiAlign", ["x", "regions", "batches"], ["y"], sampling_ratio=1)]
    model = model_of(nodes, (2, 1, 3, 3))
    regions, batches = np.array([[0, 0, 2, 2]], np.float32), np.array([-1])
    model.graph.initializer.extend(
        [numpy_helper.from_array(regions, "regions"), numpy_helper.from_array(batches, "batches")]
    )
    with pytest.raises(NoReference, match="batches outside"):
        Reference(model, {"x": np.ones((2, 1, 3, 3), np.float32)})


def test_gaps_of_a_window_are_not_read() -> None:
    """ONNX's evaluator multiplies them by 0; ONNX Runtime has no such Conv of doubles."""
    model = model_of([helper.make_node("Conv", ["x", "w"], ["y"], dilations=[2])], (1, 1, 3), TensorProto.DOUBLE)
    model.graph.initializer.append(numpy_helper.from_array(np.ones((1, 1, 2)), "w"))
    assert not is_wrong(model, np.array([[[1, 2, 3.0]]]), np.array([[[4.0]]]))
    with pytest.raises(NoReference, match="gaps"):
        Reference(model, {"x": np.array([[[1, np.inf, 3.0]]])})


def test_distances_whose_squares_overflow_have_no_reference() -> None:
    """Drawn 2000003595: ONNX Runtime's inf - inf is NaN, where the definition gives inf."""
    model = model_of([helper.make_node("CDist", ["x", "x"], ["y"], domain="com.microsoft")], (2, 1))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(NoReference, match="overflow apart"):
        Reference(model, {"x": np.array([[-3e38], [1]], np.float32)})


def test_a_list_of_no_axes_has_no_reference() -> None:
    """Drawn 2000001213: ONNX's shape inference and evaluator remove no axis, ONNX Runtime all of one element."""
    model = model_of([helper.make_node("Squeeze", ["x", "axes"], ["y"])], (2, 1, 4))
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(0, np.int64), "axes"))
    with pytest.raises(NoReference, match="empty list"):
        Reference(model, {"x": np.zeros((2, 1, 4), np.float32)})


def test_integer_products_of_no_factors_have_no_reference() -> None:
    """Dynamic 2025000058: the numbers that ONNX Runtime finds in memory that it does not write."""
    model = model_of([helper.make_node("MatMulInteger", ["x", "b"], ["y"])], (3, 0), TensorProto.UINT8)
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((0, 4), np.int8), "b"))
    with pytest.raises(NoReference, match="no products"):
        Reference(model, {"x": np.zeros((3, 0), np.uint8)})


def test_singular_matrices_have_no_reference() -> None:
    """Textured 2105000110: the inverse of a matrix of equal elements."""
    model = model_of([helper.make_node("Inverse", ["x"], ["y"], domain="com.microsoft")], (2, 2))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(NoReference, match="singular"):
        Reference(model, {"x": np.full((2, 2), 0.3, np.float32)})
    Reference(model, {"x": np.array([[1, 2], [3, 4]], np.float32)})


def test_rows_near_each_other_have_no_reference() -> None:
    """Drawn 2200006662: the distance of a row from itself is 0, ONNX Runtime's 3e-4."""
    model = model_of([helper.make_node("CDist", ["x", "x"], ["y"], domain="com.microsoft")], (1, 8))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(NoReference, match="near rows"):
        Reference(model, {"x": np.ones((1, 8), np.float32)})


def test_windows_of_padding_alone_have_no_mean() -> None:
    """Drawn 2200005765: ONNX's evaluator, which computes doubles, gives NaN; ONNX Runtime gives floats 0."""
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2], pads=[1, 2])
    with pytest.raises(NoReference, match="padding alone"):
        Reference(model_of([node], (1, 1, 1), TensorProto.DOUBLE), {"x": np.ones((1, 1, 1))})


def test_unique_elements_in_order_of_occurrence() -> None:
    """ONNX's evaluator sorts them if nothing but the elements is asked for; ONNX Runtime has no kernel of int32."""
    model = model_of([helper.make_node("Unique", ["x"], ["y"], sorted=0)], (4,), TensorProto.INT32)
    with pytest.raises(NoReference, match="sorts where"):
        Reference(model, {"x": np.array([-5, 6, 8, -1], np.int32)})


def test_integer_products_beyond_doubles() -> None:
    model = model_of([helper.make_node("Gemm", ["x", "x"], ["y"], alpha=3.0)], (2, 2), TensorProto.INT64)
    assert np.array_equal(Reference(model, {"x": np.full((2, 2), 5)}).native_outputs()["y"], np.full((2, 2), 150))
    with pytest.raises(NoReference, match="in floating point"):
        Reference(model, {"x": np.full((2, 2), 2**40)})


@pytest.mark.parametrize("alpha", [1.0, 3.0])
def test_scaled_integer_products_beyond_their_type(alpha: float) -> None:
    """2 (2^16 + 1)^2 wraps in a sum; three times the sum may be a double that no int32 holds."""
    model = model_of([helper.make_node("Gemm", ["x", "x"], ["y"], alpha=alpha)], (2, 2), TensorProto.INT32)
    x = np.full((2, 2), 2**16 + 1, np.int32)
    if alpha == 1:
        assert np.array_equal(Reference(model, {"x": x}).native_outputs()["y"], np.full((2, 2), 2**18 + 2))
    else:
        with pytest.raises(NoReference, match="in floating point"):
            Reference(model, {"x": x})


@pytest.mark.parametrize("operator", ["Min", "Max"])
def test_the_smaller_of_zeros_has_either_sign(operator: str) -> None:
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node(operator, ["x", "n"], ["m"])]
    model = model_of([*nodes, helper.make_node("Div", ["one", "m"], ["y"])], (2,), TensorProto.FLOAT)
    model.graph.initializer.append(numpy_helper.from_array(np.ones(1, np.float32), "one"))
    x, sign = np.array([0, 2], np.float32), -1 if operator == "Min" else 1
    for infinity in (np.inf, -np.inf):
        assert not is_wrong(model, x, np.array([infinity, sign / 2], np.float32))
    assert is_wrong(model, x, np.array([np.inf, -sign / 2], np.float32))


def test_squares_that_overflow_have_no_reference() -> None:
    """ONNX Runtime gives 0 for a row of one such number alone, and 1 for the same row among others."""
    model = model_of([helper.make_node("RMSNormalization", ["x", "one"], ["y"])], (2, 1))
    model.opset_import[0].version = 23
    model.graph.initializer.append(numpy_helper.from_array(np.ones(1, np.float32), "one"))
    assert Reference(model, {"x": np.array([[-1], [1e18]], np.float32)})
    with pytest.raises(NoReference, match="squares overflow"):
        Reference(model, {"x": np.array([[-1], [3e38]], np.float32)})


def test_weights_with_wide_gaps_leave_the_memory_alone() -> None:
    """ONNX's evaluator would make 220 GB of these 1.6 MB; machines that promise more than they have run out of it."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], dilations=[528, 508])]
    model = model_of(nodes, (1, 50, 529, 509))
    weights = np.ones((2048, 50, 2, 2), np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    x = np.zeros((1, 50, 529, 509), np.float32)
    x[..., 0, 0] = x[..., -1, -1] = 3
    reference = Reference(model, {"x": x})
    fault = evaluator_fault_of(nodes[0], [x, weights])
    assert fault is not None
    assert "gaps" in fault.reason
    assert evaluator_fault_of(nodes[0], [x, weights[:2, :1]]) is None
    assert reference.precise_ways == [False]
    assert np.array_equal(reference.native_outputs()["y"], np.full((1, 2048, 1, 1), 300))


def test_a_region_of_an_axis_that_keeps_its_extent_has_no_reference() -> None:
    attributes = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}
    model = model_of([helper.make_node("Resize", ["x", "roi", "", "sizes"], ["y"], **attributes)], (3, 4))
    region = np.array([0, 0.25, 1, 0.75], np.float32)
    model.graph.initializer.extend(
        [numpy_helper.from_array(region, "roi"), numpy_helper.from_array(np.array([3, 4]), "sizes")]
    )
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    with pytest.raises(NoReference, match="whatever part of it the region is"):
        Reference(model, {"x": x})
    model.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.array([3, 5]), "sizes"))
    assert Reference(model, {"x": x})


def test_bytes_of_narrow_floats_are_not_taken_for_their_numbers() -> None:
    """ONNX Runtime's Python gives the bytes of one of these types, and refuses the others."""
    nodes = [
        helper.make_node("Cast", ["x"], ["q"], to=TensorProto.FLOAT8E4M3FN),
        helper.make_node("Cast", ["q"], ["y"], to=TensorProto.FLOAT),
    ]
    model = model_of(nodes, (2,))
    model.opset_import[0].version = 19
    x = np.array([1, -2], np.float32)
    try:
        reference = Reference(model, {"x": x}).native_outputs()["y"]
    except NoReference:
        return
    assert np.array_equal(reference, x)

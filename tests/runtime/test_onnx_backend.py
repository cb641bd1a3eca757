"""The backend that onnx.backend.test can drive, on some of its node tests (`bench/backend_suite.py` runs all)."""

from __future__ import annotations

import unittest

import numpy as np
import onnx
import pytest
from onnx import helper

pytest.importorskip("pyopencl")

from bench import backend_suite
from smartmem_rules import onnx_backend
from tests.operators.test_node_suite import published

CASES = (
    "test_add_bcast", "test_attention_4d_causal", "test_basic_deform_conv_with_padding", "test_bitshift_right_uint8",
    "test_cast_FLOAT_to_INT4", "test_cast_FLOAT_to_FLOAT8E4M3FN", "test_einsum_batch_matmul", "test_gru_seq_length",
    "test_gridsample_bicubic", "test_if", "test_linear_attention_gated_delta", "test_lstm_bidirectional",
    "test_qlinearmatmul_2D_uint8_float32", "test_range_float_type_positive_delta", "test_reshape_one_dim",
    "test_resize_upsample_scales_cubic", "test_rnn_seq_length", "test_rotary_embedding", "test_scan9_sum",
    "test_top_k", "test_center_crop_pad_pad_expanded", "test_tensorscatter_circular", "test_softmax_axis_0",
)  # fmt: skip


def test_some_node_tests_pass(all_cases: bool) -> None:
    outcomes = [backend_suite.run_case(published()[name]) for name in (CASES if all_cases else CASES[::2])]
    assert [o for o in outcomes if o.verdict != backend_suite.PASSED] == []


MODELS = (
    "test_Conv2d_groups", "test_PReLU_2d_multiparam", "test_Softmax", "test_ConstantPad2d", "test_GLU_dim",
    "test_operator_addmm", "test_operator_add_broadcast", "test_operator_add_size1_broadcast", "test_operator_repeat",
    "test_operator_basic", "test_sequence_model1", "test_sequence_model8", "test_expand_shape_model1",
    "test_gradient_of_add",
)  # fmt: skip


def test_some_models_of_old_and_new_opsets_pass(all_cases: bool) -> None:
    cases = backend_suite.cases_of("models")
    outcomes = {name: backend_suite.run_case(cases[name]).verdict for name in (MODELS if all_cases else MODELS[1::2])}
    assert outcomes.pop("test_gradient_of_add") == backend_suite.UNSUPPORTED
    assert set(outcomes.values()) == {backend_suite.PASSED}, outcomes


@pytest.mark.exhaustive
def test_all_models_of_old_and_new_opsets() -> None:
    outcomes = list(backend_suite.run_cases(list(backend_suite.cases_of("models").values()), "CPU", "smartmem"))
    bad = [o for o in outcomes if o.verdict in (backend_suite.WRONG, backend_suite.FAILED)]
    assert bad == []
    assert sum(o.verdict == backend_suite.PASSED for o in outcomes) >= 140


def test_unsupported_operators_say_so_and_are_skipped() -> None:
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("ImageDecoder", ["x"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", 2, [3])],
            [helper.make_tensor_value_info("y", 2, [1, 1, 3])],
        ),
        opset_imports=[helper.make_opsetid("", 20)],
        ir_version=8,
    )
    assert not onnx_backend.is_compatible(model)
    with pytest.raises(unittest.SkipTest, match=r"(?s)unsupported: .*ImageDecoder"):
        onnx_backend.prepare(model)


def test_nodes_run_alone() -> None:
    node = helper.make_node("Add", ["a", "b"], ["c"])
    (result,) = onnx_backend.run_node(node, [np.ones((2, 3), np.float32), np.ones(3, np.float32)])
    np.testing.assert_array_equal(result, np.full((2, 3), 2, np.float32))


def test_compile_time_inputs_get_a_plan_for_each_value() -> None:
    case = published()["test_reshape_one_dim"]
    prepared = onnx_backend.prepare(case.model)
    assert prepared.fixed == ("shape",)
    data = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for shape in ([24], [24]):
        assert prepared.run([data, np.array(shape)]).reshaped.shape == tuple(shape)
    assert len(prepared.plans) == 1
    assert isinstance(prepared, onnx.backend.base.BackendRep)
    assert onnx_backend.supports_device("CPU")

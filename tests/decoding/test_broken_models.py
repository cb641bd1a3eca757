"""Language models that cannot be generated with: one message each, and the generator goes on where it can."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from smartmem_rules.decoding.choosing import Sampling
from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.decoding.generator import Generator
from smartmem_rules.errors import SmartmemError
from smartmem_rules.tensor.primitives import Array
from tests.decoding.conftest import BLOCK, BOUND
from tests.decoding.models import model_of

TABLE = 90
"""Rows of a table of tokens that is shorter than the logits."""


def copied(name: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.CopyFrom(model_of(name))
    return model


def change(model: onnx.ModelProto, name: str, made: Callable[[Array], Array]) -> None:
    (tensor,) = (tensor for tensor in model.graph.initializer if tensor.name == name)
    tensor.CopyFrom(numpy_helper.from_array(made(numpy_helper.to_array(tensor)), name))


def attention(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [node for node in model.graph.node if node.op_type == "GroupQueryAttention"]


def with_attribute(name: str, value: float) -> onnx.ModelProto:
    model = copied("grouped_tiny")
    for node in attention(model):
        kept = [one for one in node.attribute if one.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(name, value)])
    return model


def with_constant(place: int, value: int) -> onnx.ModelProto:
    """A number in the place of an operand that the model computes of the mask."""
    model = copied("grouped_tiny")
    model.graph.initializer.append(numpy_helper.from_array(np.array(value, np.int32), "number"))
    for node in attention(model):
        node.input[place] = "number"
    return model


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (with_attribute("scale", float("nan")), r"GroupQueryAttention requires is_number\(scale\), and scale is nan"),
        (with_attribute("scale", float("inf")), r"GroupQueryAttention requires is_number\(scale\), and scale is inf"),
        (
            with_attribute("softcap", float("nan")),
            r"GroupQueryAttention requires is_number\(softcap\), and softcap is nan",
        ),
        (with_attribute("num_heads", 0), r"GroupQueryAttention requires num_heads > 0, and num_heads is 0"),
        (with_attribute("num_heads", -4), r"GroupQueryAttention requires num_heads > 0, and num_heads is -4"),
        (with_attribute("kv_num_heads", 0), r"GroupQueryAttention requires kv_num_heads > 0, and kv_num_heads is 0"),
        (with_attribute("kv_num_heads", 3), r"GroupQueryAttention requires .*HK is 3"),
        (with_constant(6, 1), r"present\.0\.key' is \[1, 2, past, 16\], and has to be \[1, 2, \(past \+ 1\), 16\]"),
    ],
)
def test_caches_and_heads_that_cannot_be_are_refused_before_anything_runs(broken: onnx.ModelProto, said: str) -> None:
    with pytest.raises(SmartmemError, match=said):
        Generator(broken, bound=BOUND, block=BLOCK)


@pytest.mark.parametrize(
    ("kind", "said"), [(1, "holds float32, and generation feeds int64"), (-(2**31), "not one of ONNX")]
)
def test_masks_of_other_types_are_refused(kind: int, said: str) -> None:
    model = copied("llama_tiny")
    (mask,) = (value for value in model.graph.input if value.name == "attention_mask")
    mask.type.tensor_type.elem_type = kind
    with pytest.raises(SmartmemError, match=said):
        Generator(model, bound=BOUND, block=BLOCK)


def test_counts_that_are_not_those_of_the_tokens_are_refused() -> None:
    generator = Generator(with_constant(5, 0), bound=BOUND, block=BLOCK)
    with pytest.raises(GenerateError, match=r"behind \[0\] tokens of the sequences, which have \[3\]"):
        generator.generate([5, 7, 11], 4)
    assert len(generator.generate([5], 1)[0]) == 1


def test_a_token_without_a_row_in_the_table_is_refused_where_the_model_chooses_it() -> None:
    model = copied("llama_tiny")
    change(model, "embed.weight", lambda table: table[:TABLE])
    (node,) = (node for node in model.graph.node if "logits" in node.output)
    node.output[0] = "all"
    preferred = np.zeros(96, np.float32)
    preferred[95] = 1e4
    model.graph.initializer.append(numpy_helper.from_array(preferred, "preferred"))
    model.graph.node.append(helper.make_node("Add", ["all", "preferred"], ["logits"]))
    generator = Generator(model, bound=BOUND, block=BLOCK)
    with pytest.raises(GenerateError, match="the token 90 at place 0, and the model has 90"):
        generator.generate([TABLE], 2)
    with pytest.raises(GenerateError, match="the model chose the token 95, and its table has 90"):
        generator.generate([5, 7], 2)
    assert generator.generate([5, 7], 1) == [[95]]


def test_logits_that_are_no_numbers_are_refused() -> None:
    model = copied("llama_tiny")
    change(model, "final_norm.weight", lambda weight: weight * np.float32(np.nan))
    generator = Generator(model, bound=BOUND, block=BLOCK)
    for sampling in (Sampling(temperature=1.0), Sampling(temperature=1.0, top_k=4)):
        with pytest.raises(GenerateError, match=r"nothing can be drawn \(the greatest is nan\)"):
            generator.generate([5, 7, 11], 2, sampling)

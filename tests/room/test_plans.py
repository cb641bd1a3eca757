"""Plans beyond the memory of a device are refused, and what is advised then fits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import smartmem_rules as sm
from smartmem_rules.planned import planned
from smartmem_rules.resources import rules_path
from smartmem_rules.room.needs import Needs, TooLargeError, needs_of
from smartmem_rules.stages import Clock
from tests.room.devices import device_file


def perceptron(width: int = 288, layers: int = 2) -> onnx.ModelProto:
    """Products with a Relu behind each, for `batch` rows; columns that fill whole panels."""
    nodes, weights, x = [], [], "x"
    random = np.random.default_rng(0)
    for layer in range(layers):
        weights.append(numpy_helper.from_array(random.random((width, width), np.float32), f"w{layer}"))
        nodes.append(helper.make_node("MatMul", [x, f"w{layer}"], [f"p{layer}"]))
        nodes.append(helper.make_node("Relu", [f"p{layer}"], [x := f"r{layer}"]))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", width])]
    outputs = [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["batch", width])]
    graph = helper.make_graph(nodes, "perceptron", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def needs(model: onnx.ModelProto, **dims: int | tuple[int, int]) -> Needs:
    return needs_of(planned(model, Clock(None), dims=dims)[0])


def refused(model: onnx.ModelProto, rules: Path, **dims: int | tuple[int, int]) -> str:
    with pytest.raises(TooLargeError) as error:
        sm.optimize(model, rules=[rules], dims=dims)
    return str(error.value)


def test_a_smaller_batch_is_advised_which_fits_and_is_about_the_largest(tmp_path: Path) -> None:
    model = perceptron()
    memory = needs(model, batch=100).total
    rules = device_file(tmp_path, memory=memory)
    said = refused(model, rules, batch=400)
    found = re.search(r"--dim batch=(\d+): ", said)
    assert found, said
    batch = int(found[1])
    assert needs(model, batch=batch).total <= memory < needs(model, batch=batch + 10).total
    sm.optimize(model, rules=[rules], dims={"batch": batch})


def test_a_shorter_range_is_advised_which_fits(tmp_path: Path) -> None:
    model = perceptron()
    rules = device_file(tmp_path, memory=needs(model, batch=(1, 100)).total)
    found = re.search(r"--dim batch=1\.\.(\d+): ", said := refused(model, rules, batch=(1, 400)))
    assert found, said
    assert 80 <= int(found[1]) <= 100
    sm.optimize(model, rules=[rules], dims={"batch": (1, int(found[1]))})


@pytest.mark.parametrize("bits", [8, 4])
def test_weights_of_fewer_bits_are_advised_which_fit(bits: int, tmp_path: Path) -> None:
    model = perceptron()
    small = sm.quantize(model, weights=f"int{bits}")
    rules = device_file(tmp_path, memory=needs(small, batch=1).total * 102 // 100)
    said = refused(model, rules, batch=1)
    assert re.findall(r"weights of (\d) bits", said) == ([str(bits)] if bits == 4 else ["8", "4"])
    sm.optimize(small, rules=[rules], dims={"batch": 1})


def test_a_piece_that_is_too_large_is_named(tmp_path: Path) -> None:
    said = refused(perceptron(), device_file(tmp_path, allocation=300_000), batch=1)
    assert re.search(r"needs a piece of 3\d\d\.\d KiB", said)
    assert "allocates at most 293.0 KiB at once" in said


def test_where_nothing_fits_the_least_is_said(tmp_path: Path) -> None:
    said = refused(perceptron(), device_file(tmp_path, memory=2000), batch=4)
    assert re.search(r"nothing of this fits: the least is [\d.]+ KiB, with weights of 4 bits", said), said
    assert "has 2.0 KiB" in said


@pytest.mark.parametrize("dims", [{"batch": 400}, {"batch": (1, 400)}])
def test_bits_and_extents_together_are_advised_where_neither_suffices(dims: dict[str, Any], tmp_path: Path) -> None:
    model = perceptron()
    small = sm.quantize(model, weights="int4")
    rules = device_file(tmp_path, memory=needs(small, batch=100).total)
    found = re.search(r"fit: weights of 4 bits .*? and --dim batch=([\d.]+): ", said := refused(model, rules, **dims))
    assert found, said
    *low, high = map(int, found[1].split(".."))
    assert 50 <= high <= 100
    sm.optimize(small, rules=[rules], dims={"batch": (low[0], high) if low else high})


def test_a_plan_that_fits_exactly_is_made(tmp_path: Path) -> None:
    model = perceptron()
    memory = needs(model, batch=3).total
    sm.optimize(model, rules=[device_file(tmp_path, memory=memory)], dims={"batch": 3})
    assert "the plan of" in refused(model, device_file(tmp_path, memory=memory - 1), batch=3)


def test_devices_that_unpack_weights_when_the_plan_is_made_are_not_advised_fewer_bits(tmp_path: Path) -> None:
    text = (rules_path() / "devices" / "gpu.smr").read_text("utf-8")
    name = re.search(r"device (\w+) \{", text)
    assert name
    path = tmp_path / "small_gpu.smr"
    path.write_text(text.replace(name[0], "device small_gpu {\n    global_memory 1000;", 1), "utf-8")
    with pytest.raises(TooLargeError) as error:
        sm.optimize(perceptron(), rules=[path], dims={"batch": 2}, device="small_gpu")
    assert "bits" not in str(error.value)
    assert "--dim batch=1" in str(error.value)

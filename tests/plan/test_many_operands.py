"""Launches of many tensors: no kernel has more parameters than compilers take well, and what comes out is the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from bench.growth_shapes import wide
from smartmem_rules import optimize
from smartmem_rules.pipeline import Request, make_plan
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.stages import Unmeasured
from tests.plan.programs import rules

TOGETHER, JOINED = 512, 128
"""`operands` of `fuse side_by_side` and `one_after_another`, and `most_operands` of the levels."""
POINTER = 8
"""Bytes of a parameter."""


def value(name: str, *shape: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model(node: onnx.NodeProto, given: list[onnx.ValueInfoProto], made: list[onnx.ValueInfoProto]) -> onnx.ModelProto:
    graph = helper.make_graph([node], "many", given, made)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def concat(widths: list[int], axis: int = 1) -> onnx.ModelProto:
    names = [f"x{number}" for number in range(len(widths))]
    shapes = [(4, width) if axis == 1 else (width, 4) for width in widths]
    whole = (4, sum(widths)) if axis == 1 else (sum(widths), 4)
    given = [value(name, *shape) for name, shape in zip(names, shapes, strict=True)]
    return model(helper.make_node("Concat", names, ["y"], axis=axis), given, [value("y", *whole)])


def split(count: int) -> onnx.ModelProto:
    names = [f"y{number}" for number in range(count)]
    node = helper.make_node("Split", ["x"], names, axis=1, num_outputs=count)
    return model(node, [value("x", 2, 2 * count)], [value(name, 2, 2) for name in names])


def planned(source: onnx.ModelProto, level: str = "smartmem", device: str = "pocl") -> Plan:
    return make_plan(Request(source, (), device, level, "float32", "auto", (), {}), Unmeasured())[0]


def chained(layers: int) -> onnx.ModelProto:
    """Products one after the other, each with weights and a bias of its own."""
    nodes, constants = [], []
    for n in range(layers):
        nodes.append(helper.make_node("MatMul", [f"t{n}", f"w{n}"], [f"p{n}"]))
        nodes.append(helper.make_node("Add", [f"p{n}", f"b{n}"], [f"a{n}"]))
        nodes.append(helper.make_node("Relu", [f"a{n}"], [f"t{n + 1}"]))
        constants.append(numpy_helper.from_array(np.full((16, 16), n, np.float32) / 65536, f"w{n}"))
        constants.append(numpy_helper.from_array(np.full(16, n, np.float32), f"b{n}"))
    graph = helper.make_graph(nodes, "many", [value("t0", 8, 16)], [value(f"t{layers}", 8, 16)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("source", [concat([2] * 700), split(700)], ids=["concat", "split"])
def test_no_launch_takes_more_parameters_than_the_rules_say(source: onnx.ModelProto) -> None:
    taken = [len(enqueue.source.arguments) for enqueue in planned(source).enqueues]
    # beside the tensors a launch may have the counters of its tasks and scratch memory
    assert max(taken) <= TOGETHER + 2
    assert len(taken) <= 2 * -(-sum(taken) // TOGETHER)


@pytest.mark.parametrize("level", ["none", "smartmem"])
def test_no_kernel_joins_more_parts_than_the_level_says(level: str) -> None:
    kernels = [kernel for launch in planned(concat([3] * 300), level).launches for kernel in launch.kernels]
    assert [len(kernel.reads) for kernel in kernels] == [JOINED, JOINED, 300 - 2 * JOINED]


def test_few_parts_are_joined_by_one_kernel() -> None:
    (launch,) = planned(concat([3] * JOINED)).launches
    assert len(launch.kernels) == 1


@pytest.mark.parametrize("axis", [0, 1])
def test_parts_of_many_extents_are_joined_by_several_kernels(axis: int) -> None:
    random = np.random.default_rng(axis)
    source = concat([int(n) for n in random.integers(0, 5, 290)], axis)
    feeds = {
        given.name: random.standard_normal([d.dim_value for d in given.type.tensor_type.shape.dim]).astype(np.float32)
        for given in source.graph.input
    }
    assert np.array_equal(optimize(source).run(feeds)["y"], np.concatenate(list(feeds.values()), axis))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("device", ["pocl", "nvidia", "adreno_740", "gpu"])
@pytest.mark.parametrize("source", [wide(1200), split(600), chained(300)], ids=["siblings", "split", "chain"])
def test_no_launch_takes_more_parameters_than_the_device_does(source: onnx.ModelProto, device: str) -> None:
    most = rules().devices[device].compute.parameters
    taken = [len(enqueue.source.arguments) for enqueue in planned(source, device=device).enqueues]
    assert max(taken) <= most + 2
    assert sum(taken) > most, "the device's limit does not matter to this model"


def test_the_parameters_of_a_phone_are_those_that_opencl_guarantees() -> None:
    taken = [len(enqueue.source.arguments) for enqueue in planned(wide(600), device="adreno_740").enqueues]
    assert max(taken) * POINTER <= 1024


def test_products_that_are_apart_give_what_they_gave() -> None:
    source = wide(450)
    x = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
    (one,) = optimize(source, device="pocl").run({"x": x}).values()
    (other,) = optimize(source, device="adreno_740").run({"x": x}).values()
    assert np.allclose(one, other, rtol=1e-4, atol=1e-4)

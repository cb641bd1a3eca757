"""What the C runtime computes is what Python's executor computes, to the byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from smartmem_rules import load, optimize
from smartmem_rules.api import OptimizedPlan
from smartmem_rules.graph.run_number import RUN_NUMBER
from smartmem_rules.resources import models_path
from smartmem_rules.runtime.plan_file import save_plan
from tests.emit.kernel_cases import CASES
from tests.emit.test_byte_unit import product as byte_product
from tests.plan.models import model, normal, whole
from tests.plan.open_models import attention, perceptron
from tests.plan.quantised import Weights, n_bits
from tests.runtime.c.library import CError, open_plan
from tests.runtime.plans import make_plan
from tests.with_all import with_all


def same(plan: OptimizedPlan, path: Path, *runs: Mapping[str, Any]) -> None:
    """Run a plan from its file in C and compare with Python, for each of the inputs."""
    plan.save(path)
    with open_plan(path) as opened, opened.session() as session:
        assert opened.names("inputs") == plan.plan.inputs
        for feeds in runs:
            expected = plan.run(feeds)
            found = session.run(feeds)
            assert list(found) == list(expected)
            for name, array in expected.items():
                assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype), name
                assert found[name].tobytes() == array.tobytes(), name


@pytest.mark.sampled(14)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.holds_ptx])
def test_templates(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    save_plan(case.plan(), tmp_path / "a.plan")
    plan = load(tmp_path / "a.plan")
    same(plan, tmp_path / "b.plan", case.feeds, plan.random_feeds(7))


@pytest.mark.parametrize(("memory", "storage"), [("buffer", "float32"), ("image", "float16")])
def test_buffers_and_images(tmp_path: Path, memory: str, storage: str) -> None:
    save_plan(make_plan(memory, storage), tmp_path / "a.plan")
    plan = load(tmp_path / "a.plan")
    same(plan, tmp_path / "b.plan", plan.random_feeds(1), plan.random_feeds(2))


def test_work_groups_beyond_the_device_are_refused(tmp_path: Path) -> None:
    plan = make_plan()
    groups = [replace(one, source=replace(one.source, local_size=(1 << 30, 10))) for one in plan.enqueues]
    save_plan(replace(plan, enqueues=groups), tmp_path / "a.plan")
    with pytest.raises(CError, match="has work-groups of"), open_plan(tmp_path / "a.plan"):
        pass


def test_plans_that_test_themselves(tmp_path: Path) -> None:
    plan = optimize(CASES["panel"].proto, probes=True)
    assert plan.plan.probes
    same(plan, tmp_path / "a.plan", plan.random_feeds(1))


def test_ordered_launches(tmp_path: Path) -> None:
    plan = optimize(CASES["ordered"].proto)
    assert [launch.form for launch in plan.kernels] == ["ordered"]
    same(plan, tmp_path / "a.plan", *(plan.random_feeds(seed) for seed in range(with_all(5, 2))))


def test_products_of_bytes_by_the_processor_s_matrix_unit(tmp_path: Path) -> None:
    proto, left, _ = byte_product((33, 132, 48), 7)
    same(optimize(proto), tmp_path / "a.plan", {"a": left})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("made", [perceptron, attention])
def test_ranges_of_dimensions(tmp_path: Path, made: Any) -> None:
    proto = made()
    names = [d.dim_param for d in proto.graph.input[0].type.tensor_type.shape.dim if d.dim_param]
    plan = optimize(proto, dims={name: (1, 9) for name in names})
    extents = [1, 7, 9, 7, 2]
    same(plan, tmp_path / "a.plan", *(plan.random_feeds(n, {name: n for name in names}) for n in extents))
    with open_plan(tmp_path / "a.plan") as opened, opened.session() as session:
        feeds = plan.random_feeds(0)
        name, array = next(iter(feeds.items()))
        wrong = np.concatenate([array, array], axis=0)
        with pytest.raises(CError, match="the plan is made for 1 to 9") as caught:
            session.run({**feeds, name: wrong})
        assert caught.value.status == 4


def test_axes_that_may_be_empty_and_the_least_of_two_extents(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[n, 3] x) => (y, z) {
        s = Shape <end = 1> (x) four = Constant <value_ints = [4]> () k = Min(s, four) y, at = TopK <axis = 0> (x, k)
        flat = Constant <value_ints = [-1]> () z = Reshape(y, flat) }"""
    plan = optimize(onnx.parser.parse_model(text), dims={"n": (0, 9)})
    same(plan, tmp_path / "a.plan", *(plan.random_feeds(n, {"n": n}) for n in (3, 0, 9, 4, 1)))


def test_plans_that_count_extents_are_refused(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[7] x) => (y) {
        i = NonZero(x) y = ReduceSum <keepdims = 0> (i) }"""
    optimize(onnx.parser.parse_model(text)).save(tmp_path / "a.plan")
    with pytest.raises(CError, match=r"count the extent NonZero_0\.1 while they run"), open_plan(tmp_path / "a.plan"):
        pass


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["llama_tiny", "pythia_tiny"])
def test_language_models_with_a_cache(tmp_path: Path, name: str, dtype: str) -> None:
    batch, new, past = "batch_size", "sequence_length", "past_sequence_length"
    seen = f"{past} + {new}"
    ranges = {batch: (1, 2), new: (1, 8), past: (1, 32), seen: (2, 40)}
    plan = optimize(models_path() / "cached" / f"{name}.onnx", dims=ranges, dtype=dtype)
    runs = [(1, 1, 5), (2, 8, 1), (1, 1, 32)]
    extents = [{batch: b, new: n, past: p, seen: n + p} for b, n, p in runs]
    same(plan, tmp_path / "a.plan", *(plan.random_feeds(seed, dims) for seed, dims in enumerate(extents)))


def test_outputs_whose_size_depends_on_data(tmp_path: Path) -> None:
    x = np.array([[1, 0, 2], [0, 0, 3]], np.float32)
    proto = model([("NonZero", "x", "y")], {"x": x}, "y")
    plan = optimize(proto)
    assert plan.plan.sizes
    same(plan, tmp_path / "a.plan", {"x": x}, {"x": np.zeros_like(x)}, {"x": np.ones_like(x)})


def test_types_of_elements(tmp_path: Path) -> None:
    feeds = {
        "x": normal(4, 5), "h": normal(4, 5, dtype="float16"), "i": whole(4, 5, dtype="int64"),
        "b": whole(4, 5, low=0, high=1).astype(bool), "d": normal(4, 5).astype(np.float64),
        "u": whole(4, 5, dtype="int8"),
    }  # fmt: skip
    nodes: Any = [
        ("Cast", "h", "hf", {"to": onnx.TensorProto.FLOAT}),
        ("Add", "x hf", "s"),
        ("Where", "b s x", "y"),
        ("Add", "i i", "j"),
        ("Not", "b", "n"),
        ("Neg", "d", "e"),
        ("Neg", "u", "v"),
        ("Cast", "x", "g", {"to": onnx.TensorProto.FLOAT16}),
    ]
    plan = optimize(model(nodes, feeds, "y j n e v g"))
    same(plan, tmp_path / "a.plan", feeds)


def test_weights_of_few_bits_in_words(tmp_path: Path) -> None:
    plan = optimize(n_bits(Weights.drawn(300, 77, 32, 0, 15), 3, 4, zeros=True))
    same(plan, tmp_path / "a.plan", {"x": normal(3, 300)})


NARROW = {
    "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn, "FLOAT8E5M2": ml_dtypes.float8_e5m2, "INT4": ml_dtypes.int4,
    "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "UINT4": ml_dtypes.uint4, "FLOAT4E2M1": ml_dtypes.float4_e2m1fn, "BFLOAT16": ml_dtypes.bfloat16,
}  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", NARROW)
def test_types_of_few_bits(tmp_path: Path, name: str) -> None:
    code = getattr(onnx.TensorProto, name)
    values = np.array([0, 1, 2, 3, -1, -2, 0.5, 1.5, 6, 7, -4, 100, 1e9, np.inf, -0.0], np.float32)
    if "INT" in name:
        values = np.arange(0 if name.startswith("U") else -8, 8, dtype=np.float32)
    narrow = values.astype(NARROW[name])
    nodes = [
        onnx.helper.make_node("Cast", ["a"], ["wide"], to=onnx.TensorProto.FLOAT),
        onnx.helper.make_node("Cast", ["x"], ["y"], to=code),
    ]
    info = onnx.helper.make_tensor_value_info
    shape = [len(values)]
    graph = onnx.helper.make_graph(
        nodes, "narrow", [info("a", code, shape), info("x", onnx.TensorProto.FLOAT, shape)],
        [info("wide", onnx.TensorProto.FLOAT, shape), info("y", code, shape)],
    )  # fmt: skip
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 24)], ir_version=11)
    plan = optimize(made)
    same(plan, tmp_path / "a.plan", {"a": narrow, "x": values})


def test_random_numbers(tmp_path: Path) -> None:
    proto = model([("RandomUniformLike", "x", "r"), ("Add", "x r", "y")], {"x": normal(6, 10)}, "y")
    plan = optimize(proto)
    x = normal(6, 10)
    same(plan, tmp_path / "a.plan", {"x": x, RUN_NUMBER: np.int64(7)})
    with open_plan(tmp_path / "a.plan") as opened, opened.session() as session:
        first, second = session.run({"x": x})["y"], session.run({"x": x})["y"]
    for number, found in enumerate((first, second)):
        expected = plan.run({"x": x, RUN_NUMBER: np.int64(number)})["y"]
        assert found.tobytes() == expected.tobytes()

"""Plans for ranges of extents: one plan, compared with ONNX Runtime at many extents."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import smartmem_rules as sm
from smartmem_rules.graph.model import GraphError
from smartmem_rules.pipeline import Request, make_plan, make_planning
from smartmem_rules.plan.kernel.launch import Ordered
from smartmem_rules.plan.kernel.model import PlanError
from smartmem_rules.stages import Unmeasured
from smartmem_rules.tensor.extents import is_symbolic
from tests.plan.open_models import CASES, Case, attention, cache, open_model, weights

pytestmark = pytest.mark.sampled(36)

UNROLLED = re.compile(r"#pragma unroll\s+(?:#endif\s+)?for \([^)]*\bdim_\w+")
"""A loop over an open extent that the compiler is told to unroll: PoCL prints a warning for each."""

TOLERANCES = {"float32": 1e-5, "float16": 5e-3}


def check(model: onnx.ModelProto, plan: sm.OptimizedPlan, extents: list[dict[str, int]]) -> None:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    for at in extents:
        feeds = plan.random_feeds(1, at)
        expected = dict(zip(names, session.run(None, feeds), strict=True))
        actual = plan.run(feeds)
        for name, wanted in expected.items():
            got = actual[name]
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype), (name, at)
            scale = float(np.abs(wanted).max())
            assert np.abs(got.astype(np.float64) - wanted).max() <= TOLERANCES[plan.plan.dtype] * scale, (name, at)


MODES: list[dict[str, Any]] = [
    {"level": "none"},
    {"level": "layout"},
    {"memory": "image"},
    {"device": "adreno_740"},
    {"device": "nvidia", "dtype": "float16"},
]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_one_plan_for_all_extents(case: Case) -> None:
    model = case.make()
    plan = sm.optimize(model, dims=case.dims)
    check(model, plan, case.extents)
    assert not any(UNROLLED.search(enqueue.source.text) for enqueue in plan.plan.enqueues)


def test_no_compiler_is_told_to_unroll_a_loop_over_an_open_extent() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Softmax", ["a"], ["y"], axis=-1)]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, "n"]) for name in ("x", "y")]
    model = helper.make_model(
        helper.make_graph(nodes, "rows", values[:1], values[1:]), opset_imports=[helper.make_opsetid("", 17)]
    )

    def texts(dims: dict[str, int | tuple[int, int]]) -> list[str]:
        plan, _ = make_plan(Request(model, (), "pocl", "smartmem", "float32", "auto", (), dims), Unmeasured())
        return [enqueue.source.text for enqueue in plan.enqueues]

    assert not any(UNROLLED.search(text) for text in texts({"n": (1, 32)}))
    assert any("#pragma unroll\n" in text.rpartition("__kernel")[2] for text in texts({"n": 32}))


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: "-".join(mode.values()))
@pytest.mark.parametrize("name", ["attention", "cache", "images", "recurrent"])
def test_other_levels_memories_and_devices(name: str, mode: dict[str, Any]) -> None:
    case = CASES[name]
    model = case.make()
    check(model, sm.optimize(model, dims=case.dims, **mode), case.extents[:5])


def test_every_extent_of_a_range() -> None:
    """Also those at which vectors and blocks fill up exactly, and back to smaller ones."""
    model = attention()
    plan = sm.optimize(model, dims={"batch": 1, "sequence": (1, 26)})
    check(model, plan, [{"sequence": n} for n in (*range(1, 27), 20, 3)])


def test_a_range_has_as_many_kernels_as_one_extent() -> None:
    for case in (CASES["attention"], CASES["cache"], CASES["reductions"]):
        largest = {name: extent if isinstance(extent, int) else extent[1] for name, extent in case.dims.items()}
        fixed = sm.optimize(case.make(), dims=largest)
        ranged = sm.optimize(case.make(), dims=case.dims)
        # launches that wait for each other are joined where their sizes are known
        steps = [len(launch.steps) if isinstance(launch, Ordered) else 1 for launch in fixed.kernels]
        assert len(ranged.kernels) == sum(steps), case


def test_kernels_take_the_extents_that_they_need() -> None:
    plan = sm.optimize(cache(), dims={"past": (1, 45)}).plan
    for source in plan.sources:
        assert source.dimensions == (("past",) if re.search(r"\bdim_past\b", source.text) else ())
    assert any(source.dimensions for source in plan.sources)
    assert any(is_symbolic(extent) for source in plan.sources for extent in source.global_size)


def test_a_range_of_one_extent_is_that_extent() -> None:
    fixed = sm.optimize(attention(), dims={"batch": 2, "sequence": 13}).plan
    ranged = sm.optimize(attention(), dims={"batch": 2, "sequence": (13, 13)}).plan
    assert (ranged.sources, ranged.dimensions) == (fixed.sources, ())


def test_a_plan_survives_its_file(tmp_path: Any) -> None:
    model = attention()
    plan = sm.optimize(model, dims={"batch": (1, 3), "sequence": (1, 20)})
    plan.save(tmp_path / "a.plan")
    loaded = sm.load(tmp_path / "a.plan")
    assert loaded.dimensions == plan.dimensions == {"batch": (1, 3), "sequence": (1, 20)}
    assert (loaded.plan.sources, loaded.plan.tensors.keys()) == (plan.plan.sources, plan.plan.tensors.keys())
    check(model, loaded, [{"batch": 1, "sequence": 1}, {"batch": 2, "sequence": 7}, {"batch": 3, "sequence": 20}])


def test_a_check_tries_several_extents() -> None:
    plan = sm.optimize(attention(), dims={"batch": (1, 3), "sequence": (1, 20)})
    check_ = plan.check()
    assert check_.passed
    tried = {(one["batch"], one["sequence"]) for one in check_.extents}
    assert len(tried) == 5
    assert {1, 3} <= {batch for batch, _ in tried}
    assert {1, 20} <= {sequence for _, sequence in tried}
    assert plan.report_data()["dimensions"] == {"batch": (1, 3), "sequence": (1, 20)}
    assert plan.check(dims={"batch": 2, "sequence": 4}).extents[0]["sequence"] == 4


def test_feeds_outside_the_range() -> None:
    plan = sm.optimize(attention(), dims={"batch": (1, 3), "sequence": (2, 20)})
    with pytest.raises(GraphError, match=r"'sequence' of the input 'x' is 21; the plan is made for 2 to 20"):
        plan.run({"x": np.zeros((1, 21, 24), np.float32)})
    with pytest.raises(GraphError, match=r"takes \[batch, sequence, 24\]"):
        plan.run({"x": np.zeros((1, 4, 25), np.float32)})
    with pytest.raises(GraphError, match=r"'sequence' cannot be 1; the plan is made for sequence in 2\.\.20"):
        plan.random_feeds(dims={"sequence": 1})
    with pytest.raises(GraphError, match="no open dimension 'sequenc'"):
        plan.random_feeds(dims={"sequenc": 4})


def test_inputs_that_disagree() -> None:
    plan = sm.optimize(cache(), dims={"past": (1, 45)})
    feeds = plan.random_feeds(dims={"past": 4})
    feeds["past_v"] = feeds["past_v"][:, :, :3]
    with pytest.raises(GraphError, match="'past' is 4 in 'past_k' and 3 in 'past_v'"):
        plan.run(feeds)


REFUSED = {
    "a reshape to a number": (
        [("Reshape", "x shape", "y")],
        {"shape": np.array([12, 8])},
        "ai.onnx::Reshape .*96 == .n . 8.",
    ),
    "operands that fit at one extent": ([("Add", "x c", "y")], {"c": weights(1, 5, 8)}, "ai.onnx::Add .*broadcast"),
    "a table shorter than the range": (
        [("Shape", "x", "s"), ("Slice", "s zeros ones", "n"), ("Slice", "c zeros n", "t"), ("Add", "x t", "y")],
        {"zeros": np.array([0]), "ones": np.array([1]), "c": weights(1, 9, 8)},
        r"ai.onnx::Add .*\[n, 8\] and \[min\(n, 9\), 8\] do not broadcast",
    ),
    "parts that may be empty": ([("Split", "x", "y z", {"axis": 0})], {}, "ai.onnx::Split .*can be 0"),
}


@pytest.mark.parametrize(("nodes", "constants", "message"), REFUSED.values(), ids=REFUSED)
def test_what_needs_a_number_is_named(nodes: Any, constants: dict[str, Any], message: str) -> None:
    model = open_model(nodes, {"x": ["n", 8]}, "y", constants)
    with pytest.raises(GraphError, match=message):
        sm.optimize(model, dims={"n": (1, 20)})


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"batch": (3, 2), "sequence": 1}, "cannot be"),
        ({"batch": 0, "sequence": 1}, "cannot be 0"),
        ({"batch": (1, 2, 3), "sequence": 1}, "the ends of a range"),
        ({"batch": "1..2", "sequence": 1}, "the ends of a range"),
        ({"batch": True, "sequence": 1}, "the ends of a range"),
        ({"batch": 1, "sequenc": (1, 2)}, "sequence"),
    ],
)
def test_ranges_that_make_no_sense(dims: Any, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        sm.optimize(attention(), dims=dims)


def test_tuning_takes_one_extent() -> None:
    request = Request(attention(), (), "pocl", "smartmem", "float32", "auto", (), {"batch": 2, "sequence": (1, 9)})
    with pytest.raises(PlanError, match="tuning measures kernels at one extent"):
        make_planning(request)


@pytest.mark.parametrize("mode", [{"device": "nvidia"}, {"device": "adreno_740"}], ids=lambda mode: mode["device"])
def test_contractions_of_gpus_take_tiles_in_local_memory_for_ranges_too(mode: dict[str, Any], all_cases: bool) -> None:
    model = attention()
    plan = sm.optimize(model, dims={"batch": 1, "sequence": (1, 70)}, **mode)
    kernels = [kernel for launch in plan.plan.launches for kernel in launch.kernels]
    templates = [kernel.template for kernel in kernels if kernel.contraction is not None]
    assert templates
    assert set(templates) == {"group"}
    assert any(is_symbolic(source.global_size[0]) for source in plan.plan.sources)
    assert all(not is_symbolic(size) for source in plan.plan.sources for size in source.local_size or ())
    # fewer than a tile, whole tiles, and one row more
    check(model, plan, [{"sequence": n} for n in ((1, 5, 16, 32, 33, 64, 65, 70) if all_cases else (5, 32, 33))])


def test_a_row_that_a_tensor_chooses_in_front_of_a_normalization() -> None:
    nodes = [("MatMul", "x w", "a"), ("GatherND", "a ids", "row", {"batch_dims": 1}), ("Softmax", "row", "y")]
    model = open_model(nodes, {"x": [1, "n", 8], "ids": [1, 1]}, "y", {"w": weights(1, 8, 6)})
    plan = sm.optimize(model, dims={"n": (1, 9)})
    session = onnxruntime.InferenceSession(model.SerializeToString())
    feeds = plan.random_feeds(1, {"n": 5})
    for place in (0, 4):
        feeds["ids"] = np.array([[place]])
        assert plan.run(feeds)["y"] == pytest.approx(session.run(None, feeds)[0], abs=1e-5)


def test_sizes_are_weighed_where_either_side_of_an_image_may_be_longer() -> None:
    """The mean over an image has a loop for each side, and work-groups are sized for the longer one at its greatest."""
    case = CASES["images"]
    request = Request(case.make(), (), "adreno_740", "smartmem", "float32", "auto", (), case.dims)
    plan, _ = make_plan(request, Unmeasured())
    assert {dimension.name for dimension in plan.dimensions} == {"height", "width"}


def test_rows_of_open_length_between_the_kernels_of_a_chain() -> None:
    """They lie in device memory: scratch memory has a size when a kernel is compiled."""
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 18]>
        chained (float[3,3,n] x, float[1,3,n] e) => (float[3,3,n] y) <int64[1] axis = {2}> {
            total = ReduceSum<keepdims: int = 1>(x, axis)
            d = Mul(x, total)
            p = Mul(d, e)
            s = Softsign(p)
            less = Less(p, s)
            w = Where(less, p, s)
            g = Sigmoid(w)
            h = Mul(w, g)
            k = Tanh(h)
            q = Mul(h, k)
            most = ReduceMax<keepdims: int = 1>(q, axis)
            y = Sub(q, most)
        }""")
    plan = sm.optimize(model, dims={"n": (2, 9)})
    assert [launch.form for launch in plan.plan.launches] == ["chain"]
    check(model, plan, [{"n": 2}, {"n": 5}, {"n": 9}])


@pytest.mark.parametrize("equation", ["bnd->ndb", "bnd,bnd->b", "bnd,bmd->bnm", "bnd->"])
def test_einsum_of_ranges_from_one_on(equation: str) -> None:
    """An axis of extent 1 is repeated only beside a longer one of its label, which one symbol cannot be."""
    operands = ["x"] * (1 + equation.count(","))
    node = onnx.helper.make_node("Einsum", operands, ["y"], equation=equation)
    given = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["b", "n", 6])
    made = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    model = onnx.helper.make_model(
        onnx.helper.make_graph([node], "sums", [given], [made]),
        opset_imports=[onnx.helper.make_opsetid("", 18)],
        ir_version=8,
    )
    plan = sm.optimize(model, dims={"b": (1, 4), "n": (1, 40)})
    for b, n in ((1, 1), (4, 1), (1, 40), (3, 7)):
        x = np.random.default_rng(b * n).standard_normal((b, n, 6)).astype(np.float32)
        wide = [x.astype(np.float64)] * len(operands)
        np.testing.assert_allclose(plan.run({"x": x})["y"], np.einsum(equation, *wide), rtol=1e-4, atol=1e-4)

"""The choice of layouts: proved best against every other one, inside the limits, with copies where they pay."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from onnx.reference import ReferenceEvaluator

from smartmem_rules.graph.importer import import_model
from smartmem_rules.plan import build
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.launch import Single
from smartmem_rules.plan.kernel.model import Store, Stored, row_major
from smartmem_rules.plan.layout.accesses import writable_lane
from smartmem_rules.plan.layout.candidates import LayoutSpace
from smartmem_rules.plan.layout.copies import copy_kernel
from smartmem_rules.plan.layout.model import LayoutProblem
from smartmem_rules.plan.layout.pbqp import Pbqp
from smartmem_rules.plan.means import PlanOptions
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Read, TensorType
from smartmem_rules.tensor.index import variable as index_of
from tests.plan.building import build as emitted
from tests.plan.models import Array, Model, Node, i64, model, normal
from tests.plan.random_graphs import models
from tests.plan.running import Mode, plan_of, prepare
from tests.with_all import with_all

BASE = load_rules()
MOST = 20_000
"""Choices up to which all of them are looked at."""


def problem_of(proto: onnx.ModelProto, device: str, monkeypatch: pytest.MonkeyPatch, **changed: Any) -> LayoutProblem:
    """The problem that planning a model for a device poses; the weights of the layout block may be others."""
    found: list[LayoutProblem] = []

    def kept(space: LayoutSpace, copies: bool) -> LayoutProblem:
        found.append(LayoutProblem(space, copies))
        return found[-1]

    base = replace(BASE, layouts={name: replace(one, **changed) for name, one in BASE.layouts.items()})
    monkeypatch.setattr("smartmem_rules.plan.layout.choose.LayoutProblem", kept)
    profile = base.devices[device]
    build.prepare(import_model(proto, base, {}), base, profile, PlanOptions(level="smartmem", memory="preferred"))
    monkeypatch.undo()
    return found[0]


# --- the solver ---


@settings(max_examples=with_all(80, 40), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_choice_is_the_best_one(seed: int) -> None:
    """Against all choices, for random costs of states and pairs, some of which cannot be, whatever is tied."""
    random = np.random.default_rng(seed)
    sizes = {(f"t{i}", ""): int(random.integers(1, 5)) for i in range(6)}
    problem = Pbqp(float(random.integers(9)))
    for variable, size in sizes.items():
        problem.add(variable, random.integers(0, 20, size).astype(float))
    density = random.random()
    for first, second in itertools.combinations(sizes, 2):
        if random.random() < density:
            table = random.integers(0, 20, (sizes[first], sizes[second])).astype(float)
            table[1:, 1:][random.random((sizes[first] - 1, sizes[second] - 1)) < 0.3] = np.inf
            problem.add_pair(*((first, second, table) if random.random() < 0.5 else (second, first, table.T)))
    start = dict.fromkeys(sizes, 0)
    found = problem.solve(problem.improved(start, 2), 10.0)
    choices = itertools.product(*map(range, sizes.values()))
    best = min(problem.cost(dict(zip(sizes, chosen, strict=True))) for chosen in choices)
    assert found.optimal
    assert found.cost == pytest.approx(best)
    assert found.bound <= found.cost <= problem.cost(problem.improved(start, 2)) <= problem.cost(start)
    assert problem.cost(found.chosen) == pytest.approx(found.cost)
    for variable, costs in problem.marginals(found.chosen).items():
        assert costs.min() == pytest.approx(costs[found.chosen[variable]])


def test_without_time_the_bound_is_below_the_choice() -> None:
    random = np.random.default_rng(3)
    problem = Pbqp()
    variables = [(f"t{i}", "") for i in range(40)]
    for variable in variables:
        problem.add(variable, random.random(6))
    for first, second in itertools.combinations(variables, 2):
        problem.add_pair(first, second, random.random((6, 6)))
    start = dict.fromkeys(variables, 0)
    found = problem.solve(start, 0.05)
    assert not found.optimal
    assert 0 <= found.bound < found.cost <= problem.cost(start)


# --- models ---


@pytest.mark.parametrize("device", ["pocl", "adreno_740"])
@pytest.mark.parametrize("seed", range(4))
def test_small_graphs_against_all_choices(device: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks up to five, images and buffers, second layouts: no choice of states is cheaper than the one found."""
    random = np.random.default_rng(seed)
    a, b, c = (int(n) for n in random.choice([3, 4, 6, 8], 3))
    nodes: list[Node] = [
        ("Relu", "x", "r"),
        ("Transpose", "r", "t", {"perm": [0, 2, 4, 1, 3]}),
        ("MatMul", "t w", "p"),
        ("ReduceMean", "r one", "m", {"keepdims": 1}),
        ("Add", "r m", "y"),
        ("Softmax", "p", "z", {"axis": 1}),
    ]
    shape = (2, a, 2, b, c)
    constants = {"w": normal(b, 4), "one": i64(1)}
    problem = problem_of(model(nodes, {"x": normal(*shape)}, "y z", constants), device, monkeypatch)
    free = {node: len(states) for node, states in problem.states.items() if len(states) > 1}
    assert math.prod(free.values()) <= MOST * 50
    start = dict.fromkeys(problem.states, 0)
    numbers = list(itertools.product(*map(range, free.values())))
    if len(numbers) > MOST:
        numbers = [numbers[i] for i in random.choice(len(numbers), MOST, replace=False)]
    best = min(problem.pairs.cost({**start, **dict(zip(free, chosen, strict=True))}) for chosen in numbers)
    found = problem.pairs.solve(start, 10.0)
    assert found.optimal
    assert found.cost <= best + 1e-6
    if len(numbers) == math.prod(free.values()):
        assert found.cost == pytest.approx(best)


@settings(max_examples=with_all(25, 10), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(made=models(), limits=st.tuples(st.integers(4, 300), st.integers(4, 300)))
def test_images_keep_the_limits_and_can_be_written(made: Model, limits: tuple[int, int]) -> None:
    graph = import_model(made.proto, BASE, {})
    profile = BASE.devices["adreno_740"]
    profile = replace(profile, memory=replace(profile.memory, image2d=limits))
    planning = build.prepare(graph, BASE, profile, PlanOptions(level="smartmem", memory="image"))
    for name, stored in planning.tensors.items():
        layout = stored.layout
        assert sorted(a for a in layout.order if a >= 0) == list(range(len(stored.type.shape)))
        if layout.memory == "image":
            width, height = layout.image_size(stored.type.shape)
            assert width <= limits[0], name
            assert height <= limits[1], name
    for kernel in (kernel for launch in planning.launches for kernel in launch.kernels):
        for store in kernel.stores:
            lane = planning.tensors[store.tensor].layout.lane_axis
            assert lane is None or writable_lane(kernel, store, lane)


def test_a_depthwise_convolution_and_its_neighbours_agree() -> None:
    """All have channels in their lanes: with columns in those of one, a texel would serve a single element."""
    nodes: list[Node] = [
        ("Conv", "x e", "p"),
        ("Relu", "p", "a"),
        ("Conv", "a d", "q", {"group": 24, "pads": [1, 1, 1, 1]}),
        ("Relu", "q", "b"),
        ("Conv", "b f", "y"),
    ]
    constants = {"e": normal(24, 8, 1, 1), "d": normal(24, 1, 3, 3), "f": normal(8, 24, 1, 1)}
    proto = model(nodes, {"x": normal(1, 8, 14, 14)}, "y", constants)
    plan = plan_of(proto, Mode("layout", "image", device="adreno_740"))
    found = [t for t in plan.tensors.values() if t.role == "intermediate"]
    assert len(found) == 2
    assert {t.layout.lane_axis for t in found} == {1}


BOTH: list[Node] = [
    ("MatMul", "x w", "p"),
    ("Relu", "p", "a"),
    ("MatMul", "a v", "y"),
    ("ReduceMax", "a one", "m", {"keepdims": 0}),
    ("Sigmoid", "m", "z"),
    ("Transpose", "a", "t", {"perm": [0, 2, 1]}),
    ("MatMul", "t u", "q"),
]


def both() -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A tensor that one reader reduces along its columns and the others along its rows."""
    feeds = {"x": normal(2, 24, 16)}
    constants = {"w": normal(16, 20), "v": normal(20, 12), "u": normal(24, 8), "one": i64(1)}
    return model(BOTH, feeds, "y z q", constants), feeds


def planned(
    proto: onnx.ModelProto,
    device: str,
    memory: str,
    copy_gain: float,
    scattered_write: float,
    dear: float,
    level: str = "layout",
) -> Plan:
    """A plan with weights that make second layouts pay."""
    base = load_rules()
    changed: dict[str, float] = {
        "copy_gain": copy_gain, "scattered_write": scattered_write, "scattered_read": dear, "strided_read": dear
    }  # fmt: skip
    base = replace(base, layouts={name: replace(one, **changed) for name, one in base.layouts.items()})  # type: ignore[arg-type]
    profile = base.devices[device]
    profile = replace(profile, compute=replace(profile.compute, launch_us=0.0, shuffle="", half=""))
    return emitted(import_model(proto, base, {}), base, profile, level, "float32", memory)


@pytest.mark.parametrize(
    ("device", "memory", "gain", "apart"),
    [("pocl", "buffer", 1e9, False), ("nvidia", "buffer", 1e9, False), ("adreno_740", "buffer", 1e-9, True)],
)
def test_second_layouts(device: str, memory: str, gain: float, apart: bool) -> None:
    """The kernel that computes a tensor writes both, or one of its own; each reader takes one; results are right."""
    plan = planned(both()[0], device, memory, gain, 0.01, 50.0)
    found = plan.statistics.planning.layouts
    assert found is not None
    copies = [name for name in plan.tensors if name.endswith("@copy")]
    assert len(copies) == found.copies > 0
    assert (found.copy_kernels > 0) == apart
    assert sum(k.moves_only for k in plan.launches) == found.copy_kernels
    for name in copies:
        first = name.removesuffix("@copy")
        assert plan.tensors[name].layout != plan.tensors[first].layout
        (writer,) = [k for k in plan.launches if name in k.writes]
        assert (first in writer.writes) != writer.moves_only
        readers = [k for k in plan.launches if name in k.reads]
        assert readers
        assert not any(first in k.reads for k in readers)
    proto, feeds = both()
    got = Executor(plan, choose()).run(feeds)
    for name, wanted in zip(("y", "z", "q"), ReferenceEvaluator(proto).run(None, feeds), strict=True):
        np.testing.assert_allclose(got[name], wanted, atol=2e-4, err_msg=name)


@pytest.mark.covering
@pytest.mark.parametrize("level", ["layout", "smartmem"])
@pytest.mark.parametrize("device", ["adreno_740", "pocl", "nvidia"])
def test_what_a_recurrence_still_computes_is_not_copied(device: str, level: str) -> None:
    """A layer reads its own state, and in waves that of the layer below: no copy of either is complete in time."""
    nodes: list[Node] = [
        ("LSTM", "x w r", "p", {"hidden_size": 8}),
        ("Squeeze", "p one", "a"),
        ("LSTM", "a v s", "q", {"hidden_size": 8}),
        ("Squeeze", "q one", "b"),
        ("Transpose", "b", "t", {"perm": [2, 1, 0]}),
        ("MatMul", "t u", "y"),
        ("Softmax", "b", "z"),
    ]
    constants = {"w": normal(1, 32, 12), "r": normal(1, 32, 8), "v": normal(1, 32, 8), "s": normal(1, 32, 8)}
    feeds = {"x": normal(6, 3, 12)}
    proto = model(nodes, feeds, "y z", {**constants, "u": normal(6, 5), "one": i64(1)})
    plan = planned(proto, device, "auto", 1e-9, 0.01, 50.0, level)
    got = Executor(plan, choose()).run(feeds)
    for name, wanted in zip(("y", "z"), ReferenceEvaluator(proto).run(None, feeds), strict=True):
        np.testing.assert_allclose(got[name], wanted, atol=1e-4, err_msg=name)


def test_constants_are_laid_out_for_each_reader() -> None:
    """One constant, added along its rows here and along its columns there: each kernel has its own, at no cost."""
    nodes: list[Node] = [
        ("Add", "x c", "a"),
        ("Softmax", "a", "y"),
        ("Transpose", "c", "d", {"perm": [1, 0]}),
        ("Add", "z d", "b"),
        ("ReduceMean", "b one", "w", {"keepdims": 0}),
    ]
    feeds = {"x": normal(9, 12, 20), "z": normal(3, 20, 12)}
    proto = model(nodes, feeds, "y w", {"c": normal(12, 20), "one": i64(1)})
    for mode in (Mode(), Mode(device="adreno_740", memory="image"), Mode("layout", device="adreno_740")):
        plan, executor = prepare(proto, mode)
        got = executor.run(feeds)
        for name, wanted in zip(("y", "w"), ReferenceEvaluator(proto).run(None, feeds), strict=True):
            np.testing.assert_allclose(got[name], wanted, atol=1e-5, err_msg=f"{mode} {name}")
        assert plan.statistics.planning.layouts is not None
        assert plan.statistics.planning.layouts.status == "optimal"


@pytest.mark.parametrize("layout", ["exact", "local"])
@pytest.mark.parametrize("device", ["pocl", "adreno_740"])
def test_the_report_bounds_every_choice(layout: str, device: str) -> None:
    nodes: list[Node] = [
        ("MatMul", "x w", "p"),
        ("Transpose", "p", "q", {"perm": [0, 2, 1]}),
        ("Softmax", "q", "s"),
        ("ReduceMean", "s one", "m", {"keepdims": 1}),
        ("Mul", "p m", "y"),
    ]
    constants = {"w": normal(9, 12), "one": i64(1)}
    proto = model(nodes, {"x": normal(4, 12, 9)}, "y", constants)
    plan = plan_of(proto, Mode(device=device, layout=layout, memory="auto"))
    choice = plan.statistics.planning.layouts
    assert choice is not None
    assert choice.status == ("optimal" if layout == "exact" else "local")
    assert choice.bound <= choice.cost + 1e-9
    assert choice.cost <= choice.local_cost + 1e-9
    assert choice.images + choice.buffers == choice.tensors > 0
    assert (choice.images > 0) == (device == "adreno_740")
    stored = {n for n, t in plan.tensors.items() if t.role == "intermediate"}
    described = plan.statistics.planning.tensor_layouts
    assert stored <= set(described)
    for name in stored:
        one = described[name]
        assert one.layout == plan.tensors[name].layout.places
        assert one.layout in [candidate.layout for candidate in one.candidates]


def test_a_copy_is_made_before_the_first_launch_that_reads_it() -> None:
    """Layouts are chosen for kernels in another order than that of the launches."""
    stored = Stored(name="x", type=TensorType("float32", (4, 8)), layout=row_major(2), role="input", storage="float32")
    copier = copy_kernel(stored, "x@copy")
    axes = (Var("i", 4), Var("j", 8))
    places = tuple(map(index_of, axes))
    readers = [
        Single(
            kernel=replace(
                copier, name=name, axes=axes, stores=(Store(name, places, Read("x@copy", places, "float32")),),
                reads=("x@copy",), writes=(name,),
            )
        )
        for name in ("second", "first")
    ]  # fmt: skip
    laid = build.with_copiers([readers[1], readers[0]], [copier])
    assert [launch.name for launch in laid] == [copier.name, "first", "second"]

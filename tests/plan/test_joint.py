"""Kernels and layouts chosen together: best of all choices, never worse than the two steps, right on the device."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import onnx
import pytest
from hypothesis import given, note, strategies as st
from onnx.reference import ReferenceEvaluator

from smartmem_rules.graph.importer import import_model
from smartmem_rules.plan import build
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.fusion.alternatives import Pool, other_policies
from smartmem_rules.plan.fusion.equations.program import flatten
from smartmem_rules.plan.fusion.fuser import fuse
from smartmem_rules.plan.fusion.policy import policy_of
from smartmem_rules.plan.joint import JointChoice, choose_kernels
from smartmem_rules.plan.kernel.model import Kernel, Stored
from smartmem_rules.plan.layout.candidates import LayoutOptions, LayoutSpace
from smartmem_rules.plan.layout.choose import solve_layouts
from smartmem_rules.plan.layout.model import LayoutProblem
from smartmem_rules.plan.schedule.cost import KernelCosts
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor
from tests.plan.building import build as emitted
from tests.plan.models import Array, Model, Node, i64, model, normal
from tests.plan.random_graphs import models
from tests.plan.running import drawing

pytestmark = pytest.mark.sampled(12)

BASE = load_rules()
APART = load_rules(disable=("side_by_side_in_groups",))
"""Without the rule that lets the longer branch take in a residual sum."""
DEVICES = ("pocl", "adreno_740", "nvidia")
MOST = 3000
"""Choices up to which all of them are looked at."""


@pytest.fixture(autouse=True)
def kernels_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any device runs the plans of each profile: instructions of NVIDIA's that order tasks are left out."""
    monkeypatch.setenv("SMARTMEM_ONE_LAUNCH", "off")


def loose(further: int, base: RuleBase) -> RuleBase:
    """The rules, with configurations that have more kernels than the rules make."""
    layouts = {name: replace(weights, further_kernels=further) for name, weights in base.layouts.items()}
    return replace(base, layouts=layouts)


@dataclass
class Posed:
    """A choice as planning posed it, and what came out."""

    pool: Pool
    tensors: dict[str, Stored]
    where: LayoutOptions
    times: dict[int, float]
    choice: JointChoice
    plan: Plan


def posed(
    proto: onnx.ModelProto,
    device: str,
    further: int,
    time: Callable[[Kernel], float] | None = None,
    memory: str = "preferred",
    rules: RuleBase = BASE,
) -> Posed:
    """Plan a model for a device, and say what was chosen among what.

    Args:
        further: kernels that a configuration may have more than the rules make.
        time: nanoseconds of a kernel in the place of the model's.
    """
    found: list[Posed] = []

    def kept(pool: Pool, tensors: dict[str, Stored], where: LayoutOptions, times: dict[int, float]) -> JointChoice:
        choice = choose_kernels(pool, tensors, where, times)
        found.append(Posed(pool, tensors, where, times, choice, None))  # type: ignore[arg-type]
        return choice

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "choose_kernels", kept)
        if time is not None:
            patch.setattr(KernelCosts, "of", lambda _, kernel, block_rows=None: time(kernel))
            patch.setattr(KernelCosts, "of_launch", lambda _, launch: sum(map(time, launch.kernels)) - 1e9)
        base = loose(further, rules)
        graph = import_model(proto, base, {})
        # the device that runs it has neither matrix units nor that one's assembler
        profile = base.devices[device]
        compute = replace(profile.compute, matrix="", shuffle="", half="")
        profile = replace(profile, compute=compute, memory=replace(profile.memory, array_memory=0), units=())
        plan = emitted(graph, base, profile, "smartmem", "float32", memory)
    found[0].plan = plan
    return found[0]


def random_times(seed: int) -> Callable[[Kernel], float]:
    """Times of kernels that depend on nothing but what they read and write, and the seed."""

    def time(kernel: Kernel) -> float:
        words = " ".join((*kernel.reads, *kernel.writes))
        return float(np.random.default_rng([seed, *words.encode()]).integers(1, 40)) * 1000

    return time


def direct(problem: LayoutProblem) -> float:
    """The time of the best layouts, all of them looked at; infinite where there are too many."""
    free = {node: place.alone for node, place in problem.space.places.items()}
    if math.prod(free.values()) > MOST:
        return math.inf
    best = math.inf
    for numbers in itertools.product(*map(range, free.values())):
        chosen = dict(zip(free, numbers, strict=True))
        total = 0.0
        for touch in problem.space.touches:
            lead = 0 if touch.leader is None else chosen[touch.leader]
            for table in (touch.reads, touch.writes):
                total += 0.0 if table is None else float(table[lead, chosen[touch.node]])
        best = min(best, total)
    return best


# --- programs with something to decide ---


def downsampling() -> Model:
    """A residual block whose sum can end either convolution, and whose first ones read the same."""
    nodes: list[Node] = [
        ("Conv", "x a", "p"),
        ("Relu", "p", "q"),
        ("Conv", "q b", "r"),
        ("Conv", "x c", "s"),
        ("Add", "r s", "t"),
        ("Relu", "t", "y"),
    ]
    weights = {"a": normal(4, 8, 1, 1), "b": normal(8, 4, 1, 1), "c": normal(8, 8, 1, 1)}
    feeds = {"x": normal(1, 8, 4, 4)}
    return Model(model(nodes, feeds, "y", weights), feeds)


def normalised() -> Model:
    """Two products of normalised rows, one of them with a residual sum."""
    nodes: list[Node] = [
        ("LayerNormalization", "x g", "n", {"axis": -1}),
        ("MatMul", "n v", "p"),
        ("MatMul", "n w", "q"),
        ("Relu", "q", "r"),
        ("Add", "p x", "y"),
        ("Softmax", "r", "z", {"axis": -1}),
    ]
    constants = {"g": normal(16), "v": normal(16, 16), "w": normal(16, 12)}
    feeds = {"x": normal(2, 6, 16)}
    return Model(model(nodes, feeds, "y z", constants), feeds)


def depthwise() -> Model:
    """A depthwise convolution and the pointwise ones around it, squeezed and excited."""
    nodes: list[Node] = [
        ("Conv", "x a", "p"),
        ("Relu", "p", "q"),
        ("Conv", "q d", "r", {"group": 8, "pads": [1, 1, 1, 1]}),
        ("Sigmoid", "r", "s"),
        ("Conv", "s b", "y"),
        ("GlobalAveragePool", "s", "m"),
        ("Mul", "s m", "u"),
        ("Conv", "u c", "z"),
    ]
    constants = {"a": normal(8, 4, 1, 1), "d": normal(8, 1, 3, 3), "b": normal(4, 8, 1, 1), "c": normal(4, 8, 1, 1)}
    feeds = {"x": normal(1, 4, 6, 6)}
    return Model(model(nodes, feeds, "y z", constants), feeds)


def attention() -> Model:
    nodes: list[Node] = [
        ("MatMul", "x a", "q"),
        ("MatMul", "x b", "k"),
        ("MatMul", "x c", "v"),
        ("Transpose", "k", "t", {"perm": [0, 2, 1]}),
        ("MatMul", "q t", "s"),
        ("Softmax", "s", "p", {"axis": -1}),
        ("MatMul", "p v", "o"),
        ("Add", "o x", "r"),
        ("ReduceMean", "r one", "y", {"keepdims": 0}),
    ]
    constants = {"a": normal(8, 8), "b": normal(8, 8), "c": normal(8, 8), "one": i64(1)}
    feeds = {"x": normal(2, 6, 8)}
    return Model(model(nodes, feeds, "y", constants), feeds)


PROGRAMS = (downsampling, normalised, depthwise, attention)


def check(made: Posed) -> int:
    """The choice against all others; the number of configurations of the whole program that were looked at."""
    pool, choice = made.pool, made.choice
    ways = [range(len(region.configurations)) for region in pool.regions]
    if math.prod(map(len, ways)) > MOST // 10:
        return 0
    space = LayoutSpace(pool.kernels, made.tensors, made.where)
    best, looked = math.inf, 0
    for picked in itertools.product(*ways):
        kernels = pool.chosen(picked)
        if kernels is None:
            continue
        looked += 1
        used = {t for k in kernels for t in (*k.reads, *k.writes)}
        tensors = {t: s for t, s in made.tensors.items() if t in used or s.role in ("input", "output")}
        answer = solve_layouts(space.restricted(kernels, tensors))
        number = {kernel.name: n for n, kernel in enumerate(pool.kernels)}
        own = sum(made.times[number[kernel.name]] for kernel in kernels)
        # second layouts may make it cheaper, other layouts may not
        assert answer.time <= direct(answer.problem) + 1e-6
        best = min(best, own + answer.time)
    assert choice.cost * 1000 == pytest.approx(best, abs=1.5)
    return looked


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("device", DEVICES)
def test_the_choice_is_the_best_of_all(program: Callable[[], Model], device: str) -> None:
    """All configurations of all regions with all layouts, for random times of the kernels."""
    looked = 0
    for seed in range(3):
        made = posed(program().proto, device, further=4, time=random_times(seed))
        looked += check(made)
        assert made.choice.bound <= made.choice.cost + 1e-9 or made.choice.changed == 0
    assert looked >= 3


def test_random_models_against_all_choices(fresh_seeds: bool, examples: int, all_cases: bool) -> None:
    @drawing(examples or (25 if all_cases else 10), fresh_seeds)
    @given(made=models(), seed=st.integers(0, 999), device=st.sampled_from(DEVICES))
    def test(made: Model, seed: int, device: str) -> None:
        note(f"times of seed {seed} on {device}")
        check(posed(made.proto, device, further=4, time=random_times(seed)))

    test()


def test_what_is_chosen_computes_the_same(fresh_seeds: bool, examples: int, all_cases: bool) -> None:
    """Random times choose random kernels, of several fusions; the outputs stay."""

    @drawing(examples or (25 if all_cases else 10), fresh_seeds)
    @given(
        made=models(),
        seed=st.integers(0, 999),
        memory=st.sampled_from(["adreno_740 image", "nvidia buffer", "pocl buffer"]),
    )
    def test(made: Model, seed: int, memory: str) -> None:
        note(f"times of seed {seed}, {memory}")
        right(made, seed, *memory.split())

    test()


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("memory", ["adreno_740 image", "nvidia buffer", "pocl buffer"])
def test_programs_compute_the_same(program: Callable[[], Model], memory: str) -> None:
    for seed in range(4):
        right(program(), seed, *memory.split())


def right(made: Model, seed: int, device: str, memory: str) -> int:
    """Run a plan of random choices; the number of regions that are not as the rules would have them."""
    found = posed(made.proto, device, further=4, time=random_times(seed), memory=memory)
    got = Executor(found.plan, choose()).run({name: made.feeds[name] for name in found.plan.inputs})
    names = [output.name for output in made.proto.graph.output]
    wanted: list[Array] = ReferenceEvaluator(made.proto).run(None, made.feeds)
    for name, one in zip(names, wanted, strict=True):
        scale = max(1.0, float(np.abs(one).max(initial=0.0)), *(float(np.abs(f).max()) for f in made.feeds.values()))
        np.testing.assert_allclose(got[name], one, atol=1e-3 * scale, err_msg=f"{name} for seed {seed}")
    return found.choice.changed


# --- what it must never be ---


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("device", DEVICES)
def test_never_worse_and_with_no_more_kernels(program: Callable[[], Model], device: str) -> None:
    """By the shipped rules: at most the cost of the fusion rules' kernels with their best layouts, and their number."""
    made = posed(program().proto, device, further=0)
    choice = made.choice
    assert choice.bound <= choice.cost <= choice.two_step_cost <= choice.local_cost + 1e-9
    assert len(choice.kernels) <= made.pool.first
    found = made.plan.statistics.planning.joint
    assert found is not None
    assert found.gap <= 1e-6 or found.status == "feasible"


def test_a_residual_sum_ends_the_convolution_that_leaves_fewer_kernels() -> None:
    """By the rules it ends the last one; ending the other lets the two that read the input become one kernel."""
    made = posed(downsampling().proto, "nvidia", further=0, rules=APART)
    assert made.choice.changed == 1
    assert (made.pool.first, len(made.plan.launches)) == (3, 2)


@pytest.mark.parametrize(
    ("level", "layout"), [("layout", "exact"), ("smartmem", "local"), ("eliminate", "exact"), ("dnnfusion", "exact")]
)
def test_other_levels_and_local_layouts_keep_their_meaning(level: str, layout: str) -> None:
    graph = import_model(downsampling().proto, BASE, {})
    profile = BASE.devices["nvidia"]
    plan = emitted(graph, BASE, profile, level, "float32", "preferred", layout)
    assert plan.statistics.planning.joint is None


def test_the_cost_model_decides_what_depends() -> None:
    """DNNFusion's table leaves a transposition before a product open; with `kernels joint` its time decides."""
    nodes: list[Node] = [("Transpose", "x", "t", {"perm": [0, 2, 1]}), ("MatMul", "q t", "y")]
    feeds = {"x": normal(2, 12, 8), "q": normal(2, 30, 8)}
    proto = model(nodes, feeds, "y", {})
    level = replace(BASE.levels["dnnfusion"], kernels="joint")
    base = replace(BASE, levels={**BASE.levels, "dnnfusion": level}, layouts=BASE.layouts)
    graph = import_model(proto, base, {})
    profile = base.devices["pocl"]
    profile = replace(profile, compute=replace(profile.compute, launch_us=1e3))
    plan = emitted(graph, base, profile, "dnnfusion")
    joint = plan.statistics.planning.joint
    assert joint is not None
    assert joint.by_rules == 2
    assert len(plan.launches) == 1
    got = Executor(plan, choose()).run(feeds)
    np.testing.assert_allclose(got["y"], ReferenceEvaluator(proto).run(None, feeds)[0], atol=1e-4)


def test_kernels_that_need_each_other_are_given_up() -> None:
    """Two regions whose choices have no order together: one of them does something else, and the bound says so."""
    made = posed(downsampling().proto, "nvidia", further=4, time=random_times(1), rules=APART)
    pool = made.pool
    assert pool.regions
    liked = [max(0, n) for n in picked_of(made)]

    class Circular(Pool):
        def chosen(self, configurations: list[int]) -> list[Kernel] | None:  # type: ignore[override]
            return None if list(configurations) == liked and any(liked) else super().chosen(configurations)

    other = Circular(pool.kernels, pool.first, pool.always, pool.regions)
    found = choose_kernels(other, made.tensors, made.where, made.times)
    assert any(liked)
    assert found.status == "feasible"
    assert made.choice.cost - 1e-9 <= found.cost <= found.two_step_cost
    assert found.bound <= made.choice.cost + 1e-9


def picked_of(made: Posed) -> list[int]:
    """Which configuration of each region the kernels of a choice are."""
    names = {kernel.name for kernel in made.choice.kernels}
    numbers = {n for n, kernel in enumerate(made.pool.kernels) if kernel.name in names}
    return [next(i for i, one in enumerate(r.configurations) if numbers.issuperset(one)) for r in made.pool.regions]


@pytest.mark.parametrize("program", PROGRAMS)
def test_fusions_that_share_their_beginning_are_whole_ones(program: Callable[[], Model]) -> None:
    graph = import_model(program().proto, BASE, {})
    flat = flatten(graph, True)
    policy = policy_of(BASE.levels["smartmem"], BASE.tables, BASE.fuses).within({"group", "tile"})
    first = fuse(flat, policy)
    for other in other_policies(policy, first.decisions):
        if other.grows_like(policy):
            alone, shared = fuse(flat, other), fuse(flat, other, growth=first.growth)
            assert alone.stored == shared.stored
            assert [g.tensors for g in alone.groups] == [g.tensors for g in shared.groups]
            assert alone.inlined.keys() == shared.inlined.keys()

"""Kernels side by side in one launch of a GPU: which of them, at what cost, and that they compute the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from smartmem_rules.emit.plan import finish
from smartmem_rules.language.diagnostics import LanguageError
from smartmem_rules.pipeline import Request, make_planning
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.launch import Beside, Launch, Single
from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.plan.launch.horizontal_gpu import Candidate, side_by_side_in_groups
from smartmem_rules.plan.schedule.occupancy import LaunchConfig, fused_time, sequential_time
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import BoundsError, Executor
from smartmem_rules.simulate.memory import MemoryModel
from smartmem_rules.simulate.report import simulate
from tests.plan.branches import BRANCHES, CONSTANTS, FEEDS
from tests.plan.devices import gpu
from tests.plan.models import Node, model, normal, normal as weights
from tests.plan.programs import policy, rules

RULE = next(rule for rule in policy("smartmem").rules if rule.name == "side_by_side_in_groups")
GPU = gpu(units=4, items=256, memory=1024, launch=100.0)

LAST_COLUMN = "p2[(i1 * 130 + i6 * 4)] = finished.s0"


def _plan(device: str, memory: str, disable: tuple[str, ...] = (), dtype: str = "float32") -> Plan:
    proto = model(BRANCHES, FEEDS, "b e", CONSTANTS)
    planning, _ = make_planning(Request(proto, (), device, "smartmem", dtype, memory, disable, {}))
    return finish(planning)


@pytest.mark.parametrize(("device", "memory"), [("nvidia", "buffer"), ("adreno_740", "image"), ("gpu", "image")])
def test_branches_share_launches_and_give_what_they_gave(device: str, memory: str) -> None:
    plan = _plan(device, memory)
    apart_ = _plan(device, memory, ("side_by_side_in_groups",))
    assert not any(launch.steps for launch in apart_.launches)
    assert any(len(launch.steps) > 1 for launch in plan.launches)
    assert len(plan.launches) < len(apart_.launches)
    executor = Executor(plan, choose("auto"))
    executor.poison()
    found = executor.run(FEEDS)
    wanted = ReferenceEvaluator(model(BRANCHES, FEEDS, "b e", CONSTANTS)).run(None, FEEDS)
    for name, reference in zip(("b", "e"), wanted, strict=True):
        np.testing.assert_allclose(found[name], reference, rtol=0, atol=2e-5 * np.abs(reference).max())


def test_a_debug_build_checks_launches_of_several_kernels() -> None:
    plan = _plan("nvidia", "buffer")
    expected = Executor(plan, choose("auto")).run(FEEDS)
    for name, array in Executor(plan, choose("auto"), debug=True).run(FEEDS).items():
        np.testing.assert_array_equal(array, expected[name])
    # the last column of the product `a` lands behind its last row
    (wrong,) = (n for n, source in enumerate(plan.sources) if LAST_COLUMN in source.text)
    text = plan.sources[wrong].text.replace(LAST_COLUMN, LAST_COLUMN.replace(")]", " + 130)]"))
    assert len(plan.launches[wrong].steps) == 2
    enqueues = list(plan.enqueues)
    enqueues[wrong] = replace(enqueues[wrong], source=replace(plan.sources[wrong], text=text))
    with pytest.raises(BoundsError, match=r"writes outside the tensor 'a' \(buffer\[d0d1\] of \[50, 130\]"):
        Executor(replace(plan, enqueues=enqueues), choose("auto"), debug=True).run(FEEDS)


def test_equal_kernels_share_a_function_and_a_launch() -> None:
    nodes: list[Node] = [("MatMul", f"x{i} w{i}", f"y{i}") for i in range(5)]
    feeds = {f"x{i}": normal(20, 96, seed=i) for i in range(5)}
    proto = model(nodes, feeds, " ".join(f"y{i}" for i in range(5)), {f"w{i}": weights(96, 40) for i in range(5)})
    planning, _ = make_planning(Request(proto, (), "nvidia", "smartmem", "float32", "buffer", (), {}))
    plan = finish(planning)
    assert [len(launch.steps) for launch in plan.launches] == [5]
    assert plan.sources[0].text.count("static void smr_part_") == 1
    found = Executor(plan, choose("auto")).run(feeds)
    for i in range(5):
        wanted = ReferenceEvaluator(proto).run([f"y{i}"], feeds)[0]
        np.testing.assert_allclose(found[f"y{i}"], wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())


def test_the_simulator_sees_the_same_accesses() -> None:
    device = MemoryModel.of(rules().devices["adreno_740"])
    both = [
        simulate(_plan("adreno_740", "image", disable, "float16"), device)
        for disable in ((), ("side_by_side_in_groups",))
    ]
    assert both[0].total("accesses") == both[1].total("accesses")
    assert both[0].total("local_bytes") == both[1].total("local_bytes")
    launches = len(both[1].kernels) - len(both[0].kernels)
    assert (
        both[1].total("milliseconds") - both[0].total("milliseconds")
        >= launches * device.device.compute.launch_us / 1e3
    )


def test_a_block_that_is_none_is_not_switched_off() -> None:
    with pytest.raises(LanguageError, match="side_by_side_in_group"):
        load_rules(disable=("side_by_side_in_group",))


# --- what goes together ---


def _kernel(name: str, reads: str, writes: str) -> Single:
    kernel = Kernel(name=name, form="pointwise", reads=tuple(reads.split()), writes=tuple(writes.split()))
    return Single(kernel=kernel)


def _small(launch: Launch, **config: int) -> Candidate:
    return Candidate(
        launch, (LaunchConfig(**{"threads": 0, "items": 64, "local": 0, "time": 10.0, "busy": 256, **config}),)
    )


def _dealt(*candidates: Candidate) -> list[set[str]]:
    found = side_by_side_in_groups(candidates, RULE, GPU, lambda launch, config, threads: launch)
    return [{kernel.name for kernel in launch.kernels} for launch in found]


def test_kernels_that_need_each_other_stay_apart() -> None:
    a, b = _small(_kernel("a", "x", "y")), _small(_kernel("b", "y", "z"))
    assert _dealt(a, b) == [{"a"}, {"b"}]


def test_branches_that_end_together_meet_at_their_ends() -> None:
    long = [_small(_kernel(f"l{i}", f"t{i}", f"t{i + 1}")) for i in range(3)]
    # what runs before the long branch is large: there is no room for the short one
    first = Candidate(_kernel("f", "x", "t0"), ())
    short = [_small(_kernel("s0", "x", "r0")), _small(_kernel("s1", "r0", "r1"))]
    end = _small(_kernel("e", "t3 r1", "y"))
    assert len(_dealt(short[0], short[1], first, *long, end)) == 5


def test_one_that_writes_in_pieces_is_awaited_by_all_readers() -> None:
    a, b = _small(_kernel("a", "x", "p")), _small(_kernel("b", "q", "p"))
    q, reader = _small(_kernel("q", "x", "q")), _small(_kernel("r", "p", "y"))
    found = _dealt(a, q, b, reader)
    assert next(n for n, names in enumerate(found) if "r" in names) > next(
        n for n, names in enumerate(found) if "b" in names
    )


def test_a_common_work_group_is_chosen() -> None:
    one = Candidate(
        _kernel("a", "x", "y"),
        (
            LaunchConfig(threads=64, items=64, local=0, time=10.0, busy=256),
            LaunchConfig(threads=128, items=128, local=0, time=12.0, busy=256),
        ),
    )
    other = Candidate(_kernel("b", "x", "z"), (LaunchConfig(threads=128, items=128, local=0, time=10.0, busy=256),))
    chosen = []
    found = side_by_side_in_groups([one, other], RULE, GPU, lambda k, share, threads: chosen.append(threads) or k)
    assert [launch.group_items for launch in found if isinstance(launch, Beside)] == [128]
    assert chosen == [128, 128]
    none = Candidate(_kernel("b", "x", "z"), (LaunchConfig(threads=32, items=32, local=0, time=10.0, busy=256),))
    assert len(side_by_side_in_groups([one, none], RULE, GPU, lambda k, share, threads: k)) == 2


def test_what_fills_the_device_and_takes_longer_than_a_launch_stays_alone() -> None:
    # 4 units of 256 work-items hold 1024
    large = _small(_kernel("a", "x", "y"), items=1024, time=101.0)
    assert _dealt(large, _small(_kernel("b", "x", "z"))) == [{"a"}, {"b"}]
    assert len(_dealt(_small(_kernel("a", "x", "y"), items=960, time=101.0), _small(_kernel("b", "x", "z")))) == 1


def test_the_local_memory_of_one_crowds_the_others() -> None:
    greedy = LaunchConfig(threads=64, items=64, local=1024, time=10.0, busy=256)
    many = LaunchConfig(threads=64, items=960, local=0, time=90.0, busy=256)
    # beside the greedy one each of four units holds one group: 15 of 90 ns and one of 10 take 1360 / 4
    assert fused_time([greedy, many], 64, GPU) == 100 + (15 * 90 + 10) / 4
    assert sequential_time([greedy, many], GPU) == 300
    crowded = [Candidate(_kernel("a", "x", "y"), (greedy,)), Candidate(_kernel("b", "x", "z"), (many,))]
    assert len(side_by_side_in_groups(crowded, RULE, GPU, lambda k, share, threads: k)) == 2


def test_the_longer_branch_takes_in_what_joins_both() -> None:
    nodes: list[Node] = [
        ("Conv", "x a", "p"),
        ("Relu", "p", "q"),
        ("Conv", "q b", "r", {"pads": [1, 1, 1, 1]}),
        ("Conv", "x c", "s", {"pads": [1, 1, 1, 1]}),
        ("Add", "r s", "y"),
    ]
    constants = {"a": weights(12, 8, 1, 1), "b": weights(20, 12, 3, 3), "c": weights(20, 8, 3, 3)}
    proto = model(nodes, {"x": normal(1, 8, 9, 9)}, "y", constants)
    for device in ("nvidia", "adreno_740"):
        planning, _ = make_planning(Request(proto, (), device, "smartmem", "float32", "auto", (), {}))
        # the shortcut runs beside the first convolution, not behind the second one
        assert [len(launch.steps) for launch in finish(planning).launches] == [2, 0]


def test_a_kernel_without_elements_takes_no_work_group() -> None:
    nothing = LaunchConfig(threads=64, items=0, local=0, time=7.0, busy=256)
    assert fused_time([nothing], 64, GPU) == 100 + 7
    assert fused_time([nothing, nothing], 64, GPU) == 100 + 7

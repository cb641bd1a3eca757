"""Hand-written plans on the device at hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyopencl as cl
import pytest

from smartmem_rules import optimize
from smartmem_rules.graph.model import GraphError
from smartmem_rules.language.blocks.workarounds import workaround_of
from smartmem_rules.plan.artefact import Enqueue, Plan, Slot
from smartmem_rules.plan.kernel.model import Layout
from smartmem_rules.runtime.contexts.memory import PlanMemory
from smartmem_rules.runtime.devices import Device, choose
from smartmem_rules.runtime.executor import Executor, RunError
from smartmem_rules.runtime.programs.compiling import BuildError
from tests.plan.models import model, normal
from tests.runtime.plans import change_source, constant_values, make_half_plan, make_plan


@pytest.fixture(scope="module")
def device() -> Device:
    return choose()


def expected(x: np.ndarray) -> np.ndarray:
    return (x + constant_values()) * 2


def feed(seed: int = 0) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).standard_normal((6, 10)).astype(np.float32)}


@pytest.mark.parametrize(
    ("memory", "storage", "tolerance"),
    [("buffer", "float32", 0), ("image", "float32", 0), ("image", "float16", 2e-3)],
)
def test_runs_in_every_memory(device: Device, memory: str, storage: str, tolerance: float) -> None:
    executor = Executor(make_plan(memory, storage), device)
    for seed in range(3):
        feeds = feed(seed)
        result = executor.run(feeds)["y"]
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, expected(feeds["x"]), rtol=tolerance, atol=tolerance * 10)


def test_driver_without_parts_of_buffers_gets_whole_ones(device: Device) -> None:
    """Each place of the memory is a buffer of its own; what lies at one place still shares it."""
    nodes = [("MatMul", "x u", "a"), ("Softmax", "a", "b", {"axis": 0}), ("MatMul", "b v", "c"), ("Sub", "c a", "y")]
    constants = {"u": normal(16, 24), "v": normal(24, 24)}
    plan = optimize(model(nodes, {"x": normal(24, 16)}, "y", constants), level="none", device="pocl")
    parts = {place for place in plan.plan.placement.values() if place.offset}
    assert parts, "no tensor lies behind another one"
    clause = workaround_of(["whole_buffers", "on", ".*", "because", "of this test"])
    whole = replace(device, workarounds=(*device.workarounds, clause))
    executor, feeds = Executor(plan.plan, whole), plan.random_feeds(0)
    executor.poison()
    np.testing.assert_array_equal(executor.run(feeds)["y"], plan.run(feeds)["y"])
    context = cl.Context([device.handle])
    queue = cl.CommandQueue(context)
    pieces = PlanMemory(plan.plan, whole, context, queue).for_runs(queue)
    assert len(pieces.slots) == len(set(plan.plan.placement.values()))
    for name, place in plan.plan.placement.items():
        same = [other for other, its in plan.plan.placement.items() if its == place]
        assert all(pieces.tensors[other] is pieces.tensors[name] for other in same)


@pytest.mark.parametrize("kept", [False, True])
def test_a_context_stays_open_for_a_driver_that_starts_anew_after_the_last(
    device: Device, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: dict[object, object] = {}
    monkeypatch.setattr("smartmem_rules.runtime.programs.shared_programs._open_contexts", opened)
    clauses = [workaround_of(["keeps_context_open", "on", ".*", "because", "of this test"])] if kept else []
    told = replace(device, workarounds=tuple(clauses))
    for _ in range(2):
        np.testing.assert_array_equal(Executor(make_plan(), told).run(feed())["y"], expected(feed()["x"]))
    assert list(opened) == ([device.handle] if kept else [])


def test_half_inputs_and_outputs_are_converted_at_the_border(device: Device) -> None:
    feeds = feed()
    result = Executor(make_half_plan(), device).run(feeds)["y"]
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, feeds["x"] + 1, atol=4e-3)


def test_results_are_the_callers_own(device: Device) -> None:
    executor = Executor(make_plan(), device)
    first = executor.run(feed(1))["y"]
    kept = first.copy()
    executor.run(feed(2))
    np.testing.assert_array_equal(first, kept)


def test_a_build_error_names_the_kernel_and_shows_the_compilers_words(device: Device) -> None:
    plan = make_plan()
    change_source(plan, 1, text=plan.sources[1].text.replace("t[i", "undeclared[i"))
    with pytest.raises(BuildError, match=r"the kernel twice_1 does not compile(.|\n)*undeclared"):
        Executor(plan, device)


def renamed(plan: Plan, number: int, name: str) -> Enqueue:
    """One of a plan's launches under another name."""
    enqueue = plan.enqueues[number]
    launch = enqueue.launch.each(lambda one: replace(one, kernel=replace(one.kernel, name=name)))
    return replace(enqueue, launch=launch)


def test_equal_texts_are_built_once(device: Device) -> None:
    plan = make_plan()
    plan.enqueues.append(renamed(plan, 1, "twice_2"))
    assert Executor(plan, device).programs == 2


def test_different_texts_may_share_an_entry(device: Device) -> None:
    plan = make_plan()
    change_source(plan, 1, entry="add", text=plan.sources[1].text.replace("twice", "add"))
    feeds = feed()
    np.testing.assert_array_equal(Executor(plan, device).run(feeds)["y"], expected(feeds["x"]))


def test_empty_kernels_are_not_enqueued(device: Device) -> None:
    plan = make_plan()
    nothing = renamed(plan, 1, "nothing")
    plan.enqueues.append(replace(nothing, source=replace(nothing.source, global_size=(0, 10))))
    feeds = feed()
    np.testing.assert_array_equal(Executor(plan, device).run(feeds)["y"], expected(feeds["x"]))


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, "the input 'x', float32\\[6, 10\\], is missing"),
        ({"x": np.zeros((6, 10)), "z": np.zeros(1)}, "no input 'z'(.|\n)*type float64; the model takes float32"),
        ({"X": np.zeros((6, 10), np.float32)}, "no input 'X'; did you mean `x`(.|\n)*is missing"),
        ({"x": np.zeros((10, 6), np.float32)}, r"has shape \[10, 6\]; the model takes \[6, 10\]"),
        ({"x": "text"}, "elements of type"),
    ],
)
def test_wrong_feeds_are_named(device: Device, feeds: dict[str, object], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        Executor(make_plan(), device).run(feeds)


def test_a_transposed_input_is_taken_by_value(device: Device) -> None:
    x = np.random.default_rng(3).standard_normal((10, 6)).astype(np.float32).T
    np.testing.assert_array_equal(Executor(make_plan(), device).run({"x": x})["y"], expected(x))


def test_an_image_beyond_the_device_is_refused(device: Device) -> None:
    plan = replace(make_plan("image"), slots=[Slot("image", 0, (device.image_width + 1, 6), "float32")])
    with pytest.raises(RunError, match="too large"):
        Executor(plan, device)


def test_a_constant_of_the_wrong_size_is_refused(device: Device) -> None:
    plan = make_plan()
    plan.tensors["c"] = replace(plan.tensors["c"], packed=np.zeros(7, np.float32))
    with pytest.raises(RunError, match="'c' has 28 bytes of values and 240 in memory"):
        Executor(plan, device)


def test_work_groups_beyond_the_device_are_refused(device: Device) -> None:
    plan = make_plan()
    groups = [replace(one, source=replace(one.source, local_size=(6, 10))) for one in plan.enqueues]
    with pytest.raises(RunError, match=r"has work-groups of 60 work-items, and .* takes at most 32"):
        Executor(replace(plan, enqueues=groups), replace(device, work_group=32))


def test_a_buffer_beyond_the_device_is_refused(device: Device) -> None:
    plan = replace(make_plan(), slots=[Slot("buffer", 1 << 60, (0, 0), "")])
    with pytest.raises(RunError, match="allocates at most"):
        Executor(plan, device)


def test_benchmark_and_profile(device: Device) -> None:
    executor = Executor(make_plan(), device)
    result = executor.benchmark(runs=5, warmup=1)
    assert set(result) >= {"median_ms", "min_ms", "max_ms", "runs", "kernels", "device"}
    assert result["quartile_1_ms"] <= result["median_ms"] <= result["quartile_3_ms"]
    assert result["min_ms"] <= result["median_ms"] <= result["max_ms"]
    assert (result["runs"], result["kernels"]) == (5, 2)
    assert [name for name, _ in executor.profile()] == ["add_0", "twice_1"]
    assert all(milliseconds >= 0 for _, milliseconds in executor.profile())


def test_fetch_shows_an_intermediate(device: Device) -> None:
    executor = Executor(make_plan(), device)
    feeds = feed()
    executor.run(feeds)
    np.testing.assert_array_equal(executor.fetch("t"), feeds["x"] + constant_values())


def test_layouts_agree_with_the_packing() -> None:
    assert Layout("image", (0, 1), 1).image_size((6, 10)) == (3, 6)


def test_at_the_end_of_a_context_its_kernels_are_done(device: Device) -> None:
    """Constants lie in the host's memory, which goes with the plan: no kernel may read it then."""
    weights = normal(700, 700)
    model_ = model([("MatMul", "x w", "a"), ("MatMul", "a w", "y")], {"x": normal(700, 700)}, "y", {"w": weights})
    executor = Executor(optimize(model_).plan, device)
    with executor.taken() as context:
        events = [event for _ in range(4) for event in context.enqueue(context.queue)]
    assert {event.command_execution_status for event in events} == {cl.command_execution_status.COMPLETE}

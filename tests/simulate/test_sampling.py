"""Sampled launches beside the same launches followed whole."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules.pipeline import Request, make_plan
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.simulate.launch import TracedLaunch, Window, _is_memory, trace
from smartmem_rules.simulate.memory import MemoryModel
from smartmem_rules.simulate.report import _Shared, simulate
from smartmem_rules.simulate.sampling import WINDOWS, Effort, _Beginning, choose_windows, estimate
from smartmem_rules.simulate.source import SimulationError
from smartmem_rules.stages import Unmeasured

WHOLE = Effort(exact=1 << 40)


def _plan(nodes, constants, given, result, memory):
    random = np.random.default_rng(5)
    held = {n: random.standard_normal(s).astype(np.float32) for n, s in constants.items()}
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", given), ("y", result))]
    weights = [numpy_helper.from_array(v, n) for n, v in held.items()]
    graph = helper.make_graph(nodes, "sampled", values[:1], values[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return make_plan(Request(model, (), "adreno_740", "smartmem", "float32", memory, (), {}), Unmeasured())[0]


def _product(memory):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    return _plan(nodes, {"w": (192, 256)}, [1, 1600, 192], [1, 1600, 256], memory)


def _convolution(memory):
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])]
    return _plan(nodes, {"w": (32, 32, 3, 3)}, [1, 32, 56, 56], [1, 32, 56, 56], memory)


@pytest.fixture(scope="module")
def device():
    return MemoryModel.of(load_rules().devices["adreno_740"])


@pytest.mark.covering
@pytest.mark.parametrize("memory", ["image", "buffer"])
@pytest.mark.parametrize("made", [_product, _convolution])
def test_windows_say_what_the_whole_launch_does(made, memory, device):
    plan = made(memory)
    sampled = simulate(plan, device, Effort(exact=100_000, window=60_000))
    whole = simulate(plan, device, WHOLE)
    assert any(k.sampled for k in sampled.kernels)
    assert not any(k.sampled or any(k.error.values()) for k in whole.kernels)
    for name, tolerance in (("accesses", 0.08), ("requests", 0.08), ("l2_requests", 0.1), ("l2_misses", 0.5)):
        assert sampled.total(name) == pytest.approx(whole.total(name), rel=tolerance), name
    accesses = [one.total("accesses") for one in (sampled, whole)]
    assert abs(accesses[0] - accesses[1]) / accesses[1] <= sampled.error("accesses") + 1e-9
    stated = sampled.error("misses")
    misses = [one.total("l1_misses") + one.total("l2_misses") for one in (sampled, whole)]
    # windows cannot show all of their own error; it stays near what they show
    assert abs(misses[0] - misses[1]) / misses[1] <= max(0.1, 2 * stated)


def test_the_whole_launch_as_one_window_is_exact(device):
    plan = _product("image")
    launch = TracedLaunch.of(plan.sources[0], plan.tensors, device.wave)
    found = estimate(launch, device, WHOLE)
    seen = trace(launch, Window(np.arange(launch.groups)), device)
    assert found.element_accesses == sum(int(a.mask.sum()) for a in seen if _is_memory(a, device))
    assert not found.sampled


def test_windows_are_spread_and_keep_to_their_budget(device):
    plan = _product("image")
    launch = TracedLaunch.of(plan.sources[0], plan.tensors, device.wave)
    probe = trace(launch, Window(np.arange(1), _Beginning()), device)
    effort = Effort(exact=0, window=150_000, seed=3)
    windows = choose_windows(launch, device, effort, probe)
    assert len(windows) == WINDOWS
    assert len({(int(w.groups[0]), *(s.start for s in w.slices.values())) for w in windows}) > 1
    for window in windows:
        size = sum(int(a.mask.sum()) for a in trace(launch, window, device) if _is_memory(a, device))
        assert 0 < size <= 2 * effort.window
    again = choose_windows(launch, device, effort, probe)
    assert all(np.array_equal(a.groups, b.groups) and a.slices == b.slices for a, b in zip(windows, again, strict=True))


def test_the_shared_cache_holds_what_was_touched_lately():
    shared = _Shared(100)
    assert shared.missed({"a": 40, "b": 40}) == {"a": 40, "b": 40}
    # 80 lines were touched since, which fit
    assert shared.missed({"b": 40, "c": 10}) == {"b": 0, "c": 10}
    # the kernel before last touched 80 lines, the one between 50
    assert shared.missed({"a": 40}) == {"a": 40}


def test_a_device_without_a_model_says_what_it_lacks():
    with pytest.raises(SimulationError, match=r"pocl.*has no model of its memory.*wave"):
        MemoryModel.of(load_rules().devices["pocl"])

"""Inputs and outputs in memory that the host and the device use by turns."""

from __future__ import annotations

import numpy as np
import pytest

from smartmem_rules.runtime.contexts.shared import shared_memory, shares_memory
from smartmem_rules.runtime.devices import Device, choose
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.programs.shared_programs import context_on
from tests.runtime.plans import constant_values, make_plan


@pytest.fixture(scope="module")
def device() -> Device:
    return choose()


def feed() -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(0).standard_normal((6, 10)).astype(np.float32)}


def expected(x: np.ndarray) -> np.ndarray:
    return (x + constant_values()) * 2


def _needs_shared(device: Device) -> None:
    if not shares_memory(device):
        pytest.skip("the driver has no fine-grained memory of the host")


def test_a_kernel_reads_and_writes_what_the_host_sees(device: Device) -> None:
    import pyopencl as cl

    _needs_shared(device)
    context = context_on(device)
    queue = cl.CommandQueue(context, device.handle)
    memory = shared_memory(context, 64)
    text = "kernel void add(global int *x) { x[get_global_id(0)] += 1; }"
    kernel = cl.Program(context, text).build().add
    kernel.set_args(memory.buffer)
    values = memory.array.view(np.int32)
    for start in (5, 70):
        values[:] = np.arange(start, start + 16)
        cl.enqueue_nd_range_kernel(queue, kernel, (16,), (4,))
        queue.finish()
        np.testing.assert_array_equal(values, np.arange(start + 1, start + 17))


def test_outputs_stay_what_they_were_when_the_plan_runs_again(device: Device) -> None:
    executor = Executor(make_plan(), device)
    given = feed()
    first = executor.run(given)["y"]
    wanted = expected(given["x"])
    given["x"] *= -3
    second = executor.run(given)["y"]
    np.testing.assert_array_equal(first, wanted)
    np.testing.assert_array_equal(second, expected(given["x"]))


def test_a_driver_without_such_memory_gives_the_same(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smartmem_rules.runtime.contexts.memory.shares_memory", lambda _: False)
    executor = Executor(make_plan(), device)
    with executor.taken() as context:
        assert not context._shared
    np.testing.assert_array_equal(executor.run(feed())["y"], expected(feed()["x"]))

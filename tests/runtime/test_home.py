"""Plans that share constants, and inputs and outputs whose memory lies outside of a plan."""

from __future__ import annotations

import numpy as np
import pyopencl as cl

import smartmem_rules as sm
from smartmem_rules.runtime.executor import Executor, Home
from smartmem_rules.runtime.plan_file import SLACK
from smartmem_rules.runtime.programs.shared_programs import context_on
from tests.plan.models import model, normal

WEIGHTS = normal(16, 48)


def executor(home: Home, outside: tuple[str, ...] = ()) -> Executor:
    plan = sm.optimize(model([("MatMul", "x w", "a"), ("Relu", "a", "y")], {"x": normal(8, 16)}, "y", {"w": WEIGHTS}))
    assert plan.device is not None
    return Executor(plan.plan, plan.device, home=home, outside=outside)


def test_equal_constants_have_one_piece_of_memory() -> None:
    device = sm.optimize(model([("Relu", "x", "y")], {"x": normal(2)}, "y", {})).device
    assert device is not None
    home = Home(context=context_on(device))
    first, second = executor(home), executor(home)
    (held,) = first.built.memory.shared.values()
    assert list(second.built.memory.shared.values()) == [held]
    x = normal(8, 16, seed=1)
    for one in (first, second):
        assert np.allclose(one.run({"x": x})["y"], np.maximum(x @ WEIGHTS, 0), atol=1e-5)


def test_a_plan_reads_and_writes_memory_that_it_is_given() -> None:
    device = sm.optimize(model([("Relu", "x", "y")], {"x": normal(2)}, "y", {})).device
    assert device is not None
    home = Home(context=context_on(device))
    one = executor(home, ("x", "y"))
    queue = cl.CommandQueue(home.context, device.handle)
    size = 8 * 48 * 4 + SLACK
    for seed in (1, 2):
        x = normal(8, 16, seed=seed)
        given, made = (cl.Buffer(home.context, cl.mem_flags.READ_WRITE, size) for _ in range(2))
        cl.enqueue_copy(queue, given, x)
        with one.taken() as context:
            context.bind({"x": given, "y": made})
            assert context.run({}, {}) == {}
        y = np.empty((8, 48), np.float32)
        cl.enqueue_copy(queue, y, made)
        assert np.allclose(y, np.maximum(x @ WEIGHTS, 0), atol=1e-5)

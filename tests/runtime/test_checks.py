"""The debug build: what reads or writes outside a tensor is named, and nothing else."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.launch import Ordered
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.storage import stored_bytes
from smartmem_rules.runtime import checks
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import BoundsError, Executor, RunError
from tests.plan.models import Array, Model, Node, i64, model, normal
from tests.plan.random_graphs import models
from tests.plan.running import Mode, plan_of, prepare
from tests.runtime.plans import make_plan

pytestmark = pytest.mark.sampled(6)

MODES = [
    Mode(),
    Mode("none"),
    Mode("dnnfusion"),
    Mode(dtype="float16"),
    Mode(device="nvidia"),
    Mode(device="adreno_740", memory="image"),
]
PADDED = {"pads": [1, 1, 1, 1]}


def debugged(plan: Plan) -> Executor:
    return Executor(plan, choose(), debug=True)


def feed() -> dict[str, Array]:
    return {"x": np.ones((6, 10), np.float32)}


def planted(text: str, wrong: str, memory: str = "buffer") -> Plan:
    plan = make_plan(memory)
    for source in plan.sources:
        if text in source.text:
            object.__setattr__(source, "text", source.text.replace(text, wrong))
            return plan
    raise AssertionError(f"no kernel holds {text}")


@pytest.mark.parametrize("memory", ["buffer", "image"])
def test_kernels_that_stay_inside_run_as_ever(memory: str) -> None:
    plan = make_plan(memory)
    expected = Executor(plan, choose()).run(feed())["y"]
    executor = debugged(plan)
    for _ in range(2):
        np.testing.assert_array_equal(executor.run(feed())["y"], expected)


@pytest.mark.parametrize(
    ("text", "wrong", "memory", "message"),
    [
        (
            "t[i * 10 + j] * 2.0f",
            "t[i * 10 + j + 1] * 2.0f",
            "buffer",
            r"the kernel twice_1 reads outside the tensor 't' \(buffer\[d0d1\] of \[6, 10\], float32\): 4 bytes "
            r"from byte 240 on, and it has 240 bytes; work-item \(5, 9, 0\)$",
        ),
        (
            "y[i * 10 + j] =",
            "y[i * 10 + j - 3] =",
            "buffer",
            r"twice_1 writes outside the tensor 'y' .*4 bytes from byte -\d+ on, and it has 240 bytes; .* "
            r"2 more accesses are outside$",
        ),
        (
            "y[i * 10 + j] =",
            "*(__global float4*)(y + (i * 10 + j + 4) / 4 * 4) = (float4)",
            "buffer",
            r"twice_1 writes outside the tensor 'y' .*16 bytes from byte 240 on",
        ),
        (
            "t[i * 10 + j] * 2.0f",
            "(*(__global const float4*)(t + (i * 10 + j) / 4 * 4 + 20)).s0 * 2.0f",
            "buffer",
            r"reads outside the tensor 't' .*16 bytes from byte 304 on",
        ),
        (
            "y[i * 10 + j] = t[i * 10 + j]",
            "__global const float* row = t + i * 10; y[i * 10 + j] = row[j + 10]",
            "buffer",
            r"twice_1 reads outside the tensor 't' .*; work-item \(5, \d, 0\); 9 more",
        ),
        (
            "t[i * 10 + j] * 2.0f",
            "vload4(i * 10 + j, t).s0 * 2.0f",
            "buffer",
            r"reads outside the tensor 't' .*16 bytes from byte",
        ),
        (
            "write_imagef(t, (int2)(j, i)",
            "write_imagef(t, (int2)(j + 1, i)",
            "image",
            r"add_0 writes outside the tensor 't' \(image\[d0d1\] of \[6, 10\], float32\): texel \(3, \d\), and it "
            r"has 3 x 6 texels; .*; 5 more",
        ),
        (
            "read_imagef(t, nearest, (int2)(j / 4, i))",
            "read_imagef(t, nearest, (int2)(j / 4, i - 1))",
            "image",
            r"twice_1 reads outside the tensor 't' .*texel \(\d, -1\)",
        ),
    ],
)
def test_a_planted_access_is_named(text: str, wrong: str, memory: str, message: str) -> None:
    executor = debugged(planted(text, wrong, memory))
    for _ in range(2):  # each run tells what it met
        with pytest.raises(BoundsError, match=message):
            executor.run(feed())


def test_vector_loads_may_reach_over_the_end() -> None:
    plan = planted("t[i * 10 + j] * 2.0f", "vload4(0, t + i * 10 + j).s0 * 2.0f")
    np.testing.assert_array_equal(debugged(plan).run(feed())["y"], Executor(make_plan(), choose()).run(feed())["y"])


LOADED = """
#define smr_load_half4_where(COUNTS, PLACE) (float4)(*(PLACE))
smr_load_half4_where({0}, t + i * 10 + j - {1}).s0 * 2.0f"""


def test_loads_under_a_condition_are_checked_where_it_holds() -> None:
    plan = planted("t[i * 10 + j] * 2.0f", LOADED.format("i < 6", 0))
    np.testing.assert_array_equal(debugged(plan).run(feed())["y"], Executor(make_plan(), choose()).run(feed())["y"])
    beside = debugged(planted("t[i * 10 + j] * 2.0f", LOADED.format("i > 5", 400)))
    np.testing.assert_array_equal(beside.run(feed())["y"], np.zeros((6, 10)))
    with pytest.raises(BoundsError, match="reads outside the tensor 't'"):
        debugged(planted("t[i * 10 + j] * 2.0f", LOADED.format("i > 4", 400))).run(feed())


def test_what_cannot_be_checked_is_refused() -> None:
    plan = planted("t[i * 10 + j] * 2.0f", "other(t, i * 10 + j) * 2.0f")
    with pytest.raises(RunError, match="no debug build of the kernel twice_1"):
        debugged(plan)


ATTENTION: list[Node] = [
    ("MatMul", "x w", "q"),
    ("Reshape", "q heads", "h"),
    ("Transpose", "h", "t", {"perm": [1, 0, 2]}),
    ("Transpose", "h", "k", {"perm": [1, 2, 0]}),
    ("MatMul", "t k", "s"),
    ("Softmax", "s", "p"),
    ("MatMul", "p t", "o"),
    ("Transpose", "o", "back", {"perm": [1, 0, 2]}),
    ("Reshape", "back flat", "y"),
]
CONVOLUTIONS: list[Node] = [
    ("Conv", "x w", "a", PADDED),
    ("Conv", "a d", "b", {**PADDED, "group": 8}),
    ("Conv", "b u", "c"),
    ("Add", "c a", "e"),
    ("Conv", "e w", "y", PADDED),
]


def weights(*shape: int) -> Array:
    return normal(*shape, seed=sum(shape)) / 8


CASES = {
    "attention": (
        ATTENTION,
        normal(24, 16),
        {"w": weights(16, 16), "heads": i64(24, 2, 8), "flat": i64(24, 16)},
    ),
    "convolutions": (
        CONVOLUTIONS,
        normal(1, 8, 12, 12),
        {"w": weights(8, 8, 3, 3), "d": weights(8, 1, 3, 3), "u": weights(8, 8, 1, 1)},
    ),
}


@pytest.mark.parametrize("mode", [Mode(), Mode(dtype="float16"), Mode("dnnfusion"), Mode(device="nvidia")], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_every_access_of_emitted_kernels_is_checked(case: str, mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    """If tensors are said to be half as large, every kernel complains about every one that it takes."""
    nodes, x, constants = CASES[case]
    plan = plan_of(model(nodes, {"x": x}, "y", constants), mode)
    counters = {launch.tasks.state for launch in plan.launches if isinstance(launch, Ordered)}

    def half(tensor: Stored) -> int:
        # vector loads may reach over the end; without their counters work-groups would wait for ever
        return stored_bytes(tensor) if tensor.name in counters else stored_bytes(tensor) // 2 - 64

    monkeypatch.setattr(checks, "stored_bytes", half)
    with pytest.raises(BoundsError) as caught:
        debugged(plan).run({"x": x})
    expected = [
        (launch.name, argument.tensor)
        for launch, source in zip(plan.launches, plan.sources, strict=True)
        for argument in source.arguments
        if stored_bytes(plan.tensors[argument.tensor]) >= 256 and argument.tensor not in counters
    ]
    found = [
        re.match(r"the kernel (\S+) \w+ outside the tensor '([^']*)'", line) for line in str(caught.value).splitlines()
    ]
    assert len(expected) >= 4
    assert set(expected) <= {(one[1], one[2]) for one in found if one}


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_random_models_stay_inside(mode: Mode) -> None:
    @settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(models())
    def test(drawn: Model) -> None:
        plan, executor = prepare(drawn.proto, mode)
        feeds = {name: drawn.feeds[name] for name in plan.inputs}
        expected, got = executor.run(feeds), debugged(plan).run(feeds)
        for name, array in expected.items():
            np.testing.assert_allclose(got[name], array, rtol=1e-4, atol=1e-4)

    test()

"""Every kernel answers its probes right where the device is right, whatever its template and memory."""

from __future__ import annotations

import numpy as np
import pytest

from smartmem_rules.plan.kernel.model import Layout, row_major
from smartmem_rules.plan.kernel.packing import element_numbers, pack, unpacked
from smartmem_rules.plan.probe import GIVEN, Rows, signs
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.selftest.testing import self_test
from tests.emit.kernel_cases import CASES, KernelCase
from tests.plan.models import normal, whole
from tests.probes.asked import asking

PLAIN = [name for name, case in CASES.items() if not case.holds_ptx]
EXHAUSTIVE = pytest.mark.exhaustive
WHOLE = KernelCase(
    nodes=[("MatMul", "x w", "p"), ("Add", "p b", "s"), ("Relu", "s", "y")],
    feeds={"x": normal(10, 48)},
    constants={"w": normal(48, 24, seed=1), "b": normal(24)},
    templates="panel",
)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", PLAIN)
def test_no_right_kernel_is_accused(name: str) -> None:
    plan = asking(CASES[name])
    assert {n for probe in plan.probes for n in probe.launches} | plan.unasked.keys() == set(range(len(plan.enqueues)))
    report = self_test(Executor(plan, choose("auto")))
    assert not report.findings, str(report)


@pytest.mark.parametrize("name", PLAIN)
def test_kernels_of_every_template_are_asked(name: str) -> None:
    assert not asking(CASES[name]).unasked


def test_a_product_of_small_numbers_is_exact() -> None:
    plan = asking(WHOLE)
    assert [answer.bound for probe in plan.probes for answer in probe.answers] == [0.0] * len(plan.probes)


def test_what_rounds_has_a_bound() -> None:
    softmax = KernelCase(nodes=[("Softmax", "x", "y")], feeds={"x": normal(8, 16)}, templates="reduction")
    bounds = [answer.bound for probe in asking(softmax).probes for answer in probe.answers]
    assert all(0 < bound < 1e-4 for bound in bounds)


def test_halves_are_asked() -> None:
    plan = asking(WHOLE, "float16")
    assert plan.probes
    assert not self_test(Executor(plan, choose("auto"))).findings


@pytest.mark.parametrize(("operator", "gates"), [("RNN", 1), ("LSTM", 4), pytest.param("GRU", 3, marks=EXHAUSTIVE)])
def test_steps_that_hand_halves_on_are_asked(operator: str, gates: int) -> None:
    recurrence = KernelCase(
        nodes=[(operator, "x w r", "y", {"hidden_size": 12})],
        feeds={"x": normal(8, 4, 12)},
        constants={"w": normal(1, 12 * gates, 12, seed=1), "r": normal(1, 12 * gates, 12, seed=2)},
        templates="scan",
    )
    plan = asking(recurrence, "float16")
    assert plan.probes
    device = choose("auto")
    if not device.runs_ordered and any(one.launch.form == "ordered" for one in plan.enqueues):
        pytest.skip(f"work-groups of {device.name} are not known to wait for each other, as those of this plan do")
    assert not self_test(Executor(plan, device)).findings


def test_weights_in_words_are_asked_with_their_own_scales() -> None:
    plan = asking(CASES["panel_words"])
    assert plan.probes
    assert not self_test(Executor(plan, choose("auto"))).findings


def test_weights_of_few_bits_that_are_packed_as_halves_are_asked() -> None:
    weights = KernelCase(
        nodes=[("DequantizeLinear", "q s", "w", {"axis": 1}), ("MatMul", "x w", "y")],
        feeds={"x": normal(10, 48)},
        constants={"q": whole(48, 24, dtype="int8", low=-9, high=9), "s": normal(24, seed=3)},
        templates="panel",
    )
    plan = asking(weights, "float16")
    assert {tensor.storage for name, tensor in plan.tensors.items() if "@" in name} == {"float16"}
    assert plan.probes
    assert not self_test(Executor(plan, choose("auto"))).findings


def test_indices_stay_inside() -> None:
    gather = KernelCase(
        nodes=[("Gather", "x i", "y", {"axis": 0})],
        feeds={"x": normal(5, 4), "i": whole(30, dtype="int64", low=0, high=4)},
        templates="pointwise",
    )
    plan = asking(gather)
    rows = [one.rows for probe in plan.probes for one in probe.fillings if one.kind == GIVEN]
    indices = [one.array() for one in rows if one is not None and one.different.dtype.kind == "i"]
    assert indices
    assert all(array.min() >= 0 and array.max() < 5 for array in indices)
    assert not self_test(Executor(plan, choose("auto"))).findings


def test_a_kernel_that_writes_a_piece_of_a_tensor_answers_for_its_piece() -> None:
    pieces = KernelCase(
        nodes=[
            ("ReduceSum", "x", "s", {"keepdims": 1}),
            ("Softmax", "x", "m"),
            ("ReduceMax", "m", "t", {"keepdims": 1}),
            ("Concat", "s t", "y", {"axis": 1}),
        ],
        feeds={"x": normal(8, 16)},
        templates="",
        memory="image",
    )
    plan = asking(pieces)
    assert sum(a.tensor == "y" for one in plan.enqueues for a in one.source.arguments) == 2
    assert not plan.unasked
    assert not self_test(Executor(plan, choose("auto"))).findings


def test_a_kernel_of_few_results_is_asked_more() -> None:
    few = KernelCase(
        nodes=[("MatMul", "x w", "y")], feeds={"x": normal(1, 16)}, constants={"w": normal(16, 4)}, templates=""
    )
    assert len(asking(few).probes) == 8


def test_both_signs_are_asked() -> None:
    first, second, *_ = asking(WHOLE).probes
    given = [next(one.rows for one in probe.fillings if one.kind == GIVEN) for probe in (first, second)]
    assert given[0] is not None
    assert given[1] is not None
    np.testing.assert_array_equal(given[0].array(), -given[1].array())


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_signs_keep_signs_and_zeros(dtype: str) -> None:
    values = np.array([0.0, -0.0, 1.4, -1.6, 3e-5, -7.0], dtype)
    found = signs(values, -2)
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found == 0, values == 0)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(values))
    assert set(np.abs(found[2:])) <= {0.25, 0.5}


def test_integers_are_no_signs() -> None:
    values = np.array([3, 0, -4], np.int32)
    np.testing.assert_array_equal(signs(values, 1), values)


@pytest.mark.parametrize("width", [1, 3, 6])
def test_rows_give_the_array_again(width: int) -> None:
    array = np.resize(np.arange(9, dtype=np.float32), (4, 3, 6))
    rows = Rows.of(array, width)
    np.testing.assert_array_equal(rows.array(), array)
    assert len(rows.different) <= rows.numbers.size


@pytest.mark.parametrize(
    ("layout", "shape"),
    [(row_major(3), (2, 3, 5)), (Layout("buffer", (2, 0, 1)), (2, 3, 5)), (Layout("image", (0, 2, 1), 1), (2, 3, 5)),
     (Layout("image", (1, 0, 2), 2), (4, 3, 6)), (Layout("image", (0, 1, 2), 1, 1), (2, 3, 8))],
)  # fmt: skip
def test_unpacking_is_packing_undone(layout: Layout, shape: tuple[int, ...]) -> None:
    values = normal(*shape)
    np.testing.assert_array_equal(unpacked(pack(values, layout, "float32"), layout, shape), values)
    assert sorted(n for n in element_numbers(layout, shape) if n >= 0) == list(range(values.size))

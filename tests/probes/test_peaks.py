"""Kernels that leave a part out of a maximum are found: it lies in each part once, and masked rows stay masked."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from smartmem_rules.exchange.kernels import KernelClaim, Stage, Store
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.model import Stored, row_major
from smartmem_rules.plan.probe import OWN
from smartmem_rules.probes.contents import excludes
from smartmem_rules.probes.peaks import PART, PEAK, Peaks, peak_contents, peaks_of, questions_of
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.selftest.testing import asker_of, self_test
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Apply, Expr, Read, Reduce, TensorType
from smartmem_rules.tensor.index import variable
from tests.emit.kernel_cases import KernelCase
from tests.plan.models import Array, Node, normal
from tests.probes.asked import asking

ROWS, COLUMNS, WIDTH = 64, 64, 16
MASKED = float(np.finfo(np.float32).min)
CAUSAL = np.triu(np.full((ROWS, COLUMNS), MASKED, np.float32), 1)
ATTENTION: list[Node] = [("MatMul", "q k", "p"), ("Add", "p m", "s"), ("Softmax", "s", "t"), ("MatMul", "t v", "y")]
VALUES = {"q": normal(3, ROWS, WIDTH), "k": normal(3, WIDTH, COLUMNS, seed=1), "v": normal(3, COLUMNS, WIDTH, seed=2)}


def attention(mask: Array) -> KernelCase:
    return KernelCase(nodes=ATTENTION, feeds=VALUES, constants={"m": mask}, templates="")


CASES = {
    "causal": attention(CAUSAL),
    "biased": attention(normal(ROWS, COLUMNS)),
    "softmax": KernelCase(nodes=[("Softmax", "x", "y")], feeds={"x": normal(6, 72)}, templates=""),
    "largest": KernelCase(nodes=[("ReduceMax", "x", "y", {"keepdims": 0})], feeds={"x": normal(1, 96)}, templates=""),
}
LOOP = re.compile(r"for \(int (\w+) = 0; \1 < (\d+); \+\+\1\) \{\n(?:[^{};]*;\n)?\s*(\w+) = smr_max\d*\(\3")


def shortened(plan: Plan) -> list[str]:
    """The text of the plan's only kernel, with each loop of a maximum beginning late or ending early."""
    (enqueue,) = plan.enqueues
    text = enqueue.source.text
    found = []
    for loop in LOOP.finditer(text):
        whole = loop[0]
        late = whole.replace("= 0;", "= 1;", 1)
        early = whole.replace(f"< {loop[2]};", f"< {int(loop[2]) - 1};", 1)
        found += [text[: loop.start()] + one + text[loop.end() :] for one in (late, early)]
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_maximum_that_leaves_out_columns_is_found(name: str) -> None:
    plan = asking(CASES[name])
    executor = Executor(plan, choose("auto"))
    assert not self_test(executor).findings
    (enqueue,) = plan.enqueues
    texts = shortened(plan)
    assert texts
    for text in texts:
        wrong = list(asker_of(executor).of_other(plan.probes, replace(enqueue.source, text=text)))
        assert wrong, text[text.index("__kernel void") :]


def test_masks_stay_what_they_are() -> None:
    plan = asking(CASES["causal"])
    argument = [a.tensor for a in plan.enqueues[0].source.arguments].index("m")
    assert {probe.fillings[argument].kind for probe in plan.probes} == {OWN}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0, -100.0], True), ([0.0, MASKED], True), ([0.0, -np.inf], True), ([0.0, 1.0], False),
        ([-100.0, -100.0], False), ([0.0, -100.0, 0.5], False), ([0.0, 100.0], False), ([], False),
    ],
)  # fmt: skip
def test_what_masks(values: list[float], expected: bool) -> None:
    assert excludes(np.array(values, np.float32)) is expected


def test_integers_mask_nothing() -> None:
    assert not excludes(np.array([0, -1000], np.int64))


def stored(*shape: int, dtype: str = "float32") -> Stored:
    return Stored(name="x", type=TensorType(dtype, shape), layout=row_major(len(shape)), role="input", storage=dtype)


def test_peaks_visit_each_part() -> None:
    peaks = Peaks(summed=(False, False), extent=100)
    count = questions_of({"x": peaks}, {"x": stored(4, 100)})
    assert count == 4
    places = set()
    for variant in range(count):
        array = peak_contents(stored(4, 100), 0, variant, peaks)
        assert (np.count_nonzero(array == PEAK, axis=1) == 1).all()
        places |= set(array.argmax(axis=1) // PART)
    assert places == set(range(13))


def test_rows_of_sums_are_large_as_a_whole() -> None:
    array = peak_contents(stored(4, 64, 16), 0, 0, Peaks(summed=(False, False, True), extent=64))
    large = np.abs(array) == PEAK
    assert (large.all(axis=2) == large.any(axis=2)).all()
    assert 0 < large.mean() < 0.5


def test_rows_of_sums_may_lie_across() -> None:
    array = peak_contents(stored(4, 16, 64), 0, 0, Peaks(summed=(False, True, False), extent=64))
    large = np.abs(array) == PEAK
    assert (large.all(axis=1) == large.any(axis=1)).all()
    assert large.any()


def test_what_is_no_float_has_no_peaks() -> None:
    array = peak_contents(stored(4, 64, dtype="int32"), 0, 0, Peaks(summed=(False, False), extent=64))
    assert np.abs(array).max() < PEAK


def claim(name: str, value: Expr, stages: dict[str, Stage] | None = None) -> KernelClaim:
    store = Store(tensor=name, indices=(variable(ROW),), value=value)
    return KernelClaim(name=name, stages=stages or {}, stores=(store,))


ROW, K, D = Var("i", 32), Var("k", 40), Var("d", 8)


def test_peaks_are_followed_through_stages_and_sums() -> None:
    q = Read("q", (variable(ROW), variable(D)), "float32")
    k = Read("k", (variable(K), variable(D)), "float32")
    scores = Stage(axes=(K,), value=Reduce("sum", (D,), Apply("mul", (q, k), "float32"), "float32"))
    largest = Reduce("max", (K,), Read("scores", (variable(K),), "float32"), "float32")
    assert peaks_of([claim("y", largest, {"scores": scores})]) == {"k": Peaks(summed=(False, True), extent=40)}


def test_peaks_are_followed_into_the_kernel_before() -> None:
    first = claim("z", Apply("exp", (Read("x", (variable(ROW),), "float32"),), "float32"))
    second = claim("y", Reduce("min", (ROW,), Read("z", (variable(ROW),), "float32"), "float32"))
    assert peaks_of([first, second]) == {"x": Peaks(summed=(False,), extent=32)}


def test_sums_and_small_windows_have_no_peaks() -> None:
    few = Var("w", 9)
    window = Reduce("max", (few,), Read("x", (variable(few),), "float32"), "float32")
    total = Reduce("sum", (K,), Read("x", (variable(K),), "float32"), "float32")
    assert peaks_of([claim("y", window), claim("z", total)]) == {}

"""What a launch says of the kernels that it runs, and that neither can be changed behind the back of who holds it."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace

import pytest

from smartmem_rules.plan.kernel.key import kernel_key, launch_key
from smartmem_rules.plan.kernel.launch import Beside, Chain, Launch, Ordered, Recorded, Single, Wave
from smartmem_rules.plan.kernel.model import Kernel, Stage, Store
from smartmem_rules.plan.kernel.work_items import BlockRows, Grid, TaskGraph, Wait
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Const, Expr, Read
from smartmem_rules.tensor.index import variable

ROW = Var("i", 6)


def single(name: str, reads: str, writes: str, operations: int = 100) -> Single:
    read, written = tuple(reads.split()), tuple(writes.split())
    stores = tuple(Store(t, (variable(ROW),), Read(read[0], (variable(ROW),), "float32")) for t in written)
    kernel = Kernel(
        name=name, form="pointwise", axes=(ROW,), stores=stores, origin=(f"/{name}",), reads=read, writes=written,
        operations=operations,
    )  # fmt: skip
    return Single(kernel=kernel)


A, B, C = single("a", "x", "p"), single("b", "p w", "q"), single("c", "q", "y")
ROWS = BlockRows(axes=(ROW,), m=6, block_rows=2, candidates=(3, 6))
CHAIN = Chain(name="a", steps=(A, B), rows=ROWS)
TASKS = TaskGraph(state="a@order", waits=((), (Wait(0),), (Wait(1, 1),)), patience=5)
ORDERED = Ordered(name="a", steps=(A, B, C), tasks=TASKS)
WAVE = Wave(name="a_wave1", steps=(CHAIN, Chain(name="c", steps=(C,))), shares=4, numbers=(1, 0))
LAUNCHES: list[Launch] = [
    A, CHAIN, Beside(name="a", steps=(CHAIN, C)), ORDERED, WAVE, Recorded(kernel=A.kernel)
]  # fmt: skip


def test_a_chain_reads_what_its_kernels_do_not_write() -> None:
    assert (CHAIN.reads, CHAIN.writes) == (("x", "w"), ("p", "q"))
    assert (CHAIN.origin, CHAIN.operations) == (("/a", "/b"), 200)


def test_rows_that_stay_in_scratch_memory_are_there_within_the_chain_only() -> None:
    kept = replace(CHAIN, rows=replace(ROWS, kept={"p": 8}))
    assert (kept.reads, kept.writes) == (("x", "w"), ("q",))
    assert "keeps 8 elements of a row of p in scratch memory" in str(kept)


def test_an_ordered_launch_writes_its_counters() -> None:
    assert ORDERED.writes == ("p", "q", "y", "a@order")
    assert [TASKS.awaited(step) for step in range(3)] == [set(), {0}, {0, 1}]
    assert "c waits for b up to its own + 1" in str(ORDERED)


def test_a_wave_computes_a_share_of_each_recurrence() -> None:
    assert WAVE.operations == 200 // 4 + 100 // 4
    assert WAVE.only == (1, 0)
    assert ["share 1 of 4" in str(WAVE), "share 0 of 4" in str(WAVE)] == [True, True]


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda one: type(one).__name__)
def test_nothing_of_a_launch_can_be_set(launch: Launch) -> None:
    for one in (launch, launch.kernels[0]):
        for field in fields(one):
            with pytest.raises(FrozenInstanceError):
                setattr(one, field.name, None)


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda one: type(one).__name__)
def test_every_kernel_is_changed_and_all_else_stays(launch: Launch) -> None:
    changed = launch.each(lambda one: replace(one, kernel=replace(one.kernel, operations=7)))
    assert {kernel.operations for kernel in changed.kernels} == {7}
    assert [kernel.name for kernel in changed.kernels] == [kernel.name for kernel in launch.kernels]
    back = iter(launch.kernels)
    assert changed.each(lambda one: replace(one, kernel=next(back))) == launch


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda one: type(one).__name__)
def test_all_steps_know_what_is_written_in_place(launch: Launch) -> None:
    found = launch.with_in_place({"y": "q"})
    assert all(one.in_place == {"y": "q"} for one in (found, *found.steps, *found.singles))


def test_a_single_has_the_key_of_its_kernel_and_ways_to_share_a_launch_differ() -> None:
    assert launch_key(A, {}) == kernel_key(A.kernel, {})
    keys = [launch_key(one, {}) for one in (CHAIN, replace(CHAIN, rows=None), Beside(name="a", steps=(A, B)), ORDERED)]
    assert len(set(keys)) == len(keys)
    sized = replace(CHAIN, grid=Grid.of(3, 1), rows=replace(ROWS, block_rows=3), bytes_moved=99)
    assert launch_key(sized, {}) == keys[0]  # tuned sizes are found again by what is computed alone


def test_a_kernel_with_other_expressions() -> None:
    zero = Const(0.0, "float32")
    stage = Stage("row", (), Read("x", (variable(ROW),), "float32"), "float32")
    kernel = replace(A.kernel, stages=(stage,))

    def without_reads(expr: Expr) -> Expr:
        return zero

    changed = kernel.changed(without_reads, lambda store: replace(store, tensor="z"))
    assert [one.body for one in changed.stages] == [zero]
    assert [(one.tensor, one.value) for one in changed.stores] == [("z", kernel.stores[0].value)]
    assert kernel.changed(without_reads).stores[0].value == zero
    assert (kernel.stages, A.kernel.stores[0].tensor) == ((stage,), "p")

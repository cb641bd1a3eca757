"""Threads: runs of one plan at once, several plans at once, and what happens where memory does not allow it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from smartmem_rules import load, optimize
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor, RunError
from smartmem_rules.runtime.feeds import Array
from tests.plan.models import model, normal
from tests.runtime.plans import make_plan

THREADS = 4
FEEDS = 8

Feeds = dict[str, Array]


def wrong_runs(run: Callable[[Feeds], Feeds], feeds: list[Feeds], runs: int) -> list[int]:
    """The numbers of the runs, of so many in `THREADS` threads, whose outputs differ in any bit from those before."""
    expected = [run(one) for one in feeds]

    def right(number: int) -> bool:
        got = run(feeds[number % len(feeds)])
        return all(
            np.array_equal(got[name], one, equal_nan=True) for name, one in expected[number % len(feeds)].items()
        )

    with ThreadPoolExecutor(THREADS) as pool:
        return [number for number, ok in enumerate(pool.map(right, range(runs))) if not ok]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan with a window, products, a softmax and, on CPUs, launches whose work-groups wait for each other."""
    nodes = [
        ("Conv", "x w", "a", {"pads": [1, 1, 1, 1]}),
        ("Relu", "a", "b"),
        ("Reshape", "b s", "c"),
        ("MatMul", "c u", "d"),
        ("Softmax", "d", "e", {"axis": 0}),
        ("MatMul", "e v", "f"),
        ("Add", "f c", "y"),
    ]
    constants = {"w": normal(6, 3, 3, 3), "s": np.array([6, 64]), "u": normal(64, 48) / 8, "v": normal(48, 64) / 8}
    folder = tmp_path_factory.mktemp("threads")
    onnx.save(model(nodes, {"x": normal(1, 3, 8, 8)}, "y", constants), folder / "model.onnx")
    optimize(folder / "model.onnx").save(folder / "model.plan")
    return folder / "model.plan"


def test_threads_run_one_plan_at_once(saved: Path, all_cases: bool) -> None:
    plan = load(saved)
    runs = 10_000 if all_cases else 400
    assert wrong_runs(plan.run, [plan.random_feeds(seed) for seed in range(FEEDS)], runs) == []
    assert 1 < plan.prepare().contexts <= THREADS


def test_threads_that_open_one_plan_at_once_share_it(saved: Path) -> None:
    plan = load(saved)
    start = threading.Barrier(THREADS)

    def opened(_: int) -> Executor:
        start.wait()
        return plan.prepare()

    with ThreadPoolExecutor(THREADS) as pool:
        assert len(set(pool.map(opened, range(THREADS)))) == 1


@pytest.mark.parametrize(("memory", "storage"), [("buffer", "float32"), ("image", "float16")])
def test_threads_share_constants_of_every_memory(memory: str, storage: str) -> None:
    executor = Executor(make_plan(memory, storage), choose())
    feeds = [{"x": normal(6, 10, seed=seed)} for seed in range(FEEDS)]
    assert wrong_runs(executor.run, feeds, 200) == []


def test_threads_at_extents_of_their_own(tmp_path: Path) -> None:
    made = model([("MatMul", "x w", "a"), ("Softmax", "a", "y")], {"x": normal(7, 16)}, "y", {"w": normal(16, 12)})
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    made.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "n"
    plan = optimize(made, dims={"n": (1, 40)})
    assert plan.dimensions
    feeds = [{"x": normal(rows, 16, seed=rows)} for rows in (1, 2, 7, 23, 40)]
    assert wrong_runs(plan.run, feeds, 200) == []


def test_several_plans_run_at_once(saved: Path) -> None:
    plans = [load(saved) for _ in range(3)]
    feeds = [plans[0].random_feeds(seed) for seed in range(FEEDS)]
    turn = iter(range(10**9))
    assert wrong_runs(lambda one: plans[next(turn) % len(plans)].run(one), feeds, 200) == []


def test_runs_wait_for_each_other_where_one_context_may_be() -> None:
    executor = Executor(make_plan(), choose(), contexts=1)
    assert wrong_runs(executor.run, [{"x": normal(6, 10, seed=seed)} for seed in range(FEEDS)], 200) == []
    assert executor.contexts == 1


def test_runs_wait_for_each_other_where_memory_allows_no_more() -> None:
    plan = make_plan()
    once = Executor(plan, choose()).device_bytes
    executor = Executor(plan, replace(choose(), global_memory=once + 1))
    assert wrong_runs(executor.run, [{"x": normal(6, 10, seed=seed)} for seed in range(FEEDS)], 200) == []
    assert executor.contexts == 1


def test_a_run_that_was_broken_off_leaves_no_context_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = Executor(make_plan(), choose(), contexts=1)
    feeds = {"x": normal(6, 10)}
    expected = executor.run(feeds)["y"]
    for error in (KeyboardInterrupt(), RunError("refused")):
        with monkeypatch.context() as patch:
            patch.setattr("smartmem_rules.runtime.contexts.context.ExecutionContext.enqueue", _raiser(error))
            with pytest.raises(type(error)):
                executor.run(feeds)
        np.testing.assert_array_equal(executor.run(feeds)["y"], expected)
    assert executor.contexts == 1


def _raiser(error: BaseException) -> Callable[..., None]:
    def raise_it(*_: object) -> None:
        raise error

    return raise_it

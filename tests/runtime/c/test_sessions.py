"""Sessions of the C runtime: several at once, asynchronous, cancelled, in memory of the application, measured."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from smartmem_rules import load
from smartmem_rules.runtime.plan_file import save_plan
from tests.runtime.c.library import CALLBACK, CError, CPlan, call, open_plan
from tests.runtime.plans import constant_values, make_plan

CANCELLED, BUSY, BAD_SIZE = 15, 14, 4


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("plans") / "a.plan"
    save_plan(make_plan(), found)
    return found


@pytest.fixture(scope="module")
def plan(path: Path) -> Iterator[CPlan]:
    with open_plan(path) as opened:
        yield opened


def x(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((6, 10)).astype(np.float32)


def y(seed: int) -> np.ndarray:
    return (x(seed) + constant_values()) * 2


def test_what_a_plan_says_of_itself(plan: CPlan) -> None:
    info = plan.info
    assert (info.model, info.level, info.dtype) == (b"tiny", b"smartmem", b"float32")
    assert (info.launches, info.inputs, info.outputs, info.dimensions) == (2, 1, 1, 0)
    assert info.constant_bytes == constant_values().nbytes


def test_sessions_of_several_threads(plan: CPlan) -> None:
    def runs(first: int) -> bool:
        with plan.session() as session:
            return all(np.array_equal(session.run({"x": x(n)})["y"], y(n)) for n in range(first, first + 50))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(runs, range(0, 400, 50)))


def test_a_session_outlives_its_plan(path: Path) -> None:
    with ExitStack() as later:
        with open_plan(path) as opened:
            session = later.enter_context(opened.session())
        with pytest.raises(CError, match="no open plan"):
            call("plan_close", opened.id)
        kept = session.set_inputs({"x": x(1)})
        call("run", session.id)
        del kept


def test_an_asynchronous_run_calls_back(plan: CPlan) -> None:
    called: list[tuple[int, int, bytes]] = []
    with plan.session() as session:
        callback = CALLBACK(lambda handle, status, error, user: called.append((handle, status, error)))
        for n in range(20):
            kept = session.set_inputs({"x": x(n)})
            call("run_async", session.id, callback, None)
            call("wait", session.id)
            np.testing.assert_array_equal(session.outputs()["y"], y(n))
        assert called == [(session.id.value, 0, b"")] * 20
        del kept


def test_a_callback_may_start_the_next_run_and_not_close(plan: CPlan) -> None:
    statuses: list[int] = []

    def again(handle: int, status: int, error: bytes, user: int) -> None:
        statuses.append(status)
        with pytest.raises(CError, match="cannot close its own session"):
            call("session_close", ctypes.c_uint64(handle))
        if len(statuses) < 5:
            call("run_async", ctypes.c_uint64(handle), callback, None)

    callback = CALLBACK(again)
    with plan.session() as session:
        kept = session.set_inputs({"x": x(3)})
        call("run_async", session.id, callback, None)
        call("wait", session.id)
        np.testing.assert_array_equal(session.outputs()["y"], y(3))
        del kept
    assert statuses == [0] * 5


def test_a_cancelled_session_runs_again(plan: CPlan) -> None:
    found = set()
    with plan.session() as session:
        kept = session.set_inputs({"x": x(4)})
        for _ in range(30):
            call("run_async", session.id, None, None)
            call("cancel", session.id)
            try:
                call("wait", session.id)
                found.add(0)
            except CError as error:
                found.add(error.status)
        assert found <= {0, CANCELLED}
        assert CANCELLED in found
        np.testing.assert_array_equal(session.run({"x": x(5)})["y"], y(5))
        del kept


def test_intermediates_in_memory_of_the_application(plan: CPlan) -> None:
    needed = plan.info.intermediate_bytes
    assert needed >= constant_values().nbytes
    whole = np.zeros(needed + 128, np.uint8)
    memory = whole[-whole.ctypes.data % 128 :][:needed]
    with plan.session(memory) as session:
        np.testing.assert_array_equal(session.run({"x": x(6)})["y"], y(6))
    assert memory.any()
    with pytest.raises(CError) as caught, plan.session(memory[: needed // 2]):
        pass
    assert caught.value.status == BAD_SIZE


def test_an_output_in_memory_of_the_application(plan: CPlan) -> None:
    result = np.zeros((6, 10), np.float32)
    with plan.session() as session:
        call("set_output", session.id, b"y", ctypes.c_void_p(result.ctypes.data), ctypes.c_size_t(result.nbytes))
        session.run({"x": x(7)})
    np.testing.assert_array_equal(result, y(7))


def test_the_time_of_each_launch(plan: CPlan) -> None:
    with plan.session() as session:
        session.run({"x": x(8)})
        times = session.profile()
    assert [name for name, _ in times] == ["add_0", "twice_1"]
    assert all(0 <= milliseconds < 1e5 for _, milliseconds in times)


def test_progress_is_told(path: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)
    progress = kind(lambda built, every, user: told.append((built, every)))
    with open_plan(path, progress=progress):
        pass
    assert told[-1] == (2, 2)


def test_a_device_by_its_number_or_name(path: Path) -> None:
    name = load(path).prepare().device.name
    for given in ("auto", "0:0", name[:6].upper()):
        with open_plan(path, device=given) as opened:
            assert opened.info.device
    with pytest.raises(CError, match="there is no device 'nothing'"), open_plan(path, device="nothing"):
        pass

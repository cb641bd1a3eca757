"""In use: Ctrl-C, kill -9, full and read-only disks, processes that share a cache, many runs, too little memory.

`--all` repeats everything that depends on chance as often as the figures of docs/devices.md say.
"""

from __future__ import annotations

import ctypes
import gc
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from smartmem_rules import load, optimize
from smartmem_rules.plan.artefact import Source
from smartmem_rules.runtime import driver_cache
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor, RunError
from smartmem_rules.runtime.programs import compiling
from smartmem_rules.runtime.programs.compiling import BuildError, Programs
from smartmem_rules.tuning.database import Place, Tuned, TuningError, Tunings
from tests.plan.models import model, normal
from tests.runtime.plans import make_plan

SEED = 20261122
ENDS_WITHIN = 30
"""Seconds from Ctrl-C to the end of the process, on a computer that has other work to do."""
RUN = (
    "import sys, numpy as np, smartmem_rules as sm\n"
    "plan = sm.load(sys.argv[1])\n"
    "print('loaded', flush=True)\n"
    "y = plan.run(plan.random_feeds(0))['y']\n"
    "assert np.array_equal(y, np.load(sys.argv[2])), 'wrong outputs'\n"
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A small model, its plan, and the plan's outputs for `random_feeds(0)`."""
    folder = tmp_path_factory.mktemp("in_use")
    nodes = [("MatMul", "x u", "a"), ("Softmax", "a", "b", {"axis": 0}), ("MatMul", "b v", "c"), ("Add", "c x", "y")]
    constants = {"u": normal(16, 24) / 4, "v": normal(24, 16) / 4}
    onnx.save(model(nodes, {"x": normal(12, 16)}, "y", constants), folder / "model.onnx")
    plan = optimize(folder / "model.onnx")
    plan.save(folder / "model.plan")
    np.save(folder / "y.npy", plan.run(plan.random_feeds(0))["y"])
    return folder / "model.onnx", folder / "model.plan", folder / "y.npy"


def environment(cache: Path) -> dict[str, str]:
    """Of a process with a cache of its own, the driver's included."""
    return {**{k: v for k, v in os.environ.items() if k != "POCL_CACHE_DIR"}, "SMARTMEM_CACHE": str(cache)}


def start(saved: tuple[Path, Path, Path], cache: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", RUN, str(saved[1]), str(saved[2])]
    return subprocess.Popen(command, env=environment(cache), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def chances(count: int, most: float) -> Iterator[float]:
    """Seconds, spread over a time; the seed is of no use for what depends on the machine, but costs nothing."""
    draw = random.Random(SEED)
    return ((number + draw.random()) * most / count for number in range(count))


# --- processes that share a cache, and that are killed ---


def test_processes_share_an_empty_cache(saved: tuple[Path, Path, Path], tmp_path: Path, all_cases: bool) -> None:
    processes = [start(saved, tmp_path / "cache") for _ in range(8 if all_cases else 2)]
    for process in processes:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said.decode()[-2000:]


def test_a_process_killed_while_it_compiles_leaves_a_usable_cache(
    saved: tuple[Path, Path, Path], tmp_path: Path, all_cases: bool
) -> None:
    for number, seconds in enumerate(chances(60 if all_cases else 1, 1.5)):
        cache = tmp_path / f"cache{number}"
        killed = start(saved, cache)
        assert killed.stdout is not None
        killed.stdout.readline()
        time.sleep(seconds)
        killed.kill()
        killed.communicate()
        after = start(saved, cache)
        _, said = after.communicate(timeout=300)
        assert after.returncode == 0, f"killed after {seconds:.2f} s: {said.decode()[-2000:]}"
        shutil.rmtree(cache)


def test_a_killed_user_of_the_drivers_folder_is_noticed(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from smartmem_rules.runtime.driver_cache import _forget_killed\n"
        "_forget_killed(Path(sys.argv[1])); print('in use', flush=True); sys.stdin.read()\n"
    )
    before = time.time() - 1  # file systems have clocks of their own
    user = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert user.stdout is not None
    user.stdout.readline()
    assert driver_cache._forget_killed(tmp_path) is None
    user.kill()
    user.communicate()
    since = driver_cache._forget_killed(tmp_path)
    assert since is not None
    assert before <= since <= time.time()
    assert driver_cache._forget_killed(tmp_path) is None


def test_a_process_killed_while_it_writes_the_tunings_loses_at_most_the_last(tmp_path: Path, all_cases: bool) -> None:
    path = tmp_path / "tunings.sqlite"
    place = Place("device", "driver", "profile")
    code = (
        "import sys; from pathlib import Path; from smartmem_rules.tuning.database import *\n"
        "tunings, place = Tunings(Path(sys.argv[1])), Place('device', 'driver', 'profile')\n"
        "for n in range(10**9):\n"
        "    tunings.record(place, Tuned(f'kernel{n}', 'label' * 50, {'rows': n}, 2.0, 1.0)); print(n, flush=True)\n"
    )
    for seconds in chances(40 if all_cases else 3, 0.3):
        path.unlink(missing_ok=True)
        writer = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(seconds)
        writer.kill()
        written = [int(line) for line in (first + writer.communicate()[0]).split()]
        found = {one.kernel: one.choice["rows"] for one in Tunings(path).tuned(place)}
        assert set(written) <= set(found.values())
        assert all(kernel == f"kernel{rows}" for kernel, rows in found.items())
        Tunings(path).record(place, Tuned(kernel="another", label="", choice={"rows": 1}, default_ms=2.0, best_ms=1.0))


# --- disks ---


def test_a_cache_that_takes_no_files_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SMARTMEM_CACHE", str(tmp_path / "file"))
    monkeypatch.setenv("POCL_CACHE_DIR", "")
    monkeypatch.delenv("POCL_CACHE_DIR")
    driver_cache.keep_driver_cache()
    own = Path(os.environ["POCL_CACHE_DIR"])
    assert own.is_dir()
    assert tmp_path not in own.parents


def test_a_full_disk_of_the_cache_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = driver_cache.free_bytes
    monkeypatch.setattr(
        driver_cache, "free_bytes", lambda folder: 1000 if tmp_path in folder.parents else honest(folder)
    )
    monkeypatch.setenv("SMARTMEM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("POCL_CACHE_DIR", "")
    monkeypatch.delenv("POCL_CACHE_DIR")
    driver_cache.keep_driver_cache()
    assert tmp_path not in Path(os.environ["POCL_CACHE_DIR"]).parents


def test_a_disk_that_has_become_full_is_an_error_before_the_driver_meets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyopencl as cl

    device = choose()
    if not device.workaround("driver_keeps_programs"):
        pytest.skip("this driver compiles in memory")
    monkeypatch.setattr(compiling, "free_bytes", lambda folder: 3 << 20)
    source = Source(
        entry="k",
        text="__kernel void k(__global float* y) { y[0] = 31.5f; }",
        arguments=(),
        global_size=(1,),
        local_size=(1,),
    )
    with pytest.raises(BuildError, match=r"has 3 MiB free; make room"):
        Programs(cl.Context([device.handle]), device, [source], ["k"])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_tunings_on_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "tunings.sqlite"
    tunings, place = Tunings(path), Place("device", "driver", "profile")
    tunings.record(place, Tuned(kernel="kernel", label="label", choice={"rows": 4}, default_ms=2.0, best_ms=1.0))
    size = path.stat().st_size
    process = os.fork()
    if process == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        try:
            for number in range(1000):
                tunings.record(
                    place,
                    Tuned(
                        kernel=f"kernel{number}", label="label" * 100, choice={"rows": 4}, default_ms=2.0, best_ms=1.0
                    ),
                )
        except TuningError as error:
            os._exit(7 if "make room" in str(error) else 8)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 7
    assert tunings.choices(place)["kernel"] == {"rows": 4}


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_tunings_are_read_from_a_read_only_disk(tmp_path: Path) -> None:
    tunings, place = Tunings(tmp_path / "tunings.sqlite"), Place("device", "driver", "profile")
    tunings.record(place, Tuned(kernel="kernel", label="label", choice={"rows": 4}, default_ms=2.0, best_ms=1.0))
    before = tunings.path.read_bytes() if tunings.path else b""
    assert tunings.choices(place)["kernel"] == {"rows": 4}
    assert tunings.trials(place, "kernel") == []
    assert tunings.path is not None
    assert tunings.path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["tunings.sqlite"]


# --- Ctrl-C ---


def test_ctrl_c_at_any_stage_of_optimizing(saved: tuple[Path, Path, Path], tmp_path: Path, all_cases: bool) -> None:
    longest = 0.0
    for seconds in chances(60, 6.0) if all_cases else chances(2, 3.0):
        folder = tmp_path / "out"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        plan = folder / "made.plan"
        command = [sys.executable, "-m", "smartmem_rules.cli", "optimize", str(saved[0]), "-o", str(plan), "--json"]
        process = subprocess.Popen(
            command, env=environment(tmp_path / "cache"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        _, said = process.communicate(timeout=ENDS_WITHIN)
        longest = max(longest, time.monotonic() - begin)
        assert process.returncode in (0, 1, 130, -signal.SIGINT), (seconds, said.decode()[-2000:])
        assert "internal error" not in said.decode()
        left = list(folder.iterdir())
        assert left in ([], [plan])
        if left:
            np.testing.assert_array_equal(load(plan).run(load(saved[1]).random_feeds(0))["y"], np.load(saved[2]))
    print(f"the process ended within {longest:.1f} s of Ctrl-C")


def test_a_plan_is_usable_after_ctrl_c_while_it_runs(saved: tuple[Path, Path, Path], all_cases: bool) -> None:
    plan = load(saved[1])
    feeds, expected = plan.random_feeds(0), np.load(saved[2])
    np.testing.assert_array_equal(plan.run(feeds)["y"], expected)
    interrupted = 0
    for seconds in chances(400 if all_cases else 40, 0.004):
        earlier = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, max(1e-5, seconds))
            for _ in range(1000):
                plan.run(feeds)
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, earlier)
        np.testing.assert_array_equal(plan.run(feeds)["y"], expected)
    assert interrupted
    assert plan.prepare().contexts <= 2


# --- many runs, and memory ---


def living_objects() -> int:
    """Python's objects, without references to what is gone: SQLite's connections drop those to cursors by the 200."""
    return sum(type(one) is not weakref.ReferenceType or one() is not None for one in gc.get_objects())


def resident_bytes() -> int:
    """Bytes of this process in memory, without what the C library holds free where it can be told to give that back."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not tell what a process takes")
def test_runs_take_no_more_and_more_memory(saved: tuple[Path, Path, Path], all_cases: bool) -> None:
    plan = load(saved[1])
    feeds = plan.random_feeds(0)
    for _ in range(300):
        plan.run(feeds)
    before = resident_bytes()
    for _ in range(10_000 if all_cases else 1_000):
        plan.run(feeds)
    grown = resident_bytes() - before
    assert grown < 2 << 20, f"{grown / 2**20:.1f} MiB"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not tell what a process takes")
def test_optimizations_take_no_more_and_more_memory(saved: tuple[Path, Path, Path], all_cases: bool) -> None:
    """Of one model, which runs too: no more objects after the second time, of memory what pools still take up."""
    objects, resident = [], []
    for _ in range(100 if all_cases else 3):
        plan = optimize(saved[0])
        plan.run(plan.random_feeds(0))
        gc.collect()
        objects.append(living_objects())
        resident.append(resident_bytes())
    assert max(objects[2:]) <= objects[1] + 10, objects
    shown = [f"{one / 2**20:.1f} MiB" for one in resident]
    assert max(resident[2:]) - resident[1] < 4 << 20, shown
    if all_cases:  # pools are full after some fifty times
        assert max(resident[50:]) - resident[50] < 1 << 19, shown


def test_executors_give_their_memory_back(saved: tuple[Path, Path, Path], all_cases: bool) -> None:
    plan = make_plan()
    size = 64 << 20
    plan = replace(plan, slots=[replace(slot, bytes=size) for slot in plan.slots])
    feeds = {"x": normal(6, 10)}
    Executor(plan, choose()).run(feeds)
    before = resident_bytes()
    for _ in range(20 if all_cases else 8):
        executor = Executor(plan, choose())
        executor.poison()
        executor.run(feeds)
        del executor
    # the driver may still hold what the last one had; the bound is far below what all of them had
    assert resident_bytes() - before < 2 * size * len(plan.slots)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_plan_that_does_not_fit_into_memory_is_refused() -> None:
    plan = make_plan()
    plan = replace(plan, slots=[replace(slot, bytes=1 << 30) for slot in plan.slots])
    device = choose()
    if not device.host_memory:
        pytest.skip("the device has memory of its own")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + (600 << 20), limits[1]))
    try:
        with pytest.raises(RunError, match=r"too little memory .*1024 MiB needed"):
            Executor(plan, device)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)

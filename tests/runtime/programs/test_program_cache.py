"""Programs are kept by source, device and driver; damaged files, full folders and other processes do no harm."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from smartmem_rules.plan.artefact import Source
from smartmem_rules.runtime.devices import Device, choose
from smartmem_rules.runtime.driver_cache import clean_driver_cache, cut_short, drop_damaged
from smartmem_rules.runtime.kept_files import forget_oldest
from smartmem_rules.runtime.programs import program_cache
from smartmem_rules.runtime.programs.compiling import Programs
from smartmem_rules.runtime.programs.program_cache import ProgramCache

TEXT = "__kernel void smr_kernel(__global float* y) { y[get_global_id(0)] = 3.0f; }"


@pytest.fixture(scope="module")
def device() -> Device:
    return choose()


def run(context: Any, device: Device, cache: ProgramCache) -> float:
    source = Source(entry="smr_kernel", text=TEXT, arguments=(), global_size=(4,), local_size=(1,))
    kernel = Programs(context, device, [source], ["three"], cache=cache).kernel(source)
    queue = cl.CommandQueue(context)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 16)
    kernel.set_args(buffer)
    cl.enqueue_nd_range_kernel(queue, kernel, (4,), (1,))
    host = np.zeros(4, np.float32)
    cl.enqueue_copy(queue, host, buffer)
    return float(host[2])


def test_a_kept_program_runs_and_a_damaged_one_is_built_again(tmp_path: Path, device: Device) -> None:
    cache = ProgramCache(tmp_path)
    assert run(cl.Context([device.handle]), device, cache) == 3.0
    (path,) = tmp_path.iterdir()
    written = path.stat().st_mtime_ns
    assert run(cl.Context([device.handle]), device, cache) == 3.0
    good = path.read_bytes()
    path.write_bytes(good[:-10])
    assert cache.read(path.name) is None
    assert run(cl.Context([device.handle]), device, cache) == 3.0
    assert cache.read(path.name) is not None
    assert path.stat().st_mtime_ns > written


def test_a_binary_that_the_driver_refuses_is_built_again(tmp_path: Path, device: Device) -> None:
    cache = ProgramCache(tmp_path)
    cache.write(cache.key(TEXT, [], device), b"no binary of this driver")
    assert run(cl.Context([device.handle]), device, cache) == 3.0


def test_the_key_holds_source_options_device_and_driver(device: Device) -> None:
    keys = {
        ProgramCache.key(TEXT, [], device),
        ProgramCache.key(TEXT + " ", [], device),
        ProgramCache.key(TEXT, ["-DX"], device),
        ProgramCache.key(TEXT, [], replace(device, name="another")),
        ProgramCache.key(TEXT, [], replace(device, driver="another")),
    }
    assert len(keys) == 5


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = ProgramCache(tmp_path, most_bytes=3000)
    for number, name in enumerate("abc"):
        cache.write(name, bytes(900))
        os.utime(tmp_path / name, (number, number))
    assert cache.read("a") is not None  # now the most recent
    cache.write("d", bytes(900))
    assert {path.name for path in tmp_path.iterdir()} == {"a", "c", "d"}


def test_a_folder_is_looked_through_now_and_then_and_stays_within_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def forget(places: Iterable[Path], most_bytes: int, unused: float) -> None:
        looks.append(len(list(tmp_path.iterdir())))
        forget_oldest(places, most_bytes, unused)

    monkeypatch.setattr(program_cache, "forget_oldest", forget)
    cache = ProgramCache(tmp_path, most_bytes=100_000)
    for number in range(1000):
        cache.write(f"{number}", number.to_bytes(2, "big") * 150)
    assert 24 <= len(looks) <= 96, "for each sixteenth of the bound, which is written three times over"
    assert max(looks) * 300 <= 1.5 * cache.most_bytes
    assert cache.read("999") is not None


def test_writers_at_the_same_time_leave_a_whole_file(tmp_path: Path) -> None:
    cache = ProgramCache(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: cache.write("key", bytes([n]) * 100_000), range(40)))
    found = cache.read("key")
    assert found is not None
    assert len(found) == 100_000
    assert len(set(found)) == 1


def test_nothing_is_kept_without_a_folder(device: Device) -> None:
    cache = ProgramCache(None)
    cache.write("key", b"x")
    assert cache.read("key") is None


def test_damaged_and_old_programs_of_the_driver_go(tmp_path: Path) -> None:
    whole = Path("/proc/self/exe").read_bytes()
    for name, content in (("good", whole), ("cut", whole[:5000])):
        folder = tmp_path / "KM" / name / "f"
        folder.mkdir(parents=True)
        (folder / "f.so").write_bytes(content)
        (folder.parent / "last_accessed").touch()
    assert cut_short(tmp_path / "KM" / "cut" / "f" / "f.so")
    drop_damaged(tmp_path, since=time.time() + 60)  # written before the process began that was killed
    assert (tmp_path / "KM" / "cut").exists()
    clean_driver_cache(tmp_path)
    assert [path.name for path in (tmp_path / "KM").iterdir()] == ["good"]
    clean_driver_cache(tmp_path, most_bytes=10)
    assert (tmp_path / "KM" / "good").exists()  # used a moment ago, perhaps by another process
    before = time.time() - 10 * 86400
    os.utime(tmp_path / "KM" / "good" / "last_accessed", (before, before))
    clean_driver_cache(tmp_path, most_bytes=10)
    assert not (tmp_path / "KM" / "good").exists()

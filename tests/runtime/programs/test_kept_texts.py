"""Kernels that were compiled for one plan are found by another one that has some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from smartmem_rules.plan.artefact import Source
from smartmem_rules.runtime.devices import Device, choose
from smartmem_rules.runtime.programs.compiling import Programs
from smartmem_rules.runtime.programs.program_cache import ProgramCache


@pytest.fixture(params=["kept by us", "kept by the driver"])
def device(request: pytest.FixtureRequest) -> Device:
    """Plans of one process share no programs there, as those of several processes."""
    found = choose()
    if request.param == "kept by the driver":
        if not found.workaround("driver_keeps_programs"):
            pytest.skip("this driver keeps nothing of what it built")
        without = {"shares_programs"}
    else:
        without = {"shares_programs", "driver_keeps_programs"}
    return replace(found, workarounds=tuple(one for one in found.workarounds if one.effect not in without))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are compiled."""
    texts: list[str] = []
    made = Programs._made

    def noted(self: Programs, text: str, options: Sequence[str], name: str) -> Any:
        texts.append(text)
        return made(self, text, options, name)

    monkeypatch.setattr(Programs, "_made", noted)
    return texts


def source(number: int) -> Source:
    text = f"__kernel void smr_kernel(__global float* y) {{ y[0] = {number}.0f; }}\n"
    return Source(entry="smr_kernel", text=text, arguments=(), global_size=(1,), local_size=(1,))


class Caches:
    """The folders of one user, and a context."""

    def __init__(self, folder: Path, device: Device) -> None:
        self.folder = folder
        self.device = device
        self.context = cl.Context([device.handle])

    def programs(self, *numbers: int) -> Programs:
        """Of kernels that write these numbers."""
        driver = bool(self.device.workaround("driver_keeps_programs"))
        cache = ProgramCache(None if driver else self.folder / "programs")
        texts = ProgramCache(self.folder / "texts")
        sources = [source(number) for number in numbers]
        return Programs(self.context, self.device, sources, [f"k{n}" for n in numbers], cache=cache, texts=texts)

    def written(self, programs: Programs, number: int) -> float:
        """What the kernel writes that should write a number."""
        kernel = programs.kernel(source(number))
        queue = cl.CommandQueue(self.context)
        buffer = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, 16)
        kernel.set_args(buffer)
        cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,))
        host = np.zeros(4, np.float32)
        cl.enqueue_copy(queue, host, buffer)
        return float(host[0])


@pytest.fixture
def caches(tmp_path: Path, device: Device) -> Caches:
    return Caches(tmp_path, device)


def test_a_plan_compiles_only_what_others_do_not_have(caches: Caches, compiled: list[str]) -> None:
    caches.programs(1, 2, 3)
    compiled.clear()
    programs = caches.programs(3, 4, 1, 5)
    assert [caches.written(programs, number) for number in (3, 4, 1, 5)] == [3.0, 4.0, 1.0, 5.0]
    (anew,) = [text for text in compiled if "5.0f" in text]
    assert "4.0f" in anew
    assert "3.0f" not in anew
    old = [text for text in compiled if text != anew]  # of a driver that keeps it by its source, read once
    assert len(old) == bool(caches.device.workaround("driver_keeps_programs"))
    compiled.clear()
    again = caches.programs(5, 2)
    assert [caches.written(again, number) for number in (5, 2)] == [5.0, 2.0]
    assert not any("5.0f" in text and "2.0f" in text for text in compiled)


def test_kernels_compiled_alone_are_found_too(caches: Caches, compiled: list[str]) -> None:
    caches.programs(1)
    compiled.clear()
    programs = caches.programs(1, 2)
    assert [caches.written(programs, number) for number in (1, 2)] == [1.0, 2.0]
    assert not any("1.0f" in text and "2.0f" in text for text in compiled)


def test_a_text_whose_program_is_gone_is_compiled(caches: Caches, compiled: list[str]) -> None:
    caches.programs(1, 2)
    for path in (caches.folder / "programs").glob("*"):
        path.unlink()
    for path in (caches.folder / "texts").glob("*"):
        if b" smr_kernel_" not in path.read_bytes():  # a compressed source, no home
            path.unlink()
    compiled.clear()
    programs = caches.programs(2, 3)
    assert [caches.written(programs, number) for number in (2, 3)] == [2.0, 3.0]
    (anew,) = compiled
    assert "2.0f" in anew
    assert "3.0f" in anew


def test_a_plan_brings_whole_programs_along_though_it_found_parts(caches: Caches, compiled: list[str]) -> None:
    caches.programs(1, 2)
    binaries = caches.programs(2, 3).binaries()
    compiled.clear()
    sources = [source(number) for number in (2, 3)]
    cache = ProgramCache(None)
    brought = Programs(caches.context, caches.device, sources, ["k2", "k3"], cache=cache, binaries=binaries)
    assert compiled == []
    assert [caches.written(brought, number) for number in (2, 3)] == [2.0, 3.0]

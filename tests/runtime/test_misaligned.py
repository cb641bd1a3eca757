"""Memory of the application at places that no vector of a kernel could be read from: right results, or an error."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from smartmem_rules.api import OptimizedPlan, load
from smartmem_rules.language.blocks.device import Allocator
from smartmem_rules.plan.artefact import Place
from smartmem_rules.plan.kernel.storage import ALIGNMENT
from smartmem_rules.plan.memory.planning import plan_memory
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor, RunError
from smartmem_rules.runtime.format.reading import read_plan
from smartmem_rules.runtime.plan_file import save_plan
from tests.emit.kernel_cases import CASES
from tests.runtime.c.library import CPlan, call, open_memory
from tests.runtime.plans import make_plan

PLACES = (4, 8, 16, 32, 64)
"""Bytes behind the beginning of a page."""


def moved(array: np.ndarray, place: int) -> np.ndarray:
    """A copy that begins so many bytes behind the beginning of a page."""
    whole = np.zeros(array.nbytes + 8192, np.uint8)
    start = -whole.ctypes.data % 4096 + place
    made = whole[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A product whose kernel reads its factors by vectors of eight and sixteen floats."""
    found = tmp_path_factory.mktemp("plans") / "a.plan"
    plan = CASES["panel"].plan()
    assert any("float16*" in source.text or "float8*" in source.text for source in plan.sources)
    save_plan(plan, found)
    return found


@pytest.fixture(scope="module")
def plan(path: Path) -> OptimizedPlan:
    return load(path)


@pytest.mark.parametrize("place", PLACES)
def test_python_reads_a_plan_and_inputs_anywhere(path: Path, plan: OptimizedPlan, place: int) -> None:
    data = moved(np.frombuffer(path.read_bytes(), np.uint8), place)
    feeds = {name: moved(array, place) for name, array in plan.random_feeds(1).items()}
    found = Executor(read_plan(memoryview(data)), choose()).run(feeds)
    expected = plan.run(plan.random_feeds(1))
    assert {name: array.tobytes() for name, array in found.items()} == {n: a.tobytes() for n, a in expected.items()}


@pytest.mark.parametrize("place", PLACES)
def test_c_reads_a_plan_and_inputs_and_writes_outputs_anywhere(path: Path, plan: OptimizedPlan, place: int) -> None:
    data = moved(np.frombuffer(path.read_bytes(), np.uint8), place)
    feeds = {name: moved(array, place) for name, array in plan.random_feeds(1).items()}
    expected = plan.run(plan.random_feeds(1))
    results = {name: moved(np.zeros_like(array), place) for name, array in expected.items()}
    with open_memory(data) as opened, opened.session() as session:
        for name, array in results.items():
            size = ctypes.c_size_t(array.nbytes)
            call("set_output", session.id, name.encode(), ctypes.c_void_p(array.ctypes.data), size)
        session.run(feeds)
    for name, array in expected.items():
        assert results[name].tobytes() == array.tobytes()


@pytest.mark.parametrize("place", PLACES)
def test_c_refuses_misaligned_memory_for_intermediates(tmp_path: Path, place: int) -> None:
    save_plan(make_plan(), tmp_path / "a.plan")
    with open_memory(np.fromfile(tmp_path / "a.plan", np.uint8)) as opened:
        _refuses(opened, moved(np.zeros(opened.info.intermediate_bytes + 256, np.uint8), place))


def _refuses(plan: CPlan, memory: np.ndarray) -> None:
    with pytest.raises(Exception, match="does not begin at a multiple of 128 bytes"), plan.session(memory):
        pass


@pytest.mark.parametrize("asked", [1, 4, 64, 128])
def test_intermediates_are_planned_where_vectors_may_be(asked: int) -> None:
    plan = make_plan()
    made = plan_memory(plan.tensors, plan.launches, Allocator(alignment=asked))
    assert all(place.offset % max(asked, ALIGNMENT) == 0 for place in made.placement.values())
    assert all(slot.bytes % max(asked, ALIGNMENT) == 0 for slot in made.slots)


def test_a_part_of_a_buffer_that_begins_elsewhere_is_refused() -> None:
    plan = make_plan()
    slots = [replace(plan.slots[0], bytes=plan.slots[0].bytes + 256)]
    wrong = replace(plan, slots=slots, placement={"t": Place(0, 32)})
    with pytest.raises(RunError, match="lies 32 bytes behind the beginning of a buffer"):
        Executor(wrong, replace(choose(), alignment=4))

"""Python's collector rests while plans are made."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from smartmem_rules import collector
from smartmem_rules.collector import first_grows_old, no_collections, rare_collections, return_free_memory


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    before = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if before else gc.disable)()


def test_it_rests_inside_and_works_again_afterwards() -> None:
    with no_collections():
        assert not gc.isenabled()
        with no_collections():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_works_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="inside"), no_collections():
        raise ValueError("inside")
    assert gc.isenabled()


def test_blocks_that_end_in_another_order_wait_for_each_other() -> None:
    first, second = no_collections(), no_collections()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()


def test_rare_collections_end_with_the_last_block() -> None:
    before = gc.get_threshold()
    first, second = rare_collections(), rare_collections()
    first.__enter__()
    second.__enter__()
    rarely = gc.get_threshold()
    first.__exit__(None, None, None)
    assert gc.get_threshold() == rarely > before
    second.__exit__(None, None, None)
    assert gc.get_threshold() == before
    with pytest.raises(ValueError, match="inside"), rare_collections():
        raise ValueError("inside")
    assert gc.get_threshold() == before


@pytest.mark.parametrize("given", [(0, 10, 10), (90_000, 30, 60)])
def test_rare_collections_are_no_more_frequent_than_those_of_the_caller(given: tuple[int, int, int]) -> None:
    before = gc.get_threshold()
    gc.set_threshold(*given)
    try:
        with rare_collections():
            assert gc.get_threshold() == given
        assert gc.get_threshold() == given
    finally:
        gc.set_threshold(*before)


def test_a_collector_that_the_caller_switched_off_stays_off() -> None:
    gc.disable()
    with no_collections():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_what_lives_grows_old_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_grown", False)
    gc.unfreeze()  # what others of this process keep out of sight
    with no_collections():
        first, second = [object()], [object()]
        assert any(one is first for one in gc.get_objects(0))
        first_grows_old()
        assert not any(one is first for one in gc.get_objects(0))
        second = [second]
        first_grows_old()
        assert any(one is second for one in gc.get_objects(0))


def test_free_memory_goes_back_where_the_library_can_do_that(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(collector.ctypes, "CDLL", lambda name: SimpleNamespace(malloc_trim=asked.append))
    return_free_memory()
    assert asked == [0]
    monkeypatch.setattr(collector.ctypes, "CDLL", lambda name: SimpleNamespace())
    return_free_memory()
    assert asked == [0]


def test_what_lives_at_the_end_is_not_looked_at() -> None:
    program = (
        "import atexit, gc; from smartmem_rules.collector import leave_to_the_system as leave; "
        "atexit.register(lambda: print(gc.get_freeze_count() > 0)); leave(); leave(); print(gc.get_freeze_count())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "True"]

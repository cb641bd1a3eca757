"""Plans of one process share what a driver would build, and keep, once for each of them."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import pytest

from smartmem_rules.language.blocks.workarounds import workaround_of
from smartmem_rules.runtime.devices import Device, choose
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.programs import shared_programs
from smartmem_rules.runtime.programs.shared_programs import context_on, programs_in
from tests.plan.models import normal
from tests.runtime.plans import make_plan


@pytest.fixture
def device() -> Device:
    found = choose()
    if not found.workaround("shares_programs"):
        pytest.skip("this driver keeps nothing of what it built")
    return found


def test_plans_that_are_there_at_once_share_their_programs(device: Device) -> None:
    plan = make_plan()
    first = Executor(plan, device)
    programs = programs_in(context_on(device), device)
    built = list(programs.values())
    second = Executor(plan, device)
    assert built
    assert list(programs.values()) == built
    feeds = {"x": normal(6, 10)}
    expected = first.run(feeds)
    assert {name: array.tobytes() for name, array in second.run(feeds).items()} == {
        name: array.tobytes() for name, array in expected.items()
    }


@pytest.mark.parametrize("open_", [False, True])
def test_the_last_plan_takes_the_context_with_it_unless_it_stays_open(
    device: Device, open_: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for table, empty in (("_contexts", weakref.WeakValueDictionary()), ("_open_contexts", {}), ("_recent", {})):
        monkeypatch.setattr(shared_programs, table, empty)
    clauses = [["shares_programs"], *([["keeps_context_open"]] if open_ else [])]
    words = ["on", ".*", "because", "of this test"]
    told = replace(device, workarounds=tuple(workaround_of([*clause, *words]) for clause in clauses))
    executor = Executor(make_plan(), told)
    context = weakref.ref(context_on(told))
    programs = [weakref.ref(one) for one in programs_in(context_on(told), told).values()]
    del executor
    gc.collect()
    assert programs
    assert all((one() is not None) == open_ for one in (context, *programs))


def test_elsewhere_each_plan_has_a_context_of_its_own(device: Device) -> None:
    other = replace(device, workarounds=())
    first, second = context_on(other), context_on(other)
    assert first != second
    programs_in(first, other)["text", ()] = "a program"
    assert not programs_in(first, other)

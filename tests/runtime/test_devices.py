"""Devices: the workarounds of device files that concern a driver, and what they do to the environment."""

from __future__ import annotations

import os
from dataclasses import replace
from types import SimpleNamespace

import pytest

from smartmem_rules.language.blocks.workarounds import Workaround, workaround_of
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.language.syntax import Block
from smartmem_rules.plan.artefact import Source
from smartmem_rules.runtime import devices as module
from smartmem_rules.runtime.compiling import Programs
from smartmem_rules.runtime.devices import choose, devices
from smartmem_rules.runtime.program_cache import ProgramCache
from smartmem_rules.runtime.target import target_of
from tests.plan.programs import rules

EVERY = set(range(os.cpu_count() or 1))
SET = "SMR_TEST_VARIABLE"


def clauses(*texts: str) -> list[Workaround]:
    (block,) = parse_text(f"device d {{ {' '.join(f'workaround {text};' for text in texts)} }}").items
    assert isinstance(block, Block)
    return [workaround_of(entry.values) for entry in block.entries]


def platform(name: str, version: str) -> SimpleNamespace:
    return SimpleNamespace(name=name, version=version)


@pytest.mark.parametrize(
    ("bounds", "version", "concerned"),
    [
        ("", "3.0-rc2", True),
        (">=3.0 <3.1", "3.0-rc2", True),
        (">=3.0 <3.1", "3.1+debian", False),
        (">=3.0 <3.1", "no version", True),
        ("<4", "10.2", False),
        ("==25.0.7", "25.0.7-2+deb13u1", True),
        ("<=25", "25.0.7", False),
        (">25", "25.0.0", False),
    ],
)
def test_bounds_of_versions(bounds: str, version: str, concerned: bool) -> None:
    said = f'versions "{bounds}" ' if bounds else ""
    (clause,) = clauses(f'option "-DX" on "portable" {said}because "of this"')
    assert clause.concerns("Portable Computing Language pthread", version) is concerned
    assert not clause.concerns("Another Platform", version)


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The cores that the process may use, as the only element."""
    allowed = [EVERY]
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: allowed[0], raising=False)
    monkeypatch.setenv(SET, "0")  # so that it is taken back after the test
    monkeypatch.delenv(SET)
    return allowed


ON_ALL = f'environment_on_all_cores "{SET}=1" on "Portable" versions "<3.1" because "of this"'
POCL = platform("Portable Computing Language", "OpenCL 3.0 PoCL 3.0-rc2  Linux")


def test_variables_are_set_before_the_driver_is_opened(cores: list[set[int]]) -> None:
    module._set_environment(POCL, clauses(ON_ALL))
    assert os.environ[SET] == "1"


def test_the_users_setting_stays(cores: list[set[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SET, "0")
    module._set_environment(POCL, clauses(ON_ALL))
    assert os.environ[SET] == "0"


def test_a_variable_of_the_users_stops_a_clause(cores: list[set[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the user says how many threads there are, they are not kept on the first cores."""
    clause = ON_ALL.replace("=1", f"=1 unless {SET}_COUNT")
    monkeypatch.setenv(f"{SET}_COUNT", "2")
    module._set_environment(POCL, clauses(clause))
    assert SET not in os.environ
    monkeypatch.delenv(f"{SET}_COUNT")
    module._set_environment(POCL, clauses(clause))
    assert os.environ[SET] == "1"


def test_other_drivers_and_versions_are_left_alone(cores: list[set[int]]) -> None:
    module._set_environment(platform("Intel(R) OpenCL", "OpenCL 3.0 LINUX"), clauses(ON_ALL))
    module._set_environment(platform(POCL.name, "OpenCL 3.0 PoCL 6.0+debian"), clauses(ON_ALL))
    assert SET not in os.environ


def test_a_process_that_may_not_use_all_cores_is_left_alone(cores: list[set[int]]) -> None:
    cores[0] = EVERY | {len(EVERY)}
    module._set_environment(POCL, clauses(ON_ALL))
    assert SET not in os.environ
    module._set_environment(POCL, clauses(ON_ALL.replace("_on_all_cores", "")))
    assert os.environ[SET] == "1"


def test_the_shipped_clauses_are_those_of_the_rule_base() -> None:
    shipped = {one for block in rules().devices.values() for one in block.workaround}
    assert set(module.shipped_workarounds()) == shipped
    assert all(one.reason for one in shipped)


def test_a_users_clause_reaches_the_compiler() -> None:
    own = clauses('option "-DFIVE=5.0f" on ".*" because "of this test"')
    pocl = rules().devices["pocl"]
    device = devices({"own": replace(pocl, workaround=(*pocl.workaround, *own))})[0]
    assert "-DFIVE=5.0f" in device.workaround("option")
    text = "__kernel void five(__global float* y) { y[0] = FIVE; }"
    import pyopencl as cl

    context = cl.Context([device.handle])
    made = Programs(
        context,
        device,
        [Source(entry="five", text=text, arguments=(), global_size=(1,), local_size=(1,))],
        ["five"],
        cache=ProgramCache(None),
    )
    assert made.count == 1


def test_a_target_has_the_clauses_of_its_rule_base() -> None:
    target = target_of("auto", rules())
    assert target.device is not None
    assert target.device.workarounds == choose().workarounds


def test_programs_are_left_to_a_driver_that_keeps_them() -> None:
    device = replace(choose(), workarounds=())
    assert ProgramCache.of(device).folder is not None
    (clause,) = clauses('driver_keeps_programs on ".*" because "of this"')
    assert ProgramCache.of(replace(device, workarounds=(clause,))).folder is None

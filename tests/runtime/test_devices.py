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
from smartmem_rules.runtime import devices as module, target
from smartmem_rules.runtime.devices import Device, DeviceError, choose, devices
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.programs.compiling import Programs
from smartmem_rules.runtime.programs.program_cache import ProgramCache
from smartmem_rules.runtime.target import target_of
from tests.plan.programs import rules
from tests.runtime.plans import make_plan

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


# --- drivers that give wrong results ---

REFUSED = 'refused on "Portable" because "sums are wrong"'


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> Device:
    """The device of these tests, with a driver that is refused, as the only one of this computer."""
    monkeypatch.delenv("SMARTMEM_ANY_DRIVER", raising=False)
    device = replace(
        choose(), platform="Portable Computing Language", driver="5.0+debian", workarounds=tuple(clauses(REFUSED))
    )
    for place in (module, target):
        monkeypatch.setattr(place, "devices", lambda profiles=None: [device])
    return device


@pytest.mark.parametrize("name", ["auto", "Portable", "pocl", "nvidia"])
def test_a_refused_driver_is_not_chosen(wrong: Device, name: str) -> None:
    with pytest.raises(DeviceError, match=r"5\.0\+debian .* is refused: sums are wrong; .*SMARTMEM_ANY_DRIVER=on"):
        target_of(name, rules())


def test_no_plan_runs_on_a_refused_driver(wrong: Device) -> None:
    with pytest.raises(DeviceError, match="is refused"):
        Executor(make_plan(), wrong)


def test_the_user_may_allow_all_drivers(wrong: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMARTMEM_ANY_DRIVER", "on")
    assert choose() == wrong
    assert Executor(make_plan(), wrong).programs


def test_another_device_is_chosen_before_a_refused_one(wrong: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(wrong, place="1:0", kind="custom", workarounds=())
    monkeypatch.setattr(module, "devices", lambda profiles=None: [wrong, other])
    assert [choose(name, rules().devices) for name in ("auto", "nvidia")] == [other, other]
    with pytest.raises(DeviceError, match="is refused"):
        choose("0:0")


@pytest.mark.parametrize(
    ("version", "refused"), [("3.0-rc2", 0), ("3.1+debian", 0), ("5.0+debian", 1), ("5.0", 1), ("6.0+debian", 0)]
)
def test_of_pocl_only_version_5_is_refused(version: str, refused: int) -> None:
    name = "Portable Computing Language pthread-EPYC"
    shipped = [one for one in module.shipped_workarounds() if one.effect == "refused"]
    assert len([one for one in shipped if one.concerns(name, version)]) == refused

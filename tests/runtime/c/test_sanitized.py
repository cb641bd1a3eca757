"""Damaged plans, wrong calls and drivers that fail, under AddressSanitizer and UBSan, on a stub of OpenCL."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from smartmem_rules.plan.artefact import Demands, Plan
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.plan_file import save_plan
from smartmem_rules.runtime.programs.program_cache import ProgramCache
from tests.damage.data import damaged_bytes
from tests.runtime.c.library import SOURCES, compiler, driven, run, sanitized
from tests.runtime.format.files import index_of, numbers, resealed, unused_bytes, with_byte, with_index
from tests.runtime.plans import change_source, make_asking_plan, make_half_plan, make_plan

HEADER = SOURCES / "include" / "smartmem.h"
MISUSE = Path(__file__).with_name("drive_misuse.c")
GOOD, BAD_PLAN, MOST_STATUS = 0, 8, 17
PRELUDE = "#define SMR_CPU\n#ifndef SMR_PRELUDE\n#define SMR_PRELUDE\n#endif // SMR_PRELUDE\n"
WRONG = (0, 1, 2, 7, 127, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1, -1, -2, -(2**31), -(2**63))


@pytest.fixture(scope="module", params=["buffer", "image", "asking"])
def plan_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "a.plan"
    save_plan(make_asking_plan() if request.param == "asking" else make_demanding_plan(request.param), path)
    return path


def make_demanding_plan(memory: str) -> Plan:
    """A plan that asks the stub for all that a plan can ask of a device."""
    plan = make_plan(memory)
    change_source(plan, 1, local_bytes=240)
    demands = Demands(
        names=("Stub", "(", "stub.*device"),
        types=("cpu", "gpu"),
        extensions=("cl_khr_fp64",),
        arrays=99999,
        arrays_capability=(8, 6),
    )
    return replace(plan, demands=demands)


def verdicts(folder: Path, files: list[bytes]) -> list[tuple[int, str]]:
    """What the library says of each file: status and text."""
    drive, stub = sanitized()
    paths = [folder / f"{number}.plan" for number in range(len(files))]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    lines = run(drive, "files", stub, *paths).splitlines()
    assert len(lines) == len(files)
    return [(int(status), text) for status, _, text in (line.partition(" ") for line in lines)]


def test_every_public_function_is_called_wrongly() -> None:
    declared = set(re.findall(r"\b(smartmem_\w+)\(", HEADER.read_text("utf-8"))) - {"smartmem_callback"}
    called = set(re.findall(r"\b(smartmem_\w+)\(", MISUSE.read_text("utf-8")))
    # which takes nothing that could be wrong, and CHECK calls it
    assert declared - called == {"smartmem_last_error"}


def test_a_whole_plan_runs(plan_file: Path, tmp_path: Path) -> None:
    assert verdicts(tmp_path, [plan_file.read_bytes()]) == [(GOOD, "")]


def test_damaged_bytes(plan_file: Path, tmp_path: Path, all_cases: bool) -> None:
    whole = plan_file.read_bytes()
    draws = [random.Random(seed) for seed in range(1000 if all_cases else 100)]
    files = [damaged_bytes(whole, whole[::-1], draw) for draw in draws]
    for seed, (status, text) in enumerate(verdicts(tmp_path, files)):
        assert (status == BAD_PLAN and text) or files[seed] == whole, f"seed {seed}: {status} {text}"


def test_every_byte_between_the_sections_counts(plan_file: Path, tmp_path: Path) -> None:
    whole = plan_file.read_bytes()
    places = unused_bytes(whole)
    files = [with_byte(whole, at) for at in random.Random(0).sample(places, 20)]
    found = [text for _, text in verdicts(tmp_path, files)]
    assert found == ["the plan is damaged: bytes of no section are not zeros"] * 20


def test_wrong_numbers_behind_right_digests(plan_file: Path, tmp_path: Path, all_cases: bool) -> None:
    whole = plan_file.read_bytes()
    files = []
    for seed in range(1000 if all_cases else 150):
        draw = random.Random(seed)
        index = index_of(whole)
        message, field, place = draw.choice(list(numbers(index)))
        try:
            if place is None:
                setattr(message, field, draw.choice(WRONG))
            else:
                getattr(message, field)[place] = draw.choice(WRONG)
        except (ValueError, TypeError, OverflowError):
            continue  # the field does not take the number
        files.append(resealed(whole, lambda made, found=index: made.CopyFrom(found)))
    found = verdicts(tmp_path, files)
    assert all(0 <= status <= MOST_STATUS for status, _ in found)
    assert {GOOD, BAD_PLAN} <= {status for status, _ in found}


def test_an_index_that_is_none(plan_file: Path, tmp_path: Path, all_cases: bool) -> None:
    whole = plan_file.read_bytes()
    index = index_of(whole).SerializeToString()
    draws = [random.Random(seed) for seed in range(1000 if all_cases else 100)]
    files = [with_index(whole, damaged_bytes(index, index[::-1], draw)) for draw in draws]
    assert all(0 <= status <= MOST_STATUS for status, _ in verdicts(tmp_path, files))


def test_wrong_calls(tmp_path: Path) -> None:
    save_plan(make_plan(), tmp_path / "a.plan")
    drive, stub = sanitized()
    run(drive, "misuse", stub, tmp_path / "a.plan")


@pytest.mark.parametrize("made", [make_plan, make_half_plan])
def test_memory_of_the_application_lies_anywhere(tmp_path: Path, made: Callable[[], Plan]) -> None:
    save_plan(made(), tmp_path / "a.plan")
    drive, stub = sanitized()
    run(drive, "places", stub, tmp_path / "a.plan")


@pytest.mark.parametrize("command", ["pages", "own-pages"])
def test_only_pages_that_the_driver_brought_and_nobody_wrote_to_are_given_back(tmp_path: Path, command: str) -> None:
    save_plan(make_plan(), tmp_path / "a.plan")
    drive, stub = sanitized()
    run(drive, command, stub, tmp_path / "a.plan")


def test_threads_that_close_what_others_use(tmp_path: Path) -> None:
    save_plan(make_plan(), tmp_path / "a.plan")
    drive, stub = sanitized()
    run(drive, "threads", stub, tmp_path / "a.plan")


@pytest.mark.exhaustive
def test_threads_under_thread_sanitizer(tmp_path: Path) -> None:
    save_plan(make_plan(), tmp_path / "a.plan")
    drive, stub = driven("threads", compiler(), "-fsanitize=thread", "-g", "-O1")
    run(drive, "threads", stub, tmp_path / "a.plan")


def test_every_call_of_the_driver_may_fail(plan_file: Path, tmp_path: Path) -> None:
    drive, stub = sanitized()
    said = run(drive, "faults", stub, plan_file, tmp_path / "cache")
    failed, _, rest = said.partition(" of ")
    assert int(failed) > int(rest.split()[0]) // 2, said


def key_of(plan: Plan) -> str:
    """The key that Python gives the program of a plan's kernels on the stub."""
    own = [source.text for source in plan.sources]
    for number, text in enumerate(own):
        change_source(plan, number, text=PRELUDE + text)
    rounding = "#pragma OPENCL FP_CONTRACT DEFAULT"
    parts = [
        f"{rounding}\n#define {one.entry} {one.entry}_{number}\n{'' if number else PRELUDE}{own[number]}\n"
        f"#undef {one.entry}\n"
        for number, one in enumerate(plan.sources)
    ]
    names = {"platform": "Stub", "name": "stub device", "driver": "1.0", "version": "OpenCL 3.0 stub"}
    return ProgramCache.key("\n".join(parts), (), replace(choose(), **names))  # type: ignore[arg-type]


def test_python_reads_the_programs_that_c_keeps(tmp_path: Path) -> None:
    plan = make_plan()
    key = key_of(plan)
    save_plan(plan, tmp_path / "a.plan")
    drive, stub = sanitized()
    run(drive, "faults", stub, tmp_path / "a.plan", tmp_path / "cache")
    assert ProgramCache(tmp_path / "cache" / "programs").read(key) == b"stub"


@pytest.mark.parametrize("fits", [True, False])
def test_programs_that_a_plan_brings_along(tmp_path: Path, fits: bool) -> None:
    plan = make_plan()
    key = key_of(plan)
    save_plan(replace(plan, binaries={key if fits else "another": b"compiled"}), tmp_path / "a.plan")
    drive, stub = sanitized()
    environment = {**os.environ, "STUB_LOG": str(tmp_path / "log")}
    run(drive, "files", stub, tmp_path / "a.plan", env=environment)
    calls = (tmp_path / "log").read_text().split()
    assert ("clCreateProgramWithBinary" in calls, "clCreateProgramWithSource" in calls) == (fits, not fits)


def test_a_damaged_program_is_noticed(tmp_path: Path) -> None:
    save_plan(replace(make_plan(), binaries={"key": b"a compiled program"}), tmp_path / "a.plan")
    whole = (tmp_path / "a.plan").read_bytes()
    found = verdicts(tmp_path, [whole.replace(b"a compiled program", b"a compiled Program")])
    assert found == [(BAD_PLAN, "the plan is damaged: the compiled program key is another one than the index says")]


def test_a_name_that_is_no_text_is_damage(tmp_path: Path) -> None:
    save_plan(make_plan(), tmp_path / "a.plan")
    whole = (tmp_path / "a.plan").read_bytes()
    index = index_of(whole).SerializeToString()
    found = verdicts(tmp_path, [with_index(whole, index.replace(b"twice_1", b"twice\x80\xff"))])
    assert found == [(BAD_PLAN, "the plan is damaged: invalid utf8")]

"""Which of several plans a device opens, and what a device is told of plans that it cannot run: on a stub of OpenCL."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from smartmem_rules.plan.artefact import Demands, Plan
from smartmem_rules.runtime.plan_file import save_plan
from tests.runtime.c.library import run, sanitized
from tests.runtime.format.files import resealed
from tests.runtime.plans import change_source, make_plan

ADRENO = Demands(names=("Adreno.*740", "QUALCOMM"), types=())
GPU = Demands(names=("^no platform is called so",), types=("gpu", "accelerator"))
POCL = Demands(names=("Portable Computing Language",), types=("cpu",))
PHONE = {"STUB_NAME": "QUALCOMM Adreno(TM) 740", "STUB_TYPE": "4"}
OTHER_GPU = {"STUB_NAME": "Mali-G710", "STUB_TYPE": "4"}
WRONG_FILE, BAD_PLAN, UNSUITABLE = 7, 8, 10


def made(target: str, demands: Demands, memory: str = "buffer", local_bytes: int = 0) -> Plan:
    plan = make_plan(memory)
    change_source(plan, 1, local_bytes=local_bytes)
    return replace(plan, device=target, demands=demands)


def opened(folder: Path, plans: list[Plan], device: dict[str, str]) -> tuple[int, str]:
    """The status, and the profile of the plan that was opened or the message."""
    drive, stub = sanitized()
    paths = [folder / f"{number}.plan" for number in range(len(plans))]
    for path, plan in zip(paths, plans, strict=True):
        save_plan(plan, path)
    environment = {**os.environ, **device, "STUB_LOG": str(folder / "log")}
    status, _, text = run(drive, "fitting", stub, *paths, env=environment).partition(" ")
    return int(status), text.strip()


def nothing_was_built(folder: Path) -> bool:
    return not {"clCreateContext", "clBuildProgram", "clCreateBuffer"} & set((folder / "log").read_text().split())


@pytest.mark.covering
@pytest.mark.parametrize(
    ("device", "chosen"), [(PHONE, "adreno_740"), (OTHER_GPU, "gpu"), ({"STUB_TYPE": "2"}, "pocl")]
)
@pytest.mark.parametrize("turned", [False, True])
def test_the_name_of_a_device_comes_before_its_type(
    tmp_path: Path, device: dict[str, str], chosen: str, turned: bool
) -> None:
    plans = [made("gpu", GPU), made("adreno_740", ADRENO, "image"), made("pocl", POCL)]
    assert opened(tmp_path, plans[::-1] if turned else plans, device) == (0, chosen)


def test_of_plans_that_are_equally_near_the_first_is_taken(tmp_path: Path) -> None:
    plans = [made("first", ADRENO), made("second", ADRENO)]
    assert opened(tmp_path, plans, PHONE) == (0, "first")
    assert opened(tmp_path, plans[::-1], PHONE) == (0, "second")


def test_a_plan_that_the_device_cannot_run_gives_way_to_one_for_its_type(tmp_path: Path) -> None:
    plans = [made("adreno_740", ADRENO, "image"), made("gpu", GPU)]
    assert opened(tmp_path, plans, {**PHONE, "STUB_IMAGE": "4"}) == (0, "gpu")
    assert opened(tmp_path, plans, {**PHONE, "STUB_IMAGE": "6"}) == (0, "adreno_740")


def test_the_error_says_for_each_plan_why_it_does_not_fit(tmp_path: Path) -> None:
    plans = [
        made("pocl", POCL),
        made("narrow", ADRENO, "image"),
        made("local", ADRENO, local_bytes=65536),
        made("doubles", replace(ADRENO, extensions=("cl_khr_fp6",))),
        made("matrix", replace(ADRENO, capability=(8, 0))),
    ]
    status, text = opened(tmp_path, plans, {**PHONE, "STUB_IMAGE": "2"})
    assert status == UNSUITABLE
    first, *reasons = text.splitlines()
    assert first == (
        "none of the 5 plans is for QUALCOMM Adreno(TM) 740 (Stub); name another device, or export the model for it:"
    )
    for reason, target, part in zip(
        reasons,
        ("pocl", "narrow", "local", "doubles", "matrix"),
        (
            "it is for devices of another name and type",
            "takes images of at most 2 x 2 texels, and an intermediate result has 3 x 6",
            "the kernel twice_1 takes 65536 bytes of local memory, and QUALCOMM Adreno(TM) 740 has 32768",
            "needs the extension cl_khr_fp6, which",
            "NVIDIA's compute capability 8.0, which",
        ),
        strict=True,
    ):
        assert f"for {target}: " in reason
        assert part in reason
    assert nothing_was_built(tmp_path)


@pytest.mark.parametrize(
    ("demands", "local", "device", "fits"),
    [
        (ADRENO, 32768, {}, True),
        (ADRENO, 32769, {}, False),
        (ADRENO, 32769, {"STUB_LOCAL": "32769"}, True),
        (replace(ADRENO, extensions=("cl_khr_fp64",)), 0, {}, True),
        (replace(ADRENO, extensions=("cl_khr_fp64",)), 0, {"STUB_EXTENSIONS": "cl_khr_fp16 cl_khr_fp64x"}, False),
        (replace(ADRENO, extensions=("cl_khr_fp64",)), 0, {"STUB_EXTENSIONS": "cl_khr_fp64x cl_khr_fp64"}, True),
        (ADRENO, 0, {"STUB_GROUP": "0"}, False),
        (replace(ADRENO, capability=(8, 0)), 0, {"STUB_CAPABILITY": "8"}, False),  # the device is not NVIDIA's
        (replace(ADRENO, capability=(8, 0)), 0, "nvidia 8", True),
        (replace(ADRENO, capability=(8, 0)), 0, "nvidia 7", False),
        (replace(ADRENO, capability=(8, 6)), 0, "nvidia 8", False),
        (replace(ADRENO, arrays=99999, arrays_capability=(8, 0)), 99999, "nvidia 8", True),
        (replace(ADRENO, arrays=99999, arrays_capability=(8, 0)), 99999, "nvidia 7", False),
        (replace(ADRENO, arrays=99999), 99999, {}, False),
    ],
)
def test_limits_are_asked_of_the_device(
    tmp_path: Path, demands: Demands, local: int, device: dict[str, str] | str, fits: bool
) -> None:
    if isinstance(device, str):
        device = {"STUB_EXTENSIONS": "cl_nv_device_attribute_query", "STUB_CAPABILITY": device.split()[1]}
    status, _ = opened(tmp_path, [made("one", demands, local_bytes=local)], {**PHONE, **device})
    assert status == (0 if fits else UNSUITABLE)
    assert fits or nothing_was_built(tmp_path)


def test_a_damaged_plan_is_an_error_whichever_would_be_chosen(tmp_path: Path) -> None:
    drive, stub = sanitized()
    save_plan(made("pocl", POCL), tmp_path / "a.plan")
    whole = (tmp_path / "a.plan").read_bytes()
    (tmp_path / "b.plan").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    said = run(drive, "fitting", stub, tmp_path / "a.plan", tmp_path / "b.plan")
    assert said.startswith(f"{BAD_PLAN} plan 2: the plan is damaged")


def test_a_plan_of_before_there_were_profiles_in_it_is_for_no_device(tmp_path: Path) -> None:
    drive, stub = sanitized()
    save_plan(made("pocl", POCL), tmp_path / "a.plan")
    older = resealed((tmp_path / "a.plan").read_bytes(), lambda index: index.ClearField("demands"))
    (tmp_path / "a.plan").write_bytes(older)
    said = run(drive, "fitting", stub, tmp_path / "a.plan")
    assert said.startswith(f"{UNSUITABLE} ")
    assert "plan 1, for pocl: it is for devices of another name" in said
    assert run(drive, "files", stub, tmp_path / "a.plan").startswith("0 ")


@pytest.mark.parametrize("pattern", ["", "(", "[", "a{9999999}", "*", "\\", "x" * 5000, "(" * 300])
def test_a_pattern_that_is_none_names_no_device(tmp_path: Path, pattern: str) -> None:
    drive, stub = sanitized()
    save_plan(made("odd", Demands(names=(pattern,))), tmp_path / "a.plan")
    save_plan(made("pocl", POCL), tmp_path / "b.plan")
    said = run(drive, "fitting", stub, tmp_path / "a.plan", tmp_path / "b.plan")
    # the empty pattern is found in every name, and some systems take more for patterns than others
    assert said.split() == ["0", "odd"] if not pattern else said.split()[1] in ("odd", "pocl")


def test_every_call_of_the_driver_may_fail_while_a_plan_is_chosen(tmp_path: Path) -> None:
    drive, stub = sanitized()
    save_plan(made("pocl", POCL), tmp_path / "a.plan")
    save_plan(made("adreno_740", ADRENO), tmp_path / "b.plan")
    paths = (tmp_path / "a.plan", tmp_path / "cache", tmp_path / "b.plan")
    failed, _, rest = run(drive, "faults", stub, *paths).partition(" of ")
    assert int(failed) > int(rest.split()[0]) // 3  # what a device says of itself may be missing


# --- drivers that give wrong results ---

POCL_5 = {"STUB_NAME": "pthread Portable Computing Language", "STUB_TYPE": "2", "STUB_DRIVER": "5.0+debian"}


def test_a_driver_that_gives_wrong_results_is_refused(tmp_path: Path) -> None:
    status, text = opened(tmp_path, [made("pocl", POCL)], POCL_5)
    assert status == UNSUITABLE
    assert "5.0+debian" in text
    assert "SMARTMEM_ANY_DRIVER=on" in text
    assert nothing_was_built(tmp_path)


@pytest.mark.parametrize("other", [{"STUB_DRIVER": "6.0+debian"}, {"SMARTMEM_ANY_DRIVER": "on"}])
def test_another_version_is_taken_and_so_is_any_where_the_user_says_so(tmp_path: Path, other: dict[str, str]) -> None:
    assert opened(tmp_path, [made("pocl", POCL)], {**POCL_5, **other}) == (0, "pocl")

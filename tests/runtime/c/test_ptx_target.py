"""Kernels for another PTX target than the driver's: the C runtime changes what Python's changes, and builds that."""

from __future__ import annotations

import ctypes as c
import os
from pathlib import Path

import pytest

from smartmem_rules.plan.ptx_target import IS_SET, target_option
from smartmem_rules.runtime.plan_file import save_plan
from smartmem_rules.runtime.programs.ptx_target import TargetError, with_target
from tests.runtime.c.library import DEFINITIONS, SOURCES, compiler, run, sanitized
from tests.runtime.plans import change_source, make_plan
from tests.runtime.programs.test_ptx_target import PTX


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> c.CDLL:
    library = tmp_path_factory.mktemp("ptx") / "libptx.so"
    parts = [SOURCES / "src" / f"{name}.c" for name in ("ptx_target", "status", "opencl", "driver_pages")]
    include = [f"-I{SOURCES / name}" for name in ("src", "include", "nanopb")]
    run(compiler(), *DEFINITIONS, "-O2", "-fPIC", "-shared", *include, "-o", library, *parts, "-ldl")
    found = c.CDLL(str(library))
    found.smartmem_last_error.restype = c.c_char_p
    return found


@pytest.mark.parametrize(
    "binary",
    [
        PTX,
        PTX.replace(b".version 9.0\n", b""),
        PTX.replace(b"//@ wgmma", b"//@ a;//@ b;\n  //@ wgmma"),
        PTX.replace(b".address", b"// .target sm_80\n.address"),
        b"\x7fELF",
        PTX.replace(b"sm_90", b"sm_80"),
        PTX.replace(b"sm_90", b"sm_100"),
        PTX.replace(b"sm_90", b"sm_90a"),
        PTX.replace(b"//@", b"//"),
        b"",
    ],
)
def test_ptx_becomes_what_python_makes_of_it(functions: c.CDLL, binary: bytes) -> None:
    changed = c.c_char_p()
    status = functions.ptx_with_target(binary.rstrip(b"\0"), b"sm_90a", b"k0", c.byref(changed))
    try:
        wanted = with_target(binary, "sm_90a").rstrip(b"\0")
    except TargetError:
        assert status != 0
        assert b"the kernel k0 does not compile: the driver's" in functions.smartmem_last_error()
        return
    assert (status, changed.value) == (0, wanted)


def test_a_program_is_built_from_the_changed_ptx(tmp_path: Path) -> None:
    drive, stub = sanitized()
    plan = make_plan()
    change_source(plan, 0, options=target_option("sm_90a"))
    save_plan(plan, tmp_path / "a.plan")
    log = tmp_path / "log"
    ptx = PTX.rstrip(b"\0").decode()
    env = {**os.environ, "STUB_LOG": str(log), "STUB_BINARY": ptx, "SMARTMEM_CACHE": str(tmp_path / "cache")}
    run(drive, "repeated", stub, tmp_path / "a.plan", "0", "0", env=env)
    text = log.read_text()
    (option,) = target_option("sm_90a")
    made = text.index(f"{option} {IS_SET}\n")
    changed = with_target(PTX, "sm_90a").rstrip(b"\0").decode()
    assert made < text.index(changed) < text.index(f"{option}\n", made + len(option) + len(IS_SET) + 2)


def test_a_driver_without_ptx_is_refused(tmp_path: Path) -> None:
    drive, stub = sanitized()
    plan = make_plan()
    change_source(plan, 0, options=target_option("sm_90a"))
    save_plan(plan, tmp_path / "a.plan")
    with pytest.raises(AssertionError, match="smartmem_plan_open"):
        run(drive, "repeated", stub, tmp_path / "a.plan", "0", "0", env={**os.environ, "SMARTMEM_CACHE": str(tmp_path)})

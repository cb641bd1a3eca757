"""libsmartmem for 64-bit ARM: what is linked, and that it works. `make arm` installs what this needs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from smartmem_rules.runtime.plan_file import save_plan
from tests.runtime.c.library import DEFINITIONS, ROOT, SOURCES, driven, run, sanitized
from tests.runtime.plans import make_plan

TOOLS = ROOT / "build" / "arm"
TARGET = "aarch64-linux-gnu.2.28"
MOST_BYTES = 300_000


@pytest.fixture(scope="module")
def zig(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The cross compiler."""
    python = TOOLS / "venv" / "bin" / "python"
    if not python.exists():
        pytest.skip("there is no cross compiler here; `make arm` installs one")
    cache = str(tmp_path_factory.mktemp("zig"))
    os.environ.update(ZIG_GLOBAL_CACHE_DIR=cache, ZIG_LOCAL_CACHE_DIR=cache)
    return [str(python), "-m", "ziglang", "cc", "-target", TARGET]


def emulator() -> list[str]:
    """What runs programs for ARM."""
    found = TOOLS / "qemu" / "usr" / "bin" / "qemu-aarch64-static"
    if not found.exists():
        pytest.skip("there is no emulator here; `make arm` installs one")
    return [str(found), "-L", str(TOOLS / "root")]


def test_the_library_for_arm_is_small_and_needs_the_c_library_only(zig: list[str], tmp_path: Path) -> None:
    library = tmp_path / "libsmartmem.so"
    parts = [*(SOURCES / "src").glob("*.c"), *(SOURCES / "nanopb").glob("*.c")]
    includes = [f"-I{SOURCES / folder}" for folder in ("include", "src", "nanopb")]
    flags = ("-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-fvisibility=hidden", "-shared", "-s")
    run(*zig, *DEFINITIONS, *flags, *includes, "-o", library, *parts, "-lm", "-ldl", "-lpthread")
    assert library.stat().st_size <= MOST_BYTES
    assert "AArch64" in run("readelf", "-h", library)
    needed = re.findall(r"NEEDED.*\[(.*?)\]", run("readelf", "-d", library))
    assert [name for name in needed if not re.match(r"(libc|libm|libdl|libpthread|ld-linux.*)\.so", name)] == []
    symbols = run("readelf", "--dyn-syms", "-W", library)
    declared = set(re.findall(r"\b(smartmem_\w+)\(", (SOURCES / "include" / "smartmem.h").read_text("utf-8")))
    exported = set(re.findall(r"GLOBAL DEFAULT +\d+ (\w+)$", symbols, re.M))
    assert exported == declared - {"smartmem_callback"}


def test_it_makes_the_same_calls_on_arm(zig: list[str], tmp_path: Path) -> None:
    qemu = emulator()
    plans = []
    for memory in ("buffer", "image"):
        plans += [tmp_path / f"{memory}.plan"] * 2  # in memory that begins with a page, and that does not
        save_plan(make_plan(memory), plans[-1])
    calls = []
    for prefix, (drive, stub) in (([], sanitized()), (qemu, driven("arm", *zig, "-O1"))):
        log = tmp_path / f"{len(calls)}.log"
        said = run(*prefix, drive, "files", stub, *plans, env={**os.environ, "STUB_LOG": str(log)})
        assert said.split() == ["0"] * len(plans)
        calls.append(log.read_text())
    assert calls[0] == calls[1]
    assert calls[0].count("clEnqueueNDRangeKernel") == 2 * len(plans)


def test_wrong_calls_and_failing_drivers_on_arm(zig: list[str], tmp_path: Path) -> None:
    qemu = emulator()
    save_plan(make_plan(), tmp_path / "a.plan")
    drive, stub = driven("arm", *zig, "-O1")
    run(*qemu, drive, "misuse", stub, tmp_path / "a.plan")
    run(*qemu, drive, "faults", stub, tmp_path / "a.plan", tmp_path / "cache")

"""libsmartmem, built once and called from Python."""

from __future__ import annotations

import ctypes as c
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from smartmem_rules.runtime.devices import devices
from smartmem_rules.tensor.types import ALL_DTYPES
from tests.made_once import made_once
from tests.with_all import with_all

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "runtime" / "c"
HERE = Path(__file__).parent
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", f"-O{with_all(1, 0)}")
"""Compiling takes longer than all that runs with it without `--all`."""
DEFINITIONS = (
    "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-DPB_ENABLE_MALLOC=1", "-DPB_FIELD_32BIT=1", "-DPB_BUFFER_ONLY=1",
    "-DPB_VALIDATE_UTF8=1",
)  # fmt: skip
RANK = 16
Array = np.ndarray[Any, np.dtype[Any]]


def compiler() -> str:
    """The C compiler; the test is skipped where there is none."""
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found is None:
        pytest.skip("there is no C compiler on this computer")
    return found


def run(*command: str | Path, **how: Any) -> str:
    """What a command prints; its error output is shown where it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **how)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def _files(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


@cache
def installed() -> Path:
    """Where the library is installed by its own CMake rules."""

    def make(folder: Path) -> None:
        compiler()
        if shutil.which("cmake") is None:
            pytest.skip("there is no cmake on this computer")
        run("cmake", "-S", SOURCES, "-B", folder / "build", "-DCMAKE_INSTALL_LIBDIR=lib")
        run("cmake", "--build", folder / "build", "-j2")
        run("cmake", "--install", folder / "build", "--prefix", folder / "prefix")

    return made_once("c/library", _files(SOURCES), make) / "prefix"


def driven(name: str, *command: str | Path) -> tuple[Path, Path]:
    """The program `drive`, with the library inside, and the stub of OpenCL.

    Args:
        name: of what the compiler makes.
        command: the compiler with its options.
    """
    includes = [f"-I{SOURCES / folder}" for folder in ("include", "src", "nanopb")]
    common = (*command, *DEFINITIONS, "-Wall", "-Wextra", "-Werror", *includes)

    stub = sorted(HERE.glob("stub*.c"))

    def make(folder: Path) -> None:
        run(*common, "-fPIC", "-shared", "-o", folder / "libstub.so", *stub)
        parts = [*(SOURCES / "src").glob("*.c"), *(SOURCES / "nanopb").glob("*.c")]
        run(*common, "-o", folder / "drive", *HERE.glob("drive*.c"), *parts, "-lm", "-ldl", "-lpthread")

    folder = made_once(f"c/{name}", [*_files(SOURCES), *HERE.glob("*.[ch]")], make)
    return folder / "drive", folder / "libstub.so"


@cache
def sanitized() -> tuple[Path, Path]:
    """`driven` with AddressSanitizer and UBSan."""
    return driven("sanitized" + SANITIZERS[-1], compiler(), *SANITIZERS)


def opencl_library() -> str | None:
    """The OpenCL library that pyopencl brings along; None: the system's."""
    found = importlib.util.find_spec("pyopencl")
    home = Path(found.origin).parent if found is not None and found.origin else Path("/")
    return next((str(path) for path in sorted((home / ".libs").glob("libOpenCL*"))), None)


def opencl_environment() -> dict[str, str]:
    """Variables with which a program of its own finds the OpenCL library that pyopencl brings along."""
    library = opencl_library()
    if library is None:
        return {}
    folder = Path(library).parent
    return {
        "SMARTMEM_OPENCL": library,
        "PYOPENCL_HOME": str(folder.parent),
        "LD_LIBRARY_PATH": f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}",
    }


class _PlanOptions(c.Structure):
    _fields_ = (
        ("struct_size", c.c_size_t), ("device", c.c_char_p), ("cache_folder", c.c_char_p),
        ("opencl_library", c.c_char_p), ("trust_constants", c.c_int32), ("progress", c.c_void_p), ("user", c.c_void_p),
        ("self_test", c.c_int32), ("cache_descriptor", c.POINTER(c.c_int)),
    )  # fmt: skip


class _SessionOptions(c.Structure):
    _fields_ = (
        ("struct_size", c.c_size_t), ("memory", c.c_void_p), ("memory_bytes", c.c_size_t), ("record", c.c_int32),
    )  # fmt: skip


class PlanInfo(c.Structure):
    """smartmem_plan_info."""

    _fields_ = (
        ("struct_size", c.c_size_t), ("model", c.c_char_p), ("level", c.c_char_p), ("dtype", c.c_char_p),
        ("device", c.c_char_p), ("driver", c.c_char_p), ("inputs", c.c_uint32), ("outputs", c.c_uint32),
        ("launches", c.c_uint32), ("dimensions", c.c_uint32), ("constant_bytes", c.c_uint64),
        ("session_bytes", c.c_uint64), ("intermediate_bytes", c.c_uint64),
    )  # fmt: skip


class _TensorInfo(c.Structure):
    _fields_ = (
        ("struct_size", c.c_size_t), ("name", c.c_char_p), ("element", c.c_int), ("rank", c.c_uint32),
        ("shape", c.c_int64 * RANK), ("varies", c.c_uint32), ("dimension", c.c_int32 * RANK), ("bytes", c.c_uint64),
    )  # fmt: skip


class _Output(c.Structure):
    _fields_ = (
        ("data", c.c_void_p), ("bytes", c.c_uint64), ("element", c.c_int), ("rank", c.c_uint32),
        ("shape", c.c_int64 * RANK),
    )  # fmt: skip


class _LaunchTime(c.Structure):
    _fields_ = (("name", c.c_char_p), ("milliseconds", c.c_double))


CALLBACK = c.CFUNCTYPE(None, c.c_uint64, c.c_int, c.c_char_p, c.c_void_p)


class CError(Exception):
    """A status of the library that is not good, with its text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status
        self.text = text


@cache
def library() -> Any:
    """The library itself."""
    devices()  # the loader that pyopencl brings along finds its drivers after this
    loaded = c.CDLL(str(installed() / "lib" / "libsmartmem.so"))
    loaded.smartmem_last_error.restype = c.c_char_p
    loaded.smartmem_status_text.restype = c.c_char_p
    return loaded


def call(name: str, *arguments: Any) -> None:
    """A function that gives a status.

    Raises:
        CError: the status is not good.
    """
    status = getattr(library(), f"smartmem_{name}")(*arguments)
    if status:
        raise CError(status, library().smartmem_last_error().decode())


def _dtype(element: int) -> np.dtype[Any]:
    name = ALL_DTYPES[element - 1]
    return np.dtype(getattr(ml_dtypes, name, None) or name)


@dataclass(frozen=True, kw_only=True)
class CPlan:
    """An open plan."""

    id: c.c_uint64

    @property
    def self_test(self) -> str:
        """What the self-test found."""
        report = c.c_char_p()
        call("plan_get_self_test", self.id, c.byref(report))
        return (report.value or b"").decode()

    @property
    def info(self) -> PlanInfo:
        found = PlanInfo(struct_size=c.sizeof(PlanInfo))
        call("plan_get_info", self.id, c.byref(found))
        return found

    def names(self, kind: str) -> list[str]:
        """The names of the `inputs` or `outputs`."""
        found = _TensorInfo(struct_size=c.sizeof(_TensorInfo))
        names = []
        for number in range(getattr(self.info, kind)):
            call(f"plan_get_{kind[:-1]}", self.id, c.c_uint32(number), c.byref(found))
            names.append(found.name.decode())
        return names

    @contextmanager
    def session(self, memory: Array | None = None, record: int = 0) -> Iterator[CSession]:
        """A session; `memory` is for its intermediates, and it records no launches where `record` is below 0."""
        place, size = (None, 0) if memory is None else (memory.ctypes.data, memory.nbytes)
        options = _SessionOptions(struct_size=c.sizeof(_SessionOptions), memory=place, memory_bytes=size, record=record)
        opened = c.c_uint64()
        call("session_open", self.id, c.byref(options), c.byref(opened))
        try:
            yield CSession(id=opened, plan=self)
        finally:
            call("session_close", opened)


@dataclass(frozen=True, kw_only=True)
class CSession:
    """An open session."""

    id: c.c_uint64
    plan: CPlan

    def set_inputs(self, feeds: Mapping[str, Array]) -> list[Array]:
        """Name the inputs; the arrays that come back have to live until the run's end."""
        kept = []
        for name, given in feeds.items():
            array = np.ascontiguousarray(given).reshape(np.shape(given))
            shape = (c.c_int64 * max(1, array.ndim))(*array.shape)
            size = c.c_size_t(array.nbytes)
            call(
                "set_input", self.id, name.encode(), c.c_void_p(array.ctypes.data), size, shape, c.c_size_t(array.ndim)
            )
            kept.append(array)
        return kept

    def outputs(self) -> dict[str, Array]:
        """Copies of the outputs of the last run."""
        found = {}
        for name in self.plan.names("outputs"):
            one = _Output()
            call("get_output", self.id, name.encode(), c.byref(one))
            dtype = _dtype(one.element)
            raw = c.string_at(one.data, one.bytes) if one.bytes else b""
            found[name] = np.frombuffer(raw, dtype).reshape(one.shape[: one.rank])
        return found

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """One inference."""
        kept = self.set_inputs(feeds)
        call("run", self.id)
        del kept
        return self.outputs()

    def profile(self) -> list[tuple[str, float]]:
        """The milliseconds of each launch."""
        count = c.c_size_t()
        times = (_LaunchTime * self.plan.info.launches)()
        call("profile", self.id, times, c.c_size_t(len(times)), c.byref(count))
        assert count.value == len(times)
        return [(one.name.decode(), one.milliseconds) for one in times]


@contextmanager
def open_plan(
    path: Path,
    device: str | None = None,
    cache_folder: Path | None = None,
    progress: Any = None,
    self_test: int = 0,
) -> Iterator[CPlan]:
    """A plan on a device."""
    how = _options(device, cache_folder, progress, self_test)
    yield from _opened(how, "plan_open", str(path).encode())


@contextmanager
def open_by_an_older_program(path: Path) -> Iterator[CPlan]:
    """A plan, opened by a program that was built before there were self-tests: its options end before that field."""
    how = _options()
    how.struct_size = _PlanOptions.self_test.offset
    how.self_test = 1 << 20
    yield from _opened(how, "plan_open", str(path).encode())


@contextmanager
def open_memory(data: Array) -> Iterator[CPlan]:
    """A plan in memory of the application."""
    yield from _opened(_options(), "plan_open_memory", c.c_void_p(data.ctypes.data), c.c_size_t(data.nbytes))


def _options(
    device: str | None = None, cache_folder: Path | None = None, progress: Any = None, self_test: int = 0
) -> _PlanOptions:
    library_path = opencl_library()
    return _PlanOptions(
        struct_size=c.sizeof(_PlanOptions),
        device=None if device is None else device.encode(),
        cache_folder=None if cache_folder is None else str(cache_folder).encode(),
        opencl_library=None if library_path is None else library_path.encode(),
        progress=None if progress is None else c.cast(progress, c.c_void_p),
        self_test=self_test,
    )


def _opened(options: _PlanOptions, function: str, *place: Any) -> Iterator[CPlan]:
    opened = c.c_uint64()
    call(function, *place, c.byref(options), c.byref(opened))
    try:
        yield CPlan(id=opened)
    finally:
        call("plan_close", opened)

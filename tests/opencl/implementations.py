"""Which implementations of OpenCL the correctness suite runs on, and where each comes from."""

from __future__ import annotations

from dataclasses import dataclass, field

SUITE = (
    "tests/runtime/test_executor.py",
    "tests/runtime/test_threads.py",
    "tests/emit/test_group.py",
    "tests/emit/test_texture_kernels.py",
    "tests/emit/test_windows.py",
    "tests/operators/test_recurrent.py",
    "tests/plan/test_winograd.py",
    "tests/plan/test_random_graphs.py",
    "tests/emit/test_node_cases.py",
    "tests/probes/test_making.py",
)
"""Plans by hand, threads, every template, operators of ONNX's node tests, random graphs in all modes."""
MODELS = ("mmoe", "lstm10", "mobilenetv2")
"""Models of `examples/models` that are optimized and compared with the reference."""


@dataclass(frozen=True, kw_only=True)
class Implementation:
    """One implementation.

    Attributes:
        name: how the command line and the results call it.
        icd: the file of its driver, as the OpenCL loader's `OCL_ICD_VENDORS` takes it; `{root}` is the folder of its
            wheels.
        release: the Debian release from which it comes, with `packages`; else it comes from wheels or is shipped.
        wheels: requirements of pip.
        library: its driver in the release, where the packages bring no file for `icd`.
        environment: variables that it needs.
        suite, models: what is run, where that is not all.
    """

    name: str
    icd: str
    release: str = ""
    packages: tuple[str, ...] = ()
    wheels: tuple[str, ...] = ()
    library: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    suite: tuple[str, ...] = SUITE
    models: tuple[str, ...] = MODELS


def _pocl(version: str, release: str) -> Implementation:
    return Implementation(
        name=f"pocl-{version}", icd="/etc/OpenCL/vendors/pocl.icd", release=release, packages=("pocl-opencl-icd",)
    )


def _rusticl(version: str, release: str) -> Implementation:
    return Implementation(
        name=f"rusticl-{version}",
        icd="/etc/OpenCL/vendors/rusticl.icd",
        release=release,
        packages=("mesa-opencl-icd",),
        environment={"RUSTICL_ENABLE": "llvmpipe"},
    )


IMPLEMENTATIONS = (
    Implementation(name="pocl-3.0", icd="{pyopencl}/pocl.icd"),
    _pocl("3.1", "bookworm"),
    _pocl("6.0", "trixie"),
    _pocl("7.1", "sid"),
    Implementation(
        name="intel",
        icd="{root}/intel.icd",
        wheels=("intel-opencl-rt", "intel-cmplr-lib-rt"),
        environment={"LD_LIBRARY_PATH": "{root}/lib"},
    ),
    _rusticl("25", "trixie"),
    _rusticl("26", "sid"),
    Implementation(
        name="oclgrind",
        icd="/etc/OpenCL/vendors/oclgrind.icd",
        release="bookworm",
        packages=("oclgrind",),
        library="/usr/lib/oclgrind/liboclgrind-rt-icd.so",
        # its check of uninitialised values refuses `freeze`, which its own compiler writes
        environment={"OCLGRIND_DATA_RACES": "1", "OCLGRIND_MAX_ERRORS": "20"},
        suite=("tests/runtime/test_executor.py",),
        models=(),
    ),
)

"""The variables of the environment that the program reads, all in one table (docs/configuration.md)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from smartmem_rules.records import dataclass

PREFIX = "SMARTMEM_"


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A variable.

    Attributes:
        default: what holds where it is not set, in words.
        meaning: what it decides, as a sentence without its end.
    """

    name: str
    default: str
    meaning: str

    def value(self) -> str | None:
        """What it is set to; None where it is not."""
        return os.environ.get(self.name)

    @contextmanager
    def set_to(self, value: str) -> Iterator[None]:
        """Have it set to a value for a while, or not set where the value is empty."""
        before = os.environ.pop(self.name, None)
        if value:
            os.environ[self.name] = value
        try:
            yield
        finally:
            os.environ.pop(self.name, None)
            if before is not None:
                os.environ[self.name] = before


CACHE = Variable(
    name="SMARTMEM_CACHE",
    default="`smartmem-rules` in `$XDG_CACHE_HOME` or `~/.cache`",
    meaning="the folder of what can be made again: parsed rules, compiled kernels, plans, tunings; `off` keeps nothing",
)
PLANS = Variable(
    name="SMARTMEM_PLANS",
    default="`plans` in the cache folder",
    meaning="the folder in which `optimize` keeps plans; `off` keeps none",
)
TUNINGS = Variable(
    name="SMARTMEM_TUNINGS",
    default="`tunings.sqlite` in the cache folder",
    meaning="the database of measured sizes of kernels; `off` takes those of the package only",
)
CALIBRATION = Variable(
    name="SMARTMEM_CALIBRATION",
    default="`calibrations` in the cache folder",
    meaning="the folder of what was measured of devices; `off` uses none; with `auto` the first `optimize` measures",
)
VERIFY = Variable(
    name="SMARTMEM_VERIFY",
    default="checks by intervals",
    meaning="`full`: each optimization checks every element of each stage's result",
)
SELF_TEST = Variable(
    name="SMARTMEM_SELF_TEST",
    default="each plan is asked once on each device and driver",
    meaning="`off` runs plans that test themselves without asking their kernels; `again` asks those asked before, too",
)
TRACEBACK = Variable(
    name="SMARTMEM_TRACEBACK",
    default="one line and a file",
    meaning="`raise`: a bug of the program ends a command with its traceback",
)
OPENCL = Variable(
    name="SMARTMEM_OPENCL",
    default="the loader of the system",
    meaning="the OpenCL library that libsmartmem loads; Python does not read it",
)
ANY_DRIVER = Variable(
    name="SMARTMEM_ANY_DRIVER",
    default="drivers that are known to give wrong results are refused",
    meaning="`on`: plans run on drivers that a clause `refused` of a device file names, too",
)
EMULATED_UNITS = Variable(
    name="SMARTMEM_EMULATED_UNITS",
    default="matrix units of the device only",
    meaning="`8.0`, a compute capability: the matrix units that a profile has there are computed in plain OpenCL C, "
    "slowly, on devices that have none, so that their kernels can be tested",
)
COMPUTE_UNITS = Variable(
    name="SMARTMEM_COMPUTE_UNITS",
    default="those of the device",
    meaning="a number: plans are made as for a device with so many compute units (cores of a CPU), for another machine "
    "or to test; they run on any",
)
ONE_LAUNCH = Variable(
    name="SMARTMEM_ONE_LAUNCH",
    default="they share one in plans whose stored type the rule `one_after_another_in_groups` names",
    meaning="`on`: kernels on NVIDIA's GPUs share a launch in which their work-groups wait for each other, where the "
    "cost model says that this is faster; `off`: kernels that need each other have launches of their own",
)
PROCESSOR = Variable(
    name="SMARTMEM_PROCESSOR",
    default="all instructions of the processor",
    meaning="`x86-64`, `x86-64-v2`, `x86-64-v3` or `x86-64-v4`: PoCL before version 7 compiles as for a processor of "
    "this level (`x86-64-v3` is AVX2), and plans are made for its registers; libsmartmem does not read it",
)
VARIABLES = (
    CACHE,
    PLANS,
    TUNINGS,
    CALIBRATION,
    VERIFY,
    SELF_TEST,
    TRACEBACK,
    OPENCL,
    ANY_DRIVER,
    EMULATED_UNITS,
    COMPUTE_UNITS,
    ONE_LAUNCH,
    PROCESSOR,
)


def unknown(environment: Mapping[str, str]) -> list[str]:
    """The variables that begin like ours and that nothing reads: mostly misspelt ones."""
    known = {variable.name for variable in VARIABLES}
    return sorted(name for name in environment if name.startswith(PREFIX) and name not in known)

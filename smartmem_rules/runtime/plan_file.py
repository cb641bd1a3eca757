"""Plans in files that are loaded by mapping them into memory: docs/plan_format.md describes the format.

A CPU device computes with the constants in the mapped pages themselves.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from smartmem_rules.plan.kernel.storage import SLACK
from smartmem_rules.runtime.devices import shipped_workarounds
from smartmem_rules.runtime.format.container import MAGIC, VERSION, DamageError, PlanFileError
from smartmem_rules.whole_files import whole_file

if TYPE_CHECKING:
    from smartmem_rules.plan.artefact import Plan

_DAMAGE = (DamageError, KeyError, TypeError, ValueError, IndexError, OverflowError)
_ZIP = b"PK\x03\x04"
"""How plans of older versions begin."""


def save_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan, all of it or nothing.

    The index expressions of the kernels are left out: their OpenCL C texts are what runs.

    Raises:
        PlanFileError: the file cannot be written.
    """
    from smartmem_rules.runtime.format.writing import write_plan  # start-up time

    target = Path(path)
    try:
        with whole_file(target) as stream:
            write_plan(plan, shipped_workarounds(), stream)
    except OSError as error:
        raise PlanFileError(f"{target}: the plan cannot be written ({error.strerror or error})") from error


def load_plan(path: str | Path) -> Plan:
    """Read a plan.

    Raises:
        PlanFileError: there is no such file, it is no plan, damaged or of another version.
    """
    from smartmem_rules.runtime.format.reading import read_plan  # start-up time

    file = Path(path)
    try:
        with open(file, "rb") as stream:
            return read_plan(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    except FileNotFoundError:
        raise PlanFileError(f"{file}: there is no such file") from None
    except OSError as error:
        raise PlanFileError(f"{file}: the file cannot be read ({error.strerror or error})") from error
    except _DAMAGE as error:
        raise PlanFileError(f"{file}: this is no plan or it is damaged; optimize the model again ({error})") from error


def plan_files(place: str | Path | Sequence[str | Path]) -> list[Path]:
    """Several files as they are given, or the plans of a folder in the order of their names.

    Raises:
        PlanFileError: there is none.
    """
    if not isinstance(place, (str, Path)):
        if not place:
            raise PlanFileError("no plan is given; name at least one file")
        return [Path(one) for one in place]
    found = sorted(Path(place).glob("*.plan"))
    if not found:
        raise PlanFileError(f"{place}: the folder has no file `*.plan`; `smartmem export` writes one")
    return found


def is_plan_file(path: str | Path) -> bool:
    """Whether a file looks like a plan, one of an older version included: models never begin so."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)).startswith((MAGIC, _ZIP))
    except OSError:
        return False


__all__ = ["SLACK", "VERSION", "PlanFileError", "is_plan_file", "load_plan", "plan_files", "save_plan"]

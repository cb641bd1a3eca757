"""Finished plans on disk, each under the digest of all that it depends on.

The folder is `$SMARTMEM_PLANS` (`off` keeps nothing), by default `plans` of the cache folder. Each file is a plan as
`smartmem_rules.load` reads it, its packed constants included, with a note for this store; it is written whole or not at
all, so that processes may share the folder and may be killed, and a damaged one is like none. The least recently used
plans go when all together exceed the bound; all of them may be deleted.

Whole plans are kept, because what a plan is follows from the values of constants too: guards of rules read them, they
are folded, and packed as the kernels' layouts ask. A key without them would have to know which values were read.
"""

from __future__ import annotations

import contextlib
import json
import os
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from smartmem_rules.kept_plans.files import file_digest
from smartmem_rules.kept_plans.key import PlanKey
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.resources import cache_folder
from smartmem_rules.runtime.devices import Device, devices
from smartmem_rules.runtime.plan_file import PlanFileError, load_plan, write_plan
from smartmem_rules.runtime.program_cache import forget_oldest, free_bytes
from smartmem_rules.whole_files import whole_file

VARIABLE = "SMARTMEM_PLANS"
MOST_BYTES = 4 << 30
LEAST_SECONDS = 0.3
"""Of planning; a plan that took less is made again as fast as it is found."""
_NOTE = "kept.json"
_ENDING = ".plan"


@dataclass(frozen=True)
class KeptPlan:
    """A plan from the store with the device that it was made for, None where that is not on this computer."""

    plan: Plan
    device: Device | None


class PlanStore:
    """Plans in a folder.

    Args:
        folder: None keeps nothing.
        most_bytes: what all files together may hold.
    """

    def __init__(self, folder: Path | None, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self.most_bytes = most_bytes

    @staticmethod
    def of_user() -> PlanStore:
        """The user's store."""
        given = os.environ.get(VARIABLE)
        if given:
            return PlanStore(None if given == "off" else Path(given))
        base = cache_folder()
        return PlanStore(None if base is None else base / "plans")

    def read(self, key: PlanKey, here: Callable[[], Sequence[Device]] = devices) -> KeptPlan | None:
        """The plan of a key; None where there is none, it is damaged, or a data file of its model is another one.

        Args:
            here: gives the devices of this computer.
        """
        if self.folder is None:
            return None
        path = self.folder / f"{key.digest}{_ENDING}"
        try:
            note = _read_note(path)
            if note["key"] != key.digest or note["data_files"] != _digests(key.folder, list(note["data_files"])):
                return None
            device = None if note["device"] is None else next(d for d in here() if d.place == note["device"])
            plan = load_plan(path)
            os.utime(path)
        except FileNotFoundError:
            return None
        except (OSError, PlanFileError, zipfile.BadZipFile, ValueError, KeyError, TypeError, StopIteration):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            return None
        plan.statistics = replace(plan.statistics, from_cache=True)
        return KeptPlan(plan, device)

    def write(self, key: PlanKey, plan: Plan, device: Device | None) -> None:
        """Keep a plan; where that is impossible, or what it was made of has changed meanwhile, nothing happens."""
        size = sum(0 if one.packed is None else one.packed.nbytes for one in plan.tensors.values())
        if self.folder is None or size > self.most_bytes:
            return
        names = plan.statistics.model.data_files
        # what the file of a plan cannot hold is a ValueError
        with contextlib.suppress(OSError, ValueError):
            note = {
                "key": key.digest,
                "device": None if device is None else device.place,
                "data_files": _digests(key.folder, names),
            }
            self.folder.mkdir(parents=True, exist_ok=True)
            if free_bytes(self.folder) < 2 * size:
                return
            path = self.folder / f"{key.digest}{_ENDING}"
            with whole_file(path) as stream:
                write_plan(plan, stream)
                _add_note(stream, note)
                if not key.holds(() if key.folder is None else [key.folder / name for name in names]):
                    raise OSError("what the plan was made of has changed")
            forget_oldest(self.folder.iterdir(), self.most_bytes, 0.0)


def _digests(folder: Path | None, names: Sequence[str]) -> dict[str, str]:
    """The digests of a model's data files by name."""
    return {} if folder is None else {name: file_digest(folder / name) for name in names}


def _add_note(stream: IO[bytes], note: dict[str, Any]) -> None:
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_NOTE), json.dumps(note))


def _read_note(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        found: dict[str, Any] = json.loads(archive.read(_NOTE))
    return found

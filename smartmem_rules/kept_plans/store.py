"""Finished plans on disk, each under the digest of all that it depends on.

The folder is `$SMARTMEM_PLANS` (`off` keeps nothing), by default `plans` of the cache folder. Each file is that of a
plan, its packed constants included, and a note for this store behind it; it is written whole or not at all, so that
processes may share the folder and may be killed, and a damaged one is like none. The least recently used
plans go when all together exceed the bound; all of them may be deleted.

Whole plans are kept, because what a plan is follows from the values of constants too: guards of rules read them, they
are folded, and packed as the kernels' layouts ask. A key without them would have to know which values were read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from smartmem_rules.environment import PLANS
from smartmem_rules.kept_plans.files import file_digest
from smartmem_rules.kept_plans.key import PlanKey
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.records import dataclass
from smartmem_rules.resources import cache_folder
from smartmem_rules.runtime.devices import Device, devices, shipped_workarounds
from smartmem_rules.runtime.format.container import DamageError
from smartmem_rules.runtime.kept_files import forget_oldest, free_bytes
from smartmem_rules.whole_files import whole_file

MOST_BYTES = 8 << 30
LEAST_SECONDS = 0.3
"""Of planning; a plan that took less is made again as fast as it is found."""
_DAMAGE = (
    DamageError,
    OSError,
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    OverflowError,
    struct.error,
    StopIteration,
)
_ENDING = ".plan"
_TAIL = struct.Struct("<Q32s")
"""The end of a file: the length of the note before it, and the note's digest."""


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
        given = PLANS.value()
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
            data, note = _opened(path)
            if note["key"] != key.digest or note["data_files"] != _digests(key.folder, list(note["data_files"])):
                return None
            device = None if note["device"] is None else next(d for d in here() if d.place == note["device"])
            from smartmem_rules.runtime.format.reading import read_plan  # start-up time

            plan = read_plan(data)
            os.utime(path)
        except FileNotFoundError:
            return None
        except _DAMAGE:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            return None
        return KeptPlan(replace(plan, statistics=replace(plan.statistics, from_cache=True)), device)

    def write(self, key: PlanKey, plan: Plan, device: Device | None) -> None:
        """Keep a plan; where that is impossible, or what it was made of has changed meanwhile, nothing happens."""
        size = sum(0 if one.packed is None else one.packed.nbytes for one in plan.tensors.values())
        if self.folder is None or size > self.most_bytes:
            return
        from smartmem_rules.runtime.format.writing import write_plan  # start-up time

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
                write_plan(plan, shipped_workarounds(), stream)
                stream.write(_noted(note))
                if not key.holds(() if key.folder is None else [key.folder / name for name in names]):
                    raise OSError("what the plan was made of has changed")
            forget_oldest(self.folder.iterdir(), self.most_bytes, 0.0)


def _digests(folder: Path | None, names: Sequence[str]) -> dict[str, str]:
    """The digests of a model's data files by name."""
    return {} if folder is None else {name: file_digest(folder / name) for name in names}


def _noted(note: dict[str, Any]) -> bytes:
    text = json.dumps(note).encode()
    return text + _TAIL.pack(len(text), hashlib.sha256(text).digest())


def _opened(path: Path) -> tuple[memoryview, dict[str, Any]]:
    """The mapped bytes of a plan, and the note behind them.

    Raises:
        OSError, ValueError, struct.error: the file is gone or damaged.
    """
    with open(path, "rb") as stream:
        mapped = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    length, digest = _TAIL.unpack(mapped[-_TAIL.size :])
    end = len(mapped) - _TAIL.size - length
    text = bytes(mapped[max(0, end) : -_TAIL.size])
    if end < 0 or hashlib.sha256(text).digest() != digest:
        raise ValueError("the note is damaged")
    found: dict[str, Any] = json.loads(text)
    return mapped[:end], found

"""Tuned sizes by kernel, device and driver: what was measured here, and what comes with the package.

Measurements lie in an SQLite file, which several processes may use at once: `$SMARTMEM_TUNINGS` (`off` for none), by
default `tunings.sqlite` in the cache folder.  `tunings/PROFILE.json` in the package holds those of devices that the
profile describes; they are used where nothing was measured on the device itself.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from smartmem_rules.environment import TUNINGS
from smartmem_rules.errors import SmartmemError
from smartmem_rules.records import dataclass
from smartmem_rules.resources import cache_folder, tunings_path
from smartmem_rules.whole_files import write_whole

FORMAT = "smartmem-tunings"
Choice = dict[str, int]
_TABLES = """
CREATE TABLE IF NOT EXISTS best (
    kernel TEXT, device TEXT, driver TEXT, profile TEXT, label TEXT, choice TEXT, default_ms REAL, best_ms REAL,
    PRIMARY KEY (kernel, device, driver));
CREATE TABLE IF NOT EXISTS trial (
    kernel TEXT, device TEXT, driver TEXT, choice TEXT, ratio REAL, PRIMARY KEY (kernel, device, driver, choice));
"""


_WAIT = 30.0
"""Seconds for which a process waits for another one that writes."""


class TuningError(SmartmemError):
    """The database cannot be used, or nothing can be tuned; the message says what to do."""


@dataclass(frozen=True)
class Place:
    """Where something was measured: results hold for this device and driver only."""

    device: str
    driver: str
    profile: str


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The best sizes of a kernel.

    Attributes:
        kernel: its key.
        label: its shape, for people.
        default_ms, best_ms: with the cost model's sizes and with these, measured beside each other.
    """

    kernel: str
    label: str
    choice: Choice
    default_ms: float
    best_ms: float


class Tunings:
    """The database in a file; None keeps nothing and knows only what comes with the package."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    @staticmethod
    def of_user() -> Tunings:
        """The user's database."""
        given = TUNINGS.value()
        if given:
            return Tunings(None if given == "off" else Path(given))
        base = cache_folder()
        return Tunings(None if base is None else base / "tunings.sqlite")

    def choices(self, place: Place) -> dict[str, Choice]:
        """The sizes of all kernels that were tuned for a device: here, or else when the package was made.

        Raises:
            TuningError: the database is damaged.
        """
        found = {one.kernel: one.choice for one in shipped(place.profile)}
        found.update((one.kernel, one.choice) for one in self.tuned(place))
        return found

    def tuned(self, place: Place) -> list[Tuned]:
        """What was found on a device."""
        if self.path is None or not self.path.exists():
            return []
        with self._open(reads_only=True) as connection:
            rows = connection.execute(
                "SELECT kernel, label, choice, default_ms, best_ms FROM best WHERE device = ? AND driver = ?",
                (place.device, place.driver),
            ).fetchall()
            return [_tuned(kernel, label, json.loads(choice), *times) for kernel, label, choice, *times in rows]

    def record(self, place: Place, tuned: Tuned) -> None:
        """Keep the best sizes of a kernel."""
        if self.path is not None:
            with self._open() as connection:
                values = (tuned.kernel, place.device, place.driver, place.profile, tuned.label, _text(tuned.choice))
                times = (tuned.default_ms, tuned.best_ms)
                connection.execute("INSERT OR REPLACE INTO best VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*values, *times))

    def record_trial(self, place: Place, kernel: str, choice: Mapping[str, int], ratio: float) -> None:
        """Keep what one choice took, relative to the cost model's, so that it is not measured again."""
        if self.path is not None:
            with self._open() as connection:
                values = (kernel, place.device, place.driver, _text(choice), ratio)
                connection.execute("INSERT OR REPLACE INTO trial VALUES (?, ?, ?, ?, ?)", values)

    def trials(self, place: Place, kernel: str) -> list[tuple[Choice, float]]:
        """The choices of a kernel that were measured on a device."""
        if self.path is None or not self.path.exists():
            return []
        with self._open(reads_only=True) as connection:
            rows = connection.execute(
                "SELECT choice, ratio FROM trial WHERE kernel = ? AND device = ? AND driver = ?",
                (kernel, place.device, place.driver),
            ).fetchall()
            return [(_checked(json.loads(choice)), _number(ratio)) for choice, ratio in rows]

    @contextmanager
    def _open(self, reads_only: bool = False) -> Iterator[sqlite3.Connection]:
        """The database; one that is only read may lie on a read-only disk."""
        assert self.path is not None
        try:
            if not reads_only:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=_WAIT)) as connection, connection:
                if not reads_only or not _has_tables(connection):
                    connection.executescript(_TABLES)
                yield connection
        except (sqlite3.Error, OSError, ValueError, TypeError) as error:
            raise TuningError(
                f"{self.path}: the database of tuned kernels cannot be used ({error}); make room on its disk or delete "
                "the file, or name another one in SMARTMEM_TUNINGS (`off` for none)"
            ) from error


def _has_tables(connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {"best", "trial"} <= {name for (name,) in found}


def export(place: Place, tuned: list[Tuned], path: Path) -> None:
    """Write what was found on a device into a file of the form that comes with the package, beside what it holds.

    Raises:
        TuningError: the file cannot be read or written.
    """
    known = {one.kernel: one for one in read(path)} if path.exists() else {}
    known.update({one.kernel: one for one in tuned})
    kernels = [asdict(one) for one in sorted(known.values(), key=lambda one: (one.label, one.kernel))]
    data = {"format": FORMAT, **asdict(place), "kernels": kernels}
    lines = json.dumps({**data, "kernels": []}, indent=1).replace(
        '"kernels": []', '"kernels": [\n' + ",\n".join("  " + json.dumps(one) for one in kernels) + "\n ]"
    )
    try:
        write_whole(path, (lines + "\n").encode())
    except OSError as error:
        raise TuningError(f"{path}: the tunings cannot be written ({error.strerror or error})") from error


def shipped(profile: str) -> list[Tuned]:
    """What comes with the package for a device profile."""
    path = tunings_path() / f"{profile}.json"
    return read(path) if path.is_file() else []


def read(path: Path) -> list[Tuned]:
    try:
        data: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if data["format"] != FORMAT:
            raise ValueError("it has another format")
        return [_tuned(**one) for one in data["kernels"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TuningError(f"{path}: this is no file of tuned kernels ({error})") from error


def _tuned(kernel: Any, label: Any, choice: Any, default_ms: Any, best_ms: Any) -> Tuned:
    if not isinstance(kernel, str) or not isinstance(label, str):
        raise ValueError(f"{kernel!r} is no kernel")
    return Tuned(
        kernel=kernel, label=label, choice=_checked(choice), default_ms=_number(default_ms), best_ms=_number(best_ms)
    )


def _checked(choice: Any) -> Choice:
    if not isinstance(choice, dict) or not all(type(v) is int and 0 <= v < 2**31 for v in choice.values()):
        raise ValueError(f"{choice!r} are no sizes of a kernel")
    return choice


def _number(value: Any) -> float:
    if not isinstance(value, int | float):
        raise ValueError(f"{value!r} is no time")
    return value


def _text(choice: Mapping[str, int]) -> str:
    return json.dumps(dict(choice), sort_keys=True)

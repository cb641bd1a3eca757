"""What was found out about rule texts before, kept on disk by content.

The folder is `$SMARTMEM_CACHE` (`off` keeps nothing), by default one of the user's caches.  A file belongs to one
version of the engine, by a digest of its sources, so nothing in it can be out of date; all of it may be deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import pickle
import re
import shutil
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from smartmem_rules.collector import no_collections
from smartmem_rules.records import is_frozen
from smartmem_rules.resources import cache_folder
from smartmem_rules.whole_files import write_whole

_ENGINE = ("language", "analysis", "rulebase", "tensor", "guards")
_MOST_FILES = 512
_MOST_ENGINES = 3


def folder() -> Path | None:
    """Where to keep things, None where nothing is to be kept."""
    base = cache_folder()
    return None if base is None else base / engine_digest()


@cache
def engine_digest() -> str:
    """A digest of the code that parses and analyses."""
    package = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for name in _ENGINE:
        for path in sorted((package / name).rglob("*.py")):
            digest.update(path.read_bytes())
    digest.update((package / "records.py").read_bytes())
    for grammar in (package / "grammar", package.parent / "grammar"):
        if (grammar / "smr.lark").is_file():
            digest.update((grammar / "smr.lark").read_bytes())
    return digest.hexdigest()[:16]


def digest_of(*texts: str) -> str:
    """The key of texts."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def read_bytes(name: str) -> bytes | None:
    """What `write_bytes` kept under the name, None where there is nothing that can be read."""
    place = folder()
    if place is None:
        return None
    try:
        return (place / name).read_bytes()
    except OSError:
        return None


def write_bytes(name: str, content: bytes) -> None:
    """Keep a file; where that is impossible nothing happens."""
    place = folder()
    if place is not None:
        with contextlib.suppress(OSError):
            _write(place / name, content)


def read_pickle(key: str) -> Any:
    """What `write_pickle` kept under the key, None where there is nothing that can be read."""
    kept = read_bytes(f"{key}.pickle")
    if kept is None:
        return None
    try:
        return unpacked(kept)
    except Exception:  # a damaged or foreign file is like none
        return None


def write_pickle(key: str, value: Any) -> None:
    """Keep a value; where that is impossible nothing happens."""
    place = folder()
    if place is None:
        return
    with contextlib.suppress(OSError, pickle.PicklingError, RecursionError):
        if place.is_dir() and len(list(place.glob("*.pickle"))) > _MOST_FILES:
            for old in place.glob("*.pickle"):
                old.unlink(missing_ok=True)
        _write(place / f"{key}.pickle", packed(value))


def packed(value: Any) -> bytes:
    """A value as bytes, which `unpacked` reads.

    Raises:
        PicklingError, RecursionError: that is impossible.
    """
    content = io.BytesIO()
    _Pickler(content).dump(value)
    return content.getvalue()


def unpacked(content: bytes) -> Any:
    """What `packed` made bytes of; foreign bytes raise any exception."""
    with no_collections():
        return pickle.loads(content)


class _Pickler(pickle.Pickler):
    """Writes immutable records as calls of their classes.

    These are read in two thirds of the time that `dataclasses` takes to restore a state: the rules are 50,000 records,
    and each process reads them.
    """

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._names: dict[type, tuple[str, ...] | None] = {}

    def reducer_override(self, value: Any) -> Any:
        """How to write a value; NotImplemented leaves it to `pickle`."""
        kind = type(value)
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return tuple.__new__, (kind, tuple(value))  # a named tuple's own `__new__` is a Python function
        if kind not in self._names:
            self._names[kind] = _constructed_from(kind)
        names = self._names[kind]
        if names is None:
            return NotImplemented
        return kind, tuple(getattr(value, name) for name in names)


def _constructed_from(kind: type) -> tuple[str, ...] | None:
    """The fields of which a record is all made, in the order in which its class takes them; None for other types."""
    if not is_dataclass(kind) or hasattr(kind, "__post_init__") or "__slots__" not in vars(kind):
        return None
    own = fields(kind)
    return (
        tuple(one.name for one in own) if is_frozen(kind) and all(one.init and not one.kw_only for one in own) else None
    )


class Findings:
    """Results of analyses by the key of all that they depend on; `save` keeps those that are new."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._known: dict[str, Any] = {}
        self._new = False
        place = folder()
        if place is not None:
            with contextlib.suppress(OSError, ValueError):
                loaded = json.loads((place / f"{name}.json").read_text("utf-8"))
                self._known = loaded if isinstance(loaded, dict) else {}

    def get(self, key: str) -> Any:
        """A result, None where there is none."""
        return self._known.get(key)

    def put(self, key: str, value: Any) -> None:
        """Add a result that JSON can hold."""
        self._known[key] = value
        self._new = True

    def save(self) -> None:
        """Write what was added; where that is impossible nothing happens."""
        place = folder()
        if place is None or not self._new:
            return
        with contextlib.suppress(OSError):
            _write(place / f"{self._name}.json", json.dumps(self._known).encode())
        self._new = False


def _write(path: Path, content: bytes) -> None:
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        _forget_old_engines(path.parent)
    write_whole(path, content)


def _forget_old_engines(current: Path) -> None:
    """Only the last few versions of the engine keep what they know."""
    folders = [one for one in current.parent.iterdir() if one.is_dir() and re.fullmatch(r"[0-9a-f]{16}", one.name)]
    others = [one for one in folders if one != current]
    others.sort(key=lambda one: one.stat().st_mtime_ns, reverse=True)
    for one in others[_MOST_ENGINES - 1 :]:
        shutil.rmtree(one, ignore_errors=True)

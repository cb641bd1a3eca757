"""What a plan depends on, as one digest: model, rules, engine, device, measured sizes and options."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from smartmem_rules.environment import CACHE, PLANS, PREFIX
from smartmem_rules.kept_plans.files import bytes_digest, file_digest, folder_files, unchanged_since
from smartmem_rules.records import dataclass
from smartmem_rules.resources import STARTED, grammar_path, rules_path, templates_path, tunings_path
from smartmem_rules.runtime.calibration.store import path_of
from smartmem_rules.runtime.devices import DeviceError, devices
from smartmem_rules.tuning.database import Tunings

_LIBRARIES = ("egglog", "highspy", "jinja2", "numpy", "onnx", "pyopencl")
_PLACES = (CACHE.name, PLANS.name)
_MOST_SERIALIZED = 1 << 30
"""Bytes of the largest ModelProto that is written out for its digest."""


@dataclass(frozen=True, kw_only=True)
class PlanKey:
    """What a plan depends on.

    Attributes:
        digest: of all of it, but for the data files beside the model.
        parts: the texts that the digest is of.
        files: those whose contents are in the digest.
        moment: before the first of them was read, in nanoseconds of the system's clock.
        folder: where the model's data files are, None if it has none.
    """

    digest: str
    parts: tuple[str, ...] = field(repr=False)
    files: tuple[str, ...]
    moment: int
    folder: Path | None

    def holds(self, more: Iterable[str | Path] = ()) -> bool:
        """Whether all files, and some more, are still what they were when the key was made."""
        return unchanged_since((*self.files, *more), self.moment) and unchanged_since(_engine_files(), STARTED)


def key_of(model: Any, rules: Sequence[str | Path], options: Mapping[str, object]) -> PlanKey | None:
    """The key of the plan of a model; None for what has none: an imported graph, a model that cannot be read.

    Args:
        model: a path, the bytes of an ONNX file, or a ModelProto.
        rules: the user's rule files.
        options: the other arguments of `optimize`, each with a text form that says all of it.
    """
    moment = time.time_ns()
    try:
        content = _content(model)
        if content is None:
            return None
        user = _user_rules(rules)
        database = Tunings.of_user().path
        measured = [] if database is None or not database.exists() else [str(database)]
        shipped = [*_shipped_rules(), *_files_below(tunings_path(), (".json",))]
        measured += [str(one) for one in _calibrations()]
        files = [*user, *shipped, *measured]
        parts = [
            content.digest,
            content.name,
            _engine_digest(),
            json.dumps([_versions(), _here(), _environment()]),
            *(f"{name}={options[name]!r}" for name in sorted(options)),
            *(str(one) for one in rules),
            *(f"{file} {file_digest(file)}" for file in files),
        ]
    except OSError:
        return None
    own = [] if content.path is None else [str(content.path)]
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    folder = None if content.path is None else content.path.parent
    return PlanKey(digest=digest, parts=tuple(parts), files=(*own, *files), moment=moment, folder=folder)


@dataclass(frozen=True, kw_only=True)
class _Content:
    """A model as bytes, and what its plan is called."""

    digest: str
    name: str = ""
    path: Path | None = None


def _content(model: Any) -> _Content | None:
    if isinstance(model, str | Path):
        path = Path(model)
        return _Content(digest=file_digest(path), name=f"file {path.stem}", path=path)
    if isinstance(model, bytes):
        return _Content(digest=bytes_digest(model))
    size = getattr(model, "ByteSize", None)
    if size is None or size() > _MOST_SERIALIZED:
        return None
    return _Content(digest=bytes_digest(model.SerializeToString(deterministic=True)))


def _user_rules(rules: Sequence[str | Path]) -> list[str]:
    """The user's rule files with all that they import."""
    if not rules:
        return []
    from smartmem_rules.language.diagnostics import LanguageError  # start-up time
    from smartmem_rules.rulebase.base import load_modules  # start-up time

    try:
        return [module.span.file for module in load_modules(map(Path, rules))]
    except LanguageError as error:
        raise OSError("the rules have errors, which their use will show") from error


def _here() -> list[str]:
    """All devices of this computer, with everything that is known of them."""
    try:
        return [repr(device) for device in devices()]
    except DeviceError:
        return []


def _calibrations() -> list[Path]:
    """What was measured of the devices of this computer."""
    try:
        paths = [path_of(device) for device in devices()]
    except DeviceError:
        return []
    return [path for path in paths if path is not None and path.exists()]


def _environment() -> list[tuple[str, str]]:
    """The variables that this program reads, but for those that say where things are kept."""
    own = (name for name in os.environ if name.startswith(PREFIX) and name not in _PLACES)
    return [(name, os.environ[name]) for name in sorted(own)]


@cache
def _versions() -> list[str]:
    return [platform.python_version(), platform.machine(), *map(metadata.version, _LIBRARIES)]


@cache
def _engine_files() -> tuple[str, ...]:
    """The program itself, which a process reads once: code, grammar and templates."""
    package = Path(__file__).resolve().parent.parent
    templates = folder_files(templates_path(), ("",))
    return (*folder_files(package, (".py",)), str(grammar_path()), *templates)


@cache
def _engine_digest() -> str:
    digest = hashlib.sha256()
    for file in _engine_files():
        digest.update(f"{file}\0{file_digest(file)}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _shipped_rules() -> Iterator[str]:
    return folder_files(rules_path(), (".smr",))


def _files_below(folder: Path, suffixes: tuple[str, ...]) -> Iterator[str]:
    return folder_files(folder, suffixes) if folder.is_dir() else iter(())

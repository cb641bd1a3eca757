"""Where the data folders of the rule engine are (grammar, built-in rules, kernel templates), and its cache."""

from __future__ import annotations

import os
import time
from pathlib import Path

from smartmem_rules.environment import CACHE

_PACKAGE = Path(__file__).resolve().parent
STARTED = time.time_ns()
"""When the program began to read its own files, in nanoseconds of the system's clock."""


def grammar_path() -> Path:
    """The lark grammar of the rule language; raises FileNotFoundError when the installation lacks it."""
    return _folder("grammar") / "smr.lark"


def rules_path() -> Path:
    """The folder of the built-in `.smr` files; raises FileNotFoundError when the installation lacks it."""
    return _folder("rules")


def templates_path() -> Path:
    """The folder of the kernel templates; raises FileNotFoundError when the installation lacks it."""
    return _folder("codegen")


def tunings_path() -> Path:
    """The folder of the sizes of kernels that were tuned when the package was made."""
    return _folder("tunings")


def native_path() -> Path:
    """The folder of libsmartmem and of what exported programs consist of (`c`, `bundle`)."""
    for folder in (_PACKAGE / "native", _PACKAGE.parent / "runtime"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"the folder 'native' is not in {_PACKAGE}, nor 'runtime' in {_PACKAGE.parent}")


def models_path() -> Path:
    """The folder of the models that come with the project; raises FileNotFoundError when the installation lacks it."""
    for folder in (_PACKAGE / "models", _PACKAGE.parent / "examples" / "models"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"the folder 'models' is neither in {_PACKAGE} nor in {_PACKAGE.parent / 'examples'}")


def cache_folder() -> Path | None:
    """Where things may be kept that can be made again: `$SMARTMEM_CACHE`, else one of the user's caches.

    None where nothing is to be kept (`SMARTMEM_CACHE=off`, or a user without a home).
    """
    given = CACHE.value()
    if given == "off":
        return None
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(given) if given else Path(base) / "smartmem-rules"


def _folder(name: str) -> Path:
    # An installed package carries the folders inside itself; a checkout has them beside the package.
    for parent in (_PACKAGE, _PACKAGE.parent):
        folder = parent / name
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"the folder '{name}' is neither in {_PACKAGE} nor in {_PACKAGE.parent}")

"""Whether the arguments of public functions are of the right kinds: all that are wrong in one message."""

from __future__ import annotations

import functools
import inspect
import numbers
import reprlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from smartmem_rules.limits import Limits
from smartmem_rules.records import dataclass

P = ParamSpec("P")
R = TypeVar("R")

_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = 80


@dataclass(frozen=True)
class Kind:
    """What a place takes.

    Attributes:
        what: to give, for the message.
        takes: whether a value is of the right type.
        admits: whether a value of the right type is in the range.
    """

    what: str
    takes: Callable[[Any], bool]
    admits: Callable[[Any], bool] = lambda value: True

    def or_none(self) -> Kind:
        """The same, where None is a value as well."""
        return Kind(
            f"{self.what}, or None",
            lambda value: value is None or self.takes(value),
            lambda value: value is None or self.admits(value),
        )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_file(value: Any) -> bool:
    return isinstance(value, str | Path)


def _is_list(value: Any, of: Callable[[Any], bool]) -> bool:
    """Whether a value is a collection of the right things; a text is none, though it could be gone through."""
    is_list = isinstance(value, Collection) and not isinstance(value, str | bytes | bytearray | Mapping)
    return is_list and all(map(of, value))


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_extent(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, tuple | list) and len(value) == 2 and all(map(_is_whole, value)))


def _is_map(value: Any, to: Callable[[Any], bool]) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, value)) and all(map(to, value.values()))


def _is_model(value: Any) -> bool:
    if isinstance(value, str | Path | bytes):
        return True
    import onnx

    return isinstance(value, onnx.ModelProto)


def text(what: str) -> Kind:
    """A word of some meaning."""
    return Kind(f"{what}, as text", _is_text)


def whole(least: int | None = None) -> Kind:
    """A whole number, in a range without end."""
    if least is None:
        return Kind("a whole number", _is_whole)
    return Kind(f"a whole number from {least} on", _is_whole, lambda value: value >= least)


def number(what: str, admits: Callable[[Any], bool]) -> Kind:
    """A number with a fraction."""
    return Kind(what, lambda value: isinstance(value, numbers.Real) and not isinstance(value, bool), admits)


FLAG = Kind("True or False", lambda value: isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"))
FILE = Kind("a path, as str or Path", _is_file)
FILES = Kind("a list of files", lambda value: _is_list(value, _is_file))
NAMES = Kind("a list of names", lambda value: _is_list(value, _is_text))
CALLED = Kind("a function", lambda value: callable(value) and not isinstance(value, type))
DIMS = Kind("the extents by the names of dimensions, as {'N': 8}", lambda value: _is_map(value, _is_extent))
EXTENTS = Kind("a number for each name of a dimension, as {'N': 8}", lambda value: _is_map(value, _is_whole))
ARRAYS = Kind("an array for each name of an input, as {'x': array}", lambda value: _is_map(value, lambda one: True))
MODEL = Kind("a path, the bytes of an ONNX file, or a ModelProto", _is_model)
SEED = whole(0)

OPTIONS: Mapping[str, Kind] = {
    "rules": FILES,
    "device": text("the name of a device or of a profile"),
    "level": text("the name of a level"),
    "dtype": text("the name of a type"),
    "memory": text("the name of a kind of memory"),
    "disable": NAMES,
    "dims": DIMS.or_none(),
    "layout": text("the name of a choice"),
    "debug": FLAG,
    "limits": Kind("a Limits", lambda value: isinstance(value, Limits)),
    "probes": FLAG,
    "anew": FLAG,
}
"""What says how a model is optimized, wherever it is given."""


def check_kinds(values: Mapping[str, object], kinds: Mapping[str, Kind]) -> None:
    """Refuse arguments that are of another kind than their place takes.

    Args:
        values: arguments by name; those of no kind are passed over.

    Raises:
        TypeError: some are of another type; the message names each with what belongs there.
        ValueError: types are right, but numbers outside their range.
    """
    known = [(name, value, kinds[name]) for name, value in values.items() if name in kinds]
    wrong = [one for one in known if not one[2].takes(one[1])]
    if wrong:
        raise TypeError(_message(wrong))
    wrong = [one for one in known if not one[2].admits(one[1])]
    if wrong:
        raise ValueError(_message(wrong))


def _message(wrong: list[tuple[str, Any, Kind]]) -> str:
    return "\n".join(f"{name} is {_SHOWN.repr(value)}; give {kind.what}" for name, value, kind in wrong)


def takes(**kinds: Kind) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that refuses arguments of other kinds before it does anything; see `check_kinds`.

    Args:
        kinds: of parameters by name; `OPTIONS` hold for those that it does not name.
    """

    def checking(function: Callable[P, R]) -> Callable[P, R]:
        names = tuple(inspect.signature(function).parameters)
        known = {**OPTIONS, **kinds}

        @functools.wraps(function)
        def checked(*given: P.args, **named: P.kwargs) -> R:
            check_kinds({**dict(zip(names, given, strict=False)), **named}, known)
            return function(*given, **named)

        return checked

    return checking

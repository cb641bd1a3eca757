"""Whether the arguments of `optimize` are of the right types, all that are wrong in one message."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from smartmem_rules.limits import Limits

_TEXTS = {
    "device": "the name of a device or of a profile",
    "level": "the name of a level",
    "dtype": "the name of a type",
    "memory": "the name of a kind of memory",
    "layout": "the name of a choice",
}
_LISTS = {"rules": "a list of files", "disable": "a list of names"}


def check_types(options: Mapping[str, object], dims: Any) -> None:
    """Refuse arguments that are of another type than their place takes.

    Args:
        options: arguments of `optimize` by name; those that are not checked here are passed over.

    Raises:
        TypeError: some are; the message names each with what belongs there.
    """
    wrong = [f"{name} is {options[name]!r}; give {what}, as text" for name, what in _TEXTS.items()
             if not isinstance(options[name], str)]  # fmt: skip
    for name, what in _LISTS.items():
        value = options[name]
        if isinstance(value, str | bytes) or not isinstance(value, Collection):
            wrong.append(f"{name} is {value!r}; give {what}")
    if dims is not None and not isinstance(dims, Mapping):
        wrong.append(f"dims is {dims!r}; give the extents by the names of dimensions, as {{'N': 8}}")
    if not isinstance(options["limits"], Limits):
        wrong.append(f"limits is {options['limits']!r}; give a Limits")
    if wrong:
        raise TypeError("\n".join(wrong))

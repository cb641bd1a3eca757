"""JSON Schema (draft 2020-12) of Python types: of dataclasses as `asdict` gives them, and of TypedDicts.

Descriptions come from docstrings: the first line of a class, and its `Attributes:` section.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, is_dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from smartmem_rules.exchange.documents import included_in
from smartmem_rules.records import dataclass

Schema = dict[str, object]

_PRIMITIVES: Mapping[Any, str] = {
    bool: "boolean", int: "integer", float: "number", str: "string", Path: "string", type(None): "null",
}  # fmt: skip
_ATTRIBUTE = re.compile(r"    (?P<names>\w+(?:, \w+)*): (?P<text>.+)")


@dataclass(frozen=True, kw_only=True)
class _Field:
    """A property of an object."""

    type: Any
    required: bool
    text: str


@dataclass(kw_only=True)
class Deriver:
    """Collects the schemas of all records on the way.

    Attributes:
        closed: objects have nothing that their records do not name.
        definitions: the schemas of records by their names.
    """

    closed: bool = False
    definitions: dict[str, Schema] = field(default_factory=dict)

    def of(self, kind: Any) -> Schema:
        """The schema of a type.

        Raises:
            TypeError: JSON has no such type.
        """
        if kind in (Any, object):
            return {}
        if kind in _PRIMITIVES:
            return {"type": _PRIMITIVES[kind]}
        if is_dataclass(kind) or is_typeddict(kind):
            return self._reference(kind)
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin in (Union, types.UnionType):
            return {"anyOf": [self.of(one) for one in arguments]}
        if origin is tuple and arguments[-1] is not Ellipsis:
            return {
                "type": "array",
                "prefixItems": [self.of(one) for one in arguments],
                "items": False,
                "minItems": len(arguments),
            }
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        if isinstance(origin, type) and issubclass(origin, Sequence):
            return {"type": "array", "items": self.of(arguments[0])}
        raise TypeError(f"there is no JSON Schema of {kind!r}")

    def _reference(self, record: type) -> Schema:
        module = record.__module__.removeprefix("smartmem_rules.")
        name = record.__name__ if is_typeddict(record) else f"{module}.{record.__name__}"
        if name not in self.definitions:
            self.definitions[name] = {}  # records may hold each other
            self.definitions[name] = self._object(record)
        return {"$ref": f"#/$defs/{name}"}

    def _object(self, record: type) -> Schema:
        found = _fields(record)
        properties = {}
        for name, one in found.items():
            schema = self.of(one.type)
            properties[name] = {"description": one.text, **schema} if one.text else schema
        made: Schema = {"type": "object", "properties": properties}
        first = cleandoc(record.__doc__ or "").partition("\n")[0]
        if first:
            made = {"description": first, **made}
        required = [name for name, one in found.items() if one.required]
        return {
            **made,
            **({"required": required} if required else {}),
            **({"additionalProperties": False} if self.closed else {}),
        }


def _fields(record: type) -> dict[str, _Field]:
    """The properties of a record; what a dataclass does not show (`repr=False`) is no data."""
    texts, hints = _texts(record), get_type_hints(record, include_extras=True)
    if is_dataclass(record):
        shown = [one.name for one in fields(record) if one.repr]
        return {name: _Field(type=hints[name], required=True, text=texts.get(name, "")) for name in shown}
    found: dict[str, _Field] = {}
    for included, required in included_in(record):
        found |= {
            name: _Field(type=one.type, required=one.required and required, text=one.text)
            for name, one in _fields(included).items()
        }
    required_keys: frozenset[str] = record.__required_keys__  # type: ignore[attr-defined]
    for name, hint in hints.items():
        marked = get_origin(hint) is NotRequired
        required = not marked and name in required_keys  # which do not know of marks in annotations that are texts
        known = found[name].text if name in found else ""
        found[name] = _Field(type=get_args(hint)[0] if marked else hint, required=required, text=texts.get(name, known))
    return found


def _texts(record: type) -> dict[str, str]:
    """What the docstring's `Attributes:` section says of each field."""
    found: dict[str, str] = {}
    names: list[str] = []
    _, _, section = cleandoc(record.__doc__ or "").partition("\nAttributes:\n")
    for line in section.split("\n\n")[0].splitlines():
        begun = _ATTRIBUTE.fullmatch(line)
        if begun is not None:
            names = begun["names"].split(", ")
        for name in names:
            text = line.strip() if begun is None else begun["text"]
            found[name] = f"{found[name]} {text}" if name in found and begun is None else text
    return found

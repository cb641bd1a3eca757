"""A validator of the keywords of JSON Schema that the published schemas use; it refuses others.

Whoever has the package jsonschema gets the same answers from it: `python -m tests.schema.validating SCHEMA JSON`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_KNOWN = {
    "$schema", "$defs", "$ref", "title", "description", "type", "properties", "required", "additionalProperties",
    "items", "prefixItems", "minItems", "enum", "anyOf",
}  # fmt: skip


def errors(value: Any, schema: Any, root: dict[str, Any], place: str = "$") -> Iterator[str]:
    """What in a value is not as its schema says."""
    if schema is False:
        yield f"{place}: it should not be there"
        return
    unknown = set(schema) - _KNOWN
    if unknown:
        raise ValueError(f"this validator knows nothing of {unknown}")
    if "$ref" in schema:
        yield from errors(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, place)
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r} is none of {schema['enum']}"
    if "anyOf" in schema:
        found = [list(errors(value, one, root, place)) for one in schema["anyOf"]]
        if all(found):
            yield min(found, key=len)[0]
    if "type" in schema and not _is_a(value, schema["type"]):
        yield f"{place}: {value!r} is no {schema['type']}"
    elif isinstance(value, dict):
        yield from _object_errors(value, schema, root, place)
    elif isinstance(value, list):
        yield from _array_errors(value, schema, root, place)


def _is_a(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _object_errors(value: dict[str, Any], schema: Any, root: dict[str, Any], place: str) -> Iterator[str]:
    yield from (f"{place}: {name} is missing" for name in schema.get("required", ()) if name not in value)
    properties = schema.get("properties", {})
    for name, one in value.items():
        inner = properties.get(name, schema.get("additionalProperties", {}))
        yield from errors(one, inner, root, f"{place}.{name}")


def _array_errors(value: list[Any], schema: Any, root: dict[str, Any], place: str) -> Iterator[str]:
    if len(value) < schema.get("minItems", 0):
        yield f"{place}: {len(value)} elements are too few"
    first = schema.get("prefixItems", [])
    for number, one in enumerate(value):
        inner = first[number] if number < len(first) else schema.get("items", {})
        yield from errors(one, inner, root, f"{place}[{number}]")


def main() -> int:
    """Compare with the package jsonschema; for those who have it."""
    import jsonschema

    schema, value = (json.loads(Path(one).read_text()) for one in sys.argv[1:3])
    own = list(errors(value, schema, schema))
    theirs = list(jsonschema.Draft202012Validator(schema).iter_errors(value))
    print(own, theirs, sep="\n")
    return bool(own) != bool(theirs)


if __name__ == "__main__":
    sys.exit(main())

"""JSON Schema of Python types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import pytest

from smartmem_rules.exchange.documents import may_have_fields_of, with_fields_of
from smartmem_rules.schema.derive import Deriver


@dataclass
class Point:
    """A place.

    Attributes:
        x, y: metres from the
            corner.
        handle: no data.
    """

    x: int
    y: float
    handle: Any = field(default=None, repr=False)


@dataclass
class Named:
    """A name."""

    name: str


@with_fields_of(Point)
@may_have_fields_of(Named)
class Marked(TypedDict):
    """A place with a mark.

    Attributes:
        mark: what it is.
    """

    y: str
    mark: str
    more: NotRequired[list[Point]]


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (bool, {"type": "boolean"}),
        (Path, {"type": "string"}),
        (Any, {}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "items": False,
                "minItems": 2,
            },
        ),
        (Mapping[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (dict[int, str], {"type": "object", "additionalProperties": {"type": "string"}}),
    ],
)
def test_types(kind: Any, schema: dict[str, Any]) -> None:
    assert Deriver().of(kind) == schema


def test_a_dataclass_with_what_its_docstring_says() -> None:
    deriver = Deriver()
    (name,) = [deriver.of(Point)["$ref"].removeprefix("#/$defs/")]
    text = "metres from the corner."
    assert deriver.definitions[name] == {
        "description": "A place.",
        "type": "object",
        "properties": {"x": {"description": text, "type": "integer"}, "y": {"description": text, "type": "number"}},
        "required": ["x", "y"],
    }


def test_fields_of_other_records() -> None:
    deriver = Deriver(closed=True)
    found = deriver.definitions[deriver.of(Marked)["$ref"].removeprefix("#/$defs/")]
    assert set(found["properties"]) == {"x", "y", "name", "mark", "more"}
    assert set(found["required"]) == {"x", "y", "mark"}
    assert found["properties"]["y"]["type"] == "string", "its own field wins"
    assert found["additionalProperties"] is False


class Perhaps(TypedDict, total=False):
    """What may be there."""

    place: str


class Found(Perhaps):
    """What is there."""

    name: str


def test_what_may_be_missing_in_a_base() -> None:
    deriver = Deriver()
    found = deriver.definitions[deriver.of(Found)["$ref"].removeprefix("#/$defs/")]
    assert set(found["properties"]) == {"place", "name"}
    assert found["required"] == ["name"]


def test_a_type_that_json_does_not_have() -> None:
    with pytest.raises(TypeError, match="complex"):
        Deriver().of(complex)

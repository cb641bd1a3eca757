"""Documents: what is written as JSON, as TypedDicts. Each stands beside what makes it; here stand those of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NotRequired, TypedDict, TypeVar

T = TypeVar("T")
_INCLUDED: dict[type, list[tuple[type, bool]]] = {}


def with_fields_of(record: type) -> Callable[[type[T]], type[T]]:
    """A document that has all fields of a record besides its own, which win."""
    return _including(record, required=True)


def may_have_fields_of(record: type) -> Callable[[type[T]], type[T]]:
    """A document in which fields of a record may stand besides its own, which win."""
    return _including(record, required=False)


def _including(record: type, required: bool) -> Callable[[type[T]], type[T]]:
    def noted(own: type[T]) -> type[T]:
        _INCLUDED.setdefault(own, []).append((record, required))
        return own

    return noted


def included_in(document: type) -> list[tuple[type, bool]]:
    """The records whose fields stand in a document, and whether all of them must."""
    return _INCLUDED.get(document, [])


class SourcePlace(TypedDict):
    """A range of a rule file: lines and columns count from 1, the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


class RulePlace(SourcePlace):
    """Where a rule stands, the equation of the comment beside its name, and where the rule comes from."""

    equation: str
    cites: str | None


class MissedRule(TypedDict):
    """A rule that matched at a node, and the guard that turned it down.

    Attributes:
        reason: what failed.
        values: of the guard's terms.
        guard: where it stands.
    """

    rule: str
    reason: str
    values: dict[str, str]
    guard: NotRequired[SourcePlace]


class IntermediateMemory(TypedDict):
    """Bytes of device memory for intermediates.

    Attributes:
        reused: with sharing.
        separate: with one buffer or image for each tensor.
        bound: no placement of this kernel order needs less.
    """

    reused: int
    separate: int
    bound: int
    status: Literal["optimal", "feasible"]

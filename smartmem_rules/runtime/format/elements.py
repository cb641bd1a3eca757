"""Numbers of the index that stand for element types and sections of the file."""

from __future__ import annotations

from typing import Any

from smartmem_rules.runtime.format import plan_pb2 as pb
from smartmem_rules.runtime.format.container import DamageError, Span


def element(dtype: str) -> Any:
    """The value of the enumeration `Element` for a dtype's name."""
    return pb.Element.Value(dtype.upper())


def dtype_of(number: int) -> str:
    """The dtype's name again; raises DamageError where there is none."""
    return known(pb.Element, number)


def known(kind: Any, number: int) -> str:
    """The name of a value of an enumeration, none of which is 0."""
    if not number or number not in kind.values():
        raise DamageError(f"{kind.DESCRIPTOR.name} has no value {number}")
    return str(kind.Name(number)).lower()


def span_of(one: pb.Section) -> Span:
    """Where a section of the plan file lies, as a message of the format says it."""
    return Span(offset=one.offset, size=one.size, sum=one.sum)

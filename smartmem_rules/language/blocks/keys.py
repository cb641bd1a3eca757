"""Keys of blocks as fields of records: how each is written, what it means, and how a block becomes its record."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, field
from functools import cache
from typing import Any, Literal, TypeVar

from smartmem_rules.errors import SmartmemError
from smartmem_rules.language.blocks.ranges import ANY, ITEMS, LARGEST, SIGNED, Range
from smartmem_rules.language.syntax import Block, Span
from smartmem_rules.records import dataclass

Kind = Literal["word", "number", "text", "space", "clause", "phase"]
Value = int | float | str
Record = TypeVar("Record", bound="BlockRecord")


class BlockError(SmartmemError):
    """A block lacks a key; rule files that were checked have none such."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a block.

    Attributes:
        kind: of each value; `word` and `number` are written plainly, `text` in quotes; `space`: a word, then numbers;
            `clause`: a word, then texts and words between them; `phase`: words, then words with a number each.
        least, most: how many values; no upper bound where `most` is None.
        choices: the words that are admitted; all where empty.
        refers: the kind of item that each word names, so that it must exist.
        repeats: whether several entries of this key may stand in a block.
        default: what holds where the key is absent, as the reference shows it; empty where it is required.
        expression: whether each text is a regular expression.
        whole: whether each number is a whole one.
        within: which numbers there may be at each place; the last of them at all that follow.
    """

    name: str
    kind: Kind
    meaning: str
    required: bool = False
    least: int = 1
    most: int | None = 1
    choices: tuple[str, ...] = ()
    refers: Literal["ruleset", "table", "fuse", "layout", "strategy", "matrix", "operator", ""] = ""
    repeats: bool = False
    default: str = ""
    expression: bool = False
    whole: bool = False
    within: tuple[Range, ...] = (ANY,)

    def range_at(self, number: int) -> Range:
        """Which numbers may stand at a place among the values."""
        return self.within[min(number, len(self.within) - 1)]


@dataclass(frozen=True, kw_only=True)
class BlockRecord:
    """What all blocks have.

    Attributes:
        name: of the block.
        block: the block as it is written, for messages and for printing.
    """

    name: str
    block: Block = field(repr=False, compare=False)


@dataclass(frozen=True)
class _Reading:
    """How a field is read: from the values of all entries of its key, in their order."""

    key: Key
    convert: Callable[[list[tuple[Value, ...]]], Any]


def word(meaning: str, *choices: str, default: Any = MISSING, refers: Any = "") -> Any:
    """A field of one word."""
    return _field(Key("", "word", meaning, choices=choices, refers=refers), lambda rows: str(rows[-1][0]), default)


def words(meaning: str, *choices: str, default: Any = (), least: int = 1, refers: Any = "") -> Any:
    """A field of a tuple of words."""
    key = Key("", "word", meaning, least=least, most=None, choices=choices, refers=refers)
    return _field(key, lambda rows: tuple(str(v) for v in rows[-1]), default)


def expressions(meaning: str) -> Any:
    """A field of a tuple of quoted regular expressions, of all entries of the key."""
    return texts(meaning, expression=True)


def texts(meaning: str, expression: bool = False) -> Any:
    """A field of a tuple of quoted texts, of all entries of the key."""
    key = Key("", "text", meaning, most=None, repeats=True, expression=expression)
    return _field(key, lambda rows: tuple(str(v) for row in rows for v in row), ())


def text(meaning: str, default: Any = MISSING) -> Any:
    """A field of one quoted text."""
    return _field(Key("", "text", meaning), lambda rows: str(rows[-1][0]), default)


def flag(meaning: str, default: bool | object = MISSING) -> Any:
    """A field of a boolean, written `yes` or `no`."""
    return _field(Key("", "word", meaning, choices=("yes", "no")), lambda rows: rows[-1][0] in ("yes", True), default)


def whole(meaning: str, default: Any = MISSING, within: Range = ANY) -> Any:
    """A field of an integer."""
    return _field(Key("", "number", meaning, whole=True, within=(within,)), lambda rows: int(rows[-1][0]), default)


def real(meaning: str, default: Any = MISSING, within: Range = ANY) -> Any:
    """A field of a float."""
    return _field(Key("", "number", meaning, within=(within,)), lambda rows: float(rows[-1][0]), default)


def wholes(
    meaning: str, default: Any = MISSING, least: int = 1, most: int | None = None, within: tuple[Range, ...] = (ANY,)
) -> Any:
    """A field of a tuple of integers."""
    key = Key("", "number", meaning, least=least, most=most, whole=True, within=within)
    return _field(key, lambda rows: tuple(int(v) for v in rows[-1]), default)


def rows_of_wholes(meaning: str, least: int, most: int | None, within: tuple[Range, ...] = (ANY,)) -> Any:
    """A field of a tuple of tuples of integers, one for each entry of the key."""
    key = Key("", "number", meaning, least=least, most=most, repeats=True, whole=True, within=within)
    return _field(key, lambda rows: tuple(tuple(int(v) for v in row) for row in rows), ())


def clauses_of_wholes(meaning: str, record: Callable[..., Any], default: Any = MISSING) -> Any:
    """A field of a tuple of records, one for each entry of the key: so many integers as the record has fields."""
    size = len(getattr(record, "_fields", ()))
    key = Key("", "number", meaning, least=size, most=size, repeats=True, whole=True)
    return _field(key, lambda rows: tuple(record(*(int(v) for v in row)) for row in rows), default)


def rows_of_reals(meaning: str) -> Any:
    """A field of a tuple of tuples of floats, one for each entry of the key."""
    key = Key("", "number", meaning, most=None, repeats=True, within=(SIGNED,))
    return _field(key, lambda rows: tuple(tuple(float(v) for v in row) for row in rows), ())


def spaces(meaning: str, *choices: str) -> Any:
    """A field of integers by the word that stands before them, one for each entry of the key."""
    key = Key("", "space", meaning, least=2, most=None, choices=choices, repeats=True, whole=True, within=(ITEMS,))
    return _field(key, lambda rows: {str(row[0]): tuple(int(v) for v in row[1:]) for row in rows}, dict)


def clauses(meaning: str, choices: Iterable[str], convert: Callable[[tuple[Value, ...]], Any]) -> Any:
    """A field of a tuple of clauses, one for each entry of the key: a word of `choices`, then texts and words."""
    key = Key("", "clause", meaning, least=4, most=8, choices=tuple(choices), repeats=True)
    return _field(key, lambda rows: tuple(convert(row) for row in rows), ())


def phases(meaning: str, convert: Callable[[tuple[Value, ...]], Any]) -> Any:
    """A field of a tuple of phases, one for each entry of the key, of which there is one at least."""
    key = Key("", "phase", meaning, most=None, refers="ruleset", repeats=True)
    return _field(key, lambda rows: tuple(convert(row) for row in rows), MISSING)


def part(record: type) -> Any:
    """A field that is a record of its own, whose keys stand in the same block."""
    return field(metadata={"part": record})


def _field(key: Key, convert: Callable[[list[tuple[Value, ...]]], Any], default: Any) -> Any:
    required = default is MISSING
    shown = "" if required else _shown(default)
    reading = _Reading(dataclasses.replace(key, required=required, default=shown), convert)
    if isinstance(default, type):
        return field(default_factory=default, metadata={"key": reading})
    return field(default=default, metadata={"key": reading})


def _shown(default: Any) -> str:
    if default in ((), None) or isinstance(default, type):
        return "none"
    if isinstance(default, bool):
        return "yes" if default else "no"
    if isinstance(default, tuple):
        return " ".join(map(str, default))
    if isinstance(default, int) and default >= UNLIMITED:
        return "no limit"
    return str(default)


UNLIMITED = LARGEST
"""Bytes or operations that nothing exceeds."""


@cache
def _readings(record: type) -> Mapping[str, _Reading]:
    return {
        one.name: dataclasses.replace(reading, key=dataclasses.replace(reading.key, name=one.name))
        for one in dataclasses.fields(record)
        if isinstance(reading := one.metadata.get("key"), _Reading)
    }


@cache
def _parts(record: type) -> Mapping[str, type]:
    return {one.name: one.metadata["part"] for one in dataclasses.fields(record) if "part" in one.metadata}


def keys_of(record: type) -> tuple[Key, ...]:
    """The keys of a record's block, those of its parts among them."""
    return tuple(_keys(record))


def _keys(record: type) -> Iterator[Key]:
    yield from (reading.key for reading in _readings(record).values())
    for own in _parts(record).values():
        yield from _keys(own)


def read(record: type[Record], block: Block) -> Record:
    """The record of a block.

    Raises:
        BlockError: the block lacks a key; the message names all that it lacks, and its place.
    """
    rows: dict[str, list[tuple[Value, ...]]] = {}
    for entry in block.entries:
        rows.setdefault(entry.key, []).append(entry.values)
    missing = [key.name for key in keys_of(record) if key.required and key.name not in rows]
    if missing:
        raise BlockError(f"{block.kind} {block.name} ({block.span}) lacks {', '.join(missing)}")
    return record(name=block.name, block=block, **_values(record, rows))


def _values(record: type, rows: Mapping[str, list[tuple[Value, ...]]]) -> dict[str, Any]:
    values = {name: one.convert(rows[name]) for name, one in _readings(record).items() if name in rows}
    return values | {name: own(**_values(own, rows)) for name, own in _parts(record).items()}


def values_of(block: Block, key: str) -> tuple[Value, ...]:
    """The values of the first entry of a key in a block that may not be checked yet; none where it is absent."""
    return next((entry.values for entry in block.entries if entry.key == key), ())


def value_place(block: Block, key: str, number: int) -> Span:
    """Where a value of the first entry of a key stands."""
    return next(entry for entry in block.entries if entry.key == key).place(f"value:{number}")

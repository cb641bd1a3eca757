"""What is kept on disk: by content, never needed, never stale."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import NamedTuple

import pytest

from smartmem_rules.language import cache
from smartmem_rules.language.parsing.parser import parse_file
from smartmem_rules.records import dataclass


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SMARTMEM_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


def test_a_parsed_file_comes_from_the_cache(kept: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.smr"
    path.write_text("let A = 1\n")
    first = parse_file(path)
    (found,) = kept.rglob("*.pickle")
    assert parse_file(path) == first
    assert parse_file(path).items[0].span == first.items[0].span
    found.write_bytes(b"damaged")
    assert parse_file(path) == first


@dataclass(frozen=True, slots=True)
class Plain:
    value: int
    inner: object = field(compare=False, default=None)


@dataclass(frozen=True, slots=True)
class Checked:
    value: int
    twice: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "twice", 2 * self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    value: int


@dataclass(slots=True)
class Changeable:
    value: int


class Place(NamedTuple):
    line: int
    column: int = 1


def test_records_come_back_whole(kept: Path) -> None:
    shared = Plain(1)
    value = [Plain(2, shared), shared, Checked(3), Named(value=4), Changeable(5), Place(6), Place(6, 7)]
    cache.write_pickle("records", value)
    found = cache.read_pickle("records")
    assert repr(found) == repr(value)
    assert found[0].inner is found[1]
    assert isinstance(found[-1], Place)


def test_findings_are_kept(kept: Path) -> None:
    findings = cache.Findings("findings")
    findings.put("key", {"agreed": 3})
    findings.save()
    assert cache.Findings("findings").get("key") == {"agreed": 3}
    next(kept.rglob("findings.json")).write_text("[")
    assert cache.Findings("findings").get("key") is None


def test_nothing_is_kept_where_that_is_switched_off_or_impossible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.smr"
    path.write_text("let A = 1\n")
    monkeypatch.setenv("SMARTMEM_CACHE", "off")
    assert cache.folder() is None
    assert parse_file(path).items
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SMARTMEM_CACHE", str(tmp_path / "file"))
    assert parse_file(path).items


def test_old_engines_are_forgotten(kept: Path) -> None:
    for number in range(6):
        (kept / f"{number:016x}").mkdir(parents=True)
    cache.write_pickle("key", 1)
    assert len(list(kept.iterdir())) == 3
    assert cache.read_pickle("key") == 1

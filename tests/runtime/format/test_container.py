"""Header, sections and digests of plan files: nothing outside of a file is read, and no damage goes unnoticed."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from smartmem_rules.plan.kernel.storage import SLACK
from smartmem_rules.runtime.format import plan_pb2 as pb
from smartmem_rules.runtime.format.container import HEADER_BYTES, PAGE, DamageError, Header, Span, section
from smartmem_rules.runtime.format.reading import read_plan
from smartmem_rules.runtime.plan_file import save_plan
from tests.runtime.format.files import index_of, resealed, unused_bytes, with_byte, with_header
from tests.runtime.plans import constant_values, make_plan


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("plans") / "a.plan"
    save_plan(make_plan(), path)
    return path.read_bytes()


def test_constants_begin_with_pages_and_have_room_behind_them(whole: bytes) -> None:
    constant = next(one for one in index_of(whole).tensors if one.HasField("packed")).packed.section
    assert constant.offset % PAGE == 0
    found = np.frombuffer(whole, np.float32, 60, constant.offset)
    np.testing.assert_array_equal(found, constant_values().reshape(-1))
    assert whole[constant.offset + constant.size :][:SLACK] == bytes(SLACK)


def test_every_damaged_byte_of_header_report_and_index_is_noticed(whole: bytes) -> None:
    index = index_of(whole)
    tables = [*range(HEADER_BYTES), *range(index.report.offset, len(whole))]
    for at in tables:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        with pytest.raises(DamageError):
            read_plan(bytes(damaged))


def test_every_damaged_byte_between_the_sections_is_noticed(whole: bytes) -> None:
    places = unused_bytes(whole)
    assert len(places) >= PAGE - HEADER_BYTES + SLACK
    for at in [*places[:3], *places[:-100:31], *places[-100:]]:
        with pytest.raises(DamageError, match="of no section"):
            read_plan(with_byte(whole, at))


def test_a_section_that_covers_nothing_of_another_one_hides_nothing(whole: bytes) -> None:
    def grown(index: pb.Plan) -> None:
        index.tensors[0].packed.section.size = 2**64 - 1

    at = unused_bytes(whole)[0]
    with pytest.raises(DamageError):
        read_plan(with_byte(resealed(whole, grown), at))


def test_every_cut_and_every_addition_is_noticed(whole: bytes) -> None:
    for size in [*range(HEADER_BYTES + 1), *range(HEADER_BYTES, len(whole), 97), len(whole) - 1]:
        with pytest.raises(DamageError):
            read_plan(whole[:size])
    with pytest.raises(DamageError, match=f"it has {len(whole) + 1} bytes and says {len(whole)}"):
        read_plan(whole + b"\0")


@pytest.mark.parametrize("place", [16, 24, 32])
@pytest.mark.parametrize("value", [0, 1, 127, 2**32, 2**63, 2**64 - 1])
def test_sizes_and_offsets_of_the_header(whole: bytes, place: int, value: int) -> None:
    fields = bytearray(whole[: HEADER_BYTES - 32])
    struct.pack_into("<Q", fields, place, value)
    with pytest.raises(DamageError):
        read_plan(with_header(whole, bytes(fields)))


@pytest.mark.parametrize(
    "span", [(0, 300), (300, 0), (200, 1), (2**64 - 1, 1), (1, 2**64 - 1), (2**63, 2**63), (150, 50)]
)
def test_sections_lie_inside_the_file(span: tuple[int, int]) -> None:
    with pytest.raises(DamageError, match="lie outside of the file"):
        section(bytes(200), Span(offset=span[0], size=span[1], sum=0))


def test_a_header_says_what_it_was_given() -> None:
    header = Header(file_bytes=HEADER_BYTES, index_offset=HEADER_BYTES, index_bytes=0, digest=bytes(32))
    assert Header.of(header.packed()) == header


def test_a_plan_of_an_older_version(tmp_path: Path) -> None:
    with pytest.raises(DamageError, match="older version"):
        Header.of(b"PK\x03\x04" + bytes(200))

"""Rows of a team whose values meet in registers: what is emitted for devices that can, and for others."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from smartmem_rules.emit.plan import finish
from smartmem_rules.pipeline import Request, make_planning
from tests.plan.models import model, normal


def text_of(columns: int, shuffle: str) -> str:
    softmax = model([("Softmax", "x", "y", {"axis": -1})], {"x": normal(4096, columns)}, "y")
    planning = make_planning(Request(softmax, (), "nvidia", "layout", "float32", "buffer", (), {}))[0]
    device = replace(planning.profile, compute=replace(planning.profile.compute, shuffle=shuffle))
    (source,) = finish(replace(planning, profile=device)).sources
    return source.text[source.text.index("__kernel") :]


@pytest.mark.parametrize(("columns", "met"), [(32, 8), (64, 16), (2048, 32)])
def test_neighbours_exchange_values(columns: int, met: int) -> None:
    text = text_of(columns, "ptx")
    assert text.count("smr_neighbour(") == 2
    assert set(re.findall(r"smr_neighbour\(\w+, distance, (\d+)\)", text)) == {str(met)}
    # what is left meets in local memory, where a row belongs to more than a warp
    assert text.count("stride >= 32") == (2 if columns == 2048 else 0)


def test_other_devices_meet_in_local_memory() -> None:
    text = text_of(256, "")
    assert "smr_neighbour" not in text
    assert text.count("stride >= 1") == 2

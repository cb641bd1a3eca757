"""Matrix blocks: the shipped ones are those of the manuals, and wrong ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.checking import check_files

Place = Callable[[int, int], tuple[int, int]]

# PTX ISA 9.0, "Matrix Fragments for mma.m16n8k16 with floating point type", "m16n8k8", "m16n8k32"; the extension's
# text: a work-item holds a column of the right factor and of the sums, and two neighbouring columns of the left one
PLACES: dict[tuple[str, str], Place] = {
    ("nvidia_f16", "left"): lambda t, i: (t // 4 + 8 * (i % 4 // 2), t % 4 * 2 + i % 2 + 8 * (i // 4)),
    ("nvidia_f16", "right"): lambda t, i: (t % 4 * 2 + i % 2 + 8 * (i // 2), t // 4),
    ("nvidia_f16", "sum"): lambda t, i: (t // 4 + 8 * (i // 2), t % 4 * 2 + i % 2),
    ("nvidia_bf16", "left"): lambda t, i: (t // 4 + 8 * (i % 4 // 2), t % 4 * 2 + i % 2 + 8 * (i // 4)),
    ("nvidia_tf32", "left"): lambda t, i: (t // 4 + 8 * (i % 2), t % 4 + 4 * (i // 2)),
    ("nvidia_tf32", "right"): lambda t, i: (t % 4 + 4 * i, t // 4),
    ("nvidia_s8", "left"): lambda t, i: (t // 4 + 8 * (i % 8 // 4), t % 4 * 4 + i % 4 + 16 * (i // 8)),
    ("nvidia_s8", "right"): lambda t, i: (t % 4 * 4 + i % 4 + 16 * (i // 4), t // 4),
    # "Register Fragment Layout for D" of wgmma: each of four warps has 16 rows
    ("nvidia_wgmma_f16", "sum"): lambda t, i: (t // 32 * 16 + t % 32 // 4 + 8 * (i // 2), t % 4 * 2 + i % 2),
    ("intel_f16", "left"): lambda t, i: (i // 2, t * 2 + i % 2),
    ("intel_f16", "right"): lambda t, i: (i, t),
    ("intel_f16", "sum"): lambda t, i: (i, t),
}


@pytest.mark.parametrize(("unit", "fragment"), PLACES)
def test_fragments_lie_as_the_manual_says(unit: str, fragment: str) -> None:
    found = load_rules().matrices[unit].fragments[fragment]
    for lane in range(found.lane_count):
        for element in range(found.element_count):
            assert found.place(lane, element) == PLACES[unit, fragment](lane, element)


BLOCK = """matrix mine {
    factors float16;
    sums float32;
    shape 4 4 8;
    lanes 8;
    texts matrix_subgroup;
    multiply "mine";
    left_lanes 8 0 1;
    left_elements 4 1 0;
    right_lanes 8 1 0;
    right_elements 4 0 1;
    sum_lanes 4 0 1;
    sum_lanes 2 1 0;
    sum_elements 2 2 0;
}
"""


def _messages(text: str, folder: Path) -> list[str]:
    path = folder / "mine.smr"
    path.write_text(text)
    return [one.message for one in check_files([path])[0]]


def test_a_unit_that_is_right(tmp_path: Path) -> None:
    assert _messages(BLOCK, tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("left_lanes 8 0 1", "left_lanes 4 0 1", "the fragment `left` of `mine`: its lanes are 4"),
        ("left_elements 4 1 0", "left_elements 2 1 0", "the fragment `left` of `mine`: it holds 16 elements"),
        ("left_elements 4 1 0", "left_elements 4 2 0", "the fragment `left` of `mine`: row 4, column 0 lies outside"),
        ("sum_lanes 2 1 0", "sum_lanes 2 0 0", "the fragment `sum` of `mine`: two places hold the same element"),
        ("texts matrix_subgroup", "texts matrix_nowhere", "codegen/ has no file `matrix_nowhere.cl`"),
        ("sums float32;", "", "`mine` lacks `sums`"),
        ("left_lanes 8 0 1;", "", "the fragment `left` of `mine`: its lanes are 1"),
        ("texts", "operands local; texts", "`mine` reads its factors from local memory, but no `widths`"),
    ],
)
def test_a_unit_that_is_wrong(old: str, new: str, message: str, tmp_path: Path) -> None:
    (found,) = _messages(BLOCK.replace(old, new), tmp_path)
    assert found.startswith(message)


def test_a_device_names_units_that_there_are(tmp_path: Path) -> None:
    device = 'device other { match "^never"; kind gpu; prefers buffer; image2d 1 1; matrix nowhere; }'
    assert "there is no matrix block `nowhere`" in _messages(device, tmp_path)

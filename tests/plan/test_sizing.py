"""Register blocks of the panel template: their costs, their rows, and the requests for the next tile of weights."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from smartmem_rules.environment import COMPUTE_UNITS
from smartmem_rules.language.blocks.schedule import Panel, RegisterTiles, Schedule
from smartmem_rules.plan.schedule.contraction.sizing import (
    LINE_FLOATS,
    least_step,
    register_rows,
    register_step,
    requests_ahead,
    rows_as_at_peak,
)
from smartmem_rules.plan.schedule.scheduler import candidates, on_device
from tests.plan.models import model
from tests.plan.programs import rules
from tests.plan.running import Mode, plan_of

PANEL = next(s for s in rules().schedules.values() if isinstance(s, Panel))


@pytest.mark.parametrize(
    ("rows", "columns", "cycles"),
    [
        (6, 16, 6.15),
        (5, 16, 5.37),
        (4, 16, 4.39),
        (3, 16, 4.08),
        (4, 24, 6.10),
        (3, 24, 4.89),
        (6, 8, 4.17),
        (8, 8, 4.89),
    ],
)
def test_steps_take_as_long_as_measured(rows: int, columns: int, cycles: float) -> None:
    """Cycles of a step, of 768 on an AMD EPYC of the fourth generation; two products of a vector take a cycle."""
    assert register_step(PANEL, rows, columns) / 2 == pytest.approx(cycles, rel=0.08)


@pytest.mark.parametrize("block", range(1, 100, 7))
@pytest.mark.parametrize("columns", PANEL.columns)
def test_a_block_is_covered(block: int, columns: int) -> None:
    rows, tail, time = register_rows(PANEL, block, columns)
    assert rows * columns <= PANEL.most_sums
    assert block % rows == tail
    assert time >= block * columns * least_step(PANEL) * (1 - 1e-9)
    assert rows_as_at_peak(PANEL, block) >= block * (1 - 1e-9)


@pytest.mark.parametrize(
    ("k", "rows", "slower"),
    [
        (1024, 8, 1.0),  # all rows meet in one set, which has 8 ways
        (1024, 12, 1.12),  # 96.1 for 107.1 GFLOP/s with rows that a line more lies between
        (1024, 13, 1.19),  # 91.2 for 108.2
        (3072, 14, 1.27),  # 78.8 for 99.8
        (768, 14, 1.0),  # rows meet in four sets
    ],
)
def test_rows_that_meet_in_one_set_of_the_first_cache_are_slower(k: int, rows: int, slower: float) -> None:
    """By as much as was measured on an AMD EPYC of the fourth generation, two vectors of 16 floats of columns."""
    (panel,) = (s for s in on_device((PANEL,), rules().devices["pocl"]) if isinstance(s, Panel))
    wide = replace(panel, lanes=16, register_count=32)
    assert register_step(wide, rows, 32, 4 * k) / register_step(wide, rows, 32) == pytest.approx(slower, rel=0.06)


def test_register_tiles_keep_to_the_rows_that_the_first_cache_holds() -> None:
    (panel,) = (s for s in on_device((PANEL,), rules().devices["pocl"]) if isinstance(s, Panel))
    wide = replace(panel, lanes=16, register_count=32)
    assert register_rows(wide, 196, 32, 4 * 768)[0] == 14
    assert register_rows(wide, 196, 32, 4 * 1024)[0] <= 8
    assert register_rows(replace(wide, first_cache=()), 196, 32, 4 * 1024)[0] == 14
    # with AVX2 no tile has more rows than a set has ways
    near = replace(panel, far_load_cost=0.0)
    fits = [(rows, columns) for rows in panel.rows for columns in panel.columns if rows * columns <= panel.most_sums]
    assert all(register_step(near, *tile, 4096) == register_step(near, *tile) for tile in fits)


def test_tiles_of_columns_beyond_the_first_cache_cost_their_loads() -> None:
    """A chain's 33 rows took 1.15 as long in tiles of 3 x 24 as in 6 x 16 and a rest of 3 x 16 (AVX2, Zen 4)."""
    (panel,) = (s for s in on_device((PANEL,), rules().devices["pocl"]) if isinstance(s, Panel))
    assert register_rows(panel, 33, 24, 4 * 768)[2] / 24 > 1.1 * register_rows(panel, 33, 16, 4 * 768)[2] / 16
    fits = panel.first_cache[0] // 24
    assert register_step(panel, 3, 24, fits) == register_step(panel, 3, 24)
    assert register_step(panel, 3, 24, fits + 1) > register_step(panel, 3, 24)


@pytest.mark.parametrize("seed", range(20))
def test_the_blocks_of_rows_ask_for_every_line(seed: int) -> None:
    draw = random.Random(seed)
    k, columns, blocks = draw.choice((24, 49, 64, 96, 147, 768, 3072)), draw.choice(PANEL.columns), draw.randint(1, 40)
    schedule = replace(PANEL, request_steps=draw.choice((1, 8)))
    ahead, lines = requests_ahead(schedule, k, columns, blocks)
    assert k % ahead == 0
    # as codegen/register_block.cl counts them
    parts, each = -(-ahead * columns // (LINE_FLOATS * lines)), k // ahead * lines
    asked = {block % parts * each + line for block in range(blocks) for line in range(each)}
    needed = set(range(-(-k * columns // LINE_FLOATS)))
    assert asked >= needed, f"seed {seed}: {k} x {columns}, {blocks} blocks, {lines} lines every {ahead} steps"


def test_weights_that_very_many_rows_share_are_not_asked_for() -> None:
    assert requests_ahead(PANEL, 768, 32, 1) == (1, 2)
    assert requests_ahead(PANEL, 768, 32, 1000) == (0, 0)
    assert requests_ahead(replace(PANEL, request_steps=0), 768, 32, 1) == (0, 0)


def test_no_work_item_keeps_more_to_itself_than_the_device_has_room_for() -> None:
    pocl = rules().devices["pocl"]
    schedules = on_device(candidates(rules().schedules, "cpu", "buffer", True), pocl)

    def within(stack_bytes: int) -> tuple[Schedule, ...]:
        return on_device(schedules, replace(pocl, memory=replace(pocl.memory, stack_bytes=stack_bytes)))

    assert {s.scratch_bytes for s in within(1000) if isinstance(s, RegisterTiles)} == {1000}
    assert within(0) == schedules
    assert within(1 << 40) == schedules


@pytest.mark.parametrize(("lanes", "columns", "most_sums"), [(4, (8, 12, 4), 48), (16, (32, 48, 16), 448)])
def test_register_tiles_are_as_wide_as_the_registers(lanes: int, columns: tuple[int, ...], most_sums: int) -> None:
    pocl = rules().devices["pocl"]
    device = replace(pocl, compute=replace(pocl.compute, register_width=lanes))
    (panel,) = (s for s in on_device(tuple(rules().schedules.values()), device) if isinstance(s, Panel))
    assert (panel.columns, panel.most_sums) == (columns, most_sums)
    # a step of as many vectors takes as long, whatever their width
    assert register_step(panel, 6, columns[0]) == register_step(PANEL, 6, PANEL.columns[0])
    assert least_step(panel) <= least_step(PANEL) * PANEL.lanes / lanes


@pytest.mark.parametrize("cores", [16, 24, 64])
@pytest.mark.parametrize(("m", "k", "n"), [(197, 768, 2304), (197, 3072, 768), (49, 512, 2048), (3136, 96, 288)])
def test_many_cores_have_work_until_the_end(
    cores: int, m: int, k: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 18 work-items for 197 rows, as for two to eight cores, more than half of 64 cores would have none."""
    monkeypatch.setenv(COMPUTE_UNITS.name, str(cores))
    w = np.random.default_rng(0).standard_normal((k, n)).astype(np.float32)
    plan = plan_of(model([("MatMul", "x w", "y")], {"x": np.zeros((m, k), np.float32)}, "y", {"w": w}), Mode())
    (launch,) = plan.launches
    items = launch.grid.items
    assert items / (-(-items // cores) * cores) >= 0.75

"""Products on matrix units in their emulation: which unit a device has, and which tile a product takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from smartmem_rules.language.blocks.device import Device as Profile
from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.plan.schedule import templates
from smartmem_rules.plan.schedule.contraction.group import GroupChoice, GroupTile
from smartmem_rules.plan.schedule.contraction.score_tiles import with_scores
from smartmem_rules.plan.schedule.records import GroupSchedule
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.runtime import target
from smartmem_rules.runtime.devices import Device
from tests.plan.running import Mode, prepare

TILES = (
    GroupTile(rows=64, columns=64, step=32, slices=2, warp_rows=32, warp_columns=32, buffers=3),
    GroupTile(rows=32, columns=64, step=64, slices=4, warp_rows=32, warp_columns=32, buffers=2),
    GroupTile(rows=16, columns=32, step=64, slices=1, warp_rows=16, warp_columns=16, buffers=4),
    GroupTile(rows=32, columns=32, step=64, slices=2, warp_rows=16, warp_columns=16, buffers=1),
)
BOUNDS = {"float32": 6e-5, "float16": 4e-3, "bfloat16": 3e-2}
"""Of an output, relative to the largest."""


@pytest.fixture(autouse=True)
def any_device_has_units(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The units that a test names are there, and local memory for their tiles."""
    within_limits = target._within_limits

    def with_units(profile: Profile, device: Device) -> Profile:
        names = getattr(request.node, "callspec", None)
        name = "nvidia_f16" if names is None else names.params.get("unit", "nvidia_f16")
        matrices = load_rules().matrices
        found = within_limits(profile, device)
        most = (profile.memory.array_memory, *(size for size, *_ in profile.memory.array_memory_of))
        memory = replace(found.memory, array_memory=max(most))
        return replace(found, units=(matrices[name].emulated(),), memory=memory)

    monkeypatch.setattr(target, "_within_limits", with_units)


def takes(tile: GroupTile, splits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let products on a unit have this tile; a model's calibration multiplies floats without one."""
    ranked = templates.rank_groups

    def fits(given: GroupTile) -> bool:
        return given.unit is not None and tile.takes(given.unit)

    def sized(given: GroupTile, kernel: Kernel) -> GroupTile:
        wanted = replace(tile, unit=given.unit, work_group=given.work_group)
        return with_scores(wanted if fits(given) else given, kernel)

    def chosen(tiles: Sequence[GroupTile], *others: Any) -> list[GroupChoice]:
        return [GroupChoice(tiles[0], splits)] if fits(tiles[0]) else ranked(tiles, *others)

    monkeypatch.setattr(templates, "with_scores", sized)
    monkeypatch.setattr(templates, "rank_groups", chosen)


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def compare(
    proto: onnx.ModelProto, feeds: dict[str, np.ndarray], dtype: str = "float16", debug: bool = False
) -> GroupSchedule:
    """Runs the plan for a GPU and compares with the reference evaluator; the schedule of its product."""
    plan, executor = prepare(proto, Mode(device="nvidia", dtype=dtype), debug)
    executor.poison()
    found = executor.run({name: feeds[name] for name in plan.inputs})
    wanted = ReferenceEvaluator(proto).run(None, feeds)
    for output, reference in zip(plan.outputs, wanted, strict=True):
        bound = BOUNDS[dtype] * np.abs(reference).max()
        np.testing.assert_allclose(found[output], reference, rtol=0, atol=bound)
    schedule = plan.launches[-1].schedule
    assert isinstance(schedule, GroupSchedule)
    assert schedule.tile.unit is not None
    return schedule

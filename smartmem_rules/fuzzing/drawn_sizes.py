"""Sizes of kernels other than those that the cost model chooses: each that a tuner may choose has to be right."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from smartmem_rules.fuzzing.case import Case
from smartmem_rules.pipeline import Request, make_planning
from smartmem_rules.plan.kernel.key import launch_key
from smartmem_rules.tuning.database import Place, Tuned, Tunings


def keep_sizes(case: Case, path: Path) -> int:
    """Draw sizes of the case's kernels and keep them in a database, from which `optimize` takes them as tuned ones.

    Args:
        path: the database, which `SMARTMEM_TUNINGS` names while the case is planned.

    Returns:
        How many kernels have other sizes than the cost model's.

    Raises:
        SmartmemError: the case cannot be planned.
    """
    mode = case.mode
    planning, target = make_planning(Request(case.model, (), mode.device, mode.level, mode.dtype, mode.memory, (), {}))
    device = target.device
    assert device is not None
    scheduler = planning.scheduler(dict(planning.tensors), None)
    random, tunings, found = np.random.default_rng(mode.sizes), Tunings(path), 0
    for launch in planning.launches:
        _, *others = scheduler.space(launch, device.compute_units) or [{}]
        if not others:
            continue
        tuned = Tuned(
            kernel=launch_key(launch, planning.tensors),
            label="drawn",
            choice=others[int(random.integers(len(others)))],
            default_ms=1.0,
            best_ms=1.0,
        )
        tunings.record(Place(device.name, device.driver, planning.profile.name), tuned)
        found += 1
    return found

"""One model at several levels of optimization, on a model of a device."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

from smartmem_rules.language.fixes import did_you_mean
from smartmem_rules.pipeline import Request, make_plan
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.simulate.memory import MemoryModel
from smartmem_rules.simulate.report import Progress, SimulatedLevel, simulate
from smartmem_rules.simulate.sampling import Effort
from smartmem_rules.simulate.source import SimulationError
from smartmem_rules.stages import Unmeasured


class SimulateReport(TypedDict):
    """A model's levels in the simulated device."""

    model: str
    device: str
    dtype: str
    memory: str
    levels: dict[str, SimulatedLevel]


class _Silent(Unmeasured):
    """Tells the progress of planning."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        if self._progress is not None:
            self._progress(name, 0, 1)
        yield
        if self._progress is not None:
            self._progress(name, 1, 1)


def simulate_levels(
    model: Any,
    levels: Sequence[str],
    device: str = "adreno_740",
    dtype: str | None = None,
    memory: str = "device",
    rules: Sequence[str | Path] = (),
    disable: Collection[str] = (),
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
    effort: Effort | None = None,
    progress: Progress | None = None,
) -> SimulateReport:
    """What `smartmem simulate --json` prints.

    Args:
        memory: `device` puts tensors where the profile prefers them at every level, as the frameworks do that the
            levels stand for; of images and buffers, levels that choose layouts take what costs less.  `level`
            follows the levels' own `memory` entries; else image or buffer.

    Raises:
        SimulationError: there is no such profile, it has no model of its memory, or a kernel cannot be followed.
    """
    from smartmem_rules.rulebase.base import load_rules  # start-up time

    profiles = load_rules([str(path) for path in rules]).devices
    if device not in profiles:
        near = did_you_mean(device, profiles)
        raise SimulationError(f"there is no device profile {device!r}; {near or ''} profiles: {', '.join(profiles)}")
    profile = profiles[device]
    modelled = MemoryModel.of(profile)
    dtype = dtype or next(iter(profile.memory.storage), "float32")
    where = {"device": "preferred", "level": "auto"}.get(memory, memory)
    found: dict[str, SimulatedLevel] = {}
    name = str(model)
    for level in levels:
        request = Request(model, rules, device, level, dtype, where, disable, dims or {})
        plan: Plan
        plan, _ = make_plan(request, _Silent(progress))
        name = plan.model
        found[level] = simulate(plan, modelled, effort or Effort(seed=seed), progress).data()
    return {"model": name, "device": device, "dtype": dtype, "memory": where, "levels": found}

"""The way from a model to its plan, or to the one that was kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from smartmem_rules.kept_plans.key import key_of
from smartmem_rules.kept_plans.store import LEAST_SECONDS, PlanStore
from smartmem_rules.limits import DEFAULT_LIMITS, Deadline, Limits
from smartmem_rules.logs import logger
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.devices import AUTO, Device, devices
from smartmem_rules.runtime.reference import TOLERANCES
from smartmem_rules.stages import Clock, Progress, Show

if TYPE_CHECKING:
    from smartmem_rules.graph.loading import Dims, ModelSource
    from smartmem_rules.graph.model import Graph
    from smartmem_rules.pipeline import Watcher
    from smartmem_rules.plan.artefact import Plan
    from smartmem_rules.plan.fusion.refusals import Refusals
    from smartmem_rules.runtime.target import Target

DEFAULT_LEVEL = "smartmem"
DTYPES = tuple(TOLERANCES)
MEMORIES = ("auto", "image", "buffer")
LAYOUTS = ("exact", "local")
_LOG = logger(__name__)


class PlanOptions(TypedDict, total=False):
    """What `optimize` takes beside the model; its documentation says what each is."""

    rules: Sequence[str | Path]
    device: str
    level: str
    dtype: str
    memory: str
    disable: Collection[str]
    dims: Dims | None
    layout: str
    limits: Limits
    probes: bool


def nothing() -> None:
    """The plan is not to be kept."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A plan with its device.

    Attributes:
        target: what a new one was made for; None where the plan was kept.
        keep: keeps a new one in the store.
    """

    plan: Plan
    device: Device | None
    target: Target | None = None
    keep: Callable[[], None] = nothing


def kept_or_planned(
    graph: ModelSource | Graph,
    clock: Clock,
    rules: Sequence[str | Path] = (),
    disable: Collection[str] = (),
    watch: Watcher | None = None,
    **options: Any,
) -> Found:
    """The plan of a model from the user's store of plans, else a new one, to be kept there.

    The arguments are those of `api.optimize`.
    """
    with clock.stage("import"):
        store = PlanStore.of_user()
        key = None
        if store.folder is not None:
            asked = {**options, "disable": sorted(disable), "dims": sorted((options.get("dims") or {}).items())}
            key = key_of(graph, rules, asked)
        found = None if key is None else store.read(key, partial(_devices_with, rules, disable))
    if found is not None:
        _LOG.info("the plan of %s is one that was kept in %s", found.plan.model, store.folder)
        return Found(plan=found.plan, device=found.device)
    before = time.perf_counter()
    plan, target = planned(graph, clock, rules=rules, disable=disable, watch=watch, **options)
    seconds = time.perf_counter() - before
    _LOG.info("the plan of %s for %s has %d kernels (%.1f s)", plan.model, target.name, len(plan.launches), seconds)
    if key is not None and seconds >= LEAST_SECONDS:
        return Found(
            plan=plan, device=target.device, target=target, keep=partial(store.write, key, plan, target.device)
        )
    return Found(plan=plan, device=target.device, target=target)


def _devices_with(rules: Sequence[str | Path], disable: Collection[str]) -> Sequence[Device]:
    """The devices of this computer with what the user's rules say of them."""
    if not rules:
        return devices()
    from smartmem_rules.pipeline import rules_of  # start-up time

    return devices(rules_of(rules, disable).devices)


def plan_only(
    graph: ModelSource | Graph,
    progress: Progress | None = None,
    show: Show | None = None,
    certificate: str | Path | None = None,
    **options: Unpack[PlanOptions],
) -> Plan:
    """The plan of a model without building its kernels; the options are arguments of `optimize`."""
    plan, _ = planned(graph, Clock(progress, show), certificate=certificate, **options)
    return plan


def planned(
    graph: ModelSource | Graph,
    clock: Clock,
    rules: Sequence[str | Path] = (),
    device: str = AUTO,
    level: str = DEFAULT_LEVEL,
    dtype: str = "float32",
    memory: str = "auto",
    disable: Collection[str] = (),
    dims: Dims | None = None,
    layout: str = "exact",
    limits: Limits = DEFAULT_LIMITS,
    probes: bool = False,
    refusals: Refusals | None = None,
    certificate: str | Path | None = None,
    watch: Watcher | None = None,
) -> tuple[Plan, Target]:
    """The plan of a model and what it is for; the arguments are those of `api.optimize`.

    Raises:
        ValueError: an argument is none of its choices, in addition to what `optimize` raises.
    """
    clock.deadline = Deadline(limits)
    checked = (("dtype", dtype, DTYPES), ("memory", memory, MEMORIES), ("layout", layout, LAYOUTS))
    for name, value, choices in checked:
        if value not in choices:
            raise ValueError(f"{name} {value!r} is none of {', '.join(choices)}")
    with clock.stage("import"):  # the engine's libraries are part of what a user waits for
        from smartmem_rules.pipeline import Request, make_plan  # start-up time

    request = Request(graph, rules, device, level, dtype, memory, disable, dims or {}, layout, limits, probes)
    certify: Callable[[str], None] | None = None
    if certificate is not None:
        from smartmem_rules.exchange.certificates import write_certificate  # start-up time

        certify = partial(write_certificate, path=certificate)
    return make_plan(request, clock, refusals, certify, watch)

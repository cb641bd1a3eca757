"""A model's plans for prompts and for single tokens: made when they are needed, on one device, with shared weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from smartmem_rules.decoding.cache import Cache
from smartmem_rules.decoding.choosing import Selection
from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.decoding.model.graphs import (
    Step,
)
from smartmem_rules.decoding.model.interface import Interface
from smartmem_rules.decoding.model.keeping import Facts, Keeping
from smartmem_rules.decoding.model.parts import OWN, Part, parts_of
from smartmem_rules.decoding.model.reading import Reading
from smartmem_rules.decoding.room import Demand
from smartmem_rules.planned import PlanOptions, planned
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.devices import AUTO, Device, DeviceError
from smartmem_rules.runtime.executor import Executor, Home
from smartmem_rules.runtime.programs.shared_programs import context_on
from smartmem_rules.runtime.target import Target, target_of
from smartmem_rules.stages import Clock, Progress

if TYPE_CHECKING:
    from smartmem_rules.graph.loading import ModelSource
    from smartmem_rules.graph.model import Graph
    from smartmem_rules.plan.artefact import Plan

ONCE = "once"
"""Stands for the graph of what is computed once for a call, among the steps."""


@dataclass(kw_only=True)
class Plans:
    """Executors by what they choose, in one OpenCL context.

    Attributes:
        reading: the model, which is read again for each plan.
        target: the device, and what its profile says of it.
        cache: the type in which the cache is kept (`parts.TYPES`).
        options: arguments of `optimize`.
    """

    reading: Reading
    facts: Facts
    cache: str
    target: Target
    device: Device
    home: Home
    options: PlanOptions
    keeping: Keeping
    progress: Progress | None = None
    _made: dict[Step | str, Executor] = field(default_factory=dict)

    @property
    def interface(self) -> Interface:
        """The inputs and outputs of the model."""
        return self.facts.interface

    @property
    def parts(self) -> tuple[Part, ...]:
        """The buffers of the cache."""
        return tuple(part for tensor in self.interface.cached for part in parts_of(tensor, self.cache))

    def of_prompts(self, selection: Selection) -> Step:
        """The step that takes prompts."""
        return Step(
            sequences=self.reading.sequences,
            behind=False,
            selection=selection,
            cache=self.cache,
            given=self.facts.given,
        )

    def of_tokens(self, selection: Selection) -> Step:
        """The step that takes a token of each sequence."""
        return Step(
            sequences=self.reading.sequences, behind=True, selection=selection, growth=self.facts.growth,
            cache=self.cache, given=self.facts.given,
        )  # fmt: skip

    def ready(self, steps: Sequence[Step], cache: Cache, positions: int) -> None:
        """Make the plans of steps, if the device has memory for all that were made and for a cache.

        Args:
            positions: of the cache that are needed.

        Raises:
            TooLargeError: the device has too little memory; nothing has run.
            GraphError, PlanError, BuildError, RunError: a plan cannot be made, or the device refuses it.
        """
        wanted: list[Step | str] = [ONCE, *steps] if self.facts.once else [*steps]
        missing = [step for step in wanted if step not in self._made]
        if not missing and not (demand := self.demand(cache, positions)).fits:
            raise demand.refusal()
        for place, step in enumerate(missing):
            plan = self._plan_of(step)
            if not self.demand(cache, positions, plan).fits:
                # what is advised has to fit with all of them
                raise self.demand(cache, positions, plan, *map(self._plan_of, missing[place + 1 :])).refusal()
            self._made[step] = self._executor_of(plan)

    def demand(self, cache: Cache, positions: int, *more: Plan) -> Demand:
        """What the plans that were made, more of them, and a cache of so many positions want of the device."""
        return Demand(
            source=self.reading.source,
            target=self.target,
            base=self.reading.base,
            plans=(*(one.plan for one in self._made.values()), *more),
            outside=self._outside,
            given=tuple(one.bytes for one in self.facts.given),
            sizes=cache.sizes,
            rows=cache.rows,
            positions=positions,
        )

    def executor(self, step: Step | str) -> Executor:
        """What runs a step that is ready."""
        return self._made[step]

    @property
    def executors(self) -> tuple[Executor, ...]:
        """Those that were made so far."""
        return tuple(self._made.values())

    def _plan_of(self, step: Step | str) -> Plan:
        purpose = f"{step} within {self.reading.bound} of {self.facts.given} by {self.interface}"
        behind = isinstance(step, Step) and step.behind
        return self.keeping.plan(purpose, lambda: self._planned(self._graph_of(step)), behind)

    def _graph_of(self, step: Step | str) -> Graph:
        if isinstance(step, Step):
            return self.reading.step(self.interface, step)
        return self.reading.once(self.interface, self.facts.further, self.facts.once)

    @property
    def _outside(self) -> frozenset[str]:
        """The inputs and outputs that are the cache, new rows of it, or stay the same over the steps."""
        cached = (name for part in self.parts for name in (part.input, part.output))
        return frozenset((*cached, *(one.name for one in self.facts.given)))

    def _executor_of(self, plan: Plan) -> Executor:
        outside = self._outside & plan.tensors.keys()
        executor = Executor(plan, self.device, contexts=1, home=self.home, outside=outside)
        _forget_packed(executor)
        return executor

    def _planned(self, graph: Graph) -> Plan:
        asked: PlanOptions = {**self.options, "device": self.device.name}
        return planned(graph, Clock(self.progress), **asked)[0]


def plans_of(
    source: ModelSource,
    sequences: int,
    bound: int,
    cache: str,
    dims: Mapping[str, int],
    options: PlanOptions,
    progress: Progress | None = None,
    with_past: ModelSource | None = None,
) -> Plans:
    """What is needed to make the plans of a model.

    Args:
        cache: the type in which the cache is kept.
        dims: of the open extents of further inputs.
        with_past: of two decoders, the one behind the cache.

    Raises:
        GenerateError: the model has no cache, not so many positions, or a cache that cannot be kept so.
        GraphError: the model is damaged or uses something that no rule covers.
        DeviceError: there is no such device.
    """
    reading = Reading(source=source, with_past=with_past, sequences=sequences, bound=bound, options=options)
    target = target_of(options.get("device", AUTO), reading.base)
    if target.device is None:
        raise DeviceError(f"there is no OpenCL device here to generate with a plan for {target.name}")
    keeping = Keeping(source, options, target.device, with_past)
    facts = keeping.facts(f"{sequences} within {bound} with {sorted(dims.items())}", lambda: reading.facts(dims))
    if facts.positions is not None and bound > facts.positions:
        raise GenerateError(
            f"the bound of the cache is {bound} tokens, and the model knows {facts.positions} positions; give a bound "
            f"of at most {facts.positions}"
        )
    if cache != OWN and not facts.growth.in_place:
        raise GenerateError(
            f"the model writes its whole cache anew in each step, so that {cache} would round it again and again; "
            f"leave the cache as it is ({OWN})"
        )
    return Plans(
        reading=reading, facts=facts, cache=cache, target=target, device=target.device,
        home=Home(context=context_on(target.device)), options=options, keeping=keeping, progress=progress,
    )  # fmt: skip


def _forget_packed(executor: Executor) -> None:
    """Let go of the host's copy of the weights: they lie on the device, and the plan is not saved."""
    tensors = executor.plan.tensors
    for name, stored in tensors.items():
        if stored.role == "constant" and name in executor.built.memory.shared:
            tensors[name] = replace(stored, packed=None)

"""The plans of a model for prompts and for the tokens behind them: made by need, on one device, with shared weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from smartmem_rules.decoding.cache import Cache
from smartmem_rules.decoding.choosing import GREATEST, Selection
from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.decoding.graphs import (
    PAST,
    SEQUENCE,
    Step,
    make_step,
    without_weights,
)
from smartmem_rules.decoding.growth import growth_of
from smartmem_rules.decoding.interface import LOGITS, POSITIONS, Interface, interface_of
from smartmem_rules.decoding.keeping import Facts, Keeping
from smartmem_rules.decoding.parts import OWN, Part, parts_of
from smartmem_rules.decoding.room import Demand
from smartmem_rules.graph.failures import UncoveredNodesError
from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.loading import load_model
from smartmem_rules.limits import DEFAULT_LIMITS
from smartmem_rules.pipeline import input_bounds, rules_of
from smartmem_rules.planned import planned
from smartmem_rules.runtime.devices import AUTO, Device, DeviceError
from smartmem_rules.runtime.executor import Executor, Home
from smartmem_rules.runtime.shared_programs import context_on
from smartmem_rules.runtime.target import Target, target_of
from smartmem_rules.stages import Clock, Progress
from smartmem_rules.tensor.extents import shape_text

if TYPE_CHECKING:
    from smartmem_rules.graph.loading import ModelSource
    from smartmem_rules.graph.model import Graph
    from smartmem_rules.plan.artefact import Plan
    from smartmem_rules.rulebase.base import RuleBase

COUNTS = "seqlens_k"
"""The operand by which an operator places new rows behind as many as each sequence has (ONNX Runtime)."""


@dataclass(kw_only=True)
class Plans:
    """Executors by what they choose, in one OpenCL context.

    Attributes:
        source: the model, which is read again for each plan: nothing keeps its weights on the host.
        target: the device, and what its profile says of it.
        cache: the type in which the cache is kept (`parts.TYPES`).
        options: arguments of `optimize`.
    """

    source: ModelSource
    facts: Facts
    sequences: int
    bound: int
    cache: str
    target: Target
    device: Device
    home: Home
    options: Mapping[str, Any]
    keeping: Keeping
    progress: Progress | None = None
    _made: dict[Step, Executor] = field(default_factory=dict)

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
        return Step(sequences=self.sequences, behind=False, selection=selection, cache=self.cache)

    def of_tokens(self, selection: Selection) -> Step:
        """The step that takes a token of each sequence."""
        return Step(
            sequences=self.sequences, behind=True, selection=selection, growth=self.facts.growth, cache=self.cache
        )

    def ready(self, steps: Sequence[Step], cache: Cache, positions: int) -> None:
        """Make the plans of steps, if the device has memory for all that were made and for a cache.

        Args:
            positions: of the cache that are needed.

        Raises:
            TooLargeError: the device has too little memory; nothing has run.
            GraphError, PlanError, BuildError, RunError: a plan cannot be made, or the device refuses it.
        """
        missing = [step for step in steps if step not in self._made]
        if not missing and not (demand := self.demand(cache, positions)).fits:
            raise demand.refusal()
        for place, step in enumerate(missing):
            plan = self._plan_of(step)
            if not self.demand(cache, positions, plan).fits:
                # what is advised has to fit with all of them
                raise self.demand(cache, positions, plan, *map(self._plan_of, missing[place + 1 :])).refusal()
            self._made[step] = self._executor_of(plan, step)

    def demand(self, cache: Cache, positions: int, *more: Plan) -> Demand:
        """What the plans that were made, more of them, and a cache of so many positions want of the device."""
        return Demand(
            source=self.source,
            target=self.target,
            base=_rules(self.options),
            plans=(*(one.plan for one in self._made.values()), *more),
            outside=self._of_cache,
            sizes=cache.sizes,
            rows=cache.rows,
            positions=positions,
        )

    def executor(self, step: Step) -> Executor:
        """What runs a step that is ready."""
        return self._made[step]

    @property
    def executors(self) -> tuple[Executor, ...]:
        """Those that were made so far."""
        return tuple(self._made.values())

    def _plan_of(self, step: Step) -> Plan:
        return self.keeping.plan(f"{step} within {self.bound}", lambda: self._plan(step))

    @property
    def _of_cache(self) -> frozenset[str]:
        """The inputs and outputs of steps that are the cache, or new rows of it."""
        return frozenset(name for part in self.parts for name in (part.input, part.output))

    def _executor_of(self, plan: Plan, step: Step) -> Executor:
        outside = self._of_cache & plan.tensors.keys()
        executor = Executor(plan, self.device, contexts=1, home=self.home, outside=outside)
        _forget_packed(executor)
        return executor

    def _plan(self, step: Step) -> Plan:
        model, folder = _own_model(self.source)
        make_step(model, self.interface, step)
        graph = _imported(model, folder, step, self.bound, self.options)
        del model
        _check_logits(graph, self.interface.tokens)
        return planned(graph, Clock(self.progress), **{**self.options, "device": self.device.name})[0]


def plans_of(
    source: ModelSource,
    sequences: int,
    bound: int,
    cache: str,
    options: Mapping[str, Any],
    progress: Progress | None = None,
) -> Plans:
    """What is needed to make the plans of a model.

    Raises:
        GenerateError: the model has no cache, not so many positions, or a cache that cannot be kept so.
        GraphError: the model is damaged or uses something that no rule covers.
        DeviceError: there is no such device.
    """
    base = _rules(options)
    target = target_of(options.get("device", AUTO), base)
    if target.device is None:
        raise DeviceError(f"there is no OpenCL device here to generate with a plan for {target.name}")
    keeping = Keeping(source, options, target.device)
    facts = keeping.facts(f"{sequences} within {bound}", lambda: _found_facts(source, sequences, bound, options, base))
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
        source=source, facts=facts, sequences=sequences, bound=bound, cache=cache, target=target, device=target.device,
        home=Home(context=context_on(target.device)), options=options, keeping=keeping, progress=progress,
    )  # fmt: skip


def _found_facts(source: ModelSource, sequences: int, bound: int, options: Mapping[str, Any], base: RuleBase) -> Facts:
    """What the graph of a step behind a cache says, for which no weights are read."""
    model, folder = _own_model(source)
    interface = interface_of(model)
    step = Step(sequences=sequences, behind=True, selection=Selection(kind=GREATEST))
    without_weights(model)
    make_step(model, interface, step)
    graph = _imported(model, folder, step, bound, options)
    bounds = input_bounds(graph)
    definitions = (base.operators.get(node.operator, ()) for node in graph.nodes)
    operands = {operand.name for overloads in definitions for one in overloads for operand in one.inputs}
    return Facts(
        interface=interface,
        growth=growth_of(graph, interface.cached, bound),
        vocabulary=bounds.get(interface.tokens),
        positions=bounds.get(POSITIONS),
        counts=COUNTS in operands,
        pads=interface.mask and (interface.positions or COUNTS in operands),
    )


def _check_logits(graph: Graph, tokens: str) -> None:
    """Refuse a model that does not give logits of all tokens of a prompt."""
    shape, given = graph.types[LOGITS].shape, graph.types[tokens].shape
    if len(shape) != 3 or shape[:2] != given:
        raise GenerateError(
            f"the output {LOGITS} is {shape_text(shape)}, and has to be [sequences, tokens, vocabulary], with the "
            "logits of each token of a prompt; export the model again"
        )


def _own_model(source: ModelSource) -> tuple[onnx.ModelProto, Path | None]:
    """The model, to be changed, and the folder where its data files are."""
    model, folder = load_model(source)
    if model is not source:
        return model, folder
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    return copied, folder


def _rules(options: Mapping[str, Any]) -> RuleBase:
    return rules_of(options.get("rules", ()), options.get("disable", ()))


def _imported(model: onnx.ModelProto, folder: Path | None, step: Step, bound: int, options: Mapping[str, Any]) -> Graph:
    base = _rules(options)
    # the last token of a full cache and a longest prompt both need a place more
    dims = {PAST if step.behind else SEQUENCE: (1, bound - 1)}
    try:
        return import_model(model, base, dims, limits=options.get("limits", DEFAULT_LIMITS), folder=folder)
    except UncoveredNodesError as error:
        said = "\n".join(line for line in str(error).splitlines() if "--dim" not in line)
        raise GenerateError(
            f"{said}\nor, where it is the number of tokens that cannot be ({PAST} are those in the cache, {SEQUENCE} "
            f"those of a prompt), give a bound below {bound}"
        ) from error


def _forget_packed(executor: Executor) -> None:
    """Let go of the host's copy of the weights: they lie on the device, and the plan is not saved."""
    tensors = executor.plan.tensors
    for name, stored in tensors.items():
        if stored.role == "constant" and name in executor.built.memory.shared:
            tensors[name] = replace(stored, packed=None)

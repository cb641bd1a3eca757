"""What the stages of an optimization measured and decided: a plan carries it, its file and its reports show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Any, Literal, cast

from smartmem_rules.exchange.documents import IntermediateMemory, MissedRule, RulePlace, SourcePlace
from smartmem_rules.records import dataclass

SKIPPED = {"status": "skipped", "gap": 0.0}
"""What reports say of a choice that the level left out."""
_ROUNDING = 1e-12
"""A gap below this share of the cost is none: the same costs were added in another order."""


def relative_gap(cost: float, bound: float) -> float:
    """By what share of its cost a choice may be above the best one; 0 where it is known to be the best."""
    gap = 0.0 if cost <= 0 else max(0.0, cost - bound) / cost
    return gap if gap > _ROUNDING else 0.0


@dataclass(frozen=True, kw_only=True)
class ModelStatistics:
    """What a plan remembers of its model.

    Attributes:
        operators: how many it has.
        operator_types: how many of each type, the most frequent first.
        layout_operators: those that only move data.
        bytes_moved_before: what all operators read and write, one after the other.
        tensor_bytes: of the tensors between them.
        input_bounds: for each integer input that is used as an index how many values it can take.
        nodes: the operator of each ONNX node by its name.
        data_files: the files in the folder of the model that hold weights.
    """

    operators: int = 0
    operator_types: Mapping[str, int] = field(default_factory=dict)
    layout_operators: int = 0
    bytes_moved_before: int = 0
    tensor_bytes: int = 0
    input_bounds: Mapping[str, int] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)
    data_files: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RuleCounts:
    """One rule's share of a saturation: matches looked at, rewrites done, time, e-nodes that only it made first."""

    rule: str
    tried: int
    fired: int
    milliseconds: float
    enodes: int


@dataclass(frozen=True, kw_only=True)
class SourceRange:
    """A range of a rule file: lines and columns count from 1, the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, kw_only=True)
class RuleSource:
    """Where a rule stands, the equation of the comment beside its name, and where the rule comes from."""

    range: SourceRange
    equation: str
    cites: str | None = None

    def data(self) -> RulePlace:
        """The content for JSON: {file, line, column, end_line, end_column, equation, cites}."""
        return {**cast("SourcePlace", asdict(self.range)), "equation": self.equation, "cites": self.cites}

    @staticmethod
    def of(data: Mapping[str, Any]) -> RuleSource:
        """Read what `data` wrote."""
        place = {name: value for name, value in data.items() if name not in ("equation", "cites")}
        return RuleSource(range=SourceRange(**place), equation=data["equation"], cites=data.get("cites"))


@dataclass(frozen=True, kw_only=True)
class NearMiss:
    """A rule that matched at a node, and the guard that turned it down.

    Attributes:
        reason: what failed.
        values: of the guard's terms.
        guard: where it stands.
    """

    rule: str
    reason: str
    values: Mapping[str, str]
    guard: SourceRange | None = None

    def data(self) -> MissedRule:
        """The content for JSON: {rule, reason, values} and, where it is known, {guard}."""
        found: MissedRule = {"rule": self.rule, "reason": self.reason, "values": dict(self.values)}
        return found if self.guard is None else {**found, "guard": cast("SourcePlace", asdict(self.guard))}

    @staticmethod
    def of(data: Mapping[str, Any]) -> NearMiss:
        """Read what `data` wrote."""
        guard = data.get("guard")
        return NearMiss(
            rule=data["rule"],
            reason=data["reason"],
            values=dict(data["values"]),
            guard=None if guard is None else SourceRange(**guard),
        )


@dataclass(frozen=True, kw_only=True)
class Extraction:
    """How good an extraction is; cost and bound are nanoseconds in the cost model.

    Attributes:
        choices: those that were left for the solver.
    """

    status: str
    gap: float
    cost: float
    bound: float
    seconds: float
    classes: int
    choices: int


@dataclass(frozen=True, kw_only=True)
class PhaseStatistics:
    """How far a phase of the level's strategy came; `stopped` is the limit that ended it, `enodes` are at its end."""

    rulesets: tuple[str, ...]
    rounds: int
    enodes: int
    seconds: float
    stopped: str | None


@dataclass(frozen=True, kw_only=True)
class SaturationStatistics:
    """How far a saturation came; `stopped` says which bound ended which phase early."""

    stopped: str | None
    iterations: int
    enodes: int
    phases: tuple[PhaseStatistics, ...] = ()

    @staticmethod
    def of(data: Mapping[str, Any]) -> SaturationStatistics:
        """The statistics from their JSON form."""
        phases = (PhaseStatistics(**{**one, "rulesets": tuple(one["rulesets"])}) for one in data.get("phases", ()))
        return SaturationStatistics(**{**data, "phases": tuple(phases)})


@dataclass(frozen=True, kw_only=True)
class RewriteStatistics:
    """What the rewrite rules did.

    Attributes:
        extraction, saturation: None where the level runs no rules.
        rules_of_node: for each ONNX node the rules that made what was chosen in its place.
        near_misses: for each ONNX node the rules that nearly fired there, the nearest first.
        rule_sites: for each rule that fired the ONNX nodes whose results it rewrote.
        rule_places: where the rules stand that took part.
    """

    extraction: Extraction | None = None
    saturation: SaturationStatistics | None = None
    rules: tuple[RuleCounts, ...] = ()
    rules_of_node: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    near_misses: Mapping[str, tuple[NearMiss, ...]] = field(default_factory=dict)
    rule_sites: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rule_places: Mapping[str, RuleSource] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LayoutStatistics:
    """How well layouts were chosen; costs in microseconds, the time of the choice in seconds."""

    status: str
    gap: float
    cost: float
    bound: float
    local_cost: float
    tensors: int
    images: int
    buffers: int
    copies: int
    copy_kernels: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class JointStatistics:
    """How well kernels were chosen together with layouts; costs in microseconds, the time of the choice in seconds.

    `plan.joint.JointChoice` says what each figure is.
    """

    status: str
    gap: float
    cost: float
    bound: float
    two_step_cost: float
    local_cost: float
    kernel_cost: float
    by_rules: int
    alternatives: int
    regions: int
    changed: int
    seconds: float
    kernels: int


@dataclass(frozen=True, kw_only=True)
class LayoutCandidate:
    """A layout that a tensor could have; None where its kernels cannot write or read it so."""

    layout: str
    microseconds: float | None


@dataclass(frozen=True, kw_only=True)
class TensorLayout:
    """How a tensor lies in memory and what else it could have been.

    Attributes:
        copy: its second layout.
        reduced: the axes along which its readers sum.
        readers: the kernels that read it.
    """

    layout: str
    copy: str | None
    reduced: tuple[str, ...]
    candidates: tuple[LayoutCandidate, ...]
    readers: tuple[str, ...]

    @staticmethod
    def of(data: Mapping[str, Any]) -> TensorLayout:
        """Read what `asdict` made."""
        return TensorLayout(
            layout=data["layout"],
            copy=data["copy"],
            reduced=tuple(data["reduced"]),
            candidates=tuple(LayoutCandidate(**one) for one in data["candidates"]),
            readers=tuple(data["readers"]),
        )


@dataclass(frozen=True, kw_only=True)
class MemoryStatistics:
    """Bytes of device memory for intermediates, each filled up to the device's alignment.

    Attributes:
        reused: with sharing.
        separate: with one buffer or image for each tensor.
        bound: no placement of this kernel order needs less: the largest sum of bytes that are live at once.
        optimal: whether no order and no placement needs less.
    """

    reused: int
    separate: int
    bound: int
    optimal: bool

    def data(self) -> IntermediateMemory:
        """The content for JSON."""
        status: Literal["optimal", "feasible"] = "optimal" if self.optimal else "feasible"
        return {"reused": self.reused, "separate": self.separate, "bound": self.bound, "status": status}

    @staticmethod
    def of(data: Mapping[str, Any]) -> MemoryStatistics:
        """Read what `data` wrote."""
        own = {name: data[name] for name in ("reused", "separate", "bound")}
        return MemoryStatistics(**own, optimal=data["status"] == "optimal")


@dataclass(frozen=True, kw_only=True)
class PlanStatistics:
    """What the planner chose.

    Attributes:
        layouts: None where tensors stay row-major.
        joint: None where the fusion rules alone made the kernels.
        tensor_layouts: of the tensors whose layout was open.
        memory: of the intermediates.
    """

    layouts: LayoutStatistics | None = None
    joint: JointStatistics | None = None
    tensor_layouts: Mapping[str, TensorLayout] = field(default_factory=dict)
    memory: MemoryStatistics | None = None

    def layouts_data(self) -> dict[str, object]:
        """What reports say of the choice of layouts and, in `joint`, of kernels with them."""
        own = dict(SKIPPED) if self.layouts is None else asdict(self.layouts)
        return own if self.joint is None else {**own, "joint": asdict(self.joint)}


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """What the stages of an optimization measured and decided.

    Attributes:
        memory: where tensors may lie, as the user asked: auto, image or buffer.
        device: the name of the device for which the plan was made.
        stored_wide: tensors of a float16 plan that are stored as float32.
        seconds: by stage, with `total`; empty where nobody measured.
        from_cache: whether the plan was made before and found again.
    """

    model: ModelStatistics = field(default_factory=ModelStatistics)
    rewriting: RewriteStatistics = field(default_factory=RewriteStatistics)
    planning: PlanStatistics = field(default_factory=PlanStatistics)
    memory: str = "auto"
    device: str = ""
    stored_wide: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    from_cache: bool = False

    def data(self) -> dict[str, object]:
        """The content for JSON, as the file of a plan holds it."""
        model, rewriting, planning = self.model, self.rewriting, self.planning
        return {
            **asdict(model),
            "extraction": SKIPPED if rewriting.extraction is None else asdict(rewriting.extraction),
            "saturation": None if rewriting.saturation is None else asdict(rewriting.saturation),
            "rules": [asdict(one) for one in rewriting.rules],
            "rules_of_node": dict(rewriting.rules_of_node),
            "near_misses": {node: [one.data() for one in misses] for node, misses in rewriting.near_misses.items()},
            "rule_sites": dict(rewriting.rule_sites),
            "rule_places": {rule: place.data() for rule, place in rewriting.rule_places.items()},
            "layouts": planning.layouts_data(),
            "tensor_layouts": {name: asdict(one) for name, one in planning.tensor_layouts.items()},
            "intermediate_bytes": {} if planning.memory is None else planning.memory.data(),
            "memory": self.memory,
            "device": self.device,
            "stored_wide": list(self.stored_wide),
            "seconds": dict(self.seconds),
        }

    @staticmethod
    def of(data: Mapping[str, Any]) -> Statistics:
        """Read what `data` wrote.

        Raises:
            KeyError, TypeError: it is damaged.
        """
        known = ModelStatistics.__dataclass_fields__
        model = {name: data[name] for name in known if name in data}
        return Statistics(
            model=ModelStatistics(**{**model, "data_files": tuple(model.get("data_files", ()))}),
            rewriting=_rewriting(data),
            planning=_planning(data),
            memory=data.get("memory", "auto"),
            device=data.get("device", ""),
            stored_wide=tuple(data.get("stored_wide", ())),
            seconds=dict(data.get("seconds", {})),
        )


def _rewriting(data: Mapping[str, Any]) -> RewriteStatistics:
    extraction, saturation = data.get("extraction", SKIPPED), data.get("saturation")
    misses = data.get("near_misses", {})
    return RewriteStatistics(
        extraction=None if extraction == SKIPPED else Extraction(**extraction),
        saturation=None if saturation is None else SaturationStatistics.of(saturation),
        rules=tuple(RuleCounts(**one) for one in data.get("rules", ())),
        rules_of_node=_tuples(data.get("rules_of_node", {})),
        near_misses={node: tuple(NearMiss.of(one) for one in found) for node, found in misses.items()},
        rule_sites=_tuples(data.get("rule_sites", {})),
        rule_places={rule: RuleSource.of(place) for rule, place in data.get("rule_places", {}).items()},
    )


def _planning(data: Mapping[str, Any]) -> PlanStatistics:
    layouts, memory = dict(data.get("layouts", SKIPPED)), data.get("intermediate_bytes")
    joint = layouts.pop("joint", None)
    return PlanStatistics(
        layouts=None if layouts == SKIPPED else LayoutStatistics(**layouts),
        joint=None if joint is None else JointStatistics(**joint),
        tensor_layouts={name: TensorLayout.of(one) for name, one in data.get("tensor_layouts", {}).items()},
        memory=MemoryStatistics.of(memory) if memory else None,
    )


def _tuples(data: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(values) for name, values in data.items()}

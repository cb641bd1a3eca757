"""What explains a plan, as documents."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from smartmem_rules.exchange.documents import MissedRule, RulePlace, SourcePlace, with_fields_of
from smartmem_rules.runtime.reference import ComparedOutputs
from smartmem_rules.statistics import (
    Extraction,
    JointStatistics,
    LayoutStatistics,
    SaturationStatistics,
)


class Skipped(TypedDict):
    """A choice that the level left out."""

    status: Literal["skipped"]
    gap: float


class SkippedLayouts(TypedDict):
    """Layouts that the level left row-major."""

    status: Literal["skipped"]
    gap: float
    joint: NotRequired[JointStatistics]


@with_fields_of(LayoutStatistics)
class Layouts(TypedDict):
    """How well layouts were chosen, and kernels with them."""

    joint: NotRequired[JointStatistics]


@with_fields_of(Extraction)
class Extracted(TypedDict):
    """How good an extraction is; cost and bound are nanoseconds in the cost model."""

    status: str
    gap: float


@with_fields_of(SaturationStatistics)
class Saturated(TypedDict):
    """How far a saturation came; `stopped` says which bound ended which phase early."""

    stopped: str | None


class DeviceMemory(TypedDict):
    """Bytes of device memory.

    Attributes:
        weights: constants, as they are packed.
        intermediates: at the greatest extents.
        cache_per_token: what one more token takes in keys and values (past_key_values); None without such inputs.
    """

    weights: int
    intermediates: int
    cache_per_token: int | None


class LayoutOperators(TypedDict):
    """Nodes of the model that only move data, and kernels of the plan that do."""

    before: int
    after: int


class IntermediateBytes(TypedDict):
    """Bytes of device memory for intermediates.

    Attributes:
        model: of all tensors between the model's operators.
        reused: with sharing.
        separate: with one buffer or image for each tensor.
        bound: no placement of this kernel order needs less.
    """

    model: int
    reused: NotRequired[int]
    separate: NotRequired[int]
    bound: NotRequired[int]
    status: NotRequired[Literal["optimal", "feasible"]]


class MaybePlaced(TypedDict, total=False):
    """Where a rule stands, where that is known."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    equation: str
    cites: str | None


class Miss(MissedRule, MaybePlaced):
    """A rule that matched at a node, the guard that turned it down, and where the rule stands."""


class LeftNode(TypedDict):
    """An ONNX node that is left in kernels: a rule nearly removed it, or the kernels only move data for it."""

    node: str
    operator: str
    kernels: list[str]
    moves_only: bool
    near_misses: list[Miss]


class RuleOfPlan(TypedDict):
    """What a rule did.

    Attributes:
        in_plan: on the way to how many nodes of the plan it lies.
    """

    rule: str
    tried: int
    fired: int
    milliseconds: float
    enodes: int
    in_plan: int


class OptimizeReport(TypedDict):
    """A plan.

    Attributes:
        device: that it runs on; of a plan for another computer the name that it was made for.
        profile: the device block of the rules.
        memory: where tensors may lie, as the user asked.
        dimensions: those that are open, with their least and greatest extents.
        counted: extents that a run counts because operators have to know them, with the greatest that they can be.
        operators: nodes of the ONNX graph, constants not counted.
        kernels: enqueues of one inference.
        seconds: by stage, with `total`.
        from_cache: whether the plan was made before and found again.
        bytes_moved: of the tensors that launches read and write.
        bytes_moved_before: what all operators of the model read and write, one after the other.
        certificate: the file, with --certificate.
        dumped: files, with --dump.
        rules: with --rule-stats.
        left: with --explain-left.
        failed_on: the conditions of --fail-on that hold.
    """

    model: str
    device: str
    profile: str
    level: str
    dtype: str
    memory: str
    dimensions: dict[str, tuple[int, int]]
    counted: dict[str, int]
    operators: int
    operator_types: dict[str, int]
    kernels: int
    kernel_forms: dict[str, int]
    layout_operators: LayoutOperators
    seconds: dict[str, float]
    from_cache: bool
    bytes_moved: int
    bytes_moved_before: int
    device_bytes: DeviceMemory
    intermediate_bytes: IntermediateBytes
    check: ComparedOutputs | None
    extraction: Extracted | Skipped
    layouts: Layouts | SkippedLayouts
    saturation: Saturated | None
    certificate: NotRequired[str]
    dumped: NotRequired[list[str]]
    rules: NotRequired[list[RuleOfPlan]]
    left: NotRequired[list[LeftNode]]
    failed_on: NotRequired[list[str]]


class WrittenLayout(TypedDict):
    """How a tensor lies in memory; what else that could have been where it was chosen."""

    layout: str
    copy: NotRequired[str | None]
    reduced: NotRequired[tuple[str, ...]]
    candidates: NotRequired[tuple[CandidateShown, ...]]
    readers: NotRequired[tuple[str, ...]]


class CandidateShown(TypedDict):
    """A layout that a tensor could have; None where its kernels cannot write or read it so."""

    layout: str
    microseconds: float | None


class WrittenTensor(WrittenLayout):
    """A tensor that a kernel writes."""

    tensor: str


KernelOfNode = TypedDict(
    "KernelOfNode",
    {
        "name": str,
        "form": str,
        "moves_only": bool,
        "with": list[str],
        "bytes_moved": int,
        "writes": list[WrittenTensor],
    },
)
KernelOfNode.__doc__ = "A kernel that computes a node, `with` others."


class NodeExplanation(TypedDict):
    """What became of an ONNX node.

    Attributes:
        rules: that made what was chosen in its place.
        near_misses: rules that nearly fired there, the nearest first.
    """

    node: str
    operator: str
    outcome: str
    kernels: list[KernelOfNode]
    rules: list[str]
    rule_places: dict[str, RulePlace]
    near_misses: list[Miss]


class NodeOperator(TypedDict):
    """An ONNX node."""

    node: str
    operator: str


class MissAtNode(NodeOperator):
    """Where a rule nearly fired."""

    reason: str
    values: dict[str, str]
    guard: NotRequired[SourcePlace]


class RuleExplanation(MaybePlaced):
    """Where a rule fired on a model and where it nearly did."""

    rule: str
    tried: int
    fired: int
    milliseconds: float
    enodes: int
    nodes: list[NodeOperator]
    near_misses: list[MissAtNode]


class PlaceOfBlock(TypedDict, total=False):
    """Where a block of a rule file stands, where that is known."""

    file: str
    line: int


class Refused(PlaceOfBlock):
    """A fusion rule that keeps two kernels apart, by the figure that failed."""

    rule: str
    reason: str
    figure: float | None
    limit: float | None
    writer: list[str]
    reader: list[str]


class PairExplanation(TypedDict):
    """What keeps two nodes apart, the refusal that came nearest first."""

    nodes: list[NodeOperator]
    kernels: list[list[str]]
    together: bool
    answer: str
    refusals: list[Refused]


class KernelProfile(TypedDict):
    """Where the time of a plan goes: one kernel; `share` of all kernels, `roof_share` of what the device can."""

    kernel: str
    form: str
    origin: list[str]
    schedule: dict[str, object]
    ms: float
    share: float
    gflops: float
    gbytes_per_s: float
    roof_share: float


class LaunchShown(TypedDict):
    """A launch; sizes are texts, because they may be expressions of open dimensions."""

    number: int
    name: str
    form: str
    kernels: list[str]
    origin: list[str]
    reads: list[str]
    writes: list[str]
    bytes_moved: int
    operations: int
    global_size: list[str]
    local_size: list[str] | None


class LaunchList(TypedDict):
    """The launches of a plan in the order of execution."""

    model: str
    launches: list[LaunchShown]


class ScheduleShown(TypedDict):
    """The sizes of a kernel and the figures that chose them."""

    sizes: str
    figures: list[str]


class LayoutShown(TypedDict):
    """A tensor's layout beside the others that it could have."""

    layout: str
    candidates: list[str]


class KernelShown(TypedDict):
    """One kernel, with the OpenCL C of its launch."""

    name: str
    launch: int
    text: str
    schedule: dict[str, ScheduleShown]
    layouts: dict[str, LayoutShown]
    launched_as: str
    source: str


class StageDifference(TypedDict):
    """What differs between two plans after a stage; numbers of lines, and the lines as in a unified diff."""

    stage: str
    same: bool
    removed: int
    added: int
    lines: list[str]


class DiffReport(TypedDict):
    """What differs between two plans; `launches` are the numbers of both."""

    launches: list[int]
    stages: list[StageDifference]

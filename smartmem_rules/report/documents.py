"""What `smartmem report` writes into its page, and prints with `--json`."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from smartmem_rules.exchange.documents import MissedRule
from smartmem_rules.explanation.documents import (
    LaunchShown,
    LayoutShown,
    LeftNode,
    MaybePlaced,
    OptimizeReport,
    ScheduleShown,
    StageDifference,
)

Role = Literal["input", "output", "constant", "intermediate"]
SlotMemory = Literal["buffer", "image"]


class ModelNode(TypedDict):
    """A node of the ONNX model.

    Attributes:
        domain: of the operator, empty for ONNX's own.
        inputs, outputs: names of tensors; empty where the plan comes without its model.
        kind: computed by launches, a view that others read in place, a constant that was computed at import, unfolded
            into the nodes of its body, or unneeded by any output.
        outcome: that in a sentence.
        launches: the numbers of those that compute parts of it.
        rules: that made what was chosen in its place.
        near_misses: rules that nearly fired there, the nearest first.
    """

    node: str
    operator: str
    domain: str
    inputs: list[str]
    outputs: list[str]
    kind: Literal["computed", "view", "constant", "unfolded", "unneeded"]
    outcome: str
    launches: list[int]
    rules: list[str]
    near_misses: list[MissedRule]


class LaunchTime(TypedDict):
    """The median time of a launch, its share of all launches, and how much of what the device can that is."""

    ms: float
    share: float
    gflops: float
    gbytes_per_s: float
    roof_share: float


class ReportedLaunch(LaunchShown):
    """A launch.

    Attributes:
        text: its kernels with equations, tensors and schedules.
        schedule: of its kernels, by name.
        layouts: of the tensors whose layout was open, by name.
        program: its OpenCL C, by its place in `programs`.
        local_bytes: of local memory that a work-group takes.
        modelled_us: microseconds by the cost model; null where they are not known.
        measured: null where nobody measured.
    """

    text: str
    schedule: dict[str, ScheduleShown]
    layouts: dict[str, LayoutShown]
    launched_as: str
    program: int
    local_bytes: int
    modelled_us: float | None
    measured: LaunchTime | None


class ReportedTensor(TypedDict):
    """A tensor in device memory.

    Attributes:
        bytes: that it takes at most.
        slot, offset: the piece of memory of an intermediate and its place there.
        first, last: the launches between which an intermediate's contents count.
    """

    type: str
    role: Role
    layout: str
    storage: str
    bytes: int
    slot: int | None
    offset: int | None
    first: int | None
    last: int | None


class ReportedSlot(TypedDict):
    """A piece of device memory that intermediates share."""

    memory: SlotMemory
    bytes: int


class MaybeCounted(TypedDict, total=False):
    """What a rule did, where that is known."""

    tried: int
    fired: int
    milliseconds: float
    enodes: int


class ReportedRule(MaybePlaced, MaybeCounted):
    """A rule that took part.

    Attributes:
        verdict: of its verification, such as `proved (...)` or `tested (...)`; null where there was none.
        nodes: the ONNX nodes on whose way to the plan it lies.
    """

    verdict: str | None
    nodes: list[str]


class MeasuredPlan(TypedDict):
    """Where and how often a plan was measured: whole inferences, and what the device reaches at most."""

    device: str
    runs: int
    gflops: float
    gbytes_per_s: float
    median_ms: float
    min_ms: float
    max_ms: float


class ReportedPlan(TypedDict):
    """A plan.

    Attributes:
        figures: what `smartmem optimize --json` prints.
        types: of the model's tensors, by name.
        launches: in the order of execution.
        programs: OpenCL C; launches of one structure share it.
        tensors: in device memory, by name.
        left: what the rules left.
        measured: null where nobody measured.
    """

    figures: OptimizeReport
    inputs: list[str]
    outputs: list[str]
    nodes: list[ModelNode]
    types: dict[str, str]
    launches: list[ReportedLaunch]
    programs: list[str]
    tensors: dict[str, ReportedTensor]
    slots: list[ReportedSlot]
    rules: dict[str, ReportedRule]
    left: list[LeftNode]
    measured: MeasuredPlan | None


class ReportedLevel(TypedDict):
    """What the plan of a level comes to.

    Attributes:
        layout_operators_after: launches that only move data.
        intermediate_bytes: of device memory.
        modelled_us: of all launches; null where one has no modelled time.
        measured_ms: of an inference; null where nobody measured.
        seconds: that the stages of planning took.
    """

    level: str
    kernels: int
    layout_operators_after: int
    bytes_moved: int
    intermediate_bytes: int | None
    modelled_us: float | None
    measured_ms: float | None
    seconds: float


class ComparedPlan(TypedDict):
    """The plan that the first one is compared with, and what differs stage by stage."""

    plan: ReportedPlan
    stages: list[StageDifference]


class ModelReport(TypedDict):
    """A report of a plan.

    Attributes:
        format: a greater number means that a key has changed its meaning.
        levels: of the same model, compared.
        against: null where no second plan was given.
        page: the file that was written, where one was.
    """

    format: int
    program: str
    plan: ReportedPlan
    levels: list[ReportedLevel]
    against: ComparedPlan | None
    page: NotRequired[str]

"""What the commands print that run, measure, simulate and export, and those about the program itself."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from smartmem_rules.bundle import Bundle
from smartmem_rules.quantization.report import Report as QuantizeReport
from smartmem_rules.runtime.calibration.record import Calibration
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.roof import Roof
from smartmem_rules.runtime.selftest.report import Report
from smartmem_rules.schema.derive import with_fields_of
from smartmem_rules.schema.plans import ComparedOutputs


class OutputSummary(TypedDict):
    """An output of a run; the figures are of its finite elements, null where there are none."""

    shape: list[int]
    dtype: str
    min: float | None
    mean: float | None
    max: float | None
    not_finite: int
    file: str | None


class RunReport(TypedDict):
    """One inference.

    Attributes:
        seed: of the inputs that were not given, `random_inputs`.
        trace: the file, with --trace.
    """

    model: str
    device: str
    level: str
    dtype: str
    kernels: int
    milliseconds: float
    seed: int
    random_inputs: list[str]
    outputs: dict[str, OutputSummary]
    trace: NotRequired[str]


@with_fields_of(QuantizeReport)
class QuantizedModel(TypedDict):
    """A model whose products got weights of few bits, the file that holds it, and what that loses."""

    model: str
    output: str


class KernelProfile(TypedDict):
    """Where the time of a plan goes: one kernel; `share` of all kernels, `roof_share` of what the device can."""

    kernel: str
    form: str
    origin: list[str]
    schedule: dict[str, Any]
    ms: float
    share: float
    gflops: float
    gbytes_per_s: float
    roof_share: float


class PeerCheck(TypedDict):
    """How far another system's outputs are from the reference's."""

    max_relative_error: float
    passed: None


class BenchRow(TypedDict):
    """The times of a level, or of another system, in milliseconds of whole inferences."""

    model: str
    level: str | None
    peer: str | None
    check: ComparedOutputs | PeerCheck | None
    median_ms: float
    min_ms: float
    max_ms: float
    quartile_1_ms: float
    quartile_3_ms: float
    runs: int
    kernels: int | None
    device: str
    profile: NotRequired[list[KernelProfile]]


class SkippedPeer(TypedDict):
    """A system that was left out."""

    model: str
    peer: str
    reason: str


@with_fields_of(Roof)
class RoofOfDevice(TypedDict):
    """What a device reaches at most."""

    device: str


class BenchReport(TypedDict):
    """Models, levels and systems measured in turns; `roof` is there with --profile, `csv` with --csv."""

    results: list[BenchRow]
    skipped: list[SkippedPeer]
    roof: NotRequired[RoofOfDevice]
    csv: NotRequired[str]


class CacheTraffic(TypedDict):
    """What a memory of the simulated device saw."""

    requests: NotRequired[int]
    misses: NotRequired[int]
    bytes: NotRequired[int]


class SimulationError(TypedDict):
    """How far off the sampled figures may be, relative to them."""

    accesses: float
    misses: float


class SimulatedKernel(TypedDict):
    """A kernel in the simulated device; `bound` is what its time comes from."""

    name: str
    nodes: list[str]
    accesses: int
    misses: int
    texture_l1_misses: int
    l2_misses: int
    bytes: int
    estimated_ms: float
    bound: str
    sampled: bool


class SimulatedLevel(TypedDict):
    """A level's plan in the simulated device."""

    kernels: int
    accesses: int
    misses: int
    bytes: int
    estimated_ms: float
    memories: dict[str, CacheTraffic]
    relative_error: SimulationError
    sampled_kernels: int
    by_kernel: list[SimulatedKernel]


class SimulateReport(TypedDict):
    """A model's levels in the simulated device."""

    model: str
    device: str
    dtype: str
    memory: str
    levels: dict[str, SimulatedLevel]


class CostModelRatios(TypedDict):
    """How many times slower the cost model's sizes are than the tuned ones; null where nothing was measured."""

    mean_ratio: float | None
    largest_ratio: float | None


class TunedKernel(TypedDict):
    """A kernel whose sizes were searched; `count` others of the model are like it."""

    kernel: str
    label: str
    count: int
    share: float
    choices: int
    trials: int
    done: bool
    default: dict[str, int]
    choice: dict[str, int]
    default_ms: float | None
    best_ms: float | None


class TuneReport(TypedDict):
    """A search for faster sizes; `budget` and `seconds` are of the search."""

    model: str
    device: str
    driver: str
    level: str
    dtype: str
    budget: float
    seed: int
    database: str | None
    seconds: float
    interrupted: bool
    trials: int
    before_ms: float | None
    after_ms: float | None
    cost_model: CostModelRatios
    kernels: list[TunedKernel]
    failures: list[str]


@with_fields_of(Calibration)
class CalibrationReport(TypedDict):
    """What was measured of a device, and the file that keeps it; `register_width` is in floats."""

    format: int
    file: str
    register_width: int


class ForgottenCalibration(TypedDict):
    """Whether there was a calibration, with --forget."""

    device: str
    driver: str
    forgotten: bool


@with_fields_of(Bundle)
class ExportReport(TypedDict):
    """The program in C that was written; `targets` are the devices that its plans were made for."""

    model: str
    targets: list[str]


class WalkedLaunches(TypedDict):
    """Launches compared one by one; `launch` and `kernel` are the first wrong ones, null where none is."""

    looked_at: int
    unasked: dict[str, str]
    launch: int | None
    kernel: str | None
    differences: list[str]


class DoctorReport(TypedDict):
    """What `smartmem doctor` found; `no_check` says why the whole model was not compared."""

    model: str
    healthy: bool
    report: Report
    check: ComparedOutputs | None
    no_check: str
    walk: WalkedLaunches | None
    files: list[str]
    unwritten: list[str]


class Uncertified(TypedDict):
    """A node or kernel of which a certificate says that it does not certify it."""

    node: NotRequired[str]
    kernel: NotRequired[str]
    reason: str


class CertifiedPlan(TypedDict):
    """A certificate whose steps all hold."""

    model: str
    steps: int
    rules: list[str]
    nodes: int
    certified: int
    kernels: int
    certified_kernels: int
    uncertified: list[Uncertified]
    refused: None


class RefusedCertificate(TypedDict):
    """What in a certificate does not hold."""

    refused: str


class ShippedModel(TypedDict):
    """A model that comes with the project; `network` is its name in SmartMem's tables."""

    name: str
    network: str | None
    operators: int
    parameters: int
    opset: int | None
    bytes: int


class ShippedModels(TypedDict):
    """The models that come with the project."""

    models: list[ShippedModel]


class WrittenFiles(TypedDict):
    """Files that were written."""

    written: list[str]


@with_fields_of(Device)
class DeviceWithProfile(TypedDict):
    """An OpenCL device; `profile` is the device block of the rules that describes it."""

    profile: str


class DeviceList(TypedDict):
    """The devices of this computer; `auto` is the place of the one that is taken by default."""

    devices: list[DeviceWithProfile]
    auto: str
    profiles: list[str]


class VariableShown(TypedDict):
    """A variable of the environment; `value` is null where it is not set."""

    name: str
    value: str | None
    default: str
    meaning: str


class ConfigReport(TypedDict):
    """Variables, and where things are kept: null where nothing is; `unknown` are set, but nothing reads them."""

    version: str
    variables: list[VariableShown]
    places: dict[str, str | None]
    unknown: list[str]


Sarif = TypedDict("Sarif", {"$schema": str, "version": Literal["2.1.0"], "runs": list[dict[str, Any]]})
Sarif.__doc__ = "Messages in SARIF 2.1.0, which has a schema of its own, named under `$schema`."

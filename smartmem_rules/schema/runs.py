"""What the commands print that run, measure, simulate and export, and those about the program itself."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from smartmem_rules.benchmarking.plots import MeasuredSystem
from smartmem_rules.bundle import Bundle
from smartmem_rules.exchange.certificates import CertifiedPlan
from smartmem_rules.exchange.documents import with_fields_of
from smartmem_rules.explanation.documents import KernelProfile
from smartmem_rules.graph.zoo import ShippedModel
from smartmem_rules.quantization.report import Report as QuantizeReport
from smartmem_rules.runtime.calibration.record import Calibration
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.reference import ComparedOutputs
from smartmem_rules.runtime.selftest.report import Report
from smartmem_rules.tuning.tuner import CostModelRatios, TunedKernel


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


class PeerCheck(TypedDict):
    """How far another system's outputs are from the reference's."""

    max_relative_error: float
    passed: None


class BenchLabel(TypedDict):
    """A contender, and how far its outputs are from the reference's."""

    model: str
    level: str | None
    peer: str | None
    check: ComparedOutputs | PeerCheck | None


class BenchRow(MeasuredSystem):
    """The times of a level, or of another system, in milliseconds of whole inferences."""

    check: ComparedOutputs | PeerCheck | None
    profile: NotRequired[list[KernelProfile]]


class SkippedPeer(TypedDict):
    """A system that was left out."""

    model: str
    peer: str
    reason: str


class RoofOfDevice(TypedDict):
    """What a device reaches at most."""

    device: str
    gflops: float
    gbytes: float


class BenchReport(TypedDict):
    """Models, levels and systems measured in turns; `roof` is there with --profile, `csv` with --csv."""

    results: list[BenchRow]
    skipped: list[SkippedPeer]
    roof: NotRequired[RoofOfDevice]
    csv: NotRequired[str]


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


class CertifiedModel(CertifiedPlan):
    """A certificate whose steps all hold."""

    refused: None


class RefusedCertificate(TypedDict):
    """What in a certificate does not hold."""

    refused: str


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

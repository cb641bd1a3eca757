"""The schemas of what each command prints with `--json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from smartmem_rules.decoding.report import GenerationReport
from smartmem_rules.errors import SmartmemError
from smartmem_rules.explanation import documents as plans
from smartmem_rules.language.fixes import did_you_mean
from smartmem_rules.report import documents as reported
from smartmem_rules.schema import runs, verified
from smartmem_rules.schema.derive import Deriver, Schema
from smartmem_rules.simplification.report import Report as SimplifyReport
from smartmem_rules.views.simulated_levels import SimulateReport

DRAFT = "https://json-schema.org/draft/2020-12/schema"

OUTPUTS: Mapping[str, tuple[type, ...]] = {
    "optimize": (plans.OptimizeReport,),
    "simplify": (SimplifyReport,),
    "quantize": (runs.QuantizedModel,),
    "generate": (GenerationReport,),
    "run": (runs.RunReport,),
    "export": (runs.ExportReport,),
    "doctor": (runs.DoctorReport,),
    "bench": (runs.BenchReport,),
    "simulate": (SimulateReport,),
    "tune": (runs.TuneReport,),
    "calibrate": (runs.CalibrationReport, runs.ForgottenCalibration),
    "show": (plans.LaunchList, plans.KernelShown),
    "diff": (plans.DiffReport,),
    "explain": (plans.NodeExplanation, plans.RuleExplanation, plans.PairExplanation),
    "report": (reported.ModelReport,),
    "certify": (runs.CertifiedModel, runs.RefusedCertificate),
    "check": (runs.Sarif,),
    "verify": (verified.VerifyReport, verified.MinimalBase),
    "fuzz": (verified.FuzzReport,),
    "discover": (verified.DiscoverReport,),
    "docs": (verified.ReferenceFiles,),
    "zoo": (runs.ShippedModels, runs.WrittenFiles),
    "devices": (runs.DeviceList,),
    "config": (runs.ConfigReport,),
}
"""What each command may print; which of several depends on its options."""


class UnknownOutputError(SmartmemError):
    """There is no such command, or it prints no JSON."""


def schema_of(command: str, closed: bool = False) -> Schema:
    """The JSON Schema of what one command prints.

    Args:
        closed: nothing may be there that the schema does not name. What is published is open, because new keys come.

    Raises:
        UnknownOutputError: no command of this name prints JSON.
    """
    if command not in OUTPUTS:
        near = did_you_mean(command, OUTPUTS)
        raise UnknownOutputError(
            f"no command {command!r} has --json; {near or ''} those that have it are {', '.join(OUTPUTS)}"
        )
    return _document(f"smartmem {command} --json", [command], closed)


def all_schemas() -> Schema:
    """One JSON Schema for whatever a command prints; `$defs` has each command's under its name."""
    return _document("What the commands of smartmem print with --json", OUTPUTS, closed=False)


def _document(title: str, commands: Iterable[str], closed: bool) -> Schema:
    deriver = Deriver(closed=closed)
    named = {}
    for command in commands:
        forms = [deriver.of(kind) for kind in OUTPUTS[command]]
        named[command] = forms[0] if len(forms) == 1 else {"anyOf": forms}
    whole = {"anyOf": [{"$ref": f"#/$defs/{command}"} for command in named]}
    return {"$schema": DRAFT, "title": title, **whole, "$defs": {**named, **deriver.definitions}}

"""Certificates of small models, made without a device."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from smartmem_rules.egraph import saturate
from smartmem_rules.extraction import extract
from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.model import Graph
from smartmem_rules.plan.build import prepare
from smartmem_rules.plan.means import PlanOptions
from smartmem_rules.provenance.certificate import certificate_text, made_certificate
from smartmem_rules.rulebase.base import RuleBase, load_rules


@dataclass(frozen=True, repr=False)
class Certified:
    """A model with the certificate of its plan, as it is read from a file."""

    graph: Graph
    base: RuleBase
    certificate: dict[str, Any]


def certified(model: onnx.ModelProto | Path, level: str = "smartmem", device: str = "pocl") -> Certified:
    """The certificate of a model's plan for a device profile."""
    base = load_rules()
    graph = import_model(model, base)
    rulesets = base.levels[level].rulesets
    saturation = saturate(graph, base, rulesets, record=True) if rulesets else None
    extracted = graph if saturation is None else extract(saturation, graph, base.devices[device])[0]
    planning = prepare(extracted, base, base.devices[device], PlanOptions(level=level))
    how = {"device": device, "level": level, "dtype": "float32"}
    certificate = made_certificate(graph, base, saturation, planning, how)
    return Certified(graph, base, json.loads(certificate_text(certificate)))

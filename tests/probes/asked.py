"""Small models planned to test themselves."""

from __future__ import annotations

from smartmem_rules.emit.plan import finish
from smartmem_rules.graph.importer import import_model
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.build import prepare
from smartmem_rules.plan.means import PlanOptions
from tests.emit.kernel_cases import KernelCase
from tests.plan.programs import rules


def asking(case: KernelCase, dtype: str = "float32") -> Plan:
    """The plan of a case with probes."""
    base = rules()
    graph = import_model(case.proto, base, {})
    options = PlanOptions(level=case.level, dtype=dtype, memory=case.memory)
    return finish(prepare(graph, base, base.devices[case.device], options), probes=True)

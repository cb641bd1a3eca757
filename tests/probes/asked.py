"""Small models planned to test themselves."""

from __future__ import annotations

from dataclasses import replace

from smartmem_rules.emit.plan import finish
from smartmem_rules.graph.importer import import_model
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.build import prepare
from smartmem_rules.plan.means import PlanOptions
from smartmem_rules.runtime.devices import choose
from tests.emit.kernel_cases import KernelCase
from tests.plan.programs import rules


def asking(case: KernelCase, dtype: str = "float32") -> Plan:
    """The plan of a case with probes."""
    base = rules()
    graph = import_model(case.proto, base, {})
    options = PlanOptions(level=case.level, dtype=dtype, memory=case.memory)
    profile = base.devices[case.device]
    # a device that stands in for the profile's own may want parts of buffers to begin at other places
    alignment = max(profile.allocator.alignment, choose().alignment)
    profile = replace(profile, allocator=replace(profile.allocator, alignment=alignment))
    return finish(prepare(graph, base, profile, options), probes=True)

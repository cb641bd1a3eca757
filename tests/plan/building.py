"""Plans of graphs, without what stands around planning."""

from __future__ import annotations

from smartmem_rules.emit.plan import finish
from smartmem_rules.graph.model import Graph
from smartmem_rules.language.blocks.device import Device
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.build import prepare
from smartmem_rules.plan.means import PlanOptions
from smartmem_rules.rulebase.base import RuleBase


def build(
    graph: Graph,
    base: RuleBase,
    profile: Device,
    level: str,
    dtype: str = "float32",
    memory: str = "auto",
    layout: str = "exact",
) -> Plan:
    """The plan of a graph; see `PlanOptions` for the arguments."""
    return finish(prepare(graph, base, profile, PlanOptions(level=level, dtype=dtype, memory=memory, layout=layout)))

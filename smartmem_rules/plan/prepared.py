"""The kernels of a plan: for launches in which kernels wait for others, or for launches of their own.

Which kernels are fast depends on which launches they have. Where a kernel costs no launch, one that makes the rows of a
normalisation is cheaper than a product that makes them for each of its tiles.
"""

from __future__ import annotations

from dataclasses import replace

from smartmem_rules.graph.model import Graph
from smartmem_rules.language.blocks.device import Device
from smartmem_rules.plan.build import Planning, prepare
from smartmem_rules.plan.fusion.refusals import Refusals
from smartmem_rules.plan.means import PlanOptions
from smartmem_rules.plan.scheduling import in_order_pays
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.stages import Stages


def prepared(
    graph: Graph,
    base: RuleBase,
    profile: Device,
    options: PlanOptions,
    clock: Stages | None = None,
    refusals: Refusals | None = None,
) -> Planning:
    """Like `plan.build.prepare`, of both the one that is faster by the model."""
    planning = prepare(graph, base, profile, options, clock, refusals)
    if planning.in_order is None:
        return planning
    apart = prepare(graph, base, profile, replace(options, in_order=False), clock, refusals)
    return planning if in_order_pays(planning, apart) else apart

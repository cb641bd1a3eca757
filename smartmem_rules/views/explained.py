"""What becomes of nodes and rules of a model, or of a saved plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from smartmem_rules.arguments import CALLED, Kind, takes, text
from smartmem_rules.explanation.model_nodes import GRAPH, file_nodes, node_of
from smartmem_rules.planned import PlanOptions, planned
from smartmem_rules.runtime.plan_file import is_plan_file, load_plan
from smartmem_rules.stages import Clock, Progress

if TYPE_CHECKING:
    from smartmem_rules.explanation.documents import NodeExplanation, PairExplanation, RuleExplanation
    from smartmem_rules.graph.loading import ModelSource
    from smartmem_rules.graph.model import Graph

_PLAN_OR_GRAPH = Kind(f"{GRAPH.what}, or the path of a saved plan", GRAPH.takes)
_NODE = text("the name of a node")


@takes(graph=_PLAN_OR_GRAPH, node=_NODE, progress=CALLED.or_none())
def explain_model(
    graph: ModelSource | Graph, node: str, progress: Progress | None = None, **options: Unpack[PlanOptions]
) -> NodeExplanation:
    """What becomes of an ONNX node, without building the kernels; `graph` may also be the path of a saved plan.

    The options are arguments of `optimize`, the result is that of `OptimizedPlan.explain`.
    """
    from smartmem_rules.explanation.report import explain  # start-up time

    if isinstance(graph, (str, Path)) and is_plan_file(graph):
        return explain(load_plan(graph), node)
    plan, _ = planned(graph, Clock(progress), **options)
    return explain(plan, node_of(graph, node), lambda: file_nodes(graph))


@takes(graph=_PLAN_OR_GRAPH, first=_NODE, second=_NODE, progress=CALLED.or_none())
def explain_pair(
    graph: ModelSource | Graph,
    first: str,
    second: str,
    progress: Progress | None = None,
    **options: Unpack[PlanOptions],
) -> PairExplanation:
    """Why two ONNX nodes are not in one kernel: the fusion rule that came nearest and the figure that failed.

    The options are arguments of `optimize`; a saved plan no longer knows what its rules refused.
    """
    from smartmem_rules.explanation.apart import explain_apart  # start-up time: the planner is not for runs
    from smartmem_rules.pipeline import rules_of  # start-up time
    from smartmem_rules.plan.fusion.refusals import Refusals  # start-up time

    if isinstance(graph, (str, Path)) and is_plan_file(graph):
        raise ValueError("a saved plan does not know what its rules refused; give the model")
    refusals = Refusals()
    plan, _ = planned(graph, Clock(progress), refusals=refusals, **options)
    base = rules_of(options.get("rules", ()), options.get("disable", ()))
    return explain_apart(plan, refusals, base, first, second)


@takes(graph=_PLAN_OR_GRAPH, rule=text("the name of a rule"), progress=CALLED.or_none())
def explain_rule_on(
    graph: ModelSource | Graph, rule: str, progress: Progress | None = None, **options: Unpack[PlanOptions]
) -> RuleExplanation:
    """Where a rule fires on a model and where it nearly does, without building the kernels.

    The options are arguments of `optimize`; `graph` may also be the path of a saved plan.
    """
    from smartmem_rules.explanation.report import explain_rule  # start-up time

    if isinstance(graph, (str, Path)) and is_plan_file(graph):
        return explain_rule(load_plan(graph), rule)
    plan, _ = planned(graph, Clock(progress), **options)
    return explain_rule(plan, rule)

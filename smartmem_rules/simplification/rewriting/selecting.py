"""Saturates what rules see of a model and selects the cheapest form that ONNX can express."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from smartmem_rules.egraph.attempts import with_reliable_constants
from smartmem_rules.egraph.constants import Constants
from smartmem_rules.egraph.model import Saturation
from smartmem_rules.egraph.saturation import saturate
from smartmem_rules.extraction.problem import Problem, prune
from smartmem_rules.extraction.rebuild import rebuild
from smartmem_rules.extraction.solve import solve
from smartmem_rules.graph.model import Graph
from smartmem_rules.language.blocks.export import Export
from smartmem_rules.language.blocks.strategy import one_by_one
from smartmem_rules.language.expansion import with_rulesets
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.simplification.rewriting.costs import WrittenCosts

SECONDS = 10.0
"""For the integer program that selects."""


@dataclass(frozen=True, kw_only=True)
class Selected:
    """The graph that is written.

    Attributes:
        selection: which e-node of each class that it needs.
        status: of the selection, `optimal` or `feasible`.
        stopped: which bound ended the rules before they gave nothing new; None where none did.
    """

    graph: Graph
    saturation: Saturation
    selection: Mapping[int, int]
    status: str
    stopped: str | None


def selected(graph: Graph, base: RuleBase, export: Export, opset: int, domains: Collection[str]) -> Selected:
    """The form of a graph that costs least as an ONNX model.

    Args:
        opset: the version of the standard operators that the model uses.
        domains: those of other operators that rules may make.

    Raises:
        EngineError: the e-graph could not be saturated.
        Infeasible: an output cannot be written; the model's own form always can.
    """
    phases = with_rulesets(one_by_one(export.rulesets), list(base.rulesets.values()), frozenset(export.rulesets))

    def choose(constants: Constants, unreliable: Collection[str]) -> Selected:
        saturation = saturate(graph, base, phases, unreliable, record=True, constants=constants)
        return _cheapest(
            graph, saturation, WrittenCosts(saturation=saturation, export=export, opset=opset, domains=domains)
        )

    return with_reliable_constants(base, choose)


def _cheapest(graph: Graph, saturation: Saturation, costs: WrittenCosts) -> Selected:
    roots = tuple(dict.fromkeys(saturation.tensor_class[name] for name in graph.outputs))
    problem = Problem(costs.choices(), roots)
    prune(problem)
    solution = solve(problem, SECONDS)
    selection = {number: choice.key for number, choice in solution.selection.items()}
    made = rebuild(saturation, graph, selection, roots)
    return Selected(
        graph=made,
        saturation=saturation,
        selection=selection,
        status=solution.status,
        stopped=saturation.stopped,
    )

"""Extracts the cheapest graph from a saturated e-graph."""

from __future__ import annotations

import time

from smartmem_rules.egraph.model import CONSTANT, INPUT, EClass, Saturation
from smartmem_rules.extraction.cost import CostModel, node_cost
from smartmem_rules.extraction.problem import Choice, Problem, prune
from smartmem_rules.extraction.rebuild import rebuild
from smartmem_rules.extraction.solve import solve
from smartmem_rules.graph.model import Graph
from smartmem_rules.language.blocks.device import Device
from smartmem_rules.statistics import Extraction, relative_gap


def extract(saturation: Saturation, graph: Graph, device: Device) -> tuple[Graph, Extraction]:
    """The cheapest form of the graph in its e-graph.

    Args:
        saturation: of this graph.
        graph: the imported model, for names and origins.
        device: whose bandwidth, launches and arithmetic the costs are, and the solver's time limit.

    Raises:
        Infeasible: an output cannot be built.
    """
    started = time.perf_counter()
    problem = Problem(_choices(saturation, CostModel.of(device)), _roots(saturation, graph))
    prune(problem)
    solution = solve(problem, device.solver_seconds)
    extracted = rebuild(saturation, graph, {n: c.key for n, c in solution.selection.items()}, problem.roots)
    report = Extraction(
        status=solution.status,
        gap=relative_gap(solution.cost, solution.bound),
        cost=solution.cost,
        bound=solution.bound,
        seconds=time.perf_counter() - started,
        classes=len(problem.choices),
        choices=sum(len(choices) for choices in problem.choices.values()),
    )
    return extracted, report


def _roots(saturation: Saturation, graph: Graph) -> tuple[int, ...]:
    return tuple(dict.fromkeys(saturation.tensor_class[name] for name in graph.outputs))


def _choices(saturation: Saturation, model: CostModel) -> dict[int, list[Choice]]:
    choices: dict[int, list[Choice]] = {}
    for number, eclass in saturation.classes.items():
        if is_leaf(eclass):
            choices[number] = [Choice(0.0, (), leaf_key(eclass))]
            continue
        own = []
        for place, node in enumerate(eclass.nodes):
            cost = node_cost(node, saturation.classes, saturation.instances, model)
            if cost is not None:
                own.append(Choice(cost, tuple(c for c in node.children if c >= 0), place))
        choices[number] = own
    return choices


def is_leaf(eclass: EClass) -> bool:
    """Constants are computed when the model is optimized, whatever way leads to them; inputs are given."""
    constant = eclass.meta is not None and eclass.meta.constant is not None
    return constant or any(node.operator in (INPUT, CONSTANT) for node in eclass.nodes)


def leaf_key(eclass: EClass) -> int:
    return next((i for i, node in enumerate(eclass.nodes) if node.operator in (INPUT, CONSTANT)), 0)

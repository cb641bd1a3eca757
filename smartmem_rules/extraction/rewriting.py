"""What the rules did to a model: which took part in its nodes, which nearly did, and where they stand."""

from __future__ import annotations

from functools import lru_cache

from smartmem_rules.egraph.model import PhaseRun, RuleStatistics, Saturation
from smartmem_rules.graph.model import Graph
from smartmem_rules.language import syntax as s
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.identity import shown_file
from smartmem_rules.statistics import (
    Extraction,
    NearMiss,
    PhaseStatistics,
    RewriteStatistics,
    RuleCounts,
    RuleSource,
    SaturationStatistics,
    SourceRange,
)


def rewrite_statistics(
    saturation: Saturation, graph: Graph, extracted: Graph, report: Extraction, base: RuleBase
) -> RewriteStatistics:
    """What a plan remembers of its rewriting.

    Args:
        saturation: of the imported model `graph`, from which `extracted` was chosen.
    """
    return RewriteStatistics(
        extraction=report,
        rules=tuple(_counts(one) for one in saturation.statistics.values()),
        saturation=SaturationStatistics(
            stopped=saturation.stopped,
            iterations=saturation.iterations,
            enodes=saturation.enode_count,
            phases=tuple(_phase_statistics(one) for one in saturation.phases),
        ),
        rules_of_node=_rules_of_nodes(saturation, extracted, base),
        near_misses=_near_misses(saturation, graph),
        rule_sites=_rule_sites(saturation, graph),
        rule_places=_rule_places(saturation, base),
    )


def _counts(of: RuleStatistics) -> RuleCounts:
    return RuleCounts(rule=of.rule, tried=of.tried, fired=of.fired, milliseconds=of.milliseconds, enodes=of.enodes)


def _phase_statistics(ran: PhaseRun) -> PhaseStatistics:
    return PhaseStatistics(
        rulesets=ran.phase.rulesets, rounds=ran.rounds, enodes=ran.enodes, seconds=ran.seconds, stopped=ran.stopped
    )


def _rules_of_nodes(saturation: Saturation, extracted: Graph, base: RuleBase) -> dict[str, tuple[str, ...]]:
    """For each ONNX node the rules that made what was chosen in its place, and what became a view there."""
    found: dict[str, dict[str, None]] = {}
    eliminated = {rule.name: rule.operator for rule in base.eliminates}
    for node in extracted.nodes:
        classes = {saturation.tensor_class[name] for name in node.outputs if name in saturation.tensor_class}
        made = [e for n in classes for e in saturation.classes[n].nodes if e.operator == node.operator]
        before = {eliminated[rule] for e in made for rule in e.rules if rule in eliminated}
        made += [e for n in classes for e in saturation.classes[n].nodes if e.operator in before]
        for origin in node.origin or (node.name,):
            found.setdefault(origin, {}).update((rule, None) for e in made for rule in e.rules)
    return {origin: tuple(rules) for origin, rules in found.items() if rules}


def _near_misses(saturation: Saturation, graph: Graph) -> dict[str, tuple[NearMiss, ...]]:
    """For each ONNX node the rules that matched there, with the guard that turned them down, the nearest first."""
    producers = graph.producers()
    found: dict[str, list[NearMiss]] = {}
    for miss in sorted(saturation.near_misses, key=lambda miss: (-miss.size, -miss.passed)):
        node = producers.get(miss.tensor or "")
        if node is not None:
            guard = None if miss.place is None else _range(miss.place)
            one = NearMiss(rule=miss.rule, reason=miss.reason, values=dict(miss.values), guard=guard)
            for origin in node.origin or (node.name,):
                misses = found.setdefault(origin, [])
                if one not in misses:
                    misses.append(one)
    return {origin: tuple(misses) for origin, misses in found.items()}


def _rule_sites(saturation: Saturation, graph: Graph) -> dict[str, tuple[str, ...]]:
    """For each rule that fired the ONNX nodes whose results it rewrote."""
    producers = graph.producers()
    found: dict[str, dict[str, None]] = {}
    for class_ in saturation.classes.values():
        nodes = [producers[tensor] for tensor in class_.tensors if tensor in producers]
        origins = dict.fromkeys(origin for node in nodes for origin in node.origin or (node.name,))
        for enode in class_.nodes:
            for rule in enode.rules:
                found.setdefault(rule, {}).update(origins)
    return {rule: tuple(origins) for rule, origins in found.items()}


def _rule_places(saturation: Saturation, base: RuleBase) -> dict[str, RuleSource]:
    """Where the rules stand that took part, and what they say."""
    return {
        rule.name: _source(rule.span, rule.comment, rule.cites)
        for rule in base.rules()
        if rule.name in saturation.statistics
    }


@lru_cache(maxsize=4096)
def _source(span: s.Span, equation: str, cites: str | None) -> RuleSource:
    return RuleSource(range=_range(span), equation=equation, cites=cites)


def _range(span: s.Span) -> SourceRange:
    return SourceRange(**{**span._asdict(), "file": shown_file(span.file)})

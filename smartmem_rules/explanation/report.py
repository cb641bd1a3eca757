"""What the statistics of a plan say, as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, cast

from smartmem_rules.explanation.device_bytes import device_bytes_of
from smartmem_rules.explanation.fates import Fates, FileNode
from smartmem_rules.graph.model import GraphError
from smartmem_rules.language.fixes import did_you_mean
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.reference import Check
from smartmem_rules.statistics import SKIPPED, MemoryStatistics, NearMiss, RuleSource

if TYPE_CHECKING:  # start-up time
    from smartmem_rules.explanation.documents import (
        DeviceMemory,
        Extracted,
        IntermediateBytes,
        KernelOfNode,
        Layouts,
        LeftNode,
        MaybePlaced,
        Miss,
        MissAtNode,
        NodeExplanation,
        OptimizeReport,
        RuleExplanation,
        Saturated,
        Skipped,
        SkippedLayouts,
        WrittenLayout,
    )


def report_data(plan: Plan, device: Device | None, check: Check | None) -> OptimizeReport:
    """Everything about a plan as JSON data; `device` is None if it is not here, `check` if none was made."""
    statistics = plan.statistics
    model, rewriting, memory = statistics.model, statistics.rewriting, statistics.planning.memory
    saturation = rewriting.saturation
    extraction = dict(SKIPPED) if rewriting.extraction is None else asdict(rewriting.extraction)
    return {
        "model": plan.model,
        "device": plan.device if device is None else device.name,
        "profile": plan.device,
        "level": plan.level,
        "dtype": plan.dtype,
        "memory": statistics.memory,
        "dimensions": {d.name: (d.low, d.high) for d in plan.dimensions},
        "operators": model.operators,
        "operator_types": dict(model.operator_types),
        "kernels": len(plan.launches),
        "kernel_forms": dict(Counter(launch_kind(launch) for launch in plan.launches)),
        "layout_operators": {
            "before": model.layout_operators,
            "after": sum(launch.moves_only for launch in plan.launches),
        },
        "seconds": dict(statistics.seconds),
        "from_cache": statistics.from_cache,
        "bytes_moved": sum(launch.bytes_moved for launch in plan.launches),
        "bytes_moved_before": model.bytes_moved_before,
        "device_bytes": cast("DeviceMemory", asdict(device_bytes_of(plan))),
        "intermediate_bytes": _intermediate_bytes(model.tensor_bytes, memory),
        "check": None if check is None else check.data(),
        "extraction": cast("Extracted | Skipped", extraction),
        "layouts": cast("Layouts | SkippedLayouts", statistics.planning.layouts_data()),
        "saturation": None if saturation is None else cast("Saturated", asdict(saturation)),
    }


def _intermediate_bytes(tensors: int, memory: MemoryStatistics | None) -> IntermediateBytes:
    own: IntermediateBytes = {"model": tensors}
    return own if memory is None else {**memory.data(), **own}


def launch_kind(launch: Launch) -> str:
    """The form of a launch, `moves only` for one that computes nothing."""
    return "moves only" if launch.moves_only else launch.form


def explain(plan: Plan, node: str, folded: Callable[[], Mapping[str, FileNode]] = dict) -> NodeExplanation:
    """What became of an ONNX node.

    Args:
        folded: gives all nodes of the file by name; asked for a node that the plan does not know.

    Raises:
        GraphError: the model has no node of this name.
    """
    fates = Fates(plan, {})
    known = plan.statistics.model.nodes
    if node not in known and node not in fates.computed:
        fates = Fates(plan, in_file := folded())
        if node not in in_file:
            hint = did_you_mean(node, [*known, *in_file, *fates.computed]) or "its nodes are named as in the file"
            raise GraphError(f"the model {plan.model} has no node {node!r}; {hint}")
    fate = fates.of(node)
    rewriting = plan.statistics.rewriting
    rules = rewriting.rules_of_node.get(node, ())
    places = rewriting.rule_places
    misses = rewriting.near_misses.get(node, ())
    return {
        "node": node,
        "operator": fate.operator,
        "outcome": fate.outcome,
        "kernels": [_launch_data(plan.launches[number], node, plan) for number in fate.launches],
        "rules": list(rules),
        "rule_places": {rule: places[rule].data() for rule in rules if rule in places},
        "near_misses": [_missed(miss, places.get(miss.rule)) for miss in misses],
    }


def left(plan: Plan) -> list[LeftNode]:
    """What the rules left: the ONNX nodes that kernels still compute although a rule nearly took them, and those of
    kernels that only move data.

    Returns for each {node, operator, kernels, moves_only, near_misses}, those that only move data first.
    """
    rewriting, operators = plan.statistics.rewriting, plan.statistics.model.nodes
    places = rewriting.rule_places
    found: list[LeftNode] = [
        {
            "node": node,
            "operator": operators.get(node, ""),
            "kernels": [plan.launches[number].name for number in numbers],
            "moves_only": any(plan.launches[number].moves_only for number in numbers),
            "near_misses": [_missed(miss, places.get(miss.rule)) for miss in rewriting.near_misses.get(node, ())],
        }
        for node, numbers in Fates(plan, {}).computed.items()
    ]
    return sorted(
        (one for one in found if one["moves_only"] or one["near_misses"]), key=lambda one: not one["moves_only"]
    )


def explain_rule(plan: Plan, rule: str) -> RuleExplanation:
    """Where a rule fired on a model and where it nearly did.

    Returns {rule, file, line, column, end_line, end_column, equation, cites, tried, fired, nodes, near_misses}.

    Raises:
        GraphError: no rule of this name took part.
    """
    nodes, rewriting = plan.statistics.model.nodes, plan.statistics.rewriting
    statistics = {one.rule: one for one in rewriting.rules}
    if rule not in statistics:
        hint = did_you_mean(rule, statistics) or "the level runs no such rule, or none of its operators is there"
        raise GraphError(f"no rule {rule!r} took part in optimizing {plan.model}; {hint}")
    misses = [
        _at_node(one, node, nodes.get(node, ""))
        for node, found in rewriting.near_misses.items()
        for one in found
        if one.rule == rule
    ]
    place = rewriting.rule_places.get(rule)
    counts = statistics[rule]
    placed: MaybePlaced = {} if place is None else {**place.data()}
    return {
        "rule": rule,
        **placed,
        "tried": counts.tried,
        "fired": counts.fired,
        "milliseconds": counts.milliseconds,
        "enodes": counts.enodes,
        "nodes": [{"node": node, "operator": nodes.get(node, "")} for node in rewriting.rule_sites.get(rule, ())],
        "near_misses": misses,
    }


def _at_node(miss: NearMiss, node: str, operator: str) -> MissAtNode:
    data = miss.data()
    found: MissAtNode = {"node": node, "operator": operator, "reason": data["reason"], "values": data["values"]}
    if "guard" in data:
        found["guard"] = data["guard"]
    return found


def _missed(miss: NearMiss, place: RuleSource | None) -> Miss:
    placed: MaybePlaced = {} if place is None else {**place.data()}
    return {**miss.data(), **placed}


def _launch_data(launch: Launch, node: str, plan: Plan) -> KernelOfNode:
    return {
        "name": launch.name,
        "form": launch.form,
        "moves_only": launch.moves_only,
        "with": [origin for origin in launch.origin if origin != node],
        "bytes_moved": launch.bytes_moved,
        "writes": [{"tensor": tensor, **_layout_data(tensor, plan)} for tensor in launch.writes],
    }


def _layout_data(tensor: str, plan: Plan) -> WrittenLayout:
    known = plan.statistics.planning.tensor_layouts.get(tensor)
    return {"layout": plan.tensors[tensor].layout.places} if known is None else cast("WrittenLayout", asdict(known))

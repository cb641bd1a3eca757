"""What the statistics of a plan say, as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from smartmem_rules.graph.model import GraphError
from smartmem_rules.language.fixes import did_you_mean
from smartmem_rules.plan.kernel.model import Kernel, Plan
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.reference import Check


def report_data(plan: Plan, device: Device | None, check: Check | None) -> dict[str, Any]:
    """Everything about a plan as JSON data; `device` is None if it is not here, `check` if none was made."""
    statistics = plan.statistics
    return {
        "model": plan.model,
        "device": plan.device if device is None else device.name,
        "profile": plan.device,
        "level": plan.level,
        "dtype": plan.dtype,
        "memory": statistics.get("memory", "auto"),
        "dimensions": {d.name: [d.low, d.high] for d in plan.dimensions},
        "operators": statistics.get("operators", 0),
        "operator_types": statistics.get("operator_types", {}),
        "kernels": len(plan.kernels),
        "kernel_forms": dict(Counter(kernel_kind(kernel) for kernel in plan.kernels)),
        "layout_operators": {
            "before": statistics.get("layout_operators", 0),
            "after": sum(kernel.moves_only for kernel in plan.kernels),
        },
        "seconds": statistics.get("seconds", {}),
        "bytes_moved": sum(kernel.bytes_moved for kernel in plan.kernels),
        "bytes_moved_before": statistics.get("bytes_moved_before", 0),
        "intermediate_bytes": {**statistics.get("intermediate_bytes", {}), "model": statistics.get("tensor_bytes", 0)},
        "check": None if check is None else check.data(),
        "extraction": statistics.get("extraction", {"status": "skipped", "gap": 0.0}),
        "layouts": statistics.get("layouts", {"status": "skipped", "gap": 0.0}),
        "saturation": statistics.get("saturation"),
    }


def kernel_kind(kernel: Kernel) -> str:
    """The form of a kernel, `moves only` for one that computes nothing."""
    return "moves only" if kernel.moves_only else kernel.form


def explain(plan: Plan, node: str, folded: Callable[[], Mapping[str, str]] = dict) -> dict[str, Any]:
    """What became of an ONNX node.

    Args:
        folded: gives the operators of all nodes of the file by name; asked for a node that the plan does not know.

    Raises:
        GraphError: the model has no node of this name.
    """
    nodes: dict[str, str] = plan.statistics.get("nodes", {})
    kernels = [kernel for kernel in plan.kernels if node in kernel.origin]
    if node not in nodes and not kernels:
        in_file = folded()
        if node not in in_file:
            known = [*nodes, *in_file, *(origin for kernel in plan.kernels for origin in kernel.origin)]
            hint = did_you_mean(node, known) or "its nodes are named as in the file"
            raise GraphError(f"the model {plan.model} has no node {node!r}; {hint}")
        nodes = {node: in_file[node]}
    rules = plan.statistics.get("rules_of_node", {}).get(node, [])
    places = plan.statistics.get("rule_places", {})
    misses = plan.statistics.get("near_misses", {}).get(node, [])
    return {
        "node": node,
        "operator": nodes.get(node, ""),
        "outcome": _outcome(kernels, node, plan.statistics.get("nodes", {})),
        "kernels": [_kernel_data(kernel, node, plan) for kernel in kernels],
        "rules": list(rules),
        "rule_places": {rule: places[rule] for rule in rules if rule in places},
        "near_misses": [{**miss, **places.get(miss["rule"], {})} for miss in misses],
    }


def explain_rule(plan: Plan, rule: str) -> dict[str, Any]:
    """Where a rule fired on a model and where it nearly did.

    Returns {rule, file, line, column, end_line, end_column, equation, tried, fired, nodes, near_misses}.

    Raises:
        GraphError: no rule of this name took part.
    """
    statistics = {one["rule"]: one for one in plan.statistics.get("rules", [])}
    if rule not in statistics:
        hint = did_you_mean(rule, statistics) or "the level runs no such rule, or none of its operators is there"
        raise GraphError(f"no rule {rule!r} took part in optimizing {plan.model}; {hint}")
    nodes: dict[str, str] = plan.statistics.get("nodes", {})
    sites = plan.statistics.get("rule_sites", {}).get(rule, [])
    misses = [
        {
            "node": node,
            "operator": nodes.get(node, ""),
            **{key: one[key] for key in ("reason", "values", "guard") if key in one},
        }
        for node, found in plan.statistics.get("near_misses", {}).items()
        for one in found
        if one["rule"] == rule
    ]
    return {
        "rule": rule,
        **plan.statistics.get("rule_places", {}).get(rule, {}),
        **{key: statistics[rule][key] for key in ("tried", "fired", "milliseconds", "enodes")},
        "nodes": [{"node": node, "operator": nodes.get(node, "")} for node in sites],
        "near_misses": misses,
    }


def _outcome(kernels: list[Kernel], node: str, known: Mapping[str, str]) -> str:
    if not kernels and node not in known:
        return "it depends on no input: its value was computed when the model was imported"
    if not kernels:
        return "no kernel computes it: its elements are read in place through index arithmetic"
    if len(kernels) == 1:
        kernel = kernels[0]
        others = len(set(kernel.origin) - {node})
        return f"the kernel {kernel.name} computes it {f'with {_others(others)}' if others else 'alone'}"
    return f"{len(kernels)} kernels compute parts of it"


def _others(count: int) -> str:
    return f"{count} other{'' if count == 1 else 's'}"


def _kernel_data(kernel: Kernel, node: str, plan: Plan) -> dict[str, Any]:
    layouts = plan.statistics.get("tensor_layouts", {})
    return {
        "name": kernel.name,
        "form": kernel.form,
        "moves_only": kernel.moves_only,
        "with": [origin for origin in kernel.origin if origin != node],
        "bytes_moved": kernel.bytes_moved,
        "writes": [{"tensor": t, **layouts.get(t, {"layout": plan.tensors[t].layout.places})} for t in kernel.writes],
    }

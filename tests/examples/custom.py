"""Runs a model with operators of its own on a device, and by the definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx

import smartmem_rules as sm
from smartmem_rules.graph.importer import import_model
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.checking import check_files
from smartmem_rules.tensor.interpreter.interpret import evaluate_equations

Array = np.ndarray[Any, np.dtype[Any]]


def constants_of(model: onnx.ModelProto) -> dict[str, Array]:
    return {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}


def by_definition(model: onnx.ModelProto, rules: Path, feeds: dict[str, Array]) -> dict[str, Array]:
    """The outputs as the reference interpreter computes them from the definitions."""
    graph = import_model(model, load_rules([rules]), {})
    known: dict[str, Array] = {**{name: np.asarray(value) for name, value in graph.constants.items()}, **feeds}
    for node in graph.nodes:
        known.update(evaluate_equations(node.equations, known))
    return {name: known[name] for name in graph.outputs}


def optimized(model: onnx.ModelProto, rules: Path) -> sm.OptimizedPlan:
    """The plan, once the rules give no message."""
    found, _ = check_files([rules])
    assert found == []
    return sm.optimize(model, rules=[rules])


def fired(plan: sm.OptimizedPlan, rule: str) -> int:
    return sum(one.fired for one in plan.plan.statistics.rewriting.rules if one.rule == rule)

"""Runs one ONNX node through every overload of its operator that accepts it, on the reference interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx

from smartmem_rules.graph.matching import raw_attribute, split_operands
from smartmem_rules.graph.weights import array_type
from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.expr import DTYPES
from smartmem_rules.tensor.instantiate import instantiate_overload
from smartmem_rules.tensor.interpreter.interpret import evaluate_instance

Array = np.ndarray[Any, np.dtype[Any]]


@cache
def rules() -> RuleBase:
    return load_rules()


@dataclass(frozen=True)
class Run:
    """What one overload computed."""

    operator: ast.Operator
    outputs: tuple[Array, ...]

    def __str__(self) -> str:
        return f"{self.operator.name} ({self.operator.span})"


@cache
def overloads(name: str, opset: int) -> tuple[ast.Operator, ...]:
    """The definitions of an ai.onnx operator that cover the opset, in the order in which they are tried."""
    listed = (o for same_name in rules().operators.values() for o in same_name if not o.internal)
    return tuple(operator for operator in listed if _stands_for(operator, name, opset))


def _stands_for(operator: ast.Operator, name: str, opset: int) -> bool:
    binding = operator.onnx
    if binding is None:
        return operator.name == name
    covered = binding.since <= opset and (binding.until is None or opset <= binding.until)
    return covered and (binding.domain, binding.name) == ("ai.onnx", name)


def run_node(node: onnx.NodeProto, opset: int, operands: Sequence[Array | None]) -> list[Run]:
    """The results of all overloads that accept the node.

    Raises:
        Unsupported: there is none; the message gives the reasons.
        DefinitionError, InterpretError: an overload is wrong.
    """
    if node.domain not in ("", "ai.onnx"):
        raise Unsupported(f"the operator belongs to {node.domain}")
    candidates = overloads(node.op_type, opset)
    if not candidates:
        raise Unsupported("no definition")
    reasons: list[str] = []
    runs: list[Run] = []
    for operator in candidates:
        try:
            runs.append(Run(operator, _run(operator, node, operands)))
        except Unsupported as reason:
            reasons.append(str(reason))
    if not runs:
        raise Unsupported("; ".join(dict.fromkeys(reasons)))
    return runs


def _run(operator: ast.Operator, node: onnx.NodeProto, operands: Sequence[Array | None]) -> tuple[Array, ...]:
    names = [None if array is None else f"input{place}" for place, array in enumerate(operands)]
    values: dict[str, Array] = {n: a for n, a in zip(names, operands, strict=True) if n is not None and a is not None}
    types = {name: array_type(array) for name, array in values.items()}
    for name, type_ in types.items():
        if type_.dtype not in DTYPES:
            raise Unsupported(f"{name} has elements of type {type_.dtype}")
    scope: Any = SimpleNamespace(values=values, types=types)
    attributes: Mapping[str, Any] = {a.name: raw_attribute(a) for a in node.attribute}
    read, given = split_operands(operator, names, attributes, scope)
    wanted = len(node.output)
    instance = instantiate_overload(rules(), operator, [None if n is None else types[n] for n in read], given, wanted)
    return tuple(evaluate_instance(instance, [None if n is None else values[n] for n in read]))

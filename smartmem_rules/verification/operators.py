"""Instances of single operators and of pairs, and what ONNX's own reference evaluator computes for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.rulebase.patterns import ABSENT_NAME
from smartmem_rules.tensor.builtins import ConstantTensor, Value
from smartmem_rules.tensor.instantiate import names_in
from smartmem_rules.verification.instances.cases import Search
from smartmem_rules.verification.instances.draws import FAR
from smartmem_rules.verification.semantics.domains import Array

OPSET = 21
PATIENCE = 120
"""Attempts without any instance after which a search for instances of one operator stops repairing them."""
_OLD_WORDS = frozenset({"tf_half_pixel_for_nn"})
"""Words of older opsets that the evaluator no longer knows."""


class NoReference(Exception):
    """ONNX's reference evaluator has no value for an instance."""


def names_of(operands: Sequence[ast.Input]) -> list[str]:
    """Distinct names for the run-time operands of an operator."""
    return [f"{formal.name}_{place}" for place, formal in enumerate(operands)]


def application(operator: str, operands: Sequence[ast.Pattern], bundle: str, span: ast.Span) -> ast.PatternOperator:
    """A pattern that matches an operator with whatever attributes."""
    return ast.PatternOperator(span, operator, tuple(operands), (), bundle, None, None)


def run_time_formals(operator: ast.Operator, variadic: int = 1) -> list[ast.Input]:
    """The run-time operands that an operator must have; of a variadic one some."""
    formals: list[ast.Input] = []
    for formal in operator.inputs:
        if formal.constant is None and not formal.optional:
            formals += [formal] * (variadic if formal.variadic else 1)
    return formals


def application_to_variables(operator: ast.Operator, variadic: int = 1) -> ast.PatternOperator:
    """A pattern of an operator at its required operands; optional ones that stand before a required one are absent."""
    span, names = operator.span, iter(names_of(run_time_formals(operator, variadic)))
    places: list[ast.Pattern] = []
    required = 0
    for formal in operator.inputs:
        if formal.constant is None and formal.optional:
            places.append(ast.PatternVariable(span, ABSENT_NAME))
        elif formal.constant is None:
            places += [ast.PatternVariable(span, next(names)) for _ in range(variadic if formal.variadic else 1)]
            required = len(places)
    return application(operator.name, places[:required], "all", span)


def single(operator: ast.Operator, instances: Instances, seed: int, variadic: int = 1, strict: bool = True) -> Search:
    """A search for instances of one operator; `strict` leaves out those in which it reads outside of an operand."""
    pattern = application_to_variables(operator, variadic)
    rule = ast.Rewrite(operator.span, operator.name, "", pattern, pattern, False, (), (), None, "")
    search = Search(rule, pattern, pattern, instances, seed)
    search.strict = strict
    search.one_sided = True
    search.patience = PATIENCE
    return search


@dataclass(frozen=True)
class OnnxNode:
    """One operator as a node of a model; `feeds` are its operands by name, of which some are compile-time ones."""

    node: Any
    feeds: Mapping[str, Array]
    constants: frozenset[str]


def onnx_node(
    operator: ast.Operator, operands: Sequence[Array], attributes: Mapping[str, Value], outputs: int
) -> OnnxNode:
    """The operator at some operands as ONNX writes it.

    Raises:
        NoReference: the operator is not ONNX's own.
    """
    import onnx

    binding = operator.onnx
    domain, name = ("ai.onnx", operator.name) if binding is None else (binding.domain, binding.name)
    if operator.internal or domain != "ai.onnx" or (binding is not None and binding.until is not None):
        raise NoReference("not an operator of ONNX, or an old one")
    if any(isinstance(v, str) and v in _OLD_WORDS for v in attributes.values()):
        raise NoReference("a mode that has left the standard")
    feeds: dict[str, Array] = {}
    constants: set[str] = set()
    inputs: list[str] = []
    rest = list(operands)
    spare = 0 if any(i.variadic for i in operator.inputs) else len(rest) - len(run_time_formals(operator))
    for place, formal in enumerate(operator.inputs):
        value: Array | None
        if formal.constant is not None:
            given = attributes.get(formal.name)
            value = None if given is None else _constant(given, formal.constant, operands)
            taken = [] if value is None else [value]
            inputs += [f"i{place}"] if taken else [""]
            constants |= {f"i{place}"} if taken else set()
        else:
            taken = rest if formal.variadic else rest[: 1 if not formal.optional or spare > 0 else 0]
            spare -= len(taken) if formal.optional else 0
            rest = rest[len(taken) :]
            inputs += [f"i{place}_{j}" for j in range(len(taken))] or [""]
        for label, one in zip([i for i in inputs if i and i not in feeds], taken, strict=True):
            feeds[label] = one
    while inputs and not inputs[-1]:
        inputs.pop()
    constant_names = {i.name for i in operator.inputs if i.constant is not None}
    used = _names_used(operator)  # others mean nothing for this overload, but may confuse the evaluator
    given_attributes = {
        n: _attribute(v) for n, v in attributes.items() if n not in constant_names and v is not None and n in used
    }
    try:
        node = onnx.helper.make_node(name, inputs, [f"y{j}" for j in range(outputs)], **given_attributes)
    except (TypeError, ValueError) as failure:
        raise NoReference(str(failure)) from failure
    return OnnxNode(node, feeds, frozenset(constants))


def reference_outputs(
    operator: ast.Operator, operands: Sequence[Array], attributes: Mapping[str, Value], outputs: int
) -> list[Array]:
    """The operator by ONNX's reference evaluator.

    Raises:
        NoReference: the operator is not ONNX's own, or its reference fails on these operands.
    """
    import onnx
    from onnx.reference import ReferenceEvaluator

    if sum(isinstance(v, tuple) and -FAR in v for v in attributes.values()) > 1:
        raise NoReference("bounds far outside on both ends: numpy and the standard differ")
    one = onnx_node(operator, operands, attributes, outputs)
    try:
        graph = onnx.helper.make_graph(
            [one.node],
            "one",
            [
                onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
                for n, v in one.feeds.items()
            ],
            [onnx.helper.make_empty_tensor_value_info(n) for n in one.node.output],
        )
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)])
        return [np.asarray(v) for v in ReferenceEvaluator(model).run(None, dict(one.feeds))]
    except Exception as failure:  # the evaluator raises whatever its numpy code does
        raise NoReference(str(failure)) from failure


def _names_used(operator: ast.Operator) -> set[str]:
    clauses: list[ast.Expression] = [*operator.requires, *(let.value for let in operator.lets)]
    clauses += [e.body for e in operator.equations]
    clauses += [item for output in operator.outputs for item in output.type.shape]
    return set().union(*(names_in(clause) for clause in clauses)) | {o.type.dtype for o in operator.outputs}


def _constant(value: Value, kind: str, operands: Sequence[Array]) -> Array:
    if isinstance(value, ConstantTensor):
        return np.asarray(value.values, np.int64).reshape(value.shape)
    if kind in ("ints", "int"):
        return np.asarray(value, np.int64)
    dtype = np.float32 if kind == "floats" or not operands else operands[0].dtype
    return np.asarray(value, dtype)


def _attribute(value: Value) -> Any:
    return list(value) if isinstance(value, tuple) else value

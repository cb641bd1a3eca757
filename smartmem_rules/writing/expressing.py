"""A graph over the rule base's operators as an ONNX model: what importing does, backwards.

Which ONNX operator a node is, the `onnx` clause of its definition says; only how ONNX encodes a number is known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import helper

from smartmem_rules.graph.model import VIEW, Graph, Node
from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.builtins import ConstantTensor, Unsupported, Value
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.tensor.views import IndexMap
from smartmem_rules.writing.views import NotExpressible, Writer, write_view

STANDARD = ("", "ai.onnx")
IR_VERSION = 10
_INT = onnx.defs.OpSchema.AttrType.INT
_NO_TYPE = "none"
"""What the operators' definitions call the element type UNDEFINED, which leaves the choice to the operator."""
_IN_A_LIST = frozenset({"TopK"})
"""Operators that take a known number as a list of one; others take it as a tensor without axes."""
_BY_HAND = "NOTSET"
"""The `auto_pad` with which `pads` counts; ONNX forbids `pads` beside any other (Conv-1)."""


def express(graph: Graph, instances: Instances, opset: int) -> onnx.ModelProto:
    """The model of a graph.

    Args:
        opset: the least version of the standard operators; a newer one where an operator asks for it.

    Raises:
        NotExpressible: ONNX has no operator for a node, or none that means the same in that version.
    """
    operators = [None if n.operator == VIEW else _operator(n, graph, instances) for n in graph.nodes]
    opset = max([opset, *(least_opset(o, opset) for o in operators if o is not None)])
    taken = {name for node in graph.nodes for name in (*node.outputs, *node.operands) if name}
    prefix = "e."
    while any(name.startswith(prefix) for name in taken):
        prefix = f"e{prefix}"
    writer = Writer(prefix)
    domains: dict[str, int] = {"": opset}
    for node, operator in zip(graph.nodes, operators, strict=True):
        if operator is not None:
            domain, _ = name_of(operator)
            domains.setdefault("" if domain in STANDARD else domain, 1)
        write_node(node, graph, instances, opset, writer)
    read = {name for node in writer.nodes for name in node.input} | set(graph.outputs)
    writer.constants.update({name: array for name, array in graph.constants.items() if name in read})
    _name_constant_outputs(graph, writer)
    made = helper.make_graph(
        writer.nodes,
        "equal",
        [described(name, graph.types[name]) for name in graph.inputs],
        [described(name, graph.types[name]) for name in graph.outputs],
        writer.initializers(),
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    return helper.make_model(made, opset_imports=imports, ir_version=IR_VERSION, producer_name="smartmem fuzz")


def write_node(node: Node, graph: Graph, instances: Instances, opset: int, writer: Writer) -> None:
    """Write the ONNX nodes of one node of a graph.

    Args:
        opset: the version of the standard operators that the model uses.

    Raises:
        NotExpressible: ONNX has none in that version.
    """
    if node.operator == VIEW:
        map_, operand = node.attributes["map"], node.operands[0]
        assert isinstance(map_, IndexMap)
        assert operand is not None
        write_view(map_, operand, node.outputs[0], writer)
    else:
        writer.nodes.append(_node(node, _operator(node, graph, instances), graph, opset, writer))


def described(name: str, type_: TensorType) -> onnx.ValueInfoProto:
    """The declaration of a tensor."""
    return helper.make_tensor_value_info(name, onnx_type(type_.dtype), type_.shape)


def onnx_type(dtype: str) -> int:
    return int(helper.np_dtype_to_tensor_dtype(storage_dtype(dtype)))


def _type_or_none(dtype: str) -> int:
    return onnx.TensorProto.UNDEFINED if dtype == _NO_TYPE else onnx_type(dtype)


def name_of(operator: ast.Operator) -> tuple[str, str]:
    """The domain and the name of the ONNX operator that a definition stands for."""
    binding = operator.onnx
    return ("ai.onnx", operator.name) if binding is None else (binding.domain, binding.name)


def is_expressible(operator: ast.Operator) -> bool:
    """Whether a definition is that of an operator of ONNX or ONNX Runtime."""
    domain, name = name_of(operator)
    if operator.internal:
        return False
    return domain not in STANDARD or bool(_versions(name))


def _name_constant_outputs(graph: Graph, writer: Writer) -> None:
    """An output that is known when the model is made is a copy of a constant, as ONNX wants outputs to be made."""
    for output in graph.outputs:
        if output in writer.constants:
            writer.constants[f"{writer.prefix}{output}"] = writer.constants.pop(output)
            for node in writer.nodes:
                for place, name in enumerate(node.input):
                    if name == output:
                        node.input[place] = f"{writer.prefix}{output}"
            writer.add("Identity", [f"{writer.prefix}{output}"], output)
        elif output in graph.inputs:
            raise NotExpressible(f"the input {output} is an output")


def _operator(node: Node, graph: Graph, instances: Instances) -> ast.Operator:
    types = [None if o is None else graph.types[o] for o in node.operands]
    try:
        operator = instances.get(node.operator, types, node.attributes, len(node.outputs)).operator
    except Unsupported as reason:
        raise NotExpressible(f"{node.operator}: {reason}") from reason
    if not is_expressible(operator):
        raise NotExpressible(f"{node.operator} is no operator of ONNX")
    return operator


def _versions(name: str) -> tuple[int, ...]:
    return _all_versions().get(name, ())


@cache
def _all_versions() -> dict[str, tuple[int, ...]]:
    """The versions of ONNX's operators that have a new definition of each of them."""
    found: dict[str, list[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            found.setdefault(schema.name, []).append(schema.since_version)
    return {name: tuple(sorted(versions)) for name, versions in found.items()}


def least_opset(operator: ast.Operator, opset: int) -> int:
    """The first version of the standard operators, from a given one on, that has an operator as it is defined.

    Raises:
        NotExpressible: there is none.
    """
    domain, name = name_of(operator)
    if domain not in STANDARD:
        return opset
    least = max(opset, _versions(name)[0])
    binding = operator.onnx
    if binding is not None:
        least = max(least, binding.since)
        if binding.until is not None and binding.until < least:
            raise NotExpressible(f"{name} means something else since opset {binding.until + 1}")
    return least


def is_operand(name: str, operator: ast.Operator, opset: int) -> bool:
    """Whether ONNX takes what a definition calls so as an operand of a node, and not as an attribute."""
    domain, called = name_of(operator)
    if not any(formal.name == name and formal.constant is not None for formal in operator.inputs):
        return False
    return domain not in STANDARD or name not in onnx.defs.get_schema(called, opset, "").attributes


def _node(node: Node, operator: ast.Operator, graph: Graph, opset: int, writer: Writer) -> onnx.NodeProto:
    domain, name = name_of(operator)
    known: Mapping[str, Any] = {}
    if domain in STANDARD:
        schema = onnx.defs.get_schema(name, opset, "")
        if schema.deprecated:
            raise NotExpressible(f"{name} is deprecated in opset {opset}")
        known = schema.attributes
    else:
        known = {attribute.name: attribute for attribute in operator.attributes}
    dtype = next((graph.types[o].dtype for o in node.operands if o is not None), "float32")
    inputs: list[str] = []
    attributes: dict[str, Any] = {}
    rest = list(node.operands)
    for formal in operator.inputs:
        value = node.attributes.get(formal.name)
        if formal.constant is None:
            taken = rest if formal.variadic else rest[:1]
            rest = rest[len(taken) :]
            inputs += [one or "" for one in taken] if taken else ([] if formal.variadic else [""])
        elif formal.name in known:
            if value is not None:
                attributes[formal.name] = _plain(value, formal.constant)
        else:
            given = (value,) if name in _IN_A_LIST and isinstance(value, int) else value
            inputs.append("" if given is None else writer.constant(*_array(given, formal.constant, dtype)))
    while inputs and not inputs[-1]:
        inputs.pop()
    for attribute in operator.attributes:
        value = node.attributes.get(attribute.name)
        if value is not None and attribute.name in known:
            names_a_type = isinstance(value, str) and domain in STANDARD and known[attribute.name].type == _INT
            attributes[attribute.name] = _type_or_none(str(value)) if names_a_type else _plain(value, attribute.kind)
    return helper.make_node(
        name, inputs, list(node.outputs), domain="" if domain in STANDARD else domain, **_kept(attributes)
    )


def _kept(attributes: Mapping[str, Any]) -> dict[str, Any]:
    derived = attributes.get("auto_pad", _BY_HAND) != _BY_HAND
    return {
        name: value
        for name, value in attributes.items()
        if not (isinstance(value, list) and not value) and not (derived and name == "pads")
    }


def _plain(value: Value, kind: str) -> Any:
    """An attribute's value as ONNX keeps it."""
    if isinstance(value, ConstantTensor):
        raise NotExpressible("an attribute that is a tensor")
    if isinstance(value, tuple):
        return [_plain(one, kind.removesuffix("s")) for one in value]
    if kind == "float":
        return float(value)  # type: ignore[arg-type]
    return int(value) if kind in ("int", "bool") else value  # type: ignore[arg-type]


def _array(value: Value, kind: str, dtype: str) -> tuple[object, object]:
    """The elements and the type of an operand that is known when the model is made."""
    if isinstance(value, ConstantTensor):
        return np.asarray(value.values, storage_dtype(value.dtype)).reshape(value.shape), storage_dtype(value.dtype)
    if kind in ("ints", "int"):
        return value, np.int64
    return value, np.float32 if kind == "floats" else storage_dtype(dtype)

"""The equations of operators over the tensors of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from smartmem_rules.graph.model import Node
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.binding import operand_name, output_name
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.expr import Equation, TensorType, rename_reads, tensors_read
from smartmem_rules.tensor.instantiate import size_of


def over_graph(
    equations: Sequence[Equation], operands: Sequence[str | None], outputs: Sequence[str], own: Iterable[str]
) -> tuple[Equation, ...]:
    """The equations of an instance over a graph's tensors; `own` names the tensor of each that is no output."""
    names = {output_name(place): output for place, output in enumerate(outputs)}
    names.update({operand_name(place): o for place, o in enumerate(operands) if o is not None})
    return renamed_equations(equations, names, own)


def renamed_equations(
    equations: Sequence[Equation], names: Mapping[str, str], own: Iterable[str]
) -> tuple[Equation, ...]:
    """Equations over other tensors; one whose tensor has no name takes that of the same place in `own`."""
    known = dict(names)
    for equation, name in zip(equations, own, strict=False):
        known.setdefault(equation.tensor, name)
    return tuple(replace(e, tensor=known.get(e.tensor, e.tensor), body=rename_reads(e.body, known)) for e in equations)


def local_names(node: str, equations: Sequence[Equation]) -> list[str]:
    """What the tensors are called that only a node knows."""
    return [f"{node}.{equation.tensor.rsplit('.', 1)[-1]}" for equation in equations]


def is_opaque(node: Node, types: Mapping[str, TensorType], instances: Instances) -> bool:
    """Whether rules cannot read a node: the rule base, asked without the model's opset, gives it other equations.

    So are nodes with outputs that hold extents, which their operators do not declare.
    """
    overloads = instances.base.operators.get(node.operator, ())
    if any(size_of(extent) is not None for o in overloads for output in o.outputs for extent in output.type.shape):
        return True
    if not any(o.onnx is not None and o.onnx.until is not None for o in overloads):
        return not overloads
    operands = [None if o is None else types[o] for o in node.operands]
    try:
        instance = instances.get(node.operator, operands, node.attributes, len(node.outputs))
    except Unsupported:
        return True
    own = [equation.tensor for equation in node.equations]
    return over_graph(instance.equations, node.operands, node.outputs, own) != node.equations


def cone(equations: Mapping[str, Equation], tensors: Iterable[str], ends: Iterable[str]) -> set[str]:
    """The tensors of which some are computed by equations, down to those among `ends`."""
    last, found, pending = set(ends), set[str](), list(tensors)
    while pending:
        tensor = pending.pop()
        if tensor not in found and tensor in equations:
            found.add(tensor)
            pending += [t for t in tensors_read(equations[tensor].body) if t not in last]
    return found

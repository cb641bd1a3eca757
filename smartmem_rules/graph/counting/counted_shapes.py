"""Shapes of tensors whose extents depend on data: they are put together while the model runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

from smartmem_rules.graph.loading import DEFAULT_DOMAIN, domain_of


def counted_shape(
    node: onnx.NodeProto, shape: tuple[int, ...], counts: Mapping[int, str], new: Callable[[str], str]
) -> list[onnx.NodeProto]:
    """The nodes that stand for a Shape or a Size, the last of them with its output; none for another operator.

    Args:
        shape: of its operand, with bounds for the axes that depend on data.
        counts: the scalar tensors that hold the extents of these axes.
        new: a name that no tensor has, as near as can be to a given one.
    """
    if domain_of(node.domain) != DEFAULT_DOMAIN or node.op_type not in ("Shape", "Size"):
        return []
    output = node.output[0]
    attributes = {attribute.name: attribute.i for attribute in node.attribute}
    axes = range(*slice(attributes.get("start"), attributes.get("end")).indices(len(shape)))
    one, extents, together = new(f"{output}/one"), [], new(f"{output}/extents")
    nodes = [_constant(one, np.array([1]))]
    for axis in axes if node.op_type == "Shape" else range(len(shape)):
        extents.append(new(f"{output}/{axis}"))
        if axis in counts:
            nodes.append(helper.make_node("Reshape", [counts[axis], one], [extents[-1]]))
        else:
            nodes.append(_constant(extents[-1], np.array([shape[axis]])))
    if node.op_type == "Shape":
        return [*nodes, helper.make_node("Concat", extents, [output], node.name, axis=0)]
    nodes.append(helper.make_node("Concat", extents, [together], axis=0))
    return [*nodes, helper.make_node("ReduceProd", [together], [output], node.name, keepdims=0)]


def _constant(name: str, value: np.ndarray) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value.astype(np.int64)))

"""Operators that draw random numbers: each gets random bits as its last operand.

The bits are a function of the element's place, of a key that differs from node to node, and of the number of the run,
which is an input of the graph.  So a run can be repeated, and no state is kept on the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import helper

from smartmem_rules.graph.loading import DEFAULT_DOMAIN, domain_of
from smartmem_rules.graph.run_number import RUN_NUMBER
from smartmem_rules.graph.weights import Values
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.expr import TensorType

DOMAIN = "smartmem"
"""The domain of the operators that only the importer makes."""
RUN_TYPE = TensorType("int64", ())
DRAWING = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
MAY_DRAW = frozenset((*DRAWING, "Dropout"))
"""Operators that may give something else in each run: `Dropout` does in training."""
_KEYS = 1 << 32
_STRIDE = 0x85EBCA6B
"""How far apart the keys of neighbouring nodes are; odd, so that 2 ** 32 nodes have keys of their own."""


@dataclass
class Drawing:
    """Puts random bits before the nodes of an import that draw numbers.

    Attributes:
        types: of the tensors known so far.
        values: the known tensors.
        new: a name that no tensor of the model or of the import has, as near as can be to a given one.
        nodes: how many nodes draw numbers so far.
    """

    types: Mapping[str, TensorType]
    values: Values
    new: Callable[[str], str]
    nodes: int = 0

    def with_bits(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """The nodes that stand for one: itself, or random bits and the node with one operand more.

        Raises:
            Unsupported: an attribute that says how many numbers to draw is missing or wrong.
        """
        if domain_of(node.domain) != DEFAULT_DOMAIN or not self._draws(node):
            return [node]
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        shape = self._shape(node, attributes)
        self.nodes += 1
        bits = self.new(f"{node.output[0]}/bits")
        key = (_bits_of(attributes.get("seed")) + self.nodes * _STRIDE) % _KEYS
        drawn = helper.make_node("RandomBits", [RUN_NUMBER], [bits], f"{bits}/RandomBits", domain=DOMAIN, key=key)
        drawn.attribute.append(helper.make_attribute("shape", shape, attr_type=onnx.AttributeProto.INTS))
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        if node.op_type == "Dropout":
            copy.input.extend([""] * (3 - len(copy.input)))
        copy.input.append(bits)
        return [drawn, copy]

    def _draws(self, node: onnx.NodeProto) -> bool:
        if node.op_type != "Dropout":
            return node.op_type in DRAWING
        training = node.input[2] if len(node.input) > 2 else ""
        return bool(training) and (training not in self.values or bool(np.any(self.values[training])))

    def _shape(self, node: onnx.NodeProto, attributes: Mapping[str, object]) -> list[int]:
        if node.op_type in ("RandomNormal", "RandomUniform"):
            shape = attributes.get("shape")
            if not isinstance(shape, list) or any(extent < 0 for extent in shape):
                raise Unsupported(f"its attribute shape is {shape}; it has to be a list of extents")
            return shape
        given = list(self.types[node.input[0]].shape)
        if node.op_type != "Multinomial":
            return given
        count = attributes.get("sample_size", 1)
        if len(given) != 2 or not isinstance(count, int) or count < 0:
            raise Unsupported(f"it takes a tensor of rank 2 and a sample_size, not {given} and {count}")
        return [given[0], count]


def _bits_of(seed: object) -> int:
    """A seed, a float in most operators, as a number of 32 bits."""
    if isinstance(seed, int):
        return seed % _KEYS
    if not isinstance(seed, float) or math.isnan(seed):
        return 0
    return int(np.float32(seed).view(np.uint32))

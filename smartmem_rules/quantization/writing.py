"""Quantized weights as ONNX: operators of ONNX Runtime, or `DequantizeLinear` in front of the product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules.quantization.options import OPERATOR, Code, Options
from smartmem_rules.quantization.products import Product
from smartmem_rules.quantization.rounding import Rounded
from smartmem_rules.records import dataclass

Array = np.ndarray[Any, np.dtype[Any]]
OPERATOR_DOMAIN = "com.microsoft"
PAIRS_OPSET = 21
"""The first with integers of four bits and with blocks."""
PAIRS_FORMAT = 10
"""The first version of the file format with integers of four bits."""
_CODES = {"int4": TensorProto.INT4, "uint4": TensorProto.UINT4, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


_Key = tuple[str, bool, float, bool]


@dataclass
class _Names:
    """Names that nothing in the model has."""

    taken: set[str] = field(default_factory=set)

    def unused(self, wanted: str) -> str:
        number, name = 1, wanted
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        return name


@dataclass(frozen=True, kw_only=True)
class _Stored:
    """The tensors that hold a quantized weight."""

    integers: str
    scales: str
    zeros: str | None
    block: int


class Writer:
    """Puts quantized products into a graph, in the place of the nodes that were there."""

    def __init__(self, model: onnx.ModelProto, options: Options) -> None:
        self.model, self.options = model, options
        graph = model.graph
        names = {name for node in graph.node for name in (*node.input, *node.output, node.name)}
        names.update(one.name for one in (*graph.initializer, *graph.input, *graph.output))
        self._names = _Names(names)
        self._stored: dict[_Key, _Stored] = {}
        self._nodes: dict[int, list[onnx.NodeProto]] = {}
        self._bytes: dict[_Key, int] = {}

    def put(self, product: Product, rounded: Rounded) -> None:
        """Replace a node; its weight is stored once for all nodes that read it alike."""
        key = _key(product)
        if key not in self._stored:
            before = len(self.model.graph.initializer)
            self._stored[key] = self._store(product, rounded)
            added = self.model.graph.initializer[before:]
            self._bytes[key] = sum(len(tensor.raw_data) for tensor in added)
        node, held = self.model.graph.node[product.place], self._stored[key]
        make = self._rows if product.table else self._operator if self.options.form == OPERATOR else self._pair
        self._nodes[product.place] = list(make(node, product, held))

    def bytes_of(self, product: Product) -> int:
        """What the tensors of a quantized weight take."""
        return self._bytes[_key(product)]

    def finish(self, unread: set[str]) -> None:
        """Set the model's nodes, and leave out weights that nothing reads any more."""
        graph = self.model.graph
        nodes = [one for place, node in enumerate(graph.node) for one in self._nodes.get(place, [node])]
        kept = [tensor for tensor in graph.initializer if tensor.name not in unread]
        del graph.node[:]
        graph.node.extend(nodes)
        del graph.initializer[:]
        graph.initializer.extend(kept)
        if self.options.form != OPERATOR:
            self.model.ir_version = max(self.model.ir_version, PAIRS_FORMAT)
        elif all(one.domain != OPERATOR_DOMAIN for one in self.model.opset_import):
            self.model.opset_import.append(helper.make_opsetid(OPERATOR_DOMAIN, 1))

    # --- tensors ---

    def _store(self, product: Product, rounded: Rounded) -> _Stored:
        code, name = self.options.code, f"{product.weight}_{self.options.weights}"
        zeros = None if code.symmetric else rounded.zeros
        scales = rounded.scales.astype(product.dtype)
        if self.options.form == OPERATOR:
            if product.table:
                packed = _bytes((rounded.integers - code.low).T, code.bits)
            else:
                integers = _in_blocks(rounded.integers - code.low, rounded.block, self.options.block)
                packed = _bytes(integers, code.bits).reshape(product.columns, len(scales), -1)
            return _Stored(
                integers=self._add(name, packed),
                scales=self._add(f"{name}_scales", scales.T),
                zeros=None if zeros is None else self._add(f"{name}_zeros", _bytes(zeros.T, code.bits)),
                block=self.options.block,
            )

        def laid(values: Array) -> Array:
            return values.reshape(-1) if self._by_columns(values) else values.T if product.transposed else values

        return _Stored(
            integers=self._add_integers(name, rounded.integers.T if product.transposed else rounded.integers),
            scales=self._add(f"{name}_scales", laid(scales)),
            zeros=None if zeros is None else self._add_integers(f"{name}_zeros", laid(zeros)),
            block=0 if self._by_columns(scales) else rounded.block,
        )

    @staticmethod
    def _by_columns(values: Array) -> bool:
        """Whether all rows have one scale."""
        return len(values) == 1

    def _add(self, name: str, values: Array) -> str:
        made = numpy_helper.from_array(np.ascontiguousarray(values), self._names.unused(name))
        self.model.graph.initializer.append(made)
        return str(made.name)

    def _add_integers(self, name: str, values: Array) -> str:
        code = self.options.code
        data = values.reshape(1, -1).astype(np.uint8 if code.low == 0 else np.int8).view(np.uint8)
        made = TensorProto(name=self._names.unused(name), data_type=_CODES[code.name], dims=values.shape)
        made.raw_data = _bytes(data & (2**code.bits - 1), code.bits).tobytes()
        self.model.graph.initializer.append(made)
        return str(made.name)

    # --- nodes ---

    def _operator(self, node: onnx.NodeProto, product: Product, held: _Stored) -> Iterator[onnx.NodeProto]:
        summand = node.input[2] if node.op_type == "Gemm" and len(node.input) > 2 else ""
        result = self._names.unused(f"{node.output[0]}_product") if summand else node.output[0]
        made = helper.make_node(
            "MatMulNBits",
            [node.input[0], held.integers, held.scales, *([held.zeros] if held.zeros else [])],
            [result],
            node.name,
            domain=OPERATOR_DOMAIN,
        )
        sizes = {"K": product.depth, "N": product.columns, "bits": self.options.code.bits, "block_size": held.block}
        made.attribute.extend(helper.make_attribute(name, size) for name, size in sizes.items())
        yield made
        if summand:
            name = self._names.unused(f"{node.name}_summand") if node.name else ""
            yield helper.make_node("Add", [result, summand], [node.output[0]], name)

    def _rows(self, node: onnx.NodeProto, product: Product, held: _Stored) -> Iterator[onnx.NodeProto]:
        made = helper.make_node(
            "GatherBlockQuantized",
            [held.integers, node.input[1], held.scales, *([held.zeros] if held.zeros else [])],
            [node.output[0]],
            node.name,
            domain=OPERATOR_DOMAIN,
        )
        sizes = {"bits": self.options.code.bits, "block_size": held.block, "gather_axis": 0, "quantize_axis": 1}
        made.attribute.extend(helper.make_attribute(name, size) for name, size in sizes.items())
        yield made

    def _pair(self, node: onnx.NodeProto, product: Product, held: _Stored) -> Iterator[onnx.NodeProto]:
        unpacked = self._names.unused(f"{product.weight}_unpacked")
        across = 0 if product.transposed else 1
        made = helper.make_node(
            "DequantizeLinear",
            [held.integers, held.scales, *([held.zeros] if held.zeros else [])],
            [unpacked],
            self._names.unused(f"{node.name}_unpack") if node.name else "",
        )
        made.attribute.append(helper.make_attribute("axis", 1 - across if held.block else across))
        if held.block:
            made.attribute.append(helper.make_attribute("block_size", held.block))
        yield made
        product_node = onnx.NodeProto()
        product_node.CopyFrom(node)
        product_node.input[1] = unpacked
        yield product_node


def _key(product: Product) -> _Key:
    """What tells weights apart that are stored by themselves."""
    return product.weight, product.transposed, product.factor, product.table


def _in_blocks(integers: Array, block: int, wanted: int) -> Array:
    """The columns one after the other, each in whole blocks of the wanted length, filled up with zeros."""
    depth, columns = integers.shape
    blocks = -(-depth // block)
    made = np.zeros((columns, blocks * wanted), np.uint8)
    made[:, :depth] = integers.T
    return made


def _bytes(values: Array, bits: int) -> Array:
    """Neighbouring values of a row in bytes, the first in the lowest bits; each row begins with a byte."""
    each = 8 // bits
    rows = np.pad(values.astype(np.uint8), ((0, 0), (0, -values.shape[1] % each)))
    places = (np.arange(each) * bits).astype(np.uint8)
    packed: Array = np.bitwise_or.reduce(rows.reshape(len(rows), -1, each) << places, axis=2)
    return packed


def opset_for(code: Code, options: Options) -> int | None:
    """The version of ONNX's operators that the form needs; None for any."""
    if options.form == OPERATOR:
        return None
    return PAIRS_OPSET if code.bits < 8 or options.block else 13

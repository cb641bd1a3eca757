"""Checks that an ONNX model is what ONNX's IR says, before anything is done with it, and that it keeps the limits.

The later stages rely on this: names are texts, an attribute holds a value of its type, a tensor has as many data as its
shape says, functions do not call themselves.  Nothing here recurses, so that no depth of nesting can end the process.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import onnx
from onnx import helper

from smartmem_rules.graph.errors import GraphError
from smartmem_rules.graph.weights import PACKED_BITS, stored_bytes
from smartmem_rules.limits import Limits

_MOST_FAULTS = 8
_Attribute = onnx.AttributeProto
_Tensor = onnx.TensorProto
_SINGLE = {
    _Attribute.TENSOR: "t",
    _Attribute.GRAPH: "g",
    _Attribute.SPARSE_TENSOR: "sparse_tensor",
    _Attribute.TYPE_PROTO: "tp",
}
"""Types of attributes whose value is a message, and the field that holds it."""
_TYPES = frozenset(_Tensor.DataType.values())
_OPERATORS_WITH_BODIES: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "If": {"then_branch": (0, 0), "else_branch": (0, 0)},
    "Loop": {"body": (2, 1)},
    "Scan": {"body": (1, 1)},
}
"""The attributes that control flow needs, with the least number of inputs and outputs of each body."""


def check_model(model: onnx.ModelProto, limits: Limits) -> None:
    """Check a model.

    Raises:
        GraphError: it is damaged; the first few faults are named, with their places.
        LimitError: it has too many nodes, is nested too deeply, or has a name that is too long.
    """
    check = _Check(limits)
    check.graph(model.graph)
    for entry in model.opset_import:
        check.text(entry.domain, "an operator set")
    for function in model.functions:
        check.function(function)
    check.finish()
    _check_calls(model, limits)


class _Check:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._faults: dict[str, None] = {}
        self._nodes = 0

    def finish(self) -> None:
        """Raise what was found."""
        if self._faults:
            shown = list(self._faults)[:_MOST_FAULTS]
            rest = len(self._faults) - len(shown)
            more = f"\n  and {rest} more" if rest else ""
            raise GraphError("the model is damaged; export it again:\n  " + "\n  ".join(shown) + more)

    def fault(self, text: str) -> None:
        self._faults[text] = None

    def text(self, value: Any, where: str) -> bool:
        """Whether a name is text of a length that can be handled."""
        if not isinstance(value, str):
            self.fault(f"{where} has a name that is not UTF-8: {value[:40]!r}")
            return False
        if len(value) > self._limits.name_length:
            self._limits.check("name_length", len(value), f"a name of {where}")
        return True

    def graph(self, graph: onnx.GraphProto) -> None:
        """Check a graph and all graphs inside it."""
        waiting = [(graph, 0)]
        while waiting:
            current, depth = waiting.pop()
            self._limits.check("depth", depth, "the graph")
            self._nodes += len(current.node)
            self._limits.check("nodes", self._nodes, "the graph")
            self._tensors(current)
            for place, node in enumerate(current.node):
                where = self._node(node, place)
                waiting.extend((body, depth + 1) for body in self._attributes(node, where, False))

    def function(self, function: onnx.FunctionProto) -> None:
        """Check a model's function."""
        name = function.name if self.text(function.name, "a function") else "?"
        for text in (*function.input, *function.output, *function.attribute, function.domain):
            self.text(text, f"the function {name!r}")
        for place, node in enumerate(function.node):
            where = self._node(node, place)
            for body in self._attributes(node, where, True):
                self.graph(body)

    def _tensors(self, graph: onnx.GraphProto) -> None:
        self.text(graph.name, "a graph")
        for value in (*graph.input, *graph.output):
            self.text(value.name, "an input or output")
            kind = value.type.WhichOneof("value")
            if kind == "tensor_type":
                for dim in value.type.tensor_type.shape.dim:
                    self.text(dim.dim_param, f"the shape of {value.name!r}")
        for tensor in graph.initializer:
            if self.text(tensor.name, "an initializer"):
                self._tensor(tensor, f"the tensor {tensor.name!r}")
        for sparse in graph.sparse_initializer:
            if self.text(sparse.values.name, "a sparse initializer"):
                self._sparse(sparse, f"the sparse tensor {sparse.values.name!r}")
        names = Counter(tensor.name for tensor in graph.initializer)
        names.update(sparse.values.name for sparse in graph.sparse_initializer)
        for name, count in names.items():
            if count > 1:
                self.fault(f"the tensor {name!r} is defined {count} times")

    def _node(self, node: onnx.NodeProto, place: int) -> str:
        where = f"node number {place}"
        texts = [node.op_type, node.domain, node.name, *node.input, *node.output]
        if all([self.text(text, where) for text in texts]):
            where = f"the {node.op_type} {node.name!r}" if node.name else f"the {node.op_type} number {place}"
        self._limits.check("operands", max(len(node.input), len(node.output)), where)
        if not node.op_type:
            self.fault(f"{where} has no operator")
        if not any(node.output):
            self.fault(f"{where} has no output")
        if node.domain in ("", "ai.onnx") and node.op_type in _OPERATORS_WITH_BODIES:
            self._bodies(node, where)
        return where

    def _bodies(self, node: onnx.NodeProto, where: str) -> None:
        given = {a.name: a for a in node.attribute if a.type == _Attribute.GRAPH}
        for name, (inputs, outputs) in _OPERATORS_WITH_BODIES[node.op_type].items():
            if name not in given:
                self.fault(f"{where} has no {name}")
            elif len(given[name].g.input) < inputs or len(given[name].g.output) < outputs:
                self.fault(f"the {name} of {where} has too few inputs or outputs")
        least = {"If": 1, "Loop": 2, "Scan": 1}[node.op_type]
        if len(node.input) < least:
            self.fault(f"{where} has {len(node.input)} inputs, it needs {least}")

    # --- attributes and tensors ---

    def _attributes(self, node: onnx.NodeProto, where: str, in_function: bool) -> Iterator[onnx.GraphProto]:
        """Check a node's attributes; the graphs among them."""
        for name, count in Counter(attribute.name for attribute in node.attribute).items():
            if count > 1:
                self.fault(f"{where} has {count} attributes {name!r}")
        for attribute in node.attribute:
            if not self.text(attribute.name, where):
                continue
            self.text(attribute.ref_attr_name, where)
            name = f"the attribute {attribute.name!r} of {where}"
            if attribute.ref_attr_name:
                if not in_function:
                    self.fault(f"{name} stands for an attribute of a function, but is in none")
                continue
            field = _SINGLE.get(attribute.type)
            if not attribute.name:
                self.fault(f"{where} has an attribute without a name")
            elif attribute.type == _Attribute.UNDEFINED:
                self.fault(f"{name} has no type")
            elif field is not None and not attribute.HasField(field):
                self.fault(f"{name} holds nothing")
            elif attribute.type == _Attribute.TENSOR:
                self._tensor(attribute.t, name)
            elif attribute.type == _Attribute.SPARSE_TENSOR:
                self._sparse(attribute.sparse_tensor, name)
            elif attribute.type == _Attribute.GRAPH:
                yield attribute.g
            elif attribute.type == _Attribute.GRAPHS:
                yield from attribute.graphs

    def _sparse(self, sparse: onnx.SparseTensorProto, where: str) -> None:
        if not self._shape(sparse.dims, where):
            return
        before = len(self._faults)
        self._tensor(sparse.values, f"the values of {where}")
        self._tensor(sparse.indices, f"the indices of {where}")
        if len(self._faults) > before:
            return
        count = list(sparse.values.dims)
        if sparse.indices.data_type != _Tensor.INT64 or sparse.values.data_type == _Tensor.STRING or len(count) != 1:
            self.fault(f"{where} holds no list of numbers with int64 indices")
        elif list(sparse.indices.dims) not in (count, [*count, len(sparse.dims)]):
            self.fault(f"{where} has values of shape {count} and indices of shape {list(sparse.indices.dims)}")

    def _shape(self, dims: Iterable[int], where: str) -> bool:
        shape = list(dims)
        if any(extent < 0 for extent in shape):
            self.fault(f"{where} has the shape {shape}")
            return False
        self._limits.check_shape(shape, where)
        return True

    def _tensor(self, tensor: onnx.TensorProto, where: str) -> None:
        self.text(tensor.name, where)
        if tensor.data_type == _Tensor.UNDEFINED or tensor.data_type not in _TYPES:
            self.fault(f"the element type {tensor.data_type} of {where} is not one of ONNX")
            return
        if tensor.HasField("segment"):
            self.fault(f"{where} is a segment of a tensor, which no exporter writes")
        if not self._shape(tensor.dims, where):
            return
        if tensor.data_location == _Tensor.EXTERNAL:
            for entry in tensor.external_data:
                if self.text(entry.key, where) and entry.key != "data":
                    self.text(entry.value, where)
            return
        wanted, held, unit = _sizes(tensor)
        if held != wanted:
            self.fault(f"{where} has the shape {list(tensor.dims)}, which takes {wanted} {unit}, and holds {held}")


def _sizes(tensor: onnx.TensorProto) -> tuple[int, int, str]:
    """How many data the shape of a tensor asks for, how many it holds, and of what."""
    count = math.prod(tensor.dims)
    bits = PACKED_BITS.get(int(tensor.data_type))
    if tensor.data_type == _Tensor.STRING:
        return count, len(tensor.string_data), "texts"
    if tensor.HasField("raw_data"):
        return stored_bytes(tensor), len(tensor.raw_data), "bytes"
    held = len(getattr(tensor, helper.tensor_dtype_to_field(tensor.data_type)))
    if tensor.data_type in (_Tensor.COMPLEX64, _Tensor.COMPLEX128):
        return 2 * count, held, "numbers"
    return -(-count * bits // 8) if bits else count, held, "numbers"


# --- functions ---


def _check_calls(model: onnx.ModelProto, limits: Limits) -> None:
    """Functions must not call themselves, and must not grow beyond the limit of nodes when they are inlined.

    Raises:
        GraphError: a function calls itself, directly or through others.
        LimitError: too many nodes, or calls inside each other.
    """
    bodies = {(f.domain, f.name, f.overload): list(_nodes(f.node)) for f in model.functions}
    if not bodies:
        return
    called = {
        key: [k for n in nodes if (k := (n.domain, n.op_type, n.overload)) in bodies] for key, nodes in bodies.items()
    }
    sizes: dict[tuple[str, str, str], tuple[int, int]] = {}
    for start in bodies:
        path: list[tuple[str, str, str]] = [start]
        while path:
            key = path[-1]
            missing = [k for k in called[key] if k not in sizes]
            if key in sizes or not missing:
                counts = Counter(called[key])
                own = len(bodies[key]) - len(called[key])
                size = own + sum(sizes[k][0] * times for k, times in counts.items())
                sizes[key] = size, 1 + max((sizes[k][1] for k in counts), default=0)
                path.pop()
            elif missing[0] in path:
                loop = [*path[path.index(missing[0]) :], missing[0]]
                raise GraphError(f"a function calls itself: {' -> '.join(name for _, name, _ in loop)}")
            else:
                path.append(missing[0])
    nodes, depth = 0, 0
    for node in _nodes(model.graph.node):
        size, deep = sizes.get(_operator(node), (1, 0))
        nodes, depth = nodes + size, max(depth, deep)
    limits.check("nodes", nodes, "the graph with its functions inlined")
    limits.check("depth", depth, "the graph")


def _operator(node: onnx.NodeProto) -> tuple[str, str, str]:
    return node.domain, node.op_type, node.overload


def _nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes and those of the graphs inside them."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        for attribute in node.attribute:
            waiting.extend(attribute.g.node)
            for graph in attribute.graphs:
                waiting.extend(graph.node)

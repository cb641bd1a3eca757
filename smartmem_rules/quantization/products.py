"""The products of a model whose right factor is a weight, the tables that it reads, and why others stay as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import onnx

from smartmem_rules.graph.loading import DEFAULT_DOMAIN, domain_of, node_inputs
from smartmem_rules.graph.weights import dtype_name
from smartmem_rules.language.fixes import did_you_mean
from smartmem_rules.quantization.options import OPERATOR, Options, QuantizeError
from smartmem_rules.records import dataclass

FLOATS = ("float32", "float16")
WEIGHT_OF = {"MatMul": 1, "Gemm": 1, "Gather": 0}
"""Which operand of a node may be a weight."""


@dataclass(frozen=True, kw_only=True)
class Product:
    """A node whose right factor, or whose table of rows, is to be quantized.

    Attributes:
        place: of the node in the graph.
        weight: the initializer's name.
        depth, columns: of the right factor as it is multiplied; of a table the length of a row, and how many there are.
        transposed: whether the initializer holds it the other way round, as a table does.
        table: whether rows of it are read (Gather), and not multiplied.
        factor: what the product is multiplied by (`alpha` of a Gemm), where the form has no place for it.
    """

    place: int
    name: str
    weight: str
    dtype: str
    depth: int
    columns: int
    transposed: bool
    factor: float = 1.0
    table: bool = False

    @property
    def operand(self) -> int:
        """Which operand of the node is not the weight."""
        return 1 if self.table else 0


@dataclass(frozen=True, kw_only=True)
class Found:
    """The products of a model.

    Attributes:
        left: nodes with a constant factor that stay as they are, each with the reason.
    """

    products: tuple[Product, ...]
    left: Mapping[str, str]


def find_products(graph: onnx.GraphProto, options: Options) -> Found:
    """The products whose right factor is an initializer, and the tables of rows that are one.

    Raises:
        QuantizeError: an excluded node does not exist, or there is no product.
    """
    names = _names(graph)
    for name in options.exclude:
        if name not in names.values():
            near = did_you_mean(name, names.values())
            raise QuantizeError(f"there is no node {name!r} to exclude; {near or 'names are those of the model'}")
    weights = {tensor.name: tensor for tensor in graph.initializer}
    given = {value.name for value in graph.input}
    products, left = [], {}
    for place, node in enumerate(graph.node):
        if node.op_type not in WEIGHT_OF or domain_of(node.domain) != DEFAULT_DOMAIN or len(node.input) < 2:
            continue
        if not any(name in weights for name in node.input[: WEIGHT_OF[node.op_type] + 1]):
            continue
        if node.op_type == "Gather" and not _is_table(weights[node.input[0]]):
            continue
        reason = _refused(node, weights, given, options, names[place])
        if reason:
            left[names[place]] = reason
        else:
            products.append(_product(place, node, names[place], weights, options))
    if not products:
        raise QuantizeError(
            "the model has no product that could be quantized: no MatMul or Gemm of the main graph has a matrix of at "
            f"least {options.least} floats as its right factor, no Gather such a table"
            + "".join(f"; {n}: {r}" for n, r in left.items())
        )
    return Found(products=tuple(products), left=left)


def _names(graph: onnx.GraphProto) -> dict[int, str]:
    """The names of the nodes, made up where there are none or several have one."""
    counts = Counter(node.name for node in graph.node)
    return {
        place: node.name if node.name and counts[node.name] == 1 else f"{node.op_type}_{place}"
        for place, node in enumerate(graph.node)
    }


def _refused(
    node: onnx.NodeProto, weights: Mapping[str, onnx.TensorProto], given: set[str], options: Options, name: str
) -> str:
    """Why a node stays as it is; empty where it does not."""
    weight = weights.get(node.input[WEIGHT_OF[node.op_type]])
    if weight is None:
        return "its left factor is the constant one"
    if name in options.exclude:
        return "it is excluded"
    if weight.name in given:
        return "its weight is an input, which a caller may replace"
    if len(weight.dims) != 2:
        return f"its weight has {len(weight.dims)} axes, not 2"
    if dtype_name(weight.data_type) not in FLOATS:
        return f"its weight is of type {dtype_name(weight.data_type)}"
    if weight.dims[0] * weight.dims[1] < options.least:
        return f"its weight has fewer than {options.least} elements"
    if node.op_type == "Gather":
        return _refused_table(node, weight, options)
    if options.form == OPERATOR and node.op_type == "Gemm":
        if _attribute(node, "transA", 0):
            return "its left factor is transposed, which MatMulNBits cannot be"
        if len(node.input) > 2 and node.input[2] and _attribute(node, "beta", 1.0) != 1:
            return "its summand has a factor (beta), which MatMulNBits has not"
    return ""


def _is_table(weight: onnx.TensorProto) -> bool:
    """Whether a constant is one of floats: integers that are read by index are no weights."""
    return len(weight.dims) > 1 and dtype_name(weight.data_type) in FLOATS


def _refused_table(node: onnx.NodeProto, weight: onnx.TensorProto, options: Options) -> str:
    """Why a table stays as it is; empty where it does not."""
    if not options.tables:
        return "tables stay as they are"
    if options.form != OPERATOR:
        return "DequantizeLinear would unpack all of the table for each row that is read"
    if _attribute(node, "axis", 0) not in (0, -2):
        return "it reads columns, not rows"
    if weight.dims[1] * options.code.bits % 8:
        return "a row fills no whole bytes"
    return ""


def _product(
    place: int, node: onnx.NodeProto, name: str, weights: Mapping[str, onnx.TensorProto], options: Options
) -> Product:
    gemm, table = node.op_type == "Gemm", node.op_type == "Gather"
    weight = weights[node.input[WEIGHT_OF[node.op_type]]]
    transposed = table or (gemm and bool(_attribute(node, "transB", 0)))
    depth, columns = reversed(weight.dims) if transposed else weight.dims
    return Product(
        place=place,
        name=name,
        weight=weight.name,
        dtype=dtype_name(weight.data_type),
        depth=depth,
        columns=columns,
        transposed=transposed,
        factor=float(_attribute(node, "alpha", 1.0)) if gemm and options.form == OPERATOR else 1.0,
        table=table,
    )


def _attribute(node: onnx.NodeProto, name: str, default: float) -> float:
    found = next((one for one in node.attribute if one.name == name), None)
    if found is None:
        return default
    return float(found.i if found.type == onnx.AttributeProto.INT else found.f)


def read_by_others(graph: onnx.GraphProto, products: tuple[Product, ...]) -> set[str]:
    """The tensors that something else than these products reads as their weights."""
    own = {product.place: product for product in products}
    found = {value.name for value in graph.output}
    for place, node in enumerate(graph.node):
        names = list(node_inputs(node))
        if place in own:
            names.remove(own[place].weight)
        found.update(names)
    return found

"""Reads ONNX models and checks that they are whole: one clear message for each way a model can be broken."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from smartmem_rules.graph.model import GraphError
from smartmem_rules.graph.weights import dtype_name
from smartmem_rules.language.fixes import did_you_mean
from smartmem_rules.tensor.expr import ALL_DTYPES, DTYPES, TensorType
from smartmem_rules.tensor.extents import Dimension, symbol

ModelSource = str | Path | bytes | onnx.ModelProto
DEFAULT_DOMAIN = "ai.onnx"
_GREATEST_VERSION = 2**31 - 1
_IMPLIED_OPSETS = 3
"""The first version of the format that has to say which operator sets a model uses; before, it is the first one."""


class OpenInputError(GraphError):
    """An input has no rank or is no tensor: what a plan would have to know of it is known when the model runs."""


def load_model(source: ModelSource) -> tuple[onnx.ModelProto, Path | None]:
    """The model and the folder that its data files are in (None unless it comes from a file).

    Raises:
        GraphError: there is no such file, or it is no ONNX model.
    """
    if isinstance(source, onnx.ModelProto):
        model, name, folder = source, "the ModelProto", None
    elif isinstance(source, bytes):
        model, name, folder = _parse(source, "the bytes given"), "the bytes given", None
    else:
        path = Path(source)
        model, name, folder = _parse(_read(path), str(path)), str(path), path.parent
    if not model.HasField("graph") or not model.graph.output:
        raise GraphError(f"{name}: this is no ONNX model, it has no graph with outputs; export the model again")
    return model, folder


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        near = did_you_mean(path.name, (p.name for p in path.parent.glob("*.onnx"))) if path.parent.is_dir() else None
        raise GraphError(f"{path}: there is no such file{f'; {near}' if near else ''}") from None
    except OSError as error:
        raise GraphError(f"{path}: the file cannot be read ({error.strerror or error})") from error


def _parse(data: bytes, name: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        raise GraphError(
            f"{name}: this is no ONNX model or it is damaged ({len(data)} bytes that do not decode); "
            "export or download it again"
        ) from None
    return model


def domain_of(domain: str) -> str:
    return domain or DEFAULT_DOMAIN


def opsets(model: onnx.ModelProto) -> dict[str, int]:
    """The operator set versions by domain, at most the greatest that ONNX's registry of operators takes."""
    versions = {domain_of(entry.domain): min(entry.version, _GREATEST_VERSION) for entry in model.opset_import}
    if not versions and model.ir_version < _IMPLIED_OPSETS:
        versions[DEFAULT_DOMAIN] = 1
    return versions


def node_inputs(node: onnx.NodeProto) -> Iterator[str]:
    """The tensors that a node reads, those that its subgraphs take from outside included."""
    yield from (name for name in node.input if name)
    yield from named_in_bodies(node)


def named_in_bodies(node: onnx.NodeProto) -> Iterator[str]:
    """The tensors that a node's subgraphs take from outside, which may be its inputs as well."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield from captured(attribute.g)


def all_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """The nodes, and those of the graphs inside them."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from all_nodes(graph.node)


def names_of(graph: onnx.GraphProto) -> Iterator[str]:
    """The names of all tensors of a graph and of the graphs inside it."""
    yield from (value.name for value in (*graph.input, *graph.output))
    yield from (tensor.name for tensor in graph.initializer)
    yield from (tensor.values.name for tensor in graph.sparse_initializer)
    for node in graph.node:
        yield from (*node.input, *node.output)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from names_of(attribute.g)


def captured(graph: onnx.GraphProto) -> Iterator[str]:
    """The tensors that a subgraph takes from outside."""
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {output for node in graph.node for output in node.output}
    for node in graph.node:
        yield from (name for name in node_inputs(node) if name not in own)
    yield from (value.name for value in graph.output if value.name not in own)


def sorted_nodes(
    nodes: Iterable[onnx.NodeProto], given: Collection[str], outputs: Iterable[str]
) -> list[onnx.NodeProto]:
    """The nodes in topological order, without those that no output depends on.

    Args:
        given: names of the tensors that no node computes.
        outputs: names of the tensors that are wanted.

    Raises:
        GraphError: a tensor is undefined or defined twice, or the nodes form a cycle.
    """
    nodes = list(nodes)
    producers: dict[str, int] = {}
    for place, node in enumerate(nodes):
        for name in filter(None, node.output):
            if name in producers or name in given:
                raise GraphError(f"the tensor {name!r} is defined twice, the second time by {describe(node, place)}")
            producers[name] = place
    wanted = list(outputs)
    needs = [[name for name in node_inputs(node) if name not in given] for node in nodes]
    undefined = [
        f"{name!r}, an input of {describe(node, place)}"
        for place, node in enumerate(nodes)
        for name in needs[place]
        if name not in producers
    ]
    undefined += [f"{name!r}, an output of the graph" for name in wanted if name not in producers and name not in given]
    if undefined:
        raise GraphError("nothing defines " + "; nothing defines ".join(undefined) + "; the model is damaged")
    parents = [[producers[name] for name in names] for names in needs]
    order = _depth_first(nodes, parents, [producers[name] for name in wanted if name in producers])
    return [nodes[place] for place in order]


def _depth_first(nodes: list[onnx.NodeProto], parents: list[list[int]], roots: list[int]) -> list[int]:
    """The nodes that the roots depend on; where the given order is topological already, in that order."""
    live: set[int] = set()
    stack = list(roots)
    while stack:
        place = stack.pop()
        if place not in live:
            live.add(place)
            stack.extend(parents[place])
    order = sorted(live)
    if all(parent < place for place in order for parent in parents[place]):
        return order
    remaining = {place: len(set(parents[place])) for place in order}
    children: dict[int, list[int]] = {}
    for place in order:
        for parent in set(parents[place]):
            children.setdefault(parent, []).append(place)
    ready = [place for place in order if not remaining[place]]
    result: list[int] = []
    for place in ready:
        result.append(place)
        for child in children.get(place, ()):
            remaining[child] -= 1
            if not remaining[child]:
                ready.append(child)
    if len(result) < len(order):
        raise GraphError(f"the graph has a cycle: {_cycle(nodes, parents, set(order) - set(result))}")
    return result


def _cycle(nodes: list[onnx.NodeProto], parents: list[list[int]], among: set[int]) -> str:
    place = min(among)
    path: list[int] = []
    while place not in path:
        path.append(place)
        place = next(parent for parent in parents[place] if parent in among)
    loop = [place, *reversed(path[path.index(place) :])]
    return " -> ".join(describe(nodes[p], p) for p in loop)


def describe(node: onnx.NodeProto, place: int) -> str:
    return f"{node.op_type} {node.name!r}" if node.name else f"{node.op_type} number {place}"


Dims = Mapping[str, "int | tuple[int, int]"]
"""What a user says of a model's open dimensions: an extent, or the least and the greatest one."""


def open_dimensions(dims: Dims) -> tuple[Dimension, ...]:
    """The dimensions that are given as ranges.

    Raises:
        GraphError: a value is neither a positive number nor a range that rises from 0 or more.
    """
    for name, extent in dims.items():
        ends = extent if isinstance(extent, tuple | list) else (extent, extent)
        if len(ends) != 2 or not all(isinstance(end, int) and not isinstance(end, bool) for end in ends):
            raise GraphError(
                f"the dimension {name!r} is given as {extent!r}; give a number or the ends of a range, (1, 512)"
            )
        least = 1 if ends[0] == ends[1] else 0
        if not least <= ends[0] <= ends[1]:
            raise GraphError(
                f"the dimension {name!r} cannot be {extent}; give a positive number"
                + (" or a range that rises, from 0 or more" if isinstance(extent, tuple | list) else "")
            )
    ranges = [(name, extent) for name, extent in dims.items() if isinstance(extent, tuple | list)]
    return tuple(Dimension(name, low, high) for name, (low, high) in ranges if low < high)


def input_types(graph: onnx.GraphProto, constants: Collection[str], dims: Dims) -> dict[str, TensorType]:
    """The types of the graph's run-time inputs, their symbolic extents replaced by `dims`.

    An extent without a name is called `INPUT.AXIS`.

    Raises:
        GraphError: an extent has no value, a name in `dims` is unknown, or an input is no tensor of numbers.
    """
    given: dict[str, int] = {n: e[0] if isinstance(e, tuple | list) else e for n, e in dims.items()}
    given.update((dimension.name, symbol(dimension)) for dimension in open_dimensions(dims))
    types: dict[str, TensorType] = {}
    unbound: dict[str, list[str]] = {}
    names: set[str] = set()
    for value in graph.input:
        if value.name in constants:
            continue
        if value.type.WhichOneof("value") != "tensor_type":
            raise OpenInputError(
                f"the input {value.name!r} is not a tensor; a plan takes tensors alone, a SpecializedModel sequences "
                "and optional values too"
            )
        tensor = value.type.tensor_type
        dtype = dtype_name(tensor.elem_type)
        if dtype not in ALL_DTYPES:
            raise GraphError(f"the input {value.name!r} holds elements of type {dtype}; use one of {', '.join(DTYPES)}")
        if not tensor.HasField("shape"):
            raise OpenInputError(
                f"the input {value.name!r} has no shape, not even a rank; export the model with shapes or take a "
                "SpecializedModel"
            )
        shape = []
        for axis, dim in enumerate(tensor.shape.dim):
            name = dim.dim_param or f"{value.name}.{axis}"
            if dim.WhichOneof("value") == "dim_value" and dim.dim_value >= 0:
                shape.append(dim.dim_value)
                continue
            names.add(name)
            if name in dims:
                shape.append(given[name])
            else:
                unbound.setdefault(name, []).append(f"{value.name!r} axis {axis}")
        types[value.name] = TensorType(dtype, tuple(shape))
    if unbound:
        lines = [f"  {name}: {', '.join(places)}" for name, places in unbound.items()]
        flags = " ".join(f"--dim {shlex.quote(name)}=N" for name in unbound)
        raise GraphError("these dimensions of inputs have no value:\n" + "\n".join(lines) + f"\ngive them with {flags}")
    _check_dims(dims, names)
    return types


def _check_dims(dims: Collection[str], names: Collection[str]) -> None:
    for name in dims:
        if name not in names:
            known = ", ".join(sorted(names)) or "none"
            near = did_you_mean(name, names)
            raise GraphError(
                f"no input has a dimension {name!r}; {near or f'the open dimensions of this model: {known}'}"
            )


def needed_tensors(graph: onnx.GraphProto) -> set[str]:
    """The names of the tensors on which the outputs of a graph depend; bodies count with the nodes that hold them."""
    needed = {output.name for output in graph.output}
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output):
            needed.update(_read_by(node))
    return needed


def _read_by(node: onnx.NodeProto) -> Iterator[str]:
    """What a node reads, in its bodies as well."""
    yield from node.input
    for attribute in node.attribute:
        for body in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
            yield from (output.name for output in body.output)
            for inner in body.node:
                yield from _read_by(inner)

"""The ONNX nodes for which a launch of a plan stands, as a model of their own whose inputs have the values of a run."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from smartmem_rules.explanation.fates import Fates, Kind
from smartmem_rules.explanation.model_nodes import file_nodes
from smartmem_rules.graph.expansion.local_functions import inline_functions
from smartmem_rules.graph.loading import node_inputs
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.runtime.feeds import Array

LIMIT = 1_800_000_000
"""Bytes of weights that fit into one ONNX file: protobuf ends at 2 GiB."""


class NoPiece(Exception):
    """The nodes of a launch cannot be cut out of the model; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """Nodes of a model with the tensors at their border.

    Attributes:
        nodes: their places in the model.
        inputs: tensors that other nodes of the model compute, and inputs of the model.
        constants: tensors that no input's elements decide, made by nodes that are not among these.
        outputs: tensors that other nodes read, and outputs of the model.
    """

    nodes: tuple[int, ...]
    inputs: tuple[str, ...]
    constants: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A model of some nodes, and the values of its inputs and outputs in a run of the model that they come from."""

    model: onnx.ModelProto
    feeds: Mapping[str, Array]
    outputs: Mapping[str, Array]

    @cached_property
    def key(self) -> str:
        """Equal for pieces that take the same time: alike up to names and to the values of weights."""
        return _key(self.model)

    @property
    def operators(self) -> str:
        """The operators of its nodes, each with its number, in the order in which they come first."""
        counts: dict[str, int] = defaultdict(int)
        for node in self.model.graph.node:
            counts[node.op_type] += node.op_type != "Constant"
        return ", ".join(name if count == 1 else f"{count} {name}" for name, count in counts.items() if count)


class Nodes:
    """The nodes of a plan's model, and which of them each launch stands for.

    A launch's nodes are those that it computes. With them go the views that it reads through, back to what it reads:
    other systems move data there. A view that several launches read through goes with each. Nodes that make constants
    go with their readers if they read constants alone; of other constants (an extent of a tensor) the value does.
    """

    def __init__(self, model: onnx.ModelProto, plan: Plan) -> None:
        """Args:
        model: what the plan was made of, with all its weights.
        """
        self.model = inline_functions(model)
        self._plan = plan
        self._nodes = list(self.model.graph.node)
        self._given = {tensor.name for tensor in self.model.graph.initializer}
        self._outputs = {output.name for output in self.model.graph.output}
        self._places: dict[str, list[int]] = defaultdict(list)
        self._makers: dict[str, int] = {}
        self._readers: dict[str, list[int]] = defaultdict(list)
        for place, node in enumerate(self._nodes):
            self._places[self.name(place)].append(place)
            self._makers.update((name, place) for name in node.output if name)
            for name in dict.fromkeys(node_inputs(node)):
                self._readers[name].append(place)
        fates = Fates(plan, file_nodes(model))
        self._kinds: list[Kind] = [fates.of(self.name(place)).kind for place in range(len(self._nodes))]

    def name(self, place: int) -> str:
        """What the importer calls a node."""
        return self._nodes[place].name or f"{self._nodes[place].op_type}_{place}"

    def part(self, launch: int) -> Part:
        """The nodes of a launch.

        Raises:
            NoPiece: the launch stands for no nodes of the model's main graph, or for one of two with the same name.
        """
        own = self._computed_by(launch)
        chosen = self._with_operands(own)
        made = {name for place in chosen for name in self._nodes[place].output if name}
        outside = dict.fromkeys(
            name for place in sorted(chosen) for name in node_inputs(self._nodes[place]) if name not in made
        )
        border = [name for name in outside if name not in self._given]
        made_by_own = (name for place in sorted(own) for name in self._nodes[place].output if name)
        outputs = [name for name in made_by_own if self._leaves(name, chosen)]
        if not outputs:
            raise NoPiece("nothing reads what its nodes compute")
        return Part(
            nodes=tuple(sorted(chosen)),
            inputs=tuple(name for name in border if not self._is_constant(name)),
            constants=tuple(name for name in border if self._is_constant(name)),
            outputs=tuple(outputs),
        )

    def piece(self, part: Part, values: Mapping[str, Array]) -> Piece:
        """The model of a part.

        Args:
            values: of the tensors at its border.
        """
        nodes = [self._nodes[place] for place in part.nodes]
        read = {name for node in nodes for name in node_inputs(node)}
        graph = helper.make_graph(
            nodes,
            "piece",
            [_described(name, values[name]) for name in part.inputs],
            [_described(name, values[name]) for name in part.outputs],
            [tensor for tensor in self.model.graph.initializer if tensor.name in read],
        )
        graph.initializer.extend(numpy_helper.from_array(values[name], name) for name in part.constants)
        model = helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version)
        feeds = {name: values[name] for name in part.inputs}
        return Piece(model=model, feeds=feeds, outputs={name: values[name] for name in part.outputs})

    def _computed_by(self, launch: int) -> set[int]:
        origin = self._plan.launches[launch].origin
        if not origin:
            raise NoPiece("it stands for no node")
        for name in origin:
            if name not in self._places:
                raise NoPiece(f"the node {name} is of a body, not of the main graph")
            if len(self._places[name]) > 1:
                raise NoPiece(f"{len(self._places[name])} nodes are called {name}")
        return {self._places[name][0] for name in origin}

    def _with_operands(self, own: Iterable[int]) -> set[int]:
        """Nodes with the views that they read through, and with the nodes that make constants of constants."""
        chosen = set(own)
        stack = list(chosen)
        while stack:
            for name in node_inputs(self._nodes[stack.pop()]):
                maker = self._makers.get(name)
                if maker is None or maker in chosen:
                    continue
                if self._kinds[maker] == "view" or maker in self._of_constants:
                    chosen.add(maker)
                    stack.append(maker)
        return chosen

    @cached_property
    def _of_constants(self) -> frozenset[int]:
        """The nodes that make constants of constants alone; a node stands behind those that it reads."""
        found: set[int] = set()
        for place, kind in enumerate(self._kinds):
            makers = (self._makers.get(name) for name in node_inputs(self._nodes[place]) if name not in self._given)
            if kind == "constant" and all(maker in found for maker in makers):
                found.add(place)
        return frozenset(found)

    def _is_constant(self, name: str) -> bool:
        maker = self._makers.get(name)
        return maker is not None and self._kinds[maker] == "constant"

    def _leaves(self, name: str, chosen: set[int]) -> bool:
        """Whether the model's user or a node beside the chosen ones reads a tensor, maybe through views."""
        stack, seen = [name], set[str]()
        while stack:
            tensor = stack.pop()
            if tensor in self._outputs:
                return True
            seen.add(tensor)
            for place in self._readers[tensor]:
                if self._kinds[place] == "view":
                    stack += [output for output in self._nodes[place].output if output not in seen]
                elif self._kinds[place] not in ("constant", "unneeded") and place not in chosen:
                    return True
        return False


def border_values(
    model: onnx.ModelProto, parts: Iterable[Part], feeds: Mapping[str, Array], folder: Path
) -> dict[str, Array]:
    """What the tensors at the borders of parts hold in a run of the model by ONNX Runtime.

    Args:
        folder: for the model's file.

    Raises:
        NoPiece: ONNX Runtime does not run the model, or a tensor is a sequence or an optional value.
    """
    wanted = dict.fromkeys(name for part in parts for name in (*part.inputs, *part.constants, *part.outputs))
    names = [name for name in wanted if name not in feeds]
    asked = onnx.ModelProto()
    asked.CopyFrom(model)
    for node in asked.graph.node:
        node.ClearField("name")  # ONNX Runtime takes no two of one name
    del asked.graph.output[:]
    asked.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    path = folder / "asked.onnx"
    large = sum(len(tensor.raw_data) for tensor in asked.graph.initializer) > LIMIT
    onnx.save(asked, str(path), save_as_external_data=large, location="asked.data" if large else None)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        found = session.run(names, {one.name: feeds[one.name] for one in session.get_inputs()})
    except Exception as error:  # ONNX Runtime's errors have no type in common
        raise NoPiece(f"ONNX Runtime does not run the model: {error}") from error
    for name, value in zip(names, found, strict=True):
        if not isinstance(value, np.ndarray):
            raise NoPiece(f"the tensor {name} is no array of numbers")
    return {**feeds, **dict(zip(names, found, strict=True))}


def _described(name: str, value: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def _key(model: onnx.ModelProto) -> str:
    """A digest of a model without names and values of weights; a number by which others are scaled is no weight."""
    numbers: dict[str, str] = {"": ""}

    def number(name: str) -> str:
        return numbers.setdefault(name, str(len(numbers)))

    graph = onnx.GraphProto()
    graph.input.extend(_renamed(value, number) for value in model.graph.input)
    for node in model.graph.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.ClearField("name")
        copy.ClearField("doc_string")
        copy.ClearField("metadata_props")
        copy.input[:] = map(number, node.input)
        copy.output[:] = map(number, node.output)
        graph.node.append(copy)
    graph.output.extend(_renamed(value, number) for value in model.graph.output)
    digest = hashlib.sha256(graph.SerializeToString(deterministic=True))
    for name, tensor in sorted((number(tensor.name), tensor) for tensor in model.graph.initializer):
        digest.update(repr((name, tensor.data_type, tuple(tensor.dims))).encode())
        if not _is_weight(tensor):
            digest.update(numpy_helper.to_array(tensor).tobytes())
    return digest.hexdigest()


def _renamed(value: onnx.ValueInfoProto, number: Callable[[str], str]) -> onnx.ValueInfoProto:
    return onnx.ValueInfoProto(name=number(value.name), type=value.type)


def _is_weight(tensor: onnx.TensorProto) -> bool:
    kind = helper.tensor_dtype_to_np_dtype(tensor.data_type).kind
    return kind == "f" and int(np.prod(tensor.dims)) > 1


def pieces_of(
    nodes: Nodes, launches: Sequence[int], feeds: Mapping[str, Array], folder: Path
) -> Iterator[tuple[int, Piece | NoPiece]]:
    """Each launch with the model of its nodes, or with the reason why there is none."""
    parts: dict[int, Part | NoPiece] = {}
    for launch in launches:
        try:
            parts[launch] = nodes.part(launch)
        except NoPiece as reason:
            parts[launch] = reason
    found = [part for part in parts.values() if isinstance(part, Part)]
    values = border_values(nodes.model, found, feeds, folder)
    for launch, part in parts.items():
        yield launch, nodes.piece(part, values) if isinstance(part, Part) else part

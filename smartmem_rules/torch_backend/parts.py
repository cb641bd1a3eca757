"""Graphs that a plan cannot take whole: what can be planned becomes plans, PyTorch computes the rest."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import torch
from torch.fx import Graph, GraphModule
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner

from smartmem_rules.errors import SmartmemError
from smartmem_rules.graph.importer import import_model
from smartmem_rules.pipeline import rules_of
from smartmem_rules.records import dataclass
from smartmem_rules.torch_backend.binding import bind, evaluated
from smartmem_rules.torch_backend.errors import RefusedError
from smartmem_rules.torch_backend.exporting import exported_graph
from smartmem_rules.torch_backend.options import TorchOptions
from smartmem_rules.torch_backend.planned import PlannedGraph
from smartmem_rules.torch_backend.sources import node_line


@dataclass(frozen=True, kw_only=True)
class Left:
    """An operator that PyTorch computes.

    Attributes:
        operator: its name in PyTorch.
        line: of the model's source.
        reason: why no plan has it.
    """

    operator: str
    line: str
    reason: str

    def __str__(self) -> str:
        return f"{self.operator} at {self.line}\n    {self.reason}"


@dataclass
class Support:
    """Which nodes of a graph a plan may have: each kind is exported and imported alone once.

    Attributes:
        reasons: why nodes cannot be planned, by their names.
    """

    options: TorchOptions
    reasons: dict[str, str] = field(default_factory=dict)
    _known: dict[object, str | None] = field(default_factory=dict)

    def is_node_supported(self, submodules: Mapping[str, object], node: Any) -> bool:
        """Whether a plan may have a node; the partitioner of PyTorch asks this."""
        del submodules
        if node.op != "call_function":
            return False
        if node.target is operator.getitem:
            return self.is_node_supported({}, node.args[0])
        kind = (node.target, tuple(map(_kind, node.all_input_nodes)), len(node.args))
        if kind not in self._known:
            self._known[kind] = self._problem(node)
        problem = self._known[kind]
        if problem is not None:
            self.reasons[node.name] = problem
        return problem is None

    def _problem(self, node: Any) -> str | None:
        """Why a node cannot be planned; None where it can."""
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            return "it draws random numbers, which PyTorch's generator has to draw"
        try:
            module, inputs = _alone(node)
            program = exported_graph(module, inputs)
            base = rules_of(self.options.rules, self.options.disable)
            import_model(program.model, base, limits=self.options.limits, weights=program.weights)
        except SmartmemError as error:
            return " ".join(str(error).split())
        return None


class MixedGraph:
    """A graph of which plans compute parts and PyTorch computes the rest.

    Attributes:
        plans: the parts that are planned.
        left: the operators that are not.
    """

    def __init__(self, module: Any, inputs: Sequence[Any], options: TorchOptions) -> None:
        """Args:
        module: a graph of ATen operators that takes and gives tensors, its nodes with examples as `val`.
        inputs: tensors for which it is planned.
        """
        self._support = Support(options)
        partitioner = CapabilityBasedPartitioner(module, self._support, allows_single_node_partition=True)
        self._module: Any = partitioner.fuse_partitions(partitioner.propose_partitions())
        self._parts: dict[str, Callable[..., Any]] = {}
        self.plans: list[PlannedGraph] = []
        self.left: list[Left] = []
        with torch.random.fork_rng(devices=[]):
            evaluated(self._module, inputs, lambda node, given, _: self._made(node, given, options))
        self.left += [
            Left(operator=str(node.target), line=node_line(node), reason=self._support.reasons.get(node.name, ""))
            for node in self._module.graph.nodes
            if node.op == "call_function" and node.target is not operator.getitem
        ]

    def __call__(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The computed tensors of the graph."""
        values = evaluated(self._module, inputs, lambda node, given, _: self._parts[node.target](*given))
        outputs: Sequence[Any] = values[next(node for node in self._module.graph.nodes if node.op == "output")]
        return outputs

    def _made(self, node: Any, given: Sequence[Any], options: TorchOptions) -> Any:
        """Plan a part at its first call, and give its outputs."""
        part = getattr(self._module, node.target)
        self._parts[node.target] = part
        constants = {
            place: tensor
            for place, (source, tensor) in enumerate(zip(node.args, given, strict=True))
            if source.op == "get_attr"
        }
        try:
            bound = bind(part, given, constants)
            planned = PlannedGraph(bound.module, bound.given(given), bound.results, options)
        except RefusedError as error:
            reason = " ".join(str(error).split())
            self.left += [
                Left(operator=str(one.target), line=node_line(one), reason=reason)
                for one in part.graph.nodes
                if one.op == "call_function" and one.target is not operator.getitem
            ]
            return part(*given)
        self.plans.append(planned)
        is_single = not isinstance(_outputs(part), tuple | list)

        def computed(*tensors: Any) -> Any:
            found = bound.outputs(tensors, planned(bound.given(tensors)))
            return found[0] if is_single else tuple(found)

        self._parts[node.target] = computed
        return computed(*given)


def _outputs(module: Any) -> Any:
    return next(node for node in module.graph.nodes if node.op == "output").args[0]


def _kind(node: Any) -> object:
    value = node.meta.get("val")
    values = value if isinstance(value, tuple) else (value,)
    return tuple((one.dtype, one.dim()) for one in values if isinstance(one, torch.Tensor))


def _alone(node: Any) -> tuple[Any, list[Any]]:
    """A graph of one node, and inputs for it.

    Raises:
        RefusedError: the node takes or gives something else than tensors.
    """
    graph = Graph()
    made: dict[Any, Any] = {}
    inputs = []
    for place, source in enumerate(node.all_input_nodes):
        value = source.meta.get("val")
        if not isinstance(value, torch.Tensor):
            raise RefusedError(f"{node.target} takes something else than tensors")
        made[source] = graph.placeholder(f"input_{place}")
        inputs.append(torch.zeros_like(value, device="cpu"))
    result = graph.node_copy(node, made.__getitem__)
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        graph.output((result,))
    elif isinstance(value, tuple):
        tensors = [place for place, one in enumerate(value) if isinstance(one, torch.Tensor)]
        graph.output(tuple(graph.call_function(operator.getitem, (result, place)) for place in tensors))
    else:
        raise RefusedError(f"{node.target} gives something else than tensors")
    return GraphModule(torch.nn.Module(), graph), inputs

"""Graphs of PyTorch with some inputs bound: parameters become constants of the graph, numbers become numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule

from smartmem_rules.records import dataclass
from smartmem_rules.torch_backend.errors import RefusedError


@dataclass(frozen=True, kw_only=True)
class BoundGraph:
    """A graph of tensors only, at one set of extents.

    Attributes:
        module: takes tensors and gives a tuple of distinct computed tensors.
        template: the outputs of the original graph: a number of a computed tensor, or the value itself.
        results: what eager execution gave for the computed tensors.
        places: of the inputs that the module takes, among those of the original graph.
    """

    module: Any
    template: tuple[Output, ...]
    results: tuple[Any, ...]
    places: tuple[int, ...]

    def given(self, inputs: Sequence[Any]) -> list[Any]:
        """What the module takes of the inputs of the original graph."""
        return [inputs[place] for place in self.places]

    def outputs(self, inputs: Sequence[Any], computed: Sequence[Any]) -> list[Any]:
        """The outputs of the original graph.

        Args:
            inputs: those of the original graph.
            computed: what the module gave.
        """
        return [
            computed[one.computed]
            if one.computed is not None
            else one.value
            if one.given is None
            else inputs[one.given]
            for one in self.template
        ]


@dataclass(frozen=True, kw_only=True)
class Output:
    """One output of a graph: a computed tensor, one of the inputs, or a value that is always the same.

    Attributes:
        computed: the number of the computed tensor, None if it is none.
        given: the number of the input that is returned, None if it is none.
        value: what is returned otherwise.
    """

    computed: int | None = None
    given: int | None = None
    value: Any = None

    def of(self, inputs: Sequence[Any], computed: Sequence[Any]) -> Any:
        """The output itself."""
        if self.computed is not None:
            return computed[self.computed]
        return self.value if self.given is None else inputs[self.given]


def evaluated(module: Any, inputs: Sequence[Any], call: Callable[[Any, Any, Any], Any] | None = None) -> dict[Any, Any]:
    """The value of each node of a graph, computed by PyTorch without gradients.

    Args:
        inputs: a value for each placeholder.
        call: computes a `call_module` node of its arguments.
    """
    values: dict[Any, Any] = {}
    given = iter(inputs)

    def known(node: Any) -> Any:
        return values[node]

    with torch.no_grad():
        for node in module.graph.nodes:
            if node.op == "placeholder":
                values[node] = next(given)
            elif node.op == "get_attr":
                values[node] = _attribute(module, node.target)
            else:
                arguments, named = torch.fx.map_arg(node.args, known), torch.fx.map_arg(node.kwargs, known)
                if node.op == "output":
                    values[node] = arguments[0]
                elif node.op == "call_module" and call is not None:
                    values[node] = call(node, arguments, named)
                else:
                    values[node] = node.target(*arguments, **named)
    return values


def bind(module: Any, inputs: Sequence[Any], constants: Mapping[int, Any]) -> BoundGraph:
    """Bind inputs of a graph, which is evaluated once to know its numbers and the strides of its outputs.

    Args:
        module: a functional graph of ATen operators.
        inputs: a tensor or number for each placeholder. Numbers are bound to their values.
        constants: tensors by the places of the inputs that they are bound to.

    Raises:
        RefusedError: the graph computes a number from the elements of a tensor.
    """
    with torch.random.fork_rng(devices=[]):
        values = evaluated(module, inputs)
    graph, root = Graph(), torch.nn.Module()
    made: dict[Any, Any] = {}
    places: dict[Any, int] = {}
    output: Any = None
    for node in module.graph.nodes:
        value = values[node]
        if node.op == "placeholder":
            place = places[node] = len(places)
            if place in constants:
                root.register_buffer(f"constant_{place}", constants[place].detach())
                made[node] = graph.get_attr(f"constant_{place}")
            elif isinstance(value, torch.Tensor):
                made[node] = graph.placeholder(f"input_{place}")
            else:
                made[node] = value
        elif node.op == "output":
            output = node
        elif node.op == "get_attr":
            root.register_buffer(str(node.target).replace(".", "_"), value.detach())
            made[node] = graph.get_attr(str(node.target).replace(".", "_"))
        elif isinstance(value, int | float | bool | torch.SymInt):
            _refuse_read_elements(node)
            made[node] = value
        else:
            made[node] = graph.node_copy(node, made.__getitem__)
        if isinstance(made.get(node), torch.fx.Node):
            made[node].meta["val"] = _described(value)
    template, computed = _template(output.args[0], made, places, values)
    graph.output(tuple(made[node] for node in computed))
    return BoundGraph(
        module=GraphModule(root, graph),
        template=template,
        results=tuple(values[node] for node in computed),
        places=tuple(
            place for node, place in places.items() if place not in constants and isinstance(values[node], torch.Tensor)
        ),
    )


def _template(
    outputs: Any, made: Mapping[Any, Any], places: Mapping[Any, int], values: Mapping[Any, Any]
) -> tuple[tuple[Output, ...], list[Any]]:
    """Where each output comes from, and the nodes that are computed for them."""
    computed: dict[Any, int] = {}
    template = []
    for item in outputs if isinstance(outputs, tuple | list) else (outputs,):
        if not isinstance(item, torch.fx.Node):
            template.append(Output(value=item))
        elif item in places:
            template.append(Output(given=places[item]))
        elif not isinstance(made[item], torch.fx.Node) or item.op == "get_attr":
            template.append(Output(value=values[item]))
        else:
            template.append(Output(computed=computed.setdefault(item, len(computed))))
    return tuple(template), list(computed)


def _refuse_read_elements(node: Any) -> None:
    """A number that comes from elements is another one at the next run."""
    if torch.Tag.data_dependent_output in getattr(node.target, "tags", ()):
        raise RefusedError(f"{node.target} makes a number of the elements of a tensor")


def _described(value: Any) -> Any:
    """The shape and element type of a value, without memory."""
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(tuple(value.shape), tuple(value.stride()), dtype=value.dtype, device="meta")
    if isinstance(value, tuple | list):
        return tuple(map(_described, value))
    return value


def _attribute(module: Any, target: str) -> Any:
    for part in target.split("."):
        module = getattr(module, part)
    return module

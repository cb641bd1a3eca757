"""A graph of PyTorch that a plan computes, for tensors of one set of shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from smartmem_rules.errors import SmartmemError
from smartmem_rules.graph.failures import UncoveredNodesError
from smartmem_rules.graph.importer import import_model
from smartmem_rules.optimized import OptimizedPlan, optimize_now
from smartmem_rules.pipeline import rules_of
from smartmem_rules.torch_backend.agreement import disagreement
from smartmem_rules.torch_backend.errors import RefusedError
from smartmem_rules.torch_backend.exporting import OnnxProgram, exported_graph
from smartmem_rules.torch_backend.options import TorchOptions
from smartmem_rules.torch_backend.tensors import Placement, as_array, as_tensor


class PlannedGraph:
    """Computes the outputs of a graph with a plan.

    Attributes:
        plan: the kernels that compute it.
    """

    def __init__(self, module: Any, inputs: Sequence[Any], results: Sequence[Any], options: TorchOptions) -> None:
        """Args:
        module: a graph of ATen operators that takes and gives tensors.
        inputs: tensors for which it is planned.
        results: what PyTorch computes of them, for strides and for the comparison.

        Raises:
            RefusedError: the exporter, the rules or the device do not take the graph, or its outputs are other ones.
        """
        if any(tensor.is_complex() for tensor in (*inputs, *results)):  # the exporter makes pairs of floats of them
            raise RefusedError("it takes or gives complex numbers, which rules do not know")
        self._placements = [Placement(result) for result in results]
        program = exported_graph(module, inputs)
        self.plan = _optimized(program, options)
        self._inputs = [value.name for value in program.model.graph.input]
        self._outputs = [value.name for value in program.model.graph.output]
        self._dtypes = [result.dtype for result in results]
        self._taken = set(self.plan.plan.inputs)
        if options.check:
            problem = disagreement(self(inputs), results, getattr(torch, options.dtype))
            if problem is not None:
                raise RefusedError(f"the plan does not compute what PyTorch computes: {problem}")

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs, with the element types and strides that eager execution gives them."""
        pairs = zip(self._inputs, inputs, strict=True)
        found = self.plan.run({name: as_array(tensor) for name, tensor in pairs if name in self._taken})
        return [
            placement.placed(as_tensor(found[name]).to(dtype))
            for name, placement, dtype in zip(self._outputs, self._placements, self._dtypes, strict=True)
        ]


def _optimized(program: OnnxProgram, options: TorchOptions) -> OptimizedPlan:
    try:
        base = rules_of(options.rules, options.disable)
        graph = import_model(program.model, base, limits=options.limits, weights=program.weights, counts=True)
        return optimize_now(graph, **options.of_optimize())
    except UncoveredNodesError as error:
        raise RefusedError(program.explained(error)) from error
    except SmartmemError as error:
        raise RefusedError(str(error)) from error

"""The interface of `onnx.backend.base`: `prepare`, `run_model`, `run_node`, `supports_device`.

Shapes and axes that a model takes as inputs are compile-time values here.  Such a model is planned when it runs: each
distinct set of values of these inputs gets a plan of its own, in which they are constants.
"""

from __future__ import annotations

import unittest
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from smartmem_rules.api import DEFAULT_LEVEL, OptimizedPlan, optimize
from smartmem_rules.graph.importer import UnknownValuesError, import_model
from smartmem_rules.graph.loading import node_inputs
from smartmem_rules.graph.model import Graph, GraphError
from smartmem_rules.language.rulebase import RuleBase, load_rules
from smartmem_rules.plan.model import PlanError
from smartmem_rules.runtime.devices import AUTO, devices
from smartmem_rules.runtime.feeds import Array

DEVICES = {"CPU": AUTO, "OPENCL": AUTO}
_SMALL = 64
"""Inputs of more elements are data: they are never taken as compile-time values."""


class UnsupportedError(unittest.SkipTest):
    """The model needs something that no rule covers; test runners count it as skipped."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"unsupported: {reason}")


class PreparedModel(BackendRep):
    """A model that is ready to run."""

    def __init__(self, model: onnx.ModelProto, **how: Any) -> None:
        """Args:
        how: arguments of `smartmem_rules.optimize`.

        Raises:
            UnsupportedError: no rule covers something in the model.
        """
        self.model = model
        self.how = how
        constants = {tensor.name for tensor in model.graph.initializer}
        self.inputs = [value.name for value in model.graph.input if value.name not in constants]
        self.fixed: tuple[str, ...] = ()
        self._plans: dict[tuple[Any, ...], OptimizedPlan] = {}
        try:
            self._plan({})
        except UnknownValuesError as unknown:
            self.fixed = self._sources(unknown.tensors)
            if not self.fixed:
                raise UnsupportedError(str(unknown)) from None

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """One inference.

        Args:
            inputs: arrays in the order of the model's inputs, or by name.

        Returns:
            the outputs in the model's order, by name too.

        Raises:
            UnsupportedError: no rule covers something in the model.
            GraphError: an input is missing or of a wrong shape or element type.
        """
        feeds = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(self.inputs, _listed(inputs), strict=False))
        feeds = {name: np.asarray(value) for name, value in feeds.items()}
        plan = self._specialized(feeds)
        results = plan.run({name: feeds[name] for name in feeds if name in plan.plan.inputs or name not in self.inputs})
        names = [value.name for value in self.model.graph.output]
        return namedtupledict("Outputs", names)(*(results[name] for name in names))

    def _specialized(self, feeds: Mapping[str, Array]) -> OptimizedPlan:
        while True:
            try:
                return self._plan({name: feeds[name] for name in self.fixed if name in feeds})
            except UnknownValuesError as unknown:
                more = [name for name in self._sources(unknown.tensors) if name not in self.fixed]
                if not more:
                    raise UnsupportedError(str(unknown)) from None
                self.fixed += tuple(more)

    def _plan(self, values: Mapping[str, Array]) -> OptimizedPlan:
        key = tuple((name, array.shape, array.tobytes()) for name, array in values.items())
        if key not in self._plans:
            try:
                graph = self._graph(values)
                self._plans[key] = optimize(graph, **self.how)
            except UnknownValuesError:
                raise
            except (GraphError, PlanError) as reason:
                raise UnsupportedError(str(reason)) from reason
        return self._plans[key]

    def _graph(self, values: Mapping[str, Array]) -> Graph:
        model = self.model
        if values:
            model = onnx.ModelProto()
            model.CopyFrom(self.model)
            rest = [value for value in model.graph.input if value.name not in values]
            del model.graph.input[:]
            model.graph.input.extend(rest)
            model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in values.items())
        return import_model(model, _rules(tuple(map(str, self.how.get("rules", ())))), fold_outputs=False)

    def _sources(self, tensors: Collection[str]) -> tuple[str, ...]:
        """The small inputs that the tensors are computed from; of large ones only the shape can matter."""
        producers = {output: node for node in self.model.graph.node for output in node.output}
        stack, seen = list(tensors), set(tensors)
        while stack:
            node = producers.get(stack.pop())
            for name in () if node is None else node_inputs(node):
                if name not in seen:
                    seen.add(name)
                    stack.append(name)
        found = [value for value in self.model.graph.input if value.name in seen and value.name in self.inputs]
        return tuple(value.name for value in found if _is_small(value))


class SmartmemBackend(Backend):
    """ONNX models on an OpenCL device."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the rules cover the model."""
        try:
            cls.prepare(model, device, **kwargs)
        except UnsupportedError:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """A model that is ready to run.

        Args:
            device: `CPU` for the OpenCL device that `auto` finds, or any device that `optimize` takes.
            kwargs: `level`, `dtype`, `memory`, `rules`, `disable` of `optimize`; others are ignored.
        """
        super().prepare(model, device, **kwargs)
        known = {key: kwargs[key] for key in ("dtype", "memory", "rules", "disable") if key in kwargs}
        return PreparedModel(model, device=_device(device), level=kwargs.get("level", DEFAULT_LEVEL), **known)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one operator.

        Args:
            inputs: an array for each input that the node names.
            outputs_info: not needed: types and shapes of the outputs follow from the operator's definition.
            kwargs: `opset_version`, by default the newest; the rest as for `prepare`.
        """
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        names = list(dict.fromkeys(name for name in node.input if name))
        arrays = dict(zip(names, map(np.asarray, _listed(inputs)), strict=True))
        given = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in arrays.items()
        ]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        imports = [helper.make_opsetid("", opset)]
        if node.domain:
            imports.append(helper.make_opsetid(node.domain, 1))
        model = helper.make_model(helper.make_graph([node], node.op_type, given, results), opset_imports=imports)
        return PreparedModel(model, device=_device(device)).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether there is such an OpenCL device: `CPU` is any, other names are a part of the device's own."""
        found = devices()
        return bool(found) if device in DEVICES else any(device.lower() in one.name.lower() for one in found)


def _device(name: str) -> str:
    return DEVICES.get(name, name)


def _listed(inputs: Any) -> list[Any]:
    return [inputs] if isinstance(inputs, np.ndarray) else list(inputs)


def _is_small(value: onnx.ValueInfoProto) -> bool:
    dims = value.type.tensor_type.shape.dim
    return value.type.HasField("tensor_type") and int(np.prod([d.dim_value for d in dims], dtype=int)) <= _SMALL


@lru_cache(maxsize=4)
def _rules(paths: tuple[str, ...]) -> RuleBase:
    return load_rules(paths)


is_compatible = SmartmemBackend.is_compatible
prepare = SmartmemBackend.prepare
run_model = SmartmemBackend.run_model
run_node = SmartmemBackend.run_node
supports_device = SmartmemBackend.supports_device

__all__ = [
    "PreparedModel", "SmartmemBackend", "UnsupportedError", "is_compatible", "prepare", "run_model", "run_node",
    "supports_device",
]  # fmt: skip

"""The interface of `onnx.backend.base`: `prepare`, `run_model`, `run_node`, `supports_device`.

A model that takes shapes or axes as inputs, has open dimensions, or takes sequences or optional values is planned when
it runs: each distinct kind of inputs gets a plan of its own (`smartmem_rules.specialized`).
"""

from __future__ import annotations

import unittest
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from smartmem_rules.api import DEFAULT_LEVEL, OptimizedPlan, optimize
from smartmem_rules.graph.errors import GraphError
from smartmem_rules.graph.fitting import InputError, run_inputs
from smartmem_rules.graph.importer import import_model
from smartmem_rules.limits import DEFAULT_LIMITS, LimitError
from smartmem_rules.plan.kernel.model import PlanError
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.runtime.devices import AUTO, devices
from smartmem_rules.specialized import SpecializedModel

DEVICES = {"CPU": AUTO, "OPENCL": AUTO}


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
        self.inputs = [value.name for value in run_inputs(model)]
        with _unsupported():
            self._specialized = SpecializedModel(model, make=self._make)
            self._specialized.plan_ahead()  # what is unsupported is known before a run

    @property
    def fixed(self) -> tuple[str, ...]:
        """The inputs whose values decide the plan."""
        return self._specialized.fixed

    @property
    def plans(self) -> list[OptimizedPlan]:
        """The plans that have been made."""
        return self._specialized.plans

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """One inference.

        Args:
            inputs: in the order of the model's inputs, or by name: arrays, a list of arrays for a sequence, None for an
                empty optional value.

        Returns:
            the outputs in the model's order, by name too.

        Raises:
            UnsupportedError: no rule covers something in the model.
            GraphError: an input is missing or of a wrong shape or element type.
        """
        given = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(self.inputs, _listed(inputs), strict=False))
        with _unsupported():
            plan, left = self._specialized.plan_for(given)
        results = plan.run({name: array for name, array in left.items() if name in plan.plan.inputs})
        names = [value.name for value in self.model.graph.output]
        return namedtupledict("Outputs", names)(*(results[name] for name in names))

    def _make(self, model: onnx.ModelProto) -> OptimizedPlan:
        rules = _rules(tuple(map(str, self.how.get("rules", ()))))
        limits = self.how.get("limits", DEFAULT_LIMITS)
        graph = import_model(model, rules, fold_outputs=False, limits=limits, counts=True)
        return optimize(graph, **self.how)


@contextmanager
def _unsupported() -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (GraphError, LimitError, PlanError) as reason:
        raise UnsupportedError(str(reason)) from reason


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

"""PyTorch to ONNX by torch's own exporter, with parameters that keep their memory."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import onnx
import torch
from torch._dynamo.convert_frame import compile_lock

from smartmem_rules.graph.failures import UncoveredNodesError
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.primitives import Array
from smartmem_rules.torch_backend.errors import RefusedError
from smartmem_rules.torch_backend.sources import source_line
from smartmem_rules.torch_backend.tensors import as_array

_STACK = "pkg.torch.onnx.stack_trace"
_SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class OnnxProgram:
    """A model without its weights.

    Attributes:
        model: names its weights, but does not hold them.
        weights: the weights by name, in the memory of the module's parameters.
    """

    model: onnx.ModelProto
    weights: Mapping[str, Array]

    def explained(self, error: UncoveredNodesError) -> str:
        """What an error says, with the lines of the source that the refused nodes come from."""
        lines: dict[str, None] = {}
        for node in self.model.graph.node:
            if node.name in error.nodes:
                stack = {entry.key: entry.value for entry in node.metadata_props}.get(_STACK, "")
                lines[f"  {node.op_type} at {source_line(stack)}"] = None
        return "\n".join([str(error), *list(lines)[:_SHOWN]])


def exported_graph(module: Any, inputs: Sequence[Any]) -> OnnxProgram:
    """A graph of ATen operators as ONNX, for tensors of these shapes.

    Raises:
        RefusedError: torch's exporter does not take it.
    """

    # tracing is patched for the whole process meanwhile: TorchDynamo must not trace in another thread
    lock = nullcontext() if compile_lock._is_owned() else compile_lock

    def export() -> OnnxProgram:
        with lock, torch.no_grad():
            return exported_program(torch.export.export(module, tuple(inputs)))

    try:
        # a thread of its own: a compiled call has switched off the dispatch keys that the exporter needs
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(export).result()
    except Exception as error:  # whatever the parts of the exporter raise
        raise RefusedError(f"torch's ONNX exporter: {reason_of(error)}") from error


def exported_program(program: Any) -> OnnxProgram:
    """A `torch.export.ExportedProgram` as ONNX. Raises what torch's exporter raises."""
    with _quiet():
        exported = torch.onnx.export(program, (), dynamo=True, optimize=False, verbose=False)
    model = exported.model
    weights: dict[str, Array] = {}
    for name, value in model.graph.initializers.items():
        held = value.const_value
        raw = getattr(held, "raw", None)
        weights[name] = as_array(raw) if isinstance(raw, torch.Tensor) else np.asarray(held.numpy())
    model.graph.initializers.clear()
    return OnnxProgram(model=exported.model_proto, weights=weights)


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter's advice is for those who call it themselves."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def reason_of(error: BaseException) -> str:
    """The first line of what lies behind an error of an exporter."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__

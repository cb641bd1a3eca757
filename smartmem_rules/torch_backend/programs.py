"""Plans of `torch.nn.Module` and `torch.export.ExportedProgram`: what `smartmem_rules.optimize` does with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import torch
from onnx import numpy_helper

from smartmem_rules.graph.errors import GraphError
from smartmem_rules.graph.failures import UncoveredNodesError
from smartmem_rules.graph.importer import import_model
from smartmem_rules.limits import DEFAULT_LIMITS
from smartmem_rules.optimized import OptimizedPlan, optimize_now
from smartmem_rules.pipeline import rules_of
from smartmem_rules.specialized import SpecializedModel
from smartmem_rules.torch_backend.errors import TorchError
from smartmem_rules.torch_backend.exporting import OnnxProgram, exported_program, reason_of

_MOST_HELD = 1 << 30
"""Bytes of weights that are put into the ONNX model, so that `check` and kept plans know it; more are shared only."""


def optimize_program(
    source: Any, example_inputs: Sequence[Any] | None, dims: Mapping[str, object] | None = None, **options: Any
) -> OptimizedPlan:
    """A plan of a PyTorch model. Its inputs are named as the arguments of `forward`.

    A symbolic dimension with a least and a greatest extent becomes a range of the plan; one without a greatest extent
    gets a plan for each extent when it runs (`SpecializedModel`).

    Args:
        source: a `torch.nn.Module` in evaluation mode, or a `torch.export.ExportedProgram`.
        example_inputs: the positional arguments of a module's `forward`; not needed for a program.
        dims: extents of symbolic dimensions, instead of the program's own.
        options: the other arguments of `smartmem_rules.optimize`.

    Raises:
        TorchError: the module is in training mode or cannot be exported, or the program writes to its inputs.
        GraphError: no rule covers something; the message has the lines of the model's source.
    """
    program = source if isinstance(source, torch.export.ExportedProgram) else _exported(source, example_inputs)
    _refuse_writes(program)
    try:
        model = exported_program(program)
    except Exception as error:  # whatever the parts of the exporter raise
        raise TorchError(f"torch's ONNX exporter does not take the model: {reason_of(error)}") from error
    try:
        return _optimized(model, _ranges(program, model.model) | dict(dims or {}), options)
    except UncoveredNodesError as error:
        raise GraphError(model.explained(error)) from error


def _optimized(model: OnnxProgram, dims: dict[str, Any], options: dict[str, Any]) -> OptimizedPlan:
    limits = options.get("limits", DEFAULT_LIMITS)
    if sum(array.nbytes for array in model.weights.values()) > _MOST_HELD:
        base = rules_of(options.get("rules", ()), options.get("disable", ()))
        return optimize_now(import_model(model.model, base, dims, limits=limits, weights=model.weights), **options)
    whole = onnx.ModelProto()
    whole.CopyFrom(model.model)
    whole.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in model.weights.items())
    if any(extent is None for extent in dims.values()):
        return SpecializedModel(whole, **options)
    return optimize_now(whole, dims=dims, **options)


def _exported(module: Any, inputs: Sequence[Any] | None) -> Any:
    if inputs is None:
        raise TorchError("a PyTorch module needs inputs to be exported with: optimize(module, example_inputs=(x,))")
    if module.training:
        raise TorchError("the module is in training mode; call module.eval() first")
    try:
        with torch.no_grad():
            return torch.export.export(module, tuple(inputs))
    except Exception as error:  # whatever the parts of the exporter raise
        raise TorchError(f"torch.export does not take the module: {reason_of(error)}") from error


def _refuse_writes(program: Any) -> None:
    schemas = [getattr(node.target, "_schema", None) for node in program.graph.nodes if node.op == "call_function"]
    if any(schema is not None and schema.is_mutable for schema in schemas):
        program = program.run_decompositions({})  # which tells writes to inputs from those to intermediates
    signature = program.graph_signature
    written = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
    if written:
        raise TorchError(
            f"the program writes to {', '.join(written)}; a plan only gives outputs: use "
            'torch.compile(model, backend="smartmem"), which writes them back'
        )


def _ranges(program: Any, model: onnx.ModelProto) -> dict[str, tuple[int, int] | None]:
    """The range of each open dimension, by the exporter's name for it; None for one without a greatest extent."""
    user = set(program.graph_signature.user_inputs)
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in user]
    found: dict[str, tuple[int, int] | None] = {}
    for node, value in zip(placeholders, model.graph.input, strict=True):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if not dim.dim_param:
                continue
            limits = program.range_constraints.get(node.meta["val"].shape[axis].node.expr)
            known = limits is not None and limits.upper.is_Integer
            found[dim.dim_param] = (max(1, int(limits.lower)), int(limits.upper)) if known else None
    return found

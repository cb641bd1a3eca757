"""`torch.compile(model, backend="smartmem")`: graphs of TorchDynamo, through AOTAutograd, as plans.

AOTAutograd makes each graph functional: writes to inputs, returned inputs and outputs that share memory are put back
in place outside of what is planned here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

from smartmem_rules.torch_backend.compiled import CompiledGraph
from smartmem_rules.torch_backend.errors import LeftToEagerWarning, TorchError
from smartmem_rules.torch_backend.options import TorchOptions

_INFERENCE = (
    "the backend smartmem computes no gradients: call the model under torch.no_grad() or torch.inference_mode()"
)


def smartmem(
    module: Any, example_inputs: Sequence[Any], *, options: Mapping[str, object] | None = None, mode: str | None = None
) -> Callable[..., Any]:
    """Compile a graph of TorchDynamo: the backend that `torch.compile` finds by the name `smartmem`.

    Args:
        module: the graph, as torch.fx.GraphModule.
        example_inputs: tensors and numbers that it is compiled for.
        options: see `TorchOptions`.
        mode: of `torch.compile`; there is none here.

    Raises:
        TorchError: gradients are wanted, a tensor is not on the CPU, or an option is unknown.
    """
    if mode is not None:
        raise TorchError(f"the backend smartmem has no mode {mode!r}; see its options in docs/torch.md")
    how = TorchOptions.of(options)
    _check_inputs(example_inputs)
    _say_break(module)

    def compiled(graph: Any, inputs: Sequence[Any]) -> Any:
        return make_boxed_func(CompiledGraph(graph, _parameters(inputs), how))

    found: Callable[..., Any] = aot_autograd(fw_compiler=_refuse_training, inference_compiler=compiled)(
        module, example_inputs
    )
    return found


def _refuse_training(graph: Any, inputs: Sequence[Any]) -> Any:
    del graph, inputs
    raise TorchError(_INFERENCE)


def _check_inputs(inputs: Sequence[Any]) -> None:
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise TorchError(_INFERENCE)
    elsewhere = sorted({str(tensor.device) for tensor in tensors if tensor.device.type != "cpu"})
    if elsewhere:
        raise TorchError(
            f"the backend smartmem takes tensors of the CPU, not of {', '.join(elsewhere)}: call model.cpu(); the "
            'OpenCL device is chosen with options={"device": NAME}'
        )


def _parameters(inputs: Sequence[Any]) -> set[int]:
    """The places of the inputs that are parameters or buffers which the graph does not write."""
    context = torch._guards.TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    if metadata is None:
        return {place for place, value in enumerate(inputs) if isinstance(value, torch.nn.Parameter)}
    written = {place for place, info in enumerate(metadata.input_info) if info.mutates_data}
    return set(metadata.static_input_indices) - written


def _say_break(module: Any) -> None:
    """Warn of a graph break, with the line at which PyTorch leaves the graph."""
    reason = getattr(module, "compile_subgraph_reason", None)
    if reason is None or not reason.graph_break:
        return
    frames = [f"{frame.filename}:{frame.lineno}: {frame.line or ''}".rstrip() for frame in reason.user_stack[-1:]]
    why = str(reason.reason).strip().splitlines()[0]
    warnings.warn(
        f"a graph ends at {frames[0] if frames else 'a line that PyTorch does not know'}\n  {why}; what follows is a "
        "graph of its own",
        LeftToEagerWarning,
        stacklevel=2,
    )

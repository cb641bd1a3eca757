"""Whether ONNX Runtime may run a model while the model is imported: before anything says that it is too large."""

from __future__ import annotations

import onnx

from smartmem_rules.graph.weights import graph_tensors, is_external
from smartmem_rules.simplification.drawn import is_described
from smartmem_rules.simplification.encoding import is_inside
from smartmem_rules.simplification.types import MOST_ELEMENTS, elements_of_constants

_MEASURED = frozenset(
    {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE}
)
"""Element types of which any value is one that an input may have."""


def may_run_early(model: onnx.ModelProto) -> bool:
    """Whether ONNX Runtime may run a model while it is imported.

    That is so where no input holds indices, of which only the imported model tells how large they may be, where no
    weights lie in data files: such models are large, and what the import computes of them would add to what ONNX
    Runtime holds; and where nothing large follows from constants alone, which the import refuses. Described weights are
    drawn meanwhile.
    """
    held = {tensor.name for tensor in model.graph.initializer}
    inputs = (value.type.tensor_type.elem_type for value in model.graph.input if value.name not in held)
    if not all(code in _MEASURED for code in inputs):
        return False
    tensors = (tensor for _, tensor in graph_tensors(model.graph))
    if not all(not is_external(one) or is_inside(one) or is_described(one) for one in tensors):
        return False
    return elements_of_constants(model) <= MOST_ELEMENTS

"""How much a quantized model differs from its original: each product and each output, by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnx import numpy_helper

from smartmem_rules.graph.loading import Dims, input_types
from smartmem_rules.graph.weights import graph_tensors, is_external, tensor_value
from smartmem_rules.quantization.options import QuantizeError
from smartmem_rules.quantization.products import Product
from smartmem_rules.quantization.report import OutputError
from smartmem_rules.quantization.storing import save
from smartmem_rules.runtime.feeds import Array, check_feeds, random_feeds

REFERENCE = "ONNX Runtime"


def feeds_for(model: onnx.ModelProto, given: Mapping[str, object], dims: Dims, seed: int) -> dict[str, Array]:
    """The inputs of a run: those that are given, random ones for the others.

    Raises:
        GraphError: an input does not fit, or an open dimension has no extent.
    """
    constants = {tensor.name for tensor in model.graph.initializer}
    types = input_types(model.graph, constants, dims)
    return check_feeds(types, {**random_feeds(types, seed), **given})


class Original:
    """One run of the model itself: its outputs, and the left factors of its products."""

    def __init__(self, model: onnx.ModelProto, products: Sequence[Product], feeds: Mapping[str, Array]) -> None:
        """Raises QuantizeError where ONNX Runtime does not run the model."""
        self._outputs = [value.name for value in model.graph.output]
        left = dict.fromkeys(model.graph.node[product.place].input[product.operand] for product in products)
        inside = [name for name in left if name not in feeds and name not in self._outputs]
        constants = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer if one.name in inside}
        inside = [name for name in inside if name not in constants]
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in inside)
        try:
            self._values = {**feeds, **constants, **_run(model, [*self._outputs, *inside], feeds)}
        finally:
            del model.graph.output[len(self._outputs) :]
        self._feeds = feeds

    def product_error(self, node: onnx.NodeProto, product: Product, lost: Array, matrix: Array) -> float:
        """What the output of a product, or the rows that are read, lose with the operand that the model has there.

        Args:
            lost, matrix: what the weight lost, and the weight, [depth, columns].
        """
        values = self._values[node.input[product.operand]]
        if product.table:
            places = values.reshape(-1)
            return relative(lost[:, places], matrix[:, places])
        rows = values.reshape(-1, values.shape[-1]).astype(np.float32)
        rows = rows if rows.shape[-1] == product.depth else rows.T
        return relative(rows @ lost, rows @ matrix)

    def compared(self, quantized: onnx.ModelProto) -> tuple[OutputError, ...]:
        """How far the floating-point outputs of the quantized model are from those of this one.

        Raises:
            QuantizeError: ONNX Runtime does not run it, or an output is no number where this one's is.
        """
        found = _run(quantized, self._outputs, self._feeds)
        errors = []
        for name in self._outputs:
            expected = np.asarray(self._values[name])
            if expected.dtype.kind == "f":
                errors.append(_output_error(name, expected.astype(np.float64), found[name].astype(np.float64)))
        return tuple(errors)


def relative(error: Array, of: Array) -> float:
    """The norm of an error relative to the norm of what it is an error of; of zeros the norm itself."""
    size = float(np.linalg.norm(of.reshape(-1).astype(np.float64)))
    lost = float(np.linalg.norm(error.reshape(-1).astype(np.float64)))
    return lost / size if size else lost


def _output_error(name: str, expected: Array, found: Array) -> OutputError:
    # masked scores are -inf in both
    known = np.isfinite(expected) & np.isfinite(found)
    if not np.array_equal(expected[~known], found[~known], equal_nan=True):
        raise QuantizeError(
            f"the output {name!r} of the quantized model is infinite or NaN elsewhere than that of the model itself: "
            "leave more nodes as they are (--exclude), or take more bits"
        )
    lost = found[known] - expected[known]
    largest = float(np.abs(expected[known]).max(initial=0))
    most = float(np.abs(lost).max(initial=0))
    return OutputError(
        output=name, relative=relative(lost, expected[known]), largest=most / largest if largest else most
    )


def _run(model: onnx.ModelProto, outputs: Sequence[str], feeds: Mapping[str, Array]) -> dict[str, Array]:
    try:
        import onnxruntime  # start-up time
    except ImportError:
        raise QuantizeError(
            "onnxruntime is not installed, without which no output can be compared: pip install onnxruntime, or leave "
            "that out (--no-check)"
        ) from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # its optimizer rounds left factors to integers as well
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # one run: what makes many of them quick takes memory
    options.add_session_config_entry("session.disable_prepacking", "1")
    with TemporaryDirectory(prefix="smartmem-quantize-") as folder:
        path = save(_complete(model), Path(folder) / "model.onnx")
        try:
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            found = session.run(list(outputs), dict(feeds))
        except Exception as error:  # ONNX Runtime's own classes
            reason = " ".join(str(error).split())
            raise QuantizeError(
                f"ONNX Runtime does not run the model on these inputs, so that no output can be compared: {reason}; "
                "give others (--input, --dim), or leave the comparison out (--no-check)"
            ) from error
    return dict(zip(outputs, found, strict=True))


def _complete(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the values of weights that recipes describe."""
    if not any(is_external(tensor) for _, tensor in graph_tensors(model.graph)):
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for name, tensor in graph_tensors(made.graph):
        if is_external(tensor):
            tensor.raw_data = tensor_value(name, tensor, None).tobytes()
            del tensor.external_data[:]
            tensor.data_location = onnx.TensorProto.DEFAULT
    return made

"""`quantize`: a model with floats in, a model with weights of few bits out, and how far the two are apart."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx

from smartmem_rules.graph.loading import DEFAULT_DOMAIN, Dims, ModelSource, load_model, opsets
from smartmem_rules.graph.weights import graph_tensors, stored_bytes, tensor_value, with_weights
from smartmem_rules.quantization.measuring import REFERENCE, Original, feeds_for, relative
from smartmem_rules.quantization.options import Options, QuantizeError
from smartmem_rules.quantization.products import Product, find_products, read_by_others
from smartmem_rules.quantization.report import Layer, Report
from smartmem_rules.quantization.rounding import Array, rounded
from smartmem_rules.quantization.storing import save
from smartmem_rules.quantization.writing import Writer, opset_for
from smartmem_rules.records import dataclass
from smartmem_rules.simplification.opsets import in_opset


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The inputs on which both models run.

    Attributes:
        given: arrays by name; all other inputs are drawn from the seed.
        dims: extents of symbolic dimensions.
    """

    given: Mapping[str, object]
    dims: Dims
    seed: int = 0


def quantize_file(source: Path, target: Path, options: Options, trial: Trial | None) -> Report:
    """Quantize the model of a file into another file.

    Args:
        trial: the inputs by which the models are compared; None compares weights alone.

    Raises:
        QuantizeError: the model cannot be quantized so, does not run, or the file cannot be written.
        GraphError: the model is damaged, or an input does not fit.
    """
    model, report = quantize_model(source, options, trial)
    save(model, target)
    return report


def quantize_model(source: ModelSource, options: Options, trial: Trial | None) -> tuple[onnx.ModelProto, Report]:
    """The quantized model with all its data; the exceptions are those of `quantize_file`."""
    started = time.perf_counter()
    options.check()
    model = _in_opset(_own(source), options)
    found = find_products(model.graph, options)
    feeds = None if trial is None else feeds_for(model, trial.given, trial.dims, trial.seed)
    original = None if feeds is None else Original(model, found.products, feeds)
    before = _bytes(model)
    layers = _quantize(model, found.products, options, original)
    return model, Report(
        weights=options.weights,
        block=options.block,
        form=options.form,
        layers=layers,
        left=found.left,
        reference=REFERENCE if original is not None else "",
        seed=0 if trial is None else trial.seed,
        random_inputs=tuple(name for name in feeds or () if trial is not None and name not in trial.given),
        outputs=() if original is None else original.compared(model),
        bytes_before=before,
        bytes_after=_bytes(model),
        seconds=time.perf_counter() - started,
    )


def _own(source: ModelSource) -> onnx.ModelProto:
    """The model with all its data, to be changed: large ones are in memory once."""
    given, folder = load_model(source)
    if given is not source:
        return with_weights(given, folder)
    model = onnx.ModelProto()
    model.CopyFrom(given)
    return with_weights(model, folder)


def _quantize(
    model: onnx.ModelProto, products: tuple[Product, ...], options: Options, original: Original | None
) -> tuple[Layer, ...]:
    """Quantize the products of a model, one after the other."""
    writer, layers = Writer(model, options), []
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    unread = {product.weight for product in products} - read_by_others(model.graph, products)
    for product in products:
        matrix = _matrix(product, tensors[product.weight])
        held = rounded(matrix, options.code, options.block, product.dtype)
        writer.put(product, held)
        lost = held.values - matrix
        node = model.graph.node[product.place]
        layers.append(
            Layer(
                node=product.name,
                weight=product.weight,
                depth=product.depth,
                columns=product.columns,
                bytes_before=stored_bytes(tensors[product.weight]),
                bytes_after=writer.bytes_of(product),
                weight_error=relative(lost, matrix),
                output_error=None if original is None else original.product_error(node, product, lost, matrix),
            )
        )
    writer.finish(unread)
    return tuple(layers)


def _matrix(product: Product, tensor: onnx.TensorProto) -> Array:
    """The right factor [depth, columns] with its factor.

    Raises:
        QuantizeError: it holds infinities or NaN.
    """
    values = tensor_value(product.weight, tensor, None).astype(np.float32)
    values = (values.T if product.transposed else values) * np.float32(product.factor)
    if not np.isfinite(values).all():
        wrong = int(values.size - np.isfinite(values).sum())
        raise QuantizeError(
            f"the weight {product.weight!r} of {product.name!r} has {wrong} elements that are infinite or NaN, of "
            f"which no scale can be made; mend the model, or leave the node out (--exclude {product.name})"
        )
    return values


def _in_opset(model: onnx.ModelProto, options: Options) -> onnx.ModelProto:
    """The model in a version that has the operators of the form."""
    least = opset_for(options.code, options)
    if least is None or opsets(model).get(DEFAULT_DOMAIN, 0) >= least:
        return model
    return in_opset(model, least)


def _bytes(model: onnx.ModelProto) -> int:
    return sum(stored_bytes(tensor) for _, tensor in graph_tensors(model.graph))

"""Other systems that compute the same model: what a plan is checked against and measured beside."""

from __future__ import annotations

import importlib.util
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np

from smartmem_rules.errors import SmartmemError
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.feeds import Array, compare, worst

ONNXRUNTIME = "onnxruntime"
EVALUATOR = "onnx.reference"
ENDS_WHERE_EMPTY = ("GRU", "LSTM", "DynamicQuantizeLSTM")
"""Operators with which ONNX Runtime 1.32 ends the process where an operand has no elements."""
_MOST_TAPS = 1 << 27
TOLERANCES = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
"""The largest error relative to the reference's largest magnitude, by the element type that a plan stores."""
_PROTOBUF_LIMIT = 1_800_000_000


def fills_memory(operator: str, weights: tuple[int, ...], dilations: Sequence[int]) -> bool:
    """Whether ONNX's evaluator makes too large an array for a convolution: it writes out the gaps between the taps.

    Args:
        weights: the shape of the weights, [M, C, k1, k2, ...].
        dilations: the distances of taps along k1, k2, ...; none where they are all 1.
    """
    if operator not in ("Conv", "ConvInteger") or len(dilations) != len(weights) - 2:
        return False
    windows = [(extent - 1) * gap + 1 for extent, gap in zip(weights[2:], dilations, strict=True)]
    return math.prod((*weights[:2], *windows)) > _MOST_TAPS


class NoReferenceError(SmartmemError):
    """No other system can compute the model; the message says why."""


@dataclass(frozen=True)
class Reference:
    """A system that has loaded a model."""

    name: str
    run: Callable[[Mapping[str, Array]], dict[str, Array]]


class ComparedOutputs(TypedDict):
    """How far a plan's outputs are from the reference's; an error that is not finite is the text `inf` or `nan`."""

    reference: str
    max_relative_error: float | str | None
    max_error_to_spread: float | str | None
    passed: bool | None
    tolerance: float | None
    seed: int
    outputs: dict[str, float | str]
    reason: str
    precision: str
    bound: float | str | None
    error_to_bound: float | str | None
    draws: int
    notes: tuple[str, ...]
    extents: list[dict[str, int | float | str | None]]


@dataclass(frozen=True)
class Check:
    """How far a plan's outputs are from the reference's.

    Attributes:
        max_relative_error: max|a - b| / max|reference|, the largest over the outputs.
        max_error_to_spread: max|a - b| / standard deviation of the reference: sees outputs that hardly vary.
        passed: whether the error is what rounding explains, or within the tolerance if one was given; None when there
            was no reference, or when rounding alone may change the outputs so much that nothing can be said.
        tolerance: for `max_relative_error`; None where the bound of each element decides.
        precision: of the reference: `double`, `double but for OPERATOR, ...` or `float32`.
        bound: how far the worst element may be from the reference, relative to max|reference|.
        error_to_bound: the largest share of its bound that an element's error is.
        draws: perturbed runs of the model that the bounds come from.
        notes: nodes that two implementations of the reference compute differently.
    """

    reference: str
    max_relative_error: float | None
    max_error_to_spread: float | None
    passed: bool | None
    tolerance: float | None
    seed: int
    outputs: dict[str, float]
    reason: str = ""
    precision: str = ""
    bound: float | None = None
    error_to_bound: float | None = None
    draws: int = 0
    notes: tuple[str, ...] = ()
    extents: tuple[Mapping[str, int | float | None], ...] = ()
    """For a plan of ranges: the extents at which it was checked, each with its `max_relative_error`."""

    def data(self) -> ComparedOutputs:
        """JSON data; an infinite error (values that are not finite, wrong shapes) is the text `inf`."""
        data = {key: _json(value) for key, value in asdict(self).items()}
        data["outputs"] = {k: _json(v) for k, v in self.outputs.items()}
        data["extents"] = [{k: _json(v) for k, v in one.items()} for one in self.extents]
        return cast("ComparedOutputs", data)


def _json(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def worst_check(checks: Sequence[tuple[Mapping[str, int], Check]]) -> Check:
    """The check at the extents with the largest error, with the errors of all."""
    extents = tuple({**at, "max_relative_error": check.max_relative_error} for at, check in checks)
    found = max(
        (check for _, check in checks), key=lambda c: (c.passed is False, c.error_to_bound or 0.0, c.max_relative_error)
    )
    return replace(found, extents=extents)


def check_outputs(
    results: Mapping[str, Array], references: Mapping[str, Array], name: str, tolerance: float, seed: int
) -> Check:
    """Compare outputs by name."""
    errors = {output: compare(results[output], references[output]) for output in results}
    relative, spread = worst(list(errors.values()))
    return Check(name, relative, spread, relative <= tolerance, tolerance, seed, {k: e[0] for k, e in errors.items()})


def open_reference(model: Any, names: Sequence[str] = (ONNXRUNTIME, EVALUATOR)) -> Reference:
    """The first of the systems that is installed and takes the model.

    Args:
        model: a path, the bytes of a file or a ModelProto.

    Raises:
        NoReferenceError: none does.
    """
    reasons = []
    for name in names:
        if name == ONNXRUNTIME and importlib.util.find_spec("onnxruntime") is None:
            reasons.append("onnxruntime is not installed")
            continue
        try:
            return Reference(name, _onnxruntime(model) if name == ONNXRUNTIME else _evaluator(model))
        except Exception as error:  # other people's code: whatever it raises, it does not take the model
            reasons.append(f"{name}: {error}")
    raise NoReferenceError("no reference can compute this model: " + "; ".join(reasons))


def _onnxruntime(model: Any) -> Callable[[Mapping[str, Array]], dict[str, Array]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory(prefix="smartmem-reference-") as folder:
        source = _complete(model, Path(folder))
        session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]

    def run(feeds: Mapping[str, Array]) -> dict[str, Array]:
        return dict(zip(names, session.run(None, dict(feeds)), strict=True))

    return run


def _evaluator(model: Any) -> Callable[[Mapping[str, Array]], dict[str, Array]]:
    from onnx.reference import ReferenceEvaluator

    with tempfile.TemporaryDirectory(prefix="smartmem-reference-") as folder:
        source = _complete(model, Path(folder), in_file=False)
        evaluator = ReferenceEvaluator(source)

    def run(feeds: Mapping[str, Array]) -> dict[str, Array]:
        return dict(zip(evaluator.output_names, evaluator.run(None, dict(feeds)), strict=True))

    return run


def complete_file(model: str | Path, folder: Path) -> str:
    """The path of a model with all its weights: its own, or that of a file in `folder` where they have to be made."""
    return str(_complete(model, folder))


def _complete(model: Any, folder: Path, in_file: bool = True) -> Any:
    """The model with all its weights, as a path (of a file in `folder`, if one is needed), bytes or a ModelProto."""
    import onnx

    from smartmem_rules.graph.weights import RECIPES, graph_tensors, is_external, location  # start-up time
    from smartmem_rules.graph.zoo import materialized_model, save_materialized  # start-up time

    if isinstance(model, (onnx.ModelProto, bytes)):
        proto = onnx.load_from_string(model) if isinstance(model, bytes) else model
        if any(is_external(tensor) for _, tensor in graph_tensors(proto.graph)):
            path = folder / "given.onnx"
            path.write_bytes(proto.SerializeToString())
            return _complete(path, folder, in_file)
        if not in_file or proto.ByteSize() < _PROTOBUF_LIMIT:
            return proto.SerializeToString() if in_file else proto
        path = folder / "model.onnx"
        onnx.save(proto, str(path), save_as_external_data=True, location="model.data")
        return str(path)
    stripped = onnx.load(str(model), load_external_data=False)
    externals = [location(tensor) for _, tensor in graph_tensors(stripped.graph) if is_external(tensor)]
    if not any(entries.get("location") in RECIPES for entries in externals):
        return str(model) if in_file else onnx.load(str(model))
    if not in_file:
        return materialized_model(model)
    path = folder / "model.onnx"
    save_materialized(model, path)
    return str(path)

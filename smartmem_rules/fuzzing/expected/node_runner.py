"""One ONNX node at given arrays, by ONNX Runtime without optimizations or by ONNX's reference evaluator."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.fuzzing.expected.conditions import attribute
from smartmem_rules.fuzzing.expected.faults import evaluator_fault_of, fault_of
from smartmem_rules.fuzzing.expected.functions import FUNCTIONS
from smartmem_rules.fuzzing.expected.recurrent import Rounding, recurrent, unrounded
from smartmem_rules.fuzzing.expected.roundings import RECURRENT

FLOATS = (np.dtype(np.float32), np.dtype(np.float16), np.dtype(np.float64))
_NARROW_TYPES = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
_RANDOM = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
_EXTREMES = {"ReduceMin": -np.inf, "ReduceMax": np.inf, "MaxPool": np.inf, "GlobalMaxPool": np.inf}
"""Operators that take one of their elements, and what that is if it is among them."""
_NO_KERNEL = "NOT_IMPLEMENTED"
"""How ONNX Runtime begins where a right node has no kernel; what else it refuses the evaluator would obey."""


class NoReference(Exception):
    """Nobody else computes the node; the message says why."""


class _RefusedValues(NoReference):
    """ONNX Runtime takes the node and not its values, such as indices outside of an axis: they have no result."""


def is_float(array: Array | None) -> bool:
    """Whether the elements are floats of any width."""
    return array is not None and (array.dtype in FLOATS or array.dtype.name == "bfloat16")


def wide(array: Array | None) -> Array | None:
    """The array with its floats in double precision."""
    return array.astype(np.float64) if array is not None and is_float(array) else array


class NodeRunner:
    """Runs one node again and again, at arrays of the same shapes.

    Two ways are kept apart: `native` has the node's own element types, `precise` has all floats in double precision.
    """

    def __init__(
        self, node: onnx.NodeProto, opsets: Sequence[onnx.OperatorSetIdProto], fixed: Mapping[str, Array]
    ) -> None:
        """Args:
        fixed: the values of operands that are constants of integer type; ONNX Runtime wants some at session time.
        """
        if node.op_type in _RANDOM:
            raise NoReference(f"{node.op_type} draws numbers of its own")
        self.node = node
        self.opsets = opsets
        self.fixed = fixed
        self.own = FUNCTIONS.get(node.op_type) if node.domain == "" else None
        self.sessions: dict[tuple[Any, ...], Any] = {}
        self.evaluated = False
        """Whether the evaluator computes the precise results, which now and then are in single precision."""
        self.is_own = self.own is not None
        """Whether the precise results are the judge's own, and right where others differ by more than roundings."""

    def native(self, operands: Sequence[Array | None]) -> list[Array]:
        """The outputs at the node's own element types.

        Raises:
            NoReference: neither ONNX Runtime nor the evaluator takes the node.
        """
        if self.node.op_type == "Constant" and self.node.domain in ("", "ai.onnx"):
            return [constant_value(self.node)]
        if self.own is not None and operands[0] is not None and operands[0].dtype == np.float64:
            return [self.own(self.node, operands[0])]
        if self.node.op_type in RECURRENT and operands[0] is not None and not operands[0].size:
            return self._of_no_steps(operands)
        fault = fault_of(self.node, operands)
        if fault is not None:
            raise NoReference(f"{self.node.op_type}: {fault.reason}")
        steps = self._recurrent(operands) if operands[0] is not None and operands[0].dtype == np.float64 else None
        if steps is not None:
            return steps
        try:
            return self._onnxruntime(self.node, operands)
        except _RefusedValues:
            raise
        except Exception as refusal:  # other people's code: whatever it raises, it does not take the node
            if any(o is not None and o.dtype == np.float16 for o in operands):
                try:
                    return self._through_float32(operands)
                except Exception:
                    pass
            try:
                results = self._evaluator(self.node, operands)
            except Exception as second:
                raise NoReference(f"{self.node.op_type}: {_first_line(refusal)}; {_first_line(second)}") from second
            self._seconded(operands, results)
            return results

    def precise(self, operands: Sequence[Array | None], rounded: Rounding = unrounded) -> list[Array]:
        """The outputs with all floats in double precision.

        Args:
            rounded: rounds what recurrent operators compute on their way.

        Raises:
            NoReference: neither takes the node so.
        """
        if self.node.op_type == "Constant" and self.node.domain in ("", "ai.onnx"):
            value = wide(constant_value(self.node))
            assert value is not None
            return [value]
        node, widened = _precise_node(self.node), [wide(o) for o in operands]
        steps = self._recurrent(widened, rounded)
        if steps is not None:
            return steps
        if self.own is not None and widened[0] is not None:
            return [self.own(node, widened[0])]
        try:
            return self._with_nan(node, widened, [np.asarray(wide(v)) for v in self._onnxruntime(node, widened)])
        except Exception:
            pass
        self.evaluated = True
        try:
            return [np.asarray(wide(v)) for v in self._evaluator(node, widened)]
        except Exception as refusal:
            raise NoReference(f"{self.node.op_type}: {_first_line(refusal)}") from refusal

    def _with_nan(self, node: onnx.NodeProto, operands: Sequence[Array | None], results: list[Array]) -> list[Array]:
        """Extremes that are NaN where an element is, whatever its place: ONNX Runtime's depend on that."""
        data, beyond = operands[0], _EXTREMES.get(node.op_type)
        if data is None or beyond is None or data.dtype != np.float64 or not np.isnan(data).any():
            return results
        marks = self._onnxruntime(node, [np.where(np.isnan(data), beyond, 0.0), *operands[1:]])
        return [np.where(marks[0] == beyond, np.nan, results[0]), *results[1:]]

    def _of_no_steps(self, operands: Sequence[Array | None]) -> list[Array]:
        """A recurrence of nothing: ONNX Runtime ends the process, or gives what was in memory."""
        results = self._recurrent(operands)
        if results is None:
            raise NoReference(f"{self.node.op_type}: ONNX Runtime does not compute a sequence of no steps")
        assert operands[0] is not None
        return [result.astype(operands[0].dtype) for result in results]

    def _recurrent(self, operands: Sequence[Array | None], rounded: Rounding = unrounded) -> list[Array] | None:
        if self.node.op_type not in RECURRENT or self.node.domain not in ("", "com.microsoft"):
            return None
        try:
            results = recurrent(self.node, operands, rounded)
        except (IndexError, ValueError) as misfit:
            raise NoReference(f"{self.node.op_type}: its operands do not fit each other") from misfit
        self.is_own |= results is not None
        return results

    def _seconded(self, operands: Sequence[Array | None], results: Sequence[Array]) -> None:
        """Compare the evaluator's results in double precision with ONNX Runtime's in single precision, if it has some.

        Raises:
            NoReference: they differ by more than roundings.
        """
        if all(o is None or o.dtype != np.float64 for o in operands):
            return
        narrow = [o.astype(np.float32) if o is not None and o.dtype == np.float64 else o for o in operands]
        try:
            others = self._onnxruntime(self.node, narrow)
        except Exception:  # it takes the node in neither precision
            return
        for one, other in zip(results, others, strict=True):
            size = float(np.abs(one[np.isfinite(one)]).max(initial=0.0)) if is_float(one) else 0.0
            if one.shape != other.shape or not np.allclose(one, other, rtol=0, atol=1e-3 * size, equal_nan=True):
                raise NoReference(f"{self.node.op_type}: ONNX's evaluator and ONNX Runtime in float32 differ")

    def _through_float32(self, operands: Sequence[Array | None]) -> list[Array]:
        """Half precision computed in single precision and rounded: what ONNX Runtime does where it has no kernel."""
        wider = [o.astype(np.float32) if o is not None and o.dtype == np.float16 else o for o in operands]
        return [v.astype(np.float16) if v.dtype == np.float32 else v for v in self._onnxruntime(self.node, wider)]

    def _model(
        self, node: onnx.NodeProto, operands: Sequence[Array | None]
    ) -> tuple[onnx.ModelProto, dict[str, Array]]:
        feeds: dict[str, Array] = {}
        constants: list[onnx.TensorProto] = []
        for name, operand in zip(node.input, operands, strict=True):
            if operand is None or name in feeds:
                continue
            if name in self.fixed and not is_float(operand):
                if all(c.name != name for c in constants):
                    constants.append(numpy_helper.from_array(operand, name))
            else:
                feeds[name] = operand
        inputs = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in feeds.items()
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], "one", inputs, outputs, constants)
        model = helper.make_model(graph, opset_imports=self.opsets, ir_version=10)
        return model, feeds

    def _onnxruntime(self, node: onnx.NodeProto, operands: Sequence[Array | None]) -> list[Array]:
        node = _with_hidden_size(node, operands)
        key = ("onnxruntime", *((None if o is None else (o.dtype.name, o.shape)) for o in operands))
        model, feeds = self._model(node, operands)
        if key not in self.sessions:
            try:
                self.sessions[key] = _session(model)
            except Exception as refusal:
                self.sessions[key] = refusal if _NO_KERNEL in str(refusal) else _RefusedValues(str(refusal))
        session = self.sessions[key]
        if isinstance(session, Exception):
            raise session
        try:
            results = [np.asarray(v) for v in session.run(None, feeds)]
        except Exception as refusal:  # other people's code
            raise _RefusedValues(f"{node.op_type}: {_first_line(refusal)}") from refusal
        for result, made in zip(results, session.get_outputs(), strict=True):
            if result.dtype == np.uint8 and made.type != "tensor(uint8)":
                raise ValueError(f"ONNX Runtime gives the bytes of {made.type}, and not its numbers")
        return [np.zeros_like(r) for r in results] if _is_product_of_nothing(node, operands) else results

    def _evaluator(self, node: onnx.NodeProto, operands: Sequence[Array | None]) -> list[Array]:
        from onnx.reference import ReferenceEvaluator

        fault = evaluator_fault_of(node, operands)
        if fault is not None:
            raise ValueError(fault.reason)
        if node.op_type == "ConvTranspose" and attribute(node, "group", 1) != 1:
            return self._by_groups(node, operands)
        model, feeds = self._model(node, operands)
        with np.errstate(all="ignore"):
            made = [np.asarray(v) for v in ReferenceEvaluator(model).run(None, feeds)]
        shapes = [value.type.tensor_type for value in onnx.shape_inference.infer_shapes(model).graph.output]
        for value, inferred in zip(made, shapes, strict=True):
            wanted = [d.dim_value if d.HasField("dim_value") else None for d in inferred.shape.dim]
            wider = inferred.elem_type and value.dtype.kind in "iu"
            if wider and value.dtype != helper.tensor_dtype_to_np_dtype(inferred.elem_type):
                raise ValueError(f"ONNX's evaluator gives {value.dtype}, which is another element type")
            if inferred.HasField("shape") and not fits(value.shape, wanted):
                raise ValueError(f"ONNX's evaluator gives shape {value.shape}, not {wanted}")
        return made

    def _by_groups(self, node: onnx.NodeProto, operands: Sequence[Array | None]) -> list[Array]:
        """A ConvTranspose of several groups, which ONNX's evaluator cannot compute, group by group."""
        groups = attribute(node, "group")
        assert isinstance(groups, int)
        x, w, *bias = operands
        assert x is not None
        assert w is not None
        alone = copy.deepcopy(node)
        next(a for a in alone.attribute if a.name == "group").i = 1
        parts: list[Sequence[Array | None]] = [np.split(x, groups, axis=1), np.split(w, groups, axis=0)]
        parts += [[None] * groups if b is None else np.split(b, groups) for b in bias]
        made = [self._evaluator(alone, part)[0] for part in zip(*parts, strict=True)]
        return [np.concatenate(made, axis=1)]


def _session(model: onnx.ModelProto) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _with_hidden_size(node: onnx.NodeProto, operands: Sequence[Array | None]) -> onnx.NodeProto:
    """A recurrent node with its number of hidden units, which ONNX leaves open and ONNX Runtime asks for."""
    weights = operands[2] if node.op_type in RECURRENT and len(operands) > 2 else None
    if weights is None or any(a.name == "hidden_size" for a in node.attribute):
        return node
    changed = copy.deepcopy(node)
    changed.attribute.append(helper.make_attribute("hidden_size", weights.shape[-1]))
    return changed


def _precise_node(node: onnx.NodeProto) -> onnx.NodeProto:
    """The node with double precision in its attributes, where these name an element type."""
    changed = copy.deepcopy(node)
    for given in changed.attribute:
        if given.name in ("to", "dtype") and given.i in _NARROW_TYPES:
            given.i = TensorProto.DOUBLE
        if given.name == "value" and given.t.data_type in _NARROW_TYPES:
            given.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(given.t).astype(np.float64)))
    return changed


def _is_product_of_nothing(node: onnx.NodeProto, operands: Sequence[Array | None]) -> bool:
    """Whether a product sums over no element: ONNX Runtime may leave its result as the memory was."""
    first = operands[0] if operands else None
    return node.op_type == "MatMul" and first is not None and first.shape[-1:] == (0,)


def constant_value(node: onnx.NodeProto) -> Array:
    """The value of a Constant node.

    Raises:
        NoReference: it is sparse or holds text.
    """
    for given in node.attribute:
        if given.name == "value":
            return np.asarray(numpy_helper.to_array(given.t))
        if given.name in ("value_float", "value_floats"):
            return np.asarray(helper.get_attribute_value(given), np.float32)
        if given.name in ("value_int", "value_ints"):
            return np.asarray(helper.get_attribute_value(given), np.int64)
    raise NoReference("a Constant that is no tensor of numbers")


def fits(shape: tuple[int, ...], inferred: Sequence[int | None]) -> bool:
    """Whether a shape has the extents that are known of it."""
    return len(shape) == len(inferred) and all(m in (None, n) for n, m in zip(shape, inferred, strict=True))


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]

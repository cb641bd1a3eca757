"""Computes one ONNX node at a time, in single and in double precision, by implementations that are not the plan's.

ONNX Runtime computes a node wherever it has a kernel for it.  It has few for doubles (none for Conv, for example);
there the project's definitions of the operators are interpreted in double precision.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from smartmem_rules.checking.own_references import OwnReferenceError, References, by_reference
from smartmem_rules.graph.errors import GraphError
from smartmem_rules.graph.failures import UnknownValuesError
from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.loading import domain_of, opsets
from smartmem_rules.graph.matching import raw_attribute
from smartmem_rules.graph.model import Graph
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.kept import KeepRules
from smartmem_rules.runtime.reference import ENDS_WHERE_EMPTY, fills_memory
from smartmem_rules.tensor.interpreter.interpret import evaluate_equations
from smartmem_rules.tensor.primitives import Array

ONNXRUNTIME = "onnxruntime"
DEFINITIONS = "definitions"
EVALUATOR = "onnx.reference"
NUMPY = "numpy"
ORDER = (NUMPY, ONNXRUNTIME, DEFINITIONS, EVALUATOR)
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_REPLACED = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
_TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "output_datatype")
_SESSIONS = 256
_GRAPHS = 64
_EMBEDDED = 1 << 12
"""Elements up to which an integer operand counts as a parameter that an operator has to know beforehand."""
_ONE_THREAD = 1 << 16


class NoKernelError(Exception):
    """No implementation here computes a node; the message says which node and why."""


@dataclass(frozen=True)
class Computed:
    """The outputs of a node, None for one that it leaves out, and which implementation made them."""

    outputs: list[Array | None]
    by: str


class Kernels:
    """Implementations of single nodes; sessions and interpreted graphs are kept for nodes that are alike."""

    def __init__(
        self, model: onnx.ModelProto, base: Callable[[], KeepRules], references: References | None = None
    ) -> None:
        """Args:
        model: whose operator sets the nodes use.
        base: gives the operators' definitions, when they are first needed.
        references: the definitions that name a numpy function.
        """
        self._references = references or {}
        self._opsets = list(model.opset_import)
        self._versions = opsets(model)
        self._version = model.ir_version or 8
        self._base = base
        self._sessions: OrderedDict[bytes, Any] = OrderedDict()
        self._graphs: OrderedDict[bytes, Graph] = OrderedDict()
        self._without: set[tuple[str, bytes]] = set()
        self._installed = importlib.util.find_spec("onnxruntime") is not None

    def single(
        self,
        node: onnx.NodeProto,
        operands: Sequence[Array | None],
        outer: Mapping[str, Array] | None = None,
        names: Sequence[str] = ORDER,
    ) -> Computed:
        """The node with all floats in single precision; those that the model says are doubles stay doubles.

        Args:
            operands: in the node's order, None for an absent one.
            outer: tensors that the node's subgraphs take from outside.
            names: the implementations to try.

        Raises:
            NoKernelError: nothing computes it.
        """
        return self._first(node, SINGLE, operands, outer or {}, names)

    def double(
        self,
        node: onnx.NodeProto,
        operands: Sequence[Array | None],
        outer: Mapping[str, Array] | None = None,
        names: Sequence[str] = ORDER,
    ) -> Computed | None:
        """The node with all floats in double precision, None where nothing computes that."""
        return self.attempt(node, DOUBLE, operands, outer or {}, names)

    def attempt(
        self,
        node: onnx.NodeProto,
        working: np.dtype[Any],
        operands: Sequence[Array | None],
        outer: Mapping[str, Array],
        names: Sequence[str],
    ) -> Computed | None:
        """The node in a precision, None where none of the implementations computes it."""
        try:
            return self._first(node, working, operands, outer, names)
        except NoKernelError:
            return None

    def _random(self, node: onnx.NodeProto) -> bool:
        """Whether ONNX leaves the result open; of a node with subgraphs it only says that they might."""
        if any(attribute.type == onnx.AttributeProto.GRAPH for attribute in node.attribute):
            return False
        version = self._versions.get(domain_of(node.domain), 1)
        try:
            schema = onnx.defs.get_schema(node.op_type, version, node.domain)
        except onnx.defs.SchemaError:
            return False
        determinism = getattr(schema, "node_determinism", None)
        return determinism is not None and determinism.name == "NonDeterministic"

    def _first(
        self,
        node: onnx.NodeProto,
        working: np.dtype[Any],
        operands: Sequence[Array | None],
        outer: Mapping[str, Array],
        names: Sequence[str],
    ) -> Computed:
        retyped = retype(node, working)
        given = [None if operand is None else as_working(operand, working) for operand in operands]
        captured = {name: as_working(array, working) for name, array in outer.items()}
        ways = {
            NUMPY: self._numpy,
            ONNXRUNTIME: self._runtime,
            DEFINITIONS: self._definitions,
            EVALUATOR: self._evaluator,
        }
        kind = _kind(retyped, given)
        reasons = []
        if self._random(node):
            # another implementation would draw other numbers
            names = [name for name in names if name == DEFINITIONS]
            reasons.append("its result is random")
        if node.op_type in ENDS_WHERE_EMPTY and any(one is not None and not one.size for one in given):
            names = [name for name in names if name != ONNXRUNTIME]
            reasons.append(f"{ONNXRUNTIME} ends the process where it has no elements")
        for name in names:
            if (name, kind) in self._without:
                continue
            try:
                outputs = ways[name](retyped, given, captured)
                return Computed([None if o is None else as_working(o, working) for o in outputs], name)
            except OwnReferenceError:
                raise  # an author who names a reference means it
            except Exception as error:  # other people's code: whatever it raises, it does not take the node
                self._without.add((name, kind))
                reasons.append(f"{name}: {error}")
        raise NoKernelError(f"{node.op_type} {node.name or node.output[0]!r}: " + "; ".join(reasons))

    # --- numpy functions that rule files name ---

    def _numpy(
        self, node: onnx.NodeProto, operands: Sequence[Array | None], outer: Mapping[str, Array]
    ) -> list[Array | None]:
        del outer
        operator = self._references.get((domain_of(node.domain), node.op_type))
        if operator is None:
            raise NoKernelError("no rule file names a numpy function for it")
        given = {attribute.name: raw_attribute(attribute) for attribute in node.attribute}
        wanted = [place for place, name in enumerate(node.output) if name]
        results = by_reference(operator, operands, given, 1 + max(wanted, default=0), self._base().functions)
        return [results[place] if name else None for place, name in enumerate(node.output)]

    # --- ONNX Runtime ---

    def _runtime(
        self, node: onnx.NodeProto, operands: Sequence[Array | None], outer: Mapping[str, Array]
    ) -> list[Array | None]:
        if not self._installed:
            raise NoKernelError("onnxruntime is not installed")
        names = _operand_names(operands)
        feeds = {name: array for name, array in zip(names, operands, strict=True) if array is not None}
        parallel = sum(array.size for array in feeds.values()) >= _ONE_THREAD
        try:
            return self._session(node, names, {**feeds, **outer}, {}, parallel)
        except Exception:
            # some kernels want their parameters (zero points, scales, pads) as constants
            small = {name: array for name, array in feeds.items() if array.size <= _EMBEDDED}
            if not small:
                raise
            rest = {name: array for name, array in feeds.items() if name not in small}
            return self._session(node, names, {**rest, **outer}, small, parallel)

    def _session(
        self,
        node: onnx.NodeProto,
        names: Sequence[str],
        feeds: Mapping[str, Array],
        constants: Mapping[str, Array],
        parallel: bool,
    ) -> list[Array | None]:
        import onnxruntime

        types = [(name, array.dtype.name) for name, array in feeds.items()]
        held = [(name, array.dtype.name, array.shape, array.tobytes()) for name, array in constants.items()]
        key = _key(node, types, held, parallel)
        session = self._sessions.get(key)
        if session is None:
            model = self._model(node, names, [(n, a.dtype, None) for n, a in feeds.items()], constants)
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.log_severity_level = 4
            options.intra_op_num_threads = 0 if parallel else 1
            options.inter_op_num_threads = 1
            options.enable_cpu_mem_arena = False
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            _keep(self._sessions, key, session, _SESSIONS)
        return _in_places(node, session.run(None, dict(feeds)))

    # --- the operators' definitions ---

    def _definitions(
        self, node: onnx.NodeProto, operands: Sequence[Array | None], outer: Mapping[str, Array]
    ) -> list[Array | None]:
        names = _operand_names(operands)
        feeds = {name: array for name, array in zip(names, operands, strict=True) if array is not None}
        constants = {n: a for n, a in feeds.items() if a.dtype.kind in "iu" and a.size <= _EMBEDDED}
        feeds.update(outer)
        graph = self._graph(node, names, feeds, constants)
        known: dict[str, Array] = {**feeds, **graph.constants}
        for made in graph.nodes:
            known.update(evaluate_equations(made.equations, known))
        outputs: list[Array | None] = []
        for place, name in enumerate(node.output):
            array = known[_result(place)] if name else None
            for axis, count in graph.sizes.get(_result(place), {}).items():
                assert array is not None
                array = array.take(range(int(known[count])), axis)
            outputs.append(array)
        return outputs

    def _graph(
        self,
        node: onnx.NodeProto,
        names: Sequence[str],
        feeds: Mapping[str, Array],
        constants: dict[str, Array],
    ) -> Graph:
        types = [(name, array.dtype.name, array.shape) for name, array in feeds.items()]
        key = _key(node, types, [(name, array.tobytes()) for name, array in constants.items()])
        graph = self._graphs.get(key)
        while graph is None:
            inputs = [(n, a.dtype, a.shape) for n, a in feeds.items() if n not in constants]
            try:
                graph = import_model(self._model(node, names, inputs, constants), self._base(), fold_outputs=False)
            except UnknownValuesError as error:
                more = {name: feeds[name] for name in error.tensors if name in feeds and name not in constants}
                if not more:
                    raise
                constants = {**constants, **more}
                key = _key(node, types, [(name, array.tobytes()) for name, array in constants.items()])
        _keep(self._graphs, key, graph, _GRAPHS)
        return graph

    # --- ONNX's reference evaluator ---

    def _evaluator(
        self, node: onnx.NodeProto, operands: Sequence[Array | None], outer: Mapping[str, Array]
    ) -> list[Array | None]:
        from onnx.reference import ReferenceEvaluator  # slow to import, and hardly ever needed

        dilations = next((list(a.ints) for a in node.attribute if a.name == "dilations"), [])
        if len(operands) > 1 and operands[1] is not None and fills_memory(node.op_type, operands[1].shape, dilations):
            raise NoKernelError("it writes out the gaps of dilated weights, which fill the memory")
        names = _operand_names(operands)
        feeds = {name: array for name, array in zip(names, operands, strict=True) if array is not None}
        model = self._model(node, names, [(n, a.dtype, a.shape) for n, a in (feeds | dict(outer)).items()], {})
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(model).run(None, feeds | dict(outer))
        if not all(isinstance(result, np.ndarray | np.generic) for result in results):
            raise GraphError("its result is no tensor")
        return _in_places(node, [np.asarray(result) for result in results])

    def _model(
        self,
        node: onnx.NodeProto,
        names: Sequence[str],
        inputs: Sequence[tuple[str, np.dtype[Any], tuple[int, ...] | None]],
        constants: Mapping[str, Array],
    ) -> onnx.ModelProto:
        renamed = onnx.NodeProto()
        renamed.CopyFrom(node)
        renamed.name = "node"
        del renamed.input[:], renamed.output[:]
        renamed.input.extend(names)
        renamed.output.extend(_result(place) if name else "" for place, name in enumerate(node.output))
        graph = helper.make_graph(
            [renamed],
            "node",
            [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(d), s) for n, d, s in inputs],
            [onnx.ValueInfoProto(name=name) for name in renamed.output if name],
            [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in constants.items()],
        )
        return helper.make_model(graph, opset_imports=self._opsets, ir_version=self._version)


def as_working(array: Array, working: np.dtype[Any]) -> Array:
    """The array with floats narrower than double in the working type; float8 and narrower stay what they are."""
    replaced = array.dtype.name in ("float16", "bfloat16", "float32")
    return array.astype(working, copy=False) if replaced else array


def retype(node: onnx.NodeProto, working: np.dtype[Any]) -> onnx.NodeProto:
    """The node with the floats that it names or holds, in subgraphs too, in the working type."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    code = helper.np_dtype_to_tensor_dtype(working)
    for attribute in made.attribute:
        if attribute.name in _TYPE_ATTRIBUTES and attribute.i in _REPLACED:
            attribute.i = code
        elif attribute.type == onnx.AttributeProto.TENSOR:
            _retype_tensor(attribute.t, working)
        elif attribute.type == onnx.AttributeProto.GRAPH:
            _retype_graph(attribute.g, working, code)
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            for graph in attribute.graphs:
                _retype_graph(graph, working, code)
    return made


def _retype_tensor(tensor: onnx.TensorProto, working: np.dtype[Any]) -> None:
    if tensor.data_type in _REPLACED and tensor.data_location != onnx.TensorProto.EXTERNAL:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(working), tensor.name))


def _retype_graph(graph: onnx.GraphProto, working: np.dtype[Any], code: int) -> None:
    for tensor in graph.initializer:
        _retype_tensor(tensor, working)
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type in _REPLACED:
            value.type.tensor_type.elem_type = code
    for node in graph.node:
        node.CopyFrom(retype(node, working))


def _operand_names(operands: Sequence[Array | None]) -> list[str]:
    return [f"operand:{place}" if array is not None else "" for place, array in enumerate(operands)]


def _result(place: int) -> str:
    return f"result:{place}"


def _in_places(node: onnx.NodeProto, results: Sequence[Any]) -> list[Array | None]:
    left = iter(results)
    return [next(left) if name else None for name in node.output]


def _kind(node: onnx.NodeProto, operands: Sequence[Array | None]) -> bytes:
    """What decides whether an implementation takes a node: the node, its operands' types and ranks."""
    return _key(node, [None if array is None else (array.dtype.name, array.ndim) for array in operands])


def _key(node: onnx.NodeProto, *facts: object) -> bytes:
    hashed = hashlib.blake2b(digest_size=20)
    attributes = sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)
    present = [bool(name) for name in node.input], [bool(name) for name in node.output]
    hashed.update(repr((node.domain, node.op_type, attributes, present, facts)).encode())
    return hashed.digest()


def _keep(cache: OrderedDict[bytes, Any], key: bytes, value: Any, limit: int) -> None:
    cache[key] = value
    if len(cache) > limit:
        cache.popitem(last=False)

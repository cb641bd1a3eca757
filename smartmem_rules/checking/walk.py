"""Computes an ONNX model once in double precision, and several times, perturbed, in the plan's precision.

The *reference* is what the model says, with floats in double precision.  A perturbed run, a *draw*, computes every
node in single precision, rounds its results as the plan stores them, and adds noise.  How much is measured at each
node: its single-precision result for rounded operands, less the reference, is the rounding error that the node itself
makes (times `NOISE`, since another order of a sum or another approximation of a function may do as badly again).  A
node that makes none (a view, a maximum, a rounding of exact numbers, a product by two) gets no noise.  Draws therefore
differ by what rounding can do to the model, whatever its conditioning: stochastic arithmetic (D. S. Parker, Monte Carlo
Arithmetic, 1997).

Nodes are computed one by one for the reference and all draws, and results are dropped after their last reader, so that
a model needs the memory of its widest place, not of its weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field

import numpy as np
import onnx

from smartmem_rules.checking.kernels import DOUBLE, SINGLE, Kernels, NoKernelError
from smartmem_rules.checking.opinions import Opinion, opinion
from smartmem_rules.checking.own_references import References
from smartmem_rules.checking.rounding import NARROWED, as_stored, narrowed, noisy, relative_noise, rounding
from smartmem_rules.graph.errors import GraphError
from smartmem_rules.graph.expansion.local_functions import inline_functions
from smartmem_rules.graph.known.constants import constant_node_value, dense
from smartmem_rules.graph.loading import (
    ModelSource,
    captured,
    load_model,
    node_inputs,
    sorted_nodes,
)
from smartmem_rules.graph.weights import tensor_value
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.kept import KeepRules
from smartmem_rules.tensor.primitives import Array

NOISE = 2.0
"""How many times the rounding error that is measured at a node another implementation's may be."""
PARAMETERS = 16
"""Values of up to so many elements may be parameters (scales, bounds), of which extents may depend."""
LARGE = 256 << 20
"""Bytes of tensors that are alive at once, from which on a walk goes on with `FEW` draws."""
FEW = 2


@dataclass(frozen=True)
class Sampled:
    """A tensor as the model has it: the reference (floats in double precision), and what rounding makes of it.

    `draws` is empty where the value has no rounding error at all.
    """

    reference: Array
    draws: tuple[Array, ...] = ()

    @property
    def bytes(self) -> int:
        return self.reference.nbytes + sum(draw.nbytes for draw in {id(d): d for d in self.draws}.values())


@dataclass(kw_only=True)
class Walk:
    """The outputs of a model, and how they were computed.

    Attributes:
        single: nodes for which nothing computes double precision, by operator.
        by: how many nodes each implementation computed for the reference.
        disputes: what implementations of a node do not agree about, in words.
        draws: perturbed runs that were made to the end.
        peak_bytes: of the tensors that were alive at once.
    """

    outputs: dict[str, Sampled] = field(default_factory=dict)
    single: Counter[str] = field(default_factory=Counter)
    by: Counter[str] = field(default_factory=Counter)
    disputes: list[str] = field(default_factory=list)
    draws: int = 0
    peak_bytes: int = 0


class Walker:
    """A model that can be walked through for one set of inputs after the other."""

    def __init__(self, model: ModelSource, base: Callable[[], KeepRules], references: References | None = None) -> None:
        """Raises GraphError: the model is damaged or its data are missing."""
        proto, self._folder = load_model(model)
        self.model = inline_functions(proto)
        graph = self.model.graph
        self._initializers = {tensor.name: tensor for tensor in graph.initializer}
        self._sparse = {sparse.values.name: sparse for sparse in graph.sparse_initializer}
        self.outputs = [value.name for value in graph.output]
        given = {*self._initializers, *self._sparse, *(value.name for value in graph.input)}
        self.nodes = sorted_nodes(graph.node, given, self.outputs)
        self.declared = _declared_floats(self.model)
        self.kernels = Kernels(self.model, base, references)

    def run(
        self, feeds: Mapping[str, Array], draws: int, seed: int, dtype: str = "float32", noise: float = NOISE
    ) -> Walk:
        """One walk.

        Args:
            feeds: the inputs, in the model's own types.
            draws: perturbed runs.
            seed: of the noise.
            dtype: how the plan stores floats.
            noise: in measured rounding errors.

        Raises:
            NoKernelError: nothing computes some node.
            GraphError: a weight cannot be read.
        """
        return _Run(self, feeds, draws, seed, dtype, noise).walk

    def constant(self, name: str) -> Array | None:
        """The value of an initializer, None where the name is none; read anew each time."""
        if name in self._initializers:
            return tensor_value(name, self._initializers[name], self._folder)
        return dense(self._sparse[name]) if name in self._sparse else None

    def constant_node(self, node: onnx.NodeProto) -> Array:
        value = constant_node_value(node)
        if isinstance(value, onnx.TensorProto):
            return tensor_value(node.output[0], value, self._folder)
        return value


class _Run:
    def __init__(
        self, walker: Walker, feeds: Mapping[str, Array], draws: int, seed: int, dtype: str, noise: float
    ) -> None:
        self._walker, self._kernels = walker, walker.kernels
        self._draws, self._seed, self._dtype, self._noise = draws, seed, dtype, noise
        self.walk = Walk()
        self._values: dict[str, Sampled] = {
            name: self._given(as_stored(np.asarray(array))) for name, array in feeds.items()
        }
        self._readers = Counter(name for node in walker.nodes for name in set(node_inputs(node)))
        self._readers.update(walker.outputs)
        for number, node in enumerate(walker.nodes):
            self._node(number, node)
        self.walk.draws = self._draws
        for name in walker.outputs:
            self.walk.outputs[name] = self._value(name)

    def _given(self, array: Array) -> Sampled:
        """A value that is known exactly, but for what the plan loses by storing it in 16 bits."""
        if self._dtype not in NARROWED or array.dtype != SINGLE:
            return Sampled(array)
        rounded = narrowed(array, self._dtype)
        if np.array_equal(rounded, array, equal_nan=True):
            return Sampled(array)
        # plans keep parameters in either precision
        kept = array if array.size <= PARAMETERS else rounded
        return Sampled(array.astype(DOUBLE), tuple(kept if draw % 2 else rounded for draw in range(self._draws)))

    def _value(self, name: str) -> Sampled:
        found = self._values.get(name)
        if found is None:
            constant = self._walker.constant(name)
            if constant is None:
                raise GraphError(f"the input {name!r} is missing; without it nothing can be compared")
            found = self._given(as_stored(constant))
        return found

    def _release(self, names: Iterable[str]) -> None:
        live = sum(value.bytes for value in self._values.values())
        self.walk.peak_bytes = max(self.walk.peak_bytes, live)
        if live > LARGE and self._draws > FEW:
            # the outputs of large models have enough elements for two draws to show their spread
            self._draws = FEW
            self._values = {n: Sampled(v.reference, v.draws[:FEW]) for n, v in self._values.items()}
        for name in names:
            self._readers[name] -= 1
            if not self._readers[name]:
                self._values.pop(name, None)

    def _node(self, number: int, node: onnx.NodeProto) -> None:
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
            self._values[node.output[0]] = self._given(as_stored(self._walker.constant_node(node)))
            return
        operands = [self._value(name) if name else None for name in node.input]
        inner = {name for a in node.attribute if a.type == onnx.AttributeProto.GRAPH for name in captured(a.g)}
        outer = {name: self._value(name) for name in inner}
        for place, made in enumerate(self._sampled(number, node, operands, outer)):
            if made is not None and self._readers[node.output[place]]:
                self._values[node.output[place]] = made
        self._release(set(node_inputs(node)))

    def _sampled(
        self, number: int, node: onnx.NodeProto, operands: Sequence[Sampled | None], outer: Mapping[str, Sampled]
    ) -> list[Sampled | None]:
        """The node's outputs for the reference and all draws."""
        exact = not any(value.draws for value in (*operands, *outer.values()) if value is not None)
        plain = [None if value is None else value.reference for value in operands]
        around = {name: value.reference for name, value in outer.items()}
        rounded = [None if value is None else self._rounded(value) for value in operands]
        given = (plain, around), (rounded, {name: self._rounded(value) for name, value in outer.items()})
        found = opinion(self._kernels, node, *given)
        self._note(node, found)
        stored = [self._stored(array, name) for array, name in zip(found.single, node.output, strict=True)]
        errors = [
            None if a is None or r is None else rounding(a, r, found.errs)
            for a, r in zip(stored, found.reference, strict=True)
        ]
        floats = any(array is not None and array.dtype.kind == "f" for array in stored)
        if exact and not (floats and any(e is not None and e.any() for e in errors)):
            return [None if array is None else Sampled(array) for array in stored]
        samples: list[list[Array | None]] = []
        for draw in range(self._draws):
            generator = np.random.default_rng([self._seed, number, draw])
            if exact:
                outputs = self._of_perturbed(node, found, plain, around, generator)
            else:
                outputs = self._of_draw(node, found, operands, outer, draw)
            samples.append(
                [
                    noisy(self._stored(array, name), error, self._noise, self._dtype, generator)
                    for array, name, error in zip(outputs, node.output, errors, strict=True)
                ]
            )
        return [
            None if array is None else settled(array, [sample[place] for sample in samples])
            for place, array in enumerate(found.reference)
        ]

    def _note(self, node: onnx.NodeProto, found: Opinion) -> None:
        self.walk.by[found.reference_by] += 1
        if not found.double:
            self.walk.single[node.op_type] += 1
        if found.dispute:
            self.walk.disputes.append(found.dispute)

    def _of_draw(
        self,
        node: onnx.NodeProto,
        found: Opinion,
        operands: Sequence[Sampled | None],
        outer: Mapping[str, Sampled],
        draw: int,
    ) -> list[Array | None]:
        """The node in a draw; rounded parameters do not change its extents."""
        own = [_of_draw(value, draw) for value in operands]
        taken = {name: _of_draw(value, draw) for name, value in outer.items()}
        made = self._kernels.single(node, own, taken, (found.single_by,)).outputs
        small = [v is not None and v.reference.dtype == DOUBLE and v.reference.size <= PARAMETERS for v in operands]
        if self._dtype not in NARROWED or not any(small) or _shapes(made) == _shapes(found.single):
            return made
        own = [
            self._rounded(value, False) if value is not None and one else array
            for value, one, array in zip(operands, small, own, strict=True)
        ]
        return self._kernels.single(node, own, taken, (found.single_by,)).outputs

    def _of_perturbed(
        self,
        node: onnx.NodeProto,
        found: Opinion,
        operands: Sequence[Array | None],
        outer: Mapping[str, Array],
        generator: np.random.Generator,
    ) -> list[Array | None]:
        """The node for exact operands of which the largest are off by up to an ulp, if it takes them."""
        if found.errs is None and any(a is not None and a.dtype == DOUBLE for a in found.single):
            return found.single
        try:
            made = self._kernels.single(node, self._perturbed(operands, generator), outer, (found.single_by,))
        except NoKernelError:
            return found.single
        return made.outputs if _shapes(made.outputs) == _shapes(found.single) else found.single

    def _rounded(self, value: Sampled, stored: bool = True) -> Array:
        """A value of the reference as the plan would store it, or in single precision."""
        array = value.reference
        if not value.draws or array.dtype != DOUBLE or value.draws[0].dtype == DOUBLE:
            return array
        with np.errstate(over="ignore"):
            single = array.astype(SINGLE)
        return narrowed(single, self._dtype) if stored and single.size > PARAMETERS else single

    def _stored(self, array: Array | None, name: str) -> Array | None:
        if array is None:
            return None
        declared = self._walker.declared.get(name)
        if array.dtype == SINGLE and declared is not None:
            with np.errstate(over="ignore"):
                return array.astype(declared).astype(SINGLE)
        return narrowed(array, self._dtype) if array.dtype == SINGLE else array

    @staticmethod
    def _perturbed(operands: Sequence[Array | None], generator: np.random.Generator) -> list[Array | None]:
        """Exact operands of a node that rounds, the largest of them changed by up to an ulp."""
        sizes = [a.size for a in operands if a is not None and a.dtype.kind == "f"]
        largest = max(sizes, default=0)
        return [
            a if a is None or a.dtype.kind != "f" or a.size < largest else relative_noise(a, generator)
            for a in operands
        ]


def settled(reference: Array, samples: Sequence[Array | None]) -> Sampled:
    """A tensor of a node; without draws if all of them are equal to the reference."""
    draws = tuple(sample for sample in samples if sample is not None)
    equal_nan = reference.dtype.kind == "f"
    if all(d.shape == reference.shape and np.array_equal(d, reference, equal_nan=equal_nan) for d in draws):
        return Sampled(draws[0] if draws else reference)
    return Sampled(reference, draws)


def _shapes(arrays: Sequence[Array | None]) -> list[tuple[int, ...] | None]:
    return [None if array is None else array.shape for array in arrays]


def _of_draw(value: Sampled | None, draw: int) -> Array:
    if value is None:
        return None  # type: ignore[return-value]
    return value.draws[draw] if value.draws else value.reference


_NARROW = {onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}


def _declared_floats(model: onnx.ModelProto) -> dict[str, np.dtype[np.generic]]:
    """The tensors that the model itself says are half precision, with their types."""
    mentioned = {tensor.data_type for tensor in model.graph.initializer}
    mentioned |= {value.type.tensor_type.elem_type for value in model.graph.input}
    mentioned |= {a.i for node in model.graph.node for a in node.attribute if a.name in ("to", "dtype")}
    mentioned |= {a.t.data_type for node in model.graph.node for a in node.attribute if a.HasField("t")}
    if not mentioned & _NARROW:
        return {}
    light = onnx.ModelProto()
    light.CopyFrom(model)
    for tensor in light.graph.initializer:
        held = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        if tensor.name not in {value.name for value in light.graph.input}:
            light.graph.input.append(held)
    del light.graph.initializer[:]
    inferred = onnx.shape_inference.infer_shapes(light).graph
    return {
        value.name: onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        for value in (*inferred.value_info, *inferred.output)
        if value.type.tensor_type.elem_type in _NARROW
    }

"""What launches compute, with numpy: their kernels' expressions for given contents of the tensors that they read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from smartmem_rules.analysis.everywhere import covers
from smartmem_rules.exchange.kernels import KernelClaim, Store
from smartmem_rules.plan.kernel.launch import Launch, Wave
from smartmem_rules.plan.kernel.model import Kernel, Stored
from smartmem_rules.plan.probe import UNSET_BYTE
from smartmem_rules.provenance.kernels import claim_of
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import (
    Apply,
    Const,
    Equation,
    Expr,
    FromIndex,
    Read,
    Reduce,
    Select,
    TensorType,
    free_variables,
    reads,
    substitute_reads,
    substitute_variables,
)
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.interpreter.interpret import InterpretError, evaluate_equations
from smartmem_rules.tensor.primitives import Array, compute_dtype, storage_dtype
from smartmem_rules.tensor.substitution import substitute

_SINGLE = frozenset({"float32", "float16", "bfloat16"})
_VALUE = "@value"
_PLACE = "@place"


class Unanswered(Exception):
    """What a launch computes is not known here; the message says why."""


def computed(
    launch: Launch, values: Mapping[str, Array], tensors: Mapping[str, Stored], double: bool = False
) -> dict[str, Array]:
    """All tensors that the kernels of a launch store, in the types in which memory holds them.

    Args:
        values: what the tensors hold that the launch reads.
        double: compute floats in double precision until they are stored.

    Raises:
        Unanswered: the kernels are of a form that this does not compute.
    """
    if isinstance(launch, Wave) or any(isinstance(step, Wave) for step in launch.steps):
        raise Unanswered("it computes shares of recurrences")
    known = dict(values)
    found: dict[str, Array] = {}
    for kernel in launch.kernels:
        try:
            made = _Kernel(kernel, known, tensors, double).stored()
        except (InterpretError, KeyError, ValueError, IndexError) as error:
            raise Unanswered(f"{kernel.name} cannot be interpreted: {error}") from error
        known.update(made)
        found.update(made)
    return found


class _Kernel:
    """One kernel, whose stages become tensors with an axis for each loop that they depend on."""

    def __init__(self, kernel: Kernel, known: Mapping[str, Array], tensors: Mapping[str, Stored], double: bool) -> None:
        self._kernel = kernel
        self._double = double
        self._claim: KernelClaim = claim_of(kernel)
        self._known: dict[str, Array] = dict(known)
        self._tensors = tensors
        self._loops: dict[str, tuple[Var, ...]] = {}

    def stored(self) -> dict[str, Array]:
        if self._kernel.form == "scan":
            return self._steps()
        for name, stage in self._claim.stages.items():
            value = self._opened(stage.value)
            loops = tuple(v for v in _by_name(free_variables(value)) if v not in stage.axes)
            self._loops[name] = loops
            self._known[name] = self._evaluated(name, (*loops, *stage.axes), value)
        found: dict[str, Array] = {}
        for store in self._claim.stores:
            self._store(store, found)
            self._known[store.tensor] = found[store.tensor]
        return found

    def _steps(self) -> dict[str, Array]:
        """A recurrence: its stores, step by step, each reading what earlier ones stored."""
        if self._claim.stages:
            raise Unanswered("it is a recurrence with stages")
        steps = self._kernel.axes[0]
        found: dict[str, Array] = {}
        for store in self._claim.stores:
            stored = self._tensors[store.tensor]
            # the next step reads halves as memory holds them; in single precision they are kept wide, so that the two
            # differ by what their rounding adds up to
            wide = np.dtype(np.float64) if self._double else compute_dtype(stored.storage)
            rounded = stored.storage not in _SINGLE or (self._double and stored.storage != "float32")
            kept = storage_dtype(stored.storage) if rounded else wide
            found[store.tensor] = np.zeros(stored.type.shape, kept)
        self._known.update(found)
        for step in range(steps.extent):
            at = {steps: Index(step)}
            for store in self._claim.stores:
                indices = tuple(substitute(index, at) for index in store.indices)
                self._put(indices, substitute_variables(self._opened(store.value), at), found[store.tensor])
        return {name: array.astype(storage_dtype(self._tensors[name].storage)) for name, array in found.items()}

    def _opened(self, expr: Expr) -> Expr:
        """The expression, reading stages at the loops that these depend on."""
        opened = substitute_reads(expr, self._read)
        return in_double(opened) if self._double else opened

    def _read(self, read: Read) -> Expr:
        loops = self._loops.get(read.tensor)
        if loops is None:
            return read
        return Read(read.tensor, (*map(variable, loops), *read.indices), read.dtype)

    def _store(self, store: Store, found: dict[str, Array]) -> None:
        stored = self._tensors[store.tensor]
        if store.tensor not in found:
            before = self._known.get(store.tensor)
            found[store.tensor] = self._unwritten(stored) if before is None else before.copy()
        self._put(store.indices, self._opened(store.value), found[store.tensor])

    def _unwritten(self, stored: Stored) -> Array:
        """A tensor before the kernel, which may write a piece of it only: what memory holds that is not set."""
        shape, dtype = stored.type.shape, storage_dtype(stored.storage)
        written = [store.indices for store in self._claim.stores if store.tensor == stored.name]
        if (stored.layout.memory == "image" or dtype.kind == "b") and not covers(written, shape):
            raise Unanswered("it writes a piece of an image or of truth values")
        return np.full(dtype.itemsize * stored.type.elements, UNSET_BYTE, np.uint8).view(dtype).reshape(shape)

    def _put(self, indices: tuple[Index, ...], value: Expr, target: Array) -> None:
        """Write the values of an expression to their places in a tensor."""
        axes = tuple(dict.fromkeys(v for index in indices for v in _by_name(index.variables)))
        if not free_variables(value) <= set(axes):
            raise Unanswered("a store depends on a loop that no index has")
        values = self._evaluated(_VALUE, axes, value)
        places = tuple(
            self._evaluated(_PLACE, axes, FromIndex(index, "int64")) if index.terms else np.int64(index.constant)
            for index in indices
        )
        target[places] = values.reshape(tuple(v.extent for v in axes))

    def _evaluated(self, name: str, axes: tuple[Var, ...], value: Expr) -> Array:
        type_ = TensorType(value.dtype, tuple(v.extent for v in axes))
        needed = {read.tensor: self._known[read.tensor] for read in reads(value)}
        return evaluate_equations([Equation(name, axes, value, type_)], self._known | needed, {name})[name]


def in_double(expr: Expr) -> Expr:
    """The expression with its floats in double precision, and its constants what single precision has of them.

    Raises:
        Unanswered: it looks at the bits of a float.
    """
    dtype = "float64" if expr.dtype in _SINGLE else expr.dtype
    match expr:
        case Const(value=value) if dtype != expr.dtype:
            return Const(float(np.float32(value)), dtype)
        case Read() | FromIndex():
            return replace(expr, dtype=dtype)
        case Apply(function="bitcast"):
            raise Unanswered("it looks at bits")
        case Apply(arguments=arguments):
            return replace(expr, arguments=tuple(map(in_double, arguments)), dtype=dtype)
        case Select(then=then, otherwise=otherwise):
            return replace(expr, then=in_double(then), otherwise=in_double(otherwise), dtype=dtype)
        case Reduce(body=body):
            return replace(expr, body=in_double(body), dtype=dtype)
    return expr


def _by_name(variables: Iterable[Var]) -> list[Var]:
    return sorted(variables, key=lambda v: v.name)

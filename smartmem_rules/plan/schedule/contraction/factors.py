"""Constant factors in the order in which templates read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from smartmem_rules.guards.magnitudes import is_moderate, magnitudes
from smartmem_rules.language.blocks.device import ImageLimits
from smartmem_rules.language.blocks.schedule import FewBitWeights
from smartmem_rules.plan.kernel.byte_factors import byte_factor, packed_bytes
from smartmem_rules.plan.kernel.model import Contraction, Kernel, Layout, Stored, row_major
from smartmem_rules.plan.kernel.packing import holds, pack
from smartmem_rules.plan.kernel.storage import HALVES, buffer_dtype
from smartmem_rules.plan.kernel.words import packed_words
from smartmem_rules.plan.schedule.contraction.beside import Beside
from smartmem_rules.plan.schedule.contraction.few_bits import FewBits, few_bits
from smartmem_rules.plan.schedule.contraction.sizing import count
from smartmem_rules.plan.schedule.contraction.winograd import transformed_weights
from smartmem_rules.plan.schedule.contraction.winograd_sizes import WinogradProblem
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import (
    Equation,
    Expr,
    TensorType,
    free_variables,
    reads,
    substitute_variables,
    tensors_read,
)
from smartmem_rules.tensor.index import variable
from smartmem_rules.tensor.interpreter.interpret import evaluate_view


@dataclass(frozen=True)
class PackedPanel:
    """A packed constant factor: the tensor that holds it and the batch variables that it depends on."""

    name: str
    batch: tuple[Var, ...]

    @property
    def tensors(self) -> tuple[str, ...]:
        """All tensors that hold it."""
        return (self.name,)


@dataclass(frozen=True, kw_only=True)
class PackedWords(PackedPanel):
    """A constant factor as integers of few bits, several in a word, with a scale for each block (`kernel.words`).

    Attributes:
        bits: of an integer.
        block: steps of the reduction that share a scale.
        scales, zeros: the tensors that hold them; no zeros where all of them are `zero`.
        ahead: bytes by which words are requested before a tile of one row reads them.
    """

    bits: int
    block: int
    scales: str
    zeros: str | None
    zero: int
    ahead: int = 0

    @property
    def tensors(self) -> tuple[str, ...]:
        return (self.name, self.scales) if self.zeros is None else (self.name, self.scales, self.zeros)


@dataclass(frozen=True, kw_only=True)
class PackedBytes(PackedPanel):
    """A constant factor as integers of 8 bits, four steps in a word (`kernel.byte_factors`).

    Attributes:
        sums, zeros: the tensors that hold what each column needs; no zeros where all of them are 0.
    """

    sums: str
    zeros: str | None

    @property
    def tensors(self) -> tuple[str, ...]:
        return (self.name, self.sums) if self.zeros is None else (self.name, self.sums, self.zeros)


class Packer:
    """Packs each factor once for each template that reads it.

    Args:
        constants: values of the constant tensors.
        tensors: the stored tensors; packed factors are added.
        storage: how their elements are stored.
        limits: of images, where weights may lie in them.
    """

    def __init__(
        self,
        constants: Mapping[str, np.ndarray],
        tensors: dict[str, Stored],
        storage: str,
        limits: ImageLimits | None,
    ) -> None:
        self.constants = constants
        self.tensors = tensors
        self.storage = storage
        self.limits = limits
        self._names: dict[tuple[object, ...], str] = {}
        self._words: dict[tuple[object, ...], PackedWords | None] = {}
        self._bytes: dict[tuple[object, ...], PackedBytes] = {}
        self._beside: Beside | None = None

    @contextmanager
    def beside(self) -> Iterator[None]:
        """In this block large factors are packed by a thread beside the planner's; behind it all of them are there."""
        with Beside() as self._beside:
            try:
                yield
            finally:
                self._beside = None

    def panel(self, n: Var, factor: Expr, c: Contraction, columns: int) -> PackedPanel:
        """The constant factor as tiles of columns, the reduction running inside a tile."""
        batch = tuple(v for v in c.batch if v in free_variables(factor))
        tiles = -(-n.extent // columns)
        key = ("panel", _canonical(factor, (*batch, *c.k, n)), columns)
        name = self._names.get(key)
        if name is None:
            values = self._values(factor, (*batch, *c.k, n))

            def rows() -> np.ndarray:
                every = values.astype(np.float32, copy=False).reshape(count(batch), count(c.k), n.extent)
                if n.extent < tiles * columns:
                    every = np.pad(every, ((0, 0), (0, 0), (0, tiles * columns - n.extent)))
                return every.reshape(*every.shape[:2], tiles, columns).transpose(0, 2, 1, 3)

            if self._beside is not None and self.storage == "float32":  # which holds all values
                made = self._beside.made(count((*batch, *c.k)) * tiles * columns, rows)
                name = self._keep(factor, key, made, placed=True)
            else:
                name = self._keep(factor, key, rows())
        return PackedPanel(name, batch)

    def words(self, n: Var, factor: Expr, c: Contraction, columns: int, s: FewBitWeights) -> PackedWords | None:
        """The constant factor as integers of few bits in the same tiles; None where the schedule does not take it."""
        found = few_bits(factor, c.k) if count((*c.k, n)) >= s.elements else None
        if found is None:
            return None
        batch = tuple(v for v in c.batch if v in free_variables(factor))
        key = ("words", _canonical(factor, (*batch, *c.k, n)), columns)
        if key not in self._words:
            self._words[key] = self._in_words(factor, found, (*batch, *c.k, n), columns, s.bits)
        made = self._words[key]
        return made and replace(made, batch=batch, ahead=s.ahead)

    def bytes(self, n: Var, factor: Expr, c: Contraction, columns: int) -> PackedBytes:
        """The constant factor of a product of bytes in the same tiles."""
        batch = tuple(v for v in c.batch if v in free_variables(factor))
        key = ("bytes", _canonical(factor, (*batch, *c.k, n)), columns)
        if key not in self._bytes:
            found = byte_factor(factor, c.k)
            assert found is not None
            elements = self._values(found.elements, (*batch, *c.k, n)).reshape(count(batch), -1, n.extent)
            zero = self._values(found.zero, (*batch, n)).reshape(count(batch), n.extent)
            packed, name = packed_bytes(elements, zero, columns), self._unused(factor)
            self._store(name, packed.words, "uint32")
            self._store(f"{name}.sums", packed.sums, "int32")
            if packed.zeros is not None:
                self._store(f"{name}.zeros", packed.zeros, "int32")
            zeros = None if packed.zeros is None else f"{name}.zeros"
            self._bytes[key] = PackedBytes(name, (), sums=f"{name}.sums", zeros=zeros)
        return replace(self._bytes[key], batch=batch)

    def _in_words(
        self, factor: Expr, found: FewBits, axes: tuple[Var, ...], columns: int, widths: tuple[int, ...]
    ) -> PackedWords | None:
        *batch, n = (v for v in axes if v not in found.k)
        shape = (count(tuple(batch)), -1, n.extent)
        of_blocks = (*batch, found.blocks, n)
        packed = packed_words(
            self._integers(found, tuple(batch), n),
            self._values(found.zero, of_blocks).reshape(shape),
            self._values(found.scale, of_blocks).reshape(shape),
            block=found.block,
            columns=columns,
            widths=widths,
        )
        if packed is None:
            return None
        name, zeros = self._unused(factor), packed.zeros
        self._store(name, packed.words, "uint32")
        self._store(f"{name}.scales", packed.scales, "float32")
        if isinstance(zeros, np.ndarray):
            self._store(f"{name}.zeros", zeros, "uint8")
        return PackedWords(
            name,
            (),
            bits=packed.bits,
            block=found.block,
            scales=f"{name}.scales",
            zeros=f"{name}.zeros" if isinstance(zeros, np.ndarray) else None,
            zero=zeros if isinstance(zeros, int) else 0,
        )

    def _integers(self, found: FewBits, batch: tuple[Var, ...], n: Var) -> np.ndarray:
        """The integers [batch, depth, columns], evaluated in the order in which the model has them."""
        columns_first = any(v in read.indices[-1].variables for read in reads(found.integers) for v in found.k)
        axes = (*batch, n, *found.k) if columns_first else (*batch, *found.k, n)
        values = self._values(found.integers, axes)
        if np.abs(values).max() <= np.iinfo(np.int16).max:
            values = values.astype(np.int16)
        shape = (count(batch), n.extent, -1) if columns_first else (count(batch), -1, n.extent)
        values = values.reshape(shape)
        return values.transpose(0, 2, 1) if columns_first else values

    def transformed(self, n: Var, factor: Expr, problem: WinogradProblem, columns: int) -> PackedPanel | None:
        """The weights of a filtered convolution; None where their sums could overflow or are NaN."""
        w, transform = problem.windows, problem.transform
        batch = tuple(v for v in problem.c.batch if v in free_variables(factor))
        axes = (*batch, n, w.channel, w.ky, w.kx)
        key = ("winograd", _canonical(factor, axes), columns, transform.outputs)
        name = self._names.get(key)
        if name is None:
            values = self._values(factor, axes).reshape(count(batch), *(v.extent for v in axes[len(batch) :]))
            if not is_moderate(magnitudes(values), "float32"):
                return None
            name = self._keep(factor, key, transformed_weights(values, transform, columns), placed=True)
        return PackedPanel(name, batch)

    def columns(self, kernel: Kernel, c: Contraction, width: int) -> PackedPanel:
        """The constant factors side by side, one row for each step of the reduction, each filled up to whole tiles."""
        factors = [(c.n, c.b), *((part.n, part.b) for part in kernel.parts)]
        batch = tuple(v for v in c.batch if any(v in free_variables(b) for _, b in factors))
        key = ("columns", tuple(_canonical(b, (*batch, *c.k, n)) for n, b in factors), width)
        name = self._names.get(key)
        if name is None:
            blocks = []
            for n, b in factors:
                values = self._values(b, (*batch, *c.k, n)).reshape(-1, n.extent)
                blocks.append(np.pad(values.astype(np.float32, copy=False), ((0, 0), (0, -n.extent % width))))
            flat = np.concatenate(blocks, axis=1)
            name = self._keep(c.b, key, flat, self._weight_layout(c.b, flat.shape))
        return PackedPanel(name, batch)

    def matrix(self, factor: Expr, axes: tuple[Var, ...]) -> str:
        """The constant factor as a matrix: its last axis along the rows, all others down."""
        key = ("tile", _canonical(factor, axes))
        name = self._names.get(key)
        if name is None:
            values = self._values(factor, axes)
            flat = values.reshape(count(axes[:-1]), axes[-1].extent)
            name = self._keep(factor, key, flat, self._weight_layout(factor, flat.shape))
        return name

    def _weight_layout(self, b: Expr, shape: tuple[int, ...]) -> Layout:
        if self.limits is not None and any(self.tensors[t].layout.memory == "image" for t in tensors_read(b)):
            layout = Layout("image", (0, 1), 1)
            width, height = layout.image_size(shape)
            if width <= self.limits.width and height <= self.limits.height:
                return layout
        return row_major(2)

    def _values(self, expr: Expr, axes: tuple[Var, ...]) -> np.ndarray:
        """The elements of a factor, perhaps as a view."""
        type_ = TensorType(expr.dtype, tuple(v.extent for v in axes))
        needed = {t: self.constants[t] for t in tensors_read(expr)}
        return evaluate_view(Equation("packed", axes, expr, type_), needed)

    def _keep(
        self,
        factor: Expr,
        key: tuple[object, ...],
        values: np.ndarray,
        layout: Layout | None = None,
        placed: bool = False,
    ) -> str:
        """Store the elements of a factor.

        Args:
            layout: None stores them one after the other.
            placed: they are in order, in memory as `room` gives it, and nobody else's.
        """
        name = self._names[key] = self._unused(factor)
        storage = self.storage if holds(self.storage, values) else "float32"
        kept = values.reshape(-1) if placed and values.dtype == buffer_dtype(storage) else None
        self._store(name, values, storage, layout, kept)
        return name

    def _unused(self, factor: Expr) -> str:
        """A name for what is made of a factor."""
        return f"{tensors_read(factor)[0]}@{len(self._names) + len(self._words) + len(self._bytes)}"

    def _store(
        self,
        name: str,
        values: np.ndarray,
        storage: str,
        layout: Layout | None = None,
        packed: np.ndarray | None = None,
    ) -> None:
        dtype = "float32" if storage in HALVES else storage
        self.tensors[name] = Stored(
            name=name,
            type=TensorType(dtype, (values.size,) if layout is None else values.shape),
            layout=layout or Layout("buffer", (0,)),
            role="constant",
            storage=storage,
            packed=pack(values, layout or row_major(values.ndim), storage) if packed is None else packed,
        )


def _canonical(expr: Expr, axes: tuple[Var, ...]) -> Expr:
    """The expression with its axes renamed, so that equal factors are packed once."""
    return substitute_variables(expr, {v: variable(Var(f"axis{i}", v.extent)) for i, v in enumerate(axes)})

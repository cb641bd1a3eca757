"""Constant factors in the order in which templates read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from smartmem_rules.language.blocks.device import ImageLimits
from smartmem_rules.plan.kernel.model import Contraction, Kernel, Layout, Stored, row_major
from smartmem_rules.plan.kernel.packing import holds, pack
from smartmem_rules.plan.schedule.contraction.sizing import count
from smartmem_rules.plan.schedule.contraction.winograd import transformed_weights
from smartmem_rules.plan.schedule.contraction.winograd_sizes import WinogradProblem
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import (
    Equation,
    Expr,
    TensorType,
    free_variables,
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

    def panel(self, n: Var, factor: Expr, c: Contraction, columns: int) -> PackedPanel:
        """The constant factor as tiles of columns, the reduction running inside a tile."""
        batch = tuple(v for v in c.batch if v in free_variables(factor))
        tiles = -(-n.extent // columns)
        key = ("panel", _canonical(factor, (*batch, *c.k, n)), columns)
        name = self._names.get(key)
        if name is None:
            values = self._values(factor, (*batch, *c.k, n)).astype(np.float32, copy=False)
            values = values.reshape(count(batch), count(c.k), n.extent)
            if n.extent < tiles * columns:
                values = np.pad(values, ((0, 0), (0, 0), (0, tiles * columns - n.extent)))
            rows = values.reshape(*values.shape[:2], tiles, columns).transpose(0, 2, 1, 3)
            name = self._keep(factor, key, rows)
        return PackedPanel(name, batch)

    def transformed(self, n: Var, factor: Expr, problem: WinogradProblem, columns: int) -> PackedPanel:
        w, transform = problem.windows, problem.transform
        batch = tuple(v for v in problem.c.batch if v in free_variables(factor))
        axes = (*batch, n, w.channel, w.ky, w.kx)
        key = ("winograd", _canonical(factor, axes), columns, transform.outputs)
        name = self._names.get(key)
        if name is None:
            values = self._values(factor, axes).reshape(count(batch), *(v.extent for v in axes[len(batch) :]))
            name = self._keep(factor, key, transformed_weights(values, transform, columns))
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

    def _keep(self, factor: Expr, key: tuple[object, ...], values: np.ndarray, layout: Layout | None = None) -> str:
        """Store the elements of a factor.

        Args:
            layout: None stores them one after the other.
        """
        name = f"{tensors_read(factor)[0]}@{len(self._names)}"
        self._names[key] = name
        type_ = TensorType("float32", (values.size,) if layout is None else values.shape)
        storage = self.storage if holds(self.storage, values) else "float32"
        packed = pack(values, layout or row_major(values.ndim), storage)
        self.tensors[name] = Stored(
            name=name,
            type=type_,
            layout=layout or Layout("buffer", (0,)),
            role="constant",
            storage=storage,
            packed=packed,
        )
        return name


def _canonical(expr: Expr, axes: tuple[Var, ...]) -> Expr:
    """The expression with its axes renamed, so that equal factors are packed once."""
    return substitute_variables(expr, {v: variable(Var(f"axis{i}", v.extent)) for i, v in enumerate(axes)})

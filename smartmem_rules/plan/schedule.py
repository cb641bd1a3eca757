"""Sizes the kernels: which template realises a contraction, its register block, and the packing of constant factors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from smartmem_rules.language.syntax import Block
from smartmem_rules.plan.accounting import account_reads
from smartmem_rules.plan.contraction import is_constant
from smartmem_rules.plan.groups import operations
from smartmem_rules.plan.layouts import ImageLimits
from smartmem_rules.plan.model import Contraction, Kernel, Layout, PlanError, Stored, row_major
from smartmem_rules.tensor.expr import (
    Equation,
    Expr,
    Read,
    TensorType,
    free_variables,
    substitute_variables,
    tensors_read,
    walk,
)
from smartmem_rules.tensor.extents import is_symbolic, largest
from smartmem_rules.tensor.index import Index, Var, add, scale, variable
from smartmem_rules.tensor.interpret import evaluate_equations
from smartmem_rules.tensor.primitives import storage_dtype

STAGING_SHARE = 20
"""Columns are split over work-items, and rows staged for each, while staging is less than this part of the work."""


@dataclass(frozen=True)
class ContractionSchedule:
    """A `schedule NAME for contraction` block."""

    name: str
    kind: str
    memory: str
    template: str
    tuned: bool
    rows: tuple[int, ...]
    columns: int
    panel_bytes: int
    scratch_bytes: int
    items: int
    step_overhead: float
    smallest_block: int

    @staticmethod
    def of(block: Block) -> ContractionSchedule:
        entries = {e.key: e.values for e in block.entries}
        numbers = {k: int(v[0]) for k, v in entries.items() if v and isinstance(v[0], int)}
        return ContractionSchedule(
            block.name,
            str(entries["kind"][0]),
            str(entries["memory"][0]),
            str(entries["template"][0]),
            entries["tuned"][0] in ("yes", True),
            tuple(int(r) for r in entries["rows"]),
            numbers.get("columns", 4),
            numbers.get("panel_bytes", 0),
            numbers.get("scratch_bytes", 0),
            numbers.get("items", 1),
            float(entries.get("step_overhead", (0.0,))[0]),
            numbers.get("smallest_block", 1),
        )


def candidates(schedules: Mapping[str, Block], kind: str, memory: str, tuned: bool) -> tuple[ContractionSchedule, ...]:
    """The contraction schedules that the device and level admit, tuned ones first."""
    found = [ContractionSchedule.of(b) for b in schedules.values() if b.subject == "contraction"]
    admitted = [s for s in found if s.kind in (kind, "any") and s.memory in (memory, "any") and (tuned or not s.tuned)]
    if not admitted:
        raise PlanError(f"no contraction schedule for a {kind} device with {memory} memory: add one to schedule.smr")
    return tuple(sorted(admitted, key=lambda s: not s.tuned))


@dataclass(frozen=True)
class PackedPanel:
    """A packed constant factor: the tensor that holds it and the batch variables that it depends on."""

    name: str
    batch: tuple[Var, ...]


class Scheduler:
    """Gives every contraction its schedule and packs the constant factors.

    Args:
        constants: values of the constant tensors.
        tensors: the stored tensors; packed factors are added.
    """

    def __init__(
        self,
        schedules: tuple[ContractionSchedule, ...],
        constants: Mapping[str, np.ndarray],
        tensors: dict[str, Stored],
        storage: str,
        limits: ImageLimits | None = None,
    ) -> None:
        self.schedules = schedules
        self.constants = constants
        self.tensors = tensors
        self.storage = storage
        self.limits = limits
        self._packed: dict[tuple[object, ...], str] = {}

    def schedule(self, kernel: Kernel) -> None:
        c = kernel.contraction
        if c is None:
            return
        constant = bool(tensors_read(c.b)) and is_constant(c.b, self.constants) and not is_symbolic(_count((c.n, *c.k)))
        c = replace(c, k=self._ordered_k(c))
        kernel.contraction = c
        for schedule in self.schedules:
            if schedule.template == "panel":
                if self._panel(kernel, c, schedule, constant):
                    return
            elif not (c.stages or kernel.parts or kernel.stages):
                self._tile(kernel, c, schedule, constant)
                return
        raise PlanError(f"no schedule fits the contraction of {', '.join(kernel.origin)}")

    # --- order of the reduction ---

    def _ordered_k(self, c: Contraction) -> tuple[Var, ...]:
        """The reduction variables, the one along which the left factor is contiguous last."""
        strides: dict[Var, int] = {}
        for node in walk(c.a):
            if isinstance(node, Read) and node.tensor in self.tensors:
                stored = self.tensors[node.tensor]
                for index, stride in zip(node.indices, stored.layout.strides(stored.type.shape), strict=True):
                    for atom, coefficient in index.terms:
                        if isinstance(atom, Var) and atom in c.k:
                            strides[atom] = max(strides.get(atom, 0), largest(abs(coefficient * stride)))
        return tuple(sorted(c.k, key=lambda v: -strides.get(v, 1 << 60)))

    # --- the panel template ---

    def _panel(self, kernel: Kernel, c: Contraction, s: ContractionSchedule, constant: bool) -> bool:
        m, k = _most(c.m), _most(c.k)
        factors = [(c.n, c.b), *((part.n, part.b) for part in kernel.parts)]
        columns = 8 if all(largest(n.extent) <= 8 for n, _ in factors) else s.columns
        tiles = [-(-largest(n.extent) // columns) for n, _ in factors]
        if k * 4 * s.smallest_block > 4 * s.panel_bytes:
            return False
        fixed, row = _scratch(c, columns, constant)
        if kernel.stages:
            row += 4 * tiles[0] * columns
            fixed += sum(4 * _most(stage.axes) for stage in kernel.stages)
        if fixed + row * min(m, s.smallest_block) > s.scratch_bytes:
            return False
        rows = min(s.rows, key=lambda r: (-(-m // r) * (r + s.step_overhead), -r))
        most = max(1, min(s.panel_bytes // (4 * k), (s.scratch_bytes - fixed) // max(row, 1)) // rows) * rows
        several = m * _most(c.batch) > s.smallest_block
        costly = several and _staging(c) * STAGING_SHARE > 2 * k * sum(largest(n.extent) for n, _ in factors)
        smallest = rows if costly else s.smallest_block
        block_rows = self._block_rows(s, c, m, rows, most, constant, smallest)
        row_blocks = -(-m // block_rows) * _most(c.batch)
        tiles_per_block = sum(tiles)
        if row_blocks < s.items and constant and not costly and not kernel.stages:
            wanted = -(-s.items // row_blocks)
            tiles_per_block = max(min(sum(tiles), 4), -(-sum(tiles) // wanted))
        packed = [self._pack_panel(n, b, c, columns) for n, b in factors] if constant else [None]
        kernel.schedule = {
            "template": "rows" if kernel.stages else "panel", "name": s.name, "rows": rows, "columns": columns,
            "block_rows": block_rows, "tiles_per_block": tiles_per_block, "packed": packed,
        }  # fmt: skip
        if constant:
            account_reads(kernel, skip_right=True)
            kernel.reads = tuple(dict.fromkeys((*kernel.reads, *(p.name for p in packed if p is not None))))
        return True

    @staticmethod
    def _block_rows(
        s: ContractionSchedule, c: Contraction, m: int, rows: int, most: int, constant: bool, smallest: int
    ) -> int:
        if not constant and _most(c.batch) * 2 >= s.items:
            return min(most, -(-m // rows) * rows)
        wanted = -(-m * _most(c.batch) // s.items)
        block = max(wanted, smallest, rows)
        return min(most, -(-min(block, m) // rows) * rows)

    def _pack_panel(self, n: Var, factor: Expr, c: Contraction, columns: int) -> PackedPanel:
        """The constant factor as tiles of columns, the reduction running inside a tile."""
        batch = tuple(v for v in c.batch if v in free_variables(factor))
        tiles = -(-n.extent // columns)
        key = ("panel", _canonical(factor, (*batch, *c.k, n)), columns)
        name = self._packed.get(key)
        if name is None:
            values = self._evaluate(factor, (*batch, n, *c.k))
            flat = values.reshape(_count(batch), n.extent, _count(c.k))
            padded = np.zeros((flat.shape[0], tiles * columns, flat.shape[2]), np.float32)
            padded[:, : n.extent] = flat
            packed = padded.reshape(flat.shape[0], tiles, columns, -1).transpose(0, 1, 3, 2)
            name = self._keep(factor, key, np.ascontiguousarray(packed).reshape(-1), Layout("buffer", (0,)))
        return PackedPanel(name, batch)

    # --- the tile template ---

    def _tile(self, kernel: Kernel, c: Contraction, s: ContractionSchedule, constant: bool) -> None:
        kernel.schedule = {"template": "tile", "name": s.name, "rows": min(s.rows[0], _most(c.m))}
        if not constant:
            return
        batch = tuple(v for v in c.batch if v in free_variables(c.b))
        axes = (*batch, *c.k, c.n)
        key = ("tile", _canonical(c.b, axes))
        name = self._packed.get(key)
        if name is None:
            values = self._evaluate(c.b, axes)
            flat = values.reshape(_count((*batch, *c.k)), c.n.extent)
            name = self._keep(c.b, key, flat, self._weight_layout(c.b, flat.shape))
        position = Index(0)
        for var in axes[:-1]:
            position = add(scale(position, var.extent), variable(var))
        kernel.contraction = replace(c, b=Read(name, (position, variable(c.n)), "float32"))
        account_reads(kernel)

    def _weight_layout(self, b: Expr, shape: tuple[int, ...]) -> Layout:
        if self.limits is not None and any(self.tensors[t].layout.memory == "image" for t in tensors_read(b)):
            layout = Layout("image", (0, 1), 1)
            width, height = layout.image_size(shape)
            if width <= self.limits.width and height <= self.limits.height:
                return layout
        return row_major(2)

    # --- constants ---

    def _evaluate(self, expr: Expr, axes: tuple[Var, ...]) -> np.ndarray:
        type_ = TensorType(expr.dtype, tuple(v.extent for v in axes))
        needed = {t: self.constants[t] for t in tensors_read(expr)}
        return evaluate_equations([Equation("packed", axes, expr, type_)], needed)["packed"]

    def _keep(self, factor: Expr, key: tuple[object, ...], values: np.ndarray, layout: Layout) -> str:
        name = f"{tensors_read(factor)[0]}@{len(self._packed)}"
        self._packed[key] = name
        type_ = TensorType("float32", values.shape)
        packed = pack(values, layout, self.storage)
        self.tensors[name] = Stored(name, type_, layout, "constant", self.storage, packed)
        return name


def pack(values: np.ndarray, layout: Layout, storage: str) -> np.ndarray:
    """The elements in storage order: flat for a buffer, (height, width, 4) for an image."""
    dtype = np.dtype(np.uint8) if storage == "bool" else storage_dtype(storage)
    if layout.memory == "buffer":
        return np.ascontiguousarray(values.transpose(layout.order) if values.ndim else values).astype(dtype).reshape(-1)
    width, height = layout.image_size(values.shape)
    if layout.order and layout.lane_axis is None:
        texels = np.zeros((values.size, 4), dtype)
        texels[:, 0] = values.transpose(layout.order[:-1]).reshape(-1)
        return texels.reshape(height, width, 4)
    ordered = values.transpose(layout.order) if values.ndim else values.reshape(1)
    rest = -ordered.shape[-1] % 4
    padded = np.pad(ordered, [(0, 0)] * (ordered.ndim - 1) + [(0, rest)])
    return np.ascontiguousarray(padded).astype(dtype).reshape(height, width, 4)


def _staging(c: Contraction) -> int:
    """Scalar operations that staging one row of the left factor takes."""
    stages = sum(_most(stage.axes) * operations(stage.body) for stage in c.stages)
    return stages + _most(c.k) * operations(c.a)


def _scratch(c: Contraction, columns: int, constant: bool) -> tuple[int, int]:
    """Bytes of scratch memory that a panel contraction needs: once, and for each row of a block."""
    k = _most(c.k)
    fixed = 0 if constant else -(-largest(c.n.extent) // columns) * columns * k * 4
    row = 4 * k
    if c.scores is not None:
        padded = -(-largest(c.scores.n.extent) // columns) * columns
        fixed += padded * _most(c.scores.k) * 4
        row += 4 * padded + 4 * _most(c.scores.k)
    for stage in c.stages:
        fixed += 4 * _most(stage.axes)
    return fixed, row


def _canonical(expr: Expr, axes: tuple[Var, ...]) -> Expr:
    """The expression with its axes renamed, so that equal factors are packed once."""
    return substitute_variables(expr, {v: variable(Var(f"axis{i}", v.extent)) for i, v in enumerate(axes)})


def _count(variables: tuple[Var, ...]) -> int:
    return math.prod(v.extent for v in variables)


def _most(variables: tuple[Var, ...]) -> int:
    """The count at the greatest extents of open dimensions."""
    return largest(_count(variables))

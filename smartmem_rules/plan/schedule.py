"""Sizes the kernels: which template realises a contraction, its register block, and the packing of constant factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

from smartmem_rules.language.syntax import Block
from smartmem_rules.plan.accounting import account_reads
from smartmem_rules.plan.contraction import is_constant
from smartmem_rules.plan.group_schedule import Demand, GroupChoice, choose_group
from smartmem_rules.plan.groups import operations
from smartmem_rules.plan.layouts import ImageLimits
from smartmem_rules.plan.model import Contraction, Kernel, Layout, PlanError, Stored, row_major
from smartmem_rules.plan.row_arrays import row_bytes
from smartmem_rules.plan.sizing import ContractionSchedule, count, most, most_rows, panel_columns, right_factors
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
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, Var, add, scale, variable
from smartmem_rules.tensor.interpret import evaluate_equations
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.tensor.ranges import largest

STAGING_SHARE = 20
"""Columns are split over work-items, and rows staged for each, while staging is less than this part of the work."""


def candidates(
    schedules: Mapping[str, Block], kind: str, memory: str, tuned: bool, open_extents: bool = False
) -> tuple[ContractionSchedule, ...]:
    """The contraction schedules that the device and level admit, tuned ones first.

    Args:
        open_extents: whether the plan is made for ranges of extents, which not all templates can take.
    """
    found = [ContractionSchedule.of(b) for b in schedules.values() if b.subject == "contraction"]
    admitted = [s for s in found if s.kind in (kind, "any") and s.memory in (memory, "any") and (tuned or not s.tuned)]
    admitted = [s for s in admitted if s.open_extents or not open_extents]
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
        local_memory: int = 0,
    ) -> None:
        self.schedules = schedules
        self.constants = constants
        self.tensors = tensors
        self.storage = storage
        self.limits = limits
        self.local_memory = local_memory
        self._packed: dict[tuple[object, ...], str] = {}

    def schedule(self, kernel: Kernel) -> None:
        c = kernel.contraction
        if c is None:
            return
        constant = bool(tensors_read(c.b)) and is_constant(c.b, self.constants) and not is_symbolic(count((c.n, *c.k)))
        c = replace(c, k=self._ordered_k(c))
        kernel.contraction = c
        for schedule in self.schedules:
            if schedule.template == "panel":
                if self._panel(kernel, c, schedule, constant):
                    return
            elif schedule.template == "group":
                if self._group(kernel, c, schedule, constant):
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
        m, k = most(c.m), most(c.k)
        factors = right_factors(kernel)
        columns = panel_columns(kernel, s)
        tiles = [-(-largest(n.extent) // columns) for n, _ in factors]
        capacity = most_rows(kernel, c, s, constant)
        if capacity == 0:
            return False
        given = kernel.schedule.get("block_rows")
        rows = min(s.rows, key=lambda r: (-(-(given or m) // r) * (r + s.step_overhead), -r))
        rows_kept = max(1, capacity // rows) * rows
        several = m * most(c.batch) > s.smallest_block
        costly = several and _staging(c) * STAGING_SHARE > 2 * k * sum(largest(n.extent) for n, _ in factors)
        smallest = rows if costly else s.smallest_block
        block_rows = given or self._block_rows(s, c, m, rows, rows_kept, constant, smallest)
        row_blocks = -(-m // block_rows) * most(c.batch)
        tiles_per_block = sum(tiles)
        if row_blocks < s.items and constant and not costly and not kernel.stages and given is None:
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
        s: ContractionSchedule, c: Contraction, m: int, rows: int, kept: int, constant: bool, smallest: int
    ) -> int:
        if not constant and most(c.batch) * 2 >= s.items:
            return min(kept, -(-m // rows) * rows)
        wanted = -(-m * most(c.batch) // s.items)
        block = max(wanted, smallest, rows)
        return min(kept, -(-min(block, m) // rows) * rows)

    def _pack_panel(self, n: Var, factor: Expr, c: Contraction, columns: int) -> PackedPanel:
        """The constant factor as tiles of columns, the reduction running inside a tile."""
        batch = tuple(v for v in c.batch if v in free_variables(factor))
        tiles = -(-n.extent // columns)
        key = ("panel", _canonical(factor, (*batch, *c.k, n)), columns)
        name = self._packed.get(key)
        if name is None:
            values = self._evaluate(factor, (*batch, n, *c.k))
            flat = values.reshape(count(batch), n.extent, count(c.k))
            padded = np.zeros((flat.shape[0], tiles * columns, flat.shape[2]), np.float32)
            padded[:, : n.extent] = flat
            packed = padded.reshape(flat.shape[0], tiles, columns, -1).transpose(0, 1, 3, 2)
            name = self._keep(factor, key, np.ascontiguousarray(packed).reshape(-1), Layout("buffer", (0,)))
        return PackedPanel(name, batch)

    # --- the template of work-groups ---

    def _group(self, kernel: Kernel, c: Contraction, s: ContractionSchedule, constant: bool) -> bool:
        """Tiles by the model of `group_cost`; False where the template does not realise the contraction."""
        if kernel.stages or (kernel.parts and not constant) or count(c.k) < min(t.step for t in s.tiles) // 2:
            return False
        columns = (c.n.extent, *(part.n.extent for part in kernel.parts))
        inner = 0 if c.scores is None else count(c.scores.k) * c.scores.n.extent
        demand = Demand(count(c.batch), count(c.m), columns, count(c.k), row_bytes(c), inner)
        choice = choose_group(s.tiles, s.splits, demand, s.units, self.local_memory)
        if choice is None:
            return False
        packed = self._pack_columns(kernel, c, choice.tile.columns) if constant else None
        kernel.schedule = {"template": "group", "name": s.name, **asdict(choice.tile), "splits": choice.splits}
        kernel.schedule["packed"] = packed
        if packed is not None:
            account_reads(kernel, skip_right=True)
            kernel.reads = tuple(dict.fromkeys((*kernel.reads, packed.name)))
        if choice.splits > 1:
            self._split(kernel, choice, demand)
        return True

    def _split(self, kernel: Kernel, choice: GroupChoice, demand: Demand) -> None:
        """Memory in which work-groups that share a reduction leave their sums and count their arrivals."""
        tile = choice.tile
        tiles = demand.batch * -(-demand.m // tile.rows) * sum(-(-n // tile.columns) for n in demand.columns)
        sums = TensorType("float32", (tiles * choice.splits * tile.rows * tile.columns,))
        partials, arrivals = f"{kernel.name}@partials", f"{kernel.name}@arrivals"
        self.tensors[partials] = Stored(partials, sums, row_major(1), "intermediate", "float32")
        zeros = np.zeros(tiles, np.int32)
        arrived = TensorType("int32", zeros.shape)
        self.tensors[arrivals] = Stored(arrivals, arrived, row_major(1), "constant", "int32", zeros)
        kernel.schedule |= {"partials": partials, "arrivals": arrivals}
        kernel.writes = (*kernel.writes, partials, arrivals)

    def _pack_columns(self, kernel: Kernel, c: Contraction, width: int) -> PackedPanel:
        """The constant factors side by side, one row for each step of the reduction, each filled up to whole tiles."""
        factors = [(c.n, c.b), *((part.n, part.b) for part in kernel.parts)]
        batch = tuple(v for v in c.batch if any(v in free_variables(b) for _, b in factors))
        key = ("columns", tuple(_canonical(b, (*batch, *c.k, n)) for n, b in factors), width)
        name = self._packed.get(key)
        if name is None:
            blocks = []
            for n, b in factors:
                values = self._evaluate(b, (*batch, *c.k, n)).reshape(-1, n.extent)
                blocks.append(np.pad(values.astype(np.float32), ((0, 0), (0, -n.extent % width))))
            flat = np.concatenate(blocks, axis=1)
            name = self._keep(c.b, key, flat, self._weight_layout(c.b, flat.shape))
        return PackedPanel(name, batch)

    # --- the tile template ---

    def _tile(self, kernel: Kernel, c: Contraction, s: ContractionSchedule, constant: bool) -> None:
        kernel.schedule = {"template": "tile", "name": s.name, "rows": min(s.rows[0], most(c.m))}
        if not constant:
            return
        batch = tuple(v for v in c.batch if v in free_variables(c.b))
        axes = (*batch, *c.k, c.n)
        key = ("tile", _canonical(c.b, axes))
        name = self._packed.get(key)
        if name is None:
            values = self._evaluate(c.b, axes)
            flat = values.reshape(count((*batch, *c.k)), c.n.extent)
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
    stages = sum(most(stage.axes) * operations(stage.body) for stage in c.stages)
    return stages + most(c.k) * operations(c.a)


def _canonical(expr: Expr, axes: tuple[Var, ...]) -> Expr:
    """The expression with its axes renamed, so that equal factors are packed once."""
    return substitute_variables(expr, {v: variable(Var(f"axis{i}", v.extent)) for i, v in enumerate(axes)})

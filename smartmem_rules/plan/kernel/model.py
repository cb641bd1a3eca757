"""Kernels over stored tensors, and the layouts of these tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from smartmem_rules.errors import SmartmemError
from smartmem_rules.plan.kernel.printer import kernel_text
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.extents import is_symbolic

if TYPE_CHECKING:  # a plan from a file holds no expressions
    from smartmem_rules.tensor.atoms import Var
    from smartmem_rules.tensor.expr import Expr
    from smartmem_rules.tensor.index import Index
    from smartmem_rules.tensor.types import TensorType

ACCUMULATOR = "@acc"
"""The name by which an epilogue reads the result of its kernel's contraction."""


class PlanError(SmartmemError):
    """No kernel can be planned for something; the message says what, where and what to do."""


@dataclass(frozen=True)
class Layout:
    """How a tensor's elements lie in memory.

    Attributes:
        memory: `buffer`, `image` (image2d_t of RGBA texels) or `scratch` (a work-item's own rows, as in a buffer).
        order: the tensor's axes from the slowest to the fastest; the last is contiguous in a buffer and fills the
            four lanes of the texels of an image. -1 in the last place of an image: one element a texel.
        rows: how many leading axes of `order` make up the image's y; the others and the lane axis' texels make up x.
        inner: how many axes before the lane axis lie inside its texels in x: with one, s, x is l // 4 * extent(s) + s,
            SmartMem's way of letting a texture be read along two reduction axes, l and s.
    """

    memory: str
    order: tuple[int, ...]
    rows: int = 0
    inner: int = 0

    def strides(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Element strides of the axes in a buffer."""
        strides = [0] * len(shape)
        step = 1
        for axis in (a for a in reversed(self.order) if a >= 0):
            strides[axis] = step
            step *= shape[axis]
        return tuple(strides)

    def image_size(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Width and height in texels."""
        if not self.order:
            return 1, 1
        height = math.prod(shape[a] for a in self.order[: self.rows])
        middle = math.prod(shape[a] for a in self.order[self.rows : -1])
        return middle * (1 if self.lane_axis is None else -(-shape[self.lane_axis] // 4)), height

    @property
    def lane_axis(self) -> int | None:
        """The axis along which an image's texels hold four elements, None where each holds one."""
        return self.order[-1] if self.memory == "image" and self.order and self.order[-1] >= 0 else None

    @property
    def places(self) -> str:
        """Where each axis lies, in words."""
        if self.memory != "image" or not self.order:
            return str(self)
        middle = [f"d{a}" for a in self.order[self.rows : -1]]
        lanes = self.lane_axis
        if lanes is not None:
            middle.insert(len(middle) - self.inner, f"d{lanes}/4")
        down = " ".join(f"d{a}" for a in self.order[: self.rows])
        inside = "one element a texel" if lanes is None else f"d{lanes} in the lanes"
        return f"image, {inside}, x {' '.join(middle) or '-'}, y {down or '-'}"

    def __str__(self) -> str:
        names = [f"d{a}" if a >= 0 else "." for a in self.order]
        if self.inner:
            names.insert(len(names) - 1 - self.inner, f"({names[-1]}/4)")
        return f"{self.memory}[{''.join(names)}]"


def row_major(rank: int) -> Layout:
    return Layout("buffer", tuple(range(rank)))


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A tensor that lies in device memory.

    Attributes:
        role: input | output | constant | intermediate.
        storage: the element type in memory (float16 where the plan stores halves).
        packed: for a constant in a kernel's own order, the values in that order.
        shown: for an output, the shape in which the model gives it, where that is another one.
    """

    name: str
    type: TensorType
    layout: Layout
    role: str
    storage: str
    packed: np.ndarray | None = None
    shown: tuple[int, ...] | None = None

    def holds_places(self, extent: int) -> bool:
        """Whether this is a constant all of whose elements are places of an axis: readers need not hold them inside."""
        if self.packed is None or is_symbolic(extent) or not self.packed.size:
            return False
        least, most = self._least_and_most
        return least >= 0 and most < extent

    @cached_property
    def _least_and_most(self) -> tuple[int, int]:
        assert self.packed is not None
        return int(self.packed.min()), int(self.packed.max())


@dataclass(frozen=True)
class Stage:
    """A tensor that exists for one row at a time: a scalar (no axes) or an array in scratch memory."""

    name: str
    axes: tuple[Var, ...]
    body: Expr
    dtype: str


@dataclass(frozen=True)
class Store:
    """tensor[indices] = value, for all values of the kernel's axes; `local` are the axes inside a row."""

    tensor: str
    indices: tuple[Index, ...]
    value: Expr
    local: tuple[Var, ...] = ()


INNER = "@inner"
"""The name by which the first stage of an attention reads the scores of its row."""


@dataclass(frozen=True)
class Scores:
    """A contraction inside another one: sum over k of a[batch, m, k] * b[batch, k, n], one row n for each row m."""

    n: Var
    k: tuple[Var, ...]
    a: Expr
    b: Expr


@dataclass(frozen=True, kw_only=True)
class Contraction:
    """sum over k of a[batch, m, k] * b[batch, k, n]; `stages` are computed per row before `a` is read.

    With `scores`, the first stage reads its row of them as `INNER`.

    Attributes:
        dtype: of the sums: float32, or int32 where both factors are bytes less a zero point (`byte_factors`).
        fed: the tensors whose elements `a` is, computed or stored; none where it is an expression of several.
    """

    batch: tuple[Var, ...]
    m: tuple[Var, ...]
    n: Var
    k: tuple[Var, ...]
    a: Expr
    b: Expr
    stages: tuple[Stage, ...] = ()
    scores: Scores | None = None
    fed: tuple[str, ...] = field(default=(), compare=False)
    dtype: str = "float32"

    @property
    def of_bytes(self) -> bool:
        """Whether four neighbouring steps of the reduction lie in a word."""
        return self.dtype == "int32"


@dataclass(frozen=True)
class Part:
    """A further right factor of a contraction over the same rows: its columns, values and what is stored of them."""

    n: Var
    b: Expr
    stores: tuple[Store, ...]


@dataclass(frozen=True, kw_only=True)
class KernelSchedule:
    """How a kernel runs; `plan.schedule.records` has one kind for each template.

    Attributes:
        name: of the schedule block.
        template: of codegen/.
    """

    name: str
    template: str

    def sizes(self) -> dict[str, int]:
        """The sizes, as the database of tuned sizes and reports hold them."""
        return {f.name: value for f in fields(self) if type(value := getattr(self, f.name)) is int}

    @property
    def seldom_read(self) -> tuple[str, ...]:
        """Constants that the kernel reads for unusual data alone."""
        return ()


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """What is computed: equations over tensors, with the schedule and layouts that they got.

    Attributes:
        form: pointwise | reduction | contraction | scan, the template family.
        axes: the loop variables over which the stores range; in a reduction these are the rows.
        stages: row temporaries, computed before the stores of a row.
        parts: further contractions of the same left factor; their stores stand in `stores` too, after its own. Stores
            with local axes stand last: rows of the left factor that others read as well.
        origin: the ONNX nodes that the kernel stands for.
        moves_only: whether it only moves data.
        reads, writes: tensors in memory, packed factors among them.
        operations: scalar operations.
        schedule: how it runs, once that is chosen.
        ring: of a recurrence, the elements of tensors that one step alone needs, and that therefore lie in the private
            memory of a work-item, by tensor.
    """

    name: str
    form: str
    axes: tuple[Var, ...] = ()
    stores: tuple[Store, ...] = ()
    stages: tuple[Stage, ...] = ()
    contraction: Contraction | None = None
    parts: tuple[Part, ...] = ()
    origin: tuple[str, ...] = ()
    moves_only: bool = False
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    operations: int = 0
    schedule: KernelSchedule | None = None
    ring: Mapping[str, int] = field(default_factory=dict)

    @property
    def template(self) -> str:
        """The template of its schedule; empty before it has one."""
        return "" if self.schedule is None else self.schedule.template

    def changed(self, expression: Callable[[Expr], Expr], store: Callable[[Store], Store] | None = None) -> Kernel:
        """The kernel with other expressions.

        Args:
            expression: gives the expression in the place of a stage's, a factor's, or a stored value.
            store: gives the store in the place of another; by default one with the changed value at the same place.
        """
        instead = store or (lambda one: replace(one, value=expression(one.value)))

        def stages(those: tuple[Stage, ...]) -> tuple[Stage, ...]:
            return tuple(replace(stage, body=expression(stage.body)) for stage in those)

        c = self.contraction
        if c is not None:
            scores = c.scores and replace(c.scores, a=expression(c.scores.a), b=expression(c.scores.b))
            c = replace(c, a=expression(c.a), b=expression(c.b), stages=stages(c.stages), scores=scores)
        parts = (replace(part, b=expression(part.b), stores=tuple(map(instead, part.stores))) for part in self.parts)
        stores = tuple(map(instead, self.stores))
        return replace(self, stages=stages(self.stages), stores=stores, contraction=c, parts=tuple(parts))

    def __str__(self) -> str:
        return kernel_text(self)

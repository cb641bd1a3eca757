"""Kernels over stored tensors, and the layouts of these tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np

from smartmem_rules.errors import SmartmemError
from smartmem_rules.plan.kernel.printer import kernel_text

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


@dataclass
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


@dataclass(frozen=True)
class Contraction:
    """sum over k of a[batch, m, k] * b[batch, k, n]; `stages` are computed per row before `a` is read.

    With `scores`, the first stage reads its row of them as `INNER`.

    Attributes:
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


@dataclass(frozen=True)
class Part:
    """A further right factor of a contraction over the same rows: its columns, values and what is stored of them."""

    n: Var
    b: Expr
    stores: tuple[Store, ...]


@dataclass(frozen=True)
class Wait:
    """What the work-items of a step wait for before they begin.

    Attributes:
        step: which earlier step.
        lag: None: for all of its work-items; else work-item i waits until i + lag of them are done, of a step whose
            work-items are computed in turn.
    """

    step: int
    lag: int | None = None


@dataclass(frozen=True)
class TaskGraph:
    """How the work-items of an ordered launch follow each other.

    Attributes:
        state: the tensor of the counters.
        waits: of each step.
        patience: how often a work-group looks whether what it waits for is done, before it leaves the rest to others.
        in_turn: the steps whose work-items need the one before, computed by one work-group as far as it gets.
    """

    state: str
    waits: tuple[tuple[Wait, ...], ...]
    patience: int
    in_turn: tuple[int, ...] = ()


@dataclass(frozen=True)
class Grid:
    """Launch geometry.

    Attributes:
        global_size: work-items along each dimension; expressions of open extents.
        local_size: work-items of a work-group, None where the driver may choose.
    """

    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None

    @staticmethod
    def of(items: int, group: int) -> Grid:
        """So many work-items in groups of one size."""
        return Grid((items,), (group,))

    @staticmethod
    def covering(items: int, group: int) -> Grid:
        """Whole groups for at least so many work-items."""
        return Grid((-(-items // group) * group,), (group,))

    @property
    def items(self) -> int:
        """All work-items."""
        return math.prod(self.global_size)


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


@dataclass(frozen=True, kw_only=True)
class BlockRows:
    """The rows that the work-items of a chain own.

    Attributes:
        m: rows of a batch.
        block_rows: of a work-item.
        candidates: other numbers of rows that the chain may have, the best first.
        kept: elements of a row of the tensors that lie in scratch memory between the kernels, by tensor.
    """

    m: int
    block_rows: int
    candidates: tuple[int, ...] = ()
    kept: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Kernel:
    """One enqueue.

    Attributes:
        form: pointwise | reduction | contraction | scan, the template family; chain | beside | ordered for several in
            one launch.
        axes: the loop variables over which the stores range; in a reduction these are the rows.
        parts: further contractions of the same left factor; their stores stand in `stores` too, after its own. Stores
            with local axes stand last: rows of the left factor that others read as well.
        origin: the ONNX nodes that the kernel stands for.
        moves_only: whether it only moves data.
        in_place: for tensors that it writes into the memory of one that it reads, which one.
        steps: the kernels that one launch runs: one after the other in each work-item (form `chain`), side by side
            (`beside`), or each when the work-items of others are done (`ordered`).
        tasks: of a launch of this last form.
        schedule: of a single kernel, once it is scheduled.
        grid: how many work-items it has, once it is scheduled.
        block_rows: of a kernel in a chain or wave, the rows of a work-item.
        rows: of a chain over rows, which rows its work-items own.
        group_items: of kernels side by side on a GPU, the work-items of the work-groups of all of them.
        share, shares: of a wave of recurrences, which of its work-items runs, and how many there are.
        steps_each: of a recurrence that is cut into shares, the steps of each.
        ring: of a recurrence, elements of the tensors that it needs in one step only, by tensor.
    """

    name: str
    form: str
    axes: tuple[Var, ...]
    stores: tuple[Store, ...]
    stages: tuple[Stage, ...] = ()
    contraction: Contraction | None = None
    parts: tuple[Part, ...] = ()
    origin: tuple[str, ...] = ()
    moves_only: bool = False
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    schedule: KernelSchedule | None = None
    bytes_moved: int = 0
    operations: int = 0
    steps: tuple[Kernel, ...] = ()
    in_place: dict[str, str] = field(default_factory=dict)
    tasks: TaskGraph | None = None
    grid: Grid | None = None
    block_rows: int | None = None
    rows: BlockRows | None = None
    group_items: int = 0
    share: int | None = None
    shares: int = 1
    steps_each: int | None = None
    ring: Mapping[str, int] = field(default_factory=dict)

    @property
    def template(self) -> str:
        """The template of its schedule; empty for launches of several kernels."""
        return "" if self.schedule is None else self.schedule.template

    @property
    def kept(self) -> Mapping[str, int]:
        """The tensors that a chain keeps in scratch memory."""
        return {} if self.rows is None else self.rows.kept

    def __str__(self) -> str:
        return kernel_text(self)

    @property
    def leaves(self) -> tuple[Kernel, ...]:
        """The kernels of single equations or groups of them: itself, or those of its steps."""
        return tuple(leaf for step in self.steps for leaf in step.leaves) if self.steps else (self,)

    def refresh_io(self) -> None:
        """Let a launch of several kernels read and write what its steps do, but for what stays between them."""
        if self.steps:
            for step in self.steps:
                step.refresh_io()
            written = dict.fromkeys(t for k in self.steps for t in k.writes)
            read = dict.fromkeys(t for k in self.steps for t in k.reads)
            kept = self.kept
            if self.tasks is not None:
                written[self.tasks.state] = None
            self.writes = tuple(t for t in written if t not in kept)
            self.reads = tuple(t for t in read if t not in written)

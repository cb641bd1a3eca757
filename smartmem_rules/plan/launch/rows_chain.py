"""A chain under construction: its kernels over the same rows, and what the next kernel has to fit to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from smartmem_rules.plan.kernel.addressing import Written
from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.plan.launch.operands import operands_of
from smartmem_rules.plan.schedule.launch_costs import Steps
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var


@dataclass(eq=False, kw_only=True)
class GrowingChain:
    """Kernels that run one after the other over the same rows.

    Sums and sets of all kernels are kept as they grow: a chain may have thousands of them.

    Attributes:
        batch, m: the loop variables of the rows; `keys` are those that a work-item owns values of.
        steps: the demands of the kernels; without sizes where no work-item owns rows of the only kernel.
        written: how the work-items' rows are those of a tensor.
        blocks: the numbers of rows that a work-item could own, the best by modelled time first.
        operands: the tensors that the kernels write or read.
        made, read: the tensors that the kernels write and read; `inner` are those that they write and read.
        inner_bytes: of a row of these.
        producers: the chains that make what the kernels read, this one not among them.
    """

    steps: Steps
    batch: tuple[Var, ...] = ()
    m: tuple[Var, ...] = ()
    kernels: list[Kernel] = field(default_factory=list)
    written: dict[str, Written] = field(default_factory=dict)
    blocks: tuple[int, ...] = ()
    operands: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)
    inner_bytes: int = 0
    producers: dict[GrowingChain, None] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether a work-item owns all rows of a batch."""
        return self.steps.whole

    @property
    def block_rows(self) -> int:
        """Rows of a work-item's block: the best by modelled time."""
        return self.blocks[0] if self.blocks else 0

    @property
    def keys(self) -> tuple[Var, ...]:
        return self.batch if self.whole else (*self.batch, *self.m)

    def add(self, kernel: Kernel, producers: Iterable[GrowingChain]) -> None:
        """Let another kernel run after the others; its demands are added to `steps` by the caller."""
        self.inner |= self.inner_with(kernel)
        self.kernels.append(kernel)
        self.operands |= operands_of(kernel)
        self.made.update(kernel.writes)
        self.read.update(kernel.reads)
        self.producers.update(dict.fromkeys(one for one in producers if one is not self))

    def inner_with(self, kernel: Kernel) -> set[str]:
        """What is inner only once the kernel has joined."""
        again = {t for t in kernel.writes if t in self.read or t in kernel.reads}
        again.update(t for t in kernel.reads if t in self.made)
        return again - self.inner

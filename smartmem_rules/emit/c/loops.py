"""Loops in OpenCL C, and the accumulators to which their turns add terms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from smartmem_rules.emit.c.access import Access
from smartmem_rules.emit.c.indices import Indices
from smartmem_rules.emit.c.partial_sums import Accumulators, TermLoop
from smartmem_rules.emit.c.team import Team
from smartmem_rules.emit.c.writer import Writer
from smartmem_rules.language.blocks.device import TextChoices
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.ranges import several, surely_at_most


class Loops(Indices):
    """Writes the loops of one kernel.

    Args:
        accesses: the stored tensors that the kernel reads.
        text: when it pays to unroll loops.

    Attributes:
        team: the work-items that share the turns of a loop.
        in_step: whether the text stands in loops of which a team shares one.
        unrolls: whether short loops of sums are unrolled.
        is_interior: whether the text is that of windows that lie inside of what they read.
    """

    def __init__(self, writer: Writer, accesses: Mapping[str, Access], text: TextChoices) -> None:
        super().__init__(writer, accesses)
        self.text = text
        self.team: Team | None = None
        self.in_step = False
        self.unrolls = False
        self.is_interior = False

    @contextmanager
    def scope(self, head: str) -> Iterator[None]:
        """A C block."""
        with self.writer.block(head):
            yield

    @contextmanager
    def loop(self, var: Var, head: str | None = None, unrolled: bool = False) -> Iterator[None]:
        """A loop over a variable, which the compiler unrolls where that pays."""
        name = self.name(var)
        short = self.is_interior and surely_at_most(var.extent, self.text.unroll)
        # compilers warn of a loop that they are told to unroll and whose turns no number says
        if head is None and not is_symbolic(var.extent) and (unrolled or short):
            # around loops that work-items take in step, PoCL does not end (`Team.head`)
            guarded = self.team is not None or self.in_step
            self.writer.line("#ifndef SMR_NO_UNROLL\n#pragma unroll\n#endif" if guarded else "#pragma unroll")
        with self.scope(head or f"for (int {name} = 0; {name} < {var.extent}; ++{name})"):
            yield

    @contextmanager
    def without_team(self) -> Iterator[None]:
        """Where work-items part ways (branches, turns of a divided loop) no barrier may stand."""
        team, self.team = self.team, None
        yield
        self.team = team

    @contextmanager
    def divided(self, var: Var, team: Team | None) -> Iterator[None]:
        """A loop whose turns the members of a team take, if there is a team: what stands in the loop they do alone."""
        head = None if team is None else team.head(self.name(var), var.extent)
        with self.without_team(), self.loop(var, head):
            yield

    def writes_out(self, block: Var) -> bool:
        """Whether all turns of a loop over vectors are written out: few of them, on a CPU."""
        if self.unrolls or self.team is not None or is_symbolic(block.extent):
            return False
        return several(block.extent) and surely_at_most(block.extent, self.text.unroll_vectors)

    def declared(self, sums: Accumulators) -> Accumulators:
        """Accumulators like the given ones, under names of their own, before the first term."""
        own = replace(sums, names=tuple(self.temporary() for _ in sums.names))
        for name in own.names:
            self.writer.line(f"{own.vector} {name} = {own.start};")
        return own

    def sum_loops(self, loops: list[TermLoop], sums: Accumulators, step: Callable[[Accumulators], None]) -> None:
        """Write nested loops.

        Args:
            sums: what the terms are added to.
            step: writes what adds a turn's terms to given accumulators.
        """
        if not loops:
            step(sums)
            return
        first, inner = loops[0], loops[1:]
        if first.sums.blocks:
            begin = self.temporary()
            with self.scope(first.block_head(begin)), self._partial(sums) as part:
                self.sum_loops([first.in_block(begin), *inner], part, step)
            return
        loop = self.loop(first.variable, first.head(self.name(first.variable)), first.written_out)
        with loop, self._partial(sums) if first.sums.inner else nullcontext(sums) as added_to:
            self.sum_loops(inner, added_to, step)

    @contextmanager
    def _partial(self, sums: Accumulators) -> Iterator[Accumulators]:
        """Accumulators that are added to others at the end."""
        parts = self.declared(sums)
        yield parts
        for whole, part in zip(sums.names, parts.names, strict=True):
            self.writer.line(f"{whole} += {part};")

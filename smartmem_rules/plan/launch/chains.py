"""Vertical fusion: kernels over the same rows or batches follow each other in one work-item.

Back-to-back contractions (BOLT), the two products of a perceptron, the 1x1 convolutions on both sides of a block's end,
a normalisation between them: wherever a kernel's rows are those of the kernel that it reads, no other
work-item is needed. The rows may be visited in another order (windows, shifted images): the reader then runs over its
producer's rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.fuse import Chain as ChainBlock
from smartmem_rules.language.blocks.schedule import Panel, Schedule
from smartmem_rules.plan.fusion.refusals import Refusals
from smartmem_rules.plan.kernel.addressing import written
from smartmem_rules.plan.kernel.graph import needs, toposort
from smartmem_rules.plan.kernel.launch import Chain, Launch, Single
from smartmem_rules.plan.kernel.model import Kernel, Store
from smartmem_rules.plan.kernel.traffic import expressions
from smartmem_rules.plan.kernel.work_items import BlockRows
from smartmem_rules.plan.launch.operands import number_together, operands_of
from smartmem_rules.plan.launch.rows_chain import GrowingChain
from smartmem_rules.plan.schedule.contraction.sizing import UNBOUNDED, Resources, most, resources_of
from smartmem_rules.plan.schedule.contraction.winograd_sizes import filters_of
from smartmem_rules.plan.schedule.launch_costs import LaunchCosts, Steps
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, Read, TensorType, own_indices, substitute_variables, walk
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.ranges import largest
from smartmem_rules.tensor.substitution import substitute
from smartmem_rules.tensor.views import axis_variables, index_map


def chain(
    kernels: Sequence[Kernel],
    types: Mapping[str, TensorType],
    constants: Collection[str],
    rules: tuple[ChainBlock | None, ChainBlock | None],
    schedules: Sequence[Schedule],
    device: Device,
    refusals: Refusals | None = None,
) -> list[Launch]:
    """Launches of kernels: those joined into chains where that is legal and costs no time, the rest one by one.

    Args:
        schedules: those of the level, one of the panel template among them.
        rules: of chains over rows and of chains over whole batches; None where the level has none.
        refusals: takes in why kernels stay apart.
    """
    return _Chains(kernels, types, constants, rules, schedules, device, refusals).run()


class _Chains:
    def __init__(
        self,
        kernels: Sequence[Kernel],
        types: Mapping[str, TensorType],
        constants: Collection[str],
        rules: tuple[ChainBlock | None, ChainBlock | None],
        schedules: Sequence[Schedule],
        device: Device,
        refusals: Refusals | None,
    ) -> None:
        self.refusals = refusals
        self.kernels = kernels
        self.types = types
        self.constants = constants
        self.rules = rules
        self.schedules = schedules
        self.schedule = next(s for s in schedules if isinstance(s, Panel))
        self.device = device
        self.costs = LaunchCosts(self.schedule, device)
        self.owner: dict[str, GrowingChain] = {}

    def run(self) -> list[Launch]:
        chains: dict[GrowingChain, int] = {}
        for kernel in self.kernels:
            found = self._join(kernel, chains)
            if found is None:
                found = self._start(kernel)
                chains[found] = len(chains)
            self.owner.update(dict.fromkeys(kernel.writes, found))
        order = toposort(chains, lambda chain_: chain_.producers)
        assert order is not None
        return [self._composed(c) for c in order]

    # --- beginnings ---

    def _start(self, kernel: Kernel) -> GrowingChain:
        sizes = resources_of(kernel, self.schedule, self.constants)
        producers = self._producers(kernel)
        if sizes is None:
            found = GrowingChain(steps=Steps(self.costs, whole=False))
            found.add(kernel, producers)
            return found
        filters = filters_of(kernel, self.schedules, self.schedule, sizes.constant, self.device.compute.units)
        sizes = replace(sizes, filters=filters)
        found = GrowingChain(steps=Steps(self.costs, not sizes.constant, [sizes]), batch=sizes.batch, m=sizes.m)
        found.add(kernel, producers)
        found.inner_bytes = self._row_bytes(found.inner, found)
        self._note_writes(found, kernel)
        return found

    def _note_writes(self, chain_: GrowingChain, kernel: Kernel) -> None:
        for store in kernel.stores:
            found = written(store, chain_.keys, self.types[store.tensor].shape)
            if found is not None:
                chain_.written[store.tensor] = found

    # --- growth ---

    def _join(self, kernel: Kernel, chains: Mapping[GrowingChain, int]) -> GrowingChain | None:
        sizes = resources_of(kernel, self.schedule, self.constants)
        if sizes is None:
            return None
        producers = self._producers(kernel)
        sources = set(producers)
        for candidate in sorted(sources, key=chains.__getitem__, reverse=True):
            rule = self.rules[candidate.whole]
            if rule is None or not candidate.steps.sizes:
                continue
            if needs(sources - {candidate}, candidate, lambda chain_: chain_.producers):
                self._refuse(rule, candidate, kernel, "something between them needs another launch", passed=4)
                continue
            together = number_together(candidate.operands, operands_of(kernel))
            if together > self.device.compute.parameters:
                figures = (together, self.device.compute.parameters)
                self._refuse(rule, candidate, kernel, "tensors that one launch reads and writes", figures, 4)
                continue
            moved = self._over_rows_of(candidate, kernel, sizes)
            if moved is None:
                self._refuse(rule, candidate, kernel, f"it needs {rule.over} of other work-items", passed=5)
                continue
            again = resources_of(moved, self.schedule, self.constants)
            assert again is not None
            inner_bytes = candidate.inner_bytes + self._row_bytes(candidate.inner_with(moved), candidate)
            blocks = self._blocks(again, inner_bytes, candidate, moved, rule)
            if blocks:
                candidate.add(moved, producers)
                candidate.steps.add(again)
                candidate.inner_bytes = inner_bytes
                candidate.blocks = blocks
                self._note_writes(candidate, moved)
                return candidate
        return None

    def _refuse(
        self,
        rule: ChainBlock,
        chain_: GrowingChain,
        kernel: Kernel,
        reason: str,
        figures: tuple[float, float] | None = None,
        passed: int = 6,
    ) -> None:
        if self.refusals is not None:
            nodes = [node for one in chain_.kernels for node in one.origin]
            self.refusals.note(rule.name, nodes, kernel.origin, reason, figures, passed)

    def _producers(self, kernel: Kernel) -> dict[GrowingChain, None]:
        """The chains that make what a kernel reads; kernels come after those whose results they read."""
        return {self.owner[name]: None for name in kernel.reads if name in self.owner}

    # --- legality: every element that is read was made by the same work-item ---

    def _over_rows_of(self, source: GrowingChain, kernel: Kernel, sizes: Resources) -> Kernel | None:
        """The kernel with the loop variables of the chain's rows, None where it needs rows of other work-items."""
        if math.prod(v.extent for v in sizes.batch) != math.prod(v.extent for v in source.batch):
            return None
        if not source.whole and math.prod(v.extent for v in sizes.m) != math.prod(v.extent for v in source.m):
            return None
        if not source.whole and not sizes.constant:
            return None
        if any(t in source.made and t not in source.written for t in kernel.reads) or _gathers(kernel, source.made):
            return None
        own = sizes.batch if source.whole else (*sizes.batch, *sizes.m)
        reads = [r for e in expressions(kernel) for r in _reads(e) if r.tensor in source.written]
        values = next((v for r in reads if (v := self._solve(source, r, own)) is not None), None)
        if values is None or not _keeps_batch(values, sizes.batch, source):
            return None
        moved = _substituted(kernel, values, source, sizes)
        for read in (r for e in expressions(moved) for r in _reads(e) if r.tensor in source.written):
            if _row_of(source, read) != tuple(map(variable, source.keys)):
                return None
        return moved

    def _solve(self, source: GrowingChain, read: Read, own: tuple[Var, ...]) -> dict[Var, Index] | None:
        """The reader's keys in terms of the chain's, by the rows that a read asks for."""
        row = _row_of(source, read)
        if any(index.variables - set(own) or index.gathered for index in row):
            return None
        names = axis_variables(tuple(v.extent for v in own))
        renamed = {v: variable(n) for v, n in zip(own, names, strict=True)}
        forward = index_map(
            tuple(v.extent for v in own),
            tuple(v.extent for v in source.keys),
            tuple(substitute(i, renamed) for i in row),
        )
        backward = forward.inverse
        if backward is None:
            return None
        return dict(zip(own, backward.apply(tuple(map(variable, source.keys))), strict=True))

    # --- cost ---

    def _blocks(
        self, sizes: Resources, inner_bytes: int, source: GrowingChain, last: Kernel, rule: ChainBlock
    ) -> tuple[int, ...]:
        """The possible rows of a work-item's block, the best first; none if one launch is slower than two.

        Args:
            sizes: of the kernel `last`, which is to join.
            inner_bytes: of a row of what is made and read again inside the chain with this kernel.
        """
        steps = source.steps
        m, batches = most(source.m), most(source.batch)
        written = sum(4 * largest(self.types[t].elements) for t in source.made & set(last.reads))
        saved = written / (self.device.memory.of_unit * self.device.compute.units)
        apart = steps.time(source.block_rows) + self.costs.alone(sizes) + saved
        allowed = apart * (1 + rule.loss / 100)
        if source.whole:
            # a work-item has the scratch memory of one kernel after the other
            if not steps.whole_fits or sizes.most < sizes.m_count or batches < self.device.compute.units:
                figures = (batches, self.device.compute.units)
                self._refuse(rule, source, last, "a whole batch does not fit, or batches for the units", figures)
                return ()
            together = steps.time_with(sizes, m)
            if together > allowed:
                self._refuse(rule, source, last, "modelled ns in one launch", (together, allowed), 8)
            return (m,) if together <= allowed else ()
        most_kept = rule.block_bytes // inner_bytes if inner_bytes else UNBOUNDED
        # every block reads all right factors; `LaunchCosts` counts that, the rule may bound it
        right = steps.right_bytes + sizes.right_bytes
        if right > rule.right_bytes:
            self._refuse(rule, source, last, "bytes of right factors that every block reads", (right, rule.right_bytes))
            return ()
        blocks = steps.filtered | {b for f in sizes.filters for b in f.blocks}
        rows = min(most_kept, steps.most, sizes.most)
        if rows:
            fewest, finest = -(-m // rows), -(-m // min(m, self.schedule.rows[0]))
            blocks |= {-(-m // n) for n in range(fewest, max(fewest, finest) + 1)}
        possible = [b for b in blocks if b <= most_kept and sizes.takes(b) and steps.takes(b)]
        times = sorted((steps.time_with(sizes, b), b) for b in possible)
        if not times:
            kept = (inner_bytes, rule.block_bytes)
            self._refuse(rule, source, last, "no block of rows fits between them: bytes of a row", kept, 7)
        elif times[0][0] > allowed:
            self._refuse(rule, source, last, "modelled ns in one launch", (times[0][0], allowed), 8)
        return tuple(b for _, b in times) if times and times[0][0] <= allowed else ()

    def _row_bytes(self, tensors: Collection[str], chain_: GrowingChain) -> int:
        """Bytes of a row of tensors that the chain makes and reads again."""
        rows = most(chain_.m) * most(chain_.batch)
        return sum(4 * -(-largest(self.types[t].elements) // rows) for t in tensors)

    # --- results ---

    def _composed(self, chain_: GrowingChain) -> Launch:
        if len(chain_.kernels) == 1:
            return Single(kernel=chain_.kernels[0])
        whole, block_rows = chain_.whole, chain_.block_rows
        steps = tuple(
            Single(kernel=kernel, block_rows=sizes.m_count if whole else block_rows)
            for kernel, sizes in zip(chain_.kernels, chain_.steps.sizes, strict=True)
        )
        rows = None
        if not whole and chain_.keys:
            m = math.prod(v.extent for v in chain_.m)
            rows = BlockRows(axes=chain_.keys, m=m, block_rows=block_rows, candidates=chain_.blocks)
        return Chain(name=steps[0].name, steps=steps, rows=rows)


def _reads(expr: Expr) -> list[Read]:
    return [node for node in walk(expr) if isinstance(node, Read)]


def _gathers(kernel: Kernel, tensors: Set[str]) -> bool:
    """Whether an index of the kernel comes from one of the tensors."""
    nodes = (node for e in expressions(kernel) for node in walk(e))
    return any(not index.gathered.isdisjoint(tensors) for node in nodes for index in own_indices(node))


def _row_of(source: GrowingChain, read: Read) -> tuple[Index, ...]:
    """The values of the chain's keys for which it made the element that is read."""
    return source.written[read.tensor].row(read.indices)


def _keeps_batch(values: Mapping[Var, Index], batch: tuple[Var, ...], source: GrowingChain) -> bool:
    """Whether each batch variable of the reader is one of the chain: its factors are packed by them."""
    return [values[v] for v in batch] == [variable(v) for v in source.batch]


def _substituted(kernel: Kernel, values: Mapping[Var, Index], source: GrowingChain, sizes: Resources) -> Kernel:
    """The kernel over the chain's rows; over its own where a work-item owns all rows of a batch.

    Args:
        sizes: of the kernel, whose rows need not be as many as the chain's then: a reduction over all of them has one.
    """

    def change(expr: Expr) -> Expr:
        return substitute_variables(expr, values)

    def moved_store(store: Store) -> Store:
        return replace(store, indices=tuple(substitute(i, values) for i in store.indices), value=change(store.value))

    moved = kernel.changed(change, moved_store)
    m = sizes.m if source.whole else source.m
    if moved.contraction is None:
        return replace(moved, axes=(*source.batch, *m))
    c = replace(moved.contraction, batch=source.batch, m=m)
    columns = (c.n,) if c.n in kernel.axes else ()
    return replace(moved, contraction=c, axes=(*c.batch, *c.m, *columns))

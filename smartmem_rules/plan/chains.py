"""Kernels one after the other in one launch: a work-item that made some rows goes on with what reads only those rows.

Back-to-back contractions (BOLT), the two products of a perceptron, the 1x1 convolutions on both sides of a block's end,
a normalisation between them: wherever a kernel's rows are those of the kernel that it reads, no other
work-item is needed. The rows may be visited in another order (windows, shifted images): the reader then runs over its
producer's rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from smartmem_rules.plan.accounting import expressions
from smartmem_rules.plan.launch_costs import LaunchCosts
from smartmem_rules.plan.model import Kernel, Stage, Store
from smartmem_rules.plan.places import Written, written
from smartmem_rules.plan.policy import FusionRule
from smartmem_rules.plan.sizing import UNBOUNDED, ContractionSchedule, Machine, Sizes, most, sizes_of
from smartmem_rules.plan.winograd_sizes import filters_of
from smartmem_rules.tensor.expr import Expr, Read, TensorType, own_indices, substitute_variables, walk
from smartmem_rules.tensor.index import Index, Var, variable
from smartmem_rules.tensor.ranges import largest
from smartmem_rules.tensor.substitution import substitute
from smartmem_rules.tensor.views import axis_variables, index_map


@dataclass(eq=False)
class Chain:
    """Kernels that run one after the other over the same rows.

    Attributes:
        batch, m: the loop variables of the rows; `keys` are those that a work-item owns values of.
        whole: whether a work-item owns all rows of a batch.
        blocks: the numbers of rows that a work-item could own, the best by modelled time first.
    """

    kernels: list[Kernel]
    batch: tuple[Var, ...] = ()
    m: tuple[Var, ...] = ()
    whole: bool = False
    sizes: list[Sizes] = field(default_factory=list)
    written: dict[str, Written] = field(default_factory=dict)
    blocks: tuple[int, ...] = ()

    @property
    def block_rows(self) -> int:
        """Rows of a work-item's block: the best by modelled time."""
        return self.blocks[0] if self.blocks else 0

    @property
    def keys(self) -> tuple[Var, ...]:
        return self.batch if self.whole else (*self.batch, *self.m)


def chain(
    kernels: Sequence[Kernel],
    types: Mapping[str, TensorType],
    constants: Collection[str],
    rules: tuple[FusionRule | None, FusionRule | None],
    schedules: Sequence[ContractionSchedule],
    machine: Machine,
) -> list[Kernel]:
    """Join kernels into chains where that is legal and costs no time; the rest stays as it is.

    Args:
        schedules: those of the level, one of the panel template among them.
        rules: of chains over rows and of chains over whole batches; None where the level has none.
    """
    return _Chains(kernels, types, constants, rules, schedules, machine).run()


class _Chains:
    def __init__(
        self,
        kernels: Sequence[Kernel],
        types: Mapping[str, TensorType],
        constants: Collection[str],
        rules: tuple[FusionRule | None, FusionRule | None],
        schedules: Sequence[ContractionSchedule],
        machine: Machine,
    ) -> None:
        self.kernels = kernels
        self.types = types
        self.constants = constants
        self.rules = rules
        self.schedules = schedules
        self.schedule = next(s for s in schedules if s.template == "panel")
        self.machine = machine
        self.costs = LaunchCosts(self.schedule, machine)
        self.owner: dict[str, Chain] = {}
        self.users: dict[str, list[Kernel]] = {}
        for kernel in kernels:
            for name in kernel.reads:
                self.users.setdefault(name, []).append(kernel)

    def run(self) -> list[Kernel]:
        chains: list[Chain] = []
        for kernel in self.kernels:
            found = self._join(kernel, chains)
            if found is None:
                found = self._start(kernel)
                chains.append(found)
            self.owner.update(dict.fromkeys(kernel.writes, found))
        return [self._composed(c) for c in self._ordered(chains)]

    # --- beginnings ---

    def _start(self, kernel: Kernel) -> Chain:
        sizes = sizes_of(kernel, self.schedule, self.constants)
        if sizes is None:
            return Chain([kernel])
        filters = filters_of(kernel, self.schedules, self.schedule, sizes.constant, self.machine.units)
        sizes = replace(sizes, filters=filters)
        found = Chain([kernel], sizes.batch, sizes.m, not sizes.constant, [sizes])
        self._note_writes(found, kernel)
        return found

    def _note_writes(self, chain_: Chain, kernel: Kernel) -> None:
        for store in kernel.stores:
            found = written(store, chain_.keys, self.types[store.tensor].shape)
            if found is not None:
                chain_.written[store.tensor] = found

    # --- growth ---

    def _join(self, kernel: Kernel, chains: list[Chain]) -> Chain | None:
        sizes = sizes_of(kernel, self.schedule, self.constants)
        if sizes is None:
            return None
        sources = {self.owner[name] for name in kernel.reads if name in self.owner}
        for candidate in sorted(sources, key=chains.index, reverse=True):
            rule = self.rules[candidate.whole]
            if rule is None or not candidate.sizes or self._depends(sources - {candidate}, candidate):
                continue
            moved = self._over_rows_of(candidate, kernel, sizes)
            if moved is None:
                continue
            again = sizes_of(moved, self.schedule, self.constants)
            assert again is not None
            blocks = self._blocks([*candidate.sizes, again], candidate, moved, rule)
            if blocks:
                candidate.kernels.append(moved)
                candidate.sizes.append(again)
                candidate.blocks = blocks
                self._note_writes(candidate, moved)
                return candidate
        return None

    def _depends(self, chains: Iterable[Chain], on: Chain) -> bool:
        stack, seen = list(chains), set(chains)
        while stack:
            for producer in self._producers(stack.pop()):
                if producer is on:
                    return True
                if producer not in seen:
                    seen.add(producer)
                    stack.append(producer)
        return False

    def _producers(self, chain_: Chain) -> list[Chain]:
        found = {self.owner[t]: None for k in chain_.kernels for t in k.reads if t in self.owner}
        return [c for c in found if c is not chain_]

    # --- legality: every element that is read was made by the same work-item ---

    def _over_rows_of(self, source: Chain, kernel: Kernel, sizes: Sizes) -> Kernel | None:
        """The kernel with the loop variables of the chain's rows, None where it needs rows of other work-items."""
        if math.prod(v.extent for v in sizes.batch) != math.prod(v.extent for v in source.batch):
            return None
        if not source.whole and math.prod(v.extent for v in sizes.m) != math.prod(v.extent for v in source.m):
            return None
        if not source.whole and not sizes.constant:
            return None
        made = [t for k in source.kernels for t in k.writes]
        if any(t in kernel.reads and t not in source.written for t in made) or _gathers(kernel, made):
            return None
        own = sizes.batch if source.whole else (*sizes.batch, *sizes.m)
        reads = [r for e in expressions(kernel) for r in _reads(e) if r.tensor in source.written]
        values = next((v for r in reads if (v := self._solve(source, r, own)) is not None), None)
        if values is None or not _keeps_batch(values, sizes.batch, source):
            return None
        moved = _substituted(kernel, values, source)
        for read in (r for e in expressions(moved) for r in _reads(e) if r.tensor in source.written):
            if _row_of(source, read) != tuple(map(variable, source.keys)):
                return None
        return moved

    def _solve(self, source: Chain, read: Read, own: tuple[Var, ...]) -> dict[Var, Index] | None:
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

    def _blocks(self, sizes: list[Sizes], source: Chain, last: Kernel, rule: FusionRule) -> tuple[int, ...]:
        """The possible rows of a work-item's block, the best first; none if one launch is slower than two."""
        m, batches = most(source.m), most(source.batch)
        made = {t for k in source.kernels for t in k.writes} & set(last.reads)
        written = sum(4 * largest(self.types[t].elements) for t in made)
        saved = written / (self.machine.bandwidth * self.machine.units)
        apart = self.costs.together(source.sizes, source.block_rows, source.whole) + self.costs.alone(sizes[-1]) + saved
        allowed = apart * (1 + rule.tolerance / 100)
        if source.whole:
            # a work-item has the scratch memory of one kernel after the other
            if any(s.most < s.m_count for s in sizes) or batches < self.machine.units:
                return ()
            return (m,) if self.costs.together(sizes, m, True) <= allowed else ()
        inner = self._inner_row_bytes([*source.kernels, last], m * batches)
        most_kept = rule.scratch // inner if inner else UNBOUNDED
        # every block reads all right factors; `LaunchCosts` counts that, the rule may bound it
        if sum(s.right_bytes for s in sizes) > rule.columns:
            return ()
        blocks = {b for s in sizes for f in s.filters for b in f.blocks}
        rows = min([most_kept, *(s.most for s in sizes)])
        if rows:
            fewest, finest = -(-m // rows), -(-m // min(m, self.schedule.rows[0]))
            blocks |= {-(-m // n) for n in range(fewest, max(fewest, finest) + 1)}
        possible = [b for b in blocks if b <= most_kept and all(s.takes(b) for s in sizes)]
        times = sorted((self.costs.together(sizes, b, False), b) for b in possible)
        return tuple(b for _, b in times) if times and times[0][0] <= allowed else ()

    def _inner_row_bytes(self, kernels: list[Kernel], rows: int) -> int:
        """Bytes of a row of what is made and read again inside the chain."""
        made = {t for k in kernels for t in k.writes}
        read = {t for k in kernels for t in k.reads}
        return sum(4 * -(-largest(self.types[t].elements) // rows) for t in made & read)

    # --- results ---

    def _ordered(self, chains: list[Chain]) -> list[Chain]:
        done: dict[Chain, None] = {}

        def visit(root: Chain) -> None:
            stack = [(root, iter(self._producers(root)))]
            while stack:
                here, rest = stack[-1]
                following = next((p for p in rest if p not in done), None)
                if following is None:
                    done.setdefault(here)
                    stack.pop()
                else:
                    stack.append((following, iter(self._producers(following))))

        for one in chains:
            visit(one)
        return list(done)

    def _composed(self, chain_: Chain) -> Kernel:
        if len(chain_.kernels) == 1:
            return chain_.kernels[0]
        for step, sizes in zip(chain_.kernels, chain_.sizes, strict=True):
            step.schedule["block_rows"] = sizes.m_count if chain_.whole else chain_.block_rows
        found = compose("chain", tuple(chain_.kernels))
        if not chain_.whole:
            found.axes = chain_.keys
            found.schedule = {
                "block_rows": chain_.block_rows,
                "blocks": chain_.blocks,
                "m": math.prod(v.extent for v in chain_.m),
            }
        return found


def compose(form: str, steps: tuple[Kernel, ...]) -> Kernel:
    """One launch of several kernels."""
    found = Kernel(
        steps[0].name,
        form,
        (),
        (),
        origin=tuple(dict.fromkeys(o for k in steps for o in k.origin)),
        moves_only=all(k.moves_only for k in steps),
        operations=sum(k.operations for k in steps),
        steps=steps,
    )
    found.note_borders()
    return found


def _reads(expr: Expr) -> list[Read]:
    return [node for node in walk(expr) if isinstance(node, Read)]


def _gathers(kernel: Kernel, tensors: Collection[str]) -> bool:
    """Whether an index of the kernel comes from one of the tensors."""
    nodes = (node for e in expressions(kernel) for node in walk(e))
    return any(index.gathered & set(tensors) for node in nodes for index in own_indices(node))


def _row_of(source: Chain, read: Read) -> tuple[Index, ...]:
    """The values of the chain's keys for which it made the element that is read."""
    return source.written[read.tensor].row(read.indices)


def _keeps_batch(values: Mapping[Var, Index], batch: tuple[Var, ...], source: Chain) -> bool:
    """Whether each batch variable of the reader is one of the chain: its factors are packed by them."""
    return [values[v] for v in batch] == [variable(v) for v in source.batch]


def _substituted(kernel: Kernel, values: Mapping[Var, Index], source: Chain) -> Kernel:
    """The kernel over the chain's rows; without rows of its own choice it keeps its own."""

    def change(expr: Expr) -> Expr:
        return substitute_variables(expr, values)

    def stages(those: tuple[Stage, ...]) -> tuple[Stage, ...]:
        return tuple(replace(s, body=change(s.body)) for s in those)

    def stores(those: tuple[Store, ...]) -> tuple[Store, ...]:
        return tuple(
            Store(s.tensor, tuple(substitute(i, values) for i in s.indices), change(s.value), s.local) for s in those
        )

    c = kernel.contraction
    parts = tuple(replace(p, b=change(p.b), stores=stores(p.stores)) for p in kernel.parts)
    moved = replace(
        kernel, stores=stores(kernel.stores), stages=stages(kernel.stages), parts=parts, schedule=dict(kernel.schedule)
    )
    if c is None:
        moved.axes = (*source.batch, *source.m)
        return moved
    m = c.m if source.whole else source.m
    moved.contraction = replace(c, batch=source.batch, m=m, a=change(c.a), b=change(c.b), stages=stages(c.stages))
    columns = (c.n,) if c.n in kernel.axes else ()
    moved.axes = (*source.batch, *m, *columns)
    return moved

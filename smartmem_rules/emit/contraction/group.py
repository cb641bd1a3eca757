"""Contractions for GPUs with local memory: tiles that a work-group shares, register blocks, slices of the reduction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from smartmem_rules.emit.c.expressions import Internal, Value
from smartmem_rules.emit.c.kernel import Emission, LocalArray
from smartmem_rules.emit.c.partial_sums import LONGEST_TILE, turns_summed
from smartmem_rules.emit.c.primitives import compute_type
from smartmem_rules.emit.c.program import Target, render
from smartmem_rules.emit.c.team import Team
from smartmem_rules.emit.contraction.epilogue import LANES, VectorEpilogue
from smartmem_rules.emit.contraction.group_tiles import loading
from smartmem_rules.emit.contraction.held_scores import HeldScores
from smartmem_rules.emit.contraction.sides import Loading, Side, captured
from smartmem_rules.emit.rowwise.reduction import write_row
from smartmem_rules.plan.artefact import Source
from smartmem_rules.plan.kernel.launch import Single
from smartmem_rules.plan.kernel.model import INNER, Contraction, Scores, Stage, Store, Stored
from smartmem_rules.plan.kernel.row_arrays import array_size, storage_of
from smartmem_rules.plan.ptx_target import target_option
from smartmem_rules.plan.schedule.contraction.group import GroupTile
from smartmem_rules.plan.schedule.records import GroupSchedule, schedule_of
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Read, substitute_variables, walk
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.substitution import substitute, unravel


@dataclass(frozen=True, kw_only=True)
class FinishedPart:
    """The columns of one right factor: its range of column tiles, and how four of them are written.

    Attributes:
        block: the name of the four columns' number, of `blocks`.
        epilogue: computes and writes them.
        turns: of the loop over a work-item's sums that ask for what they read before the first of them writes.
        kept: the arrays that keep what is computed in several turns.
        values, stores: compute what the arrays keep, and write it; with one turn `epilogue` does both.
    """

    first: int
    last: int
    block: str
    blocks: int
    epilogue: str = ""
    turns: int = 1
    kept: Sequence[str] = ()
    values: str = ""
    stores: str = ""


class _Group:
    def __init__(self, launch: Single, target: Target, tensors: Mapping[str, Stored]) -> None:
        kernel = launch.kernel
        assert kernel.contraction is not None
        self.kernel = kernel
        self.schedule = schedule_of(kernel, GroupSchedule)
        self.subgroup = target.device.compute.subgroup
        self.shuffles = bool(target.device.compute.shuffle)
        self.contraction: Contraction = kernel.contraction
        self.tile = self.schedule.tile
        self.unit = self.tile.unit
        self.splits = self.schedule.splits
        self.emission = Emission(launch=launch, target=target, tensors=tensors, width=LANES)
        self.emission.options = () if self.unit is None else (*self.unit.option, *target_option(self.unit.target))
        c = self.contraction
        self.m_count = math.prod(v.extent for v in c.m)
        self.batch = Var("batch", math.prod(v.extent for v in c.batch))
        self.row = Var("row", self.m_count)
        places = unravel(variable(self.batch), tuple(v.extent for v in c.batch))
        self.batch_values = dict(zip(c.batch, places, strict=True))

    def emit(self) -> Source:
        tile, c = self.tile, self.contraction
        expressions = self.emission.expressions
        names = {"batch": expressions.name(self.batch), "row": expressions.name(self.row)}
        extents = [c.n.extent, *(part.n.extent for part in self.kernel.parts)]
        columns = sum(-(-n // tile.columns) for n in extents)
        row_tiles = -(-self.m_count // tile.rows)
        turns = -(-math.prod(v.extent for v in c.k) // tile.step)
        turns_each = -(-turns // self.splits)
        shared = {name: self.emission.accesses[tensor].parameter for name, tensor in self._meeting.items()}
        prologue, held, left = "", "", None
        if not tile.held:
            prologue = captured(self.emission, self._prologue)
            left = loading(self.emission, tile, self._left())
        right = loading(self.emission, tile, self._right(columns))
        if tile.held:
            held = self._held(right)
        parts = self._parts()
        self.emission.shared += self._tiles()
        return self.emission.source(
            "contraction_group.cl",
            row_tiles * columns * self.batch.extent * self.splits * tile.threads,
            s=tile,
            splits=self.splits,
            turns=turns,
            turns_each=turns_each,
            turns_summed=self._turns_summed(tile, turns_each),
            column_tiles=columns,
            row_tiles=row_tiles,
            m=self.m_count,
            u=self.unit,
            fetches=right.copied and self._fetches,
            unit_texts=self._unit_texts(),
            prologue=prologue,
            held=held,
            left=left,
            right=right,
            parts=parts,
            overlapped=parts[0].turns,
            **names,
            **shared,
        )

    def _turns_summed(self, tile: GroupTile, turns: int) -> int:
        """Turns of a partial sum where a work-group takes so many; 0 where one sum takes them all."""
        most = LONGEST_TILE if self.unit is None else self.unit.longest_sum or LONGEST_TILE
        return turns_summed(turns, tile.step // tile.slices, most)

    def _unit_texts(self) -> str:
        """The functions of the matrix unit."""
        unit = self.unit
        return "" if unit is None else render(f"{unit.texts}.cl", u=unit, f=unit.fragments, s=self.tile)

    @property
    def _fetches(self) -> bool:
        """Whether tiles of the right factor can be asked for before the work-group waits for others."""
        if not self.emission.target.coherent or self.contraction.stages:
            return False
        read = {node.tensor for node in walk(self.contraction.b) if isinstance(node, Read)}
        constants = {name for name, stored in self.emission.tensors.items() if stored.role == "constant"}
        return self.schedule.packed is not None or read <= constants

    @property
    def _meeting(self) -> dict[str, str]:
        """The tensors through which work-groups add up one reduction, by their names in the template."""
        schedule = self.schedule
        return {"partials": schedule.partials, "arrivals": schedule.arrivals} if self.splits > 1 else {}

    def _tiles(self) -> list[LocalArray]:
        """The tiles of both factors, and what tells the last work-group of a split reduction."""
        tile = self.tile
        arrays = [LocalArray("float", "memory", tile.memory)]
        if tile.direct:
            # arrays of halves may not be declared where halves are no type to compute in
            left, right = ("ushort" if kind == "half" else "float" for kind in (tile.left_type, tile.right_type))
            arrays = [
                LocalArray(left, "left_tile", tile.buffers * tile.rows * tile.left_stride),
                LocalArray(right, "right_tile", tile.buffers * tile.step * tile.right_stride),
            ]
        if self.unit is not None and self.unit.passes > 1:
            arrays.append(LocalArray("int", "rare", 2))
        return arrays if self.splits == 1 else [*arrays, LocalArray("int", "arrived", 1)]

    # --- what the rows of the left factor need ---

    def _prologue(self) -> None:
        """Scalars and arrays of each row of the tile into local memory, a team of work-items for a row."""
        c, tile, emission = self.contraction, self.tile, self.emission
        if not c.stages:
            return
        size = tile.team
        team = Team(
            size=size,
            lane=f"(thread % {size})",
            thread="thread",
            scratch="across",
            rows=tile.rows,
            row="team_row",
            shuffles=self.shuffles,
            subgroup=self.subgroup,
        )
        emission.shared.append(LocalArray("float", "across", tile.threads))
        inner = 0 if c.scores is None else array_size((c.scores.n,))
        emission.storage = storage_of(c.stages, c.a, inner)
        if c.scores is not None:
            emission.expressions.team = team
            array = emission.row_array(INNER, "float32", inner)
            emission.expressions.team = None
            emission.writer.line(f"__local float* inner_rows = {array.name};")
            self._scores(c.scores, inner)
        teams = tile.threads // size
        for number, stage in enumerate(s for s in c.stages if not s.axes):
            emission.shared.append(LocalArray(compute_type(stage.dtype), f"statistic{number}", tile.rows))
        turns = f"for (int first = 0; first < {tile.rows}; first += {teams})" if teams < tile.rows else ""
        with emission.expressions.scope(turns):
            emission.writer.line(f"const int team_row = {'first + ' if turns else ''}thread / {size};")
            emission.expressions.team = team if size > 1 else None
            self._row_stages(size)
            emission.expressions.team = None
        emission.writer.line("barrier(CLK_LOCAL_MEM_FENCE);")

    def _row_stages(self, size: int) -> None:
        """What the rows of the teams need, scalars where all work-items find them."""
        c, emission, expressions = self.contraction, self.emission, self.emission.expressions
        if c.scores is not None:
            emission.writer.line(f"__local float* inner_row = {emission.arrays[INNER].row('team_row')};")
            expressions.internal[INNER] = emission.scratch_reader(
                "inner_row", [c.scores.n.extent], "float32", "__local "
            )
        emission.writer.line(f"const int {expressions.name(self.row)} = min(first_row + team_row, {self.m_count - 1});")
        values = self._row_values(self.row)
        for stage in c.stages:
            emission.stage(Stage(stage.name, stage.axes, substitute_variables(stage.body, values), stage.dtype))
        for number, stage in enumerate(s for s in c.stages if not s.axes):
            value = expressions.internal[stage.name](Read(stage.name, (), stage.dtype), None)
            emission.writer.line(f"if (thread % {size} == 0) statistic{number}[team_row] = {value.text};")
        if self._kept:
            first = "column_tile == 0 && split == 0" if self.splits > 1 else "column_tile == 0"
            with expressions.scope(f"if ({first})"), self._rows_that_exist():
                for store in self._kept:
                    indices = tuple(substitute(i, values) for i in store.indices)
                    body = substitute_variables(store.value, values)
                    write_row(emission, Store(store.tensor, indices, body, store.local))

    @contextmanager
    def _rows_that_exist(self) -> Iterator[None]:
        """Stores inside happen once for each row: teams behind the last row compute it again, for the barriers' sake.

        The condition stands at each store, not around the loops, in which PoCL may run a whole work-group in step.
        """
        whole = self.m_count % self.tile.rows == 0
        self.emission.stored_if = "" if whole else f"first_row + team_row < {self.m_count}"
        yield
        self.emission.stored_if = ""

    @property
    def _kept(self) -> tuple[Store, ...]:
        """Rows that are stored besides the sums, because others read them too."""
        return tuple(store for store in self.kernel.stores if store.local)

    def _scores(self, scores: Scores, padded: int) -> None:
        """The rows of the inner contraction, tile by tile of its columns."""
        own = self.tile.scores
        tile, emission = own or self.tile, self.emission
        left, right = self._score_factors(scores, tile, f"inner_tile * {tile.columns}")
        turns = -(-math.prod(v.extent for v in scores.k) // tile.step)
        text = render(
            "group_scores.cl",
            s=tile,
            own=own is not None,
            left=left,
            right=right,
            tiles=-(-scores.n.extent // tile.columns),
            turns=turns,
            turns_summed=self._turns_summed(tile, turns),
            padded=padded,
            u=self.unit,
        )
        for line in text.splitlines():
            emission.writer.line(line)

    def _held(self, right: Loading) -> str:
        """The product of an attention whose scores stay in registers."""
        tile, c, emission = self.tile, self.contraction, self.emission
        assert tile.scores is not None
        assert c.scores is not None
        left, keys = self._score_factors(c.scores, tile.scores, "0")
        turns = -(-math.prod(v.extent for v in c.scores.k) // tile.scores.step)
        rows = HeldScores(emission, c, tile, self.batch_values, self.row, self.shuffles)
        return render(
            "group_held.cl",
            s=tile,
            q=tile.scores,
            u=self.unit,
            right=right,
            left=left,
            keys=keys,
            turns=turns,
            turns_summed=self._turns_summed(tile.scores, turns),
            count=rows.count,
            rows=captured(emission, rows.write),
            fragments=rows.fragments(),
        )

    def _score_factors(self, scores: Scores, tile: GroupTile, first: str) -> tuple[Loading, Loading]:
        """How both factors of the scores are loaded.

        Args:
            first: C text of the first column.
        """
        left = substitute_variables(scores.a, self.batch_values)
        right = substitute_variables(scores.b, self.batch_values)
        rows = Side(name="left", factor=left, own=self.contraction.m, k=scores.k, first="first_row")
        columns = Side(name="right", factor=right, own=(scores.n,), k=scores.k, first=first)
        return loading(self.emission, tile, rows), loading(self.emission, tile, columns)

    def _row_values(self, row: Var) -> dict[Var, Index]:
        c = self.contraction
        places = unravel(variable(row), tuple(v.extent for v in c.m))
        return {**self.batch_values, **dict(zip(c.m, places, strict=True))}

    # --- the factors ---

    def _left(self) -> Side:
        c, internal = self.contraction, self.emission.expressions.internal
        scalars = [s for s in c.stages if not s.axes]
        for number, stage in enumerate(scalars):
            internal[stage.name] = _statistic(number)
        for stage in c.stages:
            if stage.axes:
                row = f"({self.emission.arrays[stage.name].row('at')})"
                extents = [v.extent for v in stage.axes]
                internal[stage.name] = self.emission.scratch_reader(row, extents, stage.dtype, "__local ")
        return Side(
            name="left",
            factor=substitute_variables(c.a, self.batch_values),
            own=c.m,
            k=c.k,
            first="first_row",
            by_row=bool(c.stages),
        )

    def _right(self, column_tiles: int) -> Side:
        c, tile = self.contraction, self.tile
        packed = self.schedule.packed
        n, factor = c.n, c.b
        if packed is not None:
            # a constant factor holds the columns of all parts, filled up to whole tiles
            n = Var("packed_column", column_tiles * tile.columns)
            position = Index(0)
            for var in (*packed.batch, *c.k):
                position = add(scale(position, var.extent), variable(var))
            factor = Read(packed.name, (position, variable(n)), "float32")
        right = substitute_variables(factor, self.batch_values)
        return Side(name="right", factor=right, own=(n,), k=c.k, first=f"column_tile * {tile.columns}")

    # --- what is written ---

    def _parts(self) -> list[FinishedPart]:
        kernel = self.kernel
        own = len(kernel.stores) - len(self._kept) - sum(len(p.stores) for p in kernel.parts)
        columns = [(self.contraction.n, kernel.stores[:own]), *((p.n, p.stores) for p in kernel.parts)]
        lane = Var("lane", LANES)
        epilogues = [VectorEpilogue(self.emission, n.extent, lane, stores) for n, stores in columns]
        turns = self._overlapped if all(epilogue.in_two_steps for epilogue in epilogues) else 1
        found: list[FinishedPart] = []
        first = 0
        for (n, _), epilogue in zip(columns, epilogues, strict=True):
            tiles = -(-n.extent // self.tile.columns)
            found.append(self._part(n, epilogue, first, first + tiles, turns))
            first += tiles
        return found

    @property
    def _overlapped(self) -> int:
        """Turns of the loop over a work-item's sums that ask for what they read at once.

        One after the other, each would wait for memory, and a work-group has few sub-groups to fill the time.
        """
        tile = self.tile
        turns, rest = divmod(tile.rows * tile.columns // LANES, tile.threads)
        most = self.emission.target.device.text.unroll
        # the turns of a work-item have the same columns
        if tile.direct or rest or tile.threads % (tile.columns // LANES):
            return 1
        return max(n for n in range(1, most + 1) if turns % n == 0)

    def _part(self, n: Var, epilogue: VectorEpilogue, first: int, last: int, turns: int) -> FinishedPart:
        blocks = -(-n.extent // LANES)
        block = Var(f"block{first}", blocks)
        name = self.emission.expressions.name(block)
        at = {**self._row_values(self.row), n: add(scale(variable(block), LANES), variable(epilogue.lane))}
        epilogue.set_accumulator("finished")
        if turns == 1:
            written = captured(self.emission, lambda: epilogue.write(at, block))
            return FinishedPart(first=first, last=last, block=name, blocks=blocks, epilogue=written)
        return FinishedPart(
            first=first,
            last=last,
            block=name,
            blocks=blocks,
            turns=turns,
            kept=epilogue.declarations(turns),
            values=captured(self.emission, lambda: epilogue.keep(at)),
            stores=captured(self.emission, lambda: epilogue.store(at)),
        )


def _statistic(number: int) -> Internal:
    return lambda read, lane: Value(f"statistic{number}[at]", 1)


def emit_group(launch: Single, target: Target, tensors: Mapping[str, Stored]) -> Source:
    """A contraction for GPUs; the kernel's schedule holds the sizes of `GroupTile`, `splits` and `packed`."""
    return _Group(launch, target, tensors).emit()

"""An attention whose scores stay in registers: what is computed of each row of them, and the left factor they become.

A lane of a matrix unit holds some elements of some rows of the scores. Stages of a row that take each element by itself
are loops over the elements of a lane. Reductions add up what a lane has, then the lanes of a row, then the sub-groups
that hold other columns of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from smartmem_rules.emit.c.expressions import Internal, Value
from smartmem_rules.emit.c.kernel import Emission, LocalArray
from smartmem_rules.emit.c.primitives import combine, identity
from smartmem_rules.emit.c.reduction_cse import share_terms
from smartmem_rules.language.blocks.matrix import Matrix
from smartmem_rules.plan.kernel.model import INNER, Contraction, Stage
from smartmem_rules.plan.schedule.contraction.group import GroupTile
from smartmem_rules.plan.schedule.contraction.score_tiles import outermost
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, Read, Reduce, replaced, substitute_variables
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.substitution import unravel

SCORES, WEIGHTS = "scores", "weights"
"""The names of a lane's elements in the kernel's text: as the product gives them, and as the left factor takes them."""


class HeldScores:
    """Writes the stages of a contraction's rows over the elements that a lane holds."""

    def __init__(
        self, emission: Emission, contraction: Contraction, tile: GroupTile, batch: Mapping[Var, Index], row: Var,
        shuffles: bool,
    ) -> None:  # fmt: skip
        assert tile.unit is not None
        assert tile.scores is not None
        assert contraction.scores is not None
        self.emission = emission
        self.contraction = contraction
        self.tile = tile
        self.unit: Matrix = tile.unit
        self.batch = batch
        self.row = row
        self.shuffles = shuffles
        self.sums = self.unit.fragments["sum"]
        self.across = tile.scores.warp_columns // self.unit.columns
        self.down = tile.warp_rows // self.unit.rows
        self.column = Var("score_column", contraction.scores.n.extent)
        self.row_places = sorted({self.sums.place(0, e)[0] for e in range(self.sums.element_count)})
        self.reductions = 0

    @property
    def count(self) -> int:
        """Elements of a lane."""
        return self.down * self.across * self.sums.element_count

    @property
    def slots(self) -> int:
        """Rows of which a lane holds elements."""
        return self.down * len(self.row_places)

    def write(self) -> None:
        """From `SCORES` to `WEIGHTS`."""
        emission, c = self.emission, self.contraction
        lanes = 1 if self.shuffles else self.unit.row_lanes
        emission.shared.append(LocalArray("float", "across", self.tile.rows * self.tile.slices * lanes))
        emission.expressions.internal[INNER] = _element(SCORES)
        # exponentials are not computed again: a lane has registers for them
        stages, (last,) = share_terms(c.stages, (c.a,), emission.target.device.text)
        for stage in stages:
            if stage.axes:
                self._array(stage)
            else:
                self._scalar(stage)
        with self._elements():
            value = emission.expressions.value(self._placed(last, c.k[0]))
            inside = f"column < {self.column.extent} ? {value.text} : 0.0f"
            emission.writer.line(f"{WEIGHTS}[held] = {inside};")

    def fragments(self) -> list[list[list[int]]]:
        """For each step of the product and each fragment of rows, the lane's elements that become a left fragment."""
        each, wide = self.sums.element_count, self.unit.depth // self.unit.columns
        return [
            [
                [((i * self.across) + step * wide + beside) * each + element for beside, element in self.unit.chained]
                for i in range(self.down)
            ]
            for step in range(self.across // wide)
        ]

    # --- stages ---

    def _array(self, stage: Stage) -> None:
        """An element for each of a lane's."""
        emission = self.emission
        name = emission.expressions.temporary()
        emission.writer.line(f"float {name}[{self.count}];")
        with self._elements():
            value = emission.expressions.value(self._placed(stage.body, stage.axes[0]))
            emission.writer.line(f"{name}[held] = {value.text};")
        emission.expressions.internal[stage.name] = _element(name)

    def _scalar(self, stage: Stage) -> None:
        """A number for each of a lane's rows, known to all lanes that hold elements of the row."""
        emission, body = self.emission, stage.body
        for node in tuple(dict.fromkeys(outermost(body))):
            found = f"{stage.name}@{self.reductions}"
            self.reductions += 1
            emission.expressions.internal[found] = _of_row(self._reduced(node))
            body = replaced(body, node, Read(found, (), node.dtype))
        name = emission.expressions.temporary()
        emission.writer.line(f"float {name}[{self.slots}];")
        with self._rows():
            value = emission.expressions.value(self._placed(body, None))
            emission.writer.line(f"{name}[slot] = {value.text};")
        emission.expressions.internal[stage.name] = _of_row(name)

    def _reduced(self, node: Reduce) -> str:
        """The name of the results for a lane's rows."""
        emission, kind = self.emission, node.kind
        writer, name = emission.writer, emission.expressions.temporary()
        writer.line(f"float {name}[{self.slots}];")
        with self._rows():
            writer.line(f"{name}[slot] = {identity(kind, node.dtype)};")
        with self._elements():
            value = emission.expressions.value(self._placed(node.body, node.variables[0]))
            both = combine(kind, f"{name}[slot]", value.text, node.dtype, 1)
            writer.line(f"if (column < {self.column.extent}) {name}[slot] = {both};")
        self._met(kind, name, node.dtype)
        return name

    def _met(self, kind: str, name: str, dtype: str) -> None:
        """Combine what the lanes of a row have found, and the sub-groups that hold columns of it."""
        writer, lanes, slices = self.emission.writer, self.unit.row_lanes, self.tile.slices
        if self.shuffles:
            with self._rows(), writer.block(f"for (int distance = {lanes // 2}; distance > 0; distance /= 2)"):
                other = f"smr_neighbour({name}[slot], distance, {lanes})"
                writer.line(f"{name}[slot] = {combine(kind, f'{name}[slot]', other, dtype, 1)};")
        members = slices * (1 if self.shuffles else lanes)
        if members == 1:
            return
        place = f"at * {slices} + slice"
        if not self.shuffles:
            place = f"({place}) * {lanes} + lane % {lanes}"
        writer.line("barrier(CLK_LOCAL_MEM_FENCE);")
        with self._rows():
            first = f"if (lane % {lanes} == 0) " if self.shuffles else ""
            writer.line(f"{first}across[{place}] = {name}[slot];")
        writer.line("barrier(CLK_LOCAL_MEM_FENCE);")
        with self._rows():
            writer.line(f"{name}[slot] = across[at * {members}];")
            writer.line("#pragma unroll")
            with writer.block(f"for (int member = 1; member < {members}; ++member)"):
                both = combine(kind, f"{name}[slot]", f"across[at * {members} + member]", dtype, 1)
                writer.line(f"{name}[slot] = {both};")

    def _placed(self, expr: Expr, axis: Var | None) -> Expr:
        """An expression at the row and the column whose variables a loop declares."""
        places = unravel(variable(self.row), tuple(v.extent for v in self.contraction.m))
        values = {**self.batch, **dict(zip(self.contraction.m, places, strict=True))}
        if axis is not None:
            values[axis] = variable(self.column)
        return substitute_variables(expr, values)

    # --- loops ---

    @contextmanager
    def _elements(self) -> Iterator[None]:
        """A loop over a lane's elements, `held`, which knows their row, `slot`, and their column."""
        each, rows = self.sums.element_count, len(self.row_places)
        places = [self.sums.place(0, e) for e in range(each)]
        with self._unrolled("held", self.count):
            fragment = f"held / {each}"
            element = f"held % {each}"
            row = _entry([self.row_places.index(r) for r, _ in places], element)
            self._line(f"const int slot = {fragment} / {self.across} * {rows} + {row};")
            self._row_place()
            within = f"{fragment} % {self.across} * {self.unit.columns} + {_entry([c for _, c in places], element)}"
            self._line(f"const int column = slice * {self.across * self.unit.columns} + {within} + own_column;")
            name = self.emission.expressions.name(self.column)
            self._line(f"const int {name} = min(column, {self.column.extent - 1});")
            yield

    @contextmanager
    def _rows(self) -> Iterator[None]:
        """A loop over the rows of which a lane holds elements."""
        with self._unrolled("slot", self.slots):
            self._row_place()
            yield

    def _row_place(self) -> None:
        """The row of a slot: in the tile, and in the tensor."""
        rows = len(self.row_places)
        offset = _entry(self.row_places, f"slot % {rows}")
        self._line(f"const int at = warp_row + slot / {rows} * {self.unit.rows} + {offset} + own_row;")
        name = self.emission.expressions.name(self.row)
        self._line(f"const int {name} = min(first_row + at, {self.row.extent - 1});")

    @contextmanager
    def _unrolled(self, name: str, count: int) -> Iterator[None]:
        self._line("#pragma unroll")
        with self.emission.expressions.scope(f"for (int {name} = 0; {name} < {count}; ++{name})"):
            yield

    def _line(self, text: str) -> None:
        self.emission.writer.line(text)


def _entry(table: list[int], number: str) -> str:
    """C text of an entry of a small table, given the text of its number; a constant where that is one."""
    if len(set(table)) == 1:
        return str(table[0])
    packed = sum(entry << 8 * i for i, entry in enumerate(table))
    return f"(int)({packed:#x}UL >> 8 * ({number}) & 255)"


def _element(name: str) -> Internal:
    return lambda read, lane: Value(f"{name}[held]", 1)


def _of_row(name: str) -> Internal:
    return lambda read, lane: Value(f"{name}[slot]", 1)

"""Contractions for CPUs: staged rows, packed columns, register blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from smartmem_rules.emit.access import consecutive, offset
from smartmem_rules.emit.expressions import Value
from smartmem_rules.emit.kernel import Emission, Target
from smartmem_rules.emit.writer import Writer
from smartmem_rules.plan.model import ACCUMULATOR, Contraction, Kernel, Source, Stage, Store, Stored
from smartmem_rules.tensor.expr import Expr, Read, substitute_reads, substitute_variables
from smartmem_rules.tensor.index import Index, Var, add, scale, substitute, unravel, variable

PACKED = "@packed"
"""Suffix of the constant that holds a right factor in panels of columns."""


@dataclass(frozen=True)
class PanelSchedule:
    """Sizes of a panel contraction: register block, rows of a work-item, tiles of columns of a work-item."""

    rows: int
    columns: int
    block_rows: int
    tiles_per_block: int

    @staticmethod
    def of(kernel: Kernel) -> PanelSchedule:
        s = kernel.schedule
        return PanelSchedule(s["rows"], s["columns"], s["block_rows"], s["tiles_per_block"])


class _Panel:
    def __init__(self, kernel: Kernel, target: Target, tensors: Mapping[str, Stored]) -> None:
        assert kernel.contraction is not None
        self.kernel = kernel
        self.contraction: Contraction = kernel.contraction
        self.schedule = PanelSchedule.of(kernel)
        self.tensors = tensors
        self.emission = Emission(kernel, target, tensors, 8)
        self.m_count = math.prod(v.extent for v in self.contraction.m)
        self.k_count = math.prod(v.extent for v in self.contraction.k)
        self.n_count = self.contraction.n.extent
        self.batch = Var("batch", math.prod(v.extent for v in self.contraction.batch))
        self.row = Var("row", self.m_count)
        self.tiles = -(-self.n_count // self.schedule.columns)

    def values(self, row: Var | None) -> dict[Var, Index]:
        """The batch and row variables in terms of the flat ones."""
        c = self.contraction
        found = dict(zip(c.batch, unravel(variable(self.batch), tuple(v.extent for v in c.batch)), strict=True))
        if row is not None:
            found.update(zip(c.m, unravel(variable(row), tuple(v.extent for v in c.m)), strict=True))
        return found

    def emit(self) -> Source:
        expressions = self.emission.expressions
        names = {"batch": expressions.name(self.batch), "row": expressions.name(self.row)}
        right_space, right_pointer = self._right()
        left_space, left_pointer = self._left()
        body = self.emission.writer
        epilogue = Writer()
        self.emission.writer = expressions.writer = epilogue
        with epilogue.block(""):
            self._epilogue()
        self.emission.writer = expressions.writer = body
        s = self.schedule
        row_blocks = -(-self.m_count // s.block_rows)
        column_blocks = -(-self.tiles // s.tiles_per_block)
        items = row_blocks * column_blocks * self.batch.extent
        return self.emission.source(
            "contraction_panel.cl",
            (items,),
            (1,),
            rows=s.rows,
            columns=s.columns,
            block_rows=s.block_rows,
            tiles_per_block=s.tiles_per_block,
            tiles=self.tiles,
            row_blocks=row_blocks,
            column_blocks=column_blocks,
            m=self.m_count,
            k=self.k_count,
            epilogue=epilogue.text(),
            left_space=left_space,
            left_pointer=left_pointer,
            right_space=right_space,
            right_pointer=right_pointer,
            **names,
        )

    # --- the left factor ---

    def _left(self) -> tuple[str, str]:
        """Address space and pointer to a row of the left factor; stages the rows where they are not in memory."""
        direct = self._direct_left()
        if direct is not None:
            return direct
        c, expressions, writer = self.contraction, self.emission.expressions, self.emission.writer
        writer.line(f"float panel[{self.schedule.block_rows * self.k_count}];")
        local = Var("staged", self.schedule.block_rows)
        name, row = expressions.name(local), expressions.name(self.row)
        with expressions.scope(f"for (int {name} = 0; {name} < row_count; ++{name})"):
            writer.line(f"const int {row} = first_row + {name};")
            values = self.values(self.row)
            for stage in c.stages:
                self.emission.stage(Stage(stage.name, stage.axes, substitute_variables(stage.body, values), stage.dtype))
            a = substitute_variables(c.a, values)
            position = scale(_flat(local), self.k_count)

            def element(at: dict[Var, Index], lane: Var | None) -> None:
                place = add(position, self._k_position(at))
                value = expressions.value(substitute_variables(a, at), lane)
                if lane is None:
                    writer.line(f"panel[{expressions.index(place)}] = {value.text};")
                else:
                    start = expressions.index(add(place, scale(variable(lane), -1)))
                    vector = expressions.spread(value, "float32", lane.extent)
                    writer.line(f"*(smr_float{lane.extent}*)(panel + {start}) = {vector};")

            self.emission.over(c.k, a, element)
        return "", f"panel + (ROW) * {self.k_count}"

    def _k_position(self, at: Mapping[Var, Index]) -> Index:
        position = Index(0)
        for var in self.contraction.k:
            position = add(scale(position, var.extent), at.get(var, variable(var)))
        return position

    def _direct_left(self) -> tuple[str, str] | None:
        c = self.contraction
        if not isinstance(c.a, Read) or c.stages or c.a.tensor not in self.emission.accesses:
            return None
        access = self.emission.accesses[c.a.tensor]
        if access.is_image or access.stored.storage != "float32":
            return None
        flat = Var("flat_k", self.k_count)
        row = Var("direct_row", self.m_count)
        values = self.values(row)
        values.update(zip(c.k, unravel(variable(flat), tuple(v.extent for v in c.k)), strict=True))
        indices = tuple(substitute(i, values) for i in c.a.indices)
        if any(i.gathered for i in indices):
            return None
        start = consecutive(offset(access.stored, indices), flat) if self.k_count > 1 else offset(access.stored, indices)
        if start is None:
            return None
        expressions = self.emission.expressions
        expressions._names[row] = "(first_row + ROW)"
        return "__global ", f"{access.parameter} + {expressions.index(start)}"

    # --- the right factor ---

    def _right(self) -> tuple[str, str]:
        columns = self.schedule.columns
        packed = self.kernel.schedule.get("packed")
        expressions = self.emission.expressions
        batch = expressions.name(self.batch)
        if packed is not None:
            parameter = self.emission.accesses[packed].parameter
            per_tile = self.k_count * columns
            batches = self._right_batch()
            prefix = f"({expressions.index(batches)}) * {self.tiles} + " if not batches.is_constant else ""
            if self.tensors[packed].storage == "float16":
                return "", self._unpacked_halves(parameter, prefix, per_tile)
            return "__global ", f"__global const float* right = {parameter} + ({prefix}tile) * {per_tile};"
        del batch
        return "", self._pack_here()

    def _unpacked_halves(self, parameter: str, prefix: str, per_tile: int) -> str:
        self.emission.writer.line(f"float columns[{per_tile}];")
        return (
            f"for (int k = 0; k < {per_tile}; k += 8) *(smr_float8*)(columns + k) = "
            f"vload_half8(0, {parameter} + ({prefix}tile) * {per_tile} + k); const float* right = columns;"
        )

    def _right_batch(self) -> Index:
        """The position of the batch in a packed constant, which holds only the batches that the factor depends on."""
        position = Index(0)
        values = self.values(None)
        for var in self.kernel.schedule["packed_batch"]:
            position = add(scale(position, var.extent), values[var])
        return position

    def _pack_here(self) -> str:
        """Copy the right factor of this batch into panels of columns."""
        c, expressions, writer = self.contraction, self.emission.expressions, self.emission.writer
        columns = self.schedule.columns
        writer.line(f"float columns[{self.tiles * self.k_count * columns}];")
        b = substitute_variables(c.b, self.values(None))

        def position(at: Mapping[Var, Index]) -> Index:
            n = at.get(c.n, variable(c.n))
            within = add(scale(self._k_position(at), columns), n % columns)
            return add(scale(n // columns, self.k_count * columns), within)

        def element(at: dict[Var, Index], lane: Var | None) -> None:
            value = expressions.value(substitute_variables(b, at), lane)
            place = position(at)
            if lane is None:
                writer.line(f"columns[{expressions.index(place)}] = {value.text};")
                return
            vector = expressions.spread(value, "float32", lane.extent)
            start = add(place, scale(variable(lane), -1))
            if lane not in start.variables:
                writer.line(f"*(smr_float{lane.extent}*)(columns + {expressions.index(start)}) = {vector};")
                return
            for i in range(lane.extent):
                at_lane = expressions.index(substitute(place, {lane: Index(i)}))
                writer.line(f"columns[{at_lane}] = {vector}.s{i};")

        along_k = c.k[-1].extent >= 8 and not expressions.is_contiguous(b, c.n) and expressions.is_contiguous(b, c.k[-1])
        axes = (c.n, *c.k) if along_k else (*c.k, c.n)
        self.emission.over(axes, b, element)
        self._clear_padding()
        return f"const float* right = columns + tile * {self.k_count * columns};"

    def _clear_padding(self) -> None:
        columns = self.schedule.columns
        rest = self.tiles * columns - self.n_count
        if rest:
            start = (self.tiles - 1) * self.k_count * columns + columns - rest
            self.emission.writer.line(
                f"for (int k = 0; k < {self.k_count}; ++k) "
                f"for (int n = 0; n < {rest}; ++n) columns[{start} + k * {columns} + n] = 0.0f;"
            )

    # --- the epilogue ---

    def _epilogue(self) -> None:
        expressions, writer = self.emission.expressions, self.emission.writer
        columns = self.schedule.columns
        tile = Var("tile", self.tiles)
        expressions._names[tile] = "tile"
        first = scale(_flat(tile), columns)
        width, n = 8, self.contraction.n
        whole_tiles, rest = divmod(self.n_count, columns)
        rows = self.values(self.row)
        for part in range(columns // width):
            start = part * width
            if whole_tiles == 0 and start >= rest:
                continue
            always = rest == 0 or (whole_tiles == 0 and start + width <= rest)
            sometimes = whole_tiles > 0 or start + width <= rest
            lane = Var("lane", width)
            condition = f"if (tile * {columns} + {start + width} <= {self.n_count})"
            if sometimes:
                at = {**rows, n: add(add(first, Index(start)), variable(lane))}
                self._set_accumulator(f"*(const smr_float8*)(accumulated + {start})", start)
                with expressions.scope("" if always else condition):
                    self._write(at, lane)
            if not always and start < max(rest, 0):
                self._partial(rows, start, rest, whole_tiles, condition if sometimes else None)
        del writer

    def _partial(
        self, rows: dict[Var, Index], start: int, rest: int, whole_tiles: int, condition: str | None
    ) -> None:
        """Columns of the last tile that fill no vector."""
        expressions = self.emission.expressions
        count = min(8, rest - start)
        place = Var("column", count)
        if count == 8:
            return
        negated = f"if (tile == {whole_tiles})"
        with expressions.scope(negated if condition is not None else ""), expressions.loop(place):
            name = expressions.name(place) if count > 1 else "0"
            self.emission.expressions.internal[ACCUMULATOR] = lambda read, lane: Value(
                f"accumulated[{start} + {name}]", 1
            )
            at = {**rows, self.contraction.n: add(Index(whole_tiles * self.schedule.columns + start), variable(place))}
            self._write(at, None)

    def _set_accumulator(self, vector: str, start: int) -> None:
        def read(node: Read, lane: Var | None) -> Value:
            if lane is not None:
                return Value(vector, lane.extent)
            return Value(f"accumulated[{start + node.indices[0].constant}]", 1)

        self.emission.expressions.internal[ACCUMULATOR] = read

    def _write(self, at: dict[Var, Index], lane: Var | None) -> None:
        for store in self.kernel.stores:
            self.emission.store(_bind_accumulator(store, lane), at, lane)


def _flat(var: Var) -> Index:
    return variable(var)


def _bind_accumulator(store: Store, lane: Var | None) -> Store:
    if lane is None:
        return store

    def read(node: Read) -> Expr:
        return Read(ACCUMULATOR, (variable(lane),), node.dtype) if node.tensor == ACCUMULATOR else node

    return Store(store.tensor, store.indices, substitute_reads(store.value, read), store.local)


def emit_panel(kernel: Kernel, target: Target, tensors: Mapping[str, Stored]) -> Source:
    """A contraction for CPUs; the kernel's schedule holds `rows columns block_rows tiles_per_block` and `packed`."""
    return _Panel(kernel, target, tensors).emit()

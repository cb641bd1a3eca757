"""The columns of a panel contraction: its right factors, and the stores of the finished sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smartmem_rules.emit.c.access import CONVERTED
from smartmem_rules.emit.c.expressions import Internal, Value
from smartmem_rules.emit.c.writer import Writer
from smartmem_rules.emit.contraction.in_place import sums_in_place
from smartmem_rules.emit.contraction.right_bytes import pack_bytes
from smartmem_rules.emit.contraction.right_words import RightWords
from smartmem_rules.plan.kernel.model import ACCUMULATOR, Store
from smartmem_rules.plan.schedule.contraction.factors import PackedBytes, PackedPanel, PackedWords
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, Read, substitute_reads
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add, scale, variable

if TYPE_CHECKING:
    from smartmem_rules.emit.contraction.panel import Panel


def _element(text: str) -> Internal:
    """Reads of the accumulator as one element of it."""
    return lambda read, lane: Value(text, 1)


def _bind_accumulator(store: Store, lane: Var | None) -> Store:
    if lane is None:
        return store

    def read(node: Read) -> Expr:
        return Read(ACCUMULATOR, (variable(lane),), node.dtype) if node.tensor == ACCUMULATOR else node

    return Store(store.tensor, store.indices, substitute_reads(store.value, read), store.local)


@dataclass(kw_only=True)
class Columns:
    """One right factor and what is written of its columns."""

    panel: Panel
    n: Var
    stores: tuple[Store, ...]
    first: int
    space: str = ""
    pointer: str = ""
    epilogue: str = ""
    words: RightWords | None = None
    bytes_zeros: bool = False
    in_place: str | None = None
    """C that computes the sums of a tile from the factor where it lies."""
    direct_pointer: str = ""
    """C of a pointer to a tile of the factor as it is, where `pointer` is one to what was made of it."""

    @property
    def columns(self) -> int:
        return self.panel.schedule.columns

    @property
    def width(self) -> int:
        """Elements of a vector of the epilogue."""
        return self.panel.emission.width

    @property
    def ahead(self) -> int:
        """See `PanelSchedule`; factors that are packed or widened here lie in cache."""
        return self.panel.schedule.ahead if self.space and self.words is None else 0

    @property
    def ahead_lines(self) -> int:
        return self.panel.schedule.ahead_lines

    @property
    def bytes_space(self) -> str:
        """The address space of a factor of bytes."""
        return self.space

    @property
    def tiles(self) -> int:
        return -(-self.n.extent // self.columns)

    # --- the factor ---

    def set_right(self, b: Expr, packed: PackedPanel | None) -> None:
        panel = self.panel
        if panel.contraction.of_bytes:
            self._set_bytes(b, packed)
            return
        if packed is None and panel.schedule.in_place:
            self.in_place = sums_in_place(panel, b, self.n, panel.contraction.k)
            if self.in_place is not None:
                return
        if packed is None:
            panel.pack("columns", b, self.n, panel.contraction.k, self.columns)
            self.pointer = f"const float* right = columns + tile * {panel.k_count * self.columns};"
            return
        if isinstance(packed, PackedWords):
            self._set_words(packed)
            return
        per_tile = panel.right_rows * self.columns
        start = self._tile_of(packed, packed.name, panel.right_rows)
        converted = CONVERTED.get(panel.tensors[packed.name].storage)
        if converted:
            width = panel.emission.width
            self.pointer = (
                f"float widened[{per_tile}]; for (int k = 0; k < {per_tile}; k += {width}) "
                f"*(smr_float{width}*)(widened + k) = vload_{converted}{width}(0, {start} + k); "
                "const float* right = widened;"
            )
            return
        self.space = "__global "
        self.pointer = f"__global const float* right = {start};"

    def set_direct(self, packed: PackedPanel) -> None:
        """The weights of the windows as they are, tap by tap, beside what was made of them."""
        start = self._tile_of(packed, packed.name, self.panel.k_count)
        self.direct_pointer = f"__global const float* taps = {start};"

    def _set_words(self, packed: PackedWords) -> None:
        """The factor as integers in words, with their scales and zeros."""
        panel = self.panel
        words = self.words = RightWords(
            bits=packed.bits,
            block=packed.block,
            depth=panel.right_rows,
            zero=packed.zero if packed.zeros is None else None,
            ahead=packed.ahead,
        )
        self.space = "__global "
        rows = [("uint", "right", packed.name, words.rows_of_words)]
        rows.append(("float", "right_scales", packed.scales, words.rows_of_scales))
        if packed.zeros is not None:
            rows.append(("uchar", "right_zeros", packed.zeros, words.rows_of_scales))
        pointers = (
            f"__global const {kind}* {name} = {self._tile_of(packed, tensor, n)};" for kind, name, tensor, n in rows
        )
        self.pointer = " ".join(pointers)

    def _set_bytes(self, b: Expr, packed: PackedPanel | None) -> None:
        """The factor as words of bytes, with the sums and zeros of its columns."""
        panel = self.panel
        if packed is None:
            self.bytes_zeros = pack_bytes(
                panel.emission, b, self.n, panel.contraction.k, self.columns, panel.values(None)
            )
            self.pointer = (
                f"const int* right = (const int*)columns + tile * {panel.right_rows * self.columns}; "
                f"const int* right_sums = column_sums + tile * {self.columns}; "
                f"const int* right_zeros = column_zeros + tile * {self.columns};"
            )
            return
        assert isinstance(packed, PackedBytes)
        self.space, self.bytes_zeros = "__global ", packed.zeros is not None
        rows = [("right", packed.name, panel.right_rows), ("right_sums", packed.sums, 1)]
        if packed.zeros is not None:
            rows.append(("right_zeros", packed.zeros, 1))
        self.pointer = " ".join(
            f"__global const int* {name} = (__global const int*)({self._tile_of(packed, tensor, n)});"
            for name, tensor, n in rows
        )

    def _tile_of(self, packed: PackedPanel, tensor: str, rows: int) -> str:
        """C text of a pointer to the tile in one of the tensors that hold the factor, of so many rows a tile."""
        emission, batches = self.panel.emission, self._batch(packed)
        prefix = f"({emission.expressions.index(batches)}) * {self.tiles} + " if not batches.is_constant else ""
        return f"{emission.accesses[tensor].parameter} + ({prefix}tile) * {rows * self.columns}"

    def _batch(self, packed: PackedPanel) -> Index:
        """The position of the batch in a packed constant, which holds only the batches that the factor depends on."""
        position = Index(0)
        values = self.panel.values(None)
        for var in packed.batch:
            position = add(scale(position, var.extent), values[var])
        return position

    # --- the epilogue ---

    def write_epilogue(self) -> None:
        emission = self.panel.emission
        body, own = emission.writer, Writer()
        emission.writer = emission.expressions.writer = own
        with own.block(""):
            self._all_columns()
        emission.writer = emission.expressions.writer = body
        self.epilogue = own.text()

    def _all_columns(self) -> None:
        expressions = self.panel.emission.expressions
        columns = self.columns
        tile = Var(f"tile{self.first}", self.tiles)
        expressions.bind_name(tile, "tile")
        first = scale(variable(tile), columns)
        width, n = self.width, self.n
        rows = self.panel.values(self.panel.row)
        if is_symbolic(n.extent):
            self._open_columns(rows, first)
            return
        whole_tiles, rest = divmod(n.extent, columns)
        for start in range(0, columns, width):
            if whole_tiles == 0 and start >= rest:
                continue
            always = rest == 0 or (whole_tiles == 0 and start + width <= rest)
            sometimes = whole_tiles > 0 or start + width <= rest
            lane = Var("lane", width)
            condition = f"if (tile * {columns} + {start + width} <= {n.extent})"
            if sometimes:
                at = {**rows, n: add(add(first, Index(start)), variable(lane))}
                self._set_accumulator(f"(*(const smr_{self.panel.sum_type}{width}*)(accumulated + {start}))", start)
                with expressions.scope("" if always else condition):
                    self._write(at, lane)
            if not always and start < rest:
                self._partial(rows, start, rest, whole_tiles, sometimes)

    def _open_columns(self, rows: dict[Var, Index], first: Index) -> None:
        """The columns of a tile where their number is known at run time: whole vectors, else one by one."""
        expressions, extent, width = self.panel.emission.expressions, self.n.extent, self.width
        for start in range(0, self.columns, width):
            lane, place = Var("lane", width), Var(f"column{start}", width)
            before = f"tile * {self.columns} + {start}"
            with expressions.scope(f"if ({before} + {width} <= {extent})"):
                self._set_accumulator(f"(*(const smr_float{width}*)(accumulated + {start}))", start)
                self._write({**rows, self.n: add(add(first, Index(start)), variable(lane))}, lane)
            name = expressions.name(place)
            head = f"for (int {name} = 0; {name} < {extent} - ({before}); ++{name})"
            with expressions.scope(f"if ({before} + {width} > {extent})"), expressions.scope(head):
                expressions.internal[ACCUMULATOR] = _element(f"accumulated[{start} + {name}]")
                self._write({**rows, self.n: add(add(first, Index(start)), variable(place))}, None)

    def _partial(self, rows: dict[Var, Index], start: int, rest: int, whole_tiles: int, guarded: bool) -> None:
        """Columns of the last tile that fill no vector."""
        expressions = self.panel.emission.expressions
        count = min(self.width, rest - start)
        if count == self.width:
            return
        place = Var("column", count)
        with expressions.scope(f"if (tile == {whole_tiles})" if guarded else ""), expressions.loop(place):
            name = expressions.name(place) if count > 1 else "0"
            expressions.internal[ACCUMULATOR] = lambda read, lane: Value(f"accumulated[{start} + {name}]", 1)
            at = {**rows, self.n: add(Index(whole_tiles * self.columns + start), variable(place))}
            self._write(at, None)

    def _set_accumulator(self, vector: str, start: int) -> None:
        def read(node: Read, lane: Var | None) -> Value:
            if lane is not None:
                return Value(vector, lane.extent)
            return Value(f"accumulated[{start + node.indices[0].constant}]", 1)

        self.panel.emission.expressions.internal[ACCUMULATOR] = read

    def _write(self, at: dict[Var, Index], lane: Var | None) -> None:
        for store in self.stores:
            self.panel.emission.store(_bind_accumulator(store, lane), at, lane)

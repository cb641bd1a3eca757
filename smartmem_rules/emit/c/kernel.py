"""What all kernel forms share: stages, loops over the axes of a row, and stores."""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from smartmem_rules.emit.c.access import C_TYPES, Access
from smartmem_rules.emit.c.expressions import Expressions, Internal, Value, whole_index
from smartmem_rules.emit.c.primitives import compute_type, is_float
from smartmem_rules.emit.c.program import (
    Target,
    checked_grid,
    declarations,
    extent_parameters,
    program,
    render,
    used_dimensions,
)
from smartmem_rules.emit.c.team import Team, shared_loop
from smartmem_rules.emit.c.writer import Writer
from smartmem_rules.plan.artefact import Argument, Source
from smartmem_rules.plan.kernel.addressing import INTEGER_VECTORS, VECTORS
from smartmem_rules.plan.kernel.launch import Single
from smartmem_rules.plan.kernel.model import Stage, Store, Stored
from smartmem_rules.plan.kernel.row_arrays import array_size
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, Read, substitute_reads, substitute_variables
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.ranges import largest, surely_below
from smartmem_rules.tensor.substitution import substitute

LOCAL_ALIGNMENT = 16
"""Alignment of arrays in local memory, in bytes: they are read in vectors of four floats."""


@dataclass(frozen=True)
class RowArray:
    """An array in local memory that holds `size` elements for each row of a work-group."""

    name: str
    size: int

    def row(self, number: str) -> str:
        """C text of a pointer to a row."""
        return f"{self.name} + {number} * {self.size}"


@dataclass(frozen=True)
class LocalArray:
    """An array in the local memory of a work-group."""

    type: str
    name: str
    elements: int

    @property
    def floats(self) -> int:
        """The floats that it takes, whole vectors of four."""
        size = {"ushort": 2, "half": 2, "double": 8, "long": 8, "ulong": 8}.get(self.type, 4)
        return -(-self.elements * size // LOCAL_ALIGNMENT) * LOCAL_ALIGNMENT // 4


@dataclass(kw_only=True)
class Emission:
    """One kernel being written.

    Attributes:
        shared: declarations of local memory.
        storage: which array of a team's rows a stage's array takes the place of (see `storage_of`).
        arrays: the arrays of the rows by stage.
        options: of the OpenCL compiler.
        stored_if: C text of what must hold for a work-item to store at all, empty where all do.
    """

    launch: Single
    target: Target
    tensors: Mapping[str, Stored]
    width: int
    writer: Writer = field(default_factory=Writer)
    shared: list[LocalArray] = field(default_factory=list)
    storage: Mapping[str, str] = field(default_factory=dict)
    arrays: dict[str, RowArray] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    stored_if: str = ""

    def __post_init__(self) -> None:
        self.kernel = self.launch.kernel
        names = list(dict.fromkeys(self.kernel.reads + self.kernel.writes))
        kinds = (*VECTORS, *INTEGER_VECTORS) if self.target.is_cpu else VECTORS
        self.accesses = {name: Access(f"p{i}", self.tensors[name], kinds=kinds) for i, name in enumerate(names)}
        self.expressions = Expressions(self.writer, self.accesses, self.width, self.target.device.text)
        self.expressions.unrolls = not self.target.is_cpu
        self.expressions.splits_borders = self.expressions.vectors_of_integers = self.target.is_cpu
        self.expressions.loads_halves_where = bool(self.target.device.compute.half)
        if self.target.inside:
            self.expressions.table_name = "smr_part_table"

    @property
    def handed(self) -> dict[str, Access]:
        """The tensors that are parameters; others lie in arrays of the body."""
        own = {*self.kernel.reads, *self.kernel.writes}
        return {name: access for name, access in self.accesses.items() if name in own}

    def parameters(self) -> str:
        return declarations(self.launch, self.handed, set(self.kernel.writes), self.target.coherent)

    def source(self, template: str, items: int, **values: Any) -> Source:
        """Fill the form's template and put the prelude before it.

        Args:
            items: work-items that the text is written for; the launch's grid has so many, and less than a group more.

        Raises:
            PlanError: the grid of the launch has another number of work-items.
        """
        grid = checked_grid(self.launch, items)
        values["body"] = self.writer.text()
        values["tables"] = [(name, list(table)) for table, name in self.expressions.tables.items()]
        places = itertools.accumulate((array.floats for array in self.shared), initial=0)
        shared = list(zip(self.shared, places, strict=False))
        values.update(inside=self.target.inside, in_group=self.target.group_items > 0, shared=shared)
        text = render(template, parameters=self.parameters(), **values)
        used = used_dimensions(text, self.target)
        if used:
            text = render(template, parameters=self.parameters() + extent_parameters(used), **values)
        names = tuple(dimension.name for dimension in used)
        written = set(self.kernel.writes)
        arguments = tuple(Argument(n, "write" if n in written else "read") for n in self.handed)
        inside = self.target.inside
        return Source(
            entry="smr_part" if inside else "smr_kernel",
            text=text if inside else program(text, self.target, (access.stored for access in self.accesses.values())),
            arguments=arguments,
            global_size=grid.global_size,
            local_size=grid.local_size,
            options=self.options,
            dimensions=names,
            local_bytes=4 * sum(array.floats for array in self.shared),
        )

    # --- stages: tensors of one row ---

    def stage(self, stage: Stage) -> None:
        """Compute a row's scalar into a variable or a row's array into scratch memory."""
        if not stage.axes:
            value = self.expressions.value(stage.body)
            self.expressions.internal[stage.name] = lambda read, lane: value
            return
        name = self.expressions.temporary()
        extents = [v.extent for v in stage.axes]
        size = largest(math.prod(extents))
        team = self.expressions.team
        if team is None:
            self.writer.line(f"{compute_type(stage.dtype)} {name}[{size}];")
            self._fill(stage, name, "")
            self.expressions.internal[stage.name] = self.scratch_reader(name, extents, stage.dtype)
            return
        home = self.storage.get(stage.name, stage.name)
        reused = self.arrays.get(home)
        if reused is not None:  # others of the team may still read the row that stands there, whole where none share it
            self.writer.line("barrier(CLK_LOCAL_MEM_FENCE);")
        array = reused or self.row_array(home, stage.dtype, array_size(stage.axes))
        self.arrays[stage.name] = array
        self.writer.line(f"__local {compute_type(stage.dtype)}* {name} = {array.row(team.row)};")
        self._fill(stage, name, "__local ")
        self.writer.line("barrier(CLK_LOCAL_MEM_FENCE);")
        self.expressions.internal[stage.name] = self.scratch_reader(name, extents, stage.dtype, "__local ")

    def row_array(self, name: str, dtype: str, size: int) -> RowArray:
        """A new array in local memory with a row for each team."""
        team = self.expressions.team
        assert team is not None
        array = self.arrays[name] = RowArray(f"rows{len(self.arrays)}", size)
        self.shared.append(LocalArray(compute_type(dtype), array.name, team.rows * size))
        return array

    def scratch_reader(self, name: str, extents: list[int], dtype: str, space: str = "") -> Any:
        own = weakref.proxy(self)  # the expressions hold what is given back

        def read(node: Read, lane: Var | None) -> Value:
            position = Index(0)
            for index, extent in zip(node.indices, extents, strict=True):
                position = add(scale(position, extent), index)
            text = own.expressions.index
            if lane is None:
                return Value(f"{name}[{text(position)}]", 1)
            start = add(position, scale(variable(lane), -1))
            if lane in start.variables:
                places = [text(substitute(position, {lane: Index(i)})) for i in range(lane.extent)]
                elements = ", ".join(f"{name}[{p}]" for p in places)
                return Value(f"({compute_type(dtype, lane.extent)})({elements})", lane.extent)
            vector = f"smr_{compute_type(dtype, lane.extent)}"
            return Value(f"(*({space}const {vector}*)({name} + {text(start)}))", lane.extent)

        return read

    def _fill(self, stage: Stage, name: str, space: str) -> None:
        def element(body: Expr, values: dict[Var, Index], lane: Var | None) -> None:
            value = self.expressions.value(substitute_variables(body, values), lane)
            position = Index(0)
            for var in stage.axes:
                position = add(scale(position, var.extent), values.get(var, variable(var)))
            if lane is None:
                self.writer.line(f"{name}[{self.expressions.index(position)}] = {value.text};")
            else:
                start = self.expressions.index(add(position, scale(variable(lane), -1)))
                text = self.expressions.spread(value, stage.dtype, lane.extent)
                self.writer.line(f"*({space}smr_{compute_type(stage.dtype, lane.extent)}*)({name} + {start}) = {text};")

        self.over(stage.axes, stage.body, element)

    # --- loops over the axes inside a row ---

    def over(self, axes: tuple[Var, ...], body: Expr, element: Any) -> None:
        """Loops over the axes, the last in vectors where the elements lie side by side and the rest one by one.

        The members of a team divide one of the loops. Where no element has to ask for the border of what it reads,
        CPUs take loops of their own.

        Args:
            element: called with the body, the values of the axes, and the lane if the elements are those of a vector.
        """
        for place in self.expressions.border_and_interior(body, axes):
            self._over(axes, place, lambda values, lane, place=place: element(place, values, lane))

    def _over(self, axes: tuple[Var, ...], body: Expr, element: Any) -> None:
        team = self.expressions.team
        if not axes:
            self.on_first_lane(lambda: element({}, None))
            return
        *outer, last = axes
        vectors = self._vectors(last, body)
        divided = None
        if team is not None:
            steps = [*(v.extent for v in outer), vectors or last.extent]
            divided = shared_loop([largest(extent) for extent in steps], team.size)
        with self.expressions.without_team():
            self._nest(axes, vectors != 0, divided, team, element)

    def on_first_lane(self, element: Any) -> None:
        """What one member of a team does for all of them."""
        team = self.expressions.team
        if team is None:
            element()
            return
        with self.expressions.without_team(), self.expressions.scope(f"if ({team.lane} == 0)"):
            element()

    def _nest(self, axes: tuple[Var, ...], vectors: bool, divided: int | None, team: Team | None, element: Any) -> None:
        mine = team if divided == 0 else None
        first, *others = axes
        if not others:
            self._along(first, vectors, mine, element)
            return
        with self.expressions.divided(first, mine):
            self._nest(tuple(others), vectors, None if divided is None else divided - 1, team, element)

    def _vectors(self, axis: Var, body: Expr) -> int:
        """How many whole vectors lie along the axis; none where its elements do not lie side by side."""
        if (
            surely_below(axis.extent, self.width)
            or not self.expressions.has_vectors(body.dtype)
            or not self.expressions.is_contiguous(body, axis)
        ):
            return 0
        return axis.extent // self.width

    def _along(self, axis: Var, vectors: bool, team: Team | None, element: Any) -> None:
        """`element(values, lane)` for all places of one axis: whole vectors first, then what is left."""

        def loop(var: Var) -> Any:
            return self.expressions.divided(var, team)

        if not vectors:
            with loop(axis):
                element({axis: variable(axis)}, None)
            return
        whole, rest = divmod(axis.extent, self.width)
        lane, block = Var("lane", self.width), Var(f"{axis.name}_block", whole)
        name = self.expressions.name(block)
        turns = team.head(name, whole) if team else f"for (int {name} = 0; {name} < {whole}; ++{name})"
        if team is None and self.expressions.writes_out(block):
            self.writer.line("#pragma unroll")
        with self.expressions.loop(block, turns):
            element({axis: add(scale(whole_index(block), self.width), variable(lane))}, lane)
        if rest:
            tail = Var(f"{axis.name}_tail", rest)
            with loop(tail):
                element({axis: add(whole_index(tail), Index(whole * self.width))}, None)

    # --- stores ---

    def store(self, store: Store, values: Mapping[Var, Index], lane: Var | None) -> None:
        """Write one element, or the elements over the lane, to a buffer or (whole texels) to an image."""
        access = self.accesses[store.tensor]
        value = self.expressions.value(substitute_variables(store.value, values), lane)
        indices = tuple(substitute(i, values) for i in store.indices)
        text = self.expressions.index
        if lane is None:
            self._write(access.write(indices, self._stored(value.text, store), text))
        elif access.contiguous(indices, lane):
            vector = self.expressions.spread(value, store.value.dtype, lane.extent)
            self._write(access.write_vector(indices, lane, vector, text))
        else:
            self._scatter(store, access, indices, value, lane)

    def texel(self, store: Store, values: Mapping[Var, Index], vector: str) -> None:
        """Write a texel, whose text is given, to an image."""
        indices = tuple(substitute(i, values) for i in store.indices)
        self._write(self.accesses[store.tensor].write_texel(indices, vector, self.expressions.index))

    def _scatter(self, store: Store, access: Access, indices: tuple[Index, ...], value: Value, lane: Var) -> None:
        vector = self.expressions.spread(value, store.value.dtype, lane.extent)
        if not vector.isidentifier():
            vector = f"({vector})"
        for place in range(lane.extent):
            at = tuple(substitute(i, {lane: Index(place)}) for i in indices)
            element = f"{vector}.s{place}"
            if access.is_image:
                texel = f"(float4)({element}, 0.0f, 0.0f, 0.0f)"
                self._write(access.write_texel(at, texel, self.expressions.index))
            else:
                self._write(access.write(at, self._stored(element, store), self.expressions.index))

    def _write(self, statement: str) -> None:
        self.writer.line(f"if ({self.stored_if}) {statement}" if self.stored_if else statement)

    def _stored(self, text: str, store: Store) -> str:
        storage = self.tensors[store.tensor].storage
        return text if is_float(storage) else f"({C_TYPES[storage]}){text}"


def lane_reader(value: Value) -> Internal:
    """Reads of a value that was computed for all lanes at once: the vector, or one lane of it."""

    def read(node: Read, lane: Var | None) -> Value:
        if value.width > 1 and node.indices and node.indices[0].is_constant:
            return Value(f"{value.text}.s{node.indices[0].constant}", 1)
        return value

    return read


def with_lane(expr: Expr, staged: set[str], lane: Var | None) -> Expr:
    """The expression with its reads of staged values bound to the lane, so that they can be taken apart."""
    if lane is None or not staged:
        return expr

    def read(node: Read) -> Expr:
        return Read(node.tensor, (variable(lane),), node.dtype) if node.tensor in staged else node

    return substitute_reads(expr, read)

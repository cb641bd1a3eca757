"""What all kernel forms share: parameters, stages, stores and the program text around a body."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import jinja2

from smartmem_rules.emit.access import C_TYPES, Access
from smartmem_rules.emit.expressions import Expressions, Internal, Value
from smartmem_rules.emit.primitives import compute_type, is_float
from smartmem_rules.emit.writer import Writer
from smartmem_rules.plan.model import Argument, Kernel, Source, Stage, Store, Stored
from smartmem_rules.resources import templates_path
from smartmem_rules.tensor.expr import Expr, Read, substitute_reads, substitute_variables
from smartmem_rules.tensor.extents import Dimension, largest, surely_below
from smartmem_rules.tensor.index import Index, Var, add, scale, variable
from smartmem_rules.tensor.substitution import substitute


@dataclass(frozen=True)
class Target:
    """What emission needs to know: the kind of the device (cpu, gpu, texture_gpu), the lanes of its vectors, and the
    dimensions for a range of which kernels are made."""

    kind: str
    width: int
    dimensions: tuple[Dimension, ...] = ()

    @property
    def is_cpu(self) -> bool:
        return self.kind == "cpu"


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(str(templates_path()))
    return jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def render(template: str, **values: Any) -> str:
    """A template of `codegen/` filled in."""
    return _environment().get_template(template).render(**values)


@dataclass
class Emission:
    """One kernel being written."""

    kernel: Kernel
    target: Target
    tensors: Mapping[str, Stored]
    width: int
    writer: Writer = field(default_factory=Writer)

    def __post_init__(self) -> None:
        names = list(dict.fromkeys(self.kernel.reads + self.kernel.writes))
        self.accesses = {name: Access(f"p{i}", self.tensors[name]) for i, name in enumerate(names)}
        self.expressions = Expressions(self.writer, self.accesses, self.width)

    def parameters(self) -> str:
        written = set(self.kernel.writes)
        declared = (a.declaration("write" if n in written else "read") for n, a in self.accesses.items())
        return ",\n    ".join(declared)

    def source(
        self, template: str, global_size: tuple[int, ...], local_size: tuple[int, ...] | None, **values: Any
    ) -> Source:
        """Fill the form's template and put the prelude before it."""
        values["body"] = self.writer.text()
        values["tables"] = [(name, list(table)) for table, name in self.expressions.tables.items()]
        text = render(template, parameters=self.parameters(), **values)
        used = [dimension for dimension in self.target.dimensions if re.search(rf"\b{dimension.parameter}\b", text)]
        if used:
            extents = "".join(f",\n    const int {dimension.parameter}" for dimension in used)
            text = render(template, parameters=self.parameters() + extents, **values)
        defines = ["#define SMR_CPU"] if self.target.is_cpu else []
        if any(a.stored.storage == "float64" for a in self.accesses.values()):
            defines.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
        prelude = render("prelude.cl")
        written = set(self.kernel.writes)
        arguments = tuple(Argument(n, "write" if n in written else "read") for n in self.accesses)
        names = tuple(dimension.name for dimension in used)
        text = "\n".join([*defines, prelude, text])
        return Source("smr_kernel", text, arguments, global_size, local_size, dimensions=names)

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
        self.writer.line(f"{compute_type(stage.dtype)} {name}[{size}];")
        self._fill(stage, name)
        self.expressions.internal[stage.name] = self.scratch_reader(name, extents, stage.dtype)

    def scratch_reader(self, name: str, extents: list[int], dtype: str) -> Any:
        def read(node: Read, lane: Var | None) -> Value:
            position = Index(0)
            for index, extent in zip(node.indices, extents, strict=True):
                position = add(scale(position, extent), index)
            text = self.expressions.index
            if lane is None:
                return Value(f"{name}[{text(position)}]", 1)
            start = add(position, scale(variable(lane), -1))
            if lane in start.variables:
                places = [text(substitute(position, {lane: Index(i)})) for i in range(lane.extent)]
                elements = ", ".join(f"{name}[{p}]" for p in places)
                return Value(f"({compute_type(dtype, lane.extent)})({elements})", lane.extent)
            return Value(f"(*(const smr_float{lane.extent}*)({name} + {text(start)}))", lane.extent)

        return read

    def _fill(self, stage: Stage, name: str) -> None:
        def element(values: dict[Var, Index], lane: Var | None) -> None:
            value = self.expressions.value(substitute_variables(stage.body, values), lane)
            position = Index(0)
            for var in stage.axes:
                position = add(scale(position, var.extent), values.get(var, variable(var)))
            if lane is None:
                self.writer.line(f"{name}[{self.expressions.index(position)}] = {value.text};")
            else:
                start = self.expressions.index(add(position, scale(variable(lane), -1)))
                text = self.expressions.spread(value, stage.dtype, lane.extent)
                self.writer.line(f"*(smr_float{lane.extent}*)({name} + {start}) = {text};")

        self.over(stage.axes, stage.body, element)

    # --- loops over the axes inside a row ---

    def over(self, axes: tuple[Var, ...], body: Expr, element: Any) -> None:
        """Loops over the axes, the last in vectors where the elements lie side by side and the rest one by one."""
        if not axes:
            element({}, None)
            return
        *outer, last = axes
        self._nest(tuple(outer), lambda: self.along(last, body, element))

    def _nest(self, axes: tuple[Var, ...], inner: Any) -> None:
        if not axes:
            inner()
            return
        with self.expressions.loop(axes[0]):
            self._nest(axes[1:], inner)

    def along(self, axis: Var, body: Expr, element: Any) -> None:
        """`element(values, lane)` for all places of one axis: whole vectors first, then what is left."""
        width = self.width
        if surely_below(axis.extent, width) or not is_float(body.dtype) or not self.expressions.is_contiguous(body, axis):
            with self.expressions.loop(axis):
                element({axis: variable(axis)}, None)
            return
        whole, rest = divmod(axis.extent, width)
        lane, block = Var("lane", width), Var(f"{axis.name}_block", whole)
        with self.expressions.loop(block):
            element({axis: add(scale(variable(block), width), variable(lane))}, lane)
        if rest:
            tail = Var(f"{axis.name}_tail", rest)
            with self.expressions.loop(tail):
                element({axis: add(variable(tail), Index(whole * width))}, None)

    # --- stores ---

    def store(self, store: Store, values: Mapping[Var, Index], lane: Var | None) -> None:
        """Write one element, or the elements over the lane, to a buffer or (whole texels) to an image."""
        access = self.accesses[store.tensor]
        value = self.expressions.value(substitute_variables(store.value, values), lane)
        indices = tuple(substitute(i, values) for i in store.indices)
        text = self.expressions.index
        if lane is None:
            self.writer.line(access.write(indices, self._stored(value.text, store), text))
        elif access.contiguous(indices, lane):
            vector = self.expressions.spread(value, store.value.dtype, lane.extent)
            self.writer.line(access.write_vector(indices, lane, vector, text))
        else:
            self._scatter(store, access, indices, value, lane)

    def _scatter(self, store: Store, access: Access, indices: tuple[Index, ...], value: Value, lane: Var) -> None:
        vector = self.expressions.spread(value, store.value.dtype, lane.extent)
        if not vector.isidentifier():
            vector = f"({vector})"
        for place in range(lane.extent):
            at = tuple(substitute(i, {lane: Index(place)}) for i in indices)
            element = f"{vector}.s{place}"
            if access.is_image:
                texel = f"(float4)({element}, 0.0f, 0.0f, 0.0f)"
                self.writer.line(access.write_texel(at, texel, self.expressions.index))
            else:
                self.writer.line(access.write(at, self._stored(element, store), self.expressions.index))

    def _stored(self, text: str, store: Store) -> str:
        storage = self.tensors[store.tensor].storage
        return text if storage == "float16" or is_float(storage) else f"({C_TYPES[storage]}){text}"


def lane_reader(value: Value) -> Internal:
    """Reads of a value that was computed for all lanes at once: the vector, or one lane of it."""

    def read(node: Read, lane: Var | None) -> Value:
        if value.width > 1 and node.indices and node.indices[0].is_constant:
            return Value(f"{value.text}.s{node.indices[0].constant}", 1)
        return value

    return read


def with_lane(store: Store, staged: set[str], lane: Var | None) -> Store:
    """The store with its reads of staged values bound to the lane, so that they can be taken apart."""
    if lane is None or not staged:
        return store

    def read(node: Read) -> Expr:
        return Read(node.tensor, (variable(lane),), node.dtype) if node.tensor in staged else node

    return replace(store, value=substitute_reads(store.value, read))

"""Products whose reduction is divided among tasks, and whose partial sums the next kernel adds up as it reads its rows.

Where few work-groups share a long reduction (split-K), the last of a tile's work-groups waits for the others, reads
their partial sums and runs the epilogue. In a launch whose work-groups take tasks in order, a kernel that normalises
the rows comes next and waits for all of them anyway: it can add the sums up and run the epilogue itself. The product
then has one batch for each part of the reduction and nothing behind its sums, so it may be divided into more parts.
Others that need the product's result, as a residual addition does, read what the kernel of the rows stores of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field, replace

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.fuse import InOrder
from smartmem_rules.plan.kernel.key import kernel_key
from smartmem_rules.plan.kernel.launch import Launch, Single
from smartmem_rules.plan.kernel.model import ACCUMULATOR, Contraction, Kernel, Stage, Store, Stored, row_major
from smartmem_rules.plan.kernel.traffic import accounted, expressions
from smartmem_rules.plan.schedule.contraction.group import group_cost
from smartmem_rules.plan.schedule.templates import GroupForm, Templates
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import (
    Apply,
    Expr,
    Read,
    TensorType,
    own_indices,
    substitute_reads,
    substitute_variables,
    walk,
)
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add, scale, variable

SUM_BYTES = 4
_SUM = "float32"


@dataclass(frozen=True)
class DividedSums:
    """Finds such pairs of a product and a kernel of rows, and divides those for which the model says that it pays.

    Attributes:
        outputs: tensors that have to be stored, whoever reads them.
    """

    rule: InOrder
    templates: Templates
    outputs: Collection[str]
    _found: dict[str, int | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def divided(self, launches: Sequence[Launch]) -> tuple[list[Launch], dict[str, Stored]]:
        """The launches, and the tensors of partial sums."""
        found, sums = list(launches), dict[str, Stored]()
        for place, launch in enumerate(found):
            made = self._pair(launch, found[place + 1 :])
            if made is None:
                continue
            number, product, rows, partial = made
            found[place], found[place + 1 + number] = product, rows
            sums[partial.name] = partial
        return found, sums

    def _pair(self, launch: Launch, later: Sequence[Launch]) -> tuple[int, Launch, Launch, Stored] | None:
        """The place of the kernel of rows behind the product, what both become, and the tensor between them."""
        if not isinstance(launch, Single) or not _is_plain(launch.kernel):
            return None
        (store,) = launch.kernel.stores
        readers = [number for number, other in enumerate(later) if store.tensor in other.reads]
        if not readers:
            return None
        reader = later[readers[0]]
        if not isinstance(reader, Single) or reader.kernel.form != "reduction":
            return None
        rows = _Rows.of(reader.kernel, store, self.templates.tensors[store.tensor])
        parts = None if rows is None else self._parts(launch.kernel)
        if rows is None or parts is None:
            return None
        product, partial = _product(launch.kernel, parts)
        stays = len(readers) > 1 or store.tensor in self.outputs
        summed = rows.adding(launch.kernel, partial, parts, stays)
        return readers[0], replace(launch, kernel=product), replace(reader, kernel=summed), partial

    def _parts(self, kernel: Kernel) -> int | None:
        """Into how many parts the reduction is divided, which is the same for equal kernels; None: it stays whole."""
        key = kernel_key(kernel, self.templates.tensors)
        if key not in self._found:
            self._found[key] = self._fastest(kernel)
        return self._found[key]

    def _fastest(self, kernel: Kernel) -> int | None:
        """The parts with which a product takes the least modelled time, the traffic of its sums counted."""
        whole = self._time(kernel)
        if whole is None:
            return None
        first = _contraction(kernel).k[0]
        times = [(whole, 1)]
        for parts in self.rule.divided:
            if first.extent % parts == 0:
                product, partial = _product(kernel, parts)
                time = self._time(product, partial)
                if time is not None:
                    times.append((time + self._moved(partial), parts))
        best = min(times)[1]
        return None if best == 1 else best

    def _time(self, kernel: Kernel, *sums: Stored) -> float | None:
        """Nanoseconds of a product on tiles in local memory where other kernels share its launch."""
        templates, compute = self.templates, self.templates.device.compute
        if sums:
            templates = replace(templates, tensors={**templates.tensors, **{one.name: one for one in sums}})
        form = templates.form(kernel)
        if not isinstance(form, GroupForm) or not compute.clock_ghz:
            return None
        cycles, demand = form.schedule.cycles, form.demand
        return min(
            group_cost(choice, cycles, demand, self._device, 1) / compute.clock_ghz
            + (compute.meet_us * 1000 if choice.splits > 1 else 0)
            for choice in templates.groups(kernel, form.schedule)
            if not sums or choice.splits == 1
        )

    def _moved(self, partial: Stored) -> float:
        """Nanoseconds in which partial sums are stored and read again."""
        return 2 * SUM_BYTES * partial.type.elements / self._device.memory.global_bandwidth

    @property
    def _device(self) -> Device:
        return self.templates.device


def _is_plain(kernel: Kernel) -> bool:
    """Whether a kernel is a product of two factors of fixed extents that stores one tensor."""
    c = kernel.contraction
    if c is None or kernel.parts or c.stages or c.scores is not None or c.dtype != _SUM or len(kernel.stores) != 1:
        return False
    return not kernel.stores[0].local and not any(is_symbolic(v.extent) for v in (*c.batch, *c.m, c.n, *c.k))


def _contraction(kernel: Kernel) -> Contraction:
    assert kernel.contraction is not None
    return kernel.contraction


def _product(kernel: Kernel, parts: int) -> tuple[Kernel, Stored]:
    """The product with a batch for each part of its reduction, and the tensor of its sums."""
    c = _contraction(kernel)
    part, first = Var("part@", parts), Var(c.k[0].name, c.k[0].extent // parts)
    place = {c.k[0]: add(scale(variable(part), first.extent), variable(first))}
    own = (part, *c.batch, *c.m, c.n)
    shape = tuple(v.extent for v in own)
    partial = Stored(
        name=f"{kernel.name}@sums",
        type=TensorType(_SUM, shape),
        layout=row_major(len(shape)),
        role="intermediate",
        storage=_SUM,
    )
    divided = replace(
        c,
        batch=(part, *c.batch),
        k=(first, *c.k[1:]),
        a=substitute_variables(c.a, place),
        b=substitute_variables(c.b, place),
    )
    store = Store(partial.name, tuple(map(variable, own)), Read(ACCUMULATOR, (), _SUM))
    product = replace(kernel, axes=(part, *kernel.axes), contraction=divided, stores=(store,))
    return accounted(product), partial


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """A kernel that reads the result of a product by rows.

    Attributes:
        result: the product's store.
        row: the indices of an element of the row, at `along` of the row's own axis.
        axis: which index of the result runs along the row.
    """

    kernel: Kernel
    result: Store
    row: tuple[Index, ...]
    axis: int
    along: Var

    @staticmethod
    def of(kernel: Kernel, result: Store, stored: Stored) -> _Rows | None:
        """The kernel, where it has each row of the result once and whole."""
        places = [index.loop for index in result.indices]
        loops = [v for v in places if v is not None]
        fixed = all(
            v is not None or (index == Index(0) and extent == 1)
            for v, index, extent in zip(places, result.indices, stored.type.shape, strict=True)
        )
        found = [
            node
            for expr in expressions(kernel)
            for node in walk(expr)
            if isinstance(node, Read) and node.tensor == result.tensor
        ]
        if not fixed or len({*loops}) < len(loops) or not found or kernel.ring or _in_indices(kernel, result.tensor):
            return None
        axes = {v for v in kernel.axes if v.extent > 1}
        axis = next(
            (n for n, index in enumerate(found[0].indices) if index.loop is not None and index.loop not in axes), -1
        )
        if axis < 0 or places[axis] is None:
            return None
        inner = found[0].indices[axis].loop
        assert inner is not None
        along = Var("along@", inner.extent)
        rows = tuple(variable(along) if n == axis else index for n, index in enumerate(found[0].indices))
        # each row once and whole: what the kernel stores of the result is all of it
        own = [index.loop for n, index in enumerate(rows) if n != axis and index != Index(0)]
        whole = along.extent == stored.type.shape[axis] and None not in own and {*own} == axes and len(own) == len(axes)
        return (
            _Rows(kernel=kernel, result=result, row=rows, axis=axis, along=along)
            if whole and all(_same_row(rows, node, axis) for node in found)
            else None
        )

    def adding(self, product: Kernel, partial: Stored, parts: int, stays: bool) -> Kernel:
        """The kernel that adds up the product's partial sums.

        Args:
            stays: whether others read the product's result.
        """
        c, kernel = _contraction(product), self.kernel
        values = {
            index.loop: own for index, own in zip(self.result.indices, self.row, strict=True) if index.loop is not None
        }
        own = tuple(values.get(v, Index(0)) for v in (*c.batch, *c.m, c.n))

        def total(read: Read) -> Expr:
            if read.tensor != ACCUMULATOR:
                return read
            sums: Expr = Read(partial.name, (Index(0), *own), _SUM)
            for part in range(1, parts):
                sums = Apply("add", (sums, Read(partial.name, (Index(part), *own), _SUM)), _SUM)
            return sums

        value = substitute_reads(substitute_variables(self.result.value, values), total)
        stage = Stage(f"{self.result.tensor}@row", (self.along,), value, value.dtype)

        def of_row(expr: Expr) -> Expr:
            return substitute_reads(
                expr,
                lambda read: (
                    Read(stage.name, (read.indices[self.axis],), stage.dtype)
                    if read.tensor == self.result.tensor
                    else read
                ),
            )

        changed = kernel.changed(of_row)
        kept = Store(
            self.result.tensor, self.row, Read(stage.name, (variable(self.along),), stage.dtype), (self.along,)
        )
        made = replace(
            changed,
            stages=(stage, *changed.stages),
            stores=(kept, *changed.stores) if stays else changed.stores,
            origin=tuple(dict.fromkeys((*product.origin, *kernel.origin))),
        )
        return accounted(made)


def _same_row(row: tuple[Index, ...], read: Read, axis: int) -> bool:
    """Whether a read is of the row's elements."""
    return read.indices[axis].loop is not None and all(
        n == axis or own == index for n, (own, index) in enumerate(zip(row, read.indices, strict=True))
    )


def _in_indices(kernel: Kernel, name: str) -> bool:
    """Whether a tensor's elements are places."""
    return any(
        name in index.gathered for expr in expressions(kernel) for node in walk(expr) for index in own_indices(node)
    )

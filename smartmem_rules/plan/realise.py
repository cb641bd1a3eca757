"""Turns groups into kernels: every value an expression over stored tensors, row stages and the accumulator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from smartmem_rules.plan.attention import row_values, score_values, source_values
from smartmem_rules.plan.contraction import replace_reduce
from smartmem_rules.plan.fusion import Fused
from smartmem_rules.plan.groups import Group, operations
from smartmem_rules.plan.model import ACCUMULATOR, INNER, Contraction, Kernel, Part, Scores, Stage, Store
from smartmem_rules.plan.program import Definition, Program
from smartmem_rules.tensor.classify import moves_only
from smartmem_rules.tensor.expr import (
    Equation,
    Expr,
    Read,
    inline,
    substitute_reads,
    substitute_variables,
    tensors_read,
    walk,
)
from smartmem_rules.tensor.index import Index, Var, substitute, variable

WORTH_STAGING = 2
"""Scalar operations above which a row's elements are kept in scratch memory rather than computed again."""

Handler = Callable[[Read], Expr]


def on_chip(tensor: str) -> str:
    """The name of a tensor's values that a kernel keeps to itself."""
    return f"{tensor}#"


@dataclass
class Expander:
    """Replaces reads of tensors that have no memory by what computes them."""

    program: Program
    inlined: Mapping[str, Equation]
    handlers: dict[str, Handler]

    def expand(self, expr: Expr) -> Expr:
        def read(node: Read) -> Expr:
            handler = self.handlers.get(node.tensor)
            if handler is not None:
                return handler(node)
            equation = self.inlined.get(node.tensor)
            if equation is None:
                return node
            return self.expand(inline(equation, node.indices, self.program.names))

        return substitute_reads(expr, read)


def realise(program: Program, fused: Fused) -> list[Kernel]:
    """One kernel for each group, in the order of execution."""
    kernels = []
    for number, group in enumerate(fused.groups):
        kernel = _realise_group(program, fused, group)
        kernel.name = f"k{number}_{group.form}"
        kernel.origin = _origin(group)
        _account(kernel)
        kernels.append(kernel)
    return kernels


def _realise_group(program: Program, fused: Fused, group: Group) -> Kernel:
    outputs = [m.tensor for m in group.members if m.tensor in fused.stored and m.tensor in group.coordinates]
    match group.form:
        case "contraction":
            return _contraction(program, fused, group, outputs)
        case "reduction" if group.source is not None:
            return _finished_rows(program, fused, group, outputs)
        case "reduction":
            rows = _Rows(program, fused.inlined, group, {}, {})
            return Kernel("", "reduction", group.space, rows.stores(outputs), rows.stages())
        case "scan":
            return _scan(program, fused, group)
        case _:
            return _elements(program, fused, group, outputs)


def _equations(group: Group) -> dict[str, Equation]:
    return {m.tensor: m.equation for m in group.members}


def _elements(program: Program, fused: Fused, group: Group, outputs: list[str]) -> Kernel:
    """A pointwise or window kernel; a window's value is computed once for all that read it."""
    expander = Expander(program, {**fused.inlined, **_equations(group)}, {})
    stages: tuple[Stage, ...] = ()
    core = next((m for m in group.members if m.reduces and m.tensor in group.coordinates), None)
    if core is not None:
        name = on_chip(core.tensor)
        body = expander.expand(inline(core.equation, group.coordinates[core.tensor], program.names))
        stages = (Stage(name, (), body, core.equation.type.dtype),)
        expander.handlers[core.tensor] = lambda read: Read(name, (), read.dtype)
    stores = tuple(_store(t, group, expander, program) for t in outputs)
    only_moves = not stages and all(moves_only(s.value) for s in stores)
    return Kernel("", "pointwise", group.space, stores, stages, moves_only=only_moves)


def _scan(program: Program, fused: Fused, group: Group) -> Kernel:
    """All scans of an operator: the steps one after the other, in each the tensors in their order.

    The kernel's axes are the steps and the leading axes along which nothing is read from another place.
    """
    expander = Expander(program, fused.inlined, {})
    shared: list[Var] = []
    ranks = [len(m.equation.variables) for m in group.members]
    for axis in range(min(ranks)):
        first = group.members[0].equation.variables[axis]
        if axis > 0 and not all(_stays(m, axis, first.extent, group.tensors) for m in group.members):
            break
        shared.append(program.names.var(first.extent))
    stores = []
    for member in group.members:
        own = tuple(program.names.var(v.extent) for v in member.equation.variables[len(shared) :])
        indices = tuple(map(_place, (*shared, *own)))
        value = expander.expand(inline(member.equation, indices, program.names))
        stores.append(Store(member.tensor, indices, value, own))
    return Kernel("", "scan", tuple(shared), tuple(stores))


def _stays(member: Definition, axis: int, extent: int, tensors: set[str]) -> bool:
    """Whether a scan reads the others at its own place of an axis only."""
    var = member.equation.variables[axis]
    reads = [r for r in _reads(member.equation.body) if r.tensor in tensors]
    return var.extent == extent and all(r.indices[axis] == variable(var) for r in reads)


def _place(var: Var) -> Index:
    return variable(var)


def _store(tensor: str, group: Group, expander: Expander, program: Program) -> Store:
    member = next(m for m in group.members if m.tensor == tensor)
    coordinates = group.coordinates[tensor]
    if tensor in expander.handlers:
        value = expander.handlers[tensor](Read(tensor, coordinates, member.equation.type.dtype))
    else:
        value = expander.expand(inline(member.equation, coordinates, program.names))
    return Store(tensor, coordinates, value)


def _contraction(program: Program, fused: Fused, group: Group, outputs: list[str]) -> Kernel:
    matched = group.contraction
    assert matched is not None
    factors = Expander(program, fused.inlined, {})
    stages: list[Stage] = []
    scores = None
    for feeding in group.feeding:
        handlers: dict[str, Handler] = {}
        if group.scores is not None:
            scores = _scores(program, fused, group, feeding, stages, handlers)
        stages.extend(_feed(program, fused, feeding, group, factors, handlers))
    a, b = factors.expand(matched.a), factors.expand(matched.b)
    stores = _epilogue(program, fused, group, outputs, {})
    parts = tuple(_part(program, fused, group, sibling) for sibling in group.siblings)
    contraction = Contraction(
        matched.batch, matched.m, matched.n, matched.reduce.variables, a, b, tuple(stages), scores
    )
    every = (*stores, *(s for part in parts for s in part.stores))
    return Kernel("", "contraction", group.space, every, (), contraction, parts)


def _finished_rows(program: Program, fused: Fused, group: Group, outputs: list[str]) -> Kernel:
    """A contraction whose rows are reduced while they are on chip; its epilogue is the first stage of every row."""
    source = group.source
    assert source is not None and source.contraction is not None
    matched = source.contraction
    read = [t for m in group.members for t in tensors_read(m.equation.body)]
    tensor = next(t for t in source.coordinates if t in read)
    values = source_values(source, group, tensor)
    assert values is not None
    axis = next(i for i, place in enumerate(source.coordinates[tensor]) if matched.n in place.variables)
    (made,) = _epilogue(program, fused, source, [tensor], {})
    local = program.names.var(matched.n.extent)
    body = _with_inner(substitute_variables(made.value, {matched.n: variable(local)}), local)
    first = Stage(on_chip(tensor), (local,), body, body.dtype)
    handlers: dict[str, Handler] = {tensor: lambda node: Read(first.name, (node.indices[axis],), first.dtype)}
    rows = _Rows(program, fused.inlined, group, values, handlers)
    left = _contraction(program, fused, source, [])
    assert left.contraction is not None
    stages = (first, *rows.stages())
    return Kernel("", "contraction", (*matched.batch, *matched.m), rows.stores(outputs), stages, left.contraction)


def _with_inner(value: Expr, local: Var) -> Expr:
    """The accumulator of a finished row is an element of that row."""

    def read(node: Read) -> Expr:
        return Read(INNER, (variable(local),), node.dtype) if node.tensor == ACCUMULATOR else node

    return substitute_reads(value, read)


def _epilogue(
    program: Program, fused: Fused, group: Group, outputs: list[str], renamed: Mapping[Var, Index]
) -> tuple[Store, ...]:
    """What a contraction writes, its sum read as the accumulator."""
    matched = group.contraction
    assert matched is not None
    core = next(m for m in group.members if m.tensor in group.coordinates and m.reduces)
    expander = Expander(program, {**fused.inlined, **_equations(group)}, {})
    accumulator = Read(ACCUMULATOR, (), matched.reduce.dtype)
    epilogue = expander.expand(replace_reduce(matched.body, matched.reduce, accumulator))
    expander.handlers[core.tensor] = lambda read: epilogue
    stores = (_store(t, group, expander, program) for t in outputs)
    return tuple(
        Store(
            s.tensor,
            tuple(substitute(i, renamed) for i in s.indices),
            substitute_variables(s.value, renamed),
        )
        for s in stores
    )


def _part(program: Program, fused: Fused, group: Group, sibling: Group) -> Part:
    """A sibling over the group's own rows."""
    mine, other = group.contraction, sibling.contraction
    assert mine is not None and other is not None
    pairs = zip(
        (*other.batch, *other.m, *other.reduce.variables), (*mine.batch, *mine.m, *mine.reduce.variables), strict=True
    )
    renamed = {old: variable(new) for old, new in pairs}
    outputs = [m.tensor for m in sibling.members if m.tensor in fused.stored and m.tensor in sibling.coordinates]
    b = Expander(program, fused.inlined, {}).expand(other.b)
    return Part(other.n, substitute_variables(b, renamed), _epilogue(program, fused, sibling, outputs, renamed))


def _feed(
    program: Program,
    fused: Fused,
    rows_group: Group,
    reader: Group,
    factors: Expander,
    handlers: dict[str, Handler],
) -> tuple[Stage, ...]:
    """Let the contraction's rows compute the reduction that they read; `factors` learns to read its result."""
    assert reader.contraction is not None
    rows = _Rows(program, fused.inlined, rows_group, row_values(rows_group, reader), handlers)
    tensors = rows_group.tensors
    read = next(n for n in walk(reader.contraction.a) if isinstance(n, Read) and n.tensor in tensors)
    factors.handlers[read.tensor] = rows.read
    return rows.stages()


def _scores(
    program: Program,
    fused: Fused,
    reader: Group,
    rows: Group,
    stages: list[Stage],
    handlers: dict[str, Handler],
) -> Scores:
    """The inner contraction of an attention; its epilogue becomes the first stage of every row."""
    group = reader.scores
    assert group is not None and group.contraction is not None
    matched = group.contraction
    tensor = next(t for t in group.coordinates if any(t in tensors_read(m.equation.body) for m in rows.members))
    found = score_values(group, rows, reader, tensor)
    assert found is not None
    local = found.local
    values = {**found.values, matched.n: variable(local)}
    core = next(m for m in group.members if m.tensor in group.coordinates and m.reduces)
    expander = Expander(program, {**fused.inlined, **_equations(group)}, {})
    inner = Read(INNER, (variable(matched.n),), matched.reduce.dtype)
    epilogue = expander.expand(replace_reduce(matched.body, matched.reduce, inner))
    expander.handlers[core.tensor] = lambda read: epilogue
    body = substitute_variables(_store(tensor, group, expander, program).value, values)
    stage = Stage(on_chip(tensor), (local,), body, body.dtype)
    stages.append(stage)

    def position(node: Read) -> Expr:
        place = found.space(node.indices)[matched.space.index(matched.n)]
        return Read(stage.name, (place,), stage.dtype)

    handlers[tensor] = position
    factors = Expander(program, fused.inlined, {})
    a = substitute_variables(factors.expand(matched.a), values)
    b = substitute_variables(factors.expand(matched.b), values)
    return Scores(local, matched.reduce.variables, a, b)


class _Rows:
    """The stages of a reduction's rows, the row variables replaced by `values` where given."""

    def __init__(
        self,
        program: Program,
        inlined: Mapping[str, Equation],
        group: Group,
        values: dict[Var, Index],
        handlers: Mapping[str, Handler],
    ) -> None:
        self.program = program
        self.group = group
        self.values = values
        self.members = [m for m in group.members if m.tensor in group.coordinates]
        self.member = {m.tensor: m for m in self.members}
        self.inlined = {n: e for n, e in inlined.items() if n not in self.member}
        self.staged: dict[str, Stage] = {}
        self.shared: dict[str, tuple[tuple[Index, ...], Var, Stage]] = {}
        self._order: list[Stage] = []
        self.expander = Expander(program, self.inlined, {**handlers, **{m.tensor: self.read for m in self.members}})
        self.uses = Counter(t for m in self.members for t in _occurrences(m.equation.body))
        self._share_producers()
        for member in self.members:
            if self._needs_stage(member):
                self._stage(member)

    def stages(self) -> tuple[Stage, ...]:
        return tuple(self._order)

    def stores(self, outputs: list[str]) -> tuple[Store, ...]:
        stores = []
        for tensor in outputs:
            coordinates = self._row_indices(self.group.coordinates[tensor])
            value = self.read(Read(tensor, coordinates, self.member[tensor].equation.type.dtype))
            stores.append(Store(tensor, coordinates, value, self.group.locals[tensor]))
        return tuple(stores)

    def _row_indices(self, indices: tuple[Index, ...]) -> tuple[Index, ...]:
        return tuple(substitute(i, self.values) for i in indices)

    def _needs_stage(self, member: Definition) -> bool:
        if not self.group.locals[member.tensor]:
            return True
        return self.uses[member.tensor] > 1 and operations(member.equation.body) > WORTH_STAGING

    def _stage(self, member: Definition) -> None:
        coordinates = self.group.coordinates[member.tensor]
        body = substitute_variables(inline(member.equation, coordinates, self.program.names), self.values)
        stage = Stage(on_chip(member.tensor), self.group.locals[member.tensor], self.expander.expand(body), body.dtype)
        self.staged[member.tensor] = stage
        self._order.append(stage)

    def read(self, node: Read) -> Expr:
        """The element of a member that a read asks for: from its stage, or computed again."""
        stage = self.staged.get(node.tensor)
        if stage is not None:
            return Read(stage.name, self._local_indices(node), stage.dtype)
        equation = self.member[node.tensor].equation
        return self.expander.expand(inline(equation, node.indices, self.program.names))

    def _local_indices(self, node: Read) -> tuple[Index, ...]:
        own = self.group.locals[node.tensor]
        at: dict[Var, Index] = {}
        for index, place in zip(node.indices, self.group.coordinates[node.tensor], strict=True):
            for var in place.variables & set(own):
                at[var] = index
        return tuple(at[v] for v in own)

    def _share_producers(self) -> None:
        """A costly producer that several members read for the same elements is computed once for the row."""
        for name, equation in self.inlined.items():
            reads = [r for m in self.members for r in _reads(m.equation.body) if r.tensor == name]
            if len(reads) < 2 or operations(equation.body) <= WORTH_STAGING:
                continue
            member, first = next(
                (m, r) for m in self.members for r in _reads(m.equation.body) if r.tensor == name
            )
            values = dict(zip(member.equation.variables, self.group.coordinates[member.tensor], strict=True))
            indices = tuple(substitute(i, values) for i in first.indices)
            rows = set(self.group.space)
            running = {v for i in indices for v in i.variables} - rows
            if len(running) != 1:
                continue
            (var,) = running
            if sum(i == variable(var) for i in indices) != 1:
                continue
            local = self.program.names.var(var.extent)
            at = self._row_indices(tuple(substitute(i, {var: variable(local)}) for i in indices))
            body = self.expander.expand(inline(equation, at, self.program.names))
            stage = Stage(on_chip(name), (local,), body, body.dtype)
            self._order.append(stage)
            self.expander.handlers[name] = self._shared_reader(stage, at, local, equation)

    def _shared_reader(self, stage: Stage, at: tuple[Index, ...], local: Var, equation: Equation) -> Handler:
        position = at.index(variable(local))

        def read(node: Read) -> Expr:
            here = node.indices[position]
            same = tuple(substitute(i, {local: here}) for i in at)
            if same == self._row_indices(node.indices):
                return Read(stage.name, (here,), stage.dtype)
            return self.expander.expand(inline(equation, node.indices, self.program.names))

        return read


def _reads(expr: Expr) -> list[Read]:
    return [node for node in walk(expr) if isinstance(node, Read)]


def _occurrences(expr: Expr) -> list[str]:
    """Tensor names as often as they are read; what stands in a loop of its own counts as a further use."""
    return [node.tensor for node in walk(expr) if isinstance(node, Read)]


def _origin(group: Group) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for member in group.everyone:
        names.update(dict.fromkeys(member.origin))
    return tuple(names)


def expressions(kernel: Kernel) -> list[Expr]:
    """All expressions that a kernel computes."""
    found = [stage.body for stage in kernel.stages] + [store.value for store in kernel.stores]
    if kernel.contraction is not None:
        found += [stage.body for stage in kernel.contraction.stages]
        found += [kernel.contraction.a, kernel.contraction.b]
        found += [part.b for part in kernel.parts]
        if kernel.contraction.scores is not None:
            found += [kernel.contraction.scores.a, kernel.contraction.scores.b]
    return found


def _account(kernel: Kernel) -> None:
    """Fill in what the kernel reads, writes and computes."""
    account_reads(kernel)
    kernel.writes = tuple(s.tensor for s in kernel.stores)
    elements = 1
    for var in kernel.axes:
        elements *= var.extent
    total = 0
    for stage in kernel.stages:
        total += elements * _extent(stage.axes) * operations(stage.body)
    for store in kernel.stores:
        total += elements * _extent(store.local) * operations(store.value)
    if kernel.contraction is not None:
        rows = _extent((*kernel.contraction.batch, *kernel.contraction.m))
        total += elements * 2 * _extent(kernel.contraction.k)
        total += sum(rows * part.n.extent * 2 * _extent(kernel.contraction.k) for part in kernel.parts)
        scores = kernel.contraction.scores
        if scores is not None:
            total += rows * 2 * scores.n.extent * _extent(scores.k)
    kernel.operations = total


def account_reads(kernel: Kernel, skip_right: bool = False) -> None:
    """Note which stored tensors the kernel reads; `skip_right` leaves out a contraction's right factor."""
    internal = {ACCUMULATOR, INNER} | {s.name for s in kernel.stages}
    if kernel.contraction is not None:
        internal |= {s.name for s in kernel.contraction.stages}
    skipped: list[Expr] = []
    if skip_right and kernel.contraction is not None:
        skipped = [kernel.contraction.b, *(part.b for part in kernel.parts)]
    reads: dict[str, None] = {}
    for expr in expressions(kernel):
        if not any(expr is one for one in skipped):
            reads.update(dict.fromkeys(t for t in tensors_read(expr) if t not in internal))
    kernel.reads = tuple(reads)


def _extent(variables: tuple[Var, ...]) -> int:
    count = 1
    for var in variables:
        count *= var.extent
    return count


__all__ = ["Expander", "expressions", "realise"]

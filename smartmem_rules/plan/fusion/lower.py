"""Turns groups into kernels: every value an expression over stored tensors, row stages and the accumulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from smartmem_rules.plan.fusion.contraction import replace_reduce
from smartmem_rules.plan.fusion.equations.program import Definition, Program
from smartmem_rules.plan.fusion.groups import Group
from smartmem_rules.plan.fusion.on_chip.attention import row_values, score_values, source_values
from smartmem_rules.plan.fusion.on_chip.expander import Expander, Handler, on_chip
from smartmem_rules.plan.fusion.on_chip.rows import Rows
from smartmem_rules.plan.fusion.reads import reads_of
from smartmem_rules.plan.fusion.result import FusionResult
from smartmem_rules.plan.kernel.model import ACCUMULATOR, INNER, Contraction, Kernel, Part, Scores, Stage, Store
from smartmem_rules.plan.kernel.traffic import accounted
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.classify import moves_only
from smartmem_rules.tensor.expr import (
    Const,
    Equation,
    Expr,
    Read,
    Select,
    substitute_reads,
    substitute_variables,
    tensors_read,
    walk,
)
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.inlining import inline
from smartmem_rules.tensor.substitution import substitute


def lower(program: Program, fused: FusionResult) -> list[Kernel]:
    """One kernel for each group, in the order of execution."""
    return [
        lower_group(program, fused, group, f"{program.prefix}{n}_{group.form}") for n, group in enumerate(fused.groups)
    ]


def lower_group(program: Program, fused: FusionResult, group: Group, name: str) -> Kernel:
    """The kernel of one group."""
    return accounted(replace(_realised(program, fused, group), name=name, origin=_origin(group)))


def _realised(program: Program, fused: FusionResult, group: Group) -> Kernel:
    """The equations of a group's kernel, which has no name yet."""
    outputs = [m.tensor for m in group.members if m.tensor in fused.stored and m.tensor in group.coordinates]
    match group.form:
        case "contraction":
            return _contraction(program, fused, group, outputs)
        case "reduction" if group.source is not None:
            return _finished_rows(program, fused, group, outputs)
        case "reduction":
            rows = Rows(program, fused.inlined, group, {}, {}, fused.rows)
            return Kernel(
                name="", form="reduction", axes=group.space, stores=rows.stores(outputs), stages=rows.stages()
            )
        case "scan":
            return _scan(program, fused, group)
        case _:
            return _elements(program, fused, group, outputs)


def _equations(group: Group) -> dict[str, Equation]:
    return {m.tensor: m.equation for m in group.members}


def _elements(program: Program, fused: FusionResult, group: Group, outputs: list[str]) -> Kernel:
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
    return Kernel(name="", form="pointwise", axes=group.space, stores=stores, stages=stages, moves_only=only_moves)


def _scan(program: Program, fused: FusionResult, group: Group) -> Kernel:
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
    return Kernel(name="", form="scan", axes=tuple(shared), stores=tuple(stores))


def _stays(member: Definition, axis: int, extent: int, tensors: set[str]) -> bool:
    """Whether a scan reads the others at its own place of an axis only."""
    var = member.equation.variables[axis]
    reads = [r for r in reads_of(member.equation.body) if r.tensor in tensors]
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


def _contraction(program: Program, fused: FusionResult, group: Group, outputs: list[str]) -> Kernel:
    matched = group.contraction
    assert matched is not None
    factors = Expander(program, fused.inlined, {})
    stages: list[Stage] = []
    kept: list[Store] = []
    scores = None
    for feeding in group.feeding:
        handlers: dict[str, Handler] = {}
        if group.scores is not None:
            scores = _scores(program, fused, group, feeding, stages, handlers)
        rows = _feed(feeding, group)
        made = Rows(program, fused.inlined, feeding, row_values(feeding, group), handlers, fused.rows)
        factors.handlers[rows.tensor] = made.read
        stages.extend(made.stages())
        if rows.tensor in fused.stored:
            kept.extend(made.stores([rows.tensor]))
    a, b = factors.expand(matched.a), factors.expand(matched.b)
    stores = _epilogue(program, fused, group, outputs, {})
    parts = tuple(_part(program, fused, group, sibling) for sibling in group.siblings)
    contraction = Contraction(
        batch=matched.batch,
        m=matched.m,
        n=matched.n,
        k=matched.reduce.variables,
        a=a,
        b=b,
        stages=tuple(stages),
        scores=scores,
        fed=_elements_of(matched.a),
        dtype="int32" if matched.reduce.dtype == "int32" else "float32",
    )
    every = (*stores, *(s for part in parts for s in part.stores), *kept)
    return Kernel(name="", form="contraction", axes=group.space, stores=every, contraction=contraction, parts=parts)


def _finished_rows(program: Program, fused: FusionResult, group: Group, outputs: list[str]) -> Kernel:
    """A contraction whose rows are reduced while they are on chip; its epilogue is the first stage of every row."""
    source = group.source
    assert source is not None
    assert source.contraction is not None
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
    rows = Rows(program, fused.inlined, group, values, handlers, fused.rows)
    left = _contraction(program, fused, source, [])
    assert left.contraction is not None
    stages = (first, *rows.stages())
    return Kernel(
        name="",
        form="contraction",
        axes=(*matched.batch, *matched.m),
        stores=rows.stores(outputs),
        stages=stages,
        contraction=left.contraction,
    )


def _with_inner(value: Expr, local: Var) -> Expr:
    """The accumulator of a finished row is an element of that row."""

    def read(node: Read) -> Expr:
        return Read(INNER, (variable(local),), node.dtype) if node.tensor == ACCUMULATOR else node

    return substitute_reads(value, read)


def _epilogue(
    program: Program, fused: FusionResult, group: Group, outputs: list[str], renamed: Mapping[Var, Index]
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


def _part(program: Program, fused: FusionResult, group: Group, sibling: Group) -> Part:
    """A sibling over the group's own rows."""
    mine, other = group.contraction, sibling.contraction
    assert mine is not None
    assert other is not None
    pairs = zip(
        (*other.batch, *other.m, *other.reduce.variables), (*mine.batch, *mine.m, *mine.reduce.variables), strict=True
    )
    renamed = {old: variable(new) for old, new in pairs}
    outputs = [m.tensor for m in sibling.members if m.tensor in fused.stored and m.tensor in sibling.coordinates]
    b = Expander(program, fused.inlined, {}).expand(other.b)
    return Part(other.n, substitute_variables(b, renamed), _epilogue(program, fused, sibling, outputs, renamed))


def _elements_of(factor: Expr) -> tuple[str, ...]:
    """The tensors whose elements a factor is, none where it computes something of its own."""
    match factor:
        case Read(tensor=tensor):
            return (tensor,)
        case Select(then=then, otherwise=Const()):
            return _elements_of(then)
        case _:
            return ()


def _feed(rows: Group, reader: Group) -> Read:
    """The read by which a contraction takes in the rows that it computes itself."""
    assert reader.contraction is not None
    return next(n for n in walk(reader.contraction.a) if isinstance(n, Read) and n.tensor in rows.tensors)


def _scores(
    program: Program,
    fused: FusionResult,
    reader: Group,
    rows: Group,
    stages: list[Stage],
    handlers: dict[str, Handler],
) -> Scores:
    """The inner contraction of an attention; its epilogue becomes the first stage of every row."""
    group = reader.scores
    assert group is not None
    assert group.contraction is not None
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


def _origin(group: Group) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for member in group.everyone:
        names.update(dict.fromkeys(member.origin))
    return tuple(names)

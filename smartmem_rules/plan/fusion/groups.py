"""Groups of equations that share one kernel, and when an equation may join a group."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np

from smartmem_rules.plan.fusion.contraction import MatchedContraction, match_contraction
from smartmem_rules.plan.fusion.equations.program import Definition
from smartmem_rules.plan.fusion.policy import Policy
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Div, Var
from smartmem_rules.tensor.expr import Expr, Read, Reduce, Select, condition_indices, own_indices, walk
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.inlining import FreshNames
from smartmem_rules.tensor.ranges import several, surely_at_most
from smartmem_rules.tensor.substitution import substitute
from smartmem_rules.tensor.views import index_map


@dataclass(eq=False)
class Group:
    """Definitions computed by one kernel.

    Attributes:
        form: pointwise | window | reduction | contraction.
        space: the kernel's loop variables; in a reduction the rows.
        coordinates: for each member's tensor its indices over the space (and, in a reduction, over its local axes).
        locals: for each member of a reduction the variables that run inside a row.
        feeding: reductions whose rows this contraction computes before it reads them.
        scores: a contraction whose rows feed that reduction: its result never leaves the chip (attention).
        siblings: contractions of the same left factor with other constant right factors (queries, keys and values).
        source: the contraction that makes the rows of this reduction, whole rows at a time.
    """

    form: str
    space: tuple[Var, ...]
    members: list[Definition] = field(default_factory=list)
    coordinates: dict[str, tuple[Index, ...]] = field(default_factory=dict)
    locals: dict[str, tuple[Var, ...]] = field(default_factory=dict)
    contraction: MatchedContraction | None = None
    feeding: list[Group] = field(default_factory=list)
    scores: Group | None = None
    siblings: list[Group] = field(default_factory=list)
    source: Group | None = None

    def copy(self) -> Group:
        """The same group, to grow by itself; nothing feeds it yet."""
        own = replace(self, members=[*self.members], coordinates={**self.coordinates}, locals={**self.locals})
        own.feeding, own.siblings = [*self.feeding], [*self.siblings]
        return own

    @property
    def parts(self) -> list[Group]:
        """This group and the contractions of the same left factor that run beside it."""
        return [self, *self.siblings]

    @property
    def everyone(self) -> list[Definition]:
        """All definitions that the kernel computes, those of the groups that feed it included."""
        inner = [] if self.scores is None else self.scores.everyone
        source = [] if self.source is None else self.source.everyone
        feeding = (m for g in self.feeding for m in g.everyone)
        return [*inner, *source, *feeding, *(m for part in self.parts for m in part.members)]

    @property
    def tensors(self) -> set[str]:
        return {m.tensor for m in self.members}


def start(
    definition: Definition,
    names: FreshNames,
    constants: Mapping[str, np.ndarray],
    policy: Policy,
) -> Group:
    """The group that a definition founds."""
    equation = definition.equation
    if not definition.reduces:
        group = Group("pointwise", equation.variables, [definition])
        group.coordinates[definition.tensor] = tuple(map(variable, equation.variables))
        return group
    matched = match_contraction(equation, names, constants, policy.products)
    if matched is not None and not matched.in_groups_of(policy.group_columns):
        group = Group("contraction", matched.space, [definition], contraction=matched)
        group.coordinates[definition.tensor] = matched.coordinates
        return group
    if is_row_reduction(definition):
        rows = tuple(v for v in equation.variables if several(v.extent))
        group = Group("reduction", rows, [definition])
        group.locals[definition.tensor] = ()
    else:
        group = Group("window", equation.variables, [definition])
    group.coordinates[definition.tensor] = tuple(map(variable, equation.variables))
    return group


def is_row_reduction(definition: Definition) -> bool:
    """Whether each element read belongs to one output element only: whole axes or disjoint blocks are reduced."""
    for node in walk(definition.equation.body):
        if not isinstance(node, Reduce):
            continue
        inner = set(node.variables)
        for below in walk(node.body):
            if isinstance(below, Reduce):
                return False
            if isinstance(below, Select) and any(i.variables & inner for i in condition_indices(below.condition)):
                if not _disjoint_everywhere(node.body):
                    return False
            elif isinstance(below, Read) and _overlaps(below, inner):
                return False
    return True


def _overlaps(read: Read, inner: set[Var]) -> bool:
    """Whether output elements share what they read, as windows do."""
    if not any(i.variables & inner and i.variables - inner for i in read.indices):
        return False
    used = {v for index in read.indices for v in index.variables}
    reached = math.prod(v.extent for v in used)
    there = math.prod(high - low + 1 for low, high in (i.interval for i in read.indices))
    return not surely_at_most(reached, there)


def _disjoint_everywhere(body: Expr) -> bool:
    """Whether a choice between pieces (a concatenation) reads only one element for each place."""
    return all(isinstance(node, Read | Select) for node in walk(body))


def join(group: Group, definition: Definition, names: FreshNames) -> bool:
    """Let a definition that reads the group's tensors join it, if its elements line up with the group's space."""
    if 0 in (e for e in definition.equation.type.shape if type(e) is int):
        return False  # it has no element that the group's work-items could write
    if group.form == "reduction":
        return _join_rows(group, definition, names)
    if definition.reduces:
        return False
    return _join_elements(group, definition)


def _member_reads(group: Group, body: Expr) -> list[Read]:
    return [n for n in walk(body) if isinstance(n, Read) and n.tensor in group.coordinates]


def _gathers_member(group: Group, body: Expr) -> bool:
    return any(i.gathered & group.tensors for node in walk(body) for i in own_indices(node))


def _join_elements(group: Group, definition: Definition) -> bool:
    equation = definition.equation
    reads = _member_reads(group, equation.body)
    if not reads or _gathers_member(group, equation.body):
        return False
    first = reads[0]
    stored = group.coordinates[first.tensor]
    producer = next(m for m in group.members if m.tensor == first.tensor)
    if producer.equation.type.elements != equation.type.elements:
        return False
    solution = _solve(definition, first, producer, stored)
    if solution is None:
        return False
    values = dict(zip(equation.variables, solution, strict=True))
    for read in reads:
        if tuple(substitute(i, values) for i in read.indices) != group.coordinates[read.tensor]:
            return False
    group.members.append(definition)
    group.coordinates[definition.tensor] = solution
    return True


def _solve(
    definition: Definition, read: Read, producer: Definition, stored: tuple[Index, ...]
) -> tuple[Index, ...] | None:
    """The reader's own indices at each element that the group computes, None if the read is no bijection."""
    equation = definition.equation
    shape, source = equation.type.shape, producer.equation.type.shape
    if shape == source and all(i == variable(v) for i, v in zip(read.indices, equation.variables, strict=True)):
        return stored
    renamed = {v: variable(Var(f"i{a}", v.extent)) for a, v in enumerate(equation.variables)}
    forward = index_map(shape, source, tuple(substitute(i, renamed) for i in read.indices))
    backward = forward.inverse
    return None if backward is None else backward.apply(stored)


def _join_rows(group: Group, definition: Definition, names: FreshNames) -> bool:
    equation = definition.equation
    if definition.reduces and not is_row_reduction(definition):
        return False
    reads = _member_reads(group, equation.body)
    if not reads or _gathers_member(group, equation.body):
        return False
    bound = {v for node in walk(equation.body) if isinstance(node, Reduce) for v in node.variables}
    assigned: dict[Var, Index] = {}
    local: dict[Var, Var] = {}
    for read in reads:
        if not _assign(group, read, bound, assigned, local, names):
            return not bound and _join_rows_through_map(group, definition, reads)
    covered = {v for index in assigned.values() for v in index.variables}
    if covered.isdisjoint(group.space) if group.space else False:
        return False
    if not set(group.space) <= covered or not _apart(assigned, group.space):
        return False
    for var in equation.variables:
        if several(var.extent) and var not in assigned:
            local[var] = names.var(var.extent)
            assigned[var] = variable(local[var])
    own = tuple(local[v] for v in equation.variables if v in local)
    if own and definition.reduces:
        return False
    group.members.append(definition)
    group.coordinates[definition.tensor] = tuple(assigned.get(v, Index(0)) for v in equation.variables)
    group.locals[definition.tensor] = own
    return True


def _apart(assigned: Mapping[Var, Index], rows: tuple[Var, ...]) -> bool:
    """Whether each row variable stands in one axis only.

    Two axes that read the rows of the group by the same row variable (`r[i] * r[j]`) need all pairs of rows. A row has
    itself only: it would compute the pairs of equal rows, and read rows that other work-items make.
    """
    return all(sum(row in index.variables for index in assigned.values()) == 1 for row in rows)


def _join_rows_through_map(group: Group, definition: Definition, reads: list[Read]) -> bool:
    """Join elements of a row that the definition sees through a reshape: it runs over the row as its source does."""
    equation = definition.equation
    whole = next((r for r in reads if group.locals[r.tensor]), None)
    if whole is None:
        return False
    producer = next(m for m in group.members if m.tensor == whole.tensor)
    if producer.equation.type.elements != equation.type.elements:
        return False
    solution = _solve(definition, whole, producer, group.coordinates[whole.tensor])
    if solution is None:
        return False
    values = dict(zip(equation.variables, solution, strict=True))
    for read in reads:
        if tuple(substitute(i, values) for i in read.indices) != group.coordinates[read.tensor]:
            return False
    group.members.append(definition)
    group.coordinates[definition.tensor] = solution
    group.locals[definition.tensor] = group.locals[whole.tensor]
    return True


def _assign(
    group: Group,
    read: Read,
    bound: set[Var],
    assigned: dict[Var, Index],
    local: dict[Var, Var],
    names: FreshNames,
) -> bool:
    """Match one read's axes with the rows and local axes of the member that it reads."""
    for index, place in zip(read.indices, group.coordinates[read.tensor], strict=True):
        if place.is_constant and index.is_constant:
            continue
        var, target = index.loop, place.loop
        if var is None and target is not None and target in group.space:
            if not _assign_block(index, target, bound, assigned, local, names):
                return False
            continue
        if var is None or target is None or var.extent != target.extent:
            return False
        if target in group.space:
            if var in bound or assigned.setdefault(var, variable(target)) != variable(target):
                return False
        elif var not in bound:
            if var in assigned and var not in local:
                return False
            if var not in local:
                local[var] = names.var(var.extent)
                assigned[var] = variable(local[var])
    return True


def _assign_block(
    index: Index,
    row: Var,
    bound: set[Var],
    assigned: dict[Var, Index],
    local: dict[Var, Var],
    names: FreshNames,
) -> bool:
    """An axis that reads a row through `v // d` runs over a block of d places for each row (group normalisation)."""
    quotient = index.atom
    if not isinstance(quotient, Div):
        return False
    var = quotient.value.loop
    if var is None or var in bound or var.extent != row.extent * quotient.divisor:
        return False
    if var not in assigned:
        local[var] = names.var(quotient.divisor)
        assigned[var] = variable(row) * quotient.divisor + variable(local[var])
    return assigned[var] // quotient.divisor == variable(row)

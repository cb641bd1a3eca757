"""Row kernels: the stages that are computed once for each row of a reduction, and the stores behind them."""

from __future__ import annotations

import math
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping

from smartmem_rules.language.blocks.level import KeptRows
from smartmem_rules.plan.fusion.equations.program import Definition, Program
from smartmem_rules.plan.fusion.groups import Group
from smartmem_rules.plan.fusion.on_chip.expander import Expander, Handler, on_chip
from smartmem_rules.plan.kernel.model import Stage, Store
from smartmem_rules.plan.kernel.operations import operations
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Equation, Expr, Read, substitute_variables, walk
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.inlining import inline
from smartmem_rules.tensor.ranges import largest
from smartmem_rules.tensor.substitution import substitute


class Rows:
    """The stages of a reduction's rows, the row variables replaced by `values` where given."""

    def __init__(
        self,
        program: Program,
        inlined: Mapping[str, Equation],
        group: Group,
        values: dict[Var, Index],
        handlers: Mapping[str, Handler],
        kept: KeptRows,
    ) -> None:
        self.program = program
        self.kept = kept
        self.group = group
        self.values = values
        self.members = [m for m in group.members if m.tensor in group.coordinates]
        self.member = {m.tensor: m for m in self.members}
        self.inlined = {n: e for n, e in inlined.items() if n not in self.member}
        self.staged: dict[str, Stage] = {}
        self.shared: dict[str, tuple[tuple[Index, ...], Var, Stage]] = {}
        self._order: list[Stage] = []
        # without a cycle of references the model's constants are free when the last user lets go
        own = weakref.proxy(self)
        read: Handler = lambda node: own.read(node)  # noqa: E731
        self.expander = Expander(program, self.inlined, {**handlers, **{m.tensor: read for m in self.members}})
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
        places = self.group.coordinates[member.tensor]
        if not all(any(p == variable(v) for p in places) for v in self.group.locals[member.tensor]):
            return False
        return (
            self.uses[member.tensor] > 1
            and operations(member.equation.body) > self.kept.kept_operations
            and _elements(self.group.locals[member.tensor]) <= self.kept.kept_row
        )

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
        for name in self._read_again():
            equation = self.inlined[name]
            if operations(equation.body) <= self.kept.kept_operations:
                continue
            member, first = next((m, r) for m in self.members for r in _reads(m.equation.body) if r.tensor == name)
            values = dict(zip(member.equation.variables, self.group.coordinates[member.tensor], strict=True))
            indices = tuple(substitute(i, values) for i in first.indices)
            rows = set(self.group.space)
            running = {v for i in indices for v in i.variables} - rows
            if len(running) != 1:
                continue
            (var,) = running
            if _elements((var,)) > self.kept.kept_row or sum(i == variable(var) for i in indices) != 1:
                continue
            local = self.program.names.var(var.extent)
            at = self._row_indices(tuple(substitute(i, {var: variable(local)}) for i in indices))
            body = self.expander.expand(inline(equation, at, self.program.names))
            stage = Stage(on_chip(name), (local,), body, body.dtype)
            self._order.append(stage)
            self.expander.handlers[name] = self._shared_reader(stage, at, local, equation)

    def _read_again(self) -> list[str]:
        """The producers that members read several times, in the order of the producers."""
        found = [name for name, count in self.uses.items() if count > 1 and name in self.inlined]
        if len(found) < 2:
            return found
        wanted = set(found)
        return [name for name in self.inlined if name in wanted]

    def _shared_reader(self, stage: Stage, at: tuple[Index, ...], local: Var, equation: Equation) -> Handler:
        position = at.index(variable(local))
        own = weakref.proxy(self)

        def read(node: Read) -> Expr:
            here = node.indices[position]
            same = tuple(substitute(i, {local: here}) for i in at)
            if same == own._row_indices(node.indices):
                return Read(stage.name, (here,), stage.dtype)
            expanded: Expr = own.expander.expand(inline(equation, node.indices, own.program.names))
            return expanded

        return read


def _elements(axes: Iterable[Var]) -> int:
    return math.prod(largest(var.extent) for var in axes)


def _reads(expr: Expr) -> list[Read]:
    return [node for node in walk(expr) if isinstance(node, Read)]


def _occurrences(expr: Expr) -> list[str]:
    """Tensor names as often as they are read; what stands in a loop of its own counts as a further use."""
    return [node.tensor for node in walk(expr) if isinstance(node, Read)]

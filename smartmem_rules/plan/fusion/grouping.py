"""Fusion groups as they grow: the equations of each, the dependences among them, and their outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from smartmem_rules.language.blocks.fuse import (
    FuseBlock,
)
from smartmem_rules.plan.fusion.contraction import is_constant
from smartmem_rules.plan.fusion.equations.compared import selects
from smartmem_rules.plan.fusion.equations.program import Definition, Program
from smartmem_rules.plan.fusion.groups import Group
from smartmem_rules.plan.fusion.policy import Policy
from smartmem_rules.plan.fusion.refusals import Refusals
from smartmem_rules.plan.fusion.result import FusionTrace
from smartmem_rules.plan.kernel.graph import needs, toposort
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import Equation, own_indices, walk


class CircleError(Exception):
    """Groups need each other in a circle, because a search that leaves groups out took one for independent."""


@dataclass(kw_only=True)
class _Reach:
    """The first and last place of a group's definitions in the program, and what it reads of other definitions."""

    first: int
    last: int
    reads: dict[str, None]


class Grouping:
    """The groups of a program, and what the passes of fusion ask of them."""

    def __init__(
        self,
        program: Program,
        policy: Policy,
        unfed: Collection[str],
        refusals: Refusals | None,
        complete: bool = False,
    ) -> None:
        """Args:
        complete: whether searches for dependences look at all groups, however far away.
        """
        self.complete = complete
        self.refusals = refusals
        self.program = program
        self.unfed = unfed
        self.policy = policy
        self.owner: dict[str, Group] = {}
        self.definition: dict[str, Definition] = {d.tensor: d for d in program.definitions}
        self.groups: dict[Group, None] = {}
        self.number: dict[Group, int] = {}
        """The order in which groups were founded."""
        self.scans: dict[str, Group] = {}
        self.depth: dict[Group, int] = {}
        self.inlined: dict[str, Equation] = {}
        self.recomputed: dict[str, set[Group]] = {}
        self.users = program.users()
        self.place = {d.tensor: i for i, d in enumerate(program.definitions)}
        self.known: dict[Group, _Reach] = {}
        self.decisions = FusionTrace()
        self.rows: dict[object, tuple[int, int]] = {}
        self.indexing = {
            name
            for d in program.definitions
            for node in walk(d.equation.body)
            for index in own_indices(node)
            for name in index.gathered
        }

    def _found(self, group: Group) -> None:
        self.groups[group] = None
        self.number[group] = len(self.number)

    def _own(self, definition: Definition, group: Group) -> None:
        """Note who computes a definition, and how many groups have to run before it."""
        read = {self.owner[t] for t in definition.reads if t in self.owner} - {group}
        self.depth[group] = max([self.depth.get(group, 0), *(self.depth.get(one, 0) + 1 for one in read)])
        self.owner[definition.tensor] = group
        known = self.known.get(group)
        if known is not None:  # to look at all members again and again would be quadratic
            read_of_others = (t for t in definition.reads if t in self.definition and self.owner[t] is not group)
            known.reads.update(dict.fromkeys(read_of_others))
            known.last = self.place[definition.tensor]

    # --- what stays apart ---

    def _refuse_definition(self, group: Group, definition: Definition, reason: str, passed: int) -> None:
        if self.refusals is not None:
            table = self.policy.table
            name = self.policy.level if table is None else table.name
            self.refusals.note(name, nodes_of(group), definition.origin, reason, None, passed)

    def _refuse(
        self,
        rule: FuseBlock,
        first: Group,
        second: Group,
        reason: str,
        figures: tuple[float, float] | None = None,
        passed: int = 3,
    ) -> None:
        if self.refusals is not None:
            self.refusals.note(rule.name, nodes_of(first), nodes_of(second), reason, figures, passed)

    def _makes_cycle(self, group: Group, definition: Definition) -> bool:
        """Whether another operand of the definition already depends on the group."""
        others = {self.owner[t] for t in definition.reads if t in self.owner} - {group}
        return any(self._depends(other, group) for other in others)

    def _depends(self, group: Group, on: Group) -> bool:
        """Whether the group needs, directly or through others, what `on` computes."""
        if self.complete:
            return needs([group], on, self._producers)
        # definitions are in topological order: what ends before `on` begins needs it only by way of a group that ends
        # later, which is rare
        first = self._reach(on).first
        return needs([group], on, self._producers, lambda producer: self._reach(producer).last > first)

    def _changed(self, group: Group) -> None:
        """Forget what was known of a group: it computes something more."""
        self.known.pop(group, None)

    def _reach(self, group: Group) -> _Reach:
        known = self.known.get(group)
        if known is None:
            members = group.everyone
            own = {member.tensor for member in members}
            places = [self.place[tensor] for tensor in own]
            reads = dict.fromkeys(t for m in members for t in m.reads if t in self.definition and t not in own)
            known = self.known[group] = _Reach(first=min(places), last=max(places), reads=reads)
        return known

    def _producers(self, group: Group) -> Iterable[Group]:
        for tensor in self._reach(group).reads:
            producer = self.owner.get(tensor)
            if producer is not None and producer is not group:
                yield producer

    def _consumers(self, group: Group) -> Iterable[Group]:
        """The other groups that read what a group computes and hands on."""
        for member in group.everyone:
            if self.owner.get(member.tensor) is group:
                for user in self.users.get(member.tensor, ()):
                    yield from self._homes(user.tensor) - {group}

    def _homes(self, tensor: str) -> set[Group]:
        """The groups that compute a tensor: one, or all that recompute an inlined one."""
        return self.recomputed[tensor] if tensor in self.recomputed else {self.owner[tensor]}

    def _absorb(self, into: Group, group: Group) -> None:
        """From now on `into` computes what the group computed."""
        del self.groups[group]
        for member in group.everyone:
            if self.owner.get(member.tensor) is group:
                self.owner[member.tensor] = into
            homes = self.recomputed.get(member.tensor, set())
            if group in homes:
                homes.discard(group)
                homes.add(into)
        self._changed(into)

    # --- what leaves a group ---

    def _outputs(self, group: Group) -> list[str]:
        outputs = []
        feeding = (m for rows in group.feeding for m in rows.members)
        for member in (*(m for part in group.parts for m in part.members), *feeding):
            if member.tensor in self.recomputed:
                continue
            outside = any(self._homes(u.tensor) - {group} for u in self.users.get(member.tensor, ()))
            if outside or member.tensor in self.program.outputs:
                outputs.append(member.tensor)
        return outputs

    def _readers(self, tensor: str) -> list[Group]:
        """The other groups that read a tensor, in a fixed order."""
        found = {g for u in self.users.get(tensor, ()) for g in self._homes(u.tensor)} - {self.owner[tensor]}
        return sorted(found, key=self.number.__getitem__)

    def _keeps_one_value(self, group: Group, tensor: str) -> bool:
        """Whether readers must see what is stored: they compare it, and a reader's own result has other roundings."""
        return tensor in self.program.compared and not all(selects(m.equation.body) for m in group.members)

    def _is_constant(self, group: Group) -> bool:
        """Whether a contraction's right factor was known before the model runs: a layer's weights."""
        assert group.contraction is not None
        return is_constant(group.contraction.b, self.program.packable)

    # --- order ---

    def _ordered(self) -> list[Group]:
        order = toposort(self.groups, self._producers)
        if order is None:
            raise CircleError
        return order


def nodes_of(group: Group) -> list[str]:
    """The ONNX nodes of a group, of all groups that feed it too."""
    return [node for definition in group.everyone for node in definition.origin]

"""Forms the kernels: which equations are computed together, and which tensors are never stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from smartmem_rules.language.blocks.fuse import (
    FeedBlock,
    Horizontal,
    Siblings,
    Statistics,
)
from smartmem_rules.plan.fusion.dependence import Watched
from smartmem_rules.plan.fusion.equations.program import Definition, Program
from smartmem_rules.plan.fusion.feeding import Feeding
from smartmem_rules.plan.fusion.grouping import CircleError, nodes_of
from smartmem_rules.plan.fusion.groups import Group, join, start
from smartmem_rules.plan.fusion.nesting import Nesting, nesting_after, nesting_for_readers, nesting_of
from smartmem_rules.plan.fusion.policy import Policy
from smartmem_rules.plan.fusion.reads import evaluations, group_moves_only, left_key, reads_of
from smartmem_rules.plan.fusion.refusals import Refusals
from smartmem_rules.plan.fusion.result import FusionResult, SharedGroups
from smartmem_rules.plan.kernel.operations import operations
from smartmem_rules.tensor.index import variable
from smartmem_rules.tensor.ranges import largest, several, surely_at_most


def fuse(
    program: Program,
    policy: Policy,
    unfed: Collection[str] = (),
    growth: SharedGroups | None = None,
    refusals: Refusals | None = None,
) -> FusionResult:
    """Partition the program's definitions into groups as the policy allows.

    Args:
        unfed: tensors whose contractions read their rows from memory.
        growth: of a fusion by a policy that lets the same definitions join.
        refusals: takes in why definitions and groups stay apart.
    """
    try:
        return Fuser(program, policy, unfed, refusals).run(growth)
    except CircleError:
        return Fuser(program, policy, unfed, refusals, complete=True).run(None)


class Fuser(Feeding):
    """All passes in their order."""

    def run(self, growth: SharedGroups | None) -> FusionResult:
        self.nestings: dict[str, Nesting] = {}
        if growth is None:
            for definition in self.program.definitions:
                self._place(definition)
            growth = SharedGroups([group.copy() for group in self.groups])
        else:
            for group in growth.groups:
                self._found(group.copy())
            self.owner = {member.tensor: group for group in self.groups for member in group.members}
        self.rows = growth.rows
        if self.policy.table is not None:
            self._inline_producers()
            self._merge_siblings()
            self._feed_contractions()
            self._finish_rows()
        groups = self._ordered()
        stored = {t for g in groups for t in self._outputs(g)}
        return FusionResult(
            groups=groups,
            rows=self.policy.rows,
            inlined=self.inlined,
            stored=stored,
            decisions=self.decisions,
            growth=growth,
        )

    # --- growing groups over their consumers ---

    def _place(self, definition: Definition) -> None:
        if definition.equation.scan:
            self._place_scan(definition)
            return
        for group in self._candidates(definition):
            nesting = nesting_after(definition, {m: self.nestings[m] for m in self._read_in(definition, group)})
            if not nesting.within(self.policy.most):
                self._refuse_definition(group, definition, "the expression would be too deep or too long", 2)
            elif self._is_for_many(group, definition):
                self._refuse_definition(group, definition, "it has one row, whose work-item would compute all of it", 1)
            elif self._makes_cycle(group, definition):
                self._refuse_definition(group, definition, "another of its operands needs that kernel", 1)
            elif join(group, definition, self.program.names):
                self._own(definition, group)
                self.nestings[definition.tensor] = nesting_for_readers(definition, nesting)
                return
            elif definition.reduces and group.form != "reduction":
                self._refuse_definition(group, definition, f"a {group.form} kernel takes in no further reduction", 1)
            else:
                self._refuse_definition(group, definition, "its elements do not line up with that kernel's loops", 2)
        group = start(definition, self.program.names, self.program.constants, self.policy)
        self._found(group)
        self._own(definition, group)
        self.nestings[definition.tensor] = nesting_for_readers(definition, nesting_after(definition, {}))

    def _is_for_many(self, group: Group, definition: Definition) -> bool:
        """Whether a definition has more elements than the one work-item of a whole reduction is to compute."""
        rule = self.policy.rule(Statistics)
        if rule is None or group.form != "reduction" or any(several(v.extent) for v in group.space):
            return False
        return not definition.reduces and not surely_at_most(definition.equation.type.elements, rule.of_one)

    def _read_in(self, definition: Definition, group: Group) -> list[str]:
        """The tensors of a group that a definition reads."""
        return [tensor for tensor in definition.reads if self.owner.get(tensor) is group and tensor in self.nestings]

    def _candidates(self, definition: Definition) -> list[Group]:
        found: dict[Group, None] = {}
        for tensor in definition.reads:
            group = self.owner.get(tensor)
            if group is None or group.form == "scan":
                continue
            if self.policy.may(self.definition[tensor], definition, group.form):
                found.setdefault(group)
            elif self.refusals is not None:
                producer = self.definition[tensor]
                table, reason = self.policy.refusal(producer, definition, group.form)
                self.refusals.note(table, producer.origin, definition.origin, reason)
        rank = {"contraction": 0, "window": 1, "reduction": 2, "pointwise": 3}
        forms = [group.form for group in found]
        self.decisions.contested |= len(set(forms)) < len(forms)
        sign = 1 if self.policy.joins_earliest else -1
        rule = self.policy.rule(Horizontal)
        deepest_first = rule is not None and rule.deepest_first
        depth = self.depth if deepest_first else {}
        return sorted(found, key=lambda g: (rank[g.form], -depth.get(g, 0), sign * self.number[g]))

    def _place_scan(self, definition: Definition) -> None:
        """All scans of a node are one kernel: each step needs what the others hold one step before."""
        group = self.scans.get(definition.node)
        if group is None:
            group = self.scans[definition.node] = Group("scan", ())
            self._found(group)
        group.members.append(definition)
        group.coordinates[definition.tensor] = tuple(map(variable, definition.equation.variables))
        self.owner[definition.tensor] = group
        self._changed(group)

    # --- inlining producers into their readers ---

    def _inline_producers(self) -> None:
        self.nesting = {group: nesting_of(group.members) for group in self.groups}
        for group in reversed(list(self.groups)):
            if group.form == "contraction" or any(group.locals.values()):
                continue
            outputs = self._outputs(group)
            if len(outputs) != 1 or outputs[0] in self.program.outputs or outputs[0] in self.indexing:
                continue
            if not self._keeps_one_value(group, outputs[0]):
                self._try_inline(group, outputs[0])

    def _try_inline(self, group: Group, tensor: str) -> None:
        readers = self._readers(tensor)
        rules: list[FeedBlock] = []
        for reader in readers:
            rule = self._feeding(group, tensor, reader)
            if rule is None:
                return
            rules.append(rule)
        repeated = self._repeated(group, tensor, list(zip(readers, rules, strict=True)))
        elements = largest(self.definition[tensor].equation.type.elements)
        if not readers or repeated > min(rule.recompute for rule in rules) * elements:
            self._refuse_inline(group, readers, rules, repeated, elements)
            return
        if any(self._sums_too_much(group, tensor, *one) for one in zip(readers, rules, strict=True)):
            return
        if not all(self._nesting_with(group, reader).within(self.policy.most) for reader in readers):
            return
        self.decisions.applied.update(rule.name for rule in rules)
        if repeated:
            self.decisions.repeating.update(rule.name for rule in rules)
        self._inline(group, readers)

    def _nesting_with(self, group: Group, reader: Group) -> Nesting:
        """The size of a reader's expression that computes a group's elements itself; more where both are small."""
        together = self.nesting[reader].around(self.nesting[group])
        return together if together.within(self.policy.most) else nesting_of((*group.members, *reader.members))

    def _feeding(self, group: Group, tensor: str, reader: Group) -> FeedBlock | None:
        """The rule by which a reader may compute a group's elements itself; None where it may not."""
        rule = self.policy.feeding(group.form, reader.form)
        if rule is None:
            if self.refusals is not None:
                reason = f"no fuse block feeds a {reader.form} kernel from a {group.form} kernel"
                self.refusals.note(self.policy.level, nodes_of(group), nodes_of(reader), reason, None, 1)
            return None
        uses = self._uses_in(tensor, reader)
        if group.form != "pointwise":
            admitted = self._read_once(tensor, uses, reader)
        else:
            first = self.definition[tensor]
            admitted = all(self.policy.may(first, use, reader.form) for use in uses)
        if not admitted:
            self._refuse(rule, group, reader, "not every reader takes each of its elements once and may join it")
        return rule if admitted else None

    def _uses_in(self, tensor: str, reader: Group) -> list[Definition]:
        return [u for u in self.users[tensor] if reader in self._homes(u.tensor)]

    def _repeated(self, group: Group, tensor: str, readers: Sequence[tuple[Group, FeedBlock]]) -> int:
        """The scalar operations that are repeated where all readers compute a group's elements themselves."""
        computed = 0
        for reader, rule in readers:
            once = group.form != "pointwise"
            uses = self._uses_in(tensor, reader)
            computed += max(evaluations(u.equation, tensor, reader, once) for u in uses) * _times(reader, rule)
        again = computed - largest(self.definition[tensor].equation.type.elements)
        if again <= 0 or group_moves_only(group):
            return 0
        return again * sum(operations(m.equation.body) for m in group.members)

    def _refuse_inline(
        self, group: Group, readers: Sequence[Group], rules: Sequence[FeedBlock], repeated: int, elements: int
    ) -> None:
        """Note that a group stays by itself, because too much would be computed again."""
        if not readers:
            return
        if repeated <= min(rule.most for rule in rules) * elements:
            self.decisions.refused.update(rule.name for rule in rules)
        least = min(rules, key=lambda rule: rule.recompute)
        figures = (repeated / max(1, elements), least.recompute)
        for reader in readers:
            self._refuse(least, group, reader, "operations repeated for each element saved", figures, 5)

    def _inline(self, group: Group, readers: Sequence[Group]) -> None:
        """Let the readers of a group compute its elements themselves."""
        for member in group.members:
            self.inlined[member.tensor] = member.equation
            # a member may have come here by being inlined itself
            self.recomputed[member.tensor] = self.recomputed.get(member.tensor, set()) - {group} | set(readers)
            self.owner.pop(member.tensor, None)
        del self.groups[group]
        for reader in readers:
            own = reader.tensors
            self.nesting[reader] = self._nesting_with(group, reader)
            reader.members[:0] = [m for m in group.members if m.tensor not in own]
            self._changed(reader)

    def _read_once(self, tensor: str, uses: list[Definition], reader: Group) -> bool:
        """Whether a reader takes every element of a window or statistic once, into rows that it keeps."""
        if reader.form == "contraction":
            matched = reader.contraction
            assert matched is not None
            in_left = sum(r.tensor == tensor for r in reads_of(matched.a))
            everywhere = sum(r.tensor == tensor for u in uses for r in reads_of(u.equation.body))
            return in_left == everywhere == 1 and self._is_constant(reader)
        return all(u.tensor in reader.coordinates for u in uses)

    # --- contractions of one left factor, side by side ---

    def _merge_siblings(self) -> None:
        rule = self.policy.rule(Siblings)
        if rule is None:
            return
        keys = {g: left_key(g) for g in self.groups if g.form == "contraction" and self._is_constant(g)}
        counts = Counter(keys.values())
        if max(counts.values(), default=1) == 1:
            return
        watched = Watched(self._ordered(), self._producers, self._consumers)
        first: dict[object, list[Group]] = {key: [] for key, count in counts.items() if count > 1}
        operands: dict[Group, set[str]] = {}
        for group, key in keys.items():
            if key not in first:
                continue
            around, own = watched.around(group), self._operands(group)
            open_ones = (one for one in first[key] if len(operands[one] | own) <= self.policy.parameters)
            other = next((one for one in open_ones if watched.apart(one, around)), None)
            if other is None:
                watched.watch(group, around)
                first[key].append(group)
                operands[group] = own
            else:
                watched.join(other, group, around)
                operands[other] |= own
                other.siblings.append(group)
                self._absorb(other, group)
                self.decisions.applied.add(rule.name)

    def _operands(self, group: Group) -> set[str]:
        """The tensors that a group reads from memory and writes; at most a few more, which its readers compute."""
        own = {member.tensor for member in group.everyone}
        return {t for member in group.everyone for t in member.reads if t not in own} | {*self._outputs(group)}


def _times(reader: Group, rule: FeedBlock) -> int:
    """How often a reader computes what it takes in: a contraction once for so many columns."""
    return 1 if reader.contraction is None else -(-largest(reader.contraction.n.extent) // rule.columns_together)

"""Forms the kernels: which definitions are computed together, and which tensors are never stored."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from smartmem_rules.plan.attention import covers_rows, scores_line_up, source_values
from smartmem_rules.plan.contraction import is_constant
from smartmem_rules.plan.fused import Decisions, Fused, Growth
from smartmem_rules.plan.groups import Group, join, operations, start
from smartmem_rules.plan.policy import FusionRule, Policy
from smartmem_rules.plan.program import Definition, Program
from smartmem_rules.plan.reading import evaluations, group_moves_only, left_key, reads_of, rows_line_up
from smartmem_rules.plan.row_arrays import array_size
from smartmem_rules.plan.rows import Rows
from smartmem_rules.tensor.expr import Equation, Reduce, own_indices, walk
from smartmem_rules.tensor.index import variable
from smartmem_rules.tensor.ranges import largest

STAGED = "panel"
"""The template whose work-items stage whole rows of the left factor."""


def fuse(program: Program, policy: Policy, apart: Collection[str] = (), growth: Growth | None = None) -> Fused:
    """Partition the program's definitions into groups as the policy allows.

    Args:
        apart: tensors whose contractions read their rows from memory.
        growth: of a fusion by a policy that lets the same definitions join.
    """
    return _Fusion(program, policy, apart).run(growth)


class _Fusion:
    def __init__(self, program: Program, policy: Policy, apart: Collection[str]) -> None:
        self.program = program
        self.apart = apart
        self.policy = policy
        self.owner: dict[str, Group] = {}
        self.definition: dict[str, Definition] = {d.tensor: d for d in program.definitions}
        self.groups: list[Group] = []
        self.depth: dict[Group, int] = {}
        self.inlined: dict[str, Equation] = {}
        self.recomputed: dict[str, set[Group]] = {}
        self.users = program.users()
        self.place = {d.tensor: i for i, d in enumerate(program.definitions)}
        self.spans: dict[Group, tuple[int, int, int]] = {}
        self.decisions = Decisions()
        self.rows: dict[object, tuple[int, int]] = {}
        self.indexing = {
            name
            for d in program.definitions
            for node in walk(d.equation.body)
            for index in own_indices(node)
            for name in index.gathered
        }

    def run(self, growth: Growth | None) -> Fused:
        if growth is None:
            for definition in self.program.definitions:
                self._place(definition)
            growth = Growth([group.copy() for group in self.groups])
        else:
            self.groups = [group.copy() for group in growth.groups]
            self.owner = {member.tensor: group for group in self.groups for member in group.members}
        self.rows = growth.rows
        if self.policy.table is not None:
            self._inline_producers()
            self._merge_siblings()
            self._feed_contractions()
            self._finish_rows()
        groups = self._ordered()
        stored = {t for g in groups for t in self._outputs(g)}
        return Fused(groups, self.inlined, stored, self.decisions, growth)

    # --- growing groups over their consumers ---

    def _place(self, definition: Definition) -> None:
        if definition.equation.scan:
            self._place_scan(definition)
            return
        for group in self._candidates(definition):
            if not self._makes_cycle(group, definition) and join(group, definition, self.program.names):
                self._own(definition, group)
                return
        group = start(definition, self.program.names, self.program.constants.__contains__)
        self.groups.append(group)
        self._own(definition, group)

    def _own(self, definition: Definition, group: Group) -> None:
        """Note who computes a definition, and how many groups have to run before it."""
        read = {self.owner[t] for t in definition.reads if t in self.owner} - {group}
        self.depth[group] = max([self.depth.get(group, 0), *(self.depth.get(one, 0) + 1 for one in read)])
        self.owner[definition.tensor] = group

    def _candidates(self, definition: Definition) -> list[Group]:
        found: dict[Group, None] = {}
        for tensor in definition.reads:
            group = self.owner.get(tensor)
            if group is None or group.form == "scan":
                continue
            if self.policy.may(self.definition[tensor], definition, group.form):
                found.setdefault(group)
        rank = {"contraction": 0, "window": 1, "reduction": 2, "pointwise": 3}
        forms = [group.form for group in found]
        self.decisions.contested |= len(set(forms)) < len(forms)
        sign = 1 if self.policy.joins_earliest else -1
        position = {group: sign * place for place, group in enumerate(self.groups)}
        # where work-groups of branches share launches, the longer branch takes in what joins them: the others need not
        # wait for it; work-items of CPUs go on with their own rows instead
        rule = self.policy.rule("any", "any")
        beside = rule is not None and rule.template != STAGED
        return sorted(found, key=lambda g: (rank[g.form], -self.depth[g] if beside else 0, position[g]))

    def _place_scan(self, definition: Definition) -> None:
        """All scans of a node are one kernel: each step needs what the others hold one step before."""
        group = next((g for g in self.groups if g.form == "scan" and g.members[0].node == definition.node), None)
        if group is None:
            group = Group("scan", ())
            self.groups.append(group)
        group.members.append(definition)
        group.coordinates[definition.tensor] = tuple(map(variable, definition.equation.variables))
        self.owner[definition.tensor] = group

    def _makes_cycle(self, group: Group, definition: Definition) -> bool:
        """Whether another operand of the definition already depends on the group."""
        others = {self.owner[t] for t in definition.reads if t in self.owner} - {group}
        return any(self._depends(other, group) for other in others)

    def _depends(self, group: Group, on: Group) -> bool:
        """Whether the group needs, directly or through others, what `on` computes."""
        stack, seen = [group], {group}
        first = self._span(on)[0]
        while stack:
            for producer in self._producers(stack.pop()):
                if producer is on:
                    return True
                # definitions are in topological order: what ends before `on` begins cannot need it
                if producer not in seen and self._span(producer)[1] > first:
                    seen.add(producer)
                    stack.append(producer)
        return False

    def _span(self, group: Group) -> tuple[int, int]:
        """The first and last place of the group's definitions in the program."""
        count = len(group.everyone)
        known = self.spans.get(group)
        if known is None or known[0] != count:
            places = [self.place[m.tensor] for m in group.everyone]
            known = self.spans[group] = (count, min(places), max(places))
        return known[1], known[2]

    def _producers(self, group: Group) -> Iterable[Group]:
        for member in group.everyone:
            for tensor in member.reads:
                producer = self.owner.get(tensor)
                if producer is not None and producer is not group:
                    yield producer

    def _homes(self, tensor: str) -> set[Group]:
        """The groups that compute a tensor: one, or all that recompute an inlined one."""
        return self.recomputed[tensor] if tensor in self.recomputed else {self.owner[tensor]}

    def _absorb(self, into: Group, group: Group) -> None:
        """From now on `into` computes what the group computed."""
        self.groups.remove(group)
        for tensor, owner in self.owner.items():
            if owner is group:
                self.owner[tensor] = into
        for homes in self.recomputed.values():
            if group in homes:
                homes.discard(group)
                homes.add(into)

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
        return [g for g in self.groups if g in found]

    # --- inlining producers into their readers ---

    def _inline_producers(self) -> None:
        for group in reversed(list(self.groups)):
            if group.form == "contraction" or any(group.locals.values()):
                continue
            outputs = self._outputs(group)
            if len(outputs) == 1 and outputs[0] not in self.program.outputs and outputs[0] not in self.indexing:
                self._try_inline(group, outputs[0])

    def _try_inline(self, group: Group, tensor: str) -> None:
        first = self.definition[tensor]
        elements = largest(first.equation.type.elements)
        readers = self._readers(tensor)
        computed, rules = 0, []
        for reader in readers:
            rule = self.policy.rule(group.form, reader.form)
            uses = [u for u in self.users[tensor] if reader in self._homes(u.tensor)]
            if rule is None:
                return
            if group.form != "pointwise":
                admitted = self._read_once(tensor, uses, reader)
            else:
                admitted = all(self.policy.may(first, use, reader.form) for use in uses)
            if not admitted:
                return
            read = max(evaluations(u.equation, tensor, reader, group.form != "pointwise") for u in uses)
            computed += read * _times(reader, rule)
            rules.append(rule)
        cost = 0 if group_moves_only(group) else sum(operations(m.equation.body) for m in group.members)
        repeated = cost * max(0, computed - elements)
        if not readers or repeated > min(rule.recompute for rule in rules) * elements:
            if readers and repeated <= min(rule.recompute_most for rule in rules) * elements:
                self.decisions.refused.update(rule.name for rule in rules)
            return
        self.decisions.applied.update(rule.name for rule in rules)
        if repeated:
            self.decisions.repeating.update(rule.name for rule in rules)
        for member in group.members:
            self.inlined[member.tensor] = member.equation
            # a member may have come here by being inlined itself
            self.recomputed[member.tensor] = self.recomputed.get(member.tensor, set()) - {group} | set(readers)
            self.owner.pop(member.tensor, None)
        self.groups.remove(group)
        for reader in readers:
            reader.members[:0] = [m for m in group.members if m not in reader.members]

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
        rule = self.policy.rule("contraction", "contraction")
        if rule is None:
            return
        first: dict[object, list[Group]] = {}
        for group in list(self.groups):
            if group.form != "contraction" or not self._is_constant(group):
                continue
            for other in first.setdefault(left_key(group), []):
                if not self._depends(group, other) and not self._depends(other, group):
                    other.siblings.append(group)
                    self._absorb(other, group)
                    self.decisions.applied.add(rule.name)
                    break
            else:
                first[left_key(group)].append(group)

    # --- rows that a contraction computes itself ---

    def _feed_contractions(self) -> None:
        rule = self.policy.rule("reduction", "contraction")
        if rule is None:
            return
        for group in list(self.groups):
            if group.form != "reduction":
                continue
            outputs = self._outputs(group)
            if len(outputs) != 1 or outputs[0] in self.program.outputs:
                continue
            reader = self._reader_of_rows(group, outputs[0], rule)
            if reader is None:
                continue
            row_bytes = self._row_bytes(group, rule)
            if reader.form != "contraction" or row_bytes > rule.scratch or self._right_bytes(reader) > rule.columns:
                continue
            if any(t in self.apart for t in reader.tensors):
                continue
            repeated = self._rows_of(group)[1] if rule.recompute else 0
            if repeated > rule.recompute:
                if repeated <= rule.recompute_most:
                    self.decisions.refused.add(rule.name)
                continue
            if self._all_line_up(group, outputs[0], reader):
                self.decisions.applied.add(rule.name)
                reader.feeding.append(group)
                self._absorb(reader, group)
                self._feed_scores(group, reader)

    def _reader_of_rows(self, group: Group, tensor: str, rule: FusionRule) -> Group | None:
        """The contraction that may compute the rows: the only reader, or one that can store them for the others."""
        readers = self._readers(tensor)
        if len(readers) == 1:
            return readers[0]
        if not rule.keeps or not group.locals[tensor]:
            return None
        for reader in readers:
            others = [g for g in readers if g is not reader]
            if reader.form != "contraction" or any(self._depends(reader, other) for other in others):
                continue
            if self._all_line_up(group, tensor, reader) and covers_rows(group, reader):
                return reader
        return None

    def _row_bytes(self, group: Group, rule: FusionRule) -> int:
        """What a reduction keeps of a row: the whole row where it is staged, else the arrays that it needs twice."""
        if rule.template == STAGED:
            return 4 * max((largest(v.extent) for own in group.locals.values() for v in own), default=1)
        return self._rows_of(group)[0]

    def _rows_of(self, group: Group) -> tuple[int, int]:
        """Bytes of a row's arrays, and scalar operations for one element of it, which every tile of columns repeats."""
        key = tuple((m.tensor, m.tensor in self.inlined) for m in group.members)
        if key not in self.rows:
            size, total = 0, 0
            for stage in Rows(self.program, self.inlined, group, {}, {}).stages():
                sums = [operations(n.body) for n in walk(stage.body) if isinstance(n, Reduce)]
                total += operations(stage.body) if stage.axes else max(sums, default=0)
                size += 4 * array_size(stage.axes) if stage.axes else 0
            self.rows[key] = size, total
        return self.rows[key]

    def _feed_scores(self, rows: Group, reader: Group) -> None:
        """Let the contraction that makes the rows (the scores of an attention) join its reader."""
        rule = self.policy.rule("contraction", "reduction")
        if rule is None or reader.scores is not None or len(reader.feeding) > 1:
            return
        read = {t for m in rows.members for t in m.reads}
        for tensor in read:
            scores = self.owner.get(tensor)
            if scores is None or scores is reader or scores.form != "contraction" or scores.feeding:
                continue
            if self._outputs(scores) != [tensor] or tensor in self.program.outputs or self._readers(tensor) != [reader]:
                continue
            users = {u.tensor for u in self.users[tensor]}
            others = {p for p in self._producers(reader) if p is not scores}
            if not users <= rows.tensors or any(self._depends(p, scores) for p in others):
                continue
            if self._is_constant(scores) or self._is_constant(reader):
                continue
            if scores_line_up(scores, rows, reader, tensor, rule):
                reader.scores = scores
                self.decisions.applied.add(rule.name)
                self._absorb(reader, scores)
                return

    def _finish_rows(self) -> None:
        """Let a contraction with whole rows in cache go on with the reduction that reads nothing else of it."""
        rule = self.policy.rule("contraction", "rows")
        if rule is None:
            return
        for rows in [g for g in self.groups if g.form == "reduction"]:
            read = dict.fromkeys(t for m in rows.members for t in m.reads)
            for tensor in read:
                source = self.owner.get(tensor)
                if source is None or source.form != "contraction" or source.siblings or source.scores is not None:
                    continue
                matched = source.contraction
                assert matched is not None
                k = math.prod(v.extent for v in matched.reduce.variables)
                fits = 4 * largest(matched.n.extent) <= rule.scratch and 4 * largest(k) <= rule.columns
                if self._outputs(source) != [tensor] or tensor in self.program.outputs or not fits:
                    continue
                others = {p for p in self._producers(rows) if p is not source}
                if self._readers(tensor) != [rows] or any(self._depends(p, source) for p in others):
                    continue
                if self._is_constant(source) and source_values(source, rows, tensor) is not None:
                    rows.source = source
                    self.decisions.applied.add(rule.name)
                    self._absorb(rows, source)
                    break

    def _right_bytes(self, group: Group) -> int:
        """Bytes of a right factor that each work-item packs for itself; weights are packed before."""
        matched = group.contraction
        assert matched is not None
        if self._is_constant(group):
            return 0
        return 4 * largest(matched.n.extent * math.prod(v.extent for v in matched.reduce.variables))

    def _is_constant(self, group: Group) -> bool:
        """Whether a contraction's right factor was known before the model runs: a layer's weights."""
        assert group.contraction is not None
        return is_constant(group.contraction.b, self.program.constants)

    def _all_line_up(self, group: Group, tensor: str, reader: Group) -> bool:
        cores = {t for part in reader.parts for t in part.coordinates}
        users = [u for u in self.users[tensor] if reader in self._homes(u.tensor)]
        if any(user.tensor not in cores for user in users):
            return False
        return all(rows_line_up(group, tensor, part, self.inlined) for part in reader.parts)

    # --- order ---

    def _ordered(self) -> list[Group]:
        done: dict[Group, None] = {}
        for root in self.groups:
            stack = [(root, iter(list(self._producers(root))))]
            entered = {root}
            while stack:
                group, rest = stack[-1]
                following = next((p for p in rest if p not in done and p not in entered), None)
                if following is not None:
                    entered.add(following)
                    stack.append((following, iter(list(self._producers(following)))))
                else:
                    stack.pop()
                    done.setdefault(group)
        return list(done)


def _times(reader: Group, rule: FusionRule) -> int:
    """How often a reader computes what it takes in: a contraction once for so many columns."""
    return 1 if reader.contraction is None else -(-largest(reader.contraction.n.extent) // rule.width)

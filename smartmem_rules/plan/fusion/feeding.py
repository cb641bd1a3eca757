"""Prologue fusion, fused attention and epilogue reductions of contractions."""

from __future__ import annotations

import math

from smartmem_rules.language.blocks.fuse import (
    Attention,
    Epilogue,
    FeedBlock,
    Prologue,
)
from smartmem_rules.plan.fusion.grouping import Grouping
from smartmem_rules.plan.fusion.groups import Group
from smartmem_rules.plan.fusion.on_chip.attention import covers_rows, scores_line_up, source_values
from smartmem_rules.plan.fusion.on_chip.rows import Rows
from smartmem_rules.plan.fusion.reads import rows_line_up
from smartmem_rules.plan.kernel.operations import operations
from smartmem_rules.plan.kernel.row_arrays import array_size
from smartmem_rules.tensor.expr import Reduce, walk
from smartmem_rules.tensor.ranges import largest, several

STAGED = "panel"
"""The template whose work-items stage whole rows of the left factor."""


class Feeding(Grouping):
    """The passes that join contractions with reductions over the same rows."""

    # --- rows that a contraction computes itself ---

    def _feed_contractions(self) -> None:
        rule = self.policy.rule(Prologue)
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
                for one in self._readers(outputs[0]):
                    self._refuse(rule, group, one, "others read the rows as well, and it cannot store them for these")
                continue
            if reader.form != "contraction":
                self._refuse(rule, group, reader, "the kernel that reads the rows is no contraction", None, 1)
                continue
            columns = 0 if reader.contraction is None else largest(reader.contraction.n.extent)
            limits = (
                ("bytes of a row on chip", (self._row_bytes(group, rule), rule.row_bytes), 4),
                ("bytes of the right factor", (self._right_bytes(reader), rule.right_bytes), 5),
                ("columns, each tile of which makes the rows anew", (columns, rule.columns), 5),
            )
            exceeded = next((one for one in limits if one[1][0] > one[1][1]), None)
            if exceeded is not None:
                self._refuse(rule, group, reader, *exceeded)
                continue
            if self._sums_too_much(group, outputs[0], reader, rule):
                continue
            if any(t in self.unfed for t in reader.tensors):
                self._refuse(rule, group, reader, "no schedule has room on chip for both", None, 6)
                continue
            repeated = self._rows_of(group)[1] if rule.recompute else 0
            if repeated > rule.recompute:
                figures = (repeated, rule.recompute)
                self._refuse(rule, group, reader, "operations repeated for each element of a row", figures, 7)
                if repeated <= rule.most:
                    self.decisions.refused.add(rule.name)
                continue
            if not self._all_line_up(group, outputs[0], reader):
                self._refuse(rule, group, reader, "the rows do not line up with those of the left factor", None, 8)
            else:
                self.decisions.applied.add(rule.name)
                reader.feeding.append(group)
                self._absorb(reader, group)
                self._feed_scores(group, reader)

    def _reader_of_rows(self, group: Group, tensor: str, rule: Prologue) -> Group | None:
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

    def _row_bytes(self, group: Group, rule: Prologue) -> int:
        """What a reduction keeps of a row: the whole row where it is staged, else the arrays that it needs twice."""
        if rule.template == STAGED:
            return 4 * max((largest(v.extent) for own in group.locals.values() for v in own), default=1)
        return self._rows_of(group)[0]

    def _sums_too_much(self, group: Group, tensor: str, reader: Group, rule: FeedBlock) -> bool:
        """Whether an element of a row is the sum of more elements than the work-group of a tile may add up."""
        if not isinstance(rule, Prologue) or any(several(v.extent) for v in group.locals.get(tensor, ())):
            return False
        sums = [n for m in group.members for n in walk(m.equation.body) if isinstance(n, Reduce)]
        summed = max((largest(math.prod(v.extent for v in n.variables)) for n in sums), default=1)
        if summed <= rule.summed:
            return False
        if summed <= rule.summed_most:
            self.decisions.refused.add(rule.name)
        figures = (summed, rule.summed)
        self._refuse(rule, group, reader, "elements of which an element of a row is the sum", figures, 7)
        return True

    def _rows_of(self, group: Group) -> tuple[int, int]:
        """Bytes of a row's arrays, and scalar operations for one element of it, which every tile of columns repeats."""
        key = tuple((m.tensor, m.tensor in self.inlined) for m in group.members)
        if key not in self.rows:
            size, total = 0, 0
            for stage in Rows(self.program, self.inlined, group, {}, {}, self.policy.rows).stages():
                sums = [operations(n.body) for n in walk(stage.body) if isinstance(n, Reduce)]
                total += operations(stage.body) if stage.axes else max(sums, default=0)
                size += 4 * array_size(stage.axes) if stage.axes else 0
            self.rows[key] = size, total
        return self.rows[key]

    def _feed_scores(self, rows: Group, reader: Group) -> None:
        """Let the contraction that makes the rows (the scores of an attention) join its reader."""
        rule = self.policy.rule(Attention)
        if rule is None or reader.scores is not None or len(reader.feeding) > 1:
            return
        read = {t for m in rows.members for t in m.reads}
        for tensor in read:
            scores = self.owner.get(tensor)
            if scores is None or scores is reader or scores.form != "contraction" or scores.feeding:
                continue
            if _sums_integers(scores) or _sums_integers(reader):
                self._refuse(rule, scores, reader, "a product of bytes keeps no floats on chip", None, 1)
                continue
            if self._outputs(scores) != [tensor] or tensor in self.program.outputs or self._readers(tensor) != [reader]:
                self._refuse(rule, scores, reader, "others read the scores as well")
                continue
            users = {u.tensor for u in self.users[tensor]}
            others = {p for p in self._producers(reader) if p is not scores}
            if not users <= rows.tensors or any(self._depends(p, scores) for p in others):
                self._refuse(rule, scores, reader, "something between them needs the scores as well", None, 4)
                continue
            if self._is_constant(scores) or self._is_constant(reader):
                self._refuse(rule, scores, reader, "a right factor is constant: this is no attention", None, 2)
                continue
            if scores_line_up(scores, rows, reader, tensor, rule):
                reader.scores = scores
                self.decisions.applied.add(rule.name)
                self._absorb(reader, scores)
                return
            limits = f"row_bytes {rule.row_bytes}, right_bytes {rule.right_bytes}"
            self._refuse(rule, scores, reader, f"the rows do not line up, or do not fit on chip ({limits})", None, 5)

    def _finish_rows(self) -> None:
        """Let a contraction with whole rows in cache go on with the reduction that reads nothing else of it."""
        rule = self.policy.rule(Epilogue)
        if rule is None:
            return
        for rows in [g for g in self.groups if g.form == "reduction"]:
            read = dict.fromkeys(t for m in rows.members for t in m.reads)
            for tensor in read:
                source = self.owner.get(tensor)
                if source is None or source.form != "contraction" or source.siblings or source.scores is not None:
                    continue
                if _sums_integers(source):
                    self._refuse(rule, source, rows, "a product of bytes keeps no floats on chip", None, 1)
                    continue
                matched = source.contraction
                assert matched is not None
                k = math.prod(v.extent for v in matched.reduce.variables)
                row, left = 4 * largest(matched.n.extent), 4 * largest(k)
                if self._outputs(source) != [tensor] or tensor in self.program.outputs:
                    self._refuse(rule, source, rows, "others need the product as well")
                    continue
                if row > rule.row_bytes:
                    self._refuse(rule, source, rows, "bytes of a row of the product", (row, rule.row_bytes), 4)
                    continue
                if left > rule.left_row_bytes:
                    self._refuse(rule, source, rows, "bytes of a row of the left", (left, rule.left_row_bytes), 5)
                    continue
                others = {p for p in self._producers(rows) if p is not source}
                if self._readers(tensor) != [rows] or any(self._depends(p, source) for p in others):
                    self._refuse(rule, source, rows, "something else needs the product as well", None, 6)
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

    def _all_line_up(self, group: Group, tensor: str, reader: Group) -> bool:
        cores = {t for part in reader.parts for t in part.coordinates}
        users = [u for u in self.users[tensor] if reader in self._homes(u.tensor)]
        if any(user.tensor not in cores for user in users):
            return False
        return all(rows_line_up(group, tensor, part, self.inlined) for part in reader.parts)


def _sums_integers(group: Group) -> bool:
    return group.contraction is not None and group.contraction.reduce.dtype == "int32"

"""Which neighbours may share a kernel: read from the tables, `fuse` and `level` blocks of the rule base."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from smartmem_rules.language.syntax import Block, Table
from smartmem_rules.plan.model import PlanError
from smartmem_rules.plan.program import Definition
from smartmem_rules.tensor.ranges import surely_at_most

ANY = 1 << 62
"""Bytes that no kernel exceeds."""


@dataclass(frozen=True)
class FusionRule:
    """A `fuse` block: kernels of form `first` may take in definitions or kernels of form `second`.

    Attributes:
        recompute: scalar operations that one saved memory access may cost.
        scratch: bytes of one row that may be kept on chip.
        columns: bytes of a right factor that may be kept on chip beside it.
        tolerance: percent of the modelled time that one launch fewer may cost.
        template: the template of contractions that it needs, empty where any will do.
        launches: the time of a small kernel on one unit of the device, in launches.
        waits: the time for which a unit may wait for another one, in launches.
        width: columns of a contraction for which what is fed is computed once.
        keeps: whether what is fed may be stored too, for others that read it later.
        optional: whether kernels made without the rule compete with those made by it (`plan.alternatives`).
        recompute_most: the limit in the place of `recompute` for kernels that compete.
    """

    name: str
    first: str
    second: str
    recompute: int
    scratch: int
    columns: int
    tolerance: int
    template: str
    launches: int
    waits: int
    width: int
    keeps: bool
    optional: bool
    recompute_most: int


@dataclass(frozen=True)
class Policy:
    """The fusion knowledge of one level.

    Attributes:
        chooses_kernels: whether fusion is chosen together with the layouts, among what the rules allow.
        joins_earliest: of several kernels that could take in a definition, the first does, not the last.
        depends: what the cells of that name say: `counted`, fuse where no element is computed more than once; always;
            never.
    """

    level: str
    table: Table | None
    rules: tuple[FusionRule, ...]
    reads_through_views: bool
    chooses_layouts: bool
    tuned: bool
    prefers_device_memory: bool
    writes_in_place: bool
    chooses_kernels: bool = False
    joins_earliest: bool = False
    depends: Literal["counted", "always", "never"] = "counted"

    def may(self, first: Definition, second: Definition, form: str) -> bool:
        """Whether `second` may join the kernel (of the given form) that computes `first`."""
        if first.node == second.node:
            return True
        if self.table is None:
            return False
        word = self._word(first, second)
        if word.startswith(("fuse", "eliminate")) or word == "through":
            return True
        if word == "depends":
            if self.depends != "counted":
                return self.depends == "always"
            # a launch and the traffic of a tensor are saved; it pays where no element is computed more than once
            return surely_at_most(second.equation.type.elements, first.equation.type.elements)
        return self.rule(form, "reduction" if second.reduces else "pointwise") is not None

    @property
    def leaves_open(self) -> bool:
        """Whether the table has cells that it leaves to the cost model."""
        return self.table is not None and any(cell[0] == "depends" for cell in self.table.cells.values())

    def grows_like(self, other: Policy) -> bool:
        """Whether both let the same definitions join the kernels that compute what they read."""
        return (self.joins_earliest, self.depends) == (other.joins_earliest, other.depends)

    def _word(self, first: Definition, second: Definition) -> str:
        assert self.table is not None
        by_layout = any("." in row for row in self.table.rows)
        pair = (first.classes, second.classes)
        row, column = (c.layout if by_layout else c.mapping for c in pair)
        cell = self.table.cells.get((row, column))
        if cell is None:
            raise PlanError(f"table {self.table.name} has no cell for {row} followed by {column}")
        return cell[0]

    def within(self, templates: Collection[str]) -> Policy:
        """The policy without the rules whose template no schedule has."""
        return replace(self, rules=tuple(r for r in self.rules if not r.template or r.template in templates))

    def rule(self, first: str, second: str) -> FusionRule | None:
        return next((r for r in self.rules if r.first == first and r.second == second), None)


def policy_of(level: Block, tables: Mapping[str, Table], fuse: Mapping[str, Block]) -> Policy:
    """The policy that a `level` block describes.

    Raises:
        PlanError: the level names a table or fusion rule that does not exist.
    """
    entries = {entry.key: entry.values for entry in level.entries}
    table = None
    if "table" in entries:
        name = str(entries["table"][0])
        if name not in tables:
            raise PlanError(f"level {level.name} names the table {name}, which no rule file defines ({level.span})")
        table = tables[name]
    rules = []
    for name in map(str, entries.get("fuse", ())):
        if name not in fuse:
            raise PlanError(f"level {level.name} names the fusion rule {name}, which is not defined ({level.span})")
        rules.append(_rule(fuse[name]))
    return Policy(
        level.name,
        table,
        tuple(rules),
        entries.get("views", ("keep",))[0] == "read_through",
        entries.get("layouts", ("none",))[0] == "reduction",
        entries.get("schedules", ("default",))[0] == "tuned",
        entries.get("memory", ("buffer",))[0] == "preferred",
        entries.get("intermediates", ("shared",))[0] == "in_place",
        entries.get("kernels", ("rules",))[0] == "joint",
    )


def _rule(block: Block) -> FusionRule:
    entries = {entry.key: entry.values for entry in block.entries}
    try:
        return FusionRule(
            block.name,
            str(entries["first"][0]),
            str(entries["second"][0]),
            int(entries.get("recompute", (0,))[0]),
            int(entries.get("scratch", (0,))[0]),
            int(entries.get("columns", (ANY,))[0]),
            int(entries.get("tolerance", (0,))[0]),
            str(entries.get("template", ("",))[0]),
            int(entries.get("launches", (0,))[0]),
            int(entries.get("waits", (0,))[0]),
            int(entries.get("width", (ANY,))[0]),
            entries.get("keeps", ("no",))[0] in ("yes", True),
            entries.get("optional", ("no",))[0] in ("yes", True),
            int(entries.get("recompute_most", entries.get("recompute", (0,)))[0]),
        )
    except KeyError as missing:
        raise PlanError(f"fuse {block.name} lacks the entry {missing} ({block.span})") from missing

"""Which neighbours may share a kernel: read from the tables, `fuse` and `level` blocks of the rule base."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Literal, TypeVar

from smartmem_rules.language.blocks.fuse import Chain, FeedBlock, FuseBlock, Prologue
from smartmem_rules.language.blocks.keys import UNLIMITED
from smartmem_rules.language.blocks.level import KeptRows, Level
from smartmem_rules.language.blocks.schedule import ByteProducts
from smartmem_rules.language.syntax import Table
from smartmem_rules.plan.fusion.equations.program import Definition
from smartmem_rules.plan.fusion.nesting import Nesting
from smartmem_rules.plan.kernel.model import PlanError
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.ranges import surely_at_most

R = TypeVar("R", bound=FuseBlock)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The fusion knowledge of one level.

    Attributes:
        chooses_kernels: whether fusion is chosen together with the layouts, among what the rules allow.
        joins_earliest: of several kernels that could take in a definition, the first does, not the last.
        depends: what the cells of that name say: `counted`, fuse where no element is computed more than once; always;
            never.
        rows: what kernels over rows keep of them.
        products: the schedule of products of bytes, None where the device or the level has none.
        group_columns: convolutions of groups with at most so many columns each are sums over windows, not products.
        parameters: tensors that a launch takes at most.
        most: the size of a kernel's expression above which it takes in no further producer or consumer.
    """

    level: str
    table: Table | None
    rules: tuple[FuseBlock, ...]
    reads_through_views: bool
    chooses_layouts: bool
    tuned: bool
    prefers_device_memory: bool
    writes_in_place: bool
    rows: KeptRows
    most: Nesting
    most_operands: int
    chooses_kernels: bool = False
    joins_earliest: bool = False
    depends: Literal["counted", "always", "never"] = "counted"
    products: ByteProducts | None = None
    group_columns: int = 0
    parameters: int = UNLIMITED

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
        return self.feeding(form, "reduction" if second.reduces else "pointwise") is not None

    def refusal(self, first: Definition, second: Definition, form: str) -> tuple[str, str]:
        """For two definitions that `may` refuses: the table or level that does, and why."""
        if self.table is None:
            return self.level, "the level has no table of what may be fused"
        by_layout = any("." in row for row in self.table.rows)
        pair = [c.layout if by_layout else c.mapping for c in (first.classes, second.classes)]
        word = self._word(first, second)
        reason = f"its cell for {pair[0]} followed by {pair[1]} is `{word}`"
        if word == "depends":
            sizes = f"{second.equation.type.elements!r} elements from {first.equation.type.elements!r}"
            return self.table.name, f"{reason}, and {sizes} would be computed more than once"
        kind = "reduction" if second.reduces else "pointwise"
        return self.table.name, f"{reason}, and no fuse block feeds a {kind} kernel from a {form} kernel"

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

    def with_columns(self, most: int) -> Policy:
        """The policy with products of so many columns at most that make rows of their left factor themselves."""
        own = (replace(r, columns=min(most, r.columns)) if isinstance(r, Prologue) else r for r in self.rules)
        return replace(self, rules=tuple(own))

    def with_all_sums(self) -> Policy:
        """The policy in which products make rows whose elements are sums of any length."""
        own = (replace(r, summed=UNLIMITED) if isinstance(r, Prologue) else r for r in self.rules)
        return replace(self, rules=tuple(own))

    def rule(self, kind: type[R]) -> R | None:
        """The level's first block of a pass, None where it has none."""
        return next((r for r in self.rules if isinstance(r, kind)), None)

    def feeding(self, first: str, second: str) -> FeedBlock | None:
        """The first block by which a kernel of form `first` may feed one of form `second` on chip."""
        feeds = (r for r in self.rules if isinstance(r, FeedBlock))
        return next((r for r in feeds if r.first == first and r.second == second), None)

    def chains(self, over: str) -> Chain | None:
        """The block of chains over `rows` or `batches`."""
        return next((r for r in self.rules if isinstance(r, Chain) and r.over == over), None)


def policy_of(level: Level, tables: Mapping[str, Table], fuse: Mapping[str, FuseBlock]) -> Policy:
    """The policy that a `level` block describes.

    Raises:
        PlanError: the level names a table or fusion rule that does not exist.
    """
    where = level.block.span
    if level.table and level.table not in tables:
        raise PlanError(f"level {level.name} names the table {level.table}, which no rule file defines ({where})")
    unknown = [name for name in level.fuse if name not in fuse]
    if unknown:
        raise PlanError(f"level {level.name} names undefined fuse blocks: {', '.join(unknown)} ({where})")
    return Policy(
        level=level.name,
        table=tables[level.table] if level.table else None,
        rules=tuple(fuse[name] for name in level.fuse),
        reads_through_views=level.views == "read_through",
        chooses_layouts=bool(level.layout),
        tuned=level.schedules == "tuned",
        prefers_device_memory=level.memory == "preferred",
        writes_in_place=level.intermediates == "in_place",
        chooses_kernels=level.kernels == "joint",
        rows=level.rows,
        most=Nesting(level.deepest, level.most_terms),
        most_operands=level.most_operands,
    )

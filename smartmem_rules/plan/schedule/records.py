"""How a kernel runs: one record for each template, with its sizes and what was packed for it."""

from __future__ import annotations

from typing import TypeVar

from smartmem_rules.language.blocks.schedule import FilteredData
from smartmem_rules.plan.kernel.model import Kernel, KernelSchedule, PlanError
from smartmem_rules.plan.schedule.contraction.factors import PackedPanel
from smartmem_rules.plan.schedule.contraction.group import GroupTile
from smartmem_rules.plan.schedule.contraction.winograd import Transform, Windows
from smartmem_rules.records import dataclass

S = TypeVar("S", bound=KernelSchedule)


def schedule_of(kernel: Kernel, kind: type[S]) -> S:
    """The schedule of a kernel, of the kind that its template takes.

    Raises:
        PlanError: the kernel was not scheduled, or for another template.
    """
    schedule = kernel.schedule
    if not isinstance(schedule, kind):
        found = "has no schedule" if schedule is None else f"is scheduled for the template {schedule.template}"
        raise PlanError(f"the kernel {kernel.name} {found}, but its text is that of {kind.__name__}")
    return schedule


@dataclass(frozen=True, kw_only=True)
class ItemSchedule(KernelSchedule):
    """Rows of the output dealt out to work-items (CPU).

    Attributes:
        window_rows: neighbouring rows whose windows are computed together; work-items take whole groups of them.
    """

    items: int
    window_rows: int = 1


@dataclass(frozen=True, kw_only=True)
class VectorSchedule(KernelSchedule):
    """Vectors of the output dealt out to work-items (GPU).

    Attributes:
        group: work-items of a work-group.
        places: vectors that a work-item computes, one after the other.
    """

    group: int
    places: int


@dataclass(frozen=True, kw_only=True)
class TeamSchedule(VectorSchedule):
    """Rows dealt out to teams of work-items (GPU).

    Attributes:
        team: work-items that share a row.
        teams: rows of a work-group.
        whole_rows: whether each team takes a row although a vector could hold several neighbouring ones.
    """

    team: int
    teams: int
    whole_rows: bool = False


@dataclass(frozen=True, kw_only=True)
class TileSchedule(KernelSchedule):
    """Register tiles of a contraction, without anything shared.

    Attributes:
        group: work-items of a work-group on GPUs.
    """

    rows: int
    columns: int
    group: int


@dataclass(frozen=True, kw_only=True)
class PanelSchedule(KernelSchedule):
    """Register tiles over rows staged in cache and packed columns.

    Attributes:
        rows, columns: of the register tile.
        block_rows: rows of a work-item.
        tiles_per_block: tiles of columns of a work-item.
        tail: rows of a full block that a register tile of their own takes.
        ahead: steps of the reduction for each prefetch of lines of the next tile of a packed right factor; 0 for none.
        ahead_lines: lines of a prefetch.
        window_rows: neighbouring rows whose windows are computed together.
        packed: the right factors that were packed before, None for one that the kernel packs.
        in_place: whether the rows of a batch read such a factor where it lies, if that can be.
    """

    rows: int
    columns: int
    block_rows: int
    tiles_per_block: int
    tail: int
    ahead: int
    ahead_lines: int
    window_rows: int
    packed: tuple[PackedPanel | None, ...]
    in_place: bool = False


@dataclass(frozen=True, kw_only=True)
class WinogradSchedule(PanelSchedule):
    """The same over tiles of a convolution transformed by Winograd's filtering.

    Attributes:
        outputs: of a tile along each axis.
        direct: the right factors as they are, for outputs that are summed directly.
        data: which outputs these are.
    """

    outputs: int
    windows: Windows
    transform: Transform
    direct: tuple[PackedPanel, ...]
    data: FilteredData

    @property
    def seldom_read(self) -> tuple[str, ...]:
        return tuple(factor.name for factor in self.direct)


@dataclass(frozen=True, kw_only=True)
class GroupSchedule(KernelSchedule):
    """Tiles in local memory.

    Attributes:
        splits: work-groups that share one reduction (split-K).
        packed: the right factor that was packed before, None where the kernel reads it as it lies.
        partials, arrivals: of split-K, the tensors of partial sums and of arrival counters.
    """

    tile: GroupTile
    splits: int
    packed: PackedPanel | None
    partials: str = ""
    arrivals: str = ""

    def sizes(self) -> dict[str, int]:
        """As the database of tuned sizes holds them."""
        return {**self.tile.numbers(), "splits": self.splits}

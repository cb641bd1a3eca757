"""How a plan was made in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smartmem_rules.stages import Span

if TYPE_CHECKING:  # running a plan needs no planner
    from smartmem_rules.plan.schedule.modelled import ModelledTimes
    from smartmem_rules.plan.scheduling import Scheduled


@dataclass(frozen=True, kw_only=True)
class Making:
    """How a plan was made.

    Attributes:
        stages: when each stage ran; none of a plan from a file.
        modelled: what the cost model says of the launches; None where the plan was made before and found again.
    """

    stages: tuple[Span, ...] = ()
    modelled: ModelledTimes | None = None


class Watch:
    """Keeps what a trace shows of scheduled launches, and lets go of the rest.

    Attributes:
        modelled: of the launches seen last; None until there are some.
    """

    def __init__(self) -> None:
        self.modelled: ModelledTimes | None = None

    def __call__(self, scheduled: Scheduled) -> None:
        """Look at scheduled launches."""
        self.modelled = scheduled.modelled

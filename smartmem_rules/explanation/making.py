"""How a plan was made in this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from smartmem_rules.records import dataclass
from smartmem_rules.stages import Span

if TYPE_CHECKING:  # running a plan needs no planner
    from smartmem_rules.graph.model import Graph
    from smartmem_rules.plan.schedule.modelled import ModelledTimes
    from smartmem_rules.plan.scheduling import Scheduled
    from smartmem_rules.tensor.types import TensorType


@dataclass(frozen=True, kw_only=True)
class Making:
    """How a plan was made.

    Attributes:
        stages: when each stage ran; none of a plan from a file.
        modelled: what the cost model says of the launches; None where the plan was made before and found again.
        types: of the tensors of the model that its nodes compute or read when it runs; none likewise.
    """

    stages: tuple[Span, ...] = ()
    modelled: ModelledTimes | None = None
    types: Mapping[str, TensorType] = field(default_factory=dict)


class Watch:
    """Keeps what traces and reports show of planning, and lets go of the rest.

    Attributes:
        modelled: of the launches seen last; None until there are some.
        types: of the graph seen last.
    """

    takes_constants = False

    def __init__(self) -> None:
        self.modelled: ModelledTimes | None = None
        self.types: Mapping[str, TensorType] = {}

    def imported(self, graph: Graph) -> None:
        """Look at an imported model."""
        self.types = graph.types

    def scheduled(self, scheduled: Scheduled) -> None:
        """Look at scheduled launches."""
        self.modelled = scheduled.modelled

    def making(self, stages: Iterable[Span]) -> Making:
        """How a plan was made, whose stages ran then."""
        return Making(stages=tuple(stages), modelled=self.modelled, types=self.types)

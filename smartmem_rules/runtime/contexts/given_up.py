"""Launches whose work-groups wait for each other give up where they wait for too long: a run asks whether they did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from smartmem_rules.plan.artefact import Source, Waiting
from smartmem_rules.runtime.contexts.memory import RunError
from smartmem_rules.runtime.feeds import Array


@dataclass(frozen=True, kw_only=True)
class GivenUp:
    """One such launch in one execution context.

    Attributes:
        memory: its counters on the device.
        noted: the host's copy of the one that says what it waited for.
    """

    name: str
    waiting: Waiting
    memory: Any
    noted: Array = field(default_factory=lambda: np.zeros(1, np.int32))

    @staticmethod
    def of(name: str, source: Source, memory: Mapping[str, Any]) -> GivenUp:
        """The launch of a source that waits, over the memory of a plan's tensors."""
        assert source.waiting is not None
        counters = source.arguments[source.waiting.counters].tensor
        return GivenUp(name=name, waiting=source.waiting, memory=memory[counters])

    def ask(self, queue: Any) -> None:
        """Copy the note to the host, once the queue gets there."""
        import pyopencl as cl

        cl.enqueue_copy(queue, self.noted, self.memory, src_offset=self._offset, is_blocking=False)

    def complain(self, queue: Any) -> None:
        """Raise where the launch gave up; the next run finds no note.

        Raises:
            RunError: the launch gave up; the error names the kernel that waited.
        """
        import pyopencl as cl

        step = int(self.noted[0])
        if not step:
            return
        cl.enqueue_copy(queue, self.memory, np.zeros(1, np.int32), dst_offset=self._offset, is_blocking=True)
        raise RunError(
            f"the launch {self.name} gave up: its kernel {self.waiting.steps[step - 1]} waited for others for too "
            "long; run the model again, and if that fails too, optimize it with --disable one_after_another_in_groups"
        )

    @property
    def _offset(self) -> int:
        return self.waiting.failed * self.noted.itemsize

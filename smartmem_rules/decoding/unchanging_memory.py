"""The memory of what stays the same over the steps: written once for a call, read by all steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from smartmem_rules.decoding.choosing import Array
from smartmem_rules.decoding.model.unchanging import Given
from smartmem_rules.decoding.plans import ONCE, Plans
from smartmem_rules.plan.kernel.storage import SLACK
from smartmem_rules.runtime.contexts.memory import RunError


class UnchangingMemory:
    """A buffer for each further input and for what is computed of them once.

    Attributes:
        buffers: by name, empty until there are inputs.
    """

    def __init__(self, given: Sequence[Given], context: Any) -> None:
        self.buffers: dict[str, Any] = {}
        self._given = given
        self._context = context

    def take(self, inputs: Mapping[str, Array], plans: Plans) -> None:
        """Copy the further inputs to the device and compute what follows from them.

        Raises:
            RunError: the device has too little memory, or refuses a kernel.
        """
        if not self._given:
            return
        self._allocate(plans)
        executor = plans.executor(ONCE) if plans.facts.once else plans.executors[0]
        with executor.taken() as context:
            self._copy(inputs, context.queue)
            if plans.facts.once:
                context.bind(self.buffers)
                context.run({}, {})

    def _copy(self, inputs: Mapping[str, Array], queue: Any) -> None:
        import pyopencl as cl

        for name, array in inputs.items():
            if array.size:
                cl.enqueue_copy(queue, self.buffers[name], np.ascontiguousarray(array), is_blocking=True)

    def _allocate(self, plans: Plans) -> None:
        import pyopencl as cl

        try:
            for one in self._given:
                if one.name not in self.buffers:
                    size = max(1, one.bytes) + SLACK
                    self.buffers[one.name] = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size)
        except (cl.MemoryError, MemoryError) as error:
            needed = sum(one.bytes for one in self._given) / 2**20
            raise RunError(
                f"{plans.device.name} has too little memory for the further inputs and what is computed of them "
                f"({needed:.0f} MiB); give fewer sequences"
            ) from error

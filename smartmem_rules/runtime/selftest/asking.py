"""Asking the kernels of a plan: each probe's contents into memory of its own, one launch, and what came out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from smartmem_rules.plan.artefact import Plan, Source
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.packing import element_numbers
from smartmem_rules.plan.kernel.storage import memory_shape, stored_bytes
from smartmem_rules.plan.probe import GIVEN, OWN, SIGNS, UNSET_BYTE, Answer, Filling, Probe, signs
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.contexts.memory import PlanMemory, RunError, contents_of
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.programs.compiling import BuildError, Programs
from smartmem_rules.tensor.primitives import Array, storage_dtype


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A kernel's answer that is wrong.

    Attributes:
        tensor: that the kernel wrote.
        element: its index, of the first in memory that differs.
        expected, found: its values.
        bound: how far they may be apart.
        count, elements: how many differ, of how many.
        refused: what the device said, where there is no answer at all.
    """

    tensor: str = ""
    element: tuple[int, ...] = ()
    expected: float = 0.0
    found: float = 0.0
    bound: float = 0.0
    count: int = 0
    elements: int = 0
    refused: str = ""

    def __str__(self) -> str:
        if self.refused:
            return self.refused
        place = f"{self.tensor}[{', '.join(map(str, self.element))}]"
        allowed = f" (at most {self.bound:.3g} apart)" if self.bound else ""
        return (
            f"{place} is {self.found!r} and must be {self.expected!r}{allowed}; "
            f"{self.count} of {self.elements} elements differ"
        )


class Asker:
    """Asks kernels on one device.

    Args:
        programs: the built programs of the plan's sources.
    """

    def __init__(self, plan: Plan, device: Device, context: Any, programs: Programs) -> None:
        import pyopencl as cl

        self.plan = plan
        self.device = device
        self._context = context
        self._programs = programs
        self._queue = cl.CommandQueue(context, device.handle)
        self._kept: dict[str, Any] = {}
        self._kept_for: tuple[int, ...] = ()

    def differences(self, probe: Probe) -> Iterator[Difference]:
        """What is wrong with the answers of the kernel as the plan has it."""
        return self.of_source(probe, self.plan.enqueues[probe.launches[0]].source, self._programs)

    def of_other(self, probes: Iterable[Probe], source: Source) -> Iterator[Difference]:
        """What is wrong with the answers of another kernel in the place of one, which is built first."""
        try:
            programs = Programs(self._context, self.device, [source], [source.entry])
        except BuildError as error:
            yield Difference(refused=str(error))
            return
        for probe in probes:
            yield from self.of_source(probe, source, programs)

    def of_source(self, probe: Probe, source: Source, programs: Programs) -> Iterator[Difference]:
        """What is wrong with the answers of a kernel of some programs."""
        try:
            memory = self._filled(probe, source)
            self._run(source, programs, memory)
            for answer in probe.answers:
                found = self._compared(answer, source, memory)
                if found is not None:
                    yield found
        except RunError as error:
            yield Difference(refused=str(error))

    def _filled(self, probe: Probe, source: Source) -> list[Any]:
        """The memory objects of the arguments; constants that no kernel writes stay there for the next question."""
        asked = [
            (f"{number} {argument.tensor}", argument, filling)
            for number, (argument, filling) in enumerate(zip(source.arguments, probe.fillings, strict=True))
        ]
        if self._kept_for != probe.launches:
            self._kept, self._kept_for = {}, probe.launches
        tensors = {
            name: self._stored(name, argument.tensor, filling)
            for name, argument, filling in asked
            if name not in self._kept
        }
        # each argument is a constant of a plan of its own, so that memory is made and filled as that of any plan
        plan = replace(self.plan, tensors=tensors, enqueues=[], slots=[], placement={}, inputs=[], outputs=[])
        memory = self._kept | PlanMemory(plan, self.device, self._context, self._queue).shared
        self._kept = {
            name: memory[name]
            for name, argument, filling in asked
            if filling.kind in (SIGNS, OWN) and argument.access == "read"
        }
        return [memory[name] for name, _, _ in asked]

    def _stored(self, own: str, name: str, filling: Filling) -> Stored:
        tensor = self.plan.tensors[name]
        if filling.kind == GIVEN:
            assert filling.rows is not None
            packed = filling.rows.array()
        elif filling.kind in (SIGNS, OWN):
            if tensor.packed is None:
                raise RunError(f"the plan holds no values for the constant {name!r}; optimize the model again")
            # a copy: kernels may write their counters, and the plan's pages are not theirs
            packed = signs(tensor.packed, filling.exponent) if filling.kind == SIGNS else tensor.packed.copy()
        else:
            packed = unset(tensor)
        return replace(tensor, name=own, role="constant", packed=packed)

    def _run(self, source: Source, programs: Programs, memory: Sequence[Any]) -> None:
        import pyopencl as cl

        try:
            kernel = programs.kernel(source)
            kernel.set_args(*memory)
            cl.enqueue_nd_range_kernel(self._queue, kernel, source.global_size, source.local_size)
            self._queue.finish()
        except (cl.Error, TypeError) as error:
            raise RunError(f"{self.device.name} refuses the kernel: {error}") from error

    def _compared(self, answer: Answer, source: Source, memory: Sequence[Any]) -> Difference | None:
        tensor = self.plan.tensors[source.arguments[answer.argument].tensor]
        found = contents_of(self._queue, memory[answer.argument], tensor)
        return difference(found, answer.rows.array(), answer.bound, tensor)


def unset(tensor: Stored) -> Array:
    """The contents of memory in which nothing has been written: no numbers, where there are such."""
    made = np.frombuffer(bytes([UNSET_BYTE]) * stored_bytes(tensor), np.uint8)
    if tensor.layout.memory != "image":
        return made
    return made.view(storage_dtype(tensor.storage)).reshape(memory_shape(tensor))


def difference(found: Array, expected: Array, bound: float, tensor: Stored) -> Difference | None:
    """The first element in memory that differs, None where none does.

    What is expected to be no number is not compared: what becomes of one is left open by OpenCL.
    """
    wide, wanted = _widened(found), _widened(expected)
    with np.errstate(invalid="ignore"):
        wrong = ~((wide == wanted) | (np.abs(wide - wanted) <= bound) | np.isnan(wanted))
    if not wrong.any():
        return None
    first = int(np.flatnonzero(wrong.reshape(-1))[0])
    return Difference(
        tensor=tensor.name,
        element=_element(tensor, first),
        expected=wanted.reshape(-1)[first].item(),
        found=wide.reshape(-1)[first].item(),
        bound=bound,
        count=int(wrong.sum()),
        elements=wrong.size,
    )


def _widened(array: Array) -> Array:
    return array if array.dtype.kind in "iub" else array.astype(np.float64)


def _element(tensor: Stored, place: int) -> tuple[int, ...]:
    """The index of the element at a place of a tensor's memory; the place alone where none lies there."""
    shape = tensor.type.shape
    number = int(element_numbers(tensor.layout, shape)[place])
    return tuple(int(i) for i in np.unravel_index(number, shape)) if number >= 0 else (place,)

"""What planning makes: launches over pieces of device memory, all that an inference needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from smartmem_rules.plan.kernel.launch_printer import launch_line
from smartmem_rules.plan.kernel.printer import tensor_text
from smartmem_rules.plan.probe import Probe
from smartmem_rules.records import dataclass
from smartmem_rules.statistics import Statistics

if TYPE_CHECKING:
    from smartmem_rules.graph.endings import Endings
    from smartmem_rules.plan.kernel.launch import Launch
    from smartmem_rules.plan.kernel.model import Stored
    from smartmem_rules.tensor.extents import Dimension


@dataclass(frozen=True)
class Argument:
    """A kernel parameter: which stored tensor, and whether the kernel reads or writes it."""

    tensor: str
    access: str  # read | write


@dataclass(frozen=True)
class Waiting:
    """How a run finds out that a launch whose work-groups wait for each other has given up.

    Attributes:
        noted: the argument behind whose elements the launch notes that.
        element: the place of the note, in ints: 0, or the number, from 1 on, of the step that waited for too long.
        steps: their names.
    """

    noted: int
    element: int
    steps: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Source:
    """The OpenCL C text of one kernel and how to launch it; kernels of one structure share text and entry."""

    entry: str
    text: str
    arguments: tuple[Argument, ...]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    options: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()
    """The dimensions whose extents the kernel takes as further arguments."""
    local_bytes: int = 0
    """Of local memory that a work-group takes; a function of a launch of several kernels is given it by the launch."""
    waiting: Waiting | None = None
    """Of a launch whose work-groups take tasks in order, and give up where they wait for too long."""


@dataclass(frozen=True)
class Slot:
    """A piece of device memory that several intermediates share.

    Attributes:
        memory: `buffer` or `image`.
        bytes: its size.
        size: width and height of an image in texels.
        storage: the element type of an image.
    """

    memory: str
    bytes: int
    size: tuple[int, int]
    storage: str


@dataclass(frozen=True)
class Place:
    """Where an intermediate lies: the number of the piece of memory, and in a buffer the bytes before it."""

    slot: int
    offset: int


@dataclass(frozen=True, kw_only=True)
class Enqueue:
    """A launch with its text.

    Attributes:
        launch: what it runs.
        source: its OpenCL C, with the arguments and the grid of the enqueue.
        spares: the same over the same arguments by other schedules, for devices that compute the source wrongly.
    """

    launch: Launch
    source: Source
    spares: tuple[Source, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What a plan was made from.

    Attributes:
        version: of this package; empty where that is not known.
        model: SHA-256 of the ONNX file; empty where there was none, and until the plan is saved.
        rules: SHA-256 of the rule files, one after the other; empty until the plan is saved.
    """

    version: str = ""
    model: bytes = b""
    rules: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Demands:
    """The devices that a plan is for, and what its kernels ask of one besides sizes of work-groups and memory.

    Attributes:
        names: regular expressions; one is found in `PLATFORM DEVICE` of a device that the plan's profile describes.
        types: of devices (cpu, gpu, accelerator) for which the profile stands in.
        extensions: of OpenCL.
        capability: NVIDIA's compute capability at least; (0, 0): kernels have no instructions of NVIDIA's.
        arrays: bytes of arrays in local memory that a kernel may declare from `arrays_capability` on, where that is
            more than the device says.
    """

    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    capability: tuple[int, ...] = (0, 0)
    arrays: int = 0
    arrays_capability: tuple[int, ...] = (0, 0)


@dataclass(frozen=True)
class CountedExtent:
    """An extent that a run counts.

    Attributes:
        tensor: the scalar that holds it, a buffer.
        launches: how many launches have run when it does; those behind them take it as an argument.
    """

    dimension: Dimension
    tensor: str
    launches: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that an inference needs.

    Attributes:
        tensors: the stored tensors by name.
        enqueues: the launches with their texts, in the order of execution.
        sizes: of outputs with an extent that depends on data the axis and the scalar output that holds the extent;
            these scalars are no outputs of the model.
        endings: the loops that a run may not have ended, with the scalar output that tells, which is none of the model.
        slots, placement: the device memory of the intermediates and where each one lies in it.
        dimensions: those for a range of which the plan is made; extents are expressions of them.
        counted: dimensions that no input has: a run counts their extents, in this order.
        statistics: what the stages measured and decided.
        provenance: what it was made from, once it has been saved.
        probes: questions to its kernels with their answers, where the plan was made to test itself.
        unasked: the kernels that have none, by the number of their launch, with the reason.
        binaries: programs as drivers have compiled them, by the key of the program cache.
        demands: the devices that it is for.
    """

    model: str
    device: str
    level: str
    dtype: str
    inputs: list[str]
    outputs: list[str]
    tensors: dict[str, Stored]
    enqueues: list[Enqueue]
    slots: list[Slot]
    placement: dict[str, Place]
    sizes: dict[str, dict[int, str]] = field(default_factory=dict)
    endings: Endings | None = None
    dimensions: tuple[Dimension, ...] = ()
    counted: tuple[CountedExtent, ...] = ()
    statistics: Statistics = field(default_factory=Statistics)
    provenance: Provenance = Provenance()
    probes: tuple[Probe, ...] = ()
    unasked: Mapping[int, str] = field(default_factory=dict)
    binaries: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    demands: Demands = Demands()

    @property
    def told(self) -> frozenset[str]:
        """Outputs that only tell what the run found: extents, and whether loops have ended."""
        counts = {count for axes in self.sizes.values() for count in axes.values()}
        return frozenset(counts if self.endings is None else {*counts, self.endings.number})

    @property
    def launches(self) -> tuple[Launch, ...]:
        """What is enqueued, in the order of execution."""
        return tuple(enqueue.launch for enqueue in self.enqueues)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The texts of the launches, with their arguments and grids."""
        return tuple(enqueue.source for enqueue in self.enqueues)

    def __str__(self) -> str:
        """What it is for, its tensors with layouts and places, its launches in their order."""
        lines = [f"plan of {self.model} for {self.device}, level {self.level}, {self.dtype}"]
        lines += [f"  dimension {dimension}" for dimension in self.dimensions]
        lines += [f"  {one.dimension}, counted in {one.tensor} by launch {one.launches - 1}" for one in self.counted]
        lines += [f"  {tensor_text(stored)}{self._place(name)}" for name, stored in self.tensors.items()]
        lines += [f"  {number} {launch_line(launch)}" for number, launch in enumerate(self.launches)]
        return "\n".join(lines) + "\n"

    def _place(self, tensor: str) -> str:
        place = self.placement.get(tensor)
        return "" if place is None else f", in slot {place.slot} at byte {place.offset}"

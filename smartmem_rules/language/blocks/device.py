"""`device` blocks: what is known of a device before a model runs on it."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from smartmem_rules.language.blocks.keys import (
    UNLIMITED,
    BlockRecord,
    clauses,
    expressions,
    flag,
    part,
    real,
    rows_of_wholes,
    whole,
    wholes,
    word,
    words,
)
from smartmem_rules.language.blocks.matrix import Matrix
from smartmem_rules.language.blocks.ranges import FEW, FROM_ONE, ITEMS, PART, POSITIVE, WIDTHS, WIDTHS_OR_NONE
from smartmem_rules.language.blocks.workarounds import EFFECTS, Workaround, workaround_of
from smartmem_rules.records import dataclass

DEVICE_KINDS = ("cpu", "gpu", "texture_gpu")
LEAST_REGISTERS = 16
"""Vector registers where a device's block says nothing of them."""


@dataclass(frozen=True, kw_only=True)
class Compute:
    """Arithmetic, and how work-items are run.

    A unit is what runs work-groups by itself: a core of a CPU, a multiprocessor of a GPU.
    """

    peak_gflops: float = real("arithmetic of the whole device in single precision, GFLOP/s", within=POSITIVE)
    launch_us: float = real("time of a launch beside its kernel, in a queue that keeps the device busy, us")
    vector_width: int = whole("elements of one vector", within=WIDTHS)
    registers: tuple[tuple[int, ...], ...] = rows_of_wholes(
        "floats of a vector register, and how many such registers there are; products on a CPU take the widest that "
        "that the device's compiler prefers",
        2,
        2,
        within=(WIDTHS, ITEMS),
    )
    register_width: int = whole(
        "floats of the registers in which a CPU multiplies; 0: the device itself is asked at run time, and until then "
        "they are those of `vector_width`",
        0,
        within=WIDTHS_OR_NONE,
    )
    units: int = whole("cores or multiprocessors; the device itself is asked at run time", 1, within=ITEMS)
    parameters: int = whole(
        "tensors that a launch takes at most where kernels are joined: each is a parameter of eight bytes, of which "
        "OpenCL guarantees 1024 bytes",
        120,
        within=FROM_ONE,
    )
    late_unit: float = real(
        "straggler penalty: the tail of a launch in which units stand idle, as a fraction of one wave of work-items",
        0.0,
    )
    ordered_launches: bool = flag(
        "`yes` where a work-group keeps its unit from its beginning to its end, so that others may wait for it", False
    )
    subgroup: int = whole("work-items that exchange values in registers and share a tile of sums", 32, within=ITEMS)
    cpu_group: int = whole(
        "work-items of a work-group on CPUs whose work-items compute a tile each, at most", 16, within=ITEMS
    )
    wave: int = whole("work-items that issue an access together", 64, within=ITEMS)
    resident_items: int = whole("work-items that a unit keeps busy; 0: `resident_waves` waves of `wave`", 0)
    resident_waves: int = whole("waves that a texture unit interleaves", 0)
    texture_units: int = whole("units with a texture cache of their own; 0: none is known", 0)
    register_array: int = whole("bytes of an array that a work-item keeps in registers", 0)
    special_operations: int = whole("scalar operations that an elementary function counts as", 8)
    poll_ns: float = real("nanoseconds of a look at a counter in memory", 2.0, within=POSITIVE)
    matrix: tuple[str, ...] = words("`matrix` blocks of the device's matrix units", refers="matrix")
    shuffle: str = word("how neighbouring work-items exchange values in registers", "ptx", default="")
    half: str = word(
        "how halves become floats in registers, vectors at a time; none: as OpenCL does", "ptx", default=""
    )
    order: str = word(
        "how work-groups on a GPU wait for each other: by instructions of NVIDIA's or atomic operations of OpenCL C; "
        "none: they do not",
        "ptx",
        "atomics",
        default="",
    )
    order_capability: tuple[int, ...] = wholes("compute capability from which on `order` holds", (0, 0), 2, 2)
    order_us: float = real(
        "microseconds from the end of a kernel's work-groups to the start of those that wait for them in one launch",
        0.0,
    )
    order_factor: float = real(
        "how many times as long as in a launch of its own a kernel takes in such a launch", 1.0, within=POSITIVE
    )
    unit_registers: int = whole("registers of 32 bits that the work-items of a unit share, 0: as many as they take", 0)
    registers_together: int = whole("registers of 32 bits that a work-item takes at a time", 8, within=FROM_ONE)
    most_registers: int = whole("registers of 32 bits that a work-item can name", 255, within=FROM_ONE)
    meet_us: float = real("microseconds for which work-groups of a split reduction meet in such a launch", 0.0)
    take_us: float = real("microseconds for which a work-group asks for its next task in such a launch", 0.0)
    wave_us: float = real("microseconds of one wave of work-items, each of which loads, computes and stores", 0.0)
    clock_ghz: float = real("cycles of a unit in a nanosecond; 0: it is not known", 0.0)
    shuffle_capability: tuple[int, ...] = wholes("compute capability from which on `shuffle` holds", (0, 0), 2, 2)

    @property
    def peak(self) -> float:
        """Scalar operations a nanosecond of all units."""
        return self.peak_gflops

    @property
    def launch(self) -> float:
        """Nanoseconds of an enqueue."""
        return self.launch_us * 1000

    def time(self, operations: float) -> float:
        """Nanoseconds of scalar operations that keep all units busy."""
        return operations / self.peak

    def unit_time(self, operations: float) -> float:
        """Nanoseconds of scalar operations on one unit."""
        return operations * self.units / self.peak

    def registers_of_each(self, items: int) -> int:
        """Registers that each of so many work-items of a unit may take; 0: any number."""
        each = self.registers_among(items)
        return each if self.unit_registers and each < self.most_registers else 0

    def registers_among(self, items: int) -> int:
        """Registers that each of so many work-items of a unit can have."""
        if not self.unit_registers:
            return self.most_registers
        each = self.unit_registers // items // self.registers_together * self.registers_together
        return min(each, self.most_registers)

    def cycle(self, sums_per_cycle: float) -> float:
        """Nanoseconds of a cycle of a unit.

        Args:
            sums_per_cycle: products that a unit adds; where nothing says what a cycle takes, a device reaches its peak
                with so many on all units.
        """
        return 1 / self.clock_ghz if self.clock_ghz else self.unit_time(2 * sums_per_cycle)

    product_latency: float = real(
        "from one product to the next of the same sum, in products of a vector; 0: what the schedules say", 0.0
    )
    load_cost: float = real(
        "what loading a vector or repeating an element costs, in products of a vector; 0: what the schedules say", 0.0
    )

    @property
    def lanes(self) -> int:
        """Floats of the registers in which a CPU multiplies."""
        return self.register_width or self.vector_width

    @property
    def register_count(self) -> int:
        """Registers of so many floats."""
        return next((count for width, count in self.registers if width == self.lanes), LEAST_REGISTERS)

    @property
    def resident(self) -> int:
        """Work-items that a unit keeps busy, 0 where the block does not say."""
        return self.resident_items or self.resident_waves * self.wave


class ImageLimits(NamedTuple):
    """The largest image2d_t, in texels."""

    width: int
    height: int


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Device memory and what lies between it and the arithmetic; a GB/s is a byte a nanosecond."""

    image2d: tuple[int, ...] = wholes("largest width and height of an image, texels", least=2, most=2)
    texture_bandwidth: float = real("GB/s through images", within=POSITIVE)
    global_bandwidth: float = real("GB/s through buffers, of the whole device", within=POSITIVE)
    unit_bandwidth: float = real("GB/s that one unit reads through buffers; 0: `global_bandwidth`", 0.0)
    local_bandwidth: float = real("GB/s in and out of local memory; 0: it is not known", 0.0)
    l2_bandwidth: float = real("GB/s out of the shared cache; 0: `global_bandwidth`", 0.0)
    local_memory: int = whole("bytes of local memory of one work-group")
    array_memory: int = whole(
        "bytes of arrays in local memory that a kernel may declare itself, where those are more than `local_memory`", 0
    )
    array_capability: tuple[int, ...] = wholes("compute capability from which on `array_memory` holds", (0, 0), 2, 2)
    array_memory_of: tuple[tuple[int, ...], ...] = rows_of_wholes(
        "bytes that take the place of `array_memory`, the compute capability from which on, and that from which on not",
        5,
        5,
    )
    unit_memory: int = whole("bytes of local memory that the work-groups of a unit share; 0: it is not known", 0)
    table_elements: int = whole("elements of the longest index table in kernels' text; longer ones lie in memory", 256)
    stack_bytes: int = whole("bytes of arrays that one work-item may keep to itself; 0: what the schedules say", 0)
    private_bytes: int = whole(
        "bytes that all work-items of a work-group may keep to themselves together: on a CPU they lie on one stack, a "
        "GPU keeps them in global memory",
        1 << 22,
    )
    step_bytes: int = whole("bytes that a work-item may keep to itself from one step of a scan to the next", 65536)
    storage: tuple[str, ...] = words(
        "element types in memory, the preferred one first", "float32", "float16", "bfloat16"
    )

    @property
    def of_arrays(self) -> int:
        """Bytes of arrays in local memory that a kernel may declare itself."""
        return max(self.local_memory, self.array_memory)

    @property
    def limits(self) -> ImageLimits:
        """The largest image."""
        return ImageLimits(*self.image2d)

    @property
    def shared(self) -> float:
        """Bytes a nanosecond out of the shared cache."""
        return self.l2_bandwidth or self.global_bandwidth

    @property
    def of_unit(self) -> float:
        """Bytes a nanosecond that one unit reads."""
        return self.unit_bandwidth or self.global_bandwidth


@dataclass(frozen=True, kw_only=True)
class Caches:
    """Caches and the blocks in which images lie; empty pairs are not known."""

    cache_line: int = whole("bytes of a line, in all caches", 64, within=FROM_ONE)
    line_use: float = real(
        "the part of a line that a register tile uses before the line leaves the texture cache", 0.5, within=PART
    )
    texture_l1: tuple[int, ...] = wholes("bytes and ways of a texture unit's cache", (), 2, 2, within=(FROM_ONE,))
    l1: tuple[int, ...] = wholes("bytes and ways of a core's first cache", (), 2, 2, within=(FROM_ONE,))
    l2: tuple[int, ...] = wholes("bytes and ways of the cache that all share", (), 2, 2, within=(FROM_ONE,))
    texture_block: tuple[int, ...] = wholes(
        "bytes and rows of the blocks in which images lie", (), 2, 2, within=(FROM_ONE,)
    )

    @property
    def texture_lines(self) -> int:
        """Lines that a texture unit's own cache holds; where it is not known, few."""
        return self.texture_l1[0] // self.cache_line if self.texture_l1 else 16

    def line_shape(self, texel_bytes: int) -> tuple[int, int]:
        """Columns and rows of a cache line in texels: as square as powers of two allow, never higher than wide."""
        texels = max(1, self.cache_line // texel_bytes)
        rows = 1
        while rows * rows * 4 <= texels:
            rows *= 2
        return texels // rows, rows


@dataclass(frozen=True, kw_only=True)
class TextChoices:
    """When it pays to write a kernel's text in one way rather than in another, for the device's compiler."""

    unroll: int = whole("loops of at most so many iterations are unrolled: on GPUs, and in the interior of windows", 7)
    unroll_lanes: int = whole("expressions of more parts are a loop over a vector's lanes, shorter ones unrolled", 48)
    unroll_vectors: int = whole("loops of at most so many vectors are unrolled on CPUs", 8)
    border_tests: int = whole("comparisons that splitting a loop at its borders may cost", 6)
    window_loads: float = real("windows are computed together where they load at most this part of single ones", 0.6)
    window_steps: int = whole("steps of a window's outer axes that are unrolled", 3)
    short_sums: int = whole("K steps up to which the epilogues of a register tile's rows are unrolled", 32)
    score_vectors: int = whole(
        "vectors of columns of the register tile that computes an attention's scores on a CPU", 2, within=FEW
    )
    in_place_vectors: int = whole(
        "vectors of a row up to which its products with a factor that is read in place are unrolled on CPUs", 16
    )
    prefetch_bytes: int = whole("bytes that one prefetch brings on a GPU: a line of its cache", 128, within=FROM_ONE)
    byte_unit_words: int = whole("words of a row of bytes from which on a processor's matrix unit is used; 0: never", 0)
    term_operations: int = whole("operations from which on a term that two reductions share is kept", 2)
    term_length: int = whole("longest row of such terms", 16384)


@dataclass(frozen=True, kw_only=True)
class Allocator:
    """What a device asks of pieces of its memory."""

    alignment: int = whole(
        "bytes of which the parts of a buffer begin at multiples; the device itself is asked (no device is known that "
        "asks for more than the default)",
        512,
        within=FROM_ONE,
    )
    allocation: int = whole(
        "bytes of the largest buffer; the device itself is asked, and the smaller number counts",
        UNLIMITED,
        within=FROM_ONE,
    )
    global_memory: int = whole(
        "bytes of the device's memory; the device itself is asked, and the smaller number counts",
        UNLIMITED,
        within=FROM_ONE,
    )
    sub_buffers: bool = flag(
        "`no` where the driver does not deal well with parts of a buffer: intermediates then share whole buffers", True
    )

    def whole(self, size: int) -> int:
        """A size filled up to the alignment."""
        return max(1, -(-size // self.alignment)) * self.alignment


@dataclass(frozen=True, kw_only=True)
class Device(BlockRecord):
    """A `device` block.

    Attributes:
        units: the `matrix` blocks that `compute.matrix` names, of those the device at hand has.
    """

    match: tuple[str, ...] = expressions("a regular expression that is found in `PLATFORM DEVICE`")
    fallback: tuple[str, ...] = words("device types that the profile stands in for", "cpu", "gpu", "accelerator")
    kind: Literal["cpu", "gpu", "texture_gpu"] = word("the class of device, for schedules", *DEVICE_KINDS)
    prefers: Literal["image", "buffer"] = word("where tensors lie when memory is free to choose", "image", "buffer")
    solver_seconds: float = real("time that the extraction's solver may take", 5.0)
    workaround: tuple[Workaround, ...] = clauses(
        "a fault or habit of a driver and what is done about it: "
        '`EFFECT "VALUE" on "DRIVER" versions "BOUNDS" because "REASON"`; DRIVER is a regular expression that is '
        'found in `PLATFORM DEVICE`, BOUNDS are as in ">=3.0 <4" (left out: all versions), and the effects are '
        + "; ".join(f"`{effect}`: {meaning}" for effect, meaning in EFFECTS.items()),
        EFFECTS,
        workaround_of,
    )
    compute: Compute = part(Compute)
    memory: Memory = part(Memory)
    caches: Caches = part(Caches)
    allocator: Allocator = part(Allocator)
    text: TextChoices = part(TextChoices)
    units: tuple[Matrix, ...] = ()

    def matrix_unit(self, factors: str, operands: str = "registers") -> Matrix | None:
        """The matrix unit that multiplies elements of a type, None where there is none.

        Args:
            operands: where it reads them.
        """
        return next((unit for unit in self.units if (unit.factors, unit.operands) == (factors, operands)), None)

    @property
    def models_textures(self) -> bool:
        """Whether the block says enough of its texture units for a roofline of contractions on textures."""
        return bool(self.compute.texture_units and self.memory.local_bandwidth and self.memory.unit_memory)

    @property
    def models_occupancy(self) -> bool:
        """Whether the block says how many work-items a unit keeps busy, and what local memory they share."""
        return bool(self.group_units and self.compute.resident and self.memory.unit_memory)

    @property
    def group_units(self) -> int:
        """The units that run work-groups."""
        return self.compute.texture_units or self.compute.units

    def resident_groups(self, threads: int, local: int, busy: int) -> int:
        """Work-groups that a unit holds.

        Args:
            threads: work-items of one.
            local: bytes of local memory of one.
            busy: work-items of the kernel that keep a unit busy.
        """
        items = min(self.compute.resident, busy)
        return max(1, min(items // threads, self.memory.unit_memory // max(1, local)))

    def waves(self, groups: float, resident: int) -> float:
        """How often all units take so many work-groups each until all work-groups are done."""
        return math.ceil(groups / (self.group_units * resident))

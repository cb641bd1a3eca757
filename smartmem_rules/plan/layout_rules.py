"""What the choice of layouts knows: the weights of a `layout` block and the memory of a `device` block."""

from __future__ import annotations

from dataclasses import dataclass

from smartmem_rules.language.syntax import Block


@dataclass(frozen=True)
class LayoutCosts:
    """The entries of a `layout` block.

    Attributes:
        scattered_read, strided_read, scattered_write: what an element costs more in a buffer than one beside its
            neighbour.
        buffer_axes, image_axes: the axes along which a buffer and an image are addressed directly (SmartMem's k).
        copies: further layouts in which one tensor may be kept.
        copy_gain: how often a kernel that only copies has to save what it costs.
        sweeps: passes of the search that gives the solver its start.
        solver_seconds: time of the solver.
        configurations: at most as many ways to compute a part of the graph compete.
        further_kernels: how many kernels one of them may have more than the fusion rules make.
    """

    scattered_read: float
    strided_read: float
    scattered_write: float
    buffer_axes: int
    image_axes: int
    copies: int
    copy_gain: float
    sweeps: int
    solver_seconds: float
    configurations: int
    further_kernels: int

    @staticmethod
    def of(block: Block) -> LayoutCosts:
        entries = {e.key: float(e.values[0]) for e in block.entries}
        return LayoutCosts(
            entries["scattered_read"],
            entries["strided_read"],
            entries["scattered_write"],
            int(entries.get("buffer_axes", 1)),
            int(entries.get("image_axes", 2)),
            int(entries.get("copies", 0)),
            entries.get("copy_gain", 1.0),
            int(entries["sweeps"]),
            entries.get("solver_seconds", 10.0),
            int(entries.get("configurations", 1)),
            int(entries.get("further_kernels", 0)),
        )


@dataclass(frozen=True)
class ImageLimits:
    width: int
    height: int


@dataclass(frozen=True)
class DeviceMemory:
    """A device's memory, as far as layouts depend on it.

    Attributes:
        limits: of an image in texels.
        texture, buffer, shared: bytes per nanosecond (GB/s) through textures, to buffers and out of the shared cache.
        line: bytes of a cache line.
        cached: lines that a texture unit's own cache holds.
        wave: work-items that issue an access together.
        launch: nanoseconds of an enqueue.
    """

    limits: ImageLimits
    texture: float
    buffer: float
    shared: float
    line: int
    cached: int
    wave: int
    launch: float

    @staticmethod
    def of(block: Block) -> DeviceMemory:
        """The memory of a `device` block.

        Raises:
            KeyError, ValueError: an entry is missing or no number.
        """
        entries = {e.key: e.values for e in block.entries}

        def number(key: str, place: int = 0) -> float:
            return float(entries[key][place])

        buffer = number("global_bandwidth")
        line = int(number("cache_line")) if "cache_line" in entries else 64
        return DeviceMemory(
            ImageLimits(int(number("image2d")), int(number("image2d", 1))),
            number("texture_bandwidth"),
            buffer,
            number("l2_bandwidth") if "l2_bandwidth" in entries else buffer,
            line,
            int(number("texture_l1")) // line if "texture_l1" in entries else 16,
            int(number("wave")) if "wave" in entries else 64,
            number("launch_us") * 1000,
        )


def line_shape(line: int, texel_bytes: int) -> tuple[int, int]:
    """Columns and rows of a cache line in texels: as square as powers of two allow, never higher than wide."""
    texels = max(1, line // texel_bytes)
    rows = 1
    while rows * rows * 4 <= texels:
        rows *= 2
    return texels // rows, rows

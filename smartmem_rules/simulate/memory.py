"""A device's memory: its parameters, and where elements and texels lie in cache lines."""

from __future__ import annotations

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.records import dataclass
from smartmem_rules.simulate.accesses import Array
from smartmem_rules.simulate.caches import Cache
from smartmem_rules.simulate.source import SimulationError


@dataclass(frozen=True, kw_only=True)
class MemoryModel:
    """The caches of a device, and the blocks in which its images lie.

    Attributes:
        l1: of a texture unit.
        l2: of all units.
        block_bytes, block_rows: of the two-dimensional blocks of images.
    """

    device: Device
    l1: Cache
    l2: Cache
    block_bytes: int
    block_rows: int

    @staticmethod
    def of(device: Device) -> MemoryModel:
        """The model of a device block.

        Raises:
            SimulationError: the block says too little about the device's memory.
        """
        compute, memory, caches = device.compute, device.memory, device.caches
        needed = {
            "texture_units": compute.texture_units, "resident_waves": compute.resident_waves,
            "register_array": compute.register_array, "unit_memory": memory.unit_memory,
            "local_bandwidth": memory.local_bandwidth, "l2_bandwidth": memory.l2_bandwidth,
            "texture_l1": caches.texture_l1, "l2": caches.l2, "texture_block": caches.texture_block,
        }  # fmt: skip
        missing = [key for key, value in needed.items() if not value]
        if missing:
            raise SimulationError(
                f"the device profile {device.name} ({device.block.span}) has no model of its memory: "
                f"it lacks {', '.join(missing)}; rules/devices/adreno_740.smr shows what they say"
            )
        line = caches.cache_line
        block_bytes, block_rows = caches.texture_block
        return MemoryModel(
            device=device,
            l1=Cache(caches.texture_l1[0], caches.texture_l1[1], line),
            l2=Cache(caches.l2[0], caches.l2[1], line),
            block_bytes=block_bytes,
            block_rows=block_rows,
        )

    @property
    def wave(self) -> int:
        """Work-items that issue an access together."""
        return self.device.compute.wave

    @property
    def line(self) -> int:
        """Bytes of a cache line."""
        return self.device.caches.cache_line

    @property
    def texture_units(self) -> int:
        """Units with a texture cache of their own."""
        return self.device.compute.texture_units

    def texel_lines(self, x: Array, y: Array, texel_bytes: int, width: int) -> Array:
        """The lines of texels: blocks in rows, lines in rows of a block, and a line nearly as high as wide."""
        columns, rows = self.block_shape(texel_bytes)
        line_columns, line_rows = self.device.caches.line_shape(texel_bytes)
        across = -(-width // columns)
        block = (y // rows) * across + x // columns
        inner_x, inner_y = (x % columns) // line_columns, (y % rows) // line_rows
        lines: Array = (
            block * (columns * rows * texel_bytes // self.line) + inner_y * (columns // line_columns) + inner_x
        )
        return lines

    def image_lines(self, texel_bytes: int, width: int, height: int) -> int:
        """The lines of a whole image."""
        columns, rows = self.block_shape(texel_bytes)
        return -(-width // columns) * -(-height // rows) * (columns * rows * texel_bytes // self.line)

    def block_shape(self, texel_bytes: int) -> tuple[int, int]:
        """Columns and rows of a block in texels."""
        return max(1, self.block_bytes // self.block_rows // texel_bytes), self.block_rows

"""A device's memory: its parameters, and where elements and texels lie in cache lines."""

from __future__ import annotations

from dataclasses import dataclass

from smartmem_rules.language import syntax as s
from smartmem_rules.simulate.accesses import Array
from smartmem_rules.simulate.caches import Cache
from smartmem_rules.simulate.source import SimulationError


@dataclass(frozen=True)
class Device:
    """The parameters of a device profile; bandwidths in GB/s, rates in GFLOP/s, times in microseconds.

    Attributes:
        local_memory: bytes that the work-groups of one texture unit share.
    """

    name: str
    wave: int
    texture_units: int
    resident_waves: int
    line: int
    l1: Cache
    l2: Cache
    block_bytes: int
    block_rows: int
    register_array: int
    local_memory: int
    texture_bandwidth: float
    local_bandwidth: float
    l2_bandwidth: float
    global_bandwidth: float
    peak_gflops: float
    launch_us: float

    @staticmethod
    def of(profile: s.Block) -> Device:
        """The model of a profile.

        Raises:
            SimulationError: the profile says too little about its memory.
        """
        values = {e.key: e.values for e in profile.entries}
        missing = [key for key in _KEYS if key not in values]
        if missing:
            raise SimulationError(
                f"the device profile {profile.name} ({profile.span}) has no model of its memory: "
                f"it lacks {', '.join(missing)}; rules/devices/adreno_740.smr shows what they say"
            )
        one = {key: float(values[key][0]) for key in _KEYS}
        line = int(one["cache_line"])
        l1, l2 = (Cache(int(float(b)), int(float(w)), line) for b, w in (values["texture_l1"], values["l2"]))
        block_bytes, block_rows = (int(float(v)) for v in values["texture_block"])
        return Device(
            profile.name, int(one["wave"]), int(one["texture_units"]), int(one["resident_waves"]), line, l1, l2,
            block_bytes, block_rows, int(one["register_array"]), int(one["unit_memory"]), one["texture_bandwidth"],
            one["local_bandwidth"], one["l2_bandwidth"], one["global_bandwidth"], one["peak_gflops"], one["launch_us"],
        )  # fmt: skip

    def texel_lines(self, x: Array, y: Array, texel_bytes: int, width: int) -> Array:
        """The lines of texels: blocks in rows, lines in rows of a block, and a line nearly as high as wide."""
        columns, rows = self.block_shape(texel_bytes)
        line_columns, line_rows = self.line_shape(texel_bytes)
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

    def line_shape(self, texel_bytes: int) -> tuple[int, int]:
        """Columns and rows of a line in texels: as square as powers of two allow, never higher than wide."""
        texels = max(1, self.line // texel_bytes)
        rows = 1
        while rows * rows * 4 <= texels:
            rows *= 2
        return texels // rows, rows


_KEYS = (
    "wave", "texture_units", "resident_waves", "cache_line", "texture_l1", "l2", "texture_block", "register_array",
    "unit_memory", "texture_bandwidth", "local_bandwidth", "l2_bandwidth", "global_bandwidth", "peak_gflops",
    "launch_us",
)  # fmt: skip

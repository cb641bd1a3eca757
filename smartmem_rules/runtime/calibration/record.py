"""What was measured of a device, and the profile that follows from it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from smartmem_rules.errors import SmartmemError
from smartmem_rules.language.blocks.device import Device as Profile
from smartmem_rules.records import dataclass

FORMAT = 1
_AS_FAST = 0.95
"""Narrower registers that reach this part of the wider ones' rate waste less of the columns."""
_LATENCIES = [count / 2 for count in range(4, 33)]
_LOADS = [count / 20 for count in range(4, 41)]


class CalibrationError(SmartmemError):
    """A device cannot be measured; the message says why."""


@dataclass(frozen=True, kw_only=True)
class TileRate:
    """Multiply-adds of one core in a register tile, both factors in its first-level cache.

    Attributes:
        lanes: floats of a vector.
        columns: a multiple of `lanes`.
        gflops: two operations each.
    """

    lanes: int
    rows: int
    columns: int
    gflops: float

    @property
    def vectors(self) -> int:
        """Vectors of columns."""
        return self.columns // self.lanes


@dataclass(frozen=True, kw_only=True)
class Bandwidth:
    """Reads of so many bytes by each of some cores, again and again: of the cache that holds them, or of memory.

    Attributes:
        gbytes_per_s: of all cores together.
    """

    cores: int
    bytes: int
    gbytes_per_s: float


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What was measured of a device.

    Attributes:
        launch_us: of a launch beside its kernel, among others that keep all cores busy, microseconds.
        barrier_ns: of a work-group of 64 work-items at a barrier.
        load_ns, prefetch_ns: of a load from the first-level cache, and of asking for a line that is there.
        image_gbytes_per_s: of texels, one core; 0 without images.
        exponential_ns: of one element, in vectors.
        load_average: of the computer while it was measured, processes that ran or waited.
    """

    device: str
    driver: str
    profile: str
    tiles: tuple[TileRate, ...]
    bandwidths: tuple[Bandwidth, ...]
    launch_us: float
    barrier_ns: float
    load_ns: float
    prefetch_ns: float
    image_gbytes_per_s: float
    exponential_ns: float
    seconds: float
    load_average: float

    def data(self) -> dict[str, object]:
        """As JSON data."""
        return {"format": FORMAT, **asdict(self)}

    @staticmethod
    def of_data(data: Mapping[str, Any]) -> Calibration:
        """From JSON data; raises ValueError, KeyError or TypeError where it is none of this format."""
        values = dict(data)
        if values.pop("format") != FORMAT:
            raise ValueError("it has another format")
        values["tiles"] = tuple(TileRate(**one) for one in values["tiles"])
        values["bandwidths"] = tuple(Bandwidth(**one) for one in values["bandwidths"])
        found = Calibration(**values)
        if not found.tiles or not all(one.gflops > 0 for one in found.tiles):
            raise ValueError("it holds no rates")
        return found

    @property
    def lanes(self) -> int:
        """The narrowest registers that are about as fast as the fastest."""
        most = max(one.gflops for one in self.tiles)
        return min(one.lanes for one in self.tiles if one.gflops >= _AS_FAST * most)

    @property
    def core_gflops(self) -> float:
        """The rate of the best register tile of these registers."""
        return max(one.gflops for one in self.tiles if one.lanes == self.lanes)

    def bandwidth(self, cores: int) -> float:
        """GB/s of so many cores out of what holds the most bytes, 0 where that was not measured."""
        found = [(one.bytes, one.gbytes_per_s) for one in self.bandwidths if one.cores == cores]
        return max(found, default=(0, 0.0))[1]

    def step(self, tile: TileRate) -> float:
        """The time of a step of the reduction, in products of a vector at the best rate."""
        return tile.rows * tile.vectors * self.core_gflops / tile.gflops

    def step_costs(self, overhead: float) -> tuple[float, float]:
        """The latency of a product and the cost of a load with which the model of a step comes closest to the tiles.

        Args:
            overhead: of a step, in products of a vector.
        """
        tiles = [one for one in self.tiles if one.lanes == self.lanes]

        def error(costs: tuple[float, float]) -> float:
            latency, load = costs
            modelled = ((max(latency, t.rows * t.vectors, load * (t.rows + t.vectors)) + overhead, t) for t in tiles)
            return sum((time / self.step(tile) - 1) ** 2 for time, tile in modelled)

        return min(itertools.product(_LATENCIES, _LOADS), key=error)

    def profile_of(self, profile: Profile, overhead: float) -> Profile:
        """The profile with what was measured in place of what it says.

        Args:
            overhead: of a step of a register tile's reduction, in products of a vector.
        """
        latency, load = self.step_costs(overhead)
        units = profile.compute.units
        of_unit, of_all = self.bandwidth(1), self.bandwidth(max(one.cores for one in self.bandwidths))
        return replace(
            profile,
            compute=replace(
                profile.compute,
                register_width=self.lanes,
                peak_gflops=self.core_gflops * units,
                launch_us=self.launch_us,
                special_operations=max(1, round(self.exponential_ns * self.core_gflops)),
                product_latency=latency,
                load_cost=load,
            ),
            memory=replace(
                profile.memory,
                global_bandwidth=of_all,
                unit_bandwidth=of_unit,
                texture_bandwidth=self.image_gbytes_per_s or profile.memory.texture_bandwidth,
            ),
        )

"""Times small kernels on a CPU: for each figure the best of several rounds, because other processes only ever add."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from smartmem_rules.emit.c.program import render
from smartmem_rules.language.blocks.device import Device as Profile
from smartmem_rules.language.blocks.schedule import Panel
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.calibration.record import Bandwidth, Calibration, CalibrationError, TileRate
from smartmem_rules.runtime.devices import Device

_WIDTH, _CHAINS, _STEPS, _NEAR, _LINE, _GROUP = 8, 8, 128, 2048, 16, 64
_LEVELS = (16 << 10, 512 << 10, 4 << 20, 64 << 20)
"""Bytes that one core reads: from the first, second and third level of caches, and from memory."""
_IMAGE = (64, 64)
SECONDS = 10.0
"""In which a device is measured, if nothing keeps it busy."""
_BRIEF = 5e-4
"""Seconds of one measurement: less than the system lets a process run before others have their turn."""
_ROUNDS = 15
_ENQUEUES, _TURNS = 20, 4
"""Launches of one measurement, and how often each reads what it reads: some 50 to 100 us long."""
_MOST_TILE_ROWS = 14


@dataclass(frozen=True, kw_only=True)
class _Tile:
    """A register tile to be timed."""

    lanes: int
    rows: int
    columns: int

    @property
    def kernel(self) -> str:
        return f"smr_tile_{self.lanes}_{self.rows}_{self.columns}"


class _Bench:
    """The compiled kernels, their memory, and the time that is left."""

    def __init__(self, device: Device, text: str, deadline: float) -> None:
        import pyopencl as cl

        self.cl = cl
        self.deadline = deadline
        self.context = cl.Context([device.handle])
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        self.queue = cl.CommandQueue(self.context, properties=profiling)
        options = ["-cl-mad-enable", *device.workaround("option")]
        self.program = cl.Program(self.context, text).build(options=options, devices=[device.handle])

    def buffer(self, count: int) -> Any:
        """So many floats, all 0.5, with room for a vector behind them."""
        made = self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, 4 * count + 256)
        self.cl.enqueue_fill_buffer(self.queue, made, np.full(1, 0.5, np.float32), 0, 4 * count)
        return made

    def best(self, kernel: Any, items: int, group: int, rounds: int) -> float:
        """Seconds of a launch; fewer rounds where the time runs out."""
        times = []
        for _ in range(rounds):
            event = self.cl.enqueue_nd_range_kernel(self.queue, kernel, (items,), (group,))
            event.wait()
            times.append((event.profile.end - event.profile.start) * 1e-9)
            if time.perf_counter() > self.deadline and len(times) > 1:
                break
        return min(times)

    def each(self, name: str, arguments: Callable[[int], tuple[Any, ...]], items: int = 1, group: int = 1) -> float:
        """Seconds of one turn of a kernel whose number of turns is its last argument."""
        kernel = self.cl.Kernel(self.program, name)
        turns = 1
        while True:
            kernel.set_args(*arguments(turns))
            once = self.best(kernel, items, group, 2)
            if once >= _BRIEF / 2 or turns >= 1 << 24:
                break
            turns = min(1 << 24, max(2 * turns, int(turns * _BRIEF / max(once, 1e-7))))
        return self.best(kernel, items, group, _ROUNDS) / turns


def measure(device: Device, profile: Profile, panel: Panel, seconds: float = SECONDS) -> Calibration:
    """Measure a CPU.

    Args:
        profile: whose registers are tried, those that the device's compiler likes to use.
        panel: the schedule whose register tiles are tried.
        seconds: after which each figure has only two rounds.

    Raises:
        CalibrationError: the device is no CPU; the figures of GPUs were fitted schedule by schedule.
    """
    if device.kind != "cpu":
        raise CalibrationError(
            f"{device.name} is a {device.kind}: only CPUs are calibrated, schedules of GPUs have figures of their own"
        )
    begun = time.perf_counter()
    tiles = _tiles(device, profile, panel)
    text = render("prelude.cl") + render(
        "calibration.cl", tiles=tiles, width=_WIDTH, chains=_CHAINS, steps=_STEPS, near=_NEAR, line=_LINE,
        group=_GROUP, images=device.images,
    )  # fmt: skip
    bench = _Bench(device, "#define SMR_CPU\n" + text, begun + seconds)
    near, other = bench.buffer(_NEAR + _LINE), bench.buffer(_NEAR)
    loads = bench.each("smr_loads", lambda turns: (near, other, np.int32(turns)))
    requests = bench.each("smr_requests", lambda turns: (near, other, np.int32(turns)))
    exponentials = bench.each("smr_exponentials", lambda turns: (near, other, np.int32(turns)))
    barriers = bench.each("smr_barriers", lambda turns: (other, np.int32(turns)), _GROUP, _GROUP)
    lines = _NEAR // _LINE
    return Calibration(
        device=device.name,
        driver=device.driver,
        profile=profile.name,
        tiles=tuple(_rate(bench, tile) for tile in tiles),
        bandwidths=_bandwidths(bench, device.compute_units),
        launch_us=_launch(bench, device.compute_units),
        barrier_ns=barriers / 2 * 1e9,
        load_ns=loads / lines * 1e9,
        prefetch_ns=max(0.0, requests - loads) / lines * 1e9,
        image_gbytes_per_s=_texels(bench) if device.images else 0.0,
        exponential_ns=exponentials / _NEAR * 1e9,
        seconds=time.perf_counter() - begun,
        load_average=os.getloadavg()[0],
    )


def _tiles(device: Device, profile: Profile, panel: Panel) -> list[_Tile]:
    """The tiles that fit the registers of each width, and one that waits for its sums."""
    found = []
    for lanes, registers in profile.compute.registers or ((profile.compute.vector_width, 16),):
        if lanes > max(device.vector_width, min(width for width, _ in profile.compute.registers or ((lanes, 0),))):
            continue
        for vectors in panel.vectors:
            most = min(_MOST_TILE_ROWS, (registers - panel.other_registers) // vectors)
            rows = sorted({1, max(r for r in panel.rows if r <= most), min(r for r in panel.rows if 2 * r > most)})
            found += [_Tile(lanes=lanes, rows=r, columns=vectors * lanes) for r in rows]
    return found


def _rate(bench: _Bench, tile: _Tile) -> TileRate:
    left, right = bench.buffer(tile.rows * _STEPS), bench.buffer(tile.columns * _STEPS)
    sums = bench.buffer(tile.rows * tile.columns)
    turn = bench.each(tile.kernel, lambda turns: (left, right, sums, np.int32(turns)))
    rate = 2 * tile.rows * tile.columns * _STEPS / turn * 1e-9
    return TileRate(lanes=tile.lanes, rows=tile.rows, columns=tile.columns, gflops=rate)


def _bandwidths(bench: _Bench, cores: int) -> tuple[Bandwidth, ...]:
    """Of each level of caches, by one core and by all."""
    found = []
    for count in dict.fromkeys((1, cores)):
        for size in _LEVELS:
            share = size // 4 // (_WIDTH * _CHAINS) * _WIDTH * _CHAINS
            source, target = bench.buffer(share * count), bench.buffer(count)

            turn = bench.each("smr_read", partial(_reading, source, target, share), count)
            found.append(Bandwidth(cores=count, bytes=size, gbytes_per_s=4 * share * count / turn * 1e-9))
    return tuple(found)


def _reading(source: Any, target: Any, share: int, turns: int) -> tuple[Any, ...]:
    """The arguments of `smr_read`."""
    return source, target, np.int32(share), np.int32(turns)


def _launch(bench: _Bench, cores: int) -> float:
    """Microseconds of a launch beside its kernel, among launches that follow one another and keep all cores busy.

    The kernels of a model run for a while. The threads that are done with one fall asleep and are woken for the next,
    and what the runtime needs for that is no longer in the caches: a launch then takes several times what one of
    kernels that do nothing takes.
    """
    share = _LEVELS[1] // 4 // (_WIDTH * _CHAINS) * _WIDTH * _CHAINS
    source, target = bench.buffer(share * cores), bench.buffer(cores)
    kernel = bench.cl.Kernel(bench.program, "smr_read")
    queue = bench.cl.CommandQueue(bench.context)

    def seconds(launches: int, turns: int) -> float:
        kernel.set_args(source, target, np.int32(share), np.int32(turns))
        times = []
        for _ in range(_ROUNDS):
            begun = time.perf_counter()
            for _ in range(launches):
                bench.cl.enqueue_nd_range_kernel(queue, kernel, (cores,), (1,))
            queue.finish()
            times.append(time.perf_counter() - begun)
        return min(times)

    apart, together = seconds(_ENQUEUES, _TURNS), seconds(1, _ENQUEUES * _TURNS)
    return max(0.0, apart - together) / (_ENQUEUES - 1) * 1e6


def _texels(bench: _Bench) -> float:
    """GB/s of texels of four floats, one core."""
    cl, (wide, high) = bench.cl, _IMAGE
    form = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.FLOAT)
    image = cl.create_image(bench.context, cl.mem_flags.READ_ONLY, form, shape=_IMAGE)
    cl.enqueue_fill_image(bench.queue, image, np.full(4, 0.5, np.float32), (0, 0), _IMAGE)
    target = bench.buffer(1)
    turn = bench.each("smr_texels", lambda turns: (image, target, np.int32(wide), np.int32(high), np.int32(turns)))
    return 16 * wide * high / turn * 1e-9

"""What a device reaches at most, by two small kernels; the best that was ever seen is kept by device and driver."""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import asdict
from typing import Any

import numpy as np

from smartmem_rules.emit.c.program import render
from smartmem_rules.records import dataclass
from smartmem_rules.resources import cache_folder
from smartmem_rules.runtime.devices import Device
from smartmem_rules.whole_files import write_whole

_BYTES = 128 << 20
_REPEATS = 7
_CHAINS = 12


@dataclass(frozen=True)
class Roof:
    """Single precision multiply-adds in registers (two operations each), and bytes read plus bytes written."""

    gflops: float
    gbytes: float

    def share(self, operations: float, moved: float, milliseconds: float) -> float:
        """How much of the time the device would need at least: by its arithmetic or its memory, whichever is longer."""
        least = max(operations / self.gflops, moved / self.gbytes) * 1e-6
        return least / milliseconds if milliseconds > 0 else 0.0


def roof_of(device: Device) -> Roof:
    """The roof of a device: what it reaches now, or reached earlier when nothing else kept it busy."""
    base = cache_folder()
    text = "\0".join((device.platform, device.name, device.driver))
    path = None if base is None else base / f"roof-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    roof = measure_roof(device)
    if path is not None:
        with contextlib.suppress(OSError, ValueError, TypeError):
            earlier = Roof(**json.loads(path.read_text()))
            roof = Roof(max(roof.gflops, earlier.gflops), max(roof.gbytes, earlier.gbytes))
    if path is not None:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(asdict(roof)).encode())
    return roof


def measure_roof(device: Device) -> Roof:
    """The best of several runs."""
    import pyopencl as cl

    on_cpu = device.kind == "cpu"
    width = 8 if on_cpu else 4
    context = cl.Context([device.handle])
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    program = cl.Program(context, render("roof.cl", width=width, chains=_CHAINS, blocked=on_cpu)).build()
    items = device.compute_units * (4 if on_cpu else 2048)
    group = 1 if on_cpu else 64
    turns = 400_000 if on_cpu else 4_000
    sums = cl.Kernel(program, "smr_sums")
    results = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * items)  # a kernel does not keep its arguments alive
    sums.set_args(results, np.int32(turns))
    each = _BYTES // (4 * width) // items
    source, target = (cl.Buffer(context, cl.mem_flags.READ_WRITE, _BYTES) for _ in range(2))
    cl.enqueue_fill_buffer(queue, source, np.ones(1, np.float32), 0, _BYTES)
    copy = cl.Kernel(program, "smr_copy")
    copy.set_args(source, target, np.int32(each))
    operations = 2.0 * items * turns * width * _CHAINS
    moved = 2.0 * items * each * width * 4
    return Roof(operations / _best(queue, sums, items, group), moved / _best(queue, copy, items, group))


def _best(queue: Any, kernel: Any, items: int, group: int) -> float:
    """Nanoseconds."""
    import pyopencl as cl

    times = []
    for _ in range(_REPEATS):
        event = cl.enqueue_nd_range_kernel(queue, kernel, (items,), (group,))
        event.wait()
        times.append(event.profile.end - event.profile.start)
    return float(min(times))

"""Small devices and kernels for the simulator's tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartmem_rules.plan.artefact import Argument, Source
from smartmem_rules.plan.kernel.model import Layout, Stored
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.simulate.caches import Cache
from smartmem_rules.simulate.launch import TracedLaunch
from smartmem_rules.simulate.memory import MemoryModel
from smartmem_rules.tensor.expr import TensorType


def device(l1: Cache | None = None, **compute: int) -> MemoryModel:
    """Two texture units, waves of four, lines of 64 bytes; `compute` changes what the device block says of these."""
    block = load_rules().devices["adreno_740"]
    sizes = {"wave": 4, "texture_units": 2, "resident_waves": 1, "register_array": 64} | compute
    small = replace(
        block,
        compute=replace(block.compute, peak_gflops=1000.0, launch_us=10.0, **sizes),
        memory=replace(
            block.memory, unit_memory=1024, texture_bandwidth=500.0, local_bandwidth=500.0, l2_bandwidth=200.0,
            global_bandwidth=50.0,
        ),
        caches=replace(block.caches, cache_line=64),
    )  # fmt: skip
    caches = l1 or Cache(128, 2, 64), Cache(1024, 4, 64)
    return MemoryModel(device=small, l1=caches[0], l2=caches[1], block_bytes=256, block_rows=4)


def buffer(name: str, elements: int, storage: str = "float32", **more) -> Stored:
    return Stored(
        name=name,
        type=TensorType(storage, (elements,)),
        layout=Layout("buffer", (0,)),
        role="intermediate",
        storage=storage,
        **more,
    )


def image(name: str, height: int, texels: int, storage: str = "float32") -> Stored:
    """[height, 4 * texels] with rows as y and the last axis in the lanes."""
    layout = Layout("image", (0, 1), 1)
    return Stored(
        name=name, type=TensorType(storage, (height, texels * 4)), layout=layout, role="intermediate", storage=storage
    )


def launch(
    parameters: str, body: str, tensors: list[Stored], written: set[str], size, local, on: MemoryModel
) -> TracedLaunch:
    text = f"__kernel void smr_kernel({parameters}) {{\n{body}\n}}"
    arguments = tuple(Argument(t.name, "write" if t.name in written else "read") for t in tensors)
    source = Source(entry="smr_kernel", text=text, arguments=arguments, global_size=size, local_size=local)
    return TracedLaunch.of(source, {t.name: t for t in tensors}, on.wave)


def all_groups(one: TracedLaunch) -> np.ndarray:
    return np.arange(one.groups)

"""Hand-written plans: y = (x + c) * 2 through an intermediate, in buffers or images."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from smartmem_rules.language.blocks.device import Allocator
from smartmem_rules.plan.artefact import Argument, Enqueue, Plan, Source
from smartmem_rules.plan.kernel.launch import Recorded
from smartmem_rules.plan.kernel.model import Kernel, Layout, Stored, row_major
from smartmem_rules.plan.memory.planning import plan_memory
from smartmem_rules.plan.probe import GIVEN, SIGNS, UNSET, Answer, Filling, Probe, Rows, signs
from smartmem_rules.tensor.expr import TensorType

SHAPE = (6, 10)

ADD_BUFFER = """
__kernel void add(__global const float *x, __global const float *c, __global float *t) {
    int i = get_global_id(0), j = get_global_id(1);
    t[i * 10 + j] = x[i * 10 + j] + c[i * 10 + j];
}
"""
DOUBLE_BUFFER = """
__kernel void twice(__global const float *t, __global float *y) {
    int i = get_global_id(0), j = get_global_id(1);
    y[i * 10 + j] = t[i * 10 + j] * 2.0f;
}
"""
ADD_IMAGE = """
__constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
__kernel void add(__global const float *x, __read_only image2d_t c, __write_only image2d_t t) {
    int i = get_global_id(0), j = get_global_id(1);
    float v[4] = {0, 0, 0, 0};
    for (int l = 0; l < 4 && 4 * j + l < 10; ++l) v[l] = x[i * 10 + 4 * j + l];
    write_imagef(t, (int2)(j, i), (float4)(v[0], v[1], v[2], v[3]) + read_imagef(c, nearest, (int2)(j, i)));
}
"""
DOUBLE_IMAGE = """
__constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
__kernel void twice(__read_only image2d_t t, __global float *y) {
    int i = get_global_id(0), j = get_global_id(1);
    float4 texel = read_imagef(t, nearest, (int2)(j / 4, i));
    float v[4] = {texel.x, texel.y, texel.z, texel.w};
    y[i * 10 + j] = v[j % 4] * 2.0f;
}
"""


def constant_values() -> np.ndarray:
    return np.arange(60, dtype=np.float32).reshape(SHAPE) / 8


def texels(values: np.ndarray, storage: str) -> np.ndarray:
    """A matrix as the texels of an image with its columns in the lanes."""
    rows, columns = values.shape
    packed = np.zeros((rows, -(-columns // 4), 4), storage)
    packed.reshape(rows, -1)[:, :columns] = values
    return packed


def make_plan(memory: str = "buffer", storage: str = "float32") -> Plan:
    type_ = TensorType("float32", SHAPE)
    inner = row_major(2) if memory == "buffer" else Layout("image", (0, 1), 1)
    values = constant_values()
    packed = values.astype(storage) if memory == "buffer" else texels(values, storage)
    tensors = {
        "x": Stored(name="x", type=type_, layout=row_major(2), role="input", storage="float32"),
        "c": Stored(name="c", type=type_, layout=inner, role="constant", storage=storage, packed=packed),
        "t": Stored(name="t", type=type_, layout=inner, role="intermediate", storage=storage),
        "y": Stored(name="y", type=type_, layout=row_major(2), role="output", storage="float32"),
    }
    add = Kernel(name="add_0", form="pointwise", origin=("/Add",), reads=("x", "c"), writes=("t",))
    twice = Kernel(name="twice_1", form="pointwise", origin=("/Mul",), reads=("t",), writes=("y",))
    launches = [Recorded(kernel=add, bytes_moved=720), Recorded(kernel=twice, bytes_moved=480)]
    texts = (ADD_BUFFER, DOUBLE_BUFFER) if memory == "buffer" else (ADD_IMAGE, DOUBLE_IMAGE)
    columns = 10 if memory == "buffer" else 3
    sources = [
        Source(entry="add", text=texts[0], arguments=_arguments("x c", "t"), global_size=(6, columns), local_size=None),
        Source(entry="twice", text=texts[1], arguments=_arguments("t", "y"), global_size=(6, 10), local_size=(1, 1)),
    ]
    memory = plan_memory(tensors, launches, Allocator(alignment=128))
    return Plan(
        model="tiny",
        device="pocl",
        level="smartmem",
        dtype="float32",
        inputs=["x"],
        outputs=["y"],
        tensors=tensors,
        enqueues=[Enqueue(launch=launch, source=source) for launch, source in zip(launches, sources, strict=True)],
        slots=memory.slots,
        placement=memory.placement,
    )


ADD_HALF = """
__kernel void add(__global const half *x, __global half *y) {
    size_t i = get_global_id(0);
    vstore_half(vload_half(i, x) + 1.0f, i, y);
}
"""


def make_half_plan() -> Plan:
    """y = x + 1 with floats of 16 bits in device memory, converted at the border."""
    plan = make_plan()
    plan.tensors.update({name: replace(plan.tensors[name], storage="float16") for name in ("x", "y")})
    launch = plan.launches[0].each(lambda one: replace(one, kernel=replace(one.kernel, reads=("x",), writes=("y",))))
    source = Source(entry="add", text=ADD_HALF, arguments=_arguments("x", "y"), global_size=(60,), local_size=None)
    del plan.tensors["t"]
    return replace(plan, enqueues=[Enqueue(launch=launch, source=source)], placement={}, slots=[])


def make_asking_plan() -> Plan:
    """`make_plan` with a question to each of its kernels, and a spare for the first."""
    plan = make_plan()
    given = np.arange(60, dtype=np.float32) - 20
    constant = signs(plan.tensors["c"].packed.reshape(-1), 1)  # type: ignore[union-attr]
    unset = Filling(kind=UNSET)
    asked = Filling(kind=GIVEN, rows=Rows.of(given, 10))
    probes = (
        Probe(
            launches=(0,),
            fillings=(asked, Filling(kind=SIGNS, exponent=1), unset),
            answers=(Answer(argument=2, rows=Rows.of(given + constant, 10), bound=0.0),),
        ),
        Probe(
            launches=(1,),
            fillings=(asked, unset),
            answers=(Answer(argument=1, rows=Rows.of(given * 2, 10), bound=0.125),),
        ),
    )
    source = plan.enqueues[0].source
    spare = replace(source, entry="add_spare", text=source.text.replace("void add", "void add_spare"))
    enqueues = [replace(plan.enqueues[0], spares=(spare,)), plan.enqueues[1]]
    return replace(plan, enqueues=enqueues, probes=probes)


def _arguments(reads: str, writes: str) -> tuple[Argument, ...]:
    return tuple(Argument(n, "read") for n in reads.split()) + tuple(Argument(n, "write") for n in writes.split())


def change_source(plan: Plan, number: int, **changes: Any) -> None:
    """Change fields of the text of one launch."""
    enqueue = plan.enqueues[number]
    plan.enqueues[number] = replace(enqueue, source=replace(enqueue.source, **changes))

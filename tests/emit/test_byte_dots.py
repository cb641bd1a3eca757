"""Products of four bytes by four, summed: each way to compute them gives all bits of the sum."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest

from smartmem_rules.resources import templates_path
from smartmem_rules.runtime.devices import choose
from tests.plan.models import Array

STEPS = 64
WAYS = {
    "the widest": (),
    "pairs": ("-DSMR_NO_BYTE_PRODUCTS",),
    "plain": ("-DSMR_NO_BYTE_PRODUCTS", "-DSMR_NO_PAIRS"),
}
KERNEL = """
__kernel void dots(__global const int* a, __global const int* b, __global int* c) {{
    int{width} sums = vload{width}(0, c);
    for (int k = 0; k < {steps}; ++k) sums = smr_dot{width}(sums, a[k], vload{width}(k, b));
    vstore{width}(sums, 0, c);
}}
"""


def _drawn(width: int) -> list[tuple[Array, Array]]:
    """Unsigned bytes beside signed ones: any, and those with which sums of 16 bits would saturate."""
    random = np.random.default_rng(width)
    a = random.integers(0, 256, (STEPS, 4)).astype(np.uint8)
    b = random.integers(-128, 128, (STEPS, width, 4)).astype(np.int8)
    most = np.full_like(a, 255)
    return [(a, b), (most, np.full_like(b, -128)), (most, np.full_like(b, 127))]


@pytest.mark.covering
@pytest.mark.parametrize("width", [4, 8, 16])
@pytest.mark.parametrize("way", WAYS)
def test_each_way_is_exact(way: str, width: int) -> None:
    context = cl.Context([choose().handle])
    text = "#define SMR_CPU\n" + (templates_path() / "prelude.cl").read_text("utf-8")
    text += KERNEL.format(width=width, steps=STEPS)
    kernel = cl.Kernel(cl.Program(context, text).build(list(WAYS[way])), "dots")
    queue, flags = cl.CommandQueue(context), cl.mem_flags.COPY_HOST_PTR | cl.mem_flags.READ_WRITE
    for a, b in _drawn(width):
        sums = np.random.default_rng(0).integers(-(2**31), 2**31, width).astype(np.int32)
        # sums wrap
        expected = (sums + np.einsum("kc,knc->n", a.astype(np.int64), b.astype(np.int64))).astype(np.int32)
        buffers = [cl.Buffer(context, flags, hostbuf=array) for array in (a, b, sums)]
        kernel(queue, (1,), (1,), *buffers)
        cl.enqueue_copy(queue, sums, buffers[2])
        np.testing.assert_array_equal(sums, expected)

"""The matrix units of a device, or their emulation, against numpy: `python bench/matrix_units.py` prints the errors.

Each unit of the device's profile multiplies random matrices once, its right factor in both orientations on chip;
`--emulate` runs the blocks of all device files in plain OpenCL C instead, on any device.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyopencl as cl

from smartmem_rules.emit.c.program import render
from smartmem_rules.language.blocks.matrix import Matrix
from smartmem_rules.plan.ptx_target import IS_SET
from smartmem_rules.plan.schedule.contraction.group import GroupTile
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.programs.ptx_target import with_target
from smartmem_rules.runtime.target import target_of

KERNEL = """
__kernel __attribute__((reqd_work_group_size({{lanes}}, 1, 1))) void probe(
    __global const {{name}}_element* a, __global const {{name}}_element* b, __global {{sum}}* c) {
    __local {{name}}_element left[{{m * k}}] __attribute__((aligned(16)));
    __local {{name}}_element right[{{2 * k * n}}] __attribute__((aligned(16)));
    __local {{sum}} sums[{{2 * m * n}}] __attribute__((aligned(16)));
    __local uchar smr_exchange[{{exchange + 16}}] __attribute__((aligned(16)));
    const int thread = (int)get_local_id(0);
    const int lane = thread;
    for (int i = lane; i < {{m * k}}; i += {{lanes}}) left[i] = a[i];
    for (int i = lane; i < {{2 * k * n}}; i += {{lanes}}) right[i] = b[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    const {{name}}_left x = {{name}}_load_left(left, {{k}}, lane);
    {{name}}_right y0, y1;
    {{load}}
    {{name}}_sums c0 = {{name}}_no_sums, c1 = {{name}}_no_sums;
    {{products}}
    {{name}}_store(sums, {{2 * n}}, lane, c0);
    {{name}}_store(sums + {{n}}, {{2 * n}}, lane, c1);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = lane; i < {{2 * m * n}}; i += {{lanes}}) c[i] = sums[i];
}
"""

LOCAL_KERNEL = """
__kernel __attribute__((reqd_work_group_size({{lanes}}, 1, 1))) void probe(
    __global const {{name}}_element* a, __global const {{name}}_element* b, __global float* c) {
    __local float memory[{{floats}}] __attribute__((aligned(16)));
    __local float sums[{{m * n}}] __attribute__((aligned(16)));
    const int lane = (int)get_local_id(0);
    __local {{name}}_element* left = {{name}}_aligned(memory);
    __local {{name}}_element* right = left + {{m * k}};
    for (int i = lane; i < {{m * k}}; i += {{lanes}}) left[{{name}}_at(i / {{k}}, i % {{k}})] = a[i];
    for (int i = lane; i < {{k * n}}; i += {{lanes}}) right[{{place}}] = b[i];
    {{name}}_written();
    barrier(CLK_LOCAL_MEM_FENCE);
    {{products}}
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = lane; i < {{m * n}}; i += {{lanes}}) c[i] = sums[i];
}
"""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--emulate", action="store_true")
    arguments = parser.parse_args()
    base, device = load_rules(), choose(arguments.device)
    units = target_of(arguments.device, base).profile.units
    if arguments.emulate:
        units = tuple(unit.emulated() for unit in base.matrices.values())
    worst = 0.0
    for unit in units:
        for turned in (False, True):
            error = error_of(unit, device.handle, turned)
            worst = max(worst, error)
            print(f"{unit.name:14} {'columns' if turned else 'rows':8} of the right factor: {error:.1e}")
    if not units:
        print(f"{device.name} has no matrix unit that the device files know", file=sys.stderr)
    return int(worst > 1e-6 or not units)


def error_of(unit: Matrix, device: Any, turned: bool) -> float:
    """The largest error of one product, relative to the largest sum.

    Args:
        turned: whether columns of the right factor are rows in local memory.
    """
    m, n, k = problem(unit)
    draw = np.random.default_rng(1)
    left: Any
    right: Any
    if unit.sums == "int32":
        left, right = (draw.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
    else:
        left, right = (draw.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    (a, left), (b, right) = (stored(x, unit.factors) for x in (left, right))
    wanted = left.astype(np.float64) @ right.astype(np.float64)
    found = np.zeros((m, n), np.int32 if unit.sums == "int32" else np.float32)
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    program = cl.Program(context, text(unit, turned)).build([*unit.option, *([IS_SET] if unit.target else [])])
    if unit.target:
        changed = with_target(program.get_info(cl.program_info.BINARIES)[0], unit.target)
        program = cl.Program(context, [device], [changed]).build()
    flags = cl.mem_flags
    held = [
        cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=np.ascontiguousarray(x))
        for x in (a, b.T if turned else b)
    ]
    result = cl.Buffer(context, flags.WRITE_ONLY, found.nbytes)
    cl.Kernel(program, "probe")(queue, (unit.lanes,), (unit.lanes,), *held, result)
    cl.enqueue_copy(queue, found, result)
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def problem(unit: Matrix) -> tuple[int, int, int]:
    """Rows, columns and depth of the matrices."""
    m, n, k = unit.shape
    return (m, unit.widths[0], unit.row) if unit.in_local_memory else (m, 2 * n, k)


def stored(values: np.ndarray, factors: str) -> tuple[np.ndarray, np.ndarray]:
    """The elements as they lie in memory, and their values."""
    if factors == "float16":
        half = values.astype(np.float16)
        return half, half
    if factors == "bfloat16":
        bits = values.view(np.uint32) >> 16
        return bits.astype(np.uint16), (bits << 16).astype(np.uint32).view(np.float32)
    return values, values


def text(unit: Matrix, turned: bool) -> str:
    """The program of one product."""
    if unit.in_local_memory:
        return local_text(unit, turned)
    m, n, k = unit.shape
    load = f"{unit.name}_load_rights" + (
        f"_turned(&y0, &y1, right, {k}, lane);" if turned else f"(&y0, &y1, right, {2 * n}, lane);"
    )
    products = [
        f"{unit.name}_multiply({one}, {c}, x, {y});"
        for one in range(unit.passes)
        for c, y in (("c0", "y0"), ("c1", "y1"))
    ]
    values = {
        "name": unit.name, "lanes": unit.lanes, "m * k": m * k, "2 * k * n": 2 * k * n, "2 * m * n": 2 * m * n,
        "exchange + 16": unit.exchange + 16, "k": k, "n": n, "2 * n": 2 * n, "load": load,
        "products": "\n    ".join(products), "sum": "int" if unit.sums == "int32" else "float",
    }  # fmt: skip
    return filled(KERNEL, values, render(f"{unit.texts}.cl", u=unit, f=unit.fragments))


def local_text(unit: Matrix, turned: bool) -> str:
    """The same on a unit that reads tiles in local memory."""
    m, n, k = problem(unit)
    name, blocks = unit.name, range(n // unit.columns)
    products = [
        *(f"{name}_sums c{i} = {name}_no_sums;" for i in blocks),
        f"{name}_begin();",
        *(f"{name}_product_{n}({int(not turned)}, left, right, {at}, {k});" for at in range(0, k, unit.depth)),
        f"{name}_end();",
        f"{name}_complete_{n}();",
        *(f"{name}_store(sums + {i * unit.columns}, {n}, lane, c{i});" for i in blocks),
    ]
    place = f"{name}_at(i / {k}, i % {k})" if turned else f"{name}_across(i / {n}, i % {n}, {k})"
    tile = GroupTile(rows=m, columns=n, step=k, slices=1, warp_rows=m, warp_columns=n, buffers=1, unit=unit)
    values = {
        "name": name, "lanes": unit.lanes, "m * k": m * k, "m * n": m * n, "k * n": k * n, "k": k, "place": place,
        "floats": tile.memory, "products": "\n    ".join(products),
    }  # fmt: skip
    return filled(LOCAL_KERNEL, values, render(f"{unit.texts}.cl", u=unit, f=unit.fragments, s=tile))


def filled(kernel: str, values: Mapping[str, object], functions: str) -> str:
    """The program of a kernel with values in the place of their names, and the functions of its unit."""
    for name, value in values.items():
        kernel = kernel.replace("{{" + name + "}}", str(value))
    return "\n".join((render("prelude.cl"), functions, kernel))


if __name__ == "__main__":
    sys.exit(main())

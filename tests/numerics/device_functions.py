"""Runs a primitive's kernel text on a device, in every width in which kernels use it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyopencl as cl

from smartmem_rules.emit.c.primitives import apply, compute_type, is_float, narrowed
from smartmem_rules.resources import templates_path
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.programs.declarations import OWN_DECLARATIONS, declarations

Array = np.ndarray[Any, np.dtype[Any]]
WIDTHS = (1, 4, 8)
"""Lanes of the vectors for which the prelude defines its functions."""
_REGISTERS = {
    "float": "float32", "double": "float64", "int": "int32", "uint": "uint32", "long": "int64", "ulong": "uint64",
}  # fmt: skip


@cache
def _queue() -> cl.CommandQueue:
    return cl.CommandQueue(cl.Context([choose().handle]))


@cache
def is_cpu() -> bool:
    """Whether the device at hand runs kernels with the prelude of CPUs."""
    return choose().kind == "cpu"


def in_registers(array: Array, dtype: str) -> Array:
    """The elements as a kernel holds them."""
    return np.ascontiguousarray(array.astype(_REGISTERS[compute_type(dtype)]))


def run_primitive(
    function: str, operands: Sequence[Array], dtypes: Sequence[str], result: str, width: int = 1, cpu: bool = True
) -> Array:
    """The primitive of whole vectors of the operands, computed on the device at hand.

    Args:
        operands: arrays of one length, a multiple of the width, of the dtypes.
        result: the dtype of the result.
        cpu: whether the prelude is that of CPUs, else that of all other devices.

    Returns:
        The results as registers hold them.
    """
    held = [in_registers(array, dtype) for array, dtype in zip(operands, dtypes, strict=True)]
    vectors = all(map(is_float, (*dtypes, result))) and function not in ("mod", "fmod", "cast")
    widths = WIDTHS if vectors else (1,)
    text = "".join(_text(function, dtypes, result, one) for one in widths)
    found = np.empty(held[0].shape, _REGISTERS[compute_type(result)])
    context, flags = _queue().context, cl.mem_flags
    buffers = [cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=array) for array in held]
    output = cl.Buffer(context, flags.WRITE_ONLY, found.nbytes)
    _kernel(text, width, cpu)(_queue(), (found.size // width,), None, *buffers, output)
    cl.enqueue_copy(_queue(), found, output)
    return found


def _text(function: str, dtypes: Sequence[str], result: str, width: int) -> str:
    pointers = "".join(f"__global const {compute_type(t)}* p{place}, " for place, t in enumerate(dtypes))
    lines = "".join(
        f"const {compute_type(t, width)} v{place} = {_load(place, width)}; " for place, t in enumerate(dtypes)
    )
    names = [f"v{place}" for place in range(len(dtypes))]
    value = narrowed(apply(function, names, result, dtypes[0], width), result)
    store = f"y[i] = {value};" if width == 1 else f"vstore{width}({value}, i, y);"
    return (
        f"__kernel void run{width}({pointers}__global {compute_type(result)}* y) "
        f"{{ const int i = get_global_id(0); {lines}{store} }}\n"
    )


def _load(place: int, width: int) -> str:
    return f"p{place}[i]" if width == 1 else f"vload{width}(i, p{place})"


@cache
def _kernel(text: str, width: int, cpu: bool) -> cl.Kernel:
    return cl.Kernel(_program(text, cpu), f"run{width}")


@cache
def _program(text: str, cpu: bool) -> cl.Program:
    prelude = (templates_path() / "prelude.cl").read_text("utf-8")
    head = "#define SMR_CPU\n" if cpu else ""
    source = head + prelude + text
    options = choose().workaround("option")
    known = declarations() if choose().workaround("parses_all_declarations") else None
    if known is None:
        return cl.Program(_queue().context, source).build(options=options)
    # as the runtime compiles kernels, in a third of the time
    return cl.Program(_queue().context, known.before(source) + source).build(options=[OWN_DECLARATIONS, *options])


def ulps(found: Array, exact: Array, dtype: str = "float32") -> Array:
    """How far results are from exact ones (in double precision), in units of the last place of the exact ones.

    NaN for NaN and infinity for infinity are no distance; every other difference of such values is infinite.
    """
    kind = np.dtype(dtype)
    limits = np.finfo(kind)
    with np.errstate(all="ignore"):
        rounded = exact.astype(kind)
        unit = np.spacing(np.maximum(np.abs(rounded), limits.tiny)).astype(np.float64)
        distance = np.abs(found.astype(np.float64) - exact.astype(np.float64)) / unit
    same = (found.astype(kind) == rounded) | (np.isnan(found) & np.isnan(exact))
    special = ~np.isfinite(rounded) | ~np.isfinite(found)
    distance = np.where(same & special, 0.0, distance)
    return np.where(np.isnan(distance) | (special & ~same), np.inf, distance)

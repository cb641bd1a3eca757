"""The program text around a kernel's body: its template, parameters and grid."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import jinja2

from smartmem_rules.emit.c.access import CONVERTED, Access
from smartmem_rules.language import cache
from smartmem_rules.language.blocks.device import Device
from smartmem_rules.plan.kernel.launch import Launch, Ordered
from smartmem_rules.plan.kernel.model import PlanError, Stored
from smartmem_rules.plan.kernel.work_items import Grid
from smartmem_rules.records import dataclass
from smartmem_rules.resources import templates_path
from smartmem_rules.tensor.extents import Dimension, is_symbolic


@dataclass(frozen=True)
class Target:
    """What emission needs to know of a device.

    Attributes:
        width: the lanes of its vectors.
        inside: kernels are written as functions that a launch of several kernels calls.
        group_items: work-items of the work-groups of such a launch on GPUs, 0 where each kernel chooses for itself.
        coherent: what kernels read, other work-groups of the launch may have written.
        dimensions: those for a range of which kernels are made.
    """

    device: Device
    width: int
    inside: bool = False
    group_items: int = 0
    coherent: bool = False
    dimensions: tuple[Dimension, ...] = ()

    @property
    def is_cpu(self) -> bool:
        return self.device.kind == "cpu"


class _Translated(jinja2.BytecodeCache):
    """Templates as Python, kept beside what is known of rule files; jinja2 compares the digest of a template's text."""

    def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        found = cache.read_bytes(_file_of(bucket))
        if found is not None:
            try:
                bucket.bytecode_from_string(found)
            except Exception:  # a damaged or foreign file is like none
                bucket.reset()

    def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        cache.write_bytes(_file_of(bucket), bucket.bytecode_to_string())


def _file_of(bucket: jinja2.bccache.Bucket) -> str:
    """One for each version of jinja2 and each way in which `_environment` reads templates."""
    return f"{bucket.key}-{cache.digest_of(jinja2.__version__, 'trim_blocks lstrip_blocks')[:8]}.template"


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(str(templates_path())),
        bytecode_cache=_Translated(),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **values: Any) -> str:
    """A template of `codegen/` filled in."""
    found = _environment().get_template(template)
    context = found.new_context(values)
    try:
        return "".join(found.root_render_func(context))
    finally:
        context.parent.clear()  # the context and its macros hold each other, and would keep the plan's constants


def program(text: str, target: Target, tensors: Iterable[Stored]) -> str:
    """A kernel's text over some tensors with all that it relies on before it."""
    defines = ["#define SMR_CPU"] if target.is_cpu else []
    if target.device.compute.shuffle:
        defines.append(f"#define SMR_SHUFFLE_{target.device.compute.shuffle.upper()}")
    storages = {stored.storage for stored in tensors}
    if "float64" in storages:
        defines.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
    prelude = [render("prelude.cl")]
    if target.device.compute.half:
        kinds = [kind for storage, kind in CONVERTED.items() if storage in storages]
        prelude += [render(f"{kind}_{target.device.compute.half}.cl") for kind in kinds]
    return "\n".join([*defines, *prelude, text])


def used_dimensions(text: str, target: Target) -> tuple[Dimension, ...]:
    """The open dimensions whose extents a kernel's text needs."""
    return tuple(d for d in target.dimensions if re.search(rf"\b{d.parameter}\b", text))


def extent_parameters(used: Iterable[Dimension]) -> str:
    """Their declarations, behind those of the tensors."""
    return "".join(f",\n    const int {dimension.parameter}" for dimension in used)


def declarations(launch: Launch, accesses: Mapping[str, Access], written: set[str], coherent: bool = False) -> str:
    """The parameters of a launch's tensors; those that lie at one place in memory say so by not being `restrict`.

    In an ordered launch other work-groups write what one reads: NVIDIA's compiler reads what is `const` and `restrict`
    by way of a cache that does not see that, if the function that reads is part of the kernel. In such a function
    (`coherent`) constants stay `restrict`, and so do results, for which loads need not wait.
    """
    shared = set(accesses) if isinstance(launch, Ordered) else {*launch.in_place, *launch.in_place.values()}
    if coherent:
        shared |= {n for n, a in accesses.items() if n not in written and a.stored.role != "constant"}
    declared = (a.declaration("write" if n in written else "read", n not in shared) for n, a in accesses.items())
    return ",\n    ".join(declared)


def checked_grid(launch: Launch, items: int) -> Grid:
    """The grid of a launch, if it is one for so many work-items.

    Raises:
        PlanError: the launch has no grid, or one for another number of work-items.
    """
    grid = launch.grid
    if grid is None:
        raise PlanError(f"the kernel {launch.name} was not scheduled: it has no grid")
    group = 1 if grid.local_size is None else math.prod(grid.local_size)
    if not (is_symbolic(items) or is_symbolic(grid.items)) and not items <= grid.items < items + group:
        raise PlanError(
            f"the kernel {launch.name} is for {items} work-items, its grid has {grid.items} in groups of {group}"
        )
    return grid

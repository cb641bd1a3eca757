"""Layout replicas: tensors stored in a second layout, written by their producer or by a copy kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from smartmem_rules.plan.kernel.model import Kernel, Store, Stored
from smartmem_rules.plan.kernel.traffic import accounted
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Read, rename_reads
from smartmem_rules.tensor.index import variable

COPY = "@copy"
"""Ends the name of a tensor's second layout."""


def copy_kernel(stored: Stored, copy: str) -> Kernel:
    """A kernel that only writes a tensor once more, under the name of its copy."""
    axes = tuple(Var(f"{copy}_{axis}", extent) for axis, extent in enumerate(stored.type.shape))
    indices = tuple(map(variable, axes))
    store = Store(copy, indices, Read(stored.name, indices, stored.type.dtype))
    kernel = Kernel(name=f"copy_{copy}", form="pointwise", axes=axes, stores=(store,), moves_only=True)
    return accounted(kernel)


def writing_copy(kernel: Kernel, tensor: str, copy: str) -> Kernel:
    """The kernel that writes what it writes to a tensor to its copy, too."""
    stores: list[Store] = []
    for store in kernel.stores:
        stores += [store, replace(store, tensor=copy)] if store.tensor == tensor else [store]
    return replace(kernel, stores=tuple(stores), writes=tuple(dict.fromkeys(s.tensor for s in stores)))


def reading(kernel: Kernel, names: Mapping[str, str]) -> Kernel:
    """The kernel that reads other tensors in the place of those named."""
    changed = kernel.changed(lambda expr: rename_reads(expr, names))
    return replace(changed, reads=tuple(dict.fromkeys(names.get(name, name) for name in kernel.reads)))

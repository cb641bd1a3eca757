"""Layout replicas: tensors stored in a second layout, written by their producer or by a copy kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from smartmem_rules.plan.kernel.model import Kernel, Store, Stored
from smartmem_rules.plan.kernel.traffic import account
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, Read, rename_reads
from smartmem_rules.tensor.index import variable

COPY = "@copy"
"""Ends the name of a tensor's second layout."""


def copy_kernel(stored: Stored, copy: str) -> Kernel:
    """A kernel that only writes a tensor once more, under the name of its copy."""
    axes = tuple(Var(f"{copy}_{axis}", extent) for axis, extent in enumerate(stored.type.shape))
    indices = tuple(map(variable, axes))
    store = Store(copy, indices, Read(stored.name, indices, stored.type.dtype))
    kernel = Kernel(f"copy_{copy}", "pointwise", axes, (store,), moves_only=True)
    account(kernel)
    return kernel


def write_copy(kernel: Kernel, tensor: str, copy: str) -> None:
    """Let a kernel write what it writes to a tensor to its copy, too."""
    stores: list[Store] = []
    for store in kernel.stores:
        stores += [store, replace(store, tensor=copy)] if store.tensor == tensor else [store]
    kernel.stores = tuple(stores)
    kernel.writes = tuple(dict.fromkeys(s.tensor for s in kernel.stores))


def rename_tensors(kernel: Kernel, names: Mapping[str, str]) -> None:
    """Let a kernel read other tensors in the place of those named."""

    def renamed(expr: Expr) -> Expr:
        return rename_reads(expr, names)

    kernel.stages = tuple(replace(s, body=renamed(s.body)) for s in kernel.stages)
    kernel.stores = tuple(replace(s, value=renamed(s.value)) for s in kernel.stores)
    c = kernel.contraction
    if c is not None:
        scores = c.scores and replace(c.scores, a=renamed(c.scores.a), b=renamed(c.scores.b))
        stages = tuple(replace(s, body=renamed(s.body)) for s in c.stages)
        kernel.contraction = replace(c, a=renamed(c.a), b=renamed(c.b), stages=stages, scores=scores)
    kernel.parts = tuple(
        replace(p, b=renamed(p.b), stores=tuple(replace(s, value=renamed(s.value)) for s in p.stores))
        for p in kernel.parts
    )
    kernel.reads = tuple(dict.fromkeys(names.get(name, name) for name in kernel.reads))

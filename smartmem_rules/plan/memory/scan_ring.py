"""Temporaries that one step of a scan uses lie in private memory; values for the next step, in a ring buffer.

What only the next step reads has room for two steps, which take turns.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.plan.kernel.model import Kernel, Layout, Store, Stored
from smartmem_rules.plan.kernel.traffic import expressions
from smartmem_rules.tensor.expr import Expr, Read, TensorType, own_indices, substitute_reads, walk
from smartmem_rules.tensor.index import Index, add, mod, variable
from smartmem_rules.tensor.ranges import largest, several

TURNS = 2
"""Steps for which there is room of what the next step reads."""


def keep_steps(
    launches: Sequence[Launch], tensors: dict[str, Stored], fixed: Collection[str], most_bytes: int
) -> list[Launch]:
    """The launches whose scans keep tensors that nothing else reads: for one step (`Kernel.ring`), or for two in turns.

    Args:
        tensors: in which those that are kept get their memory; launches neither read nor write those in a ring.
        fixed: tensors that have to lie in device memory.
        most_bytes: that a work-item may keep of a step.
    """
    kernels = [kernel for launch in launches for kernel in launch.kernels]
    users: dict[str, set[str]] = {}
    for kernel in kernels:
        for name in (*kernel.reads, *kernel.writes):
            users.setdefault(name, set()).add(kernel.name)
    # the shares of a recurrence run the same kernel
    scans = {k.name: k for k in kernels if k.form == "scan" and all(not several(v.extent) for v in k.axes[1:])}
    for name, scan in scans.items():
        own = {t for t in scan.writes if users[t] == {name} and t not in fixed and tensors[t].role == "intermediate"}
        scans[name] = _in_turns(_with_ring(scan, own, tensors, most_bytes), own, tensors)
    return [launch.each(lambda one: replace(one, kernel=scans.get(one.name, one.kernel))) for launch in launches]


def _with_ring(scan: Kernel, own: Collection[str], tensors: dict[str, Stored], most_bytes: int) -> Kernel:
    """The scan that keeps for itself what each step needs alone, as far as a work-item has room."""
    kept: dict[str, int] = {}
    for store in scan.stores:
        stored = tensors[store.tensor]
        if store.tensor in own and stored.storage == "float32" and _within_step(scan, store):
            elements = math.prod(stored.type.shape[1:])
            if 4 * (sum(kept.values()) + elements) <= most_bytes:
                kept[store.tensor] = elements
    for name in kept:
        type_ = tensors[name].type
        shape = type_.shape[1:]
        layout = Layout("scratch", tuple(range(len(shape))))
        tensors[name] = replace(tensors[name], type=TensorType(type_.dtype, shape), layout=layout)
    return _taken_out(scan, kept)


def _in_turns(scan: Kernel, own: Collection[str], tensors: dict[str, Stored]) -> Kernel:
    """The scan whose tensors have room for two steps, where no step reads further back than the one before."""
    names = _turning(scan, own, tensors)
    for name in names:
        type_ = tensors[name].type
        tensors[name] = replace(tensors[name], type=TensorType(type_.dtype, (TURNS, *type_.shape[1:])))
    return _taking_turns(scan, names)


def _turning(scan: Kernel, own: Collection[str], tensors: Mapping[str, Stored]) -> set[str]:
    """What a scan makes in each step and reads in no later one than the next, of its own tensors."""
    step = variable(scan.axes[0])
    nodes = [node for e in expressions(scan) for node in walk(e)]
    found = set()
    for name in scan.writes:
        stored = tensors[name]
        reads = [node for node in nodes if isinstance(node, Read) and node.tensor == name]
        if (
            name in own
            and largest(stored.type.shape[0]) > TURNS
            and not any(name in index.gathered for node in nodes for index in own_indices(node))
            and all(_at_step(store.indices, step, (0,)) for store in scan.stores if store.tensor == name)
            and all(_at_step(read.indices, step, (0, -1)) for read in reads)
        ):
            found.add(name)
    return found


def _taking_turns(scan: Kernel, turning: Collection[str]) -> Kernel:
    """The scan whose steps that only the next one reads lie in memory for two."""

    def place(indices: tuple[Index, ...]) -> tuple[Index, ...]:
        return mod(add(indices[0], Index(1)), TURNS), *indices[1:]

    def read(node: Read) -> Expr:
        return replace(node, indices=place(node.indices)) if node.tensor in turning else node

    stores = tuple(
        replace(
            s, indices=place(s.indices) if s.tensor in turning else s.indices, value=substitute_reads(s.value, read)
        )
        for s in scan.stores
    )
    return replace(scan, stores=stores)


def _at_step(indices: tuple[Index, ...], step: Index, offsets: Collection[int]) -> bool:
    """Whether indices are those of a step, so many steps away, and depend on the step nowhere else."""
    first, *others = indices
    return any(first == add(step, Index(offset)) for offset in offsets) and not any(
        step.variables & index.variables for index in others
    )


def _within_step(scan: Kernel, store: Store) -> bool:
    """Whether what one store makes is read only in the step that makes it, behind the store."""
    step = variable(scan.axes[0])
    if store.indices[0] != step or any(step.variables & index.variables for index in store.indices[1:]):
        return False
    nodes = [node for e in expressions(scan) for node in walk(e)]
    if any(store.tensor in index.gathered for node in nodes for index in own_indices(node)):
        return False
    place = scan.stores.index(store)
    before = [node for one in scan.stores[: place + 1] for node in walk(one.value)]
    if any(isinstance(node, Read) and node.tensor == store.tensor for node in before):
        return False
    reads = [node for node in nodes if isinstance(node, Read) and node.tensor == store.tensor]
    return all(
        r.indices[0] == step and not any(step.variables & index.variables for index in r.indices[1:]) for r in reads
    )


def _taken_out(scan: Kernel, kept: Mapping[str, int]) -> Kernel:
    """The scan that keeps tensors for one step: they have no axis of steps, and lie in no memory of the device."""

    def read(node: Read) -> Expr:
        return Read(node.tensor, node.indices[1:], node.dtype) if node.tensor in kept else node

    stores = tuple(
        replace(s, indices=s.indices[1:] if s.tensor in kept else s.indices, value=substitute_reads(s.value, read))
        for s in scan.stores
    )
    return replace(
        scan,
        stores=stores,
        reads=tuple(name for name in scan.reads if name not in kept),
        writes=tuple(name for name in scan.writes if name not in kept),
        ring=kept,
    )

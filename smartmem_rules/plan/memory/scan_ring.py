"""Temporaries that one step of a scan uses lie in private memory; values for the next step, in a ring buffer.

What only the next step reads has room for two steps, which take turns.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from smartmem_rules.plan.kernel.model import Kernel, Layout, Store, Stored
from smartmem_rules.plan.kernel.traffic import expressions
from smartmem_rules.tensor.expr import Expr, Read, TensorType, own_indices, substitute_reads, walk
from smartmem_rules.tensor.index import Index, add, mod, variable
from smartmem_rules.tensor.ranges import several

TURNS = 2
"""Steps for which there is room of what the next step reads."""


def keep_steps(leaves: Sequence[Kernel], tensors: dict[str, Stored], fixed: Collection[str], most_bytes: int) -> None:
    """Take the steps out of tensors that a scan alone reads, each time in the step that made the element.

    The scan gets `ring`: the elements that each of them has in a step. Launches neither read nor write them any more.

    Args:
        most_bytes: that a work-item may keep of a step.
    """
    users: dict[str, set[str]] = {}
    for leaf in leaves:
        for name in (*leaf.reads, *leaf.writes):
            users.setdefault(name, set()).add(leaf.name)
    scans = [k for k in leaves if k.form == "scan" and all(not several(v.extent) for v in k.axes[1:])]
    for scan in scans:
        kept: dict[str, int] = {}
        for store in scan.stores:
            stored = tensors[store.tensor]
            own = users[store.tensor] == {scan.name} and store.tensor not in fixed
            if own and stored.role == "intermediate" and stored.storage == "float32" and _within_step(scan, store):
                elements = math.prod(stored.type.shape[1:])
                if 4 * (sum(kept.values()) + elements) <= most_bytes:
                    kept[store.tensor] = elements
        _take_out(scan, kept)
        for name in kept:
            if tensors[name].layout.memory != "scratch":
                type_ = tensors[name].type
                shape = type_.shape[1:]
                layout = Layout("scratch", tuple(range(len(shape))))
                tensors[name] = replace(tensors[name], type=TensorType(type_.dtype, shape), layout=layout)
    by_name: dict[str, list[Kernel]] = {}
    for scan in scans:
        by_name.setdefault(scan.name, []).append(scan)
    for alike in by_name.values():
        names = {name for name in _turning(alike[0], tensors, fixed) if users[name] == {alike[0].name}}
        for scan in alike:
            _take_turns(scan, names)
        for name in names:
            type_ = tensors[name].type
            tensors[name] = replace(tensors[name], type=TensorType(type_.dtype, (TURNS, *type_.shape[1:])))


def _turning(scan: Kernel, tensors: Mapping[str, Stored], fixed: Collection[str]) -> set[str]:
    """What a scan makes in each step and reads in no later one than the next."""
    step = variable(scan.axes[0])
    nodes = [node for e in expressions(scan) for node in walk(e)]
    found = set()
    for name in scan.writes:
        stored = tensors[name]
        reads = [node for node in nodes if isinstance(node, Read) and node.tensor == name]
        if (
            name not in fixed
            and stored.role == "intermediate"
            and stored.type.shape[0] > TURNS
            and not any(name in index.gathered for node in nodes for index in own_indices(node))
            and all(_at_step(store.indices, step, (0,)) for store in scan.stores if store.tensor == name)
            and all(_at_step(read.indices, step, (0, -1)) for read in reads)
        ):
            found.add(name)
    return found


def _take_turns(scan: Kernel, turning: Collection[str]) -> None:
    """Let steps that only the next one reads lie in memory for two."""

    def place(indices: tuple[Index, ...]) -> tuple[Index, ...]:
        return mod(add(indices[0], Index(1)), TURNS), *indices[1:]

    def read(node: Read) -> Expr:
        return replace(node, indices=place(node.indices)) if node.tensor in turning else node

    scan.stores = tuple(
        replace(
            s, indices=place(s.indices) if s.tensor in turning else s.indices, value=substitute_reads(s.value, read)
        )
        for s in scan.stores
    )


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


def _take_out(scan: Kernel, kept: dict[str, int]) -> None:
    def read(node: Read) -> Expr:
        return Read(node.tensor, node.indices[1:], node.dtype) if node.tensor in kept else node

    scan.stores = tuple(
        replace(s, indices=s.indices[1:] if s.tensor in kept else s.indices, value=substitute_reads(s.value, read))
        for s in scan.stores
    )
    scan.reads = tuple(name for name in scan.reads if name not in kept)
    scan.writes = tuple(name for name in scan.writes if name not in kept)
    scan.ring = kept

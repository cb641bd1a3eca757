"""Kernels as certificates describe them: what each stores, over stages that it keeps to itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from smartmem_rules.exchange.certificates import KernelData
from smartmem_rules.exchange.expressions import ExchangeError, Loops, read_expression, read_index
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, Read, walk
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.printer import element_text, expression_text

OWN_LOOPS = "@@"
"""Begins the names of loops that whoever compares kernels makes; those of kernels begin otherwise."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What a kernel keeps to itself, at the values of its axes."""

    axes: tuple[Var, ...]
    value: Expr


@dataclass(frozen=True, kw_only=True)
class Store:
    """tensor[indices] = value."""

    tensor: str
    indices: tuple[Index, ...]
    value: Expr


@dataclass(frozen=True, kw_only=True)
class KernelClaim:
    """A kernel as a certificate describes it."""

    name: str
    stages: Mapping[str, Stage]
    stores: tuple[Store, ...]

    @property
    def values(self) -> tuple[Expr, ...]:
        """What it computes: its stages, then its stores."""
        return (*(stage.value for stage in self.stages.values()), *(store.value for store in self.stores))

    def each(self, change: Callable[[Expr], Expr]) -> KernelClaim:
        """The same with each value changed."""
        return replace(
            self,
            stages={name: replace(stage, value=change(stage.value)) for name, stage in self.stages.items()},
            stores=tuple(replace(store, value=change(store.value)) for store in self.stores),
        )


def read_kernel(data: KernelData) -> KernelClaim:
    """A kernel of a certificate.

    Raises:
        ExchangeError: a stage is there twice, or has other elements than are read of it, or the text of a store says
            something else than the store.
    """
    loops: Loops = {name: Var(name, extent) for name, extent in data["loops"].items()}
    if any(name.startswith(OWN_LOOPS) for name in loops):
        raise ExchangeError(f"the kernel {data['name']} has loops whose names begin with {OWN_LOOPS}")
    stages: dict[str, Stage] = {}
    for one in data["stages"]:
        value = read_expression(one["value"], loops)
        later = {n.tensor for n in walk(value) if isinstance(n, Read)} & {s["name"] for s in data["stages"]}
        if one["name"] in stages or not later <= stages.keys():
            raise ExchangeError(f"the kernel {data['name']} reads {one['name']} before it is there, or makes it twice")
        stage = Stage(axes=tuple(loops[name] for name in one["axes"]), value=value)
        if one["text"] != stage_text(one["name"], stage):
            raise ExchangeError(f"the kernel {data['name']} keeps {stage_text(one['name'], stage)}, not {one['text']}")
        stages[one["name"]] = stage
    stores = []
    for given in data["stores"]:
        indices = tuple(read_index(index, loops) for index in given["indices"])
        store = Store(tensor=given["tensor"], indices=indices, value=read_expression(given["value"], loops))
        if given["text"] != store_text(store):
            raise ExchangeError(f"the kernel {data['name']} stores {store_text(store)}, not {given['text']}")
        stores.append(store)
    kernel = KernelClaim(name=data["name"], stages=stages, stores=tuple(stores))
    for name, stage in stages.items():
        _read_whole(name, stage, kernel)
    return kernel


def _read_whole(name: str, stage: Stage, kernel: KernelClaim) -> None:
    """A stage is as large as what is read of it: who compares it opens it, and no longer sees the extents of its axes.

    Raises:
        ExchangeError: it has more elements or fewer.
    """
    reads = [n for value in kernel.values for n in walk(value) if isinstance(n, Read) and n.tensor == name]
    for place, axis in enumerate(stage.axes):
        ranges = [read.indices[place].interval for read in reads if place < len(read.indices)]
        if not ranges or (min(low for low, _ in ranges), max(high for _, high in ranges)) != (0, axis.extent - 1):
            raise ExchangeError(
                f"the kernel {kernel.name} keeps {axis.extent} of {name} along {axis.name} and reads others"
            )


def stage_text(name: str, stage: Stage) -> str:
    """What a kernel keeps to itself, in one line."""
    return f"{element_text(name, tuple(map(variable, stage.axes)))} = {expression_text(stage.value)}"


def store_text(store: Store) -> str:
    """What a store does, in one line."""
    return f"{element_text(store.tensor, store.indices)} = {expression_text(store.value)}"

"""Kernels of a plan as a certificate describes them: one expression for each store, over stages that it names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from smartmem_rules.exchange.certificates import KernelData, StoreData
from smartmem_rules.exchange.expressions import expression_json, index_json
from smartmem_rules.exchange.kernels import KernelClaim, Stage as ClaimedStage, Store as Claimed, stage_text, store_text
from smartmem_rules.plan.fusion.equations.program import StoredTable
from smartmem_rules.plan.fusion.equations.tables import with_tables_in_text
from smartmem_rules.plan.kernel.model import ACCUMULATOR, INNER, Contraction, Kernel, Store
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Apply, Expr, Read, Reduce, own_indices, rename_reads, walk

SCORES = "@scores"


class Unshown(Exception):
    """A kernel cannot be described; the message says why."""


def claim_of(kernel: Kernel) -> KernelClaim:
    """A single kernel as stages that it keeps to itself and stores over them."""
    stages: list[tuple[str, tuple[Var, ...], Expr]] = []
    stores = list(kernel.stores)
    c = kernel.contraction
    if c is not None:
        stages += _fed(c)
        if kernel.stages:
            stages.append((INNER, (c.n,), _sum(c, c.b, _dtype(s.body for s in kernel.stages))))
        stores = list(_of_parts(kernel, c, stages))
    stages += [(stage.name, stage.axes, stage.body) for stage in kernel.stages]
    return KernelClaim(
        name=kernel.name,
        stages={name: ClaimedStage(axes=axes, value=body) for name, axes, body in stages},
        stores=tuple(Claimed(tensor=one.tensor, indices=one.indices, value=one.value) for one in stores),
    )


def kernel_json(kernel: Kernel, tables: Mapping[str, StoredTable]) -> KernelData:
    """A single kernel.

    Args:
        tables: the index tables that lie in memory, by tensor; the kernel is described with the tables themselves.

    Raises:
        Unshown: two of its loops have one name.
    """
    claim = claim_of(kernel).each(lambda value: with_tables_in_text(value, tables)) if tables else claim_of(kernel)
    loops: dict[str, int] = {}
    for stage in claim.stages.values():
        _collect([*stage.axes, *_variables(stage.value)], loops)
    for store in claim.stores:
        _collect([*(v for i in store.indices for v in i.variables), *_variables(store.value)], loops)
    return {
        "name": kernel.name,
        "origin": list(kernel.origin),
        "loops": loops,
        "stages": [
            {
                "text": stage_text(name, stage),
                "name": name,
                "axes": [v.name for v in stage.axes],
                "value": expression_json(stage.value),
            }
            for name, stage in claim.stages.items()
        ],
        "stores": [_store_json(store) for store in claim.stores],
    }


def _store_json(store: Claimed) -> StoreData:
    return {
        "text": store_text(store),
        "tensor": store.tensor,
        "indices": list(map(index_json, store.indices)),
        "value": expression_json(store.value),
    }


def _fed(c: Contraction) -> Iterator[tuple[str, tuple[Var, ...], Expr]]:
    """The stages of the rows that a contraction computes itself."""
    if c.scores is not None:
        dtype = _dtype(stage.body for stage in c.stages)
        product = Apply("mul", (c.scores.a, c.scores.b), dtype)
        yield SCORES, (c.scores.n,), Reduce("sum", c.scores.k, product, dtype)
    for stage in c.stages:
        yield stage.name, stage.axes, rename_reads(stage.body, {INNER: SCORES})


def _of_parts(kernel: Kernel, c: Contraction, stages: list[tuple[str, tuple[Var, ...], Expr]]) -> Iterator[Store]:
    """The stores, each over the sum of its own right factor; these sums become stages."""
    part_of = {id(store): number for number, part in enumerate(kernel.parts, 1) for store in part.stores}
    stored = [(store, _part_number(store, kernel, part_of)) for store in kernel.stores]
    for number in dict.fromkeys(number for _, number in stored):
        dtype = _accumulated(store.value for store, own in stored if own == number)
        if dtype is not None:
            b = kernel.parts[number - 1].b if number else c.b
            stages.append((_name(number), (), _sum(c, b, dtype)))
    for store, number in stored:
        value = rename_reads(store.value, {ACCUMULATOR: _name(number)})
        yield Store(store.tensor, store.indices, value, store.local)


def _part_number(store: Store, kernel: Kernel, part_of: Mapping[int, int]) -> int:
    if id(store) in part_of:
        return part_of[id(store)]
    same = [number for number, part in enumerate(kernel.parts, 1) if store in part.stores]
    return same[0] if same else 0


def _name(number: int) -> str:
    return f"{ACCUMULATOR}{number or ''}"


def _sum(c: Contraction, b: Expr, dtype: str) -> Expr:
    return Reduce("sum", c.k, Apply("mul", (c.a, b), dtype), dtype)


def _dtype(bodies: Iterable[Expr]) -> str:
    """The type in which scores are summed: that of the reads of them."""
    found = [n.dtype for body in bodies for n in walk(body) if isinstance(n, Read) and n.tensor == INNER]
    return found[0] if found else "float32"


def _accumulated(values: Iterable[Expr]) -> str | None:
    found = [n.dtype for value in values for n in walk(value) if isinstance(n, Read) and n.tensor == ACCUMULATOR]
    return found[0] if found else None


def _variables(expr: Expr) -> Iterator[Var]:
    for node in walk(expr):
        if isinstance(node, Reduce):
            yield from node.variables
        for index in own_indices(node):
            yield from index.variables


def _collect(variables: Sequence[Var], loops: dict[str, int]) -> None:
    for var in variables:
        if loops.setdefault(var.name, var.extent) != var.extent:
            raise Unshown(f"the loop {var.name} has the extents {loops[var.name]} and {var.extent}")

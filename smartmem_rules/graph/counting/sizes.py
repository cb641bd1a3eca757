"""Extents that depend on data: which tensors have them, and which nodes can work without knowing them.

A tensor whose extent is only bounded at import is computed up to its bound, and what lies behind the real extent is
padding. A node can read it if it takes each element to the same place of that axis: then its result is padded likewise.
Every other node (a sum, a reshape, a join) would let padding into its result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from smartmem_rules.tensor.atoms import Div, Gathered, Lookup, Mod, Var
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.expr import Equation, Expr, Read, own_indices, tensors_read, walk
from smartmem_rules.tensor.index import Index

Sizes = Mapping[str, Mapping[int, str]]
"""By tensor and axis: the scalar tensor that holds the extent."""


def sizes_through(
    equations: Sequence[Equation], outputs: Collection[str], sizes: Sizes, bounds: Mapping[str, tuple[int, ...]]
) -> dict[str, dict[int, str]]:
    """The axes of a node's outputs whose extents depend on data because its operands' do.

    Args:
        equations: the node's, over the graph's tensor names.
        sizes: those of the node's operands.
        bounds: the extents of the tensors in `sizes`, up to which they are computed.

    Raises:
        Unsupported: the node would need to know the extent.
    """
    if not sizes:
        return {}
    known = {tensor: dict(axes) for tensor, axes in sizes.items()}
    extents = {tensor: bounds[tensor] for tensor in sizes}
    for equation in equations:
        found = _sizes_of(equation, known, extents)
        if found:
            known[equation.tensor] = found
            extents[equation.tensor] = equation.type.shape
    for output in outputs:
        if not known.get(output):
            raise unknown_size(next(iter(sizes)))
    return {output: known[output] for output in outputs}


def unknown_size(tensor: str) -> Unsupported:
    """The refusal of a node that needs the extent of a tensor, which depends on data."""
    return Unsupported(f"the size of {tensor!r} depends on data, and this operator needs to know it")


def _sizes_of(
    equation: Equation, known: Mapping[str, Mapping[int, str]], extents: Mapping[str, tuple[int, ...]]
) -> dict[int, str]:
    if known.keys().isdisjoint(tensors_read(equation.body)):
        return {}
    axes = {v: axis for axis, v in enumerate(equation.variables)}
    found: dict[int, str] = {}
    accesses = list(_accesses(equation.body))
    for tensor, indices in accesses:
        for axis, count in known.get(tensor, {}).items():
            var = indices[axis].loop
            # a part of the axis, or more than all of it, has another size
            if var not in axes or var.extent != extents[tensor][axis] or equation.scan:
                raise unknown_size(tensor)
            if found.setdefault(axes[var], count) != count:
                raise unknown_size(tensor)
    # where the axis tells the place in another operand, behind it or beside it, the result hangs on the extent
    sized = {v for v, axis in axes.items() if axis in found}
    for tensor, indices in accesses:
        for axis, index in enumerate(indices):
            if axis not in known.get(tensor, {}) and not sized.isdisjoint(_own_variables(index)):
                raise unknown_size(next(iter(known)))
    return found


def _own_variables(index: Index) -> Iterator[Var]:
    """The loop variables of an index, without those of the integer tensors that it reads."""
    for atom, _ in index.terms:
        match atom:
            case Var():
                yield atom
            case Div(value=value) | Mod(value=value) | Lookup(position=value):
                yield from _own_variables(value)
            case Gathered():
                pass


def _accesses(expr: Expr) -> Iterator[tuple[str, tuple[Index, ...]]]:
    """All reads of tensors with their indices, those inside indices too."""
    for node in walk(expr):
        if isinstance(node, Read):
            yield node.tensor, node.indices
        for index in own_indices(node):
            yield from _gathers(index)


def _gathers(index: Index) -> Iterator[tuple[str, tuple[Index, ...]]]:
    for atom, _ in index.terms:
        match atom:
            case Gathered(tensor=tensor, indices=indices):
                yield tensor, indices
                for inner in indices:
                    yield from _gathers(inner)
            case Div(value=value) | Mod(value=value) | Lookup(position=value):
                yield from _gathers(value)
            case Var():
                pass

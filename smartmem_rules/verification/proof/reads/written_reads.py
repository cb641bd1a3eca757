"""What the text of a definition says of its reads: where they stand, and what decides their indices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from smartmem_rules.language import syntax as ast
from smartmem_rules.tensor.instantiate import names_in
from smartmem_rules.verification.instances.attributes import Formal
from smartmem_rules.verification.instances.roles import nodes
from smartmem_rules.verification.proof.open_views import BOUND

_HIGHEST_RANK = 5


def reads_of(operator: ast.Operator) -> frozenset[ast.Span]:
    """The places of all reads of tensors without `else`."""
    names = tensor_names(operator)
    return frozenset(span for equation in operator.equations for span in spans_of_reads(equation.body, names))


def tensor_names(operator: ast.Operator) -> frozenset[str]:
    """The operands and results that a definition reads or writes."""
    inputs = {item.name for item in operator.inputs if item.constant is None}
    return frozenset(inputs | {equation.tensor for equation in operator.equations})


def read_nodes(part: ast.Expression, names: frozenset[str]) -> Iterator[ast.Subscript]:
    """The reads without `else` in an expression; which tensor of a list it is is part of a read."""
    found = [node for node in nodes(part) if isinstance(node, ast.Subscript)]
    members = {id(node.base) for node in found}
    for node in found:
        if node.default is None and id(node) not in members:
            base: ast.Expression = node
            while isinstance(base, ast.Subscript):
                base = base.base
            if isinstance(base, ast.Name) and base.id in names:
                yield node


def spans_of_reads(part: ast.Expression, names: frozenset[str]) -> Iterator[ast.Span]:
    """Where the reads without `else` of an expression stand."""
    return (node.span for node in read_nodes(part, names))


def rank_bound(operator: ast.Operator) -> int:
    """The rank up to which operands are looked at: three, or what a requirement names."""
    most = BOUND
    for node in (node for requirement in operator.requires for node in nodes(requirement)):
        if isinstance(node, ast.Binary) and isinstance(node.right, ast.Number) and _is_rank(node.left):
            most = max(most, min(int(node.right.value), _HIGHEST_RANK))
        elif isinstance(node, ast.Binary) and node.operator == "==" and isinstance(node.right, ast.ListOf):
            most = max(most, min(len(node.right.items), _HIGHEST_RANK))
    return most


def _is_rank(expr: ast.Expression) -> bool:
    return isinstance(expr, ast.Call) and expr.function == "rank"


def only_values(operator: ast.Operator) -> frozenset[str]:
    """The attributes and lets on which only the values of elements depend: no index, no extent, no element type."""
    wanted: set[str] = set()
    for output in operator.outputs:
        wanted.add(output.type.dtype)
        for item in output.type.shape:
            wanted |= names_in(item)
    for equation in operator.equations:
        for binder in equation.indices:
            wanted |= set() if binder.bound is None else names_in(binder.bound)
        loops = {binder.name for binder in equation.indices}
        found: set[str] = set()
        for node in nodes(equation.body):
            loops |= {b.name for b in node.binders} if isinstance(node, ast.Reduction | ast.Comprehension) else set()
            found |= _decide_indices(node)
        wanted |= found - loops
    kept = {a.name for a in operator.attributes if a.kind in ("strings", "float", "floats")}
    required = set().union(*map(names_in, operator.requires)) if operator.requires else set()
    for let in reversed(operator.lets):
        required |= names_in(let.value) if let.name in required else set()
    wanted |= required - kept
    for let in reversed(operator.lets):
        if let.name in wanted:
            wanted |= names_in(let.value)
    kinds = {a.name for a in operator.attributes} | {i.name for i in operator.inputs if i.constant is not None}
    formals: list[Formal] = [*operator.attributes, *operator.inputs]
    while True:  # an attribute may have another one as its default
        defaults = [f.default for f in formals if f.name in wanted and f.default]
        more = {name for default in defaults for name in names_in(default)} - wanted
        if not more:
            return frozenset(kinds - wanted)
        wanted |= more


def _decide_indices(node: ast.Expression) -> set[str]:
    match node:
        case ast.Subscript(items=items):
            return set().union(*map(names_in, items)) if items else set()
        case ast.Reduction(binders=binders, condition=condition):
            found = set().union(*(names_in(b.bound) for b in binders if b.bound is not None))
            return found | (set() if condition is None else names_in(condition))
        case ast.Call(function="cast" | "bitcast", arguments=(_, dtype)):
            return names_in(dtype)
        case _:
            return set()


@lru_cache(maxsize=64)
def asks_dtype(operator: ast.Operator) -> bool:
    """Whether a requirement, a let or an equation of a definition asks for an element type."""
    parts = [*operator.requires, *(let.value for let in operator.lets), *(e.body for e in operator.equations)]
    return any(isinstance(n, ast.Call) and n.function == "dtype" for part in parts for n in nodes(part))


@lru_cache(maxsize=64)
def divided_counts(operator: ast.Operator) -> frozenset[int]:
    """The numbers by which a definition divides how many operands a list has."""
    found: set[int] = set()
    for node in (node for let in operator.lets for node in nodes(let.value)):
        match node:
            case ast.Binary(operator="//", left=ast.Call(function="count"), right=ast.Number(value=number)):
                found.add(int(number))
            case _:
                pass
    return frozenset(found)

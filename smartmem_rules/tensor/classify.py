"""Derives an operator's classes from its definition.

SmartMem (section 3.1) distinguishes operators by whether their speed depends on the input's layout (ILD, ILI) and
whether they fix the output's layout (Fixed) or follow the order of computation (Variable).  DNNFusion (table 2)
distinguishes the mapping between input and output elements.  Both can be read off the tensor expression.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Lookup
from smartmem_rules.tensor.expr import Const, Equation, Expr, Read, Reduce, Select, TensorType, own_indices, walk
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.ranges import several, surely_at_most
from smartmem_rules.tensor.views import IndexMap, keeps_order, map_of_equation

COMPLEXITY = ("one_to_one", "reorganize", "shuffle", "one_to_many", "many_to_many")
"""DNNFusion's mapping types in rising order; of several input-output pairs the most complex counts."""


@dataclass(frozen=True)
class Classes:
    """`layout` is SmartMem's class (`ILD.Variable`, ...), `mapping` DNNFusion's type."""

    layout: str
    mapping: str


def moves_only(expr: Expr) -> bool:
    """Whether the expression takes elements (or a fill value) to places and computes nothing."""
    match expr:
        case Read() | Const():
            return True
        case Select(then=then, otherwise=otherwise):
            return moves_only(then) and moves_only(otherwise)
        case _:
            return False


def reduces(expr: Expr) -> bool:
    return any(isinstance(node, Reduce) for node in walk(expr))


def depends_on_data(expr: Expr) -> bool:
    """Whether an index is itself read from a tensor."""
    return any(index.gathered for node in walk(expr) for index in own_indices(node))


def classify(equations: Sequence[Equation], types: Mapping[str, TensorType]) -> Classes:
    """The classes of an operator instance; `types` gives its operands."""
    if any(reduces(e.body) for e in equations):
        return Classes("ILD.Variable", "many_to_many")
    mapping = max((_mapping(e, types) for e in equations), key=COMPLEXITY.index)
    if not all(moves_only(e.body) for e in equations):
        return Classes("ILI.Variable", mapping)
    bijective = len(equations) == 1 and mapping in ("reorganize", "shuffle")
    return Classes("ILD.Fixed" if bijective else "ILI.Fixed", mapping)


def _mapping(equation: Equation, types: Mapping[str, TensorType]) -> str:
    if depends_on_data(equation.body):
        return "one_to_many"
    read = equation.view
    if read is not None and read.tensor in types:
        view = map_of_equation(equation, types[read.tensor].shape)
        assert view is not None
        return _view_mapping(view)
    for node in walk(equation.body):
        if isinstance(node, Read) and node.tensor in types:
            used = frozenset().union(*(i.variables for i in node.indices))
            if any(several(v.extent) and v not in used for v in equation.variables):
                return "one_to_many"
    return "one_to_one"


@lru_cache(maxsize=4096)
def _view_mapping(view: IndexMap) -> str:
    if view.is_identity:
        return "one_to_one"
    used = frozenset().union(*(i.variables for i in view.indices))
    if any(several(v.extent) and v not in used for v in view.variables):
        return "one_to_many"
    if not surely_at_most(math.prod(view.shape), math.prod(view.source)) or any(map(_repeats, view.indices)):
        return "one_to_many"
    if view.inverse is None:
        return "one_to_one"
    return "reorganize" if keeps_order(view) else "shuffle"


def _repeats(index: Index) -> bool:
    """Whether the index is a table that names an element twice."""
    return any(isinstance(atom, Lookup) and len(set(atom.table)) < len(atom.table) for atom, _ in index.terms)

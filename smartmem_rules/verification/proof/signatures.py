"""What signatures and patterns say of attributes: which names count, and how long lists of axes are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.patterns import operators_of
from smartmem_rules.tensor.instantiate import names_in
from smartmem_rules.verification.instances.attributes import Formal
from smartmem_rules.verification.instances.draws import Extents, bind_extents, formals_of
from smartmem_rules.verification.semantics.terms import Term


def has_list_as_default(formal: Formal) -> bool:
    """Whether the default of an attribute is a list."""
    default = formal.default
    return isinstance(default, ast.Call) or (isinstance(default, ast.Name) and default.id != "none")


@lru_cache(maxsize=256)
def bound_names(pattern: ast.Pattern) -> frozenset[str]:
    """The names that a left side binds to tensors and attributes."""
    found: set[str] = set()
    for part in operators_of(pattern):
        found |= {a.name for a in part.arguments if isinstance(a, ast.PatternVariable)}
        found |= {a.value.id for a in part.attributes if isinstance(a.value, ast.Name)}
    return frozenset(found)


def list_lengths(operator: ast.Operator, operands: Sequence[Term | None]) -> set[int]:
    """How many axes the first list of a signature has; the whole operands, where there is none."""
    formals = formals_of(operator, len(operands)) or []
    for formal, operand in zip(formals, operands, strict=True):
        known: Extents = {}
        if operand is not None:
            bind_extents(formal, operand.type.shape, known)
        lists = {len(value) for value in known.values() if isinstance(value, tuple)}
        if lists:
            return lists
    return {len(operand.type.shape) for operand in operands if operand is not None}


@lru_cache(maxsize=256)
def used_names(operator: ast.Operator) -> frozenset[str]:
    """The names that what an operator computes depends on."""
    parts: list[ast.Expression] = [*operator.requires, *(let.value for let in operator.lets)]
    parts += [equation.body for equation in operator.equations]
    parts += [b.bound for equation in operator.equations for b in equation.indices if b.bound is not None]
    parts += [item for output in operator.outputs for item in output.type.shape]
    found: set[str] = set()
    for part in parts:
        found |= names_in(part)
    return frozenset(found)

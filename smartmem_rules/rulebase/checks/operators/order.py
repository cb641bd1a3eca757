"""What is meant by names of a definition that have no meaning where they stand: those of later lines, and others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import Fix, advice, inserted, replacement
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.vocabulary import GUARD_FUNCTIONS

_OPTIONAL = ("optional", "option", "maybe")


def in_let(found: Diagnostic, let: s.Let, lets: Sequence[s.Let]) -> Diagnostic:
    """A message about a name in a `let` that this `let`, or a later one, names."""
    word = _unknown(found)
    if word == let.name:
        return replace(found, fix=advice(f"`{word}` is what this `let` names: write what it is computed from"))
    if word in {one.name for one in lets}:
        return replace(found, fix=advice(f"`let {word}` stands below: write it before this one"))
    return found


def in_equation(found: Diagnostic, equation: s.EquationSyntax, tensors: Collection[str]) -> Diagnostic:
    """A message about a tensor in an equation that this equation, or a later one, computes."""
    word = _unknown(found)
    if word == equation.tensor:
        said = f"`{word}` is what this equation computes: `scan {word}[t < T, ...] = ...` reads earlier steps of itself"
        return replace(found, fix=advice(f"{said}, other equations read other tensors"))
    if word in tensors:
        return replace(found, fix=advice(f"`{word}` is computed below: write its equation before this one"))
    return found


def _unknown(found: Diagnostic) -> str:
    """The name that a message says is not defined."""
    return found.message.split("`")[1] if found.code == Code.UNDEFINED_NAME and "`" in found.message else ""


def asked_of_tensors(found: Diagnostic, function: s.Function | s.Predicate) -> Diagnostic:
    """A message about a question of tensors, which only predicates ask."""
    asks = found.code == Code.UNDEFINED_FUNCTION and found.message.split("`")[1] in GUARD_FUNCTIONS
    if not asks or not isinstance(function, s.Function):
        return found
    return replace(found, fix=advice(f"only predicates ask that: write `predicate {function.name}(...) = ...`"))


def with_dtype_meant(found: Diagnostic, kind: s.TensorType, operator: s.Operator) -> Diagnostic:
    """A message about an element type that there is not."""
    optional = _optional_meant(kind)
    if optional is not None:
        return replace(found, fix=optional, note=None)
    fix = found.fix if found.fix.edits or not kind.dtype.isupper() else _variable_declared(kind.dtype, operator)
    return replace(found, fix=fix)


def index_of_extent(binder: s.Binder, extents: Collection[str]) -> Fix | None:
    """`m[N, J] = ...`, extents where the indices of a local tensor stand."""
    if binder.name not in extents or not binder.name[:1].isupper():
        return None
    star = "*" if binder.kind == "loops" else ""
    new = f"{star}{binder.name.lower()} < {binder.name}"
    said = f"`{binder.name}` is an extent, and an index runs below it: write `{new}`"
    return replacement(said, binder.span, new)


def _optional_meant(kind: s.TensorType) -> Fix | None:
    """`b: Optional[T[J]]`, as other languages write an input that may be absent."""
    if kind.dtype.lower() not in _OPTIONAL or len(kind.shape) != 1:
        return None
    new = f"{print_expression(kind.shape[0])}?"
    return replacement(f"an input that may be absent has `?` behind its type: write `{new}`", kind.span, new)


def _variable_declared(name: str, operator: s.Operator) -> Fix:
    """How a variable of dtypes is declared."""
    said = f"declare it, `operator {operator.name}<{name}: number>(...)`, or write a dtype or `T`, any number"
    if operator.dtypes:
        return advice(said)
    return inserted(said, operator.place("name"), f"<{name}: number>")

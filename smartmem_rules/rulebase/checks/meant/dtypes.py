"""Element types that are written as something else than their names."""

from __future__ import annotations

from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import Fix, advice, any_of, replacement, spelling
from smartmem_rules.language.printing.other_functions import dtype_elsewhere, dtype_of_onnx
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.vocabulary import DTYPES


def dtype_meant(asked: s.Call, other: s.Expression) -> Fix:
    """The name of the element type in place of what `dtype` is compared with.

    Args:
        asked: `dtype(x)`.
    """
    shown = print_expression(asked)
    if isinstance(other, s.ListOf):
        return advice(f"ask whether it is one of them: `contains({print_expression(other)}, {shown})`")
    if isinstance(other, s.Number) and other.value in (4, 8, 16, 32, 64):
        first, *others = sorted((one for one in DTYPES if one.endswith(f"t{other.value}")), key=_floats_first)
        names = " or ".join(f'`"{one}"`' for one in others)
        return advice(f'write the name of the type of {other.value} bits, `"{first}"`, or {names}')
    known = dtype_of_onnx(other)
    if known is not None:
        return replacement(f'write the name of the type: `"{known}"`', other.span, f'"{known}"')
    return advice('write the name of a type, such as `"float32"`')


def bare_dtype(name: s.Name) -> Fix | None:
    """The dtype that other languages call by a name."""
    own = dtype_elsewhere(name.id)
    return None if own is None else replacement(f"the dtype is called `{own}` here: write it", name.span, own)


def with_dtype_of_cast(found: Diagnostic, call: s.Call) -> Diagnostic:
    """A message about a name that is not known, with the dtypes where the name stands for that of a cast."""
    if call.function not in ("cast", "bitcast") or len(call.arguments) != 2 or found.code != Code.UNDEFINED_NAME:
        return found
    name = call.arguments[1]
    if not isinstance(name, s.Name) or found.span != name.span:
        return found
    listed = any_of(sorted(DTYPES - {"string"}, key=_floats_first), len(DTYPES))
    fix = bare_dtype(name) or spelling(name.id, DTYPES, name.span)
    return replace(found, fix=fix or advice(f"write a dtype, or that of an operand, `dtype(x)`: {listed}"))


def _floats_first(name: str) -> tuple[bool, bool, str]:
    return not name.startswith("float"), name.startswith("u"), name

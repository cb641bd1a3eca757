"""Elements that a definition computes with although their type, or one that it admits, has no such arithmetic."""

from __future__ import annotations

from collections.abc import Iterator

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import advice, inserted, replacement
from smartmem_rules.language.vocabulary import ELEMENT_FUNCTIONS, IMPLICIT_DTYPE_VARIABLE
from smartmem_rules.tensor.types import NARROW

_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "**"})
_CONVERTING = frozenset({"cast", "bitcast", "float", "isnan", "isinf", "select"})
_OF_FLOATS = frozenset({
    "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "recip", "erf", "sigmoid", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
})  # fmt: skip
"""Functions whose values are fractions, so that of whole numbers they would have to be rounded."""


def check_arithmetic(operator: s.Operator) -> Iterator[Diagnostic]:
    """Narrow operands in arithmetic, and functions of floats on operands that may be integers; each type once."""
    classes = {variable.name: variable.classes for variable in operator.dtypes}
    classes.setdefault(IMPLICIT_DTYPE_VARIABLE, ("number",))
    dtypes = {item.name: item.type.dtype for item in operator.inputs if item.type is not None}
    told: set[str] = set()
    for equation in operator.equations:
        for node in nodes(equation.body):
            for part in _computed_with(node):
                name = _tensor(part)
                dtype = dtypes.get(name or "", "")
                if dtype in told:
                    continue
                narrow = [one for one in classes.get(dtype, (dtype,)) if one == "narrow" or one in NARROW]
                if narrow:
                    told.add(dtype)
                    yield _narrow(operator, part, dtype, narrow[0])
            if isinstance(node, s.Call) and node.function in _OF_FLOATS:
                dtype = (_dtype(node.arguments[0], dtypes) if node.arguments else None) or ""
                whole = [one for one in classes.get(dtype, (dtype,)) if _is_whole(one)]
                if whole and dtype not in told:
                    told.add(dtype)
                    yield _whole(operator, node, dtype, whole[0], classes)


def _computed_with(node: s.Syntax) -> Iterator[s.Expression]:
    """The parts of a node with which it computes."""
    match node:
        case s.Binary(operator=word, left=left, right=right) if word in _ARITHMETIC:
            yield from (left, right)
        case s.Unary(operator="-", operand=operand):
            yield operand
        case s.Reduction(kind="sum" | "prod", body=body):
            yield body
        case s.Call(function=function, arguments=arguments) if function in ELEMENT_FUNCTIONS.keys() - _CONVERTING:
            yield from arguments
        case _:
            pass


def _tensor(part: s.Expression) -> str | None:
    """The tensor that is read at a place, one of a list of tensors as well."""
    base = part.base if isinstance(part, s.Subscript) else None
    if isinstance(base, s.Subscript):
        base = base.base
    return base.id if isinstance(base, s.Name) else None


def _dtype(part: s.Expression, dtypes: dict[str, str]) -> str | None:
    """The element type of an expression as the signature calls it, None where it is not one of its names."""
    match part:
        case s.Subscript():
            return dtypes.get(_tensor(part) or "")
        case s.Unary(operator="-", operand=operand):
            return _dtype(operand, dtypes)
        case s.Binary(operator=word, left=left, right=right) if word in _ARITHMETIC:
            return _dtype(left, dtypes) or _dtype(right, dtypes)
        case s.Conditional(then=then, otherwise=otherwise):
            return _dtype(then, dtypes) or _dtype(otherwise, dtypes)
        case s.Reduction(kind="sum" | "prod" | "max" | "min", body=body):
            return _dtype(body, dtypes)
    return None


def _is_whole(word: str) -> bool:
    return word in ("number", "any") or (word.startswith(("int", "uint")) and word not in NARROW)


def _narrow(operator: s.Operator, part: s.Expression, dtype: str, word: str) -> Diagnostic:
    read = _tensor(part)
    declared = "" if word == dtype else f"`{dtype}: {word}`: "
    message = f"{declared}{'these types are' if word == 'narrow' else f'{word} is'} stored and cast only"
    other = f"declare `{dtype}: float`" if declared else f"declare `{read}` with another type"
    fix = advice(f"{other}, or compute with `cast({read}[...], float32)`")
    return Diagnostic(Code.NO_ARITHMETIC, "error", message, part.span, fix=fix)


def _whole(
    operator: s.Operator, call: s.Call, dtype: str, word: str, classes: dict[str, tuple[str, ...]]
) -> Diagnostic:
    message = f"`{call.function}` gives fractions, but `{dtype}` admits integers"
    said = f"write `{operator.name}<{dtype}: float>(`"
    fix = advice(f"declare floats, or compute with `{call.function}(cast(..., float32))`")
    variable = next((one for one in operator.dtypes if one.name == dtype), None)
    if variable is not None and variable.classes == (word,):
        fix = replacement(said, variable.place(f"classes:{word}"), "float")
    elif dtype == IMPLICIT_DTYPE_VARIABLE and not operator.dtypes:
        fix = inserted(said, operator.place("name"), f"<{dtype}: float>")
    return Diagnostic(Code.NO_ARITHMETIC, "warning", message, call.span, fix=fix)

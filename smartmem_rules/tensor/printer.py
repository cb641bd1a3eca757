"""The text form of expressions and equations, in the notation of the rule language's definitions.

    y[i0, i1] : float32[4, 8] = sum(i2 < 16) a[i0, i2] * b[i2, i1]

Loop variables run from 0 to below the extents of the tensor on the left, those of a reduction to below the number that
stands there.  Sums and products are written with signs, other primitives as functions; a cast is a function of the
type's name.  Within `numbered` loop variables are called i0, i1, ... in the order in which they appear, so that the
text of a kernel does not depend on what was planned before it, and two plans can be compared line by line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smartmem_rules.tensor.atoms import Var
    from smartmem_rules.tensor.expr import Apply, Compare, Const, Equation, Expr, Logic, Reduce, Select
    from smartmem_rules.tensor.index import Index

SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and": "and", "or": "or",
}  # fmt: skip
"""Primitives of two operands that are written between them."""
_CHAINED = ("add", "mul", "and", "or")


_NUMBERED: ContextVar[dict[Var, str] | None] = ContextVar("_NUMBERED", default=None)


@contextmanager
def numbered() -> Iterator[None]:
    """Call loop variables i0, i1, ... in the order in which they are printed; an outer one stays in force."""
    if _NUMBERED.get() is not None:
        yield
        return
    token = _NUMBERED.set({})
    try:
        yield
    finally:
        _NUMBERED.reset(token)


def variable_text(variable: Var) -> str:
    """The name of a loop variable."""
    names = _NUMBERED.get()
    return variable.name if names is None else names.setdefault(variable, f"i{len(names)}")


def with_sign(text: str, coefficient: int, atom: str = "", composed: bool = False) -> str:
    """A sum with one more term: `i + 2*j`, `i - 1`; a `composed` atom gets brackets behind a coefficient.

    Args:
        atom: empty for a constant.
    """
    number = str(coefficient)
    negative = number.startswith("-") and not is_sum(number)
    size = number[1:] if negative else number
    factor = f"({size})" if is_sum(size) else size
    term = size
    if atom and size == "1":
        term = atom
    elif atom:
        term = f"{factor}*({atom})" if composed else f"{factor}*{atom}"
    if not text:
        return f"-{term}" if negative else term
    return f"{text} - {term}" if negative else f"{text} + {term}"


def is_sum(number: str) -> bool:
    """Whether the text of a number, which may be an expression of open extents, has several terms."""
    return " + " in number or " - " in number


def constant_text(constant: Const) -> str:
    """A number in its shortest form that reads back as the same; floats have a point or an exponent."""
    return repr(constant.value) if isinstance(constant.value, bool) else f"{constant.value!r}"


def element_text(tensor: str, indices: Sequence[Index]) -> str:
    """`x[i, j + 1]`, a scalar without brackets."""
    if not indices:
        return tensor
    return f"{tensor}[{', '.join(map(str, indices))}]"


def apply_text(expr: Apply) -> str:
    """`(a + b)`, or `exp(a)`."""
    function, arguments = expr.function, expr.arguments
    if function in ("cast", "bitcast"):
        name = expr.dtype if function == "cast" else f"bits_as_{expr.dtype}"
        return f"{name}({bare(str(arguments[0]))})"
    sign = SIGNS.get(function)
    if sign is None or len(arguments) != 2:
        return f"{function}({', '.join(bare(str(argument)) for argument in arguments)})"
    left, right = (_operand(argument) for argument in arguments)
    if function in _CHAINED and getattr(arguments[0], "function", None) == function:
        left = bare(left)
    return f"({left} {sign} {right})"


def select_text(expr: Select) -> str:
    """`(a if i < 3 else b)`."""
    return f"({bare(str(expr.then))} if {bare(str(expr.condition))} else {bare(str(expr.otherwise))})"


def reduce_text(expr: Reduce) -> str:
    """`sum(k < 16) a[k]`."""
    return f"{expr.kind}({bounds_text(expr.variables)}) {bare(str(expr.body))}"


def compare_text(condition: Compare) -> str:
    """`i < 3`."""
    return f"{condition.left} {condition.operator} {condition.right}"


def logic_text(condition: Logic) -> str:
    """`(i < 3 and j == 0)`."""
    parts = [str(operand) for operand in condition.operands]
    if condition.operator == "not":
        return f"not ({bare(parts[0])})"
    return f"({f' {condition.operator} '.join(parts)})"


def bounds_text(variables: Sequence[Var]) -> str:
    """`i < 3, j < 4`."""
    return ", ".join(f"{variable_text(variable)} < {variable.extent!r}" for variable in variables)


def equation_text(equation: Equation) -> str:
    """`y[i0] : float32[3] = ...`; the steps of a scan are marked."""
    word = "scan " if equation.scan else ""
    with numbered():
        variables = ", ".join(map(variable_text, equation.variables))
        return f"{word}{equation.tensor}[{variables}] : {equation.type} = {expression_text(equation.body)}"


def expression_text(expr: Expr) -> str:
    """An expression without the brackets around it."""
    return bare(str(expr))


def bare(text: str) -> str:
    """The text without one pair of brackets around all of it."""
    if not text.startswith("(") or not text.endswith(")"):
        return text
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return text[1:-1] if place == len(text) - 1 else text
    return text


def _operand(expr: Expr) -> str:
    """An operand of a sign; a reduction reaches as far as it can and needs brackets."""
    text = str(expr)
    return f"({text})" if hasattr(expr, "kind") else text

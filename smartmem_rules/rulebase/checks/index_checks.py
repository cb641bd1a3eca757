"""What is wrong with index rules: what the engine decides by intervals, and guards that nothing satisfies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice, behind, replacement

_LEFT = frozenset({"+", "*", "//", "%"})
_RIGHT = _LEFT | {"-"}
_COMPARED = frozenset({"<", "<=", ">", ">="})


def check_index_form(rule: s.IndexRule) -> Iterator[Diagnostic]:
    """Whatever interval arithmetic cannot decide."""
    constants = divisors(rule.left)
    yield from _side(rule.left, _LEFT, constants, "left")
    yield from _side(rule.right, _RIGHT, constants, "right")
    for guard in rule.guards:
        if isinstance(guard, s.Binary) and guard.operator in _COMPARED:
            yield from _bounded(guard.left, constants)
            yield from _bounded(guard.right, constants)
        elif not (
            isinstance(guard, s.Binary)
            and guard.operator in ("==", "!=")
            and is_constant(guard.left, constants)
            and is_constant(guard.right, constants)
        ):
            message = "a guard of an index rule compares sums of names and numbers, or constants for equality"
            yield replace(_problem(guard, message), fix=_bounds_meant(guard, constants))


def _bounds_meant(guard: s.Expression, constants: frozenset[str]) -> Fix:
    """A guard about the same name that compares."""
    names = [node.id for node in nodes(guard) if isinstance(node, s.Name)]
    name = next((one for one in names if one in constants), names[0] if names else "c")
    if name not in constants:
        return advice(
            f"write bounds of the index, `0 <= {name}`, `{name} < {min(constants, default='4')}`, or leave it out"
        )
    return advice(f"write `{name} > 0`, which holds of every divisor, or `{name} == 2`: one rule for each value")


def check_index_guards(rule: s.IndexRule) -> Iterator[Diagnostic]:
    """Guards that no integers satisfy."""
    from smartmem_rules.analysis.satisfiability import satisfiable, small_witness  # start-up time
    from smartmem_rules.rulebase.checks.deep.contradictions import contradiction_meant

    positive = divisors(rule.left)
    if rule.guards and not small_witness(rule.guards, positive) and satisfiable(rule.guards, positive) is False:
        first, last = rule.guards[0].span, rule.guards[-1].span
        span = first._replace(end_line=last.end_line, end_column=last.end_column)
        message = "no values satisfy these guards, so the rule never fires"
        note = "an SMT solver found the contradiction"
        fix = contradiction_meant(rule, rule.guards)
        yield Diagnostic(Code.VACUOUS_GUARD, "error", message, span, note=note, fix=fix)


def divisors(expr: s.Expression) -> frozenset[str]:
    """The names that multiply or divide: they stand for constants above zero."""
    found: set[str] = set()
    stack = [expr]
    while stack:
        current = stack.pop()
        if isinstance(current, s.Binary):
            if current.operator in ("*", "//", "%") and isinstance(current.right, s.Name):
                found.add(current.right.id)
            stack += [current.left, current.right]
    return frozenset(found)


def is_constant(expr: s.Expression, constants: frozenset[str]) -> bool:
    """Whether an expression is made of numbers and constants only."""
    match expr:
        case s.Number():
            return True
        case s.Name(id=name):
            return name in constants
        case s.Unary(operator="-", operand=operand):
            return is_constant(operand, constants)
        case s.Binary(left=left, right=right):
            return is_constant(left, constants) and is_constant(right, constants)
        case _:
            return False


def _side(expr: s.Expression, operators: frozenset[str], constants: frozenset[str], side: str) -> Iterator[Diagnostic]:
    match expr:
        case s.Name() | s.Number(value=int()):
            return
        case s.Unary(operator="-") if side == "right" and is_constant(expr, constants):
            return
        case s.Binary(operator=operator, left=left, right=right) if operator in operators:
            yield from _side(left, operators, constants, side)
            yield from _side(right, operators, constants, side)
        case _:
            if isinstance(expr, s.Binary) and expr.operator == "/":
                between = behind(expr.left.span)._replace(
                    end_line=expr.right.span.line, end_column=expr.right.span.column
                )
                message = "indices are whole numbers, but `/` gives fractions"
                fix = replacement("write `//`, which rounds down", between, " // ")
                yield Diagnostic(Code.INDEX_RULE_FORM, "error", message, expr.span, fix=fix)
                return
            yield _problem(expr, f"the {side} side may use {' '.join(sorted(operators))}, names and whole numbers")


def _bounded(expr: s.Expression, constants: frozenset[str]) -> Iterator[Diagnostic]:
    match expr:
        case s.Number() | s.Name():
            return
        case s.Unary(operator="-", operand=operand):
            yield from _bounded(operand, constants)
        case s.Binary(operator="+" | "-", left=left, right=right):
            yield from _bounded(left, constants)
            yield from _bounded(right, constants)
        case s.Binary(operator="*" | "//" | "%") if is_constant(expr, constants):
            return
        case _:
            yield _problem(expr, "intervals do not bound this")


def _problem(expr: s.Expression, message: str) -> Diagnostic:
    note = "names in divisors stand for constants, all others for indices with an interval"
    fix = advice("write it like `(c * i + r) // c => i where 0 <= r, r < c`")
    return Diagnostic(Code.INDEX_RULE_FORM, "error", message, expr.span, note=note, fix=fix)

"""All that can be known to be wrong with rule files before they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.operator_checks import check_function, check_operator, check_recursion
from smartmem_rules.language.rule_checks import (
    check_duplicate_rewrites,
    check_eliminate,
    check_index_rule,
    check_rewrite,
)

_Kind = TypeVar("_Kind", bound=s.Syntax)
Named = s.Function | s.Rewrite | s.Eliminate | s.IndexRule | s.Table | s.Block


def check(modules: Sequence[s.Module]) -> list[Diagnostic]:
    """The problems of modules that are used together, in the order of their text."""
    items = [item for module in modules for item in module.items]
    functions: dict[str, s.Function] = {}
    for function in _of(items, s.Function):
        functions.setdefault(function.name, function)
    operators: dict[str, list[s.Operator]] = {}
    for operator in _of(items, s.Operator):
        operators.setdefault(operator.name, []).append(operator)
    found = [*_check_names(items), *check_recursion(functions), *check_duplicate_rewrites(_of(items, s.Rewrite))]
    for item in items:
        if isinstance(item, s.Function):
            found += check_function(item, functions)
        elif isinstance(item, s.Operator):
            found += check_operator(item, functions)
        elif isinstance(item, s.Rewrite):
            found += check_rewrite(item, operators, functions)
        elif isinstance(item, s.Eliminate):
            found += check_eliminate(item, operators, functions)
        elif isinstance(item, s.IndexRule):
            found += check_index_rule(item, functions)
        elif isinstance(item, s.Table):
            found += _check_table(item)
    return _in_order_of_text(found, modules)


def _of(items: Iterable[s.Item], kind: type[_Kind]) -> list[_Kind]:
    return [item for item in items if isinstance(item, kind)]


def _in_order_of_text(found: Iterable[Diagnostic], modules: Sequence[s.Module]) -> list[Diagnostic]:
    place = {module.span.file: number for number, module in reversed(list(enumerate(modules)))}
    return sorted(found, key=lambda one: (place[one.span.file], one.span.line, one.span.column))


def _check_names(items: Iterable[s.Item]) -> Iterator[Diagnostic]:
    first: dict[tuple[str, str], s.Span] = {}
    for item in items:
        if not isinstance(item, Named):
            continue
        kind = _namespace(item)
        if (kind, item.name) in first:
            message = f"there is a {kind} `{item.name}` already"
            secondary = (first[kind, item.name], "the first is here")
            yield Diagnostic(Code.DUPLICATE_NAME, "error", message, item.span, secondary=secondary)
        first.setdefault((kind, item.name), item.span)


def _namespace(item: Named) -> str:
    """Rules of all sorts share one namespace, because they are switched off by name."""
    if isinstance(item, s.Block):
        return item.kind
    if isinstance(item, s.Function):
        return "function"
    return "table" if isinstance(item, s.Table) else "rule"


def _check_table(table: s.Table) -> Iterator[Diagnostic]:
    for what, names in (("row", table.rows), ("column", table.columns)):
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            message = f"table `{table.name}` has two {what}s `{name}`"
            yield Diagnostic(Code.REPEATED_LINE, "error", message, table.span)
    for row in dict.fromkeys(table.rows):
        for column in dict.fromkeys(table.columns):
            if (row, column) not in table.cells:
                message = f"table `{table.name}` has no cell for row `{row}` and column `{column}`"
                yield Diagnostic(Code.MISSING_CELL, "error", message, table.span)

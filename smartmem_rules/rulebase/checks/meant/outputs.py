"""What `Op(...)[1]` means: brackets choose elements, and the second output of an operator is `Op(...).1`."""

from __future__ import annotations

from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import advice, replacement
from smartmem_rules.language.printing.printer import print_pattern


def check_output_in_brackets(read: s.Expression, code: Code) -> Diagnostic | None:
    """The message about a term with a number in brackets; None where an expression is something else."""
    match read:
        case s.Subscript(base=s.Term(pattern=s.PatternOperator(output=None) as term), items=(s.Number(value=int(n)),)):
            pass
        case _:
            return None
    shown = print_pattern(replace(term, output=n))
    written_here = (read.span.line, read.span.column) <= (term.span.line, term.span.column) and (
        (term.span.end_line, term.span.end_column) <= (read.span.end_line, read.span.end_column)
    )
    fix = replacement(f"write `{shown}`", read.span, shown)
    if not written_here:
        fix = advice(f"leave `[{n}]` out here, and name that output in the `let`: `{shown}`")
    return Diagnostic(code, "error", f"an output of `{term.operator}` is not chosen by brackets", read.span, fix=fix)

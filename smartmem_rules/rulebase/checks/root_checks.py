"""What is wrong with the patterns of a rule that has several."""

from __future__ import annotations

from collections.abc import Iterator

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.roots import roots_of
from smartmem_rules.rulebase.patterns import joined_by


def check_roots(rule: s.Rewrite) -> Iterator[Diagnostic]:
    """Patterns that match everywhere, that are the same, or that share no tensor with the others."""
    if rule.part_of is None:
        return
    patterns = sorted(roots_of(rule.left), key=lambda pattern: (pattern.span.line, pattern.span.column))
    for place, pattern in enumerate(patterns):
        if not isinstance(pattern, s.PatternOperator):
            message = "one of the patterns is a single variable or number and would match everywhere"
            yield Diagnostic(Code.BARE_LEFT_SIDE, "error", message, pattern.span)
        elif pattern in patterns[:place]:
            message = "two patterns of the left side are the same, so they match one tensor"
            note = "leave one out, or give its operands other names"
            yield Diagnostic(Code.SAME_PATTERN, "error", message, pattern.span, note=note)
    _, apart = joined_by(patterns)
    for pattern in apart:
        message = "this pattern shares no tensor with the others, so nothing says which of its matches belong to theirs"
        note = "give a tensor of it the name of one of theirs, or make it a rule of its own"
        yield Diagnostic(Code.NOT_JOINED, "error", message, pattern.span, note=note)

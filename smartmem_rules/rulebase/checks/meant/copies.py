"""Rules that say the same as others: most are copies in which something was not changed yet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice

Operators = Mapping[str, Sequence[s.Operator]]
_WORD = re.compile(r"[a-z]+|(?<= )[-+*/](?= )")
_ENDINGS = ("", "s", "ed", "imum")
"""What an operator's name may end with where words speak of it."""


def copy_fix(later: s.Rewrite, earlier: s.Rewrite, operators: Operators) -> Fix:
    """What to do with a rule that says what an earlier one says."""
    kept = "leave one of the two out"
    if later.span.file != earlier.span.file:
        kept = f"leave it out, as `{earlier.name}` is loaded with it"
    meant = operator_meant(later, earlier, operators)
    if meant is not None:
        return advice(f"{meant}, or {kept}")
    return advice(f"if `{later.name}` is to say something else, write that into its sides or guards; if not, {kept}")


def operator_meant(one: s.Rewrite, other: s.Rewrite, operators: Operators) -> str | None:
    """What to write in which of two rules that say the same, where its name and comment speak of another operator."""
    swaps = {rule.name: list(_swaps(rule, beside, operators)) for rule, beside in ((one, other), (other, one))}
    (name, found), *more = [(name, found) for name, found in swaps.items() if found] or [("", [])]
    if more or len(found) != 1:
        return None
    new, old = found[0]
    return f"`{name}` speaks of {new}: write `{new}` in place of `{old}` there"


def _swaps(rule: s.Rewrite, beside: s.Rewrite, operators: Operators) -> Iterator[tuple[str, str]]:
    """The operators that only the words of `rule` speak of, each with one of its sides."""
    words, others = _words(rule), _words(beside)
    own = set(_spoken_of(words - others, operators))
    theirs = set(_spoken_of(others - words, operators))
    used = {
        node.operator for side in (rule.left, rule.right) for node in nodes(side) if isinstance(node, s.PatternOperator)
    }
    for new in sorted(own - used - theirs):
        for old in sorted(theirs & used):
            if _operands(operators[new]) & _operands(operators[old]):
                yield new, old


def _words(rule: s.Rewrite) -> set[str]:
    return set(_WORD.findall(f"{rule.name.replace('_', ' ')} {rule.comment} ".lower()))


def _spoken_of(words: Iterable[str], operators: Operators) -> Iterator[str]:
    """The operators that words name: by their names, by words that begin with these, by the sign of their equation."""
    called = {name.lower(): name for name in operators}
    for word in words:
        yield from (called[low] for end in _ENDINGS if (low := word.removesuffix(end)) in called)
        if not word.isalpha():
            yield from (name for name, overloads in operators.items() if word in map(_sign, overloads))


def _sign(operator: s.Operator) -> str | None:
    """The sign between the two operands of an operator that computes nothing else."""
    bodies = [equation.body for equation in operator.equations]
    match bodies:
        case [s.Binary(operator=sign, left=s.Subscript(), right=s.Subscript())]:
            return sign
    return None


def _operands(overloads: Sequence[s.Operator]) -> set[int]:
    return {len(one.inputs) for one in overloads}

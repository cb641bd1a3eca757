"""What is wrong with analyses, with the rules that derive their facts, and with guards that ask for them."""

from __future__ import annotations

from collections.abc import Iterator

from smartmem_rules.language import syntax as s
from smartmem_rules.language.analyses import INNER_NAMES, KIND, MERGE
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expansion import Names
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import advice, replacement, spelling
from smartmem_rules.rulebase.checks.meant.facts import fact_meant
from smartmem_rules.rulebase.checks.scope import head

_MERGES = {
    "and": "equal tensors would lose what is known of one of them, and facts only grow",
    "not": "it is no merge of two facts",
}


def check_analysis(analysis: s.Analysis) -> Iterator[Diagnostic]:
    """A kind or merge that there is not; what the condition reads is checked of the operator that it becomes."""
    if analysis.kind != KIND:
        message = f"an analysis is `{KIND}`, not `{analysis.kind}`: numbers that merge are not supported"
        place = analysis.place("kind")
        fix = replacement(f"write `{KIND}`", place, KIND)
        yield Diagnostic(Code.BAD_ANALYSIS, "error", message, place, fix=fix)
    yield from _check_meaning(analysis)
    if analysis.merge != MERGE:
        place = analysis.place("merge")
        why = _MERGES.get(analysis.merge, "facts of equal tensors become one by `or`, whichever comes first")
        message = f"a `{KIND}` analysis cannot `merge {analysis.merge}`: {why}"
        fix = replacement(f"write `{MERGE}`", place, MERGE)
        yield Diagnostic(Code.BAD_ANALYSIS, "error", message, place, fix=fix)


def _check_meaning(analysis: s.Analysis) -> Iterator[Diagnostic]:
    """Reads of a tensor: the condition is of one element, which has a name."""
    message = f"the condition is of one element, which is called `{analysis.parameter}` here"
    inner = {id(part) for node in nodes(analysis.meaning) if isinstance(node, s.Subscript) for part in nodes(node)}
    for node in nodes(analysis.meaning):
        outermost = isinstance(node, s.Subscript) and node.base != s.Name(node.span, analysis.parameter)
        alone = isinstance(node, s.Name) and node.id in INNER_NAMES and id(node) not in inner
        if (outermost or alone) and analysis.parameter not in INNER_NAMES:
            fix = replacement(f"write `{analysis.parameter}`", node.span, analysis.parameter)
            yield Diagnostic(Code.BAD_ANALYSIS, "error", message, node.span, fix=fix)


def check_derived(rule: s.Rewrite, names: Names) -> Iterator[Diagnostic]:
    """A fact that no analysis says, or of what is no application of an operator."""
    if rule.derives is None:
        return
    assert isinstance(rule.left, s.PatternOperator)
    place, (term,) = rule.place("analysis"), rule.left.arguments
    if rule.derives not in names.analyses:
        message = f"there is no analysis `{rule.derives}`"
        declared = f"declare it: `analysis {rule.derives}(e: float): bool merge or means e >= 0`"
        fix = spelling(rule.derives, names.analyses, place) or advice(declared)
        yield Diagnostic(Code.BAD_ANALYSIS, "error", message, place, fix=fix)
    elif not isinstance(term, s.PatternOperator):
        fix = advice(f"name the operator: `derive {rule.derives} Relu(x)`")
        message = "a rule derives facts of applications of operators; those of constants are known by their elements"
        yield Diagnostic(Code.BARE_LEFT_SIDE, "error", message, term.span, fix=fix)


def check_facts(
    item: s.Rewrite | s.Eliminate | s.Keep | s.Function | s.Predicate, names: Names
) -> Iterator[Diagnostic]:
    """Facts that are asked for where the e-graph cannot be asked."""
    whole: set[int] = set()
    if isinstance(item, s.Rewrite):
        bound = {node.name for node in nodes(item.left) if isinstance(node, s.PatternVariable)}
        whole = {id(guard) for guard in item.guards if _asks_of_one(guard, bound)}
    for node in nodes(item):
        if not isinstance(node, s.Call) or node.function not in names.analyses or len(node.arguments) != 1:
            continue  # a wrong number of arguments has its own message
        if id(node) not in whole:
            message = f"`{node.function}` is asked of one tensor of the left side, as a guard of its own of a rewrite"
            fix = fact_meant(item, node, names)
            place = head(node.span, node.function)
            yield Diagnostic(Code.FACT_IN_EXPRESSION, "error", message, place, fix=fix)


def _asks_of_one(guard: s.Expression, bound: set[str]) -> bool:
    if not isinstance(guard, s.Call) or len(guard.arguments) != 1:
        return False
    subject = guard.arguments[0]
    return isinstance(subject, s.Name) and subject.id in bound

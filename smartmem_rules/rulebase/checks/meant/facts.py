"""What an author means who asks for a fact where the e-graph cannot be asked, such as under `not`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expansion import Names
from smartmem_rules.language.expressions import conjuncts, nodes
from smartmem_rules.language.fixes import Fix, advice, replacement
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.rebuilding import rebuilt


def fact_meant(item: s.Rewrite | s.Eliminate | s.Keep | s.Function | s.Predicate, node: s.Call, names: Names) -> Fix:
    """How to ask for a fact that is asked for in another place than a guard of its own of a rewrite."""
    if isinstance(item, s.Eliminate | s.Keep):
        return advice("a guard of a rewrite can ask for it: here, leave it out")
    if not isinstance(item, s.Rewrite):
        return advice(f"write `where {node.function}(x), ...` in the rewrites that need it, and leave it out here")
    tensors = {part.name for part in nodes(item.left) if isinstance(part, s.PatternVariable)}
    asked = node.arguments[0]
    of_one = isinstance(asked, s.Name) and asked.id in tensors
    guard = next((one for one in conjuncts(*item.guards) if any(part is node for part in nodes(one))), None)
    if guard is not None and of_one:
        wanted = _whether_known(guard, node)
        if wanted and guard is not node:
            shown = print_expression(node)
            return replacement(f"write `{shown}`: a fact is known or not", guard.span, shown)
        if wanted is False:
            own = any(guard is one for one in item.guards)
            return advice(_unknown(node, names, "" if own else ", with a comma for `and`"))
    shown = print_expression(node) if of_one else f"{node.function}(x)"
    said = f"write `where {shown}, ...`, with commas between the guards"
    if guard is not None and _in_or(guard, node):
        said = f"{said}; the other case of `or` is a second rule"
    if guard is not None and any(isinstance(one, s.Unary) and one.operator == "not" for one in nodes(guard)):
        said = f"{said}, if the rule needs it; that it is not known cannot be asked for"
    return advice(said)


def _whether_known(guard: s.Expression, node: s.Call) -> bool | None:
    """Whether a guard asks that a fact is known, or that it is not; None where it asks more than that."""
    match guard:
        case s.Call():
            return True if guard is node else None
        case s.Unary(operator="not", operand=operand):
            inner = _whether_known(operand, node)
            return None if inner is None else not inner
        case s.Binary(operator="==" | "!=" as sign, left=left, right=s.Truth(value=truth)):
            inner = _whether_known(left, node)
            return None if inner is None else inner == (truth == (sign == "=="))
        case s.Binary(operator="==" | "!=" as sign, left=left, right=s.Number(value=0 | 1 as truth)):
            inner = _whether_known(left, node)
            return None if inner is None else inner == (bool(truth) == (sign == "=="))
        case _:
            return None


def _unknown(node: s.Call, names: Names, how: str) -> str:
    """What to write where a guard asks that a fact is not known: the fact, the opposite fact, or no guard."""
    analysis, asked = names.analyses[node.function], node.arguments[0]

    def of_asked(part: s.Syntax) -> s.Syntax | None:
        own = isinstance(part, s.Name) and part.id == analysis.parameter
        return replace(asked, span=part.span) if own else None

    meaning = rebuilt(analysis.meaning, of_asked)
    opposite = _opposite(meaning)
    known = _saying(names, _opposite(analysis.meaning), analysis)
    other = f"ask for {known}" if known else "ask for an analysis that means that"
    shown, tensor = print_expression(node), print_expression(asked)
    return (
        f"what is not known of a tensor may hold all the same: if the rule needs `{print_expression(meaning)}`, write "
        f"`{shown}`{how}; if it needs `{print_expression(opposite)}`, {other}; leave the guard out only if the rule "
        f"holds for every `{tensor}`"
    )


def _saying(names: Names, meaning: s.Expression, own: s.Analysis) -> str:
    """The analyses that mean a condition of an element, as a message names them."""
    found: Sequence[str] = sorted(
        one.name for one in names.analyses.values() if one.parameter == own.parameter and one.meaning == meaning
    )
    return " or ".join(f"`{one}`" for one in found)


def _opposite(meaning: s.Expression) -> s.Expression:
    """The negation of a condition; one without `not` holds of no NaN, and its negation does."""
    if isinstance(meaning, s.Unary) and meaning.operator == "not":
        return meaning.operand
    return s.Unary(meaning.span, "not", meaning)


def _in_or(guard: s.Expression, node: s.Call) -> bool:
    return not isinstance(guard, s.Unary) and any(
        isinstance(part, s.Binary) and part.operator == "or" and any(one is node for one in nodes(part))
        for part in nodes(guard)
    )

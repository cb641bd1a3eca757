"""Guards that call a function that there is not: which of the file's own predicates is meant."""

from __future__ import annotations

from collections.abc import Mapping

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.rulebase.checks.meant.arguments import UserFunction, fits_parameters

_SHOWN = 3
_ASKED = "did you mean "


def own_predicate(
    call: s.Call, functions: Mapping[str, UserFunction], kinds: Mapping[str, str], otherwise: Fix
) -> Fix | None:
    """The predicates of the file that the call's arguments would fit, before what else can be done."""
    own = [
        one
        for one in functions.values()
        if isinstance(one, s.Predicate) and one.span.file == call.span.file
        if len(one.parameters) == len(call.arguments) and fits_parameters(one, call.arguments, kinds)
    ]
    if any(f"`{one.name}`" in otherwise.text for one in own):
        return None  # it is said already
    own = [one for one in own if _may_say(one, otherwise.text)]
    if not 0 < len(own) <= _SHOWN:
        return None
    arguments = ", ".join(map(print_expression, call.arguments))
    shown = " or ".join(f"`{one.name}({arguments})`, defined in line {one.span.line}" for one in own)
    if otherwise.text.startswith(_ASKED):
        return advice(f"did you mean {shown}, or {otherwise.text.removeprefix(_ASKED)}")
    return advice(f"did you mean {shown}? if not, {otherwise.text}")


def _may_say(predicate: s.Predicate, meaning: str) -> bool:
    """Whether a predicate asks one of the functions by which a meaning is told; of others nothing is known."""
    if "(" not in meaning or meaning.startswith("define"):
        return True
    return any(f"{node.function}(" in meaning for node in nodes(predicate.body) if isinstance(node, s.Call))

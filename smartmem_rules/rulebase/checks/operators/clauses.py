"""What is wrong with what an operator says beside its definition: its reference and its costs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import advice, replacement, spelling
from smartmem_rules.language.vocabulary import COST_QUANTITIES
from smartmem_rules.rulebase.checks.scope import Scope

_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_QUANTITIES = {
    **dict.fromkeys(("flops", "flop", "ops", "macs", "work", "arithmetic", "gflops"), "operations"),
    **dict.fromkeys(("memory", "traffic", "size", "bandwidth"), "bytes"),
    **dict.fromkeys(("kernels", "dispatches", "calls"), "launches"),
}
"""What other systems call the quantities."""
_DOTTED = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\.([A-Za-z_]\w*)")


def check_reference(operator: s.Operator, reference: str) -> Iterator[Diagnostic]:
    """A reference that is not of the form `package.module:function`; nothing is imported to find out."""
    if _FUNCTION.fullmatch(reference):
        return
    place = operator.place("reference")
    dotted = _DOTTED.fullmatch(reference)
    fix = advice('write `reference "package.module:function"`: a module beside the rule file or an installed one')
    if dotted is not None and dotted[2] != "py":
        meant = f'"{dotted[1]}:{dotted[2]}"'
        fix = replacement(f"write `{meant}`: a colon stands before the function", place, meant)
    yield Diagnostic(Code.BAD_REFERENCE, "error", f'"{reference}" names no function of a module', place, fix=fix)


def check_costs(operator: s.Operator, scope: Scope) -> Iterator[Diagnostic]:
    """Costs that extraction does not count, that are given twice, or that use unknown names."""
    first: dict[str, s.Cost] = {}
    for cost in operator.costs:
        place = cost.place("name")
        if cost.quantity not in COST_QUANTITIES:
            meant = _QUANTITIES.get(cost.quantity.lower())
            fix = replacement(f"write `{meant}`", place, meant) if meant else None
            fix = fix or spelling(cost.quantity, COST_QUANTITIES, place)
            fix = fix or advice(f"write one of {', '.join(COST_QUANTITIES)}")
            message = f"extraction does not count `{cost.quantity}`"
            yield Diagnostic(Code.BAD_COST, "error", message, place, fix=fix)
        earlier = first.setdefault(cost.quantity, cost)
        if earlier is not cost:
            yield Diagnostic(
                Code.BAD_COST,
                "error",
                f"`cost {cost.quantity}` is given twice",
                place,
                secondary=(earlier.place("name"), "the first is here"),
                fix=replacement("leave it out", cost.span, ""),
            )
        yield from scope.problems(cost.value)

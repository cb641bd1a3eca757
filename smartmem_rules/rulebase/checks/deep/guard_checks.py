"""Guards that nothing satisfies: which of them, and what is known of what they compare."""

from __future__ import annotations

from collections.abc import Sequence

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import conjuncts, nodes
from smartmem_rules.language.fixes import Fix, advice, replacement
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.rulebase.checks.deep.contradictions import contradiction_meant

_LEAST = {"extent": ("an extent", 0), "rank": ("a rank", 0), "uses": ("the number of uses", 1), "count": ("a count", 1)}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": ">"}


def never_fires(
    rule: s.Rewrite | s.Eliminate | s.Keep,
    numbers: Sequence[int],
    parts: int,
    tie: str | None = None,
    free: Sequence[str] = (),
) -> Diagnostic:
    """A rule of which some parts of the guards contradict each other, or the left side.

    Args:
        rule: as its author wrote it.
        numbers: which parts do.
        parts: how many parts there are once predicates are written out.
        tie: what the left side demands, where the guards contradict that.
        free: extents of its tensors of which it demands nothing of the kind.
    """
    written = list(conjuncts(*rule.guards))
    meant = [written[number] for number in numbers] if len(written) == parts else list(rule.guards)
    note = "an SMT solver found the contradiction"
    if tie is not None:
        first, last = meant[0].span, meant[-1].span
        return Diagnostic(
            Code.VACUOUS_GUARD,
            "error",
            f"the left side demands `{tie}`, so the rule never fires",
            first._replace(end_line=last.end_line, end_column=last.end_column),
            note=_WHY_EXTENTS if _of_extents(tie) else "a list that orders axes has one entry for each axis",
            fix=_other_extents(free)
            if _of_extents(tie)
            else advice(f"write a guard that fits `{tie}`, or another list on the left side"),
        )
    if len(meant) == 1:
        (guard,) = meant
        message = "this guard never holds, so the rule never fires"
        return Diagnostic(Code.VACUOUS_GUARD, "error", message, guard.span, note=note, fix=_turned(guard))
    first, last = meant[0].span, meant[-1].span
    apart = written.index(meant[-1]) - written.index(meant[0]) >= len(meant)
    place = last if apart else first._replace(end_line=last.end_line, end_column=last.end_column)
    return Diagnostic(
        Code.VACUOUS_GUARD,
        "error",
        "no values satisfy these guards, so the rule never fires",
        place,
        secondary=(first, "together with this one") if apart else None,
        note=note,
        fix=contradiction_meant(rule, meant),
    )


_WHY_EXTENTS = "the operators of the left side have one name for both extents, so they are equal where it matches"


def _of_extents(tie: str) -> bool:
    return "extent(" in tie or "shape(" in tie


def _other_extents(free: Sequence[str]) -> Fix:
    """Other axes of the same tensors that the author may have meant."""
    others = f": `{'`, `'.join(free)}` {'are others' if len(free) > 1 else 'is another one'}" if free else ""
    return advice(f"compare extents that may differ{others}; or leave the guard out")


def _turned(guard: s.Expression) -> Fix:
    """What is known of the sides of a comparison, and the comparison turned round."""
    if not isinstance(guard, s.Binary) or guard.operator not in _TURNED:
        return advice("no value fulfils it: write another condition, or leave it out")
    last = _last_axis(guard)
    if last is not None:
        return last
    turned = print_expression(s.Binary(guard.span, _TURNED[guard.operator], guard.left, guard.right))
    for side in (guard.left, guard.right):
        if isinstance(side, s.Call) and side.function in _LEAST:
            what, least = _LEAST[side.function]
            if side.function == "uses" and guard.operator == "==":
                turned = f"{print_expression(side)} == 1"
            return advice(f"{what} is {least} or more: write `{turned}`, or leave it out")
    return advice(f"no value fulfils it: write `{turned}`, or leave it out")


def _last_axis(guard: s.Expression) -> Fix | None:
    """The axis that is meant where one behind the last is written: `rank(x)`."""
    for node in nodes(guard):
        match node:
            case (
                s.Call(function="extent", arguments=(s.Name() as tensor, axis))
                | s.Subscript(base=s.Call(function="shape", arguments=(s.Name() as tensor,)), items=(axis,))
            ):
                shown = f"rank({tensor.id})"
                if axis == s.Call(axis.span, "rank", (tensor,)):
                    last = f"{shown} - 1"
                    said = f"axes are counted from 0, so `{tensor.id}` has no axis `{shown}`: the last one is `{last}`"
                    return replacement(said, axis.span, last)
                if any(isinstance(part, s.Call) and part.function == "rank" for part in nodes(axis)):
                    return advice(f"the axes of `{tensor.id}` are 0 to `{shown} - 1`, or -1 to `-{shown}` from the end")
            case _:
                pass
    return None


def fits_nothing(rule: s.Rewrite, reason: str) -> Diagnostic:
    """A left side that has no value at the ranks which the guards name."""
    return Diagnostic(
        Code.VACUOUS_GUARD,
        "warning",
        f"no operands of this rank were found that the left side takes: {reason.partition(' (/')[0]}",
        rule.guards[0].span._replace(
            end_line=rule.guards[-1].span.end_line, end_column=rule.guards[-1].span.end_column
        ),
        secondary=(rule.left.span, "the left side is here"),
        fix=advice("write another rank in the guard, or other axes on the left side"),
    )

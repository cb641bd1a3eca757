"""Whether anything matches a left side under the guards of its rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from smartmem_rules.analysis.equal_extents import equal_extents, free_extents
from smartmem_rules.analysis.satisfiability import satisfiable
from smartmem_rules.analysis.types.facts import facts_of
from smartmem_rules.analysis.types.typing import ATTEMPTS, Solver
from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import conjuncts, nodes
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.tensor.instantiate import Definitions

_OF_RANKS = ("rank(", "out of range", " has rank ")
"""What messages say of operands whose rank does not fit, whatever their extents are."""
_OFTEN = 6
"""Uses of a left side that are drawn easily without its guards, where none is with them."""


def contradiction(base: Definitions, left: s.Pattern | None, guards: Sequence[s.Expression]) -> list[int]:
    """The numbers of parts of guards, as few as possible, that no values satisfy together; empty where some may.

    Args:
        base: the definitions, whose requirements tie attributes to operands.
        left: what the guards are about.
        guards: of which the parts are counted that `and` joins.
    """
    parts = list(conjuncts(*guards))
    given = [] if left is None else list(_demanded(base, left, guards))
    if not parts or satisfiable([*parts, *given]) is not False:
        return []
    kept = list(range(len(parts)))
    for number in range(len(parts)):
        fewer = [parts[one] for one in kept if one != number]
        if satisfiable([*fewer, *given]) is False:
            kept.remove(number)
    return kept


def tie(
    base: Definitions, left: s.Pattern, guards: Sequence[s.Expression], numbers: Sequence[int]
) -> tuple[str, list[str]] | None:
    """What the left side ties together so that some parts of the guards contradict it; None where it takes no part.

    With it come extents of the same tensors that it does not tie.
    """
    parts = list(conjuncts(*guards))
    kept = [parts[number] for number in numbers]
    if satisfiable(kept) is False:
        return None
    demanded = list(_demanded(base, left, guards))
    alone = [one for one in demanded if satisfiable([*kept, one]) is False]
    if not alone and satisfiable([*kept, *demanded]) is False:
        spoken = set(nodes(tuple(kept)))
        alone = [one for one in demanded if isinstance(one, s.Binary) and {one.left, one.right} <= spoken]
    for one in alone[:1]:
        return print_expression(one), free_extents(base, left, one, facts_of(tuple(guards)).ranks)
    return None


def _demanded(base: Definitions, left: s.Pattern, guards: Sequence[s.Expression]) -> Iterator[s.Expression]:
    """What the left side ties together, of that of which guards speak."""
    yield from _lengths(base, left)
    yield from equal_extents(base, left, guards, facts_of(tuple(guards)).ranks)


def _lengths(base: Definitions, left: s.Pattern) -> Iterator[s.Expression]:
    """That a list which orders the axes of a tensor has one entry for each of them."""
    for pattern in nodes(left):
        if not isinstance(pattern, s.PatternOperator):
            continue
        for attribute in pattern.attributes:
            places = {_ordered(operator, attribute.name) for operator in base.operators.get(pattern.operator, ())}
            place = min(places, key=lambda one: -1 if one is None else one) if len(places) == 1 else None
            operand = pattern.arguments[place] if place is not None and place < len(pattern.arguments) else None
            if not isinstance(operand, s.PatternVariable):
                continue
            rank = s.Call(pattern.span, "rank", (s.Name(pattern.span, operand.name),))
            if isinstance(attribute.value, s.Name):
                length: s.Expression = s.Call(pattern.span, "rank", (attribute.value,))
            elif isinstance(attribute.value, s.ListOf):
                length = s.Number(pattern.span, len(attribute.value.items))
            else:
                continue
            yield s.Binary(pattern.span, "==", rank, length)


def _ordered(operator: s.Operator, name: str) -> int | None:
    """The operand whose axes an attribute orders, by a requirement `sort(perm) == range(rank(S))`."""
    for part in conjuncts(*operator.requires):
        match part:
            case s.Binary(
                operator="==",
                left=s.Call(function="sort", arguments=(s.Name(id=ordered),)),
                right=s.Call(function="range", arguments=(s.Call(function="rank", arguments=(s.Name(id=extents),)),)),
            ) if ordered == name:
                tensors = [item for item in operator.inputs if item.constant is None]
                for place, item in enumerate(tensors):
                    if item.type is not None and item.type.shape == (s.Splat(item.span, s.Name(item.span, extents)),):
                        return place
            case _:
                pass
    return None


def permuting(base: Definitions) -> tuple[str, str] | None:
    """An operator that orders the axes of its operand by an attribute, and the name of that attribute."""
    for name, overloads in base.operators.items():
        for operator in overloads:
            for attribute in operator.attributes:
                if len(operator.inputs) != 1 or _ordered(operator, attribute.name) is None:
                    continue
                shape = [node.function for node in nodes(operator.outputs) if isinstance(node, s.Call)]
                if shape == ["permute"]:
                    return name, attribute.name
    return None


def spreading(base: Definitions) -> tuple[str, str] | None:
    """An operator that spreads its operand over a shape, and the name of that shape among its operands."""
    for name, overloads in base.operators.items():
        for operator in overloads:
            known = [item.name for item in operator.inputs if item.constant == "ints"]
            calls = [node for node in nodes(operator.outputs) if isinstance(node, s.Call)]
            if len(operator.inputs) != 2 or len(known) != 1 or [one.function for one in calls] != ["broadcast"]:
                continue
            if calls[0].arguments[-1] == s.Name(s.NOWHERE, known[0]) and not operator.attributes:
                return name, known[0]
    return None


def no_match(base: Definitions, left: s.Pattern, guards: tuple[s.Expression, ...]) -> str | None:
    """Why no operands of the ranks that guards name fit a left side, as far as trying tells; None where some do."""
    facts = facts_of(guards)
    tensors = {node.name for node in nodes(left) if isinstance(node, s.PatternVariable) and node.name != "_"}
    if not tensors or not tensors <= facts.ranks.keys():  # of the others too few ranks would be tried
        return None
    reasons: Counter[str] = Counter()
    for number in range(ATTEMPTS):
        reason = Solver.drawn(base, number, facts, left)
        if reason is None:
            return None
        if not any(clue in reason for clue in _OF_RANKS):
            return None
        reasons[reason] += 1
    free = facts_of(())
    drawn = sum(1 for number in range(ATTEMPTS) if Solver.drawn(base, number, free, left) is None)
    return reasons.most_common(1)[0][0] if drawn >= _OFTEN else None

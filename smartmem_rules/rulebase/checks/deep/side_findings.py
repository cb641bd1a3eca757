"""What is found out about the sides of a rewrite: whether types differ, what mends that, guards that never hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from itertools import permutations
from typing import TypedDict

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import conjuncts, nodes
from smartmem_rules.language.printing.printer import print_expression, print_pattern
from smartmem_rules.language.rebuilding import rebuilt
from smartmem_rules.tensor.instantiate import Definitions


class Change(TypedDict, total=False):
    """One thing that is changed on a right side, as it is kept on disk."""

    axes: tuple[str, str, list[int]]
    """The operator that orders axes, its attribute, and their order."""
    spread: tuple[str, str, str]
    """The operator that spreads a number, the name of the shape, and the tensor that has this shape."""
    operator: int
    """Which application is changed, counted from the left."""
    name: str
    value: str
    exchanged: bool
    instead: str
    """The attribute in whose place another one gets its value."""
    turned: list[str]
    """An operand, and the same with its axes in another order."""


class Finding(TypedDict, total=False):
    """What is found out about a rewrite, as it is kept on disk; it holds no places."""

    agreed: int
    proved: bool
    differs: str
    left: str
    right: str
    symbolic: list[str]
    unlike: bool
    mended: Change
    guard: str
    unnamed: list[str]
    """An attribute that the left side leaves open, its operator, and a value at which the sides differ."""
    vacuous: list[int]
    parts: int
    tie: str
    free: list[str]
    """Extents of the tensors of a tie that it does not make equal."""
    fits_nothing: str


_MOST_TRIED = 32
"""Changes of a right side, each of which is typed at many operands."""
_ENOUGH = 2
"""Uses at which sides agree that shall agree under a guard."""
_NUMBERS = (0, 1, -1, 2, -2, 3)


def rewrite_finding(base: Definitions, rule: s.Rewrite) -> Finding:
    """Whether the sides have one type, by proof, and where the question has no symbolic form, by trying."""
    from smartmem_rules.analysis.types.symbolic import prove_types  # start-up time
    from smartmem_rules.analysis.types.typing import ATTEMPTS, WANTED, check_types  # start-up time

    proof = prove_types(base, rule.left, rule.right, rule.guards)
    if proof is not None and proof.holds:
        found: Finding = {"agreed": 0, "proved": True}
        found |= _never(base, rule)
        return found if "vacuous" in found else found | _left_open(base, rule)
    # types that read differently do differ somewhere, unless a guard without a symbolic form excludes it
    wanted = ATTEMPTS if proof is not None else WANTED
    result = check_types(base, rule.left, rule.right, rule.guards, wanted)
    found = {"agreed": result.agreed}
    if result.differing is not None:
        found |= {"differs": result.differing, "left": result.left, "right": result.right}
        if proof is not None and proof.shown:
            found["symbolic"] = [proof.left, proof.right]
            found["unlike"] = _only_by_chance(proof.left, proof.right)
        for change, right in _changes(base, rule, found):
            again = check_types(base, rule.left, right, rule.guards)
            if again.differing is None and again.agreed:
                found["mended"] = change
                found["unlike"] = found.get("unlike") or "axes" in change
                break
        else:
            unnamed = _mended_by_naming(base, rule)
            if unnamed is not None:
                return found | {"unnamed": unnamed}
            if rule.part_of is not None:  # of several patterns: a guard would hide that right sides are exchanged
                return found
            guard = next((one for one in _guards(rule, found) if _excludes(base, rule, one)), None)
            if guard is not None:
                found["guard"] = print_expression(guard)
    elif not result.agreed:
        found |= _never(base, rule)
    if "differs" not in found and "vacuous" not in found:
        found |= _left_open(base, rule)
    return found


def _left_open(base: Definitions, rule: s.Rewrite) -> Finding:
    """A value of an attribute that decides a shape and that the left side does not name, at which the sides differ."""
    from smartmem_rules.analysis.types.typing import check_types  # start-up time

    for operator, attribute, other in _open_flags(base, rule):
        again = check_types(base, _naming(rule.left, operator, attribute.name, other), rule.right, rule.guards)
        if again.differing is not None:
            return {
                "agreed": 1,
                "differs": again.differing,
                "left": again.left,
                "right": again.right,
                "unnamed": [operator.operator, attribute.name, print_expression(other)],
            }
    return {}


def _mended_by_naming(base: Definitions, rule: s.Rewrite) -> list[str] | None:
    """An attribute that the left side does not name, at whose default the sides always have one type."""
    from smartmem_rules.analysis.types.typing import check_types  # start-up time

    for operator, attribute, other in _open_flags(base, rule):
        assert attribute.default is not None
        left = _naming(rule.left, operator, attribute.name, attribute.default)
        again = check_types(base, left, rule.right, rule.guards)
        if again.differing is None and again.agreed >= _ENOUGH:
            return [operator.operator, attribute.name, print_expression(other)]
    return None


def _open_flags(base: Definitions, rule: s.Rewrite) -> Iterator[tuple[s.PatternOperator, s.Attribute, s.Expression]]:
    """Flags that decide a shape and that the left side does not name, each with the value that is not its default."""
    for node in nodes(rule.left):
        if not isinstance(node, s.PatternOperator) or node.bundle is not None:
            continue
        named = {one.name for one in node.attributes}
        for operator in base.operators.get(node.operator, ())[:1]:
            for attribute in operator.attributes:
                other = _other_truth(attribute)
                if attribute.name not in named and other is not None and _decides_shape(operator, attribute.name):
                    yield node, attribute, other


def _naming(left: s.Pattern, operator: s.PatternOperator, name: str, value: s.Expression) -> s.Pattern:
    """A left side that names one more attribute."""
    made = replace(operator, attributes=(*operator.attributes, s.PatternAttribute(operator.span, name, value)))
    return rebuilt(left, lambda one: made if one is operator else None)


def _other_truth(attribute: s.Attribute) -> s.Expression | None:
    """The value of a flag that is not its default."""
    match attribute.default:
        case s.Number(value=0 | 1 as value) if attribute.kind == "int":
            return s.Number(attribute.span, 1 - value)
        case _:
            return None


def _decides_shape(operator: s.Operator, name: str) -> bool:
    wanted = {node.id for output in operator.outputs for node in nodes(output.type) if isinstance(node, s.Name)}
    for let in reversed(operator.lets):
        if let.name in wanted:
            wanted |= {node.id for node in nodes(let.value) if isinstance(node, s.Name)}
    return name in wanted


def _never(base: Definitions, rule: s.Rewrite) -> Finding:
    """What is known of guards that nothing satisfies."""
    from smartmem_rules.analysis.matches import contradiction, no_match, tie  # start-up time

    if not rule.guards:
        return {}
    core = contradiction(base, rule.left, rule.guards)
    if core:
        parts = sum(1 for _ in conjuncts(*rule.guards))
        tied = tie(base, rule.left, rule.guards, core)
        found: Finding = {"vacuous": core, "parts": parts}
        return found if tied is None else found | {"tie": tied[0], "free": tied[1]}
    reason = no_match(base, rule.left, rule.guards)
    return {} if reason is None else {"fits_nothing": reason}


def _only_by_chance(left: str, right: str) -> bool:
    """Whether two types, as they read for all operands, are one where extents happen to be equal, and nowhere else."""
    (_, _, one), (_, _, other) = left.partition("["), right.partition("[")
    pairs = list(zip(one.rstrip("]").split(", "), other.rstrip("]").split(", "), strict=False))
    plain = all(extent.isidentifier() for pair in pairs for extent in pair)
    return one.count(",") == other.count(",") and plain and any(first != second for first, second in pairs)


def _guards(rule: s.Rewrite, found: Finding) -> Iterator[s.Expression]:
    """Guards under which sides that sometimes agree may always do."""
    variables = [node.name for node in nodes(rule.left) if isinstance(node, s.PatternVariable) and node.name != "_"]
    names = [s.Name(rule.span, name) for name in dict.fromkeys(variables)] if found["agreed"] else []
    for one, other in permutations(names, 2):
        shapes = [s.Call(rule.span, "shape", (name,)) for name in (one, other)]
        if one.id < other.id and "broadcast" in found["right"]:
            yield s.Binary(rule.span, "==", *shapes)
        yield s.Binary(rule.span, "==", s.Call(rule.span, "broadcast", tuple(shapes)), shapes[1])
    ranks = [[_rank_is(name, rank) for name in names] for rank in (2, 1, 3, 4, 0)]
    yield from (guard for guards in ranks for guard in guards)
    yield from (reduce(lambda left, right: s.Binary(rule.span, "and", left, right), g) for g in ranks if len(g) > 1)


def _rank_is(name: s.Name, rank: int) -> s.Expression:
    return s.Binary(name.span, "==", s.Call(name.span, "rank", (name,)), s.Number(name.span, rank))


def _excludes(base: Definitions, rule: s.Rewrite, guard: s.Expression) -> bool:
    """Whether a guard leaves the uses at which the sides agree, and none of the others."""
    from smartmem_rules.analysis.types.typing import check_types  # start-up time

    again = check_types(base, rule.left, rule.right, (*rule.guards, guard))
    return again.differing is None and again.agreed >= _ENOUGH


def _changes(base: Definitions, rule: s.Rewrite, found: Finding) -> Iterator[tuple[Change, s.Pattern]]:
    """Right sides with one thing changed that authors mistake: an attribute, or the order of the axes."""
    made = [
        *_spread(base, rule),
        *_transposed(base, rule.right, found),
        *_other_attributes(base, rule),
        *_exchanged(base, rule.right),
        *_turned(base, rule),
    ]
    yield from made[:_MOST_TRIED]


def _spread(base: Definitions, rule: s.Rewrite) -> Iterator[tuple[Change, s.Pattern]]:
    """A number of the right side, spread over the shape of a tensor."""
    from smartmem_rules.analysis.matches import spreading  # start-up time

    found = spreading(base) if isinstance(rule.right, s.PatternNumber | s.PatternComputed) else None
    if found is None:
        return
    operator, shape = found
    for tensor in dict.fromkeys(node.name for node in nodes(rule.left) if isinstance(node, s.PatternVariable)):
        value = s.Call(rule.right.span, "shape", (s.Name(rule.right.span, tensor),))
        given = (s.PatternAttribute(rule.right.span, shape, value),)
        made = s.PatternOperator(rule.right.span, operator, (rule.right,), given, None, None, None)
        yield {"spread": (operator, shape, tensor)}, made


def _transposed(base: Definitions, right: s.Pattern, found: Finding) -> Iterator[tuple[Change, s.Pattern]]:
    from smartmem_rules.analysis.matches import permuting  # start-up time

    found_one = permuting(base)
    if found_one is None:
        return
    name, order = found_one
    if isinstance(right, s.PatternOperator) and right.operator == name:
        return  # whose order is changed instead
    left, other = (_extents(str(found[side])) for side in ("left", "right"))
    if left is None or other is None or len(left) > 4 or left == other or sorted(left) != sorted(other):
        return
    for perm in permutations(range(len(left))):
        if [other[axis] for axis in perm] == left:
            value = s.ListOf(right.span, tuple(s.Number(right.span, axis) for axis in perm))
            given = (s.PatternAttribute(right.span, order, value),)
            made = s.PatternOperator(right.span, name, (right,), given, None, None, None)
            yield {"axes": (name, order, list(perm))}, made


def _turned(base: Definitions, rule: s.Rewrite) -> Iterator[tuple[Change, s.Pattern]]:
    """An operand of the right side with its axes in an order that the rule writes elsewhere."""
    from smartmem_rules.analysis.matches import permuting  # start-up time

    found = permuting(base)
    if found is None:
        return
    name, order = found
    orders = [
        one
        for node in (*nodes(rule.left), *nodes(rule.right))
        if isinstance(node, s.PatternOperator) and node.operator == name
        for one in node.attributes
        if one.name == order and isinstance(one.value, s.ListOf)
    ]
    variables = [node for node in nodes(rule.right) if isinstance(node, s.PatternVariable)]
    for given in {print_expression(one.value): one for one in orders}.values():
        for variable in variables:
            made = s.PatternOperator(variable.span, name, (variable,), (given,), None, None, None)
            whole = rebuilt(rule.right, lambda node, old=variable, new=made: new if node is old else None)  # type: ignore[misc]
            yield {"turned": [variable.name, print_pattern(made)]}, whole


def _exchanged(base: Definitions, right: s.Pattern) -> Iterator[tuple[Change, s.Pattern]]:
    """Two operands of one operator in the other order."""
    operators = [node for node in nodes(right) if isinstance(node, s.PatternOperator)]
    for place, operator in enumerate(operators):
        commutes = any(one.commutative for one in base.operators.get(operator.operator, ()))
        if len(operator.arguments) == 2 and operator.arguments[0] != operator.arguments[1] and not commutes:
            made = replace(operator, arguments=operator.arguments[::-1])
            whole = rebuilt(right, lambda node, old=operator, new=made: new if node is old else None)  # type: ignore[misc]
            yield {"operator": place, "exchanged": True}, whole


def _extents(type_: str) -> list[str] | None:
    told = re.fullmatch(r"\w+\[([\d, ]*)\]", type_)
    return None if told is None else told[1].split(", ")


def _other_attributes(base: Definitions, rule: s.Rewrite) -> Iterator[tuple[Change, s.Pattern]]:
    on_left = [node for node in nodes(rule.left) if isinstance(node, s.PatternOperator)]
    operators = [node for node in nodes(rule.right) if isinstance(node, s.PatternOperator)]
    for place, operator in enumerate(operators):
        names = {one.name for one in operator.attributes}
        for attribute in operator.attributes:
            bound = [a.value for node in on_left for a in node.attributes if a.name == attribute.name]
            for value in (*(one for one in bound if one != attribute.value), *_other_values(attribute.value)):
                changed = replace(attribute, value=value)
                attributes = tuple(changed if one is attribute else one for one in operator.attributes)
                yield _changed(rule.right, place, operator, attributes, changed)
        for attribute in operator.attributes:
            for other in _of_one_kind(base, operator.operator, attribute.name, names):
                changed = replace(attribute, name=other)
                attributes = tuple(changed if one is attribute else one for one in operator.attributes)
                change, whole = _changed(rule.right, place, operator, attributes, changed)
                yield {**change, "instead": attribute.name}, whole
        known = {one.name for o in base.operators.get(operator.operator, ()) for one in o.attributes} - names
        for given in {a.name: a for node in on_left for a in node.attributes if a.name in known}.values():
            if operator.bundle is None:
                yield _changed(rule.right, place, operator, (*operator.attributes, given), given)


def _of_one_kind(base: Definitions, operator: str, name: str, written: set[str]) -> list[str]:
    """The other attributes of an operator that take the values of one, of those that a pattern does not write."""
    kinds = {one.name: one.kind for o in base.operators.get(operator, ()) for one in o.attributes}
    return [one for one, kind in kinds.items() if one not in written and kind == kinds.get(name)]


def _changed(
    right: s.Pattern,
    place: int,
    operator: s.PatternOperator,
    attributes: tuple[s.PatternAttribute, ...],
    new: s.PatternAttribute,
) -> tuple[Change, s.Pattern]:
    made = replace(operator, attributes=attributes)
    whole = rebuilt(right, lambda node: made if node is operator else None)
    return {"operator": place, "name": new.name, "value": print_expression(new.value)}, whole


def _other_values(value: s.Expression) -> Iterator[s.Expression]:
    """Numbers and lists of numbers near to one that an author wrote."""
    match value:
        case s.Number(value=int(number)):
            yield from (_number(value.span, one) for one in _NUMBERS if one != number)
        case s.Unary(operator="-", operand=s.Number(value=int(number))):
            yield from (_number(value.span, one) for one in _NUMBERS if one != -number)
        case s.ListOf(items=items) if all(isinstance(one, s.Number) for one in items):
            numbers = [one.value for one in items if isinstance(one, s.Number)]
            if sorted(numbers) == list(range(len(numbers))) and 1 < len(numbers) < 5:
                yield from (
                    s.ListOf(value.span, tuple(s.Number(value.span, axis) for axis in perm))
                    for perm in permutations(range(len(numbers)))
                    if list(perm) != numbers
                )
            elif len(numbers) == 1:
                yield from (s.ListOf(value.span, (_number(value.span, n),)) for n in _NUMBERS if n != numbers[0])
        case _:
            yield from _by_inverse(value)


def _by_inverse(value: s.Expression) -> Iterator[s.Expression]:
    """A value by the inverse of an order of axes: `p[0]` for `index_of(p, 0)`, `unpermute` for `permute`."""
    for node in nodes(value):
        match node:
            case s.Call(function="index_of", arguments=(s.Name() as order, place)):
                new: s.Expression = s.Subscript(node.span, order, (place,), None)
            case s.Subscript(base=s.Name() as order, items=(place,)) if not isinstance(place, s.Slice):
                new = s.Call(node.span, "index_of", (order, place))
            case s.Call(function="permute" | "unpermute" as function):
                new = replace(node, function="permute" if function == "unpermute" else "unpermute")
            case _:
                continue
        yield rebuilt(value, lambda one, old=node, new=new: new if one is old else None)  # type: ignore[misc]


def _number(span: s.Span, value: int) -> s.Expression:
    return s.Number(span, value) if value >= 0 else s.Unary(span, "-", s.Number(span, -value))

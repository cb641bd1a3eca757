"""Messages about sides of a rewrite whose types differ: whether they always do, and what mends that."""

from __future__ import annotations

import re
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice, replacement
from smartmem_rules.language.printing.printer import print_expression, print_pattern
from smartmem_rules.rulebase.checks.deep.side_findings import Finding

_OF_SEVERAL = advice("each pattern has the right side that stands at its place: give it the type of that pattern")


def sides_differ(written: s.Rewrite, found: Finding) -> Diagnostic:
    sometimes = bool(found["agreed"]) and not found.get("unlike")
    right = found["right"].removeprefix("none: ")
    made = f"the right side is {right}"
    if right != found["right"]:
        made = f"the right side cannot be made ({right})"
    note = f"with {found['differs']} the left side is {found['left']}, {made}"
    if "symbolic" in found:
        left, right = found["symbolic"]
        note = f"for all operands the left side is {left}, the right side {right}; {note}"
        right = found["right"].removeprefix("none: ")
    return Diagnostic(
        Code.SIDES_SOMETIMES_DIFFER if sometimes else Code.SIDES_DIFFER,
        "warning" if sometimes else "error",
        "the sides have different types",
        written.right.span,
        note=note,
        fix=_number_meant(written.right, right)
        or _right_meant(written.right, found)
        or (_OF_SEVERAL if written.part_of is not None else None)
        or advice(_guard_meant(found) if sometimes else _other_type(str(found["left"]), right)),
    )


def _right_meant(right: s.Pattern, found: Finding) -> Fix | None:
    """The change of the right side that was seen to give both sides one type."""
    if "unnamed" in found:
        of, flag, value = found["unnamed"]
        said = f"the left side takes any `{flag}` of `{of}`, such as `{flag} = {value}`"
        return advice(f"{said}: name it on the left, `{flag} = k`, and on the right")
    mended = found.get("mended")
    if mended is None:
        return None
    if "spread" in mended:
        name, shape, tensor = mended["spread"]
        shown = f"{name}({print_pattern(right)}; {shape} = shape({tensor}))"
        return replacement(f"a number has no axes: spread it, `{shown}`", right.span, shown)
    if "axes" in mended:
        name, order, perm = mended["axes"]
        shown = f"{name}({print_pattern(right)}; {order} = {perm})"
        return replacement(f"the axes stand in another order: write `{shown}`", right.span, shown)
    if "turned" in mended:
        operand, shown = mended["turned"]
        return advice(f"write `{shown}` for the operand `{operand}` of the right side: then both sides have one type")
    operator = [node for node in nodes(right) if isinstance(node, s.PatternOperator)][mended["operator"]]
    if "exchanged" in mended:
        shown = print_pattern(replace(operator, arguments=operator.arguments[::-1]))
        return advice(f"exchange the operands, `{shown}`: then both sides have one type")
    name, value = mended["name"], mended["value"]
    if "instead" in mended:
        other = next(one for one in operator.attributes if one.name == mended["instead"])
        was = f"{other.name} = {print_expression(other.value)}"
        said = f"write `{name} = {value}` for `{was}`: then both sides have one type"
        return replacement(said, other.span, f"{name} = {value}")
    given = next((one for one in operator.attributes if one.name == name), None)
    if given is not None:
        said = f"write `{name} = {value}`: then both sides have one type"
        return advice(said)
    return advice(f"give `{operator.operator}` the attribute `{name} = {value}`: then both sides have one type")


def _number_meant(right: s.Pattern, failure: str) -> Fix | None:
    """How a number of the right side, which has the element type of the left side, gets that of its neighbour."""
    told = re.search(r"operand \w+ of (\w+) is (\w+), another one \w+", failure)
    if told is None:
        return None
    for node in nodes(right):
        if not isinstance(node, s.PatternOperator) or node.operator != told[1]:
            continue
        numbers = [one for one in node.arguments if isinstance(one, s.PatternNumber) and float(one.value).is_integer()]
        others = [one for one in node.arguments if not isinstance(one, s.PatternNumber)]
        if len(numbers) == 1 and others:
            shown = print_pattern(numbers[0])
            new = f"CastLike({shown}, {print_pattern(others[0])})"
            said = f"the number {shown} takes the element type of the left side, {told[2]}: write `{new}`"
            return replacement(said, numbers[0].span, new)
    return None


def _guard_meant(found: Finding) -> str:
    narrow = _not_wider(found)
    if narrow is None and "guard" in found:
        return f"add the guard `{found['guard']}`: then both sides have one type"
    return narrow or "add a guard that excludes this"


def _not_wider(found: Finding) -> str | None:
    """The guard that excludes a use at which a tensor widens the left side beyond the only one on the right."""
    types = dict(re.findall(r"(\w+): (\w+\[[\d, ]*\])", found["differs"]))
    kept = [name for name, one in types.items() if one == found["right"]]
    wider = [name for name, one in types.items() if one == found["left"]]
    if len(kept) != 1 or len(wider) != 1 or found["left"].partition("[")[0] != found["right"].partition("[")[0]:
        return None
    (x,), (c,) = kept, wider
    extents, others = (re.findall(r"\d+", types[one].partition("[")[2]) for one in (c, x))
    if len(extents) > len(others) and set(extents) <= {"1"}:
        return f"`{c}` may have more axes than `{x}`: add the guard `rank({c}) <= rank({x})`"
    return f"`{c}` may spread `{x}`: add the guard `broadcast(shape({c}), shape({x})) == shape({x})`"


def _other_type(left: str, right: str) -> str:
    """How a right side gets the type of the left one; types are written as `float32[2, 3]`."""
    (dtype, _, shape), (other, _, other_shape) = left.partition("["), right.partition("[")
    if dtype != other and shape == other_shape:
        return f"the right side has to be {dtype}: put a `Cast` around it, or write an operator that gives {dtype}"
    if dtype == other and other_shape:
        return (
            "give the right side the shape of the left one: by `keepdims`, `axes`, `Reshape`, `Transpose` or `Expand`"
        )
    return "give the right side the shape and dtype of the left: by `keepdims`, `Reshape`, `Transpose` or `Cast`"

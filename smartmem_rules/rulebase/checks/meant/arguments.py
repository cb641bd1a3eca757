"""Calls with too few or too many arguments: which ones were meant, and what the others would be."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Edit, Fix, advice, before, behind, edit, replacement
from smartmem_rules.language.printing.builtin_docs import DOCS
from smartmem_rules.language.printing.other_functions import how_called
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.vocabulary import DTYPE_WORDS, Arity

UserFunction = s.Function | s.Predicate | s.Analysis
_OF_TENSORS = frozenset({"shape", "extent", "dtype", "constant", "value", "uses"})
_OF_EACH = frozenset({"constant", "present"})
_COMPARED = frozenset({"uses", "value", "dtype", "rank", "count"})
_OF_LISTS = frozenset({"prod", "sum_of", "sort", "cumsum", "reverse", "distinct"})
_WAYS = 3
"""Ways to write a call that are shown beside one another."""
_MOST = 8
"""Parameters or arguments that are put in order in all ways."""
_MEANINGS = {
    ("extent", "axis"): "which axis, such as `0`, or `-1` for the last one",
    **dict.fromkeys((("cast", "dtype"), ("bitcast", "dtype")), "the new element type, such as `float32` or `dtype(x)`"),
    **dict.fromkeys((("take", "axes"), ("drop", "axes"), ("put", "axes")), "the positions, such as `[0]`"),
    ("insert", "axes"): "the positions in the result, such as `[0]`",
    **dict.fromkeys((("put", "values"), ("insert", "values")), "what stands there, such as `[1]`"),
    **dict.fromkeys((("permute", "p"), ("unpermute", "p")), "the order, such as `[1, 0]`"),
    ("full", "v"): "what each element is",
    ("near", "b"): "the number that it is compared with",
    **dict.fromkeys((("contains", "v"), ("index_of", "v")), "what is looked for"),
    **dict.fromkeys((("ravel", "S"), ("unravel", "S")), "the shape, a list of extents"),
    ("parts", "separator"): 'what stands between the pieces, such as `","`',
    ("clamp", "low"): "the least that may come out",
    ("clamp", "high"): "the greatest that may come out",
    **dict.fromkeys((("ceil_div", "b"), ("mod", "y"), ("fmod", "y")), "the divisor"),
    ("pow", "y"): "the exponent",
    **dict.fromkeys((("shift_left", "b"), ("shift_right", "b")), "by how many places"),
    ("fma", "z"): "what is added",
}
"""What parameters of built-in functions are, whose names do not tell it."""


def kinds_of_operands(operator: s.Operator) -> dict[str, str]:
    """What the names of an operator's tensors and of the lists of extents in their shapes are."""
    found = {}
    for item in operator.inputs:
        if item.type is not None:
            found[item.name] = "tensor"
            lists = [extent.operand for extent in item.type.shape if isinstance(extent, s.Splat)]
            found.update({one.id: "list" for one in lists if isinstance(one, s.Name)})
    return found


def argument_fix(
    call: s.Call, arity: Arity, user: UserFunction | None, kinds: Mapping[str, str], names: Collection[str] = ()
) -> Fix:
    """How the call is written with as many arguments as its function takes."""
    if any(isinstance(argument, s.Splat) for argument in call.arguments):
        shown = f"write `{user.name}({', '.join(user.parameters)})`" if user is not None else f"give it {arity}"
        return (how_called(call.function) if user is None else None) or advice(shown)
    if user is not None:
        return _of_user(call, user, kinds, names)
    return _of_built_in(call, arity, kinds)


def check_arguments(
    call: s.Call, arity: Arity, user: UserFunction | None, kinds: Mapping[str, str], names: Collection[str] = ()
) -> Iterator[Diagnostic]:
    """A call with too few or too many arguments, or with the first two of them exchanged; `names` are known there."""
    yield from _argument_count(call, arity, user, kinds, names)
    yield from _dtype_first(call)


def _argument_count(
    call: s.Call, arity: Arity, user: UserFunction | None, kinds: Mapping[str, str], names: Collection[str]
) -> Iterator[Diagnostic]:
    count = len(call.arguments)
    spread = any(isinstance(argument, s.Splat) for argument in call.arguments)
    # `f(*list)` gives as many arguments as the list has elements.
    if arity.admits(count) or (spread and (arity.most is None or count - 1 <= arity.most)):
        return
    message = f"`{call.function}` takes {arity}, not {count}"
    secondary = (user.place("name"), "it is defined here") if user is not None else None
    fix = argument_fix(call, arity, user, kinds, names)
    yield Diagnostic(Code.ARGUMENT_COUNT, "error", message, call.span, secondary=secondary, fix=fix)


def _dtype_first(call: s.Call) -> Iterator[Diagnostic]:
    """`cast(int64, x)`: the value stands first."""
    if call.function not in ("cast", "bitcast") or len(call.arguments) != 2:
        return
    first, second = call.arguments
    if not isinstance(first, s.Name) or first.id not in DTYPE_WORDS or isinstance(second, s.Name | s.Text):
        return
    until = before(second.span)
    leading = first.span._replace(end_line=until.line, end_column=until.column)
    fix = edit(
        f"write `{call.function}(VALUE, {first.id})`: the value stands first",
        Edit(leading, ""),
        Edit(behind(second.span), f", {first.id}"),
    )
    message = f"`{call.function}` takes the value first, then its new element type"
    yield Diagnostic(Code.ARGUMENT_COUNT, "error", message, call.span, fix=fix)


def _of_built_in(call: s.Call, arity: Arity, kinds: Mapping[str, str]) -> Fix:
    given = [print_expression(argument) for argument in call.arguments]
    if call.function == "shape" and len(given) == 2:
        return replacement("write `extent(x, axis)`: the extent of one axis", _head(call), "extent")
    said = DOCS.get(call.function)
    if said is None or "), " in said[0] or "..." in said[0] or not given:
        return how_called(call.function) or advice(f"give it {arity}")
    if call.function == "wrap" and len(given) == 1:
        rank = _rank(kinds)
        return advice(f"write `wrap({given[0]}, {rank})`: the second is the number of axes")
    if len(given) < arity.least:
        parameters = said[0][said[0].index("(") + 1 : -1].split(", ")
        lacking = parameters[len(given) :]
        meanings = [f"{one} is {_MEANINGS[call.function, one]}" for one in lacking if (call.function, one) in _MEANINGS]
        if len(meanings) == len(lacking):
            shown = f"{call.function}({', '.join([*given, *lacking])})"
            return advice(f"write `{shown}`: {'; '.join(meanings)}")
    elif call.function in _OF_EACH:
        each = " and ".join(f"{call.function}({one})" for one in given)
        return replacement(f"write `{each}`", call.span, each)
    elif call.function in _COMPARED and len(given) == 2 and isinstance(call.arguments[1], s.Number | s.Text):
        return advice(
            f"write `{call.function}({given[0]}) == {given[1]}` to compare it, or `{call.function}({given[0]})`"
        )
    elif call.function in _OF_LISTS and len(given) > 1:
        return advice(f"write `{call.function}([{', '.join(given)}])` for a list of them; it takes one list: {said[1]}")
    elif arity.most is not None:
        kept, left = given[: arity.most], given[arity.most :]
        return advice(f"write `{call.function}({', '.join(kept)})` without `{'`, `'.join(left)}`: {said[1]}")
    return how_called(call.function) or advice(f"give it {arity}")


def _rank(kinds: Mapping[str, str]) -> str:
    """The number of axes of what is there, as an example."""
    for kind in ("list", "tensor"):
        fitting = sorted(name for name, own in kinds.items() if own == kind)
        if fitting:
            return f"rank({fitting[0]})"
    return "rank(x)"


def _of_user(call: s.Call, user: UserFunction, kinds: Mapping[str, str], names: Collection[str]) -> Fix:
    parameters, arguments = user.parameters, call.arguments
    ways = _placed(user, arguments, kinds)
    placed = ways[0]
    if len(arguments) < len(parameters):
        shown = ["..."] * len(parameters)
        for place, argument in zip(placed, arguments, strict=True):
            shown[place] = print_expression(argument)
        lacking = [one for place, one in enumerate(parameters) if place not in placed]
        if set(lacking) <= set(names):
            named = [parameters[place] if one == "..." else one for place, one in enumerate(shown)]
            whole = f"{user.name}({', '.join(named)})"
            return replacement(f"write `{whole}`, with what is called so here", call.span, whole)
        values = " and ".join(f"a value for `{one}`{_stands_in(one, user)}" for one in lacking)
        return advice(f"write `{user.name}({', '.join(shown)})` with {values}")
    given = [print_expression(argument) for argument in arguments]
    calls = [f"{user.name}({', '.join(given[place] for place in way)})" for way in ways]
    if 1 < len(calls) <= _WAYS:
        return advice(f"write {' or '.join(f'`{one}`' for one in calls)}")
    kept = [print_expression(arguments[place]) for place in placed]
    left = [print_expression(argument) for place, argument in enumerate(arguments) if place not in placed]
    shown_call = f"{user.name}({', '.join(kept)})"
    if isinstance(user, s.Analysis):
        return advice(f"write `{shown_call}`: a fact is asked of one tensor at a time")
    kind = "predicate" if isinstance(user, s.Predicate) else "function"
    return advice(f"write `{shown_call}`; if `{'`, `'.join(left)}` matters, give the {kind} one more parameter")


def _stands_in(parameter: str, user: UserFunction) -> str:
    """Where a parameter is used, as a clause behind its name."""
    body = user.meaning if isinstance(user, s.Analysis) else user.body
    parts = (node for node in nodes(body) if isinstance(node, s.Binary) and node.operator not in ("and", "or"))
    place = next((part for part in parts if s.Name(s.NOWHERE, parameter) in list(nodes(part))), None)
    return f", which stands in `{print_expression(place)}`" if place is not None else ""


def _placed(user: UserFunction, arguments: Sequence[s.Expression], kinds: Mapping[str, str]) -> list[tuple[int, ...]]:
    """Which parameters the arguments are for, or which arguments are for the parameters, in all ways that fit best."""
    parameters = user.parameters
    few, many = sorted((len(parameters), len(arguments)))
    if many > _MOST:
        return [tuple(range(few))]
    tensors = _tensors(user)
    short = len(arguments) < len(parameters)

    def worth(places: tuple[int, ...]) -> int:
        pairs = (
            [(parameters[place], arguments[number]) for number, place in enumerate(places)]
            if short
            else [(parameters[number], arguments[place]) for number, place in enumerate(places)]
        )
        named = sum(isinstance(argument, s.Name) and argument.id == one for one, argument in pairs) if short else 0
        return sum(_fits(one, argument, tensors, kinds) for one, argument in pairs) + 2 * named

    ways = list(combinations(range(many), few))
    best = max(map(worth, ways))
    return [way for way in ways if worth(way) == best]


def fits_parameters(user: UserFunction, arguments: Sequence[s.Expression], kinds: Mapping[str, str]) -> bool:
    """Whether as many arguments as there are parameters can be for them: what only tensors are asked takes tensors."""
    tensors = _tensors(user)
    return all(
        _fits(one, argument, tensors, kinds) >= 0
        for one, argument in zip(user.parameters, arguments, strict=True)
        if one in tensors
    )


def _fits(parameter: str, argument: s.Expression, tensors: frozenset[str], kinds: Mapping[str, str]) -> int:
    plain = not isinstance(argument, s.Name | s.Term)
    if parameter in tensors:
        return -4 if plain or kinds.get(getattr(argument, "id", ""), "tensor") != "tensor" else 0
    return -4 if kinds.get(getattr(argument, "id", "")) == "tensor" else 0


def _tensors(user: UserFunction) -> frozenset[str]:
    """The parameters that the body asks what only tensors are asked."""
    if isinstance(user, s.Analysis):
        return frozenset(user.parameters)
    asked = (
        node.arguments[0]
        for node in nodes(user.body)
        if isinstance(node, s.Call) and node.function in _OF_TENSORS and node.arguments
    )
    return frozenset(one.id for one in asked if isinstance(one, s.Name))


def _head(call: s.Call) -> s.Span:
    return call.span._replace(end_line=call.span.line, end_column=call.span.column + len(call.function))

"""Whether the lists of a definition act entry by entry: then lists of one entry stand for lists of any length.

`starts`, `ends`, `axes` and `steps` of a slice are such lists: entry j of each decides the index of the axis that entry
j of `axes` names, and nothing else. A definition counts as one of these only if all of it is made of what keeps entries
apart: arithmetic of lists entry by entry, `[f(s[j], t[j]) for j in rank(s)]`, the extents of the named axes, and `put`
of one value for each named axis into what is read and into the extents of what is computed.
"""

from __future__ import annotations

from collections.abc import Mapping

from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.instantiate import names_in

NUMBER = "number"
"""A number that no list decides, written in the text: it is the same for all entries."""
ENTRIES = "one value for each entry"
NAMED_AXES = "one axis for each entry"
BY_AXIS = "one value for each axis of the operand"
PLACED = "one value for each axis, those of the named axes by their entries"
ENTRY = "the value of the entry in hand"
FACT = "whether an operand is there"
_ARITHMETIC = frozenset({"+", "-", "*", "//", "%", "<", "<=", ">", ">=", "==", "!=", "and", "or"})
_BY_ENTRY = frozenset({"min", "max", "clamp", "ceil_div", "abs", "sign"})


class _NotByEntry(Exception):
    """Something may depend on other entries."""


@dataclass(frozen=True)
class _Kinds:
    """What the names in reach are, and the loop variable of a list that is built entry by entry."""

    names: Mapping[str, str]
    functions: Mapping[str, ast.Function]
    entry: str | None = None


def acts_by_entry(operator: ast.Operator, functions: Mapping[str, ast.Function]) -> bool:
    """Whether each entry of the lists of a definition acts on its own axis alone, whatever the others are.

    Such a definition has one operand and one output; its equation reads the operand once.
    """
    tensors = [item for item in operator.inputs if item.constant is None]
    lists = [item for item in operator.inputs if item.constant is not None]
    if len(tensors) != 1 or len(operator.outputs) != 1 or len(operator.equations) != 1:
        return False
    if operator.requires or operator.attributes or any(item.constant != "ints" for item in lists):
        return False
    shape = tensors[0].type.shape if tensors[0].type is not None else ()
    (equation,), (output,) = operator.equations, operator.outputs
    match shape, equation, output.type.shape:
        case (
            (ast.Splat(operand=ast.Name(id=extents)),),
            ast.EquationSyntax(
                indices=(ast.Binder(name=loops, kind="loops"),),
                body=ast.Subscript(items=(ast.Splat(operand=index),), default=None),
            ),
            (ast.Splat(operand=result),),
        ):
            names = {item.name: ENTRIES for item in lists} | {extents: BY_AXIS, loops: BY_AXIS}
        case _:
            return False
    try:
        for let in operator.lets:
            names[let.name] = _kind(let.value, _Kinds(names, functions))
        known = _Kinds(names, functions)
        return _kind(index, known) == PLACED and _kind(result, known) == PLACED
    except _NotByEntry:
        return False


def _kind(expr: ast.Expression, known: _Kinds) -> str:
    match expr:
        case ast.Number():
            return NUMBER
        case ast.Name(id=name) if name in known.names:
            return known.names[name]
        case ast.Unary(operand=operand):
            return _together(_kind(operand, known))
        case ast.Binary(operator=operator, left=left, right=right) if operator in _ARITHMETIC:
            return _together(_kind(left, known), _kind(right, known))
        case ast.Conditional(condition=condition, then=then, otherwise=otherwise):
            return _either(_kind(condition, known), _kind(then, known), _kind(otherwise, known))
        case ast.Subscript(base=base, items=(ast.Name(id=name),), default=None) if name == known.entry:
            if _kind(base, known) == ENTRIES:
                return ENTRY
        case ast.Comprehension(body=body, binders=(ast.Binder(kind="unrolled") as binder,), condition=None):
            is_of_entries = _is_rank_of(binder.bound, known, (ENTRIES, NAMED_AXES)) and known.entry is None
            if is_of_entries and _kind(body, _within(known, binder.name)) in (ENTRY, NUMBER):
                return ENTRIES
        case ast.Call(function=function, arguments=arguments):
            return _call(function, arguments, known)
        case _:
            pass
    raise _NotByEntry


def _within(known: _Kinds, entry: str) -> _Kinds:
    return _Kinds({n: k for n, k in known.names.items() if n != entry}, known.functions, entry)


def _call(name: str, arguments: tuple[ast.Expression, ...], known: _Kinds) -> str:
    match name, arguments:
        case "present", (ast.Name(id=subject),) if known.names.get(subject) == ENTRIES:
            return FACT
        case "wrap", (axes, bound) if _kind(axes, known) == ENTRIES and _is_rank_of(bound, known, (BY_AXIS,)):
            return NAMED_AXES
        case "range", (bound,) if _is_rank_of(bound, known, (ENTRIES,)):
            return NAMED_AXES
        case "ones" | "zeros", (bound,) if _is_rank_of(bound, known, (ENTRIES, NAMED_AXES)):
            return ENTRIES
        case "take", (items, axes) if (_kind(items, known), _kind(axes, known)) == (BY_AXIS, NAMED_AXES):
            return ENTRIES
        case "put", (items, axes, values):
            found = _kind(items, known), _kind(axes, known), _kind(values, known)
            if found == (BY_AXIS, NAMED_AXES, ENTRIES):
                return PLACED
        case _ if name in known.functions:
            function = known.functions[name]
            kinds = [_kind(argument, known) for argument in arguments]
            if len(kinds) == len(function.parameters) and known.entry is None:
                inner = dict(zip(function.parameters, kinds, strict=True))
                if names_in(function.body) & known.names.keys() <= inner.keys():
                    return _kind(function.body, _Kinds(inner, known.functions))
        case _ if name in _BY_ENTRY and len(arguments) > (name in ("min", "max")):  # of one list, the least entry
            return _together(*(_kind(argument, known) for argument in arguments))
        case _:
            pass
    raise _NotByEntry


def _is_rank_of(expr: ast.Expression, known: _Kinds, kinds: tuple[str, ...]) -> bool:
    match expr:
        case ast.Call(function="rank", arguments=(subject,)):
            return _kind(subject, known) in kinds
        case _:
            return False


def _together(*kinds: str) -> str:
    """The kind of arithmetic: of values of one entry, or of lists of them; a number spreads."""
    others = set(kinds) - {NUMBER}
    if not others:
        return NUMBER
    if others in ({ENTRIES}, {ENTRY}):
        return others.pop()
    raise _NotByEntry


def _either(condition: str, then: str, otherwise: str) -> str:
    """The kind of a choice: of one entry by what that entry is, or of all entries by what is there."""
    if condition == FACT and then == otherwise:
        return then
    if condition in (ENTRY, NUMBER):
        found = _together(then, otherwise)
        if found in (ENTRY, NUMBER):
            return ENTRY
    raise _NotByEntry

"""Overloads that are never reached, because those before them in their file accept all that they accept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import conjuncts, nodes
from smartmem_rules.language.fixes import advice
from smartmem_rules.language.rebuilding import rebuilt
from smartmem_rules.language.vocabulary import LIST_FUNCTIONS
from smartmem_rules.rulebase.identity import bindings
from smartmem_rules.tensor.binding import DTYPE_CLASSES

_MOST_CHOICES = 1024
"""Ways to choose the dtypes of an overload; where there are more, each earlier one is looked at alone."""
_Bound = dict[str, tuple[s.Expression, ...]]
"""The extents of the later overload that each extent and list of extents of the earlier one stands for."""


def check_overloads(overloads: Sequence[s.Operator]) -> Iterator[Diagnostic]:
    """An overload that earlier ones of its file always take the place of."""
    for number, later in enumerate(overloads):
        before = [one for one in overloads[:number] if one.span.file == later.span.file]
        hiding = [one for one in before if _takes_all(one, later)][:1] or _taking_all_together(before, later)
        if hiding:
            yield _never_reached(later, hiding)


def _never_reached(later: s.Operator, hiding: Sequence[s.Operator]) -> Diagnostic:
    place, first = later.place("name"), hiding[0]
    if len(hiding) > 1:
        lines = " and ".join(f"line {one.place('name').line}" for one in hiding)
        said = "this one is tried first; the overloads together accept the same"
        fix = advice(f"those of {lines} take all dtypes between them: put this one in front of them, or leave it out")
    elif first.place("name") == place:
        said = "this one is tried first and accepts the same"
        fix = advice("let its name be one that stands behind `for`: there it is another for each member")
    elif _takes_all(later, first):
        said = "this one is tried first and accepts the same"
        fix = advice("add a `require` to the earlier one, give this one another name, or leave it out")
    else:
        said = "this one is tried first and accepts the same and more"
        fix = advice("put this one in front of it: the first overload that accepts the operands is taken")
    message = f"this `{later.name}` is never reached"
    return Diagnostic(Code.SHADOWED_OVERLOAD, "warning", message, place, secondary=(first.place("name"), said), fix=fix)


def _takes_all(earlier: s.Operator, later: s.Operator) -> bool:
    taken = _dtypes_taken(earlier, later)
    return taken is not None and all(taken.values())


def _taking_all_together(before: Sequence[s.Operator], later: s.Operator) -> list[s.Operator]:
    """Earlier overloads that take all dtypes of a later one between them; none where they do not."""
    open_: set[tuple[str, ...]] | None = None
    found: list[s.Operator] = []
    for earlier in before:
        taken = _dtypes_taken(earlier, later)
        if taken is None:
            continue
        left = {dtypes for dtypes, fits in taken.items() if not fits}
        if open_ is None or open_ - left:
            found.append(earlier)
            open_ = left if open_ is None else open_ & left
    return found if open_ is not None and not open_ else []


def _dtypes_taken(earlier: s.Operator, later: s.Operator) -> Mapping[tuple[str, ...], bool] | None:
    """For each choice of the dtypes of a later overload, whether the earlier one takes it, too.

    None where it does not take the same shapes, attributes or names of ONNX.
    """
    if not all(any(_covers(one, other) for one in bindings(earlier)) for other in bindings(later)):
        return None
    if not _attributes_fit(earlier, later) or len(earlier.outputs) < len(later.outputs):
        return None
    operands, others = ([i for i in one.inputs if i.constant is None] for one in (earlier, later))
    if not _operands_fit(operands, others):
        return None
    bound = _Bound()
    pairs = [(one.type, other.type) for one, other in zip(operands, others, strict=False) if one.type and other.type]
    if not all(_extents_fit(one.shape, other.shape, bound) for one, other in pairs):
        return None
    if not _requirements_hold(earlier, later, bound):
        return None
    words = [(one.dtype, other.dtype) for one, other in pairs]
    variables = list(dict.fromkeys(other for _, other in words))
    choices = [sorted(_allowed(later, word)) for word in variables]
    if _number_of(choices) > _MOST_CHOICES:
        same = words == [(other, other) for _, other in words] and earlier.dtypes == later.dtypes
        return {("all",): same}
    return {
        dtypes: _dtypes_fit(earlier, words, dict(zip(variables, dtypes, strict=True))) for dtypes in product(*choices)
    }


def _number_of(choices: Sequence[Sequence[str]]) -> int:
    count = 1
    for one in choices:
        count *= len(one)
    return count


def _allowed(operator: s.Operator, word: str) -> frozenset[str]:
    classes = next((one.classes for one in operator.dtypes if one.name == word), None)
    if classes is None:
        return frozenset(DTYPE_CLASSES.get(word, DTYPE_CLASSES["number"]))
    return frozenset(dtype for one in classes for dtype in DTYPE_CLASSES.get(one, ()))


def _dtypes_fit(earlier: s.Operator, words: Sequence[tuple[str, str]], chosen: Mapping[str, str]) -> bool:
    """Whether an overload takes operands of the dtypes that were chosen for the later one."""
    declared = {one.name for one in earlier.dtypes}
    bound: dict[str, str] = {}
    for word, other in words:
        dtype = chosen[other]
        if dtype not in _allowed(earlier, word):
            return False
        if (word in declared or word not in DTYPE_CLASSES) and bound.setdefault(word, dtype) != dtype:
            return False
    return True


def _attributes_fit(earlier: s.Operator, later: s.Operator) -> bool:
    """Whether an overload takes all attributes and known operands of a later one, and needs none that it does not."""
    known, others = ({a.name: a.required for a in one.attributes} for one in (earlier, later))
    constants, other_constants = (
        {i.name: (i.constant, i.default is None and not i.optional) for i in one.inputs if i.constant is not None}
        for one in (earlier, later)
    )
    places, other_places = (
        [(n, i.name) for n, i in enumerate(one.inputs) if i.constant is not None] for one in (earlier, later)
    )
    if known.keys() < others.keys() or not others.keys() <= known.keys() or places != other_places:
        return False
    if any(kind != constants[name] for name, kind in other_constants.items()):
        return False
    return all(others.get(name, False) for name, required in known.items() if required)


def _operands_fit(earlier: Sequence[s.Input], later: Sequence[s.Input]) -> bool:
    """Whether an overload takes as many operands as a later one does, and may do without those that it does without."""
    if any(one.variadic for one in (*earlier, *later)):
        return [(i.type, i.optional, i.variadic) for i in earlier] == [(i.type, i.optional, i.variadic) for i in later]
    if len(earlier) < len(later) or not all(one.optional for one in earlier[len(later) :]):
        return False
    return all(one.optional or not other.optional for one, other in zip(earlier, later, strict=False))


def _extents_fit(earlier: Sequence[s.Expression], later: Sequence[s.Expression], bound: _Bound) -> bool:
    """Whether all shapes of one form are of another one, too; `bound` learns what stands for its names."""
    lists = [n for n, item in enumerate(earlier) if isinstance(item, s.Splat)]
    if not lists:
        return len(earlier) == len(later) and _bind_all(earlier, later, bound)
    if len(lists) > 1:
        return tuple(earlier) == tuple(later)
    before, behind = lists[0], len(earlier) - lists[0] - 1
    rest = later[before : len(later) - behind]
    ends = [*later[:before], *later[len(later) - behind :]]
    if before + behind > len(later) or any(isinstance(item, s.Splat) for item in ends):
        return False
    names = [*earlier[:before], *earlier[before + 1 :]]
    return _bind_all(names, ends, bound) and _bind_list(earlier[before], rest, bound)


def _bind_all(items: Sequence[s.Expression], others: Sequence[s.Expression], bound: _Bound) -> bool:
    return all(_bind(item, other, bound) for item, other in zip(items, others, strict=True))


def _bind(item: s.Expression, other: s.Expression, bound: _Bound) -> bool:
    if not isinstance(item, s.Name):
        return item == other and not any(isinstance(node, s.Name) for node in nodes(item))
    return not isinstance(other, s.Splat) and bound.setdefault(item.id, (other,)) == (other,)


def _bind_list(item: s.Expression, rest: Sequence[s.Expression], bound: _Bound) -> bool:
    assert isinstance(item, s.Splat)
    if not isinstance(item.operand, s.Name):
        return False
    return bound.setdefault(f"*{item.operand.id}", tuple(rest)) == tuple(rest)


def _requirements_hold(earlier: s.Operator, later: s.Operator, bound: _Bound) -> bool:
    """Whether what an overload requires follows from what a later one requires."""
    if _may_refuse(earlier):
        same = earlier.inputs == later.inputs and earlier.lets == later.lets
        return same and set(earlier.requires) <= set(later.requires)
    known = [part for one in later.requires for part in conjuncts(one)]
    wanted = [_in_other_words(part, bound) for one in earlier.requires for part in conjuncts(one)]
    own = {one.name for one in earlier.lets}
    if own and any(isinstance(node, s.Name) and node.id in own for node in nodes(tuple(wanted))):
        return earlier.lets == later.lets and set(earlier.requires) <= set(later.requires)
    return all(one in known or _follows(one, known) for one in wanted)


def _may_refuse(operator: s.Operator) -> bool:
    """Whether a definition may refuse operands by more than its signature and requirements, as far as is seen here."""
    types = tuple(one.type for one in operator.outputs)
    computed = {one.name for one in operator.lets} | {one.name for one in operator.attributes}
    computed |= {one.name for one in operator.inputs}
    if any(one.dtype in computed for one in types):
        return True
    for node in nodes((types, operator.lets, operator.requires)):
        if isinstance(node, s.Call) and (node.function == "fail" or node.function not in LIST_FUNCTIONS):
            return True
        if isinstance(node, s.Binary) and node.operator == "-":  # an extent below zero
            return True
    return False


def _in_other_words(part: s.Expression, bound: _Bound) -> s.Expression:
    """A requirement of the earlier overload in the names of the later one; the number of known axes is written out."""

    def change(node: s.Syntax) -> s.Syntax | None:
        match node:
            case s.Call(function="rank", arguments=(s.Name(id=name),)) if f"*{name}" in bound:
                return _rank_of(node, bound[f"*{name}"])
            case s.Name(id=name) if name in bound:
                return bound[name][0]
            case s.Name(id=name) if f"*{name}" in bound:
                return _list_of(node, bound[f"*{name}"])
            case _:
                return None

    return rebuilt(part, change)


def _rank_of(call: s.Call, extents: Sequence[s.Expression]) -> s.Expression:
    single = sum(not isinstance(one, s.Splat) for one in extents)
    number: s.Expression = s.Number(call.span, single)
    for one in extents:
        if isinstance(one, s.Splat):
            rank = s.Call(call.span, "rank", (one.operand,))
            number = s.Binary(call.span, "+", rank, number) if single else rank
    return number


def _list_of(name: s.Name, extents: Sequence[s.Expression]) -> s.Expression:
    if len(extents) == 1 and isinstance(extents[0], s.Splat):
        return extents[0].operand
    return s.ListOf(name.span, tuple(extents))


def _follows(wanted: s.Expression, known: Sequence[s.Expression]) -> bool:
    from smartmem_rules.analysis.satisfiability import satisfiable  # start-up time

    return satisfiable([*known, s.Unary(wanted.span, "not", wanted)]) is False


def _covers(one: s.OnnxBinding, other: s.OnnxBinding) -> bool:
    same = (one.domain, one.name) == (other.domain, other.name)
    ends = one.until is None or (other.until is not None and other.until <= one.until)
    return same and one.since <= other.since and ends

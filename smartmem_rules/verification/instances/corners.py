"""Choices that chance seldom makes: every overload, every word, an axis counted from the other end or put in front."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence

from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.patterns import run_time_arguments
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.expr import Reduce, walk
from smartmem_rules.verification.instances.case import Case, Choices, NoInstance
from smartmem_rules.verification.instances.roles import Role, operator_roles
from smartmem_rules.verification.instances.signature import Operators, possible, signatures
from smartmem_rules.verification.instances.wishes import Wishes
from smartmem_rules.verification.semantics.terms import Application, subterms

MOST_COMBINATIONS = 16
MOST_RANK = 5
MOST_NUMBER = 100
ANOTHER_WORD = "another word"
"""What an attribute is whose definition names one word alone."""


def overloads_together(left: ast.Pattern, operators: Operators, wishes: Wishes, source: random.Random) -> list[Choices]:
    """Which overload each operator of a left side is, in all combinations, or in some where there are many.

    Overloads that cannot take what guards want are left out. All extents are equal: an operand may then be taken for
    one of another rank, and nothing else tells.
    """
    places = dict(_overloads(left, "0", operators, wishes))
    combinations = list(itertools.product(*places.values()))
    if len(combinations) == 1:
        return []
    chosen = source.sample(combinations, min(len(combinations), MOST_COMBINATIONS))
    return [{**{f"overload:{p}": n for p, n in zip(places, numbers, strict=True)}, "alike": 2} for numbers in chosen]


def _overloads(
    pattern: ast.Pattern, path: str, operators: Operators, wishes: Wishes
) -> Iterator[tuple[str, Sequence[int]]]:
    if isinstance(pattern, ast.PatternOperator):
        arguments = run_time_arguments(pattern)
        try:
            found = signatures(operators.get(pattern.operator, ()), pattern.operator, len(arguments))
        except NoInstance:
            found = []
        yield path, possible(found, pattern, wishes, operators) or [0]
        for place, argument in enumerate(arguments):
            yield from _overloads(argument, f"{path}.{place}", operators, wishes)


def words_of(
    left: ast.Pattern, operators: Operators, functions: Mapping[str, ast.Function]
) -> list[tuple[str, str | int]]:
    """Each word that an attribute of the left side may be, and 0 and 1 of a switch; not those that the rule names."""
    found: dict[tuple[str, str | int], None] = {}
    stack = [left]
    while stack:
        pattern = stack.pop()
        if not isinstance(pattern, ast.PatternOperator):
            continue
        stack.extend(run_time_arguments(pattern))
        named = {a.name for a in pattern.attributes if not isinstance(a.value, ast.Name)}
        words: dict[str, dict[str | int, None]] = {}
        texts: set[str] = set()
        for overload in operators.get(pattern.operator, ()):
            roles = operator_roles(overload, functions)
            for attribute in overload.attributes:
                if attribute.name not in named:
                    words.setdefault(attribute.name, {}).update(dict.fromkeys(_words(attribute, roles)))
                    texts |= {attribute.name} if attribute.kind == "string" else set()
        for name, known in words.items():
            if len(known) == 1 and name in texts:
                known[ANOTHER_WORD] = None  # a definition that asks for one word has something else for all others
            if len(known) > 1:
                found.update(dict.fromkeys((name, word) for word in known))
    return list(found)


def _words(attribute: ast.Attribute, roles: Mapping[str, Role]) -> Sequence[str | int]:
    literals = roles[attribute.name].literals
    if attribute.kind == "string":
        return sorted(word for word in literals if isinstance(word, str))
    return (0, 1) if attribute.kind == "int" and literals and set(literals) <= {0, 1} else ()


def open_attributes(left: ast.Pattern, operators: Operators) -> list[tuple[str, ast.Attribute | ast.Input]]:
    """The attributes and compile-time operands that an operator of the left side leaves open, with its path.

    Not those of an operator with a name for the rest of its attributes, which says what they are; nor words, for which
    there are instances anyway.
    """
    found: list[tuple[str, ast.Attribute | ast.Input]] = []
    stack = [("0", left)]
    while stack:
        path, pattern = stack.pop()
        if not isinstance(pattern, ast.PatternOperator):
            continue
        stack.extend((f"{path}.{n}", one) for n, one in enumerate(run_time_arguments(pattern)))
        named = {a.name for a in pattern.attributes}
        for overload in operators.get(pattern.operator, ())[:1] if pattern.bundle is None else ():
            formals: list[ast.Attribute | ast.Input] = [
                *overload.attributes,
                *(i for i in overload.inputs if i.constant is not None),
            ]
            found += [(path, formal) for formal in formals if formal.name not in named and _is_numeric(formal)]
    return found


def _is_numeric(formal: ast.Attribute | ast.Input) -> bool:
    kind = formal.kind if isinstance(formal, ast.Attribute) else formal.constant
    return kind in ("int", "ints", "float", "floats")


def is_telling(formal: ast.Attribute | ast.Input, value: Value) -> bool:
    """Whether an attribute is there and not what it is where it is absent."""
    if isinstance(value, tuple):
        return len(value) > 0 and set(value) not in ({0}, {1}, {0.0}, {1.0})
    default = formal.default
    return value is not None and not (isinstance(default, ast.Number) and default.value == value)


NARROW = frozenset(["int8", "uint8"])


def sums_narrow(case: Case) -> bool:
    """Whether an instance sums up or multiplies integers of 8 bits: it takes many elements for that to wrap."""
    applied = [t for side in (case.left, case.right) if side is not None for t in subterms(side)]
    return any(
        isinstance(term, Application)
        and any(
            isinstance(node, Reduce) and node.kind in ("sum", "prod") and node.dtype in NARROW
            for equation in term.instance.equations
            for node in walk(equation.body)
        )
        for term in applied
    )


def has_word(case: Case, word: tuple[str, str | int]) -> bool:
    """Whether an attribute of an operator of the left side is a word."""
    name, value = word
    applied = (term for term in subterms(case.left) if isinstance(term, Application))
    return any(term.instance.values.get(name) == value for term in applied)


def counted_otherwise(case: Case, source: random.Random) -> Choices | None:
    """The choices of a case with one axis counted from the other end, by the rank of one of its tensors."""
    axes = [slot for slot, value in case.choices.items() if slot.startswith("name:") and _axis(value) is not None]
    ranks = sorted({len(value) for slot, value in case.choices.items() if slot.startswith("shape:")} - {0})
    if not axes or not ranks:
        return None
    slot, rank = source.choice(sorted(axes)), source.choice(ranks)
    axis = _axis(case.choices[slot])
    assert axis is not None
    turned = axis + rank if axis < 0 else axis - rank
    return {**case.choices, slot: (turned,) if isinstance(case.choices[slot], tuple) else turned}


def with_one_axis_more(case: Case, source: random.Random) -> Choices | None:
    """The choices of a case with a further first axis of one tensor: the others broadcast along it, or do not fit."""
    slots = sorted(slot for slot, value in case.choices.items() if slot.startswith("shape:") and len(value) < MOST_RANK)
    if not slots:
        return None
    slot = source.choice(slots)
    return {**case.choices, slot: (source.choice((2, 2, 3, 1)), *case.choices[slot])}


def made_longer(case: Case, source: random.Random) -> Iterator[Choices]:
    """The choices of a case with longer axes: sides are often alike where there is one element along an axis.

    Extents, and with them numbers of lists, are made two or three times as large: all of them, or those of one axis;
    then one number alone.
    """
    lists = {
        slot: value
        for slot, value in case.choices.items()
        if slot.startswith(("name:", "shape:")) and isinstance(value, tuple) and all(type(n) is int for n in value)
    }
    axes = max((len(value) for slot, value in lists.items() if slot.startswith("shape:")), default=0)
    for factor, axis in itertools.product((3, 2), (None, *range(axes))):
        yield {
            **case.choices,
            **{
                slot: tuple(
                    n * factor if axis in (None, place) and abs(n) < MOST_NUMBER else n for place, n in enumerate(value)
                )
                for slot, value in lists.items()
            },
        }
    single = [(slot, place, by) for slot, value in lists.items() for place in range(len(value)) for by in (1, -1)]
    source.shuffle(single)
    for slot, place, by in single:
        value = lists[slot]
        yield {**case.choices, slot: (*value[:place], value[place] + by, *value[place + 1 :])}


def _axis(value: Value) -> int | None:
    if isinstance(value, tuple) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, int) and not isinstance(value, bool) else None

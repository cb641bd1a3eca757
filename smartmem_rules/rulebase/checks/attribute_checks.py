"""Attributes in the patterns of rules: names that operators do not have, names given twice, and words that are no
dtypes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import (
    Edit,
    Fix,
    advice,
    any_of,
    before,
    behind,
    edit,
    nearest,
    replacement,
    spelling,
)
from smartmem_rules.language.printing.other_functions import dtype_of_onnx, text_elsewhere
from smartmem_rules.language.printing.printer import print_expression, print_pattern
from smartmem_rules.rulebase.checks.meaning_checks import ADMITTED, CALLED, EXAMPLES, kind_of, meant_by
from smartmem_rules.tensor.expr import ALL_DTYPES

_FOREIGN = {"True": "true", "False": "false", "None": "none", "null": "none", "nil": "none"}
_NUMBERS = {"True": "1", "False": "0"}
"""Values of other languages, as kinds of attributes have them that are no `bool`."""
_LIKE_A_DTYPE = re.compile(r"u?int\d+|b?float\d+\w*")


def check_attributes(pattern: s.PatternOperator, overloads: Sequence[s.Operator]) -> Iterator[Diagnostic]:
    """What is wrong with the attributes that a pattern gives one operator."""
    known = {attribute.name for operator in overloads for attribute in operator.attributes}
    known |= {item.name for operator in overloads for item in operator.inputs if item.constant is not None}
    first: dict[str, s.PatternAttribute] = {}
    for attribute in pattern.attributes:
        place = attribute.place("name")
        if attribute.name not in known:
            message = f"`{pattern.operator}` has no attribute `{attribute.name}`"
            near = spelling(attribute.name, known, place)
            note = None if near else f"its attributes are {', '.join(sorted(known))}" if known else "it has none"
            only = replacement(f"write `{min(known)}`", place, min(known)) if len(known) == 1 else None
            fix = near or only or advice("write one of these" if known else "leave it out")
            yield Diagnostic(Code.UNKNOWN_ATTRIBUTE, "error", message, place, note=note, fix=fix)
        elif attribute.name in first:
            message = f"the attribute `{attribute.name}` is given twice"
            secondary = (first[attribute.name].place("name"), "it is given here already")
            both = [one.value for one in (first[attribute.name], attribute)]
            compared = all(isinstance(one, s.Name) for one in both)
            shown = " or ".join(f"`{attribute.name} = {print_expression(one)}`" for one in both)
            left_out = advice(
                "leave one of them out; a guard compares values: `where t == u`"
                if compared
                else f"leave one of them out: {shown}"
            )
            yield Diagnostic(Code.DUPLICATE_NAME, "error", message, place, secondary=secondary, fix=left_out)
        elif isinstance(attribute.value, s.Name) and attribute.value.id in _FOREIGN:
            word, kinds = (
                attribute.value.id,
                {one.kind for each in overloads for one in each.attributes if one.name == attribute.name},
            )
            new = _FOREIGN[word] if kinds == {"bool"} or word not in _NUMBERS else _NUMBERS[word]
            message = f"`{word}` is no value here: a name binds the attribute, whatever it is"
            fix = edit(f"write `{new}`", Edit(attribute.value.span, new, word))
            yield Diagnostic(Code.UNDEFINED_NAME, "error", message, attribute.value.span, fix=fix)
        else:
            yield from _check_kind(attribute, overloads)
        first.setdefault(attribute.name, attribute)
    dtypes = _dtype_attributes(overloads)
    for attribute in pattern.attributes:
        if attribute.name in dtypes:
            yield from _check_dtype(attribute.value)


def _check_kind(attribute: s.PatternAttribute, overloads: Sequence[s.Operator]) -> Iterator[Diagnostic]:
    """A literal of a kind that no overload declares for the attribute."""
    found = kind_of(attribute.value)
    declared = [one for operator in overloads for one in operator.attributes if one.name == attribute.name]
    kinds = {one.kind for one in declared}
    constants = {i.constant for o in overloads for i in o.inputs if i.name == attribute.name and i.constant}
    # a scalar is taken for the list that a `const` input is
    admitted = {kind: ADMITTED.get(kind, {found}) for kind in kinds}
    admitted |= {kind: ADMITTED.get(kind, {found}) | ADMITTED.get(kind[:-1], set()) for kind in constants}
    if found is None or any(found in one for one in admitted.values()):
        return
    kind = min(admitted)
    message = f"`{attribute.name}` is {CALLED[found]} here, but its kind is {' or '.join(sorted(admitted))}"
    name = attribute.name
    fix = advice(f"write `{name} = {EXAMPLES.get(kind, '1')}`, or `{name} = a`, which takes any value")
    place = attribute.value.span
    meant = meant_by(attribute.value, kind)
    numbered = dtype_of_onnx(attribute.value) if name in _dtype_attributes(overloads) else None
    if numbered is not None:
        fix = replacement(f'a dtype is a text: write `{name} = "{numbered}"`', place, f'"{numbered}"')
    elif meant is not None:
        fix = replacement(f"write `{name} = {meant}`", place, meant)
    elif kind in ("ints", "floats", "strings") and found in ADMITTED[kind[:-1]]:
        fix = edit("a list stands in square brackets", Edit(before(place), "["), Edit(behind(place), "]"))
    secondary = (declared[0].span, "it is declared here") if declared else None
    yield Diagnostic(Code.ATTRIBUTE_KIND, "error", message, place, secondary=secondary, fix=fix)


def check_required_attributes(
    pattern: s.PatternOperator,
    operators: Mapping[str, Sequence[s.Operator]],
    bound_as: Mapping[str, Sequence[str]],
    bound: Collection[str],
    unbound: Mapping[str, str],
) -> Iterator[Diagnostic]:
    """An attribute that an operator of a right side has to have, and is not given."""
    overloads = operators.get(pattern.operator, ())
    given = {attribute.name for attribute in pattern.attributes}
    missing = [[a.name for a in operator.attributes if a.required and a.name not in given] for operator in overloads]
    if pattern.bundle is None and missing and all(missing):
        message = f"`{pattern.operator}` cannot be made without its attribute `{missing[0][0]}`"
        yield Diagnostic(
            Code.MISSING_ATTRIBUTE,
            "error",
            message,
            pattern.place("name"),
            secondary=(overloads[0].place("name"), "it is defined here"),
            fix=_given_as(pattern, missing[0][0], bound_as, bound, unbound),
        )


def _given_as(
    pattern: s.PatternOperator,
    name: str,
    bound_as: Mapping[str, Sequence[str]],
    bound: Collection[str],
    unbound: Mapping[str, str],
) -> Fix:
    """How a right side names an attribute that it has to: as the left side binds it, or with all the others.

    Args:
        unbound: attributes that the left side does not bind, with its operators that have them.
    """
    bundles = [one for one in bound if one.startswith("@")]
    known = bound_as.get(name, ())
    given = f"{name} = {known[0]}" if len(known) == 1 else bundles[0] if len(bundles) == 1 else f"{name} = ..."
    first = ""
    if given.endswith("...") and not known and name in unbound:
        given = f"{name} = {name}"
        first = f"bind it on the left, `{unbound[name]}(...; {given})`, and "
    attributes = [f"{one.name} = {print_expression(one.value)}" for one in pattern.attributes]
    operands = print_pattern(replace(pattern, attributes=(), bundle=None)).removesuffix(")")
    return advice(f"{first}give it: `{operands}; {', '.join([*attributes, given])})`")


def attributes_on(left: s.Pattern, operators: Mapping[str, Sequence[s.Operator]]) -> dict[str, str]:
    """The attributes that the operators of a left side have, each with the first that has it."""
    found: dict[str, str] = {}
    for part in nodes(left):
        if isinstance(part, s.PatternOperator):
            for overload in operators.get(part.operator, ()):
                for one in overload.attributes:
                    found.setdefault(one.name, part.operator)
    return found


def attributes_bound(left: s.Pattern) -> dict[str, tuple[str, ...]]:
    """The attributes that a left side binds by other names, with these names."""
    found: dict[str, tuple[str, ...]] = {}
    for part in nodes(left):
        if isinstance(part, s.PatternAttribute) and isinstance(part.value, s.Name):
            found[part.name] = tuple(dict.fromkeys((*found.get(part.name, ()), part.value.id)))
    return found


def _dtype_attributes(overloads: Sequence[s.Operator]) -> set[str]:
    """The words of which operators make the element type of a result."""
    found: set[str] = set()
    for operator in overloads:
        words = {attribute.name for attribute in operator.attributes if attribute.kind == "string"}
        variables = {variable.name for variable in operator.dtypes}
        for let in operator.lets:
            if let.name in variables:
                found |= {node.id for node in nodes(let.value) if isinstance(node, s.Name)} & words
    return found


def _check_dtype(value: s.Expression) -> Iterator[Diagnostic]:
    """A text that is the name of no dtype, or the name of one without quotes."""
    match value:
        case s.Text(value=word) if word not in ALL_DTYPES:
            meant = text_elsewhere(word, value.span) or spelling(word, ALL_DTYPES, value.span, '"{}"')
            fix = meant or advice(f"write one of {any_of(ALL_DTYPES, 30)}")
            yield Diagnostic(Code.UNKNOWN_DTYPE, "error", f'there is no dtype "{word}"', value.span, fix=fix)
        case s.Name(id=word) if word in ALL_DTYPES or _LIKE_A_DTYPE.fullmatch(word):
            message = f"a dtype is a text, which stands in quotes; `{word}` is a name, which any dtype may have"
            near = nearest(word, ALL_DTYPES) or "float32"
            fix = edit(f'write `"{near}"`', Edit(value.span, f'"{near}"', word))
            yield Diagnostic(Code.UNKNOWN_DTYPE, "error", message, value.span, fix=fix)
        case _:
            pass

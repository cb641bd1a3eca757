"""The operands that a pattern gives an operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Edit, Fix, advice, any_of, behind, edit, replacement
from smartmem_rules.language.printing.printer import print_expression, print_pattern
from smartmem_rules.language.vocabulary import Arity
from smartmem_rules.rulebase.patterns import is_absent

ABSENT_ELSEWHERE = frozenset({"None", "none", "null", "nil", "NULL", "nullptr"})
"""What other languages call a value that is not there."""


def check_absent_words(pattern: s.PatternOperator) -> Iterator[Diagnostic]:
    """Operands that are left out in the words of another language, which would be names of tensors here."""
    for operand in pattern.arguments:
        if isinstance(operand, s.PatternVariable) and operand.name in ABSENT_ELSEWHERE:
            message = f"`{operand.name}` would be the name of a tensor; an operand that is absent is `_`"
            fix = edit("write `_`", Edit(operand.span, "_", operand.name))
            yield Diagnostic(Code.UPPER_CASE_VARIABLE, "error", message, operand.span, fix=fix)


def check_upper_case(variable: s.PatternVariable, rule: s.Rewrite, is_operator: bool) -> Iterator[Diagnostic]:
    """A tensor whose name begins with an upper-case letter, as those of operators and constants do."""
    name = variable.name
    message = f"`{name}` reads as a tensor, but begins with an upper-case letter"
    fix = advice(f"write `{name}(...)` for the operator") if is_operator else _in_lower_case(name, rule)
    if not is_operator and len(name) > 1 and name.isupper():
        fix = advice(f"define the constant, `let {name} = 0.5`, or call a tensor `{name.lower()}`")
    yield Diagnostic(Code.UPPER_CASE_VARIABLE, "error", message, variable.span, fix=fix)


def _in_lower_case(name: str, rule: s.Rewrite) -> Fix:
    """The name of a tensor in lower case, at all its places in the rule, unless another one has that name."""
    text, new = "write it in lower case", name[0].lower() + name[1:]
    places: dict[str, list[s.Span]] = {}
    for node in nodes(rule):
        if isinstance(node, s.PatternVariable):
            places.setdefault(node.name, []).append(node.span)
        elif isinstance(node, s.Name):
            places.setdefault(node.id, []).append(node.span)
    if new in places:
        return advice(text)
    return edit(text, *(Edit(span, new, name) for span in places[name]))


def check_operands(
    pattern: s.PatternOperator, overloads: Sequence[s.Operator], rule: s.Rewrite
) -> Iterator[Diagnostic]:
    """Too few or too many operands, and left out ones that no model may leave out."""
    yield from _check_absent(pattern, overloads, rule)
    known = list(_check_known(pattern, overloads))
    if known:
        yield from known
        return
    count = len(pattern.arguments)
    counts = [_operand_count(operator) for operator in overloads]
    if pattern.variadic is not None:
        fits = any(arity.most is None for arity in counts)
        given = f"all operands as `*{pattern.variadic}`"
    else:
        fits = any(arity.admits(count) for arity in counts)
        given = f"{count} operand{'' if count == 1 else 's'}"
    if fits:
        return
    takes = " or ".join(dict.fromkeys(str(arity).replace("argument", "operand") for arity in counts))
    message = f"`{pattern.operator}` takes {takes}, but the pattern gives {given}"
    yield Diagnostic(
        Code.OPERAND_COUNT,
        "error",
        message,
        pattern.span,
        secondary=(overloads[0].place("name"), "it is defined here"),
        fix=advice(f"write {_with_the_others(pattern, overloads[0]) or _how_applied(overloads[0])}"),
    )


def _with_the_others(pattern: s.PatternOperator, operator: s.Operator) -> str | None:
    """A pattern with too few operands as it is, and places for those that it lacks; None where it has too many."""
    count = len(pattern.arguments)
    lacking = [i for i in operator.inputs[count:] if not (i.optional or i.variadic or i.constant)]
    if not count or pattern.variadic is not None or not lacking:
        return None
    given = [*map(print_pattern, pattern.arguments), *["..."] * len(lacking)]
    attributes = [f"{one.name} = {print_expression(one.value)}" for one in pattern.attributes]
    attributes += [f"@{pattern.bundle}"] if pattern.bundle is not None else []
    behind_them = f"; {', '.join(attributes)}" if attributes else ""
    shown = f"`{pattern.operator}({', '.join(given)}{behind_them})`"
    return f"{shown}, with an operand for `{'` and `'.join(one.name for one in lacking)}`"


def _how_applied(operator: s.Operator) -> str:
    """What a pattern of an operator looks like: its operands, then its attributes."""
    operands = ", ".join(f"*{item.name}" if item.variadic else item.name for item in operator.inputs)
    named = [*(a.name for a in operator.attributes if a.default is None), *(a.name for a in operator.attributes)]
    if not named:
        return f"`{operator.name}({operands})`"
    return f"`{operator.name}({operands}; {named[0]} = ...)`: attributes stand behind `;`, with their names"


def _check_absent(pattern: s.PatternOperator, overloads: Sequence[s.Operator], rule: s.Rewrite) -> Iterator[Diagnostic]:
    """Operands that no overload lets a model leave out."""
    for place, argument in enumerate(pattern.arguments):
        inputs = [operator.inputs[place] for operator in overloads if place < len(operator.inputs)]
        if is_absent(argument) and inputs and not any(i.optional or i.variadic or i.constant for i in inputs):
            message = f"`_` is an operand that is left out, but `{pattern.operator}` always has `{inputs[0].name}`"
            fix = advice("give it a name: a name that is used nowhere else stands for any tensor")
            if not rule.bidirectional and any(node is pattern for node in nodes(rule.right)):
                fix = _of_the_left(pattern, place, rule)
            yield Diagnostic(Code.OPERAND_COUNT, "error", message, argument.span, fix=fix)


def _check_known(pattern: s.PatternOperator, overloads: Sequence[s.Operator]) -> Iterator[Diagnostic]:
    """Values that are known at import, which patterns write with the attributes, among the operands."""
    for place, argument in enumerate(pattern.arguments):
        inputs = [operator.inputs[place] for operator in overloads if place < len(operator.inputs)]
        if not inputs or not all(one.constant for one in inputs) or is_absent(argument):
            continue
        if not isinstance(argument, s.PatternVariable | s.PatternNumber):
            continue
        name = inputs[0].name
        shown = print_pattern(argument)
        if isinstance(argument, s.PatternNumber) and inputs[0].constant in ("ints", "floats"):
            shown = f"[{shown}]"
        message = f"`{name}` of `{pattern.operator}` is no tensor: it is known at import, and written as attributes are"
        kept = [*map(print_pattern, pattern.arguments[:place]), *map(print_pattern, pattern.arguments[place + 1 :])]
        fix = advice(f"write `{pattern.operator}({', '.join(kept)}; {name} = {shown})`")
        if not pattern.attributes and pattern.bundle is None and place == len(pattern.arguments) - 1 and place:
            between = behind(pattern.arguments[place - 1].span)
            end = argument.span
            whole = between._replace(end_line=end.end_line, end_column=end.end_column)
            fix = replacement(fix.text, whole, f"; {name} = {shown}")
        yield Diagnostic(Code.OPERAND_COUNT, "error", message, argument.span, fix=fix)
        return


def _of_the_left(pattern: s.PatternOperator, place: int, rule: s.Rewrite) -> Fix:
    """The tensor that a right side means: what the operator has there on the left, or any that is bound."""
    bound: dict[str, None] = {}
    there: dict[str, None] = {}
    for node in nodes(rule.left):
        if isinstance(node, s.PatternVariable) and not is_absent(node):
            bound[node.name] = None
        elif isinstance(node, s.PatternOperator) and node.operator == pattern.operator:
            given = node.arguments[place : place + 1]
            there |= {one.name: None for one in given if isinstance(one, s.PatternVariable) and not is_absent(one)}
    if len(there) == 1:
        (name,) = there
        said = f"write `{name}`, which the left side binds there"
        return replacement(said, pattern.arguments[place].span, name)
    return advice(f"write a tensor that the left side binds: {any_of(bound)}" if bound else "bind it on the left side")


def _operand_count(operator: s.Operator) -> Arity:
    # A `const` input may be an attribute in the model, so a pattern may leave it out.
    required = [item for item in operator.inputs if not (item.optional or item.variadic or item.constant)]
    variadic = any(item.variadic for item in operator.inputs)
    return Arity(len(required), None if variadic else len(operator.inputs))

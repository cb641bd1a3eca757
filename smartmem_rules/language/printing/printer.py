"""Syntax trees as text: one way to write each tree, without comments.

Parsing the text gives the tree again.  `language.printing.formatter` lays out what an author wrote; this prints what a
program made.
"""

from __future__ import annotations

import re
from itertools import takewhile, zip_longest
from math import inf, isinf

from smartmem_rules.language import syntax as s
from smartmem_rules.language.analyses import Fact, term_of
from smartmem_rules.language.patterns import OR
from smartmem_rules.language.roots import ROOTS, roots_of

_PRECEDENCE = {
    "or": 1, "and": 2, "not": 3,
    "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4,
    "+": 5, "-": 5, "*": 6, "/": 6, "//": 6, "%": 6,
    "**": 9,
}  # fmt: skip
_CONDITIONAL, _REDUCTION, _NEGATION, _POWER, _READ, _POSTFIX, _ATOM = 0, 7, 8, 9, 10, 11, 12
_GIVEN = "_"
_LOOPING = frozenset({"sum", "max", "min", "prod", "mean", "any", "all", "first"})
_LOOP = re.compile(r"(\*\s*)?[A-Za-z_]\w*\s*<(?!=)")


# --- expressions -------------------------------------------------------------------------------------


def print_expression(expr: s.Expression) -> str:
    """An expression on one line."""
    return _expression(expr)[0]


def _expression(expr: s.Expression) -> tuple[str, int]:
    """The text and how tightly it binds."""
    match expr:
        case s.Unary():
            return _unary(expr)
        case Fact(analysis=analysis, tensor=tensor):
            return f"{analysis}({tensor})", _ATOM
        case s.Binary():
            return _binary(expr)
        case s.Conditional(condition=condition, then=then, otherwise=otherwise):
            parts = (_branch(condition, 1), _branch(then, _REDUCTION), _within(otherwise, 0))
            return f"if {parts[0]} then {parts[1]} else {parts[2]}", _CONDITIONAL
        case s.Subscript(base=base, items=items, default=default):
            read = f"{_within(base, _POSTFIX)}[{_items(items)}]"
            if default is None:
                return read, _POSTFIX
            return f"{read} else {_within(default, _POSTFIX)}", _READ
        case s.Reduction(kind=kind, binders=binders, condition=condition, body=body):
            loops = ", ".join(_binder(binder) for binder in binders)
            given = f", {print_expression(condition)}" if condition is not None else ""
            return f"{kind}({loops}{given}) {_within(body, 6)}", _REDUCTION
        case _:
            return _atom(expr), _ATOM


def _atom(expr: s.Expression) -> str:
    match expr:
        case s.Number(value=value):
            return _number(value)
        case s.Text(value=value):
            return quoted(value)
        case s.Truth(value=value):
            return str(value).lower()
        case s.Name(id=name):
            return name
        case s.Call(function=function, arguments=arguments):
            return f"{function}({_arguments(function, arguments)})"
        case s.ListOf(items=items):
            return f"[{_items(items)}]"
        case s.Comprehension(body=body, binders=binders, condition=condition):
            loops = " ".join(f"for {_binder(binder)}" for binder in binders)
            given = f" if {print_expression(condition)}" if condition is not None else ""
            return f"[{print_expression(body)} {loops}{given}]"
        case s.Splat(operand=operand):
            return f"*{print_expression(operand)}"
        case s.Broadcast(operand=operand):
            return f"~{print_expression(operand)}"
        case s.Term(pattern=pattern):
            return print_pattern(pattern)
        case s.Slice(low=low, high=high):
            return ":".join("" if part is None else print_expression(part) for part in (low, high))
        case _:
            raise TypeError(f"{type(expr).__name__} is no expression")


def _unary(expr: s.Unary) -> tuple[str, int]:
    if expr.operator == "not":
        return f"not {_within(expr.operand, 3)}", 3
    text, strength = _expression(expr.operand)
    return (f"-{text}" if strength >= _NEGATION else f"-({text})"), _NEGATION


def _binary(expr: s.Binary) -> tuple[str, int]:
    strength = _PRECEDENCE[expr.operator]
    if expr.operator == "**":
        return f"{_within(expr.left, _READ)} ** {_within(expr.right, _NEGATION)}", _POWER
    if strength == 4:
        return f"{_within(expr.left, 5)} {expr.operator} {_within(expr.right, 5)}", 4
    # a reduction takes all of the term behind it
    left = f"({print_expression(expr.left)})" if _ends_in_reduction(expr.left) else _within(expr.left, strength)
    right_text, right = _expression(expr.right)
    if strength == 6 and right == _REDUCTION:
        return f"{left} {expr.operator} {right_text}", 6
    return f"{left} {expr.operator} {right_text if right > strength else f'({right_text})'}", strength


def _branch(expr: s.Expression, least: int) -> str:
    """A part of a conditional before its `else`, which would be that of any read with a default inside."""
    text = print_expression(expr)
    return f"({text})" if " else " in text else _within(expr, least)


def _ends_in_reduction(expr: s.Expression) -> bool:
    match expr:
        case s.Reduction():
            return True
        case s.Binary(right=right):
            return _ends_in_reduction(right)
        case s.Unary(operand=operand):
            return _ends_in_reduction(operand)
        case _:
            return False


def _within(expr: s.Expression, least: int) -> str:
    text, strength = _expression(expr)
    return text if strength >= least else f"({text})"


def _items(items: tuple[s.Expression, ...]) -> str:
    return ", ".join(print_expression(item) for item in items)


def _arguments(function: str, arguments: tuple[s.Expression, ...]) -> str:
    """The arguments of a call; `max(a < b)` would begin a loop, `max((a < b))` does not."""
    text = _items(arguments)
    if function not in _LOOPING or not _LOOP.match(text):
        return text
    first = print_expression(arguments[0])
    guarded = f"*({first[1:]})" if first.startswith("*") else f"({first})"
    return ", ".join([guarded, *(print_expression(argument) for argument in arguments[1:])])


def _binder(binder: s.Binder) -> str:
    if binder.kind == "unrolled":
        return f"{binder.name} in {_within(binder.bound, 5)}"
    return f"{'*' if binder.kind == 'loops' else ''}{binder.name} < {_within(binder.bound, 5)}"


def _number(value: int | float) -> str:
    if isinstance(value, float) and isinf(value):
        return "inf" if value == inf else "-inf"
    return repr(value)


def quoted(text: str) -> str:
    """A string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


# --- patterns and rules ------------------------------------------------------------------------------


def print_pattern(pattern: s.Pattern) -> str:
    """A side of a rewrite on one line."""
    if isinstance(pattern, s.PatternVariable):
        return pattern.name
    if isinstance(pattern, s.PatternNumber):
        return _number(pattern.value)
    if isinstance(pattern, s.PatternComputed):
        return print_expression(pattern.value)
    assert isinstance(pattern, s.PatternOperator)
    operands = [print_pattern(argument) for argument in pattern.arguments]
    operands += [f"*{pattern.variadic}"] if pattern.variadic is not None else []
    attributes = [f"@{pattern.bundle}"] if pattern.bundle is not None else []
    attributes += [f"{attribute.name} = {print_expression(attribute.value)}" for attribute in pattern.attributes]
    inner = ", ".join(operands) + (f"; {', '.join(attributes)}" if attributes else "")
    operator = f"({pattern.operator})" if OR in pattern.operator else pattern.operator
    return f"{operator}({inner})" + ("" if pattern.output is None else f".{pattern.output}")


def print_equation(rule: s.Rule) -> str:
    """What a rule says, on one line."""
    if isinstance(rule, s.Derive):
        return f"{rule.analysis}({print_pattern(rule.term)})"
    if isinstance(rule, s.Rewrite) and rule.derives is not None:
        return f"{rule.derives}({print_pattern(term_of(rule))})"
    if isinstance(rule, s.Rewrite):
        arrow = "<=>" if rule.bidirectional else "=>"
        return f"{_side(rule.left)} {arrow} {_side(rule.right)}"
    if isinstance(rule, s.Eliminate):
        return f"{rule.operator} becomes an index map"
    if isinstance(rule, s.Keep):
        return f"{rule.operator} of constants is computed when the model runs"
    return f"{print_expression(rule.left)} => {print_expression(rule.right)}"


def _side(side: s.Pattern) -> str:
    first, *others = roots_of(side)
    between = ", " if isinstance(side, s.PatternOperator) and side.operator == ROOTS else " beside "
    return between.join(map(print_pattern, (first, *others)))


def print_let(let: s.RuleLet) -> str:
    """A `let` of a rule on one line."""
    value = print_pattern(let.value) if isinstance(let.value, s.Pattern) else print_expression(let.value)
    return f"let {let.name} = {value}"


def print_guards(rule: s.Rule) -> str:
    """The guards of a rule on one line; empty where there are none."""
    return ", ".join(print_expression(guard) for guard in rule.guards)


def _clauses(rule: s.Rule) -> str:
    lines = [print_let(let) for let in rule.lets]
    lines += [f"where {print_guards(rule)}"] if rule.guards else []
    if isinstance(rule, s.Rewrite):
        lines += [f"relaxes {', '.join(rule.relaxes)}"] if rule.relaxes else []
        lines += ["explores"] if rule.explores else []
    if isinstance(rule, s.Keep) and rule.defers:
        lines.append("defers")
    lines += [f"tags {', '.join(rule.tags)}"] if rule.tags else []
    lines += [f"cites {quoted(rule.cites)}"] if rule.cites is not None else []
    if isinstance(rule, s.Rewrite) and rule.unsound is not None:
        lines.append(f"unsound {quoted(rule.unsound)}")
    return "".join(f"\n    {line}" for line in lines)


# --- items -------------------------------------------------------------------------------------------


def print_item(item: s.Item) -> str:
    """A declaration."""
    match item:
        case s.Import(path=path):
            return f"import {quoted(path)}"
        case s.Ruleset(name=name, after=after):
            return f"ruleset {name}" + (f" after {', '.join(after)}" if after else "") + _comment(item)
        case s.OperatorFamily(name=name, members=members):
            return f"family {name} = {OR.join(members)}"
        case s.Function(name=name, parameters=parameters, body=body):
            return f"function {name}({', '.join(parameters)}) = {print_expression(body)}"
        case s.Predicate(name=name, parameters=parameters, body=body):
            return f"predicate {name}({', '.join(parameters)}) = {print_expression(body)}{_comment(item)}"
        case s.Analysis(name=name, parameter=parameter, dtype=dtype, meaning=meaning):
            parameter = f"{parameter}: {dtype}" if dtype is not None else parameter
            kind = f"{item.kind} merge {item.merge}{_comment(item)}"
            return f"analysis {name}({parameter}): {kind}\n    means {print_expression(meaning)}"
        case s.Constant(name=name, value=value):
            return f"let {name} = {print_expression(value)}{_comment(item)}"
        case s.Rewrite() | s.Eliminate() | s.Derive() | s.Keep() | s.IndexRule():
            return _rule(item)
        case s.Table():
            return _table(item)
        case s.Block():
            return _block(item)
        case s.Family():
            return _family(item)
        case s.Operator():
            clauses = "".join(f"\n    {clause}" for clause in _operator_clauses(item))
            return f"operator {print_signature(item)} {{{clauses}\n}}"


def _comment(item: s.Ruleset | s.Predicate | s.Analysis | s.Constant | s.Block | s.Rule) -> str:
    return f"   # {item.comment}" if item.comment else ""


def _rule(rule: s.Rule) -> str:
    match rule:
        case s.Rewrite(name=name, ruleset=ruleset):
            return f"rewrite {name} in {ruleset}{_comment(rule)}\n    {print_equation(rule)}{_clauses(rule)}"
        case s.Eliminate(name=name, ruleset=ruleset, operator=operator):
            return f"eliminate {name} in {ruleset}{_comment(rule)}\n    {operator}{_clauses(rule)}"
        case s.Derive(name=name):
            return f"derive {name}{_comment(rule)}\n    {print_equation(rule)}{_clauses(rule)}"
        case s.Keep(name=name, operator=operator):
            return f"keep {name}{_comment(rule)}\n    {operator}{_clauses(rule)}"
        case s.IndexRule(name=name):
            return f"index {name}{_comment(rule)}\n    {print_equation(rule)}{_clauses(rule)}"


def _family(family: s.Family) -> str:
    words = [[print_expression(word) for word in member] for member in family.members]
    members = ", ".join(member[0] if len(member) == 1 else f"({', '.join(member)})" for member in words)
    inner = "\n".join(print_item(item) for item in family.items)
    indented = "\n".join(f"    {line}" if line else line for line in inner.split("\n"))
    return f"for {', '.join(family.variables)} in {members} {{\n{indented}\n}}"


def _table(table: s.Table) -> str:
    lines = [["", *table.columns]]
    for row in table.rows:
        cells = takewhile(lambda cell: cell is not None, (table.cells.get((row, column)) for column in table.columns))
        lines.append([row, *("/".join(cell or ()) for cell in cells)])
    widths = [max(map(len, column)) for column in zip_longest(*lines, fillvalue="")]
    text = "\n".join(
        "    " + "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=False)).rstrip()
        for line in lines
    )
    return f"table {table.name}(first, second) {{\n{text}\n}}"


def _block(block: s.Block) -> str:
    subject = f" for {block.subject}" if block.subject is not None else ""
    entries = "".join(f"\n    {_entry(entry)}" for entry in block.entries)
    return f"{block.kind} {block.name}{subject} {{{_comment(block)}{entries}\n}}"


def _entry(entry: s.Entry) -> str:
    values = [_value(value) for value in entry.values]
    return " ".join([entry.key, *values]) + ";"


def _value(value: int | float | str) -> str:
    if not isinstance(value, str):
        return _number(value)
    plain = value and (value[0].isalpha() or value[0] == "_" or ".." in value)
    return value if plain and all(c.isalnum() or c in "_./-" for c in value) else quoted(value)


# --- operators ---------------------------------------------------------------------------------------


def print_signature(operator: s.Operator) -> str:
    """Name, dtypes, inputs, attributes and outputs on one line."""
    dtypes = ", ".join(f"{variable.name}: {' | '.join(variable.classes)}" for variable in operator.dtypes)
    inputs = ", ".join(print_input(item) for item in operator.inputs)
    attributes = ", ".join(print_attribute(attribute) for attribute in operator.attributes)
    outputs = ", ".join(_output(output) for output in operator.outputs)
    given = f"{inputs}; {attributes}" if attributes else inputs
    return f"{operator.name}{f'<{dtypes}>' if dtypes else ''}({given}) -> {outputs}"


def print_input(item: s.Input) -> str:
    """Name, type and default of an input, as a signature has them."""
    mark = "?" if item.optional else ""
    if item.constant is not None:
        default = f" = {print_expression(item.default)}" if item.default is not None else ""
        return f"const {item.name}: {item.constant}{mark}{default}"
    assert item.type is not None
    return f"{item.name}{'...' if item.variadic else ''}: {_type(item.type)}{mark}"


def print_attribute(attribute: s.Attribute) -> str:
    """Name, kind and default of an attribute, as a signature has them."""
    if attribute.default is not None:
        return f"{attribute.name}: {attribute.kind} = {print_expression(attribute.default)}"
    return f"{attribute.name}: {attribute.kind}" + ("" if attribute.required else " = none")


def _output(output: s.Output) -> str:
    return f"{output.name}{f'[{output.index}]' if output.index is not None else ''}: {_type(output.type)}"


def _type(type_: s.TensorType) -> str:
    return f"{type_.dtype}[{_items(type_.shape)}]"


def _operator_clauses(operator: s.Operator) -> list[str]:
    clauses = []
    for binding in (operator.onnx, *operator.also):
        if binding is not None:
            until = "" if binding.until is None else str(binding.until)
            clauses.append(f"onnx {binding.domain}::{binding.name} {binding.since}..{until} ;")
    clauses += ["internal"] if operator.internal and operator.onnx is None else []
    clauses += ["override"] if operator.override else []
    clauses += ["commutative"] if operator.commutative else []
    clauses += [f"class {operator.declared_class}"] if operator.declared_class is not None else []
    clauses += [f"mapping {operator.declared_mapping}"] if operator.declared_mapping is not None else []
    clauses += [f"reference {quoted(operator.reference)}"] if operator.reference is not None else []
    clauses += [f"require {print_expression(condition)}" for condition in (*operator.requires, *operator.expects)]
    clauses += [f"let {let.name} = {print_expression(let.value)}" for let in operator.lets]
    clauses += [f"cost {cost.quantity} = {print_expression(cost.value)}" for cost in operator.costs]
    return clauses + [print_definition(equation) for equation in operator.equations]


def print_definition(equation: s.EquationSyntax) -> str:
    """An equation on one line."""
    member = f"[{equation.member}]" if equation.member is not None else ""
    indices = ", ".join(_index(binder) for binder in equation.indices)
    mark = "view " if equation.view else "scan " if equation.scan else ""
    return f"{mark}{equation.tensor}{member}[{indices}] = {print_expression(equation.body)}"


def _index(binder: s.Binder) -> str:
    star = "*" if binder.kind == "loops" else ""
    given = isinstance(binder.bound, s.Name) and binder.bound.id == _GIVEN
    return f"{star}{binder.name}" + ("" if given else f" < {_within(binder.bound, 5)}")

"""What is wrong with the names that a rule gives to terms and values by `let`, and with the constants it computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expansion import Names
from smartmem_rules.language.expressions import nodes, tensors_of
from smartmem_rules.language.fixes import Edit, advice, edit, replacement
from smartmem_rules.language.patterns import subpatterns
from smartmem_rules.language.printing.printer import print_expression, print_pattern
from smartmem_rules.rulebase.checks.kind_checks import kind_of_value
from smartmem_rules.rulebase.checks.meant.outputs import check_output_in_brackets
from smartmem_rules.rulebase.checks.meant.unused_lets import unused_let_meant
from smartmem_rules.rulebase.checks.meant.uses import uses_meant
from smartmem_rules.rulebase.checks.scope import head

_ON_LEFT = "a pattern names operators: `Add(x, 0)`; bind a constant by a name, and compare `value(c)` in a guard"


def check_lets(rule: s.Rule) -> Iterator[Diagnostic]:
    """Names that are given twice or not used; the rule's `let` clauses are written out."""
    first: dict[str, s.RuleLet] = {}
    awaited = {name for let in rule.lets for name, _ in _names_in(let)}  # by a `let` that stands before its own
    for let in rule.lets:
        earlier = first.setdefault(let.name, let)
        if earlier is not let:
            yield _twice(let.name, let.place("name"), earlier)
        elif not let.used and let.name not in awaited:
            name = rule.part_of if isinstance(rule, s.Rewrite) and rule.part_of is not None else rule.name
            is_number = isinstance(let.value, s.Expression) and kind_of_value(let.value, {}) in ("number", None)
            message, fix = f"nothing in `{name}` uses `{let.name}`", unused_let_meant(rule, let, is_number)
            yield Diagnostic(Code.UNUSED_LET, "error", message, let.place("name"), fix=fix)
        if isinstance(let.value, s.Pattern) and not isinstance(rule, s.Rewrite):
            fix = advice(f"give `{let.name}` the value of an expression, such as `rank(x)`, or leave it out")
            message = "only rewrites name terms; here `let` names values of guards"
            yield Diagnostic(Code.MALFORMED, "error", message, let.value.span, fix=fix)
    for node in nodes(rule):
        if isinstance(node, s.Binder) and node.name in first:
            yield _twice(node.name, node.place("name"), first[node.name])


def check_order_of_lets(rule: s.Rule) -> Iterator[Diagnostic]:
    """Names that a `let` uses before the `let` that gives them their meaning; the clauses are written out."""
    for place, let in enumerate(rule.lets):
        later = {one.name: number for number, one in enumerate(rule.lets) if number > place}
        for name, span in _names_in(let):
            if name not in later or any(one.name == name for one in rule.lets[: place + 1]):
                continue
            other = rule.lets[later[name]]
            message = f"`{name}` is a `let` behind this one, and a `let` uses those before it"
            fix = advice(f"move `let {name}` before `let {let.name}`")
            if (place, later[name]) == (0, 1):  # no name is written out in these
                texts = [_clause(one) for one in (other, let)]
                fix = edit(fix.text, *(Edit(one.span, text) for one, text in zip((let, other), texts, strict=True)))
            secondary = (other.place("name"), f"`{name}` gets its meaning here")
            yield Diagnostic(Code.UNBOUND_VARIABLE, "error", message, span, secondary=secondary, fix=fix)


def _names_in(let: s.RuleLet) -> Iterator[tuple[str, s.Span]]:
    """The names that stand in what a `let` names, and their places."""
    for node in nodes(let.value):
        if isinstance(node, s.Name | s.PatternVariable):
            yield node.id if isinstance(node, s.Name) else node.name, node.span


def _clause(let: s.RuleLet) -> str:
    value = print_pattern(let.value) if isinstance(let.value, s.Pattern) else print_expression(let.value)
    return f"let {let.name} = {value}"


def _twice(name: str, span: s.Span, earlier: s.RuleLet) -> Diagnostic:
    secondary = (earlier.place("name"), "the first is here")
    message, fix = f"`{name}` has a meaning already", advice("give one of them another name")
    return Diagnostic(Code.DUPLICATE_NAME, "error", message, span, secondary=secondary, fix=fix)


def check_computed_on_left(left: s.Pattern, operators: Mapping[str, Sequence[s.Operator]]) -> Iterator[Diagnostic]:
    """Computations where a left side wants a name, a number or an operator."""
    readers = {id(a): p for p in subpatterns(left) if isinstance(p, s.PatternOperator) for a in p.arguments}
    for part in subpatterns(left):
        if isinstance(part, s.PatternComputed):
            output = check_output_in_brackets(part.value, Code.COMPUTED_ON_LEFT)
            if output is not None:
                yield output
                continue
            value = print_expression(part.value)
            message = f"a left side cannot compute `{value}`"
            reader = readers.get(id(part))
            named = [] if reader is None else _lists_of(operators.get(reader.operator, ()))
            said = _ON_LEFT
            if reader is not None and named and isinstance(part.value, s.ListOf):
                said = (
                    f"a known list stands behind the operands by its name: `{reader.operator}(x; {named[0]} = {value})`"
                )
            fix = advice(said)
            read = part.value
            if isinstance(read, s.Subscript) and isinstance(read.base, s.Name) and read.base.id in operators:
                shown = f"{read.base.id}({', '.join(map(print_expression, read.items))})"
                fix = replacement(f"operands stand in parentheses: `{shown}`", part.span, shown)
            yield Diagnostic(Code.COMPUTED_ON_LEFT, "error", message, part.span, fix=fix)


def _lists_of(overloads: Sequence[s.Operator]) -> list[str]:
    """The attributes and compile-time operands of an operator that are lists, the operands first."""
    operands = [item.name for one in overloads for item in one.inputs if item.constant in ("ints", "floats", "tensor")]
    return operands + [one.name for each in overloads for one in each.attributes if one.kind in ("ints", "floats")]


def check_loops(rule: s.Rewrite | s.Eliminate) -> Iterator[Diagnostic]:
    """Loops over elements of tensors that no guard asks to be constant; predicates are written out."""
    from smartmem_rules.analysis.ordering import constant_names  # start-up time

    constants = constant_names(rule.guards)
    tensors = {node.name for node in nodes(rule) if isinstance(node, s.PatternVariable)}
    for name, span in tensors_of(rule):
        if name not in constants and (name in tensors or isinstance(rule, s.Eliminate)):
            message = f"the elements of `{name}` are known only where it is constant"
            yield Diagnostic(Code.IMPURE, "error", message, span, fix=advice(f"add the guard `constant({name})`"))


def terms_of(expression: s.Syntax) -> Iterator[s.Term]:
    """The terms that a guard or an attribute asks about."""
    for node in nodes(expression):
        if isinstance(node, s.Term):
            yield node


def check_uses_of_terms(guard: s.Expression, rule: s.Rewrite) -> Iterator[Diagnostic]:
    """`uses(t)` of a term that the left side does not have: nothing of the model reads it."""
    matched = set(subpatterns(rule.left))
    for node in nodes(guard):
        match node:
            case s.Call(function="uses", arguments=(s.Term(pattern=pattern), *_)) if pattern not in matched:
                message = "nothing of the model uses a term that the left side does not have"
                yield Diagnostic(Code.IMPURE, "error", message, head(node.span, "uses"), fix=uses_meant(rule, pattern))


def check_constants(rule: s.Rewrite, names: Names) -> Iterator[Diagnostic]:
    """Named constants in patterns that are texts or lists: a constant tensor is made of a number."""
    for part in nodes((rule.left, rule.right)):
        if not isinstance(part, s.PatternVariable) or part.name not in names.constants:
            continue
        value = names.constants[part.name].value
        if isinstance(value, s.Text | s.ListOf | s.Truth | s.Comprehension):
            what = "a text" if isinstance(value, s.Text) else "a truth" if isinstance(value, s.Truth) else "a list"
            message = f"`{part.name}` is {what}, and a constant of a pattern is a number"
            secondary = (value.span, "it is defined here")
            fix = advice(f"define a number, `let {part.name} = 0.5`, or use the constant in guards and attributes only")
            yield Diagnostic(Code.NO_CONDITION, "error", message, part.span, secondary=secondary, fix=fix)

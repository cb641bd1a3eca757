"""Plants one error in a rule: a guard weakened, operands swapped, a number changed, a table cell flipped.

Only changes that can make a rule wrong are made.  Guards that speak of constants and uses alone say where a rule pays,
not where it is right, and a guard `c > 0` of an index rule repeats what the language says of divisors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from typing import TypeVar

from smartmem_rules.analysis.index_values import divisors_of
from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.tensor.instantiate import names_in
from smartmem_rules.verification.instances.roles import nodes
from smartmem_rules.verification.trials.tables import layout_cell, mapping_cell

N = TypeVar("N", bound=ast.Syntax)
Changes = Callable[[ast.Syntax], Iterable[tuple[ast.Syntax, str]]]

_PROFIT = frozenset({"constant", "uses"})
_UNASKED = "unasked"
_ACTIONS = ("keep", "fuse", "eliminate1", "eliminate2", "eliminate_both", "through", "depends", "break")


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A rule with one error.

    Attributes:
        rule: the changed rule, or the unchanged one whose operator is changed.
        targeted: the guard that the change weakened: only instances that it would have refused are looked at.
        operator: the changed definition, for eliminations.
    """

    name: str
    change: str
    rule: ast.Rewrite | ast.Eliminate | ast.IndexRule | ast.Table | ast.Block
    targeted: ast.Expression | None = None
    operator: tuple[ast.Operator, ast.Operator] | None = None


def mutants_of(base: RuleBase) -> Iterator[Mutant]:
    """All mutants of a rule base, in the order of its rules."""
    for rewrite in base.rewrites:
        if rewrite.unsound is None:
            yield from _rewrite(rewrite, base)
    for eliminate in base.eliminates:
        yield from _eliminate(eliminate, base)
    for index in base.index_rules:
        yield from _index(index)
    for table in base.tables.values():
        yield from _table(table)
    for layout in base.layouts.values():
        yield from _layout(layout.block)


def variants(node: N, changes: Changes) -> Iterator[tuple[N, str]]:
    """All copies of a node in which one node at or below it is changed."""
    for changed, text in changes(node):
        if isinstance(changed, (type(node), ast.Expression, ast.Pattern)):
            yield changed, text  # type: ignore[misc]
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name == "span":
            continue
        if isinstance(value, ast.Syntax):
            for changed, text in variants(value, changes):
                yield replace(node, **{field.name: changed}), text  # type: ignore[arg-type]
        elif isinstance(value, tuple):
            for place, member in enumerate(value):
                if isinstance(member, ast.Syntax):
                    for changed, text in variants(member, changes):
                        members = (*value[:place], changed, *value[place + 1 :])
                        yield replace(node, **{field.name: members}), text  # type: ignore[arg-type]


# --- rewrites ------------------------------------------------------------------------------------------


def _rewrite(rule: ast.Rewrite, base: RuleBase) -> Iterator[Mutant]:
    for place, guard in enumerate(rule.guards):
        others = rule.guards[:place] + rule.guards[place + 1 :]
        if _says_where_it_pays(guard):
            continue
        yield Mutant(
            name=rule.name, change=f"guard {place + 1} dropped", rule=replace(rule, guards=others), targeted=guard
        )
        for weaker, text in variants(guard, _weaker):
            changed = replace(rule, guards=(*rule.guards[:place], weaker, *rule.guards[place + 1 :]))
            yield Mutant(name=rule.name, change=f"guard {place + 1}: {text}", rule=changed, targeted=guard)
    bound = sorted(_variables(rule.left))
    for side, text in variants(rule.right, lambda node: _pattern_changes(node, bound, base)):
        yield Mutant(name=rule.name, change=f"right side: {text}", rule=replace(rule, right=side))
    for side, text in variants(rule.left, _left_changes):
        yield Mutant(name=rule.name, change=f"left side: {text}", rule=replace(rule, left=side))
    yield from _unasked(rule)
    for word in rule.relaxes:
        if word != "reassociation" and "reassociation" not in rule.relaxes:
            yield Mutant(
                name=rule.name,
                change=f"`relaxes {word}` dropped",
                rule=replace(rule, relaxes=tuple(w for w in rule.relaxes if w != word)),
            )


def _says_where_it_pays(guard: ast.Expression) -> bool:
    called = {n.function for n in nodes(guard) if isinstance(n, ast.Call)}
    return bool(called) and called <= _PROFIT


def _weaker(node: ast.Syntax) -> Iterator[tuple[ast.Syntax, str]]:
    if isinstance(node, ast.Binary):
        weaker = {"<": "<=", ">": ">=", "==": "<="}.get(node.operator)
        if weaker and _compares_numbers(node):
            yield replace(node, operator=weaker), f"`{node.operator}` became `{weaker}`"
        if node.operator == "and":
            yield node.left, "the second condition dropped"
            yield node.right, "the first condition dropped"


def _compares_numbers(node: ast.Binary) -> bool:
    return node.operator != "==" or isinstance(node.right, ast.Number)


def _variables(pattern: ast.Pattern) -> set[str]:
    if isinstance(pattern, ast.PatternVariable):
        return {pattern.name} - {"_"}
    if isinstance(pattern, ast.PatternOperator):
        return set().union(*(_variables(a) for a in pattern.arguments)) if pattern.arguments else set()
    return set()


def _pattern_changes(node: ast.Syntax, bound: list[str], base: RuleBase) -> Iterator[tuple[ast.Syntax, str]]:
    match node:
        case ast.PatternVariable(name=name) if name in bound and len(bound) > 1:
            other = bound[(bound.index(name) + 1) % len(bound)]
            yield replace(node, name=other), f"{name} became {other}"
        case ast.PatternNumber(value=value):
            yield replace(node, value=value + 1), f"{value} became {value + 1}"
        case ast.PatternOperator():
            yield from _operator_changes(node, base)
        case ast.Number(value=value):
            changed = value + 1 if isinstance(value, int) else value * 2 + 0.5
            yield replace(node, value=changed), f"{value} became {changed}"
        case ast.Unary(operator="-", operand=operand):
            yield operand, "a minus dropped"
        case ast.Binary(operator="+" | "-" | "*" as operator):
            other = {"+": "-", "-": "+", "*": "+"}[operator]
            yield replace(node, operator=other), f"`{operator}` became `{other}`"
        case ast.Call(function="max" | "min" as function) if len(node.arguments) == 2:
            other = "min" if function == "max" else "max"
            yield replace(node, function=other), f"{function} became {other}"
        case _:
            return


_KIN = {"Add": "Sub", "Sub": "Add", "Mul": "Div", "Div": "Mul", "Neg": "Abs", "Abs": "Neg"}
"""What is written by mistake for an operator: an example of each kind is enough.

A slip of the pen, not a fact about operators: no rule file would say it.
"""


def _operator_changes(node: ast.PatternOperator, base: RuleBase) -> Iterator[tuple[ast.Syntax, str]]:
    overloads = base.operators.get(node.operator, [])
    commutes = any(o.commutative for o in overloads)
    arguments = node.arguments
    if len(arguments) >= 2 and not commutes and arguments[0] != arguments[1]:
        yield (
            replace(node, arguments=(arguments[1], arguments[0], *arguments[2:])),
            f"operands of {node.operator} swapped",
        )
    if len(arguments) >= 3 and arguments[-1] != arguments[-2]:
        yield (
            replace(node, arguments=(*arguments[:-2], arguments[-1], arguments[-2])),
            f"last operands of {node.operator} swapped",
        )
    if len(arguments) == 1 and node.output is None:
        yield arguments[0], f"{node.operator} left out"
    if len(arguments) == 2 and arguments[0] != arguments[1]:
        yield arguments[0], f"{node.operator} and its second operand left out"
    if node.operator in _KIN and _KIN[node.operator] in base.operators:
        yield replace(node, operator=_KIN[node.operator]), f"{node.operator} became {_KIN[node.operator]}"
    for place, attribute in enumerate(node.attributes):
        if _is_default(attribute, overloads):
            continue  # left out it is the same
        rest = node.attributes[:place] + node.attributes[place + 1 :]
        yield replace(node, attributes=rest), f"{attribute.name} of {node.operator} left out"


def _is_default(attribute: ast.PatternAttribute, overloads: Sequence[ast.Operator]) -> bool:
    defaults = [a.default for o in overloads for a in o.attributes if a.name == attribute.name]
    return isinstance(attribute.value, ast.Number | ast.Text) and all(
        isinstance(d, ast.Number | ast.Text) and d.value == attribute.value.value for d in defaults
    )


def _left_changes(node: ast.Syntax) -> Iterator[tuple[ast.Syntax, str]]:
    match node:
        case ast.PatternNumber(value=value):
            yield replace(node, value=value + 1), f"{value} became {value + 1}"
        case _:
            return


def _unasked(rule: ast.Rewrite) -> Iterator[Mutant]:
    """The left side with an attribute that may be anything but what it has to be."""
    literals: dict[str, ast.Number] = {}

    def changes(node: ast.Syntax) -> Iterator[tuple[ast.Syntax, str]]:
        if isinstance(node, ast.PatternOperator):
            for place, attribute in enumerate(node.attributes):
                if isinstance(attribute.value, ast.Number):
                    text = f"{attribute.name} of {node.operator} not asked for"
                    literals[text] = attribute.value
                    free = replace(attribute, value=ast.Name(attribute.span, _UNASKED))
                    yield (
                        replace(node, attributes=(*node.attributes[:place], free, *node.attributes[place + 1 :])),
                        text,
                    )

    for side, text in variants(rule.left, changes):
        asked = ast.Binary(rule.span, "==", ast.Name(rule.span, _UNASKED), literals[text])
        yield Mutant(name=rule.name, change=f"left side: {text}", rule=replace(rule, left=side), targeted=asked)


# --- the other kinds -----------------------------------------------------------------------------------


def _eliminate(rule: ast.Eliminate, base: RuleBase) -> Iterator[Mutant]:
    for overload in base.operators.get(rule.operator, []):
        if overload.internal or (overload.onnx is not None and overload.onnx.until is not None):
            continue  # its definition is the only source of what it means
        for place, equation in enumerate(overload.equations):
            if not (equation.view or _with_default(equation)):
                continue  # never a view
            for body, text in variants(equation.body, _definition_changes):
                equations = (
                    *overload.equations[:place],
                    replace(equation, body=body),
                    *overload.equations[place + 1 :],
                )
                yield Mutant(
                    name=rule.name,
                    change=f"definition: {text}",
                    rule=rule,
                    targeted=None,
                    operator=(overload, replace(overload, equations=equations)),
                )
        if not any(equation.view for equation in overload.equations) and not _may_be_view(overload):
            continue
        for place, let in enumerate(overload.lets):
            for value, text in variants(let.value, _definition_changes):
                lets = (*overload.lets[:place], replace(let, value=value), *overload.lets[place + 1 :])
                yield Mutant(
                    name=rule.name,
                    change=f"{let.name}: {text}",
                    rule=rule,
                    targeted=None,
                    operator=(overload, replace(overload, lets=lets)),
                )


def _with_default(equation: ast.EquationSyntax) -> bool:
    return isinstance(equation.body, ast.Subscript) and equation.body.default is not None


def _may_be_view(overload: ast.Operator) -> bool:
    return any(_with_default(equation) for equation in overload.equations)


def _definition_changes(node: ast.Syntax) -> Iterator[tuple[ast.Syntax, str]]:
    match node:
        case ast.Call(function="permute" | "unpermute" as function):
            other = "unpermute" if function == "permute" else "permute"
            yield replace(node, function=other), f"{function} became {other}"
        case ast.Binary(operator="+" | "-" | "*" | "//" | "%" as operator):
            other = {"+": "-", "-": "+", "*": "+", "//": "%", "%": "//"}[operator]
            yield replace(node, operator=other), f"`{operator}` became `{other}`"
        case ast.Binary(operator="==") if isinstance(node.right, ast.Text):
            yield replace(node, operator="!="), "a mode mistaken for the other"
        case ast.Call(function="wrap" | "chosen_axes", arguments=(axis, *rest)) if isinstance(axis, ast.Name):
            shifted = ast.Binary(axis.span, "+", axis, ast.Number(axis.span, 1))
            yield replace(node, arguments=(shifted, *rest)), f"{axis.id} off by one"
        case _:
            return


def _index(rule: ast.IndexRule) -> Iterator[Mutant]:
    divisors = {d.id for d in divisors_of(rule.left) if isinstance(d, ast.Name)}
    for place, guard in enumerate(rule.guards):
        if _repeats_the_language(guard, divisors):
            continue
        others = rule.guards[:place] + rule.guards[place + 1 :]
        yield Mutant(name=rule.name, change=f"guard {place + 1} dropped", rule=replace(rule, guards=others))
        for weaker, text in variants(guard, _weaker_index):
            yield Mutant(
                name=rule.name, change=f"guard {place + 1}: {text}", rule=replace(rule, guards=(*others, weaker))
            )
    names = sorted(names_in(rule.left))
    for right, text in variants(rule.right, lambda node: _index_changes(node, names)):
        yield Mutant(name=rule.name, change=f"right side: {text}", rule=replace(rule, right=right))


def _repeats_the_language(guard: ast.Expression, divisors: set[str]) -> bool:
    match guard:
        case ast.Binary(operator=">", left=ast.Name(id=name), right=ast.Number(value=0)):
            return name in divisors
        case _:
            return False


def _weaker_index(node: ast.Syntax) -> Iterator[tuple[ast.Syntax, str]]:
    match node:
        case ast.Binary(operator="<" | ">" as operator):
            yield replace(node, operator=f"{operator}="), f"`{operator}` became `{operator}=`"
        case ast.Binary(operator="%", left=left, right=right):
            yield replace(node, left=right, right=left), "operands of % swapped"
        case _:
            return


def _index_changes(node: ast.Syntax, names: list[str]) -> Iterator[tuple[ast.Syntax, str]]:
    match node:
        case ast.Number(value=value):
            yield replace(node, value=value + 1), f"{value} became {value + 1}"
        case ast.Name(id=name) if len(names) > 1:
            other = names[(names.index(name) + 1) % len(names)]
            yield replace(node, id=other), f"{name} became {other}"
        case ast.Binary(operator=operator):
            other = {"+": "-", "-": "+", "*": "+", "//": "%", "%": "//"}[operator]
            yield replace(node, operator=other), f"`{operator}` became `{other}`"
        case _:
            return


def _table(table: ast.Table) -> Iterator[Mutant]:
    by_layout = any("." in row for row in table.rows)
    results = [*table.rows, "gone" if by_layout else "none"]
    words = [w for w in _ACTIONS if any(c[0] == w for c in table.cells.values())]
    for cell, (action, result) in table.cells.items():
        for changed in (_next(words, action), result), (action, _next(results, result)):
            expected = layout_cell(*cell) if by_layout else mapping_cell(*cell)
            if changed != expected:
                text = f"{cell[0]} before {cell[1]} became {'/'.join(changed)}"
                yield Mutant(name=table.name, change=text, rule=replace(table, cells={**table.cells, cell: changed}))


def _next(words: list[str], word: str) -> str:
    return words[(words.index(word) + 1) % len(words)] if word in words else words[0]


WRONG = {
    "scattered_read": (1,),
    "strided_read": (5, -1),
    "scattered_write": (5, 0),
    "copies": (2, -1),
}
"""Numbers of a layout block that break the order of its weights, where 0 would not."""
BUDGETS = ("solver_seconds", "configurations", "least_gain", "further_kernels")
"""How long a search may take, how much it looks at, and what it may give for time: another number is no error."""


def _layout(block: ast.Block) -> Iterator[Mutant]:
    for place, entry in enumerate(block.entries):
        number = entry.values[0]
        if isinstance(number, str) or entry.key in BUDGETS:
            continue
        for value in WRONG.get(entry.key, (0,)):
            entries = (*block.entries[:place], replace(entry, values=(value,)), *block.entries[place + 1 :])
            yield Mutant(
                name=block.name, change=f"{entry.key} {number} became {value}", rule=replace(block, entries=entries)
            )

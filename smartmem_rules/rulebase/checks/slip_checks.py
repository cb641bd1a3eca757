"""Slips that cannot be meant: rules that do nothing, divisions by zero, unknown dtypes, operators that are no views."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import conjuncts, nodes
from smartmem_rules.language.fixes import Fix, advice, any_of, replacement, spelling
from smartmem_rules.language.printing.other_functions import text_elsewhere
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.vocabulary import DTYPE_CLASSES
from smartmem_rules.tensor.binding import DTYPE_CLASSES as BY_CLASS
from smartmem_rules.tensor.expr import ALL_DTYPES, Equation
from smartmem_rules.tensor.instantiate import Definitions

_PROBES = 24
Operators = Mapping[str, Sequence[s.Operator]]


def commutative_names(operators: Operators) -> frozenset[str]:
    """The operators with an overload that is commutative."""
    return frozenset(name for name, overloads in operators.items() if any(o.commutative for o in overloads))


def check_same_sides(rule: s.Rewrite, commutative: Collection[str]) -> Iterator[Diagnostic]:
    """A rewrite whose sides are one, up to the order of the operands of commutative operators."""
    if _ordered(rule.left, commutative) == _ordered(rule.right, commutative):
        yield Diagnostic(
            Code.SAME_SIDES,
            "error",
            "both sides are the same, so the rule does nothing",
            rule.right.span,
            secondary=(rule.left.span, "the left side is here"),
            fix=advice("leave the rule out, or write what the left side becomes"),
        )


def _ordered(pattern: s.Pattern, commutative: Collection[str]) -> object:
    match pattern:
        case s.PatternOperator():
            arguments = [_ordered(argument, commutative) for argument in pattern.arguments]
            if pattern.operator in commutative:
                arguments.sort(key=repr)
            attributes = sorted(repr((a.name, a.value)) for a in pattern.attributes)
            return pattern.operator, arguments, attributes, pattern.bundle, pattern.variadic, pattern.output
        case s.PatternVariable(name=name):
            return name
        case s.PatternNumber(value=value):
            return value
        case _:
            return pattern


def check_division(item: s.Item) -> Iterator[Diagnostic]:
    """Whole divisions and moduli by the number 0, quotients of numbers by it."""
    for node in nodes(item):
        match node:
            case s.Binary(operator="//" | "%" as word, right=s.Number(value=0) as zero):
                what = "a division" if word == "//" else "a modulus"
                fix = advice("divide by another number, or by an extent that is above 0")
                yield Diagnostic(Code.DIVISION_BY_ZERO, "error", f"{what} by 0 has no value", zero.span, fix=fix)
            case s.Binary(operator="/", left=s.Number(value=number), right=s.Number(value=0) as zero):
                message = "a number divided by 0 has no value"
                value = "inf" if number else "nan"
                fix = replacement(f"write `{value}`", node.span, value)
                yield Diagnostic(Code.DIVISION_BY_ZERO, "error", message, zero.span, fix=fix)


def check_dtype_words(rule: s.Rewrite | s.Eliminate | s.Keep, functions: Collection[str] = ()) -> Iterator[Diagnostic]:
    """Words that a guard compares a dtype with and that are the name of none."""
    for guard in rule.guards:
        for node in nodes(guard):
            words: list[s.Text] = []
            match node:
                case s.Binary(operator="==" | "!=", left=left, right=right):
                    for one, other in ((left, right), (right, left)):
                        if _is_dtype(one) and isinstance(other, s.Text):
                            words.append(other)
                case s.Call(function="contains", arguments=(s.ListOf(items=items), one)) if _is_dtype(one):
                    words += [item for item in items if isinstance(item, s.Text)]
                case _:
                    pass
            for word in words:
                if word.value not in ALL_DTYPES:
                    message = f'there is no dtype "{word.value}"'
                    near = text_elsewhere(word.value, word.span) or spelling(word.value, ALL_DTYPES, word.span, '"{}"')
                    fix = near or advice(f"write one of {any_of(ALL_DTYPES, 30)}")
                    if word.value in DTYPE_CLASSES:
                        message = f'"{word.value}" is a class of dtypes, and never the dtype of a tensor'
                        fix = _of_a_class(word.value, node, functions)
                    yield Diagnostic(Code.UNKNOWN_DTYPE, "error", message, word.span, fix=fix)


def check_bare_dtypes(item: s.Item, functions: Collection[str] = ()) -> Iterator[Diagnostic]:
    """Dtypes without quotes where a dtype is compared: a name there has no value, so the guard never holds."""
    for node in nodes(item):
        words: list[s.Expression] = []
        match node:
            case s.Binary(operator="==" | "!=", left=left, right=right):
                words += [other for one, other in ((left, right), (right, left)) if _is_dtype(one)]
            case s.Call(function="contains", arguments=(s.ListOf(items=items), one)) if _is_dtype(one):
                words += items
            case _:
                pass
        for word in words:
            if isinstance(word, s.Name) and word.id in ALL_DTYPES:
                message = f"a dtype is compared with a text, which stands in quotes, not with the name `{word.id}`"
                fix = replacement(f'write `"{word.id}"`', word.span, f'"{word.id}"')
                yield Diagnostic(Code.UNKNOWN_DTYPE, "error", message, word.span, fix=fix)
            elif isinstance(word, s.Name) and word.id in DTYPE_CLASSES:
                message = f"`{word.id}` is a class of dtypes, and a dtype is compared with a text"
                yield Diagnostic(
                    Code.UNKNOWN_DTYPE, "error", message, word.span, fix=_of_a_class(word.id, node, functions)
                )


def _of_a_class(name: str, compared: s.Syntax, functions: Collection[str]) -> Fix:
    """How to ask whether a dtype is of a class: by a function that there is, or by the dtypes of the class."""
    if not isinstance(compared, s.Binary):
        return advice(f"write the dtypes of the class: {_dtypes_of(name)}")
    subject = print_expression(compared.left if _is_dtype(compared.left) else compared.right)
    known = f"is_{name}"
    said = f"{known}({subject})" if known in functions else f"contains([{_dtypes_of(name)}], {subject})"
    if compared.operator == "!=":
        said = f"not {said}"
    return replacement(f"write `{said}`", compared.span, said)


def _dtypes_of(name: str) -> str:
    return ", ".join(f'"{one}"' for one in BY_CLASS[name])


def check_dtype_guards(rule: s.Rewrite, operators: Operators) -> Iterator[Diagnostic]:
    """Dtypes that a guard demands of a tensor and that no operator around it takes."""
    from smartmem_rules.analysis.types.dtypes import Dtypes  # start-up time

    dtypes = Dtypes(operators)
    dtypes.of(rule.left)
    if dtypes.conflict is not None:
        return
    for guard in rule.guards:
        for part in conjuncts(guard):
            match part:
                case s.Binary(
                    operator="==",
                    left=s.Call(function="dtype", arguments=(s.Name(id=name),)),
                    right=s.Text(value=word) as text,
                ) if word in ALL_DTYPES:
                    allowed = dtypes.variables.get(name)
                    if allowed is not None and word not in allowed:
                        message = f"`{name}` is never {word}: the operators around it do not take it"
                        fix = advice(
                            f"they take {', '.join(sorted(allowed))}: write one of these, or leave the guard out"
                        )
                        yield Diagnostic(Code.VACUOUS_GUARD, "error", message, text.span, fix=fix)
                case _:
                    pass


def _is_dtype(expr: s.Expression) -> bool:
    return isinstance(expr, s.Call) and expr.function == "dtype"


def moves_elements(base: Definitions, name: str) -> bool:
    """Whether some use of an operator only moves elements, so that it can be an index map."""
    from smartmem_rules.analysis.tries import tried  # start-up time

    for operator in base.operators.get(name, ()):
        outputs, locals_ = {one.name for one in operator.outputs}, {one.tensor for one in operator.equations}
        for equation in operator.equations:
            read = equation.body.base if isinstance(equation.body, s.Subscript) else None
            if equation.tensor in outputs and (equation.view or (isinstance(read, s.Name) and read.id not in locals_)):
                return True
        probes = tried(base, operator, _PROBES).probes
        if any(_moves(equation) for probe in probes for equation in probe.instance.equations):
            return True
    return False


def _moves(equation: Equation) -> bool:
    """Whether an equation of an output reads one element of an operand, as an index map can; locals do not count."""
    read = equation.view
    return equation.tensor.startswith("%") and read is not None and read.tensor.startswith("$")


def check_is_view(rule: s.Eliminate, base: Definitions) -> Iterator[Diagnostic]:
    """Eliminations of operators that compute."""
    if rule.operator in base.operators and not moves_elements(base, rule.operator):
        yield Diagnostic(
            Code.NO_VIEW_TO_ELIMINATE,
            "error",
            f"`{rule.operator}` computes with elements, so it can be no index map",
            rule.place("operator") if "operator" in rule.places else rule.span,
            fix=_view_meant(rule, base),
        )


def _view_meant(rule: s.Eliminate, base: Definitions) -> Fix:
    """The operator that a rule is called after, where that only moves elements."""
    words = rule.name.replace("_", "").lower()
    for name in base.operators:
        if name.lower() == words and name != rule.operator and moves_elements(base, name):
            said = f"write `{name}`, after which the rule is called, and which only moves elements"
            return replacement(said, rule.place("operator") if "operator" in rule.places else rule.span, name)
    return advice("eliminate operators that only move elements; write a rewrite for all else")

"""Expressions and declarations that follow the grammar, but cannot mean anything where they stand."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import conjuncts, nodes
from smartmem_rules.language.fixes import Edit, Fix, advice, before, behind, edit, nearest, replacement
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.vocabulary import ALL_FUNCTIONS, LIST_FUNCTIONS
from smartmem_rules.rulebase.checks.meant.kinds import is_list
from smartmem_rules.rulebase.checks.operators.definitions import shape_names
from smartmem_rules.rulebase.checks.scope import head

_NO_CONDITIONS = frozenset(LIST_FUNCTIONS) - {"contains", "near", "present", "fail", "min", "max"} | {"value", "uses"}
"""Functions that give numbers, texts or lists."""


def check_conditions(
    conditions: Sequence[s.Expression],
    predicates: Collection[str] = (),
    may_fail: bool = False,
    numbers: Collection[str] = (),
) -> Iterator[Diagnostic]:
    """Guards and requirements that are numbers, texts or lists; only requirements may fail with a reason.

    Args:
        numbers: names that stand for numbers.
    """
    for part in conjuncts(*conditions):
        what = "a number" if isinstance(part, s.Name) and part.id in numbers else _no_condition(part)
        if what is not None and not _miscounted(part):
            message = f"a condition holds or does not hold, but this is {what}"
            reason = _reason_meant(part) if may_fail else None
            fix = reason or predicate_meant(part, predicates) or _condition_meant(part)
            yield Diagnostic(Code.NO_CONDITION, "error", message, part.span, fix=fix)


def _reason_meant(part: s.Expression) -> Fix | None:
    """`N % 2 == 0 or "N must be even"`."""
    match part:
        case s.Binary(operator="or", right=s.Text() as reason):
            new = f"fail({print_expression(reason)})"
            return replacement(f"the reason of a refusal stands in `fail`: write `{new}`", reason.span, new)
        case _:
            return None


def _miscounted(part: s.Expression) -> bool:
    """Whether it is a call of a built-in function with too few or too many arguments, of which more is told there."""
    if not isinstance(part, s.Call) or part.function not in ALL_FUNCTIONS:
        return False
    return not ALL_FUNCTIONS[part.function].admits(len(part.arguments))


_COUNTS = frozenset({"rank", "extent", "count", "uses", "prod", "sum_of"})
"""Functions whose values are numbers from 0 on; as conditions other languages ask whether they are above 0."""


def _condition_meant(part: s.Expression) -> Fix:
    """What a condition of other languages asks: whether a number is not 0, or a list not empty."""
    negated = isinstance(part, s.Unary) and part.operator == "not"
    value = part.operand if isinstance(part, s.Unary) and negated else part
    shown, equal = print_expression(value), "==" if negated else "!="
    match value:
        case s.Call(function=function) if function in _COUNTS:
            new = f"{shown} {'==' if negated else '>'} 0"
        case s.Call(function="value"):
            new = f"{shown} {equal} 0"
        case s.Call(function="dtype"):
            return advice(f'compare it with a text: `{shown} == "float32"`')
        case s.Call(function="shape", arguments=(tensor,)):
            return advice(
                f"compare it with a list, or ask for the number of axes: `rank({print_expression(tensor)}) > 0`"
            )
        case s.Number() | s.Text():
            return advice("leave it out, or compare it with something")
        case s.ListOf() | s.Comprehension() | s.Call() | s.Binary(operator="or"):
            return advice(f"compare it: `{shown} == ...`")
        case _:
            new = f"{shown} {equal} 0"
    return replacement(f"compare it: `{new}`", part.span, new)


def predicate_meant(part: s.Expression, predicates: Collection[str]) -> Fix | None:
    """The predicate that a guard means by the name of a function that gives no truth, as `single` for `single_rank`."""
    if not isinstance(part, s.Call) or part.function not in _NO_CONDITIONS:
        return None
    if part.function in predicates:
        return None
    words = set(part.function.split("_"))
    near = sorted(one for one in predicates if words < set(one.split("_")))
    near = near or [one for one in (nearest(part.function, predicates),) if one is not None]
    if len(near) != 1:
        return None
    return replacement(f"did you mean `{near[0]}`?", head(part.span, part.function), near[0])


def _no_condition(part: s.Expression) -> str | None:
    match part:
        case s.Number():
            return "a number"
        case s.Text():
            return "a text"
        case s.ListOf() | s.Comprehension():
            return "a list"
        case s.Unary(operator="-"):
            return "a number"
        case s.Binary(operator="+" | "-" | "*" | "/" | "//" | "%" | "**"):
            return "a sum" if part.operator in "+-" else "a computed value"
        case s.Call(function=function) if function in _NO_CONDITIONS:
            return f"what `{function}` gives"
        case s.Unary(operator="not", operand=operand):
            return _no_condition(operand)
        case s.Binary(operator="or", left=left, right=right):
            return _no_condition(left) or _no_condition(right)
    return None


def check_defaults(operator: s.Operator) -> Iterator[Diagnostic]:
    """Defaults that are no values of their attribute's kind."""
    declared: list[s.Attribute | s.Input] = [*operator.attributes, *operator.inputs]
    for one in declared:
        kind = one.kind if isinstance(one, s.Attribute) else one.constant
        if one.default is None or kind is None:
            continue
        found = kind_of(one.default)
        if found is not None and found not in ADMITTED.get(kind, {found}):
            message = f"the default of `{one.name}` is {CALLED[found]}, but its kind is {kind}"
            fix = advice(f"write `{one.name}: {kind} = {EXAMPLES[kind]}`, or another kind")
            meant = meant_by(one.default, kind)
            if found == "list" and f"{kind}s" in ADMITTED and is_list(operator, one):
                shown = print_expression(one.default)
                fix = advice(f"write `{one.name}: {kind}s = {shown}`, a list of them")
            elif meant is not None:
                fix = replacement(f"write `{one.name}: {kind} = {meant}`", one.default.span, meant)
            elif kind in ("ints", "floats", "strings") and found in ADMITTED[kind[:-1]]:
                place = one.default.span
                fix = edit("a list stands in square brackets", Edit(before(place), "["), Edit(behind(place), "]"))
            yield Diagnostic(Code.BAD_DEFAULT, "error", message, one.default.span, fix=fix)


CALLED: dict[str, str] = {
    "text": "a text", "whole": "a whole number", "fraction": "a fraction", "truth": "a truth value", "list": "a list",
}  # fmt: skip
ADMITTED: dict[str, set[str]] = {
    "int": {"whole"},
    "float": {"whole", "fraction"},
    "string": {"text"},
    "bool": {"truth", "whole"},
    "ints": {"list"},
    "floats": {"list"},
    "strings": {"list"},
    "tensor": {"list", "whole", "fraction", "truth"},
}
EXAMPLES: dict[str, str] = {
    "int": "1", "float": "1.0", "string": '"text"', "bool": "true", "ints": "[1, 1]", "floats": "[1.0, 1.0]",
    "strings": '["text"]', "tensor": "none",
}  # fmt: skip


def kind_of(value: s.Expression) -> str | None:
    """What a literal is; None of anything else."""
    match value:
        case s.Text():
            return "text"
        case s.Number(value=number):
            return "whole" if isinstance(number, int) else "fraction"
        case s.Unary(operator="-", operand=operand):
            return kind_of(operand)
        case s.Truth():
            return "truth"
        case s.ListOf() | s.Comprehension():
            return "list"
    return None


def meant_by(value: s.Expression, kind: str) -> str | None:
    """A value of a kind that a literal of another one stands for: of a list the only member, of a text its number."""
    if isinstance(value, s.Truth) and kind in ("int", "float"):
        return f"{int(value.value)}" if kind == "int" else f"{int(value.value)}.0"
    if isinstance(value, s.ListOf) and len(value.items) == 1 and kind_of(value.items[0]) in ADMITTED.get(kind, set()):
        return print_expression(value.items[0])
    if isinstance(value, s.Text) and kind in ("int", "float"):
        form = r"-?\d+" if kind == "int" else r"-?\d+(\.\d+)?"
        return value.value if re.fullmatch(form, value.value) else None
    return None


def check_shapes(operator: s.Operator) -> Iterator[Diagnostic]:
    """Inputs with two lists of extents: where the first ends, nothing says."""
    bound: set[str] = set()
    yield from _computed_extents(operator)
    for item in operator.inputs:
        lists = [
            extent
            for extent in (item.type.shape if item.type is not None else ())
            if isinstance(extent, s.Splat) and isinstance(extent.operand, s.Name)
        ]
        names = [extent.operand.id for extent in lists if isinstance(extent.operand, s.Name)]
        unknown = [extent for extent, name in zip(lists, names, strict=True) if name not in bound]
        if len(unknown) > 1:
            message = f"nothing says where the first list of extents of `{item.name}` ends"
            fix = advice("write one list, `*S`, and the other extents by single names")
            yield Diagnostic(Code.INDEX_COUNT, "error", message, unknown[1].span, fix=fix)
        bound.update(names)


def _computed_extents(operator: s.Operator) -> Iterator[Diagnostic]:
    """Extents of inputs that are computed from names which nothing binds."""
    bound = (
        set(shape_names(operator)) | {one.name for one in operator.attributes} | {one.name for one in operator.inputs}
    )
    for item in operator.inputs:
        for extent in item.type.shape if item.type is not None else ():
            inner = extent.operand if isinstance(extent, s.Splat) else extent
            names = [node for node in nodes(inner) if isinstance(node, s.Name) and node.id.isidentifier()]
            unknown = [node for node in names if node.id not in bound and node.id[:1].isupper()]
            if not isinstance(inner, s.Binary) or not unknown:
                continue
            name = unknown[0].id
            message = f"an input's shape binds plain names, so nothing says what `{name}` is"
            fix = advice(f"name the whole extent, `{item.name}: T[M]`, and compute the other: `let {name} = M // 2`")
            yield Diagnostic(Code.NO_EXTENT, "error", message, extent.span, fix=fix)


def check_indices(operator: s.Operator) -> Iterator[Diagnostic]:
    """Single indices where a tensor has as many axes as its operand."""
    names = frozenset(shape_names(operator))
    open_ones = {output.name for output in operator.outputs if _is_open(output.type.shape, names)}
    for equation in operator.equations:
        single = equation.indices and all(binder.kind != "loops" for binder in equation.indices)
        if equation.tensor in open_ones and single and equation.member is None:
            written = ", ".join(binder.name for binder in equation.indices)
            message = f"`{equation.tensor}` has one index for each axis of an operand, but is written with `{written}`"
            fix = advice(f"write `{equation.tensor}[*i] = ...`, or name the axes of the operand: `x: T[N]`")
            yield Diagnostic(Code.INDEX_COUNT, "error", message, equation.span, fix=fix)


def _is_open(shape: Sequence[s.Expression], names: frozenset[str]) -> bool:
    return [isinstance(e, s.Splat) and isinstance(e.operand, s.Name) and e.operand.id in names for e in shape] == [True]


def elements_required(operator: s.Operator, place: s.Span) -> Diagnostic:
    """A requirement that reads an element of a tensor that is known when the model runs."""
    reads = (one for one in nodes(operator.requires) if isinstance(one, s.Subscript) and one.span[:3] == place[:3])
    read = next(reads, None)
    base = read.base if read is not None else None
    name = base.id if isinstance(base, s.Name) else "x"
    message = f"this asks for an element of `{name}`, which is known when the model runs, not when it is imported"
    shape = next((i.type.shape for i in operator.inputs if i.name == name and i.type is not None), ())
    extents = [print_expression(extent) for extent in shape]
    indices = [f"*i{n or ''}" if one.startswith("*") else f"i{n or ''}" for n, one in enumerate(extents)]
    loops = ", ".join(f"{i} < {e.removeprefix('*')}" for i, e in zip(indices, extents, strict=True))
    asked = f"`require all({loops}) ({name}[{', '.join(indices)}] ...)`"
    if not extents:
        asked = f"const {name}: float"
        fix = advice(f"leave it out, or declare what is known at import: `{asked}`, which is named without brackets")
        return Diagnostic(Code.IMPOSSIBLE_DEFINITION, "error", message, place if read is None else read.span, fix=fix)
    fix = advice(f"leave it out, or ask it of all elements, {asked}: that is looked at where the operand is a constant")
    return Diagnostic(Code.IMPOSSIBLE_DEFINITION, "error", message, place if read is None else read.span, fix=fix)


def check_lets_of_elements(operator: s.Operator) -> Iterator[Diagnostic]:
    """A `let` that reads elements of an operand: lets are computed when the operator is instantiated."""
    tensors = {item.name for item in operator.inputs if item.type is not None and not item.variadic}
    for let in operator.lets:
        loops = {node.name for node in nodes(let.value) if isinstance(node, s.Binder)}
        for read in nodes(let.value):
            if not isinstance(read, s.Subscript) or not isinstance(read.base, s.Name):
                continue
            indices = {node.id for node in nodes(read.items) if isinstance(node, s.Name)}
            if read.base.id in tensors and indices <= loops:  # an index that is not defined has its own message
                message = f"`{let.name}` is known before any element of `{read.base.id}` is: a `let` reads none"
                fix = advice(f"compute it as a local tensor: `{let.name}[n < N] = ...`, read as `{let.name}[n]`")
                yield Diagnostic(Code.IMPOSSIBLE_DEFINITION, "error", message, read.span, fix=fix)
                break


def check_extremes(operator: s.Operator) -> Iterator[Diagnostic]:
    """`max(x[*i])`: of one element, where a range or a second value is missing."""
    tensors = {item.name for item in operator.inputs if item.type is not None and not item.variadic}
    for call in nodes(operator.equations):
        match call:
            case s.Call(function="max" | "min" as word, arguments=(s.Subscript(base=s.Name(id=name)) as read,)) if (
                name in tensors
            ):
                shown = print_expression(read)
                fix = advice(f"write `{word}({shown}, 0)` for the other of two, or a range: `{word}(k < K) {name}[k]`")
                message = f"`{word}` of one element is that element"
                yield Diagnostic(Code.ARGUMENT_COUNT, "error", message, call.span, fix=fix)
            case _:
                pass


def check_members(operator: s.Operator) -> Iterator[Diagnostic]:
    """Members of a variadic input that are numbered by a loop: which tensor is read is known before any loop runs."""
    variadic = {item.name for item in operator.inputs if item.variadic}
    for reduction in nodes(operator.equations):
        if not isinstance(reduction, s.Reduction):
            continue
        numbers = {
            index.id
            for read in nodes(reduction)
            if isinstance(read, s.Subscript) and isinstance(read.base, s.Name) and read.base.id in variadic
            for index in nodes(read.items)
            if isinstance(index, s.Name)
        }
        for binder in reduction.binders:
            if binder.kind == "loop" and binder.name in numbers:
                message = f"`{binder.name}` numbers the tensors of a list, which a loop cannot go through"
                new = f"{binder.name} in {print_expression(binder.bound)}"
                fix = replacement(f"write `{new}`: one term for each tensor", binder.span, new)
                yield Diagnostic(Code.IMPOSSIBLE_DEFINITION, "error", message, binder.span, fix=fix)

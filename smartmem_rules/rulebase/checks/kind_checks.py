"""Comparisons of values whose kinds never agree (text, number, list), and attributes that get one of another kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice, replacement
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.roots import roots_of
from smartmem_rules.language.vocabulary import GIVING_LISTS
from smartmem_rules.rulebase.checks.meant.dtypes import dtype_meant
from smartmem_rules.rulebase.checks.meant.kinds import misdeclared
from smartmem_rules.rulebase.checks.meant.lengths.shapes import TURNED, is_shape, length_of, members_meant, shape_meant
from smartmem_rules.rulebase.checks.operators.definitions import shape_names
from smartmem_rules.rulebase.checks.operators.spreading import spread_extents

Operators = Mapping[str, Sequence[s.Operator]]
Kinds = Mapping[str, str]
"""What names stand for: `number`, `text`, `truth`, `list of number`, `list of text`, or `list`."""

_OF_ATTRIBUTES = {
    "int": "number", "float": "number", "string": "text", "bool": "truth", "ints": "list of number",
    "floats": "list of number", "strings": "list of text",
}  # fmt: skip
_NUMBERS = frozenset({"rank", "extent", "prod", "sum_of", "count", "uses", "value", "index_of", "ceil_div"})
_TRUTHS = frozenset({"constant", "present", "contains", "near"})
_CALLED = {"number": "a number", "text": "a text", "truth": "a truth value", "list": "a list"}


def check_comparisons(item: s.Item, operators: Operators) -> Iterator[Diagnostic]:
    """Numbers, texts and lists that are compared with one another: they are never equal."""
    kinds = kinds_in(item, operators)
    hidden = {node.name for node in nodes(item) if isinstance(node, s.Binder)}
    hidden |= misdeclared(item) if isinstance(item, s.Operator) else set()
    kinds = {name: kind for name, kind in kinds.items() if name not in hidden}
    for node in nodes(item):
        match node:
            case s.Binary(operator="==" | "!=" | "<" | "<=" | ">" | ">=" as sign, left=left, right=right):
                yield from _compared(left, right, kinds, item, sign)
            case s.Call(function="contains", arguments=(s.ListOf(items=members), one)):
                for member in members:
                    yield from _compared(one, member, kinds, item)
            case _:
                pass
    # of an extent that is used as a list the missing star is told
    spread = {s.Name(s.NOWHERE, one) for one in spread_extents(item)} if isinstance(item, s.Operator) else set()
    for node in nodes(item):
        yield from _compared_truth(node)
        if not isinstance(node, s.Subscript) or node.base not in spread:
            yield from _elements_of_one(node, kinds)
    if isinstance(item, s.Rewrite):
        yield from _given(item, operators, kinds)
        yield from _texts_as_operands(item, kinds)
    elif isinstance(item, s.Operator):
        yield from _lists_as_one(item, kinds)
        yield from _absent_numbers(item)


_OF_TENSORS = frozenset({"rank", "shape", "extent", "dtype", "constant", "uses"})


def wanted_in(root: object, kinds: Kinds, operators: Operators) -> dict[s.Span, str]:
    """The places of names at which a value of one kind is wanted."""
    found: dict[s.Span, str] = {}
    for node in nodes(root):
        match node:
            case s.Call(function=function, arguments=(s.Name() as name, *_)) if function in _OF_TENSORS:
                found[name.span] = "tensor"
            case s.Binary(operator=word, left=left, right=right) if word not in ("and", "or"):
                for one, other in ((left, right), (right, left)):
                    kind = kind_of_value(other, kinds)
                    if isinstance(one, s.Name) and kind in ("number", "text"):
                        found[one.span] = kind
            case s.PatternOperator():
                for attribute in node.attributes:
                    wanted = _kinds_of(attribute.name, operators.get(node.operator, ()))
                    if isinstance(attribute.value, s.Name) and len(wanted) == 1:
                        found[attribute.value.span] = min(wanted)
            case _:
                pass
    return found


def kinds_bound(left: s.Pattern, operators: Operators) -> dict[str, str]:
    """The kinds of the names that a left side binds; what may be of several kinds is left out."""
    found: dict[str, set[str]] = {}
    for part in nodes(left):
        if isinstance(part, s.PatternOperator):
            _bound(part, operators.get(part.operator, ()), found)
    return {name: min(kinds) for name, kinds in found.items() if len(kinds) == 1}


def kinds_in(item: s.Item, operators: Operators) -> dict[str, str]:
    """The kinds of the names of attributes and extents in an item; what may be of several kinds is left out."""
    found: dict[str, set[str]] = {}
    if isinstance(item, s.Operator):
        _declared(item, found)
    elif isinstance(item, s.Eliminate | s.Keep):
        for overload in operators.get(item.operator, ()):
            _declared(overload, found)
    elif isinstance(item, s.Rewrite):
        for root in roots_of(item.left):
            for part in nodes(root):
                if isinstance(part, s.PatternOperator):
                    _bound(part, operators.get(part.operator, ()), found)
    lets = {let.name for let in nodes(item) if isinstance(let, s.Let | s.RuleLet)}
    return {name: min(kinds) for name, kinds in found.items() if len(kinds) == 1 and name not in lets}


def _declared(operator: s.Operator, found: dict[str, set[str]]) -> None:
    for attribute in operator.attributes:
        found.setdefault(attribute.name, set()).add(_OF_ATTRIBUTES.get(attribute.kind, attribute.kind))
    for item in operator.inputs:
        found.setdefault(item.name, set()).add(_OF_ATTRIBUTES.get(item.constant or "", "tensor"))
    spread = {
        extent.operand.id
        for item in operator.inputs
        for extent in (item.type.shape if item.type is not None else ())
        if isinstance(extent, s.Splat) and isinstance(extent.operand, s.Name)
    }
    for name in shape_names(operator):
        found.setdefault(name, set()).add("list of number" if name in spread else "number")


def _bound(pattern: s.PatternOperator, overloads: Sequence[s.Operator], found: dict[str, set[str]]) -> None:
    for argument in pattern.arguments:
        if isinstance(argument, s.PatternVariable):
            found.setdefault(argument.name, set()).add("tensor")
    for attribute in pattern.attributes:
        if isinstance(attribute.value, s.Name):
            kinds = _kinds_of(attribute.name, overloads) or _kinds_at_import(attribute.name, overloads)
            found.setdefault(attribute.value.id, set()).update(kinds)


def _kinds_of(name: str, overloads: Sequence[s.Operator]) -> set[str]:
    """The kinds that an attribute has; those of a compile-time operand are open: one number stands for a list of it."""
    if any(one.name == name for operator in overloads for one in operator.inputs):
        return set()
    declared = {one.kind for operator in overloads for one in operator.attributes if one.name == name}
    return {_OF_ATTRIBUTES.get(kind, kind) for kind in declared}


def _kinds_at_import(name: str, overloads: Sequence[s.Operator]) -> set[str]:
    """The kinds that a pattern binds of a compile-time operand: what is given for a list is a list there."""
    given = [one.constant for operator in overloads for one in operator.inputs if one.name == name]
    given += [one.kind for operator in overloads for one in operator.attributes if one.name == name]
    known = {_OF_ATTRIBUTES.get(kind or "") for kind in given}
    return {kind for kind in known if kind is not None} if known and None not in known else {"number", "list"}


def kind_of_value(expr: s.Expression, kinds: Kinds) -> str | None:
    """What an expression gives, None where that is open."""
    match expr:
        case s.Number():
            return "number"
        case s.Text():
            return "text"
        case s.Truth() | s.Unary(operator="not"):
            return "truth"
        case s.ListOf(items=items):
            inner = {kind_of_value(one, kinds) for one in items}
            return "list of number" if inner == {"number"} else "list of text" if inner == {"text"} else "list"
        case s.Comprehension():
            return "list"
        case s.Unary(operator="-", operand=operand):
            return kind_of_value(operand, kinds)
        case s.Binary(operator="+" | "-" | "*" | "/" | "//" | "%" | "**", left=left, right=right):
            both = {kind_of_value(left, kinds), kind_of_value(right, kinds)}
            if both == {"number"}:
                return "number"
            return "list of number" if both in ({"list of number"}, {"list of number", "number"}) else None
        case s.Binary():
            return "truth"
        case s.Name(id=name):
            kind = kinds.get(name)
            return kind if kind is not None and (kind in _CALLED or kind.startswith("list")) else None
        case s.Subscript(base=s.Name(id=name), items=(index,)) if kinds.get(name, "").startswith("list of "):
            return kinds[name] if isinstance(index, s.Slice) else kinds[name].removeprefix("list of ")
        case s.Call():
            return _given_by(expr)
    return None


def _given_by(call: s.Call) -> str | None:
    """What a function gives."""
    if call.function in _NUMBERS:
        return "number"
    if call.function == "dtype" and len(call.arguments) == 1:
        return "text"
    if call.function in GIVING_LISTS and (call.function != "shape" or len(call.arguments) == 1):
        return "list"
    return "truth" if call.function in _TRUTHS else None


def _compared_truth(node: s.Syntax) -> Iterator[Diagnostic]:
    """`all(i < N) x[i] > 0`: the comparison is of what `all` gives."""
    if not isinstance(node, s.Binary) or node.operator not in ("==", "!=", "<", "<=", ">", ">="):
        return
    reduction = node.left
    if isinstance(reduction, s.Reduction) and reduction.kind in ("all", "any") and not isinstance(node.right, s.Truth):
        comparison = s.Binary(node.span, node.operator, reduction.body, node.right)
        shown = print_expression(
            s.Reduction(node.span, reduction.kind, reduction.binders, reduction.condition, comparison)
        )
        message = f"this compares what `{reduction.kind}` gives, a truth value"
        fix = replacement(f"what is compared stands in parentheses: `{shown}`", node.span, shown)
        yield Diagnostic(Code.NO_CONDITION, "error", message, node.span, fix=fix)


def _elements_of_one(node: s.Syntax, kinds: Kinds) -> Iterator[Diagnostic]:
    """Indices behind a name that stands for one number or text."""
    if not isinstance(node, s.Subscript) or not isinstance(node.base, s.Name):
        return
    name, kind = node.base.id, kinds.get(node.base.id, "")
    if kind in ("number", "text", "truth"):
        message = f"`{name}` is {_CALLED[kind]}, which has no elements"
        yield Diagnostic(
            Code.INDEX_COUNT, "error", message, node.span, fix=replacement(f"write `{name}`", node.span, name)
        )


def _lists_as_one(operator: s.Operator, kinds: Kinds) -> Iterator[Diagnostic]:
    """Lists where one number stands: extents and indices without a star."""
    tensors = {name for name, kind in kinds.items() if kind == "tensor"}
    extents = [(extent, "extent") for output in operator.outputs for extent in output.type.shape]
    reads = (node for node in nodes(operator.equations) if isinstance(node, s.Subscript))
    indices = [
        (item, "index")
        for read in reads
        for item in read.items
        if isinstance(read.base, s.Name) and read.base.id in tensors
    ]
    for expr, what in (*extents, *indices):
        if isinstance(expr, s.Name | s.Splat | s.Broadcast) or kind_of_value(expr, kinds) != "list of number":
            continue
        shown = print_expression(expr)
        spread = f"*({shown})" if isinstance(expr, s.Binary) else f"*{shown}"
        lists = [n.id for n in nodes(expr) if isinstance(n, s.Name) and kinds.get(n.id) == "list of number"]
        fix = advice(f"write an element of the list, `{lists[0]}[0]`" if lists else f"write `{spread}`")
        if lists:
            fix = advice(f"{fix.text}, or `{spread}` for as many as it has")
        yield Diagnostic(Code.INDEX_COUNT, "error", f"`{shown}` is a list, and this is one {what}", expr.span, fix=fix)


def _texts_as_operands(rule: s.Rewrite, kinds: Kinds) -> Iterator[Diagnostic]:
    """Texts among the operands of a right side: a constant is made of a number."""
    for node in nodes(rule.right):
        if isinstance(node, s.PatternComputed) and isinstance(node.value, s.Text):
            word = node.value.value
            number = word.lstrip("-").replace(".", "", 1).isdigit()
            fix = (
                replacement(f"write `{word}`, without quotes", node.span, word) if number else advice("write a number")
            )
            yield Diagnostic(Code.NO_CONDITION, "error", "a text is no tensor", node.span, fix=fix)


def _absent_numbers(operator: s.Operator) -> Iterator[Diagnostic]:
    """Attributes that may be absent, of which nothing asks whether they are there, in arithmetic."""
    none = {one.name for one in operator.attributes if one.default is None and not one.required}
    asked = {
        argument.id
        for node in nodes(operator)
        if isinstance(node, s.Call) and node.function == "present"
        for argument in node.arguments
        if isinstance(argument, s.Name)
    }
    asked |= {
        side.id
        for node in nodes(operator)
        if isinstance(node, s.Binary) and node.operator in ("==", "!=")
        for side in (node.left, node.right)
        if isinstance(side, s.Name)
    }
    for node in nodes(operator):
        if not isinstance(node, s.Binary) or node.operator not in ("+", "-", "*", "/", "//", "%", "**"):
            continue
        for side in (node.left, node.right):
            if isinstance(side, s.Name) and side.id in none - asked:
                message = f"`{side.id}` may be absent, and then it is no number"
                fix = advice(f"ask for it, `if present({side.id}) then ... else ...`, or give it another default")
                yield Diagnostic(Code.IMPOSSIBLE_DEFINITION, "error", message, side.span, fix=fix)
                asked.add(side.id)


def _sort(kind: str) -> str:
    return kind.partition(" ")[0]


def _compared(
    left: s.Expression, right: s.Expression, kinds: Kinds, item: s.Item, sign: str = "=="
) -> Iterator[Diagnostic]:
    one, other = kind_of_value(left, kinds), kind_of_value(right, kinds)
    if one is None or other is None or not _apart(one, other):
        return
    literal = (s.Number, s.Text, s.ListOf, s.Truth, s.Unary)
    if isinstance(left, literal) and not isinstance(right, literal):
        left, right, one, other, sign = right, left, other, one, TURNED.get(sign, sign)
    shown = print_expression(left)
    gives = f"`{left.function}` gives" if isinstance(left, s.Call) else f"`{shown}` is"
    message = f"{gives} {_CALLED[_sort(one)]}, which equals no {_CALLED[_sort(other)].removeprefix('a ')}"
    fix = _meant(left, right, one, other, item, sign)
    yield Diagnostic(Code.NO_CONDITION, "error", message, right.span, fix=fix)


def _apart(one: str, other: str) -> bool:
    """Whether values of two kinds are never equal; a truth value is 0 or 1 where it is compared with a number."""
    sorts = {_sort(one), _sort(other)}
    return len(sorts) == 2 and sorts != {"number", "truth"}


def _meant(left: s.Expression, right: s.Expression, one: str, other: str, item: s.Item, sign: str) -> Fix:
    shown = print_expression(left)
    if one == "number" and isinstance(right, s.Text):
        number = right.value.lstrip("-").replace(".", "", 1).isdigit()
        return replacement("write it without quotes", right.span, right.value) if number else advice("write a number")
    if one == "truth" and isinstance(right, s.Text) and right.value.lower() in ("true", "false"):
        return replacement(f"write `{right.value.lower()}`", right.span, right.value.lower())
    if isinstance(left, s.Call) and left.function == "dtype":
        return dtype_meant(left, right)
    if one == "text":
        texts = _texts_of(left, item)
        if len(texts) == 1:
            return replacement(f"write a text: `{texts[0]}`", right.span, texts[0])
        known = f"; it is compared with {', '.join(texts)} elsewhere" if texts else ""
        return advice(f'write a text, which stands in quotes: `{shown} == "..."`{known}')
    if _sort(one) == "list" and other == "number":
        if is_shape(left, item):
            return shape_meant(left, right, sign)
        if (length := length_of(left, item)) is not None:
            return members_meant(right, length)
        new = f"[{print_expression(right)}]"
        return replacement(f"a list stands in square brackets: `{new}`", right.span, new)
    if one == "number" and isinstance(right, s.ListOf) and len(right.items) == 1:
        new = print_expression(right.items[0])
        return replacement(f"write `{new}`, without brackets", right.span, new)
    return advice(f"compare `{shown}` with {_CALLED[_sort(one)]}")


def _texts_of(left: s.Expression, item: s.Item) -> list[str]:
    """The texts that an attribute is compared with elsewhere in the item, and its default."""
    found: dict[str, None] = {}
    for node in nodes(item):
        match node:
            case s.Attribute(name=name, default=s.Text() as default) if left == s.Name(s.NOWHERE, name):
                found[print_expression(default)] = None
            case s.Binary(operator="==" | "!=", left=one, right=s.Text() as text) if one == left:
                found[print_expression(text)] = None
            case _:
                pass
    return list(found)


def _given(rule: s.Rewrite, operators: Operators, kinds: Kinds) -> Iterator[Diagnostic]:
    """Attributes of the right side that get what the left side binds of another kind."""
    for pattern in nodes(rule.right):
        if not isinstance(pattern, s.PatternOperator):
            continue
        for attribute in pattern.attributes:
            if not isinstance(attribute.value, s.Name | s.Subscript):
                continue
            kind = kind_of_value(attribute.value, kinds)
            wanted = _kinds_of(attribute.name, operators.get(pattern.operator, ()))
            if kind is None or not wanted or not all(_apart(kind, one) for one in wanted):
                continue
            shown = print_expression(attribute.value)
            message = (
                f"`{shown}` is {_CALLED[_sort(kind)]}, but `{attribute.name}` of `{pattern.operator}` is "
                f"{_CALLED[_sort(min(wanted))]}"
            )
            fix = advice(f"give `{attribute.name}` {_CALLED[_sort(min(wanted))]}")
            if kind == "number" and min(wanted).startswith("list"):
                fix = replacement(f"a list stands in square brackets: `[{shown}]`", attribute.value.span, f"[{shown}]")
            elif kind == "list of number" and min(wanted) == "number" and isinstance(attribute.value, s.Name):
                new = f"{shown}[0]"
                fix = advice(
                    f"write `{new}` for its first element, and guard that it is the only one: `rank({shown}) == 1`"
                )
            yield Diagnostic(Code.ATTRIBUTE_KIND, "error", message, attribute.value.span, fix=fix)

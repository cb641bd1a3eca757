"""Values of a definition that are of another kind than their place takes: texts and lists as elements or as ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice, behind, replacement
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.vocabulary import ELEMENT_FUNCTIONS, GIVING_LISTS

_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "**"})
_CONVERTING = frozenset({"cast", "bitcast"})
_LISTS = frozenset({"ints", "floats", "strings"})


def check_literals(operator: s.Operator) -> Iterator[Diagnostic]:
    """What no element, no number and no end of a range can be."""
    kinds = _kinds(operator)
    for equation in operator.equations:
        for value in _elements(equation.body):
            yield from _no_element(value, kinds)
    for node in nodes((operator.lets, operator.requires)):
        if isinstance(node, s.Binary) and node.operator in _ARITHMETIC:
            for side in (node.left, node.right):
                if isinstance(side, s.Text):
                    yield _wrong(side, "a text", "arithmetic is of numbers", _number_meant(side))
    yield from _ends(operator)
    yield from _scanned_outputs(operator)
    yield from _negative_extents(operator)
    yield from _hidden_extents(operator)
    yield from _listed_defaults(operator)


def _kinds(operator: s.Operator) -> dict[str, str]:
    """The names that stand for texts and lists."""
    hidden = {node.name for node in nodes(operator.equations) if isinstance(node, s.Binder)}
    found = {one.name: "a text" for one in operator.attributes if one.kind == "string"}
    found |= {one.name: "a list" for one in operator.attributes if one.kind in _LISTS}
    found |= {let.name: "a text" for let in operator.lets if isinstance(let.value, s.Text)}
    found |= {let.name: "a list" for let in operator.lets if _is_list(let.value)}
    return {name: kind for name, kind in found.items() if name not in hidden}


def _is_list(value: s.Expression) -> bool:
    if isinstance(value, s.Call):
        return value.function in GIVING_LISTS
    return isinstance(value, s.ListOf | s.Comprehension)


def _elements(value: s.Expression) -> Iterator[s.Expression]:
    """The parts of a body that are elements themselves."""
    yield value
    match value:
        case s.Binary(operator=sign, left=left, right=right) if sign in _ARITHMETIC:
            yield from _elements(left)
            yield from _elements(right)
        case s.Unary(operator="-", operand=operand):
            yield from _elements(operand)
        case s.Conditional(then=then, otherwise=otherwise):
            yield from _elements(then)
            yield from _elements(otherwise)
        case s.Subscript(default=default) if default is not None:
            yield from _elements(default)
        case s.Reduction(kind=kind, body=body) if kind in ("sum", "prod", "mean", "max", "min"):
            yield from _elements(body)
        case s.Call(function=function, arguments=arguments) if function in ELEMENT_FUNCTIONS:
            for argument in arguments[: 1 if function in _CONVERTING else None]:
                yield from _elements(argument)
        case _:
            pass


def _no_element(value: s.Expression, kinds: Mapping[str, str]) -> Iterator[Diagnostic]:
    needs = "an element is one number"
    match value:
        case s.Binary(operator="or", left=s.Subscript(default=None) as read, right=s.Number() as other):
            shown, new = print_expression(value), f"{print_expression(read)} else {print_expression(other)}"
            between = behind(read.span)._replace(end_line=other.span.line, end_column=other.span.column)
            fix = replacement(f"what stands for an absent element follows `else`: write `{new}`", between, " else ")
            message = f"`or` joins truths, and `{shown}` has numbers"
            yield Diagnostic(Code.IMPOSSIBLE_DEFINITION, "error", message, value.span, fix=fix)
        case s.Text():
            yield _wrong(value, "a text", needs, _number_meant(value))
        case s.ListOf(items=items):
            only = len(items) == 1 and not isinstance(items[0], s.Splat)
            new = print_expression(items[0]) if only else ""
            fix = replacement(f"write `{new}`", value.span, new) if only else advice("write one number")
            yield _wrong(value, "a list", needs, fix)
        case s.Name(id="none"):
            yield _wrong(value, "nothing", needs, replacement("write `0`, or another number", value.span, "0"))
        case s.Name(id=name) if name in kinds:
            said = f"write one of its elements, such as `{name}[0]`" if kinds[name] == "a list" else "write a number"
            yield _wrong(value, kinds[name], needs, advice(said))
        case _:
            pass


def _wrong(value: s.Expression, what: str, needs: str, fix: Fix) -> Diagnostic:
    message = f"`{print_expression(value)}` is {what}, and {needs}"
    return Diagnostic(Code.IMPOSSIBLE_DEFINITION, "error", message, value.span, fix=fix)


def _number_meant(value: s.Text) -> Fix:
    word = value.value.strip()
    if word.lstrip("-").replace(".", "", 1).isdigit():
        return replacement(f"write `{word}`, without quotes", value.span, word)
    return advice("write a number, or leave it out")


def _ends(operator: s.Operator) -> Iterator[Diagnostic]:
    """Lists as ends of the ranges of single indices: `k < shape(x)` and `k < range(K)`."""
    lists = {let.name for let in operator.lets if _is_list(let.value)}
    lists |= {one.name for one in operator.attributes if one.kind in _LISTS}
    for binder in nodes(operator.equations):
        if not isinstance(binder, s.Binder) or binder.kind != "loop":
            continue  # `in` goes through lists, too
        bound = binder.bound
        if not _is_list(bound) and not (isinstance(bound, s.Name) and bound.id in lists):
            continue
        shown = print_expression(bound)
        message = f"`{shown}` is a list, and an index runs below one number"
        match bound:
            case s.Call(function="range", arguments=(end,)):
                new = f"{binder.name} < {print_expression(end)}"
                fix = replacement(f"write `{new}`: indices begin at 0", binder.span, new)
            case s.Call(function="range", arguments=(s.Number(value=0), end)):
                new = f"{binder.name} < {print_expression(end)}"
                fix = replacement(f"write `{new}`: indices begin at 0", binder.span, new)
            case s.Call(function="shape", arguments=(tensor,)):
                fix = advice(
                    f"write `{binder.name} < extent({print_expression(tensor)}, 0)` for one axis, "
                    f"or `*{binder.name} < {shown}` for an index of each axis"
                )
            case _:
                fix = advice(f"write `{binder.name} < {shown}[0]`, or `*{binder.name} < {shown}` for all at once")
        yield Diagnostic(Code.NO_EXTENT, "error", message, bound.span, fix=fix)


def _scanned_outputs(operator: s.Operator) -> Iterator[Diagnostic]:
    """`scan y[...] = ...` of an output."""
    outputs = {one.name for one in operator.outputs}
    for equation in operator.equations:
        if equation.scan and equation.tensor in outputs:
            indices = ", ".join("*" * (one.kind == "loops") + one.name for one in equation.indices)
            name = equation.tensor
            said = "scan a local tensor whose indices say their extents, `scan h[t < T, ...] = ...`, and write "
            fix = advice(f"{said}`{name}[{indices}] = h[{indices}]`; without steps leave `scan` out")
            message = f"`{name}` is an output, and a `scan` is of a local tensor"
            yield Diagnostic(Code.IMPOSSIBLE_DEFINITION, "error", message, equation.place("name"), fix=fix)


def _negative_extents(operator: s.Operator) -> Iterator[Diagnostic]:
    """`x: T[-1, K]`, where other tools mean any extent."""
    for item in operator.inputs:
        for extent in item.type.shape if item.type is not None else ():
            if isinstance(extent, s.Unary) and isinstance(extent.operand, s.Number):
                message = f"`{print_expression(extent)}` is no extent: extents are not below 0"
                fix = advice("any extent has a name of its own, such as `N`")
                yield Diagnostic(Code.NO_EXTENT, "error", message, extent.span, fix=fix)


def _hidden_extents(operator: s.Operator) -> Iterator[Diagnostic]:
    """A `let` with the name of an extent, which has a value already."""
    bound: dict[str, s.Span] = {}
    for item in operator.inputs:
        for extent in item.type.shape if item.type is not None else ():
            inner = extent.operand if isinstance(extent, s.Splat) else extent
            if isinstance(inner, s.Name):
                bound.setdefault(inner.id, inner.span)
    for let in operator.lets:
        if let.name in bound:
            message = f"`{let.name}` is an extent, which the shapes of the inputs say"
            fix = advice(f"give the value another name, or demand it: `require {let.name} == ...`")
            secondary = (bound[let.name], "it is bound here")
            yield Diagnostic(Code.DUPLICATE_NAME, "error", message, let.place("name"), secondary=secondary, fix=fix)


def _listed_defaults(operator: s.Operator) -> Iterator[Diagnostic]:
    """Elements of a list's default that are of another kind than the list's."""
    for one in operator.attributes:
        if not isinstance(one.default, s.ListOf) or one.kind not in _LISTS:
            continue
        for item in one.default.items:
            inner = item.operand if isinstance(item, s.Unary) else item
            text = isinstance(inner, s.Text)
            fraction = isinstance(inner, s.Number) and isinstance(inner.value, float)
            number = isinstance(inner, s.Number)
            if (one.kind == "ints" and (text or fraction)) or (one.kind == "floats" and text):
                what = "a text" if text else "a fraction"
                other = "strings" if text else "floats"
                fix = advice(f"write a {'whole ' * (one.kind == 'ints')}number, or `{one.name}: {other}`")
            elif one.kind == "strings" and number:
                what, fix = "a number", advice(f'write `"{print_expression(item)}"`, or another kind')
            else:
                continue
            message = f"`{print_expression(item)}` is {what}, but `{one.name}` is of {one.kind}"
            yield Diagnostic(Code.BAD_DEFAULT, "error", message, item.span, fix=fix)

"""What a definition names and nothing reads: local tensors, values, attributes and operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice, replacement
from smartmem_rules.language.printing.printer import print_expression

_OTHERS_DOMAINS = ("ai.onnx", "com.microsoft")
"""Domains whose signatures others decide: some attributes are hints, which no result depends on."""


def check_unread(operator: s.Operator, overloads: Sequence[s.Operator]) -> Iterator[Diagnostic]:
    """Names of a definition that nothing reads; `overloads` are all definitions of its name."""
    written = {equation.tensor for equation in operator.equations}
    if not {output.name for output in operator.outputs} <= written:  # which is told, with what may be meant for it
        return
    yield from _locals(operator)
    yield from _values(operator)
    if _is_own(operator):
        yield from _attributes(operator, overloads)
        yield from _operands(operator, overloads)


def _is_own(operator: s.Operator) -> bool:
    """Whether the author of the definition decides what its signature has."""
    bindings = [one for one in (operator.onnx, *operator.also) if one is not None]
    return operator.internal or (bool(bindings) and not any(one.domain.startswith(_OTHERS_DOMAINS) for one in bindings))


def _read(root: object) -> set[str]:
    return {node.id for node in nodes(root) if isinstance(node, s.Name)}


def _locals(operator: s.Operator) -> Iterator[Diagnostic]:
    outputs = {output.name for output in operator.outputs}
    for equation in operator.equations:
        tensor = equation.tensor
        others = [one for one in operator.equations if one.tensor != tensor]
        if tensor in outputs or tensor in _read((*others, *operator.outputs, *operator.costs)):
            continue
        message = f"nothing reads the local tensor `{tensor}`"
        fix = _reader_meant(operator, equation)
        yield Diagnostic(Code.UNUSED_LET, "error", message, equation.place("name"), fix=fix)


def _reader_meant(operator: s.Operator, equation: s.EquationSyntax) -> Fix:
    """The equation behind a local tensor that reads what that is made of, and so may be meant to read it, too."""
    read = f"{equation.tensor}[{', '.join('*' * (one.kind == 'loops') + one.name for one in equation.indices)}]"
    made_of = _read(equation.body) & {item.name for item in operator.inputs if item.type is not None}
    places = [(one.span.line, one.span.column) for one in operator.equations]
    later = [one for one, place in zip(operator.equations, places, strict=True) if place > equation.span[1:3]]
    reader = next((one for one in later if _read(one.body) & made_of), None)
    if reader is None:
        return advice(f"read it, `{read}`, in an equation behind it, or leave it out")
    shared = min(_read(reader.body) & made_of)
    return advice(
        f"read it, `{read}`, in an equation behind it, or leave it out: `{reader.tensor}` reads `{shared}`, of which "
        f"`{equation.tensor}` is made; is it forgotten there?"
    )


def _values(operator: s.Operator) -> Iterator[Diagnostic]:
    variables = {one.name for one in operator.dtypes}
    for place, let in enumerate(operator.lets):
        others = (*operator.lets[:place], *operator.lets[place + 1 :])
        rest = (
            others, operator.inputs, operator.attributes, operator.outputs, operator.requires, operator.expects,
            operator.equations, operator.costs,
        )  # fmt: skip
        if let.name in variables or let.name in _read(rest):
            continue
        message = f"nothing in `{operator.name}` uses `{let.name}`"
        fix = advice(f"use it where `{print_expression(let.value)}` is meant, or leave it out")
        yield Diagnostic(Code.UNUSED_LET, "error", message, let.place("name"), fix=fix)


def _attributes(operator: s.Operator, overloads: Sequence[s.Operator]) -> Iterator[Diagnostic]:
    read = _read(tuple(overloads))
    for attribute in operator.attributes:
        if attribute.name in read:
            continue
        message = f"nothing reads the attribute `{attribute.name}`, so `{operator.name}` is the same for all its values"
        fix = _attribute_meant(operator, attribute)
        yield Diagnostic(Code.UNUSED_LET, "warning", message, attribute.place("name"), fix=fix)


def _attribute_meant(operator: s.Operator, attribute: s.Attribute) -> Fix:
    """An attribute in place of the number of the equations that its default is, where it stands there once."""
    default = attribute.default
    value = "VALUE" if default is None else print_expression(default)
    if isinstance(default, s.Number) and default.value not in (0, 1, 2):
        same = [
            node for node in nodes(operator.equations) if isinstance(node, s.Number) and node.value == default.value
        ]
        if len(same) == 1:
            said = f"write `{attribute.name}` for {value}, which is its default"
            return replacement(said, same[0].span, attribute.name)
    return advice(f"use it, or say for which value the definition holds: `require {attribute.name} == {value}`")


def _operands(operator: s.Operator, overloads: Sequence[s.Operator]) -> Iterator[Diagnostic]:
    """Operands whose elements nothing reads, and which are not there for their shape either."""
    read = _read(tuple(_uses(one) for one in overloads))
    for item in operator.inputs:
        if operator.internal or item.name in read or item.type is None:
            continue
        elsewhere = _read(tuple(one.type for one in operator.inputs if one is not item))
        if _read(item.type.shape) <= elsewhere:
            message = f"nothing reads the operand `{item.name}`, so `{operator.name}` is the same for all its elements"
            fix = advice(f"read it in an equation, or leave `{item.name}` out")
            yield Diagnostic(Code.UNUSED_LET, "warning", message, item.place("name"), fix=fix)


def _uses(operator: s.Operator) -> tuple[object, ...]:
    """All of a definition but its signature's operands."""
    return (
        operator.attributes, operator.outputs, operator.requires, operator.expects, operator.lets, operator.equations,
        operator.costs,
    )  # fmt: skip

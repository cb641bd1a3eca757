"""Names of a definition that read as something else: indices that hide a name, extents in lower case, bare texts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Edit, Fix, advice, edit, replacement
from smartmem_rules.language.vocabulary import VALUE_WORDS

_INDICES = "klmnpqrstuvw"
VALUES_ELSEWHERE = {
    **dict.fromkeys(("None", "Null", "NULL", "null", "nil", "nullptr"), "none"),
    "True": "true", "False": "false", "NaN": "nan", "Inf": "inf", "INFINITY": "inf",
    "pi": "3.141592653589793", "PI": "3.141592653589793",
}  # fmt: skip
"""What the values of other languages are called here."""
_KINDS_OF_VALUES = {"true": ("bool",), "false": ("bool",)}
_FLOATS = ("float", "floats")
_DEFAULTS = {"int": "0", "ints": "[0]", "float": "1.0", "floats": "[1.0]", "bool": "true"}


def hidden_name(binder: s.Binder, kept: Collection[str], names: Collection[str]) -> Iterator[Diagnostic]:
    """An index that has the name of something that the expressions behind it may mean as well.

    Args:
        kept: the names that may not be hidden: other indices, and what the signature binds. A `let` or a local tensor
            of a long definition may be hidden by indices of its other equations.
        names: all names that have a meaning.
    """
    if binder.name not in kept:
        return
    bound = binder.bound.id.lower() if isinstance(binder.bound, s.Name) else ""
    taken = {name.lower() if len(name) == 1 else name for name in names if not name[:1].isupper()}
    own = bound if len(bound) == 1 and bound.isalpha() and bound not in taken else ""
    free = own or next((one for one in _INDICES if one not in taken), "k1")
    message = f"`{binder.name}` has a meaning here already, which this index would hide"
    fix = advice(f"give the index another name, here and wherever it is meant: `{free}` is free")
    yield Diagnostic(Code.HIDDEN_NAME, "error", message, binder.span, fix=fix)


def index_meant(name: s.Name, extents: Collection[str], bounds: Mapping[str, str]) -> Fix | None:
    """What is meant by a name that is no index, but reads as that of an extent: an index that runs below it."""
    extent = name.id.upper()
    if extent not in extents:
        return None
    there = sorted(one for one, bound in bounds.items() if bound == extent)
    if len(there) == 1:
        new = Edit(name.span, there[0], name.id)
        return edit(f"write `{there[0]}`, the index that runs below `{extent}` here", new)
    return advice(
        f"bind the index `{name.id}`: on the left side, or by a reduction, `sum({name.id} < {extent}) ...`; "
        f"its extent is `{extent}`"
    )


def check_extents(operator: s.Operator) -> Iterator[Diagnostic]:
    """Extents of the inputs that are written like tensors and indices."""
    seen = set[str]()
    for item in operator.inputs:
        for extent in item.type.shape if item.type is not None else ():
            name = extent.operand if isinstance(extent, s.Splat) else extent
            if isinstance(name, s.Name) and name.id[:1].islower() and name.id not in seen:
                seen.add(name.id)
                message = f"the extent `{name.id}` begins with a lower-case letter, like a tensor or an index"
                fix = _in_upper_case(name.id, operator)
                yield Diagnostic(Code.LOWER_CASE_EXTENT, "error", message, name.span, fix=fix)


def _in_upper_case(name: str, operator: s.Operator) -> Fix:
    """The extent in upper case wherever the operator means it."""
    new = name[:1].upper() + name[1:]
    said = f"call it `{new}`, wherever it is meant"
    own = s.Input | s.Attribute | s.Output | s.Let | s.Binder
    others = {node.name for node in nodes(operator) if isinstance(node, own)}
    mentioned = {node.id for node in nodes(operator) if isinstance(node, s.Name)}
    if name in others or new in mentioned:
        return advice(said)
    spans = dict.fromkeys(node.span for node in nodes(operator) if isinstance(node, s.Name) and node.id == name)
    return edit(said, *(Edit(span, new, name) for span in spans))


def bare_defaults(operator: s.Operator, names: Collection[str]) -> Iterator[tuple[s.Span, Diagnostic]]:
    """The defaults of attributes that are words without a meaning, each with its place: texts without quotes mostly."""
    for one in operator.attributes:
        for word in _words(one.default) if one.default is not None else ():
            if word.id in names or word.id in VALUE_WORDS:
                continue
            message = f"`{word.id}` is not defined here"
            value = VALUES_ELSEWHERE.get(word.id)
            if value == "none" and word is one.default:
                said = f"write `none`: then the attribute may be absent, and `present({one.name})` asks whether it is"
                fix = replacement(said, word.span, "none")
            elif value is not None and one.kind in _KINDS_OF_VALUES.get(value, _FLOATS) and value != "none":
                fix = replacement(f"write `{value}`", word.span, value)
            elif one.kind in ("string", "strings"):
                what = "is a text, which stands" if one.kind == "string" else "is a list of texts, which stand"
                message = f"`{one.name}` {what} in quotes; {message}"
                fix = replacement(f'write `"{word.id}"`', word.span, f'"{word.id}"')
            elif one.kind in _DEFAULTS:
                fix = advice(f"write its default, such as `{one.name}: {one.kind} = {_DEFAULTS[one.kind]}`")
            else:
                continue
            yield word.span, Diagnostic(Code.UNDEFINED_NAME, "error", message, word.span, fix=fix)


def _words(default: s.Expression) -> Iterator[s.Name]:
    """The names that stand for the whole default, or for an element of it."""
    for one in chain([default], default.items if isinstance(default, s.ListOf) else ()):
        if isinstance(one, s.Name):
            yield one

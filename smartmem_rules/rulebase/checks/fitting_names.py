"""Which of the names that are bound is meant where another one stands: by its place and by what the names are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Edit, Fix, advice, any_of, edit, replacement, spelling
from smartmem_rules.language.vocabulary import ELEMENT_FUNCTIONS, GUARD_FUNCTIONS, LIST_FUNCTIONS

_CALLED = {
    "number": "number", "text": "text", "truth": "truth value", "tensor": "tensor", "list of number": "list of numbers",
    "list of text": "list of texts", "constant": "constant",
}  # fmt: skip


def fitting(name: str, place: s.Span, wanted: str, names: Iterable[str], kinds: Mapping[str, str]) -> Fix | None:
    """What is meant by a name that is not bound where a value of a kind is wanted; None where nothing tells."""
    known = [one for one in names if not one.startswith(("@", "*"))]
    # as for spellings: extents are upper-case, and what is written in lower case is none
    fit = sorted(one for one in known if kinds.get(one) == wanted and one[:1].isupper() == name[:1].isupper())
    if wanted == "text" and not fit:
        new = f'"{name}"'
        return edit(f"a text stands in quotes: write `{new}`", Edit(place, new, name))
    if not fit:
        return None
    others = sorted(one for one in known if one not in fit and not one[:1].isupper())
    also = f"; bound are {any_of(others)}, too" if others else ""
    if len(fit) == 1:
        return edit(f"write `{fit[0]}`, the only {_CALLED[wanted]} that is bound here{also}", Edit(place, fit[0], name))
    return advice(f"write a {_CALLED[wanted]} that is bound here: {any_of(fit)}{also}")


def unbound_operand(
    name: str, span: s.Span, bound: Collection[str], kinds: Mapping[str, str], side: s.Pattern
) -> Diagnostic:
    """A tensor, bundle or list of operands of the right side, or of a term, that the left side does not bind."""
    message = f"`{name}` is not bound by the left side"
    binds = any_of(bound) or "no tensor: name one there"
    known = advice(f"the left side binds {binds}")
    if name.startswith(("@", "*")):
        known = advice(f"write `{name}` on the left, too; it binds {binds}")
        alike = [one for one in bound if one[0] == name[0]]
        if len(alike) == 1:
            known = replacement(f"write `{alike[0]}`, which the left side binds", span, alike[0])
        return Diagnostic(Code.UNBOUND_VARIABLE, "error", message, span, fix=spelling(name, bound, span) or known)
    used = {node.name for node in nodes(side) if isinstance(node, s.PatternVariable)}
    left_over = sorted(one for one in bound if kinds.get(one) == "tensor" and one not in used)
    if len(left_over) == 1:
        said = f"write `{left_over[0]}`, which the left side binds and this side does not use; it binds {binds}"
        known = edit(said, Edit(span, left_over[0], name))
    elif left_over:
        known = advice(f"{known.text}, of which {' and '.join(left_over)} are not used on this side")
    return Diagnostic(Code.UNBOUND_VARIABLE, "error", message, span, fix=spelling(name, bound, span) or known)


def of_an_index_rule(rule: s.IndexRule, constants: Collection[str]) -> tuple[dict[s.Span, str], dict[str, str]]:
    """The places of divisors, which are constants, and the names that are."""
    divisors = (
        node.right
        for node in chain(nodes(rule.right), nodes(rule.guards))
        if isinstance(node, s.Binary) and node.operator in ("//", "%")
    )
    places = {one.span: "constant" for one in divisors if isinstance(one, s.Name)}
    return places, dict.fromkeys(constants, "constant")


def with_tensor_meant(found: Diagnostic, rule: s.Eliminate | s.Keep, overloads: Sequence[s.Operator]) -> Diagnostic:
    """A message about a name that is not bound, with the only tensor of the operator that has the axes asked of it."""
    word = next((one for one in found.message.split("`")[1:2]), "")
    if found.code != Code.UNBOUND_VARIABLE or found.fix.edits:
        return found
    axes = [
        node.arguments[1].value
        for node in nodes(rule.guards)
        if isinstance(node, s.Call) and node.function == "extent" and node.arguments[:1] == (s.Name(s.NOWHERE, word),)
        if len(node.arguments) == 2 and isinstance(node.arguments[1], s.Number)
    ]
    fit = {
        item.name
        for one in overloads
        for item in one.inputs
        if item.type is not None
        if any(isinstance(extent, s.Splat) for extent in item.type.shape) or len(item.type.shape) > max(axes, default=0)
    }
    if not axes or len(fit) != 1:
        return found
    (name,) = fit
    said = f"write `{name}`, the only tensor of `{rule.operator}` that has an axis {max(axes)}"
    places = [node.span for node in nodes(rule.guards) if node == s.Name(s.NOWHERE, word)]
    return replace(found, fix=edit(said, *(Edit(place, name, word) for place in places)))


def comment_meant(found: Diagnostic, quotient: s.Binary) -> Diagnostic | None:
    """`x[i]  // scale`: a word behind `//` that has no meaning is a comment in other languages."""
    word = quotient.right
    if quotient.operator != "//" or not isinstance(word, s.Name) or found.span != word.span or found.fix.edits:
        return None
    said = f"`//` divides and rounds down; a comment begins with `#`: write `# {word.id}` if it is one"
    return replace(found, fix=advice(said))


def function_elsewhere(call: s.Call) -> Fix | None:
    """A function that there is, but not at such a place."""
    if call.function in GUARD_FUNCTIONS:
        return advice(
            f"only guards of rules ask `{call.function}(...)`: write the condition into a rule, or leave it out"
        )
    if call.function in ELEMENT_FUNCTIONS and call.function not in LIST_FUNCTIONS:
        return advice(f"`{call.function}` is a function of elements: equations of an operator's body call it")
    return None


def undefined_function(call: s.Call, has_terms: bool) -> Fix:
    """How a function that nothing is like gets a meaning."""
    if call.function[:1].isupper() and not has_terms:
        said = "operators are of whole tensors, and rules apply them: write what it computes of an element"
        return advice(f"{said}, such as `max(x[*i], 0)`")
    parameters = ", ".join(chr(ord("a") + place) for place in range(max(1, min(len(call.arguments), 8))))
    return advice(
        f"define it, `function {call.function}({parameters}) = ...`, or import the file that does; `smartmem docs`"
        " writes a reference that lists all functions"
    )

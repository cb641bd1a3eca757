"""From lark's reductions to expressions, and what all reductions share.

The grammar keeps all tokens, so the first and last child of a reduction delimit its span.
"""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf
from typing import Any, TypeVar

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import Fix, advice
from smartmem_rules.language.parsing.tokens import Token
from smartmem_rules.language.patterns import OR, application_of, pattern_of

Children = list[Any]
_Node = TypeVar("_Node")

_ESCAPES = {"n": "\n", "t": "\t"}


def nodes_of(children: Children, kind: type[_Node]) -> tuple[_Node, ...]:
    return tuple(child for child in children if isinstance(child, kind))


def tokens_of(children: Children, *kinds: str) -> list[Token]:
    return [child for child in children if isinstance(child, Token) and child.type in kinds]


def names_of(children: Children) -> list[str]:
    return [str(token) for token in tokens_of(children, "NAME")]


def unquote(token: Token) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), token[1:-1])


def number_of(token: Token) -> int | float:
    if token == "inf":
        return inf
    return int(token) if re.fullmatch(r"[+-]?\d+", token) else float(token)


def begin_of(child: Any) -> tuple[int, int]:
    if isinstance(child, Token):
        return child.line or 1, child.column or 1
    if isinstance(child, list):
        return begin_of(child[0])
    return child.span.line, child.span.column


def end_of(child: Any) -> tuple[int, int]:
    if isinstance(child, Token):
        return child.end_line or 1, child.end_column or 1
    if isinstance(child, list):
        return end_of(child[-1])
    return child.span.end_line, child.span.end_column


class ExpressionBuilder:
    """Builds expressions; `begin` names the file they lie in, `problems` collects what cannot be a node."""

    def __init__(self) -> None:
        self.begin("", "")

    def begin(self, text: str, file: str) -> None:
        """Start on a new text: all spans made from now on lie in `file`."""
        self._source = text
        self._file = file
        self._lines = text.split("\n")
        self.problems: list[Diagnostic] = []

    def _span(self, children: Children) -> s.Span:
        return s.Span(self._file, *begin_of(children[0]), *end_of(children[-1]))

    def _problem(self, span: s.Span, message: str, fix: Fix) -> None:
        self.problems.append(Diagnostic(Code.MALFORMED, "error", message, span, fix=fix))

    def conditional(self, children: Children) -> s.Conditional:
        return s.Conditional(self._span(children), children[1], children[3], children[5])

    def binary(self, children: Children) -> s.Binary:
        return s.Binary(self._span(children), str(children[1]), children[0], children[2])

    def unary(self, children: Children) -> s.Unary:
        return s.Unary(self._span(children), str(children[0]), children[1])

    def reduction(self, children: Children) -> s.Reduction:
        return s.Reduction(self._span(children), str(children[0]), nodes_of(children, s.Binder), None, children[-1])

    def first(self, children: Children) -> s.Reduction:
        return s.Reduction(self._span(children), "first", (children[2],), children[4], children[-1])

    def _binder(self, kind: str, children: Children) -> s.Binder:
        name = tokens_of(children, "NAME")[0]
        return s.Binder(self._span(children), str(name), kind, children[-1], places={"name": self._span([name])})

    def loop(self, children: Children) -> s.Binder:
        return self._binder("loop", children)

    def loops(self, children: Children) -> s.Binder:
        return self._binder("loops", children)

    def unrolled(self, children: Children) -> s.Binder:
        return self._binder("unrolled", children)

    def plain_read(self, children: Children) -> s.Subscript:
        return s.Subscript(self._span(children), children[0], nodes_of(children[1], s.Expression), None)

    def defaulted_read(self, children: Children) -> s.Subscript:
        return s.Subscript(self._span(children), children[0], nodes_of(children[1], s.Expression), children[-1])

    def splat(self, children: Children) -> s.Splat:
        return s.Splat(self._span(children), children[1])

    def broadcast(self, children: Children) -> s.Broadcast:
        return s.Broadcast(self._span(children), children[1])

    def slice(self, children: Children) -> s.Slice:
        colon = next(place for place, child in enumerate(children) if isinstance(child, Token))
        low = children[0] if colon else None
        high = children[-1] if colon < len(children) - 1 else None
        return s.Slice(self._span(children), low, high)

    def number(self, children: Children) -> s.Number:
        return s.Number(self._span(children), number_of(children[0]))

    def text(self, children: Children) -> s.Text:
        return s.Text(self._span(children), unquote(children[0]))

    def truth(self, children: Children) -> s.Truth:
        return s.Truth(self._span(children), children[0] == "true")

    def name(self, children: Children) -> s.Name:
        return s.Name(self._span(children), str(children[0]))

    def alternatives(self, children: Children) -> s.Term:
        end = next(place for place, child in enumerate(children) if child == ")")
        operators = tokens_of(children[:end], "NAME")
        made = self.call(
            [Token.of("NAME", OR.join(operators), begin_of(children[0]), end_of(children[end])), *children[end + 1 :]]
        )
        pattern = pattern_of(made, self._problem)
        assert isinstance(pattern, s.PatternOperator)
        places = {**pattern.places, "name": self._span(children[: end + 1])}
        places |= {f"operator:{one}": self._span([one]) for one in operators}
        span = self._span(children)
        return s.Term(span, replace(pattern, span=span, places=places))

    def call(self, children: Children) -> s.Expression:
        call = s.Call(self._span(children), str(children[0]), nodes_of(children, s.Expression))
        output = tokens_of(children, "INT")
        attributes = [child for group in nodes_of(children, list) for child in group]
        if not output and not attributes:
            return call
        bundles = tokens_of(attributes, "BUNDLE")
        for extra in bundles[1:]:
            fix = advice("leave one of them out: one name stands for all other attributes")
            self._problem(self._span([extra]), "an operator has one `@` bundle of attributes at most", fix)
        made = application_of(call, self._problem)
        places = {**made.places} | ({"bundle": self._span(bundles[:1])} if bundles else {})
        pattern = replace(
            made,
            attributes=nodes_of(attributes, s.PatternAttribute),
            bundle=str(bundles[0]) if bundles else None,
            output=int(output[0]) if output else None,
            places=places,
        )
        return s.Term(call.span, pattern)

    def pattern_attributes(self, children: Children) -> Children:
        return children

    def pattern_bundle(self, children: Children) -> Token:
        return Token.of("BUNDLE", str(children[1]), begin_of(children[0]), end_of(children[1]))

    def pattern_attribute(self, children: Children) -> s.PatternAttribute:
        places = {"name": self._span(children[:1])}
        return s.PatternAttribute(self._span(children), str(children[0]), children[-1], places=places)

    def parenthesised(self, children: Children) -> s.Expression:
        inner: s.Expression = children[1]
        return replace(inner, span=self._span(children))

    def list_of(self, children: Children) -> s.ListOf:
        return s.ListOf(self._span(children), nodes_of(children, s.Expression))

    def comprehension(self, children: Children) -> s.Comprehension:
        condition = children[-2] if isinstance(children[-2], s.Expression) else None
        return s.Comprehension(self._span(children), children[1], nodes_of(children, s.Binder), condition)

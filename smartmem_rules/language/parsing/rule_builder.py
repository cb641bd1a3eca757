"""From lark's reductions to rules: one method per rule of the grammar, and what items share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypedDict

from smartmem_rules.language import syntax as s
from smartmem_rules.language.fixes import advice, replacement
from smartmem_rules.language.parsing.expression_builder import (
    Children,
    ExpressionBuilder,
    nodes_of,
    tokens_of,
    unquote,
)
from smartmem_rules.language.parsing.tokens import Token
from smartmem_rules.language.patterns import OR, pattern_of
from smartmem_rules.language.roots import joined, what_is_wrong

_COMMENT = re.compile(r'(?:[^"#]|"(?:[^"\\]|\\.)*")*#+(.*)')
_FLAGS = ("explores", "defers")
_REMOVED = ("internal", "commutative", "override", "class", "mapping", "reference", *_FLAGS, "cites", "unsound")
_MERGED = {
    **dict.fromkeys(_REMOVED, "remove this one"),
    **dict.fromkeys(("where", "relaxes", "tags"), "put all into one, between commas"),
}
_SINGLE_CLAUSES = frozenset(_MERGED)


def has(children: Children, word: str) -> bool:
    return any(isinstance(child, Token) and child == word for child in children)


def group_of(children: Children, word: str) -> Children:
    """The children of the sub-rule that begins with the keyword `word`; empty when it is absent."""
    for child in children:
        if isinstance(child, list) and child and child[0] == word:
            return child
    return []


def clause_word(child: object) -> str:
    """The word that a clause begins with; empty for what is no clause."""
    first = child[0] if isinstance(child, list) and child else child if child in _FLAGS else ""
    return str(first) if isinstance(first, Token) else ""


def text_of(children: Children, word: str) -> str | None:
    """The string of a clause; None where there is no such clause."""
    clause = group_of(children, word)
    return unquote(clause[1]) if clause else None


class _Common(TypedDict):
    """The fields that rules of all kinds have."""

    span: s.Span
    name: str
    guards: tuple[s.Expression, ...]
    comment: str
    tags: tuple[str, ...]
    lets: tuple[s.RuleLet, ...]
    cites: str | None
    places: Mapping[str, s.Span]


class RuleBuilder(ExpressionBuilder):
    """Builds the rules of one file after the other."""

    def _comment(self, children: Children) -> str:
        match = _COMMENT.match(self._lines[children[1].line - 1])
        return match[1].strip() if match else ""

    def _name(self, token: Token) -> dict[str, s.Span]:
        return {"name": self._span([token])}

    def _words(self, field: str, tokens: Iterable[Token]) -> dict[str, s.Span]:
        return {f"{field}:{token}": self._span([token]) for token in tokens}

    def _refuse_repeated_clauses(self, children: Children, owner: str = "an operator") -> None:
        seen: set[str] = set()
        for child in children:
            word = clause_word(child)
            if word not in _SINGLE_CLAUSES:
                continue
            if word in seen:
                span, said = self._span([child]), _MERGED[word]
                fix = replacement(said, span, "") if word in _REMOVED else advice(said)
                self._problem(span, f"{owner} has one `{word}` clause at most", fix)
            seen.add(word)

    def _common(self, children: Children, places: Mapping[str, s.Span]) -> _Common:
        """What rules of all kinds have; `places` are those of their other words."""
        self._refuse_repeated_clauses(children, "a rule")
        tags = tokens_of(group_of(children, "tags"), "NAME")
        return _Common(
            span=self._span(children),
            name=str(children[1]),
            guards=nodes_of(group_of(children, "where"), s.Expression),
            comment=self._comment(children),
            tags=tuple(map(str, tags)),
            lets=nodes_of(children, s.RuleLet),
            cites=text_of(children, "cites"),
            places={**places, **self._name(children[1]), **self._words("tags", tags)},
        )

    def rewrite(self, children: Children) -> s.Rewrite:
        _, ruleset = tokens_of(children, "NAME")
        relaxes = tokens_of(group_of(children, "relaxes"), "NAME")
        common = self._common(children, {"ruleset": self._span([ruleset]), **self._words("relaxes", relaxes)})
        left, right = self._sides(children)
        return s.Rewrite(
            **common,
            ruleset=str(ruleset),
            left=left,
            right=right,
            bidirectional=has(children, "<=>"),
            relaxes=tuple(map(str, relaxes)),
            unsound=text_of(children, "unsound"),
            explores=bool(tokens_of(children, "EXPLORES")),
        )

    def _sides(self, children: Children) -> tuple[s.Pattern, s.Pattern]:
        """Both sides of a rule, each of one pattern or of several."""
        arrow = next(place for place, child in enumerate(children) if child in ("=>", "<=>"))
        lefts, rights = nodes_of(children[:arrow], s.Pattern), nodes_of(children[arrow:], s.Pattern)
        both = self._span([children[arrow]]) if children[arrow] == "<=>" else None
        for problem in what_is_wrong(lefts, rights, both):
            self._problem(*problem)
        return joined(lefts), joined(rights)

    def eliminate(self, children: Children) -> s.Eliminate:
        _, ruleset, *operators = tokens_of(children, "NAME")
        common = self._common(children, {"ruleset": self._span([ruleset]), "operator": self._span(operators)})
        return s.Eliminate(**common, ruleset=str(ruleset), operator=OR.join(operators))

    def index_rule(self, children: Children) -> s.IndexRule:
        common = self._common(children, {})
        left, right = nodes_of(children, s.Expression)
        return s.IndexRule(**common, left=left, right=right)

    def derive(self, children: Children) -> s.Derive:
        (known,) = nodes_of(children, s.Pattern)
        call = known.value if isinstance(known, s.PatternComputed) else None
        if not isinstance(call, s.Call) or len(call.arguments) != 1:
            advised = advice("write `derive NAME fact(term)`, with the name of an analysis")
            self._problem(known.span, "this is no fact of one term", advised)
            call = s.Call(known.span, "", (s.Number(known.span, 0),))
        head = call.span._replace(end_line=call.span.line, end_column=call.span.column + len(call.function))
        common = self._common(children, {"analysis": head})
        return s.Derive(**common, analysis=call.function, term=pattern_of(call.arguments[0], self._problem))

    def keep(self, children: Children) -> s.Keep:
        _, *operators = tokens_of(children, "NAME")
        common = self._common(children, {"operator": self._span(operators)})
        return s.Keep(**common, operator=OR.join(operators), defers=bool(tokens_of(children, "DEFERS")))

    def rule_let(self, children: Children) -> s.RuleLet:
        value = children[-1]
        named = pattern_of(value, self._problem)
        value = named if isinstance(named, s.PatternOperator) else value
        return s.RuleLet(self._span(children), str(children[1]), value, places=self._name(children[1]))

    def pattern(self, children: Children) -> s.Pattern:
        return pattern_of(children[0], self._problem)

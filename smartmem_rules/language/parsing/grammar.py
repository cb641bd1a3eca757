"""The grammar of the rule language, analysed by lark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import cast

from lark import Lark, Token as LarkToken
from lark.lark import PostLex

from smartmem_rules.language.parsing.builder import Builder
from smartmem_rules.language.parsing.tokens import Token, WordResolver
from smartmem_rules.resources import grammar_path

_WORD = re.compile(r"[A-Za-z_]\w*")


class Resolving(PostLex):
    """lark's way to `tokens.WordResolver`."""

    always_accept = ("ELSE",)
    text = ""
    """What is being parsed."""

    def process(self, stream: Iterator[LarkToken]) -> Iterator[LarkToken]:
        """The tokens with those words that only their surroundings decide about."""
        resolver = WordResolver()
        for token in stream:
            begin, end = (token.line or 1, token.column or 1), (token.end_line or 1, token.end_column or 1)
            place = token.start_pos or 0
            word = _WORD.match(self.text, place)
            if word is not None and len(word[0]) > len(token) and token.isalpha():
                # lark finds `table` in `tables` where no name can stand
                whole = Token.of("NAME", word[0], begin, (begin[0], begin[1] + len(word[0])), place)
                yield cast("LarkToken", whole)
            yield cast("LarkToken", Token.of(resolver.resolve(token.type), str(token), begin, end, place))


@cache
def grammar() -> Lark:
    """The grammar, analysed by lark; its trees are those of the builder."""
    return Lark(
        grammar_path().read_text("utf-8"),
        parser="lalr",
        lexer="contextual",
        propagate_positions=False,
        keep_all_tokens=True,
        maybe_placeholders=False,
        postlex=resolving(),
        transformer=builder_of_lark(),
    )


@cache
def resolving() -> Resolving:
    """The one that the grammar uses."""
    return Resolving()


@cache
def builder_of_lark() -> Builder:
    """The builder that the grammar calls; it holds the state of one parse."""
    return Builder()

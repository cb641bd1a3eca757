"""Colours of rule files on the site."""

from __future__ import annotations

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text
from sphinx.application import Sphinx

from smartmem_rules.language.printing.builtin_docs import DOCS, KEYWORDS


class RuleLexer(RegexLexer):
    """The words of `.smr` files, as the editors' help knows them."""

    name = "smr"
    tokens = {  # noqa: RUF012
        "root": [
            (r"#.*$", Comment.Single),
            (r'"(\\.|[^"\\])*"', String),
            (words(sorted(KEYWORDS), prefix=r"\b", suffix=r"\b"), Keyword),
            (words(sorted(DOCS), prefix=r"\b", suffix=r"(?=\()"), Name.Builtin),
            (r"\d+(\.\d+)?([eE][-+]?\d+)?", Number),
            (r"[A-Z]\w*", Name.Class),
            (r"[A-Za-z_]\w*", Name),
            (r"=>|<=>|->|::|\.\.|[-+*/%<>=!|&^?~@]+", Operator),
            (r"[()\[\]{},;:.]", Punctuation),
            (r"\s+", Text),
            (r".", Text),  # pages show texts with mistakes, too
        ]
    }


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_lexer("smr", RuleLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Tokens, and what only their surroundings decide about them."""

from __future__ import annotations

from smartmem_rules.language.vocabulary import BLOCK_WORDS, ITEM_WORDS

_CLAUSES = ("where", "relaxes", "explores", "defers", "tags", "cites", "unsound", "after")
_IN_OPERATORS = frozenset({"FOR", "LET"})
_OUTSIDE_OF_BRACES = frozenset(word.upper() for word in (*ITEM_WORDS, *BLOCK_WORDS, *_CLAUSES)) - _IN_OPERATORS
_ITEMS = frozenset(word.upper() for word in (*ITEM_WORDS, *BLOCK_WORDS)) - _IN_OPERATORS
_RULES = frozenset({"REWRITE", "ELIMINATE", "INDEX", "DERIVE", "KEEP"})
_OPENING = frozenset({"LPAR", "LSQB", "LBRACE"})
_CLOSING = frozenset({"RPAR", "RSQB", "RBRACE"})


class Token(str):
    """A piece of text with the name of its terminal; lines and columns count from 1, ends are exclusive.

    It has the attributes that lark asks of a token, so that both drivers of the grammar take it.
    """

    __slots__ = ("column", "end_column", "end_line", "end_pos", "line", "start_pos", "type")

    type: str
    line: int
    column: int
    end_line: int
    end_column: int
    start_pos: int
    end_pos: int

    @staticmethod
    def of(type_: str, text: str, begin: tuple[int, int], end: tuple[int, int], start_pos: int = 0) -> Token:
        """A token from its first line and column to its last."""
        token = Token(text)
        token.type = type_
        token.line, token.column = begin
        token.end_line, token.end_column = end
        token.start_pos = start_pos
        token.end_pos = start_pos + len(text)
        return token


class WordResolver:
    """Decides for one text what the lexer cannot know of a word without its surroundings.

    An `else` belongs to the nearest `then` at the same bracket depth that has none yet; without one it gives
    the default of a read.  A word that begins an item is a name inside of braces, where no item can begin; the
    braces of families, which hold items, do not count.  Behind the sides of a rule, `let` before a word that begins
    with a lower-case letter is a clause of the rule.
    """

    MEANT = _OPENING | _CLOSING | _OUTSIDE_OF_BRACES | {"FOR", "THEN", "ELSE", "LET", "RULE_LET"}
    """The terminals that matter here; all others may be passed over."""

    def __init__(self) -> None:
        self._open_conditionals = [0]
        self._family_begins = False
        self._family_braces = 0
        self._in_rule = False

    def resolve(self, terminal: str) -> str:
        """The terminal that the next token is, given the one that the lexer takes it for."""
        depths = self._open_conditionals
        outside = len(depths) == 1
        if terminal == "RULE_LET":
            return "RULE_LET" if outside and self._in_rule else "LET"
        if outside and (terminal in _ITEMS or terminal == "LET"):
            self._in_rule = terminal in _RULES
        if outside and terminal == "FOR":
            self._family_begins = True
        elif outside and terminal == "LBRACE" and self._family_begins:
            self._family_begins = False
            self._family_braces += 1
        elif outside and terminal == "RBRACE" and self._family_braces:
            self._family_braces -= 1
        elif terminal in _OPENING:
            depths.append(0)
        elif terminal in _CLOSING:
            if not outside:
                depths.pop()
        elif terminal == "THEN":
            depths[-1] += 1
        elif terminal == "ELSE":
            if not depths[-1]:
                return "DEFAULT_ELSE"
            depths[-1] -= 1
        elif not outside and terminal in _OUTSIDE_OF_BRACES:
            return "NAME"
        return terminal

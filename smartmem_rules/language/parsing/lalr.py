"""Runs the grammar's LALR tables over a text, with the terminals that each state allows.

The same as lark's own driver, made for speed: productions that change nothing are followed in one step, and one
regular expression serves all states that take the same kinds of words.  A text that it does not take is `Refused`
without a reason; `language.lark_parser` finds that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field
from functools import cache
from typing import Any

from smartmem_rules.language.parsing.tables import Tables, Terminal, tables
from smartmem_rules.language.parsing.tokens import Token, WordResolver
from smartmem_rules.records import dataclass

_WORD = re.compile(r"[A-Za-z_]\w*")
_NO_TERMINAL = "_WORD"
_LITERAL = "_LITERAL"
_ALWAYS = frozenset({"ELSE"})
"""Taken in every state: `tokens.WordResolver` decides what it is."""


class Refused(Exception):
    """The text is not of the language; `place` is how many of its characters were taken."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


@dataclass(frozen=True, slots=True)
class _Lexer:
    """What may come next in a state."""

    match: Callable[[str, int], re.Match[str] | None]
    words: dict[str, str]
    """The literals that read like other terminals, and the terminals that they are."""


@dataclass(frozen=True)
class _Automaton:
    """The tables, with what follows from them."""

    tables: Tables
    lexers: Sequence[_Lexer]
    literals: dict[str, str]
    ignored: Collection[str]
    strong: Collection[str]
    """The terminals that come before literals that read like them."""
    passes: Collection[int]
    """The reductions that change nothing."""
    chains: dict[tuple[int, int, str], int] = field(default_factory=dict)
    """By the two upper states and the next terminal: the upper state after all reductions that change nothing."""

    def chain(self, below: int, state: int, terminal: str) -> int:
        """The state where the reductions that change nothing end."""
        first = state
        while True:
            action = self.tables.actions[state].get(terminal, 0)
            if -1 - action not in self.passes:
                self.chains[below, first, terminal] = state
                return state
            state = self.tables.gotos[below][self.tables.reductions[-1 - action].origin]


def parse(text: str, callbacks: object) -> Any:
    """The value of the start symbol; `callbacks` has a method for each rule or alias, which takes its values.

    Raises:
        Refused: the text does not follow the grammar.
    """
    automaton = _automaton()
    states = [automaton.tables.start]
    values: list[Any] = []
    reductions = [
        (one.size, one.origin, one.expand_single, one.expanded, getattr(callbacks, one.callback or "", None))
        for one in automaton.tables.reductions
    ]
    actions, gotos, passes, chains = (
        automaton.tables.actions,
        automaton.tables.gotos,
        automaton.passes,
        automaton.chains,
    )
    for token in _tokens(text, states, automaton):
        terminal = token.type
        while True:
            action = actions[states[-1]].get(terminal)
            if action is None:
                raise Refused(token.start_pos or 0)
            if action >= 0:
                states.append(action)
                values.append(token)
                break
            if -1 - action in passes:
                below, state = states[-2:]
                states[-1] = chains.get((below, state, terminal)) or automaton.chain(below, state, terminal)
                continue
            size, origin, expand_single, expanded, callback = reductions[-1 - action]
            children = values[-size:] if size else []
            if size:
                del states[-size:], values[-size:]
            if expanded:
                children = _spread(children, expanded)
            if callback is None:
                values.append(children)
            else:
                values.append(children[0] if expand_single and len(children) == 1 else callback(children))
            states.append(gotos[states[-1]][origin])
            if states[-1] == automaton.tables.end:
                return values[-1]
    raise Refused(len(text))


def _tokens(text: str, states: Sequence[int], automaton: _Automaton) -> Iterator[Token]:
    """The tokens and `$END`; the upper one of `states` is looked at anew for each."""
    lexers, literals, ignored, strong = automaton.lexers, automaton.literals, automaton.ignored, automaton.strong
    meant, resolve = WordResolver.MEANT, WordResolver().resolve
    position, line, line_start, end = 0, 1, 0, len(text)
    while position < end:
        lexer = lexers[states[-1]]
        match = lexer.match(text, position)
        if match is None or match.end() == position:
            raise Refused(position)
        group = match.lastindex
        begin = match.start(group) if group is not None else match.end()
        if begin > position:
            newlines = text.count("\n", position, begin)
            if newlines:
                line += newlines
                line_start = text.rindex("\n", position, begin) + 1
        position = match.end()
        if group is None:
            continue
        piece = text[begin:position]
        terminal = str(match.lastgroup)
        if terminal == _LITERAL:
            terminal = literals[piece]
        elif terminal not in strong:
            terminal = lexer.words.get(piece, terminal)
        token = Token(piece)
        token.line, token.column, token.start_pos = line, begin - line_start + 1, begin
        newlines = piece.count("\n")
        if newlines:
            line += newlines
            line_start = begin + piece.rindex("\n") + 1
        if terminal in ignored:
            continue
        token.type = resolve(terminal) if terminal in meant else terminal
        token.end_line, token.end_column, token.end_pos = line, position - line_start + 1, position
        yield token
    here = (line, position - line_start + 1)
    yield Token.of("$END", "", here, here, position)


def _spread(children: list[Any], places: tuple[int, ...]) -> list[Any]:
    """The values with those that are lists of a helper production taken in."""
    # a list that grows to the left is extended where it is
    spread: list[Any] = children[0] if places[0] == 0 else children[:1]
    for place, child in enumerate(children[1:], 1):
        if place in places:
            spread += child
        else:
            spread.append(child)
    return spread


@cache
def _automaton() -> _Automaton:
    given = tables()
    by_name = {terminal.name: terminal for terminal in given.terminals}
    signs = {t.pattern: t.name for t in given.terminals if t.literal and not _WORD.fullmatch(t.pattern)}
    matchers: dict[frozenset[str], Callable[[str, int], re.Match[str] | None]] = {}
    lexers = []
    for row in given.actions:
        accepted = {by_name[name] for name in row.keys() | _ALWAYS if name in by_name}
        kinds = frozenset(terminal.name for terminal in accepted if not terminal.literal)
        if kinds not in matchers:
            matchers[kinds] = _matcher(given, kinds, list(signs))
        words = {t.pattern: t.name for t in accepted if t.literal and _WORD.fullmatch(t.pattern)}
        strong = {by_name[kind] for kind in kinds if by_name[kind].priority > 0}
        lexers.append(_Lexer(matchers[kinds], {} if _takes_words(strong) else words))
    passes = frozenset(number for number, one in enumerate(given.reductions) if one.passes)
    strong_names = frozenset(terminal.name for terminal in given.terminals if terminal.priority > 1)
    return _Automaton(given, lexers, signs, frozenset(given.ignored), strong_names, passes)


def _takes_words(terminals: Collection[Terminal]) -> bool:
    """Whether terminals that come before all literals match any word."""
    return any(re.fullmatch(terminal.pattern, "word") for terminal in terminals)


def _matcher(given: Tables, kinds: Collection[str], signs: Sequence[str]) -> Callable[[str, int], re.Match[str] | None]:
    """Matches the next token of some kinds, a literal or a word, with what is ignored before it."""
    ignored = [terminal for terminal in given.terminals if terminal.name in given.ignored]
    own = [terminal for terminal in given.terminals if terminal.name in kinds]
    skipped = "|".join(f"(?:{terminal.pattern})" for terminal in ignored)
    # where a terminal may begin with what is ignored elsewhere, both are tried in their order
    significant = any(re.match(terminal.pattern, blank) for terminal in own for blank in (" ", "\n", "#\n"))
    wanted = [t for t in given.terminals if t in own or (significant and t in ignored)]
    parts = [f"(?P<{terminal.name}>{terminal.pattern})" for terminal in wanted]
    parts.append(f"(?P<{_LITERAL}>{'|'.join(re.escape(sign) for sign in sorted(signs, key=len, reverse=True))})")
    parts.append(f"(?P<{_NO_TERMINAL}>{_WORD.pattern})")
    before = "" if significant else f"(?:{skipped})*"
    return re.compile(f"{before}(?:{'|'.join(parts)})?").match

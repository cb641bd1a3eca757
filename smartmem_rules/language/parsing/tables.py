"""The LALR tables of the grammar as plain data: made by lark, kept beside the grammar, read without lark.

To analyse the grammar takes longer than to parse all shipped rules.  The kept tables carry a digest of the grammar, so
that those of another one are never used; `python -m smartmem_rules.language.parsing.tables` makes them anew.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smartmem_rules.records import dataclass
from smartmem_rules.resources import grammar_path

if TYPE_CHECKING:
    from lark import Lark

_FORMAT = "1"


@dataclass(frozen=True)
class Reduction:
    """How the values of a production's symbols become one."""

    origin: str
    size: int
    callback: str | None
    """The method of the builder, None for a list that another production takes in."""
    expand_single: bool
    """Whether a single value stands for itself."""
    expanded: tuple[int, ...]
    """The places of values that are such lists."""

    @property
    def passes(self) -> bool:
        """Whether the production changes nothing: one value that stands for itself."""
        return self.size == 1 and self.expand_single and not self.expanded


@dataclass(frozen=True)
class Terminal:
    """A terminal: a literal, or a regular expression; those of higher priority are tried first."""

    name: str
    pattern: str
    literal: bool
    priority: int


@dataclass(frozen=True)
class Tables:
    """The automaton. A row maps a terminal to the state to shift to (n >= 0) or the reduction -n - 1 to make."""

    terminals: tuple[Terminal, ...]
    """In the order in which they are tried."""
    ignored: tuple[str, ...]
    reductions: tuple[Reduction, ...]
    actions: tuple[dict[str, int], ...]
    gotos: tuple[dict[str, int], ...]
    start: int
    end: int


def digest() -> str:
    """What the tables depend on."""
    return hashlib.sha256(f"{_FORMAT}\0{grammar_path().read_text('utf-8')}".encode()).hexdigest()


def kept_path() -> Path:
    """The file of the kept tables."""
    return grammar_path().with_suffix(".tables.json")


@cache
def tables() -> Tables:
    """The kept tables, or where they are those of another grammar, tables made now."""
    try:
        kept = json.loads(kept_path().read_text("utf-8"))
        if kept.get("digest") == digest():
            return _read(kept)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    from smartmem_rules.language.parsing.grammar import grammar  # start-up time

    return made(grammar())


def _read(kept: dict[str, Any]) -> Tables:
    return Tables(
        tuple(Terminal(**one) for one in kept["terminals"]),
        tuple(kept["ignored"]),
        tuple(Reduction(**{**one, "expanded": tuple(one["expanded"])}) for one in kept["reductions"]),
        tuple(kept["actions"]),
        tuple(kept["gotos"]),
        kept["start"],
        kept["end"],
    )


def made(lark: Lark) -> Tables:
    """The tables of a grammar that lark has analysed."""
    interactive: Any = lark.parse_interactive("")  # lark leaves its tables without types
    conf = interactive.parser_state.parse_conf
    order_of_states = [conf.start_state]
    numbers = {conf.start_state: 0}
    rules: dict[Any, int] = {}
    actions: list[dict[str, int]] = []
    gotos: list[dict[str, int]] = []
    for state in order_of_states:
        row: dict[str, int] = {}
        goto: dict[str, int] = {}
        # numbered by how they are reached: lark's own numbers change from run to run
        for name, (action, target) in sorted((str(s), entry) for s, entry in conf.states[state].items()):
            if action.name == "Reduce":
                row[name] = -1 - rules.setdefault(target, len(rules))
                continue
            if target not in numbers:
                numbers[target] = len(numbers)
                order_of_states.append(target)
            (row if name.isupper() or name.startswith("$") else goto)[name] = numbers[target]
        actions.append(row)
        gotos.append(goto)
    order = interactive.lexer_thread.lexer.lexer.root_lexer.terminals
    return Tables(
        tuple(Terminal(t.name, t.pattern.value, type(t.pattern).__name__ == "PatternStr", t.priority) for t in order),
        tuple(lark.ignore_tokens),
        tuple(_reduction(rule) for rule in rules),
        tuple(actions),
        tuple(gotos),
        0,
        numbers[conf.end_state],
    )


def _reduction(rule: Any) -> Reduction:
    origin = str(rule.origin.name)
    helper = origin.startswith("_")
    expanded = [n for n, one in enumerate(rule.expansion) if not one.is_term and one.name.startswith("_")]
    single = bool(rule.options.expand1) and not rule.alias
    return Reduction(
        origin, len(rule.expansion), None if helper else str(rule.alias or origin), single, tuple(expanded)
    )


def text_of(made_tables: Tables) -> str:
    """The file of the kept tables: one line for each row, so that a changed grammar shows small differences."""
    parts = [f'"digest": {json.dumps(digest())}']
    for key, value in asdict(made_tables).items():
        if isinstance(value, list | tuple):
            rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in value)
            parts.append(f'"{key}": [\n{rows}\n]')
        else:
            parts.append(f'"{key}": {value}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    from smartmem_rules.language.parsing.grammar import grammar

    kept_path().write_text(text_of(made(grammar())), "utf-8")

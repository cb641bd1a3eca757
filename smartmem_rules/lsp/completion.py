"""What an editor offers at a place, by the words before it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from smartmem_rules.language import syntax as s
from smartmem_rules.language.blocks.strategy import LIMITS
from smartmem_rules.language.expansion import expanded
from smartmem_rules.language.printing.builtin_docs import DOCS, ELEMENT_DOCS, GUARD_DOCS, KEYWORDS, LIST_DOCS
from smartmem_rules.language.printing.printer import print_attribute, print_input, print_signature
from smartmem_rules.language.schema import ACTIONS, keys_of_kind
from smartmem_rules.language.vocabulary import (
    BLOCK_WORDS,
    CLASSES,
    DTYPE_WORDS,
    ITEM_WORDS,
    MAPPINGS,
    OPERATOR_CLAUSES,
    RELAXATIONS,
    RULE_CLAUSES,
)
from smartmem_rules.lsp.calls import OpenCall, open_call
from smartmem_rules.lsp.library import Library
from smartmem_rules.lsp.signatures import operators_named
from smartmem_rules.records import dataclass

_HEAD = re.compile(r"^\s*(\w+)")
_RULE = re.compile(r"^\s*(rewrite|eliminate|index|keep)\b")
_RULE_LET = re.compile(r"^\s+let\s+([a-z_]\w*)\s*=(.*)")


@dataclass(frozen=True)
class Offer:
    """A word with what it is (operator, function, keyword, value) and what it means."""

    word: str
    kind: str
    detail: str = ""


def complete(library: Library, text: str, line: int, column: int) -> list[Offer]:
    """The words that fit at a place, line and column from 0."""
    lines = text.split("\n")
    before = lines[line][:column] if line < len(lines) else ""
    head = _item_head(lines, line, before)
    call = open_call("\n".join([*lines[:line], before]))
    attributes = list(_of_call(library, call)) if call is not None else []
    names = _names_of_rule(lines, line) if head in ("rewrite", "eliminate", "index", "derive", "keep", "for") else []
    offers = attributes or [*names, *_offers(library, head, before)]
    return list({offer.word: offer for offer in reversed(offers)}.values())[::-1]


def _names_of_rule(lines: list[str], line: int) -> list[Offer]:
    """What the `let` clauses of the rule around a line name."""
    begin = next((n for n in range(line, -1, -1) if _RULE.match(lines[n])), line)
    end = next((n for n in range(line + 1, len(lines)) if _RULE.match(lines[n]) or not lines[n].strip()), len(lines))
    names = (_RULE_LET.match(source) for source in lines[begin:end])
    return [Offer(match[1], "constant", f"names {match[2].strip()}") for match in names if match is not None]


def _item_head(lines: list[str], line: int, before: str) -> str:
    """The word with which the item around a line begins; empty between items."""
    for number in range(line, -1, -1):
        source = before if number == line else lines[number]
        match = _HEAD.match(source)
        indented = source[:1] in (" ", "\t")
        if match is not None and not indented and match[1] in (*ITEM_WORDS, *BLOCK_WORDS):
            closed = number < line and any(text.startswith("}") for text in lines[number + 1 : line])
            return "" if closed or (number == line and source.strip() == match[1]) else match[1]
        if number < line and not source.strip() and head_needs_no_braces(lines, number):
            return ""
    return ""


def head_needs_no_braces(lines: list[str], number: int) -> bool:
    """Whether the blank line ends an item: no brace is open above it."""
    above = "\n".join(lines[:number])
    return above.count("{") <= above.count("}")


def _offers(library: Library, head: str, before: str) -> Iterator[Offer]:
    items = [item for module in library.modules() for item in expanded(module.items)]
    if head in BLOCK_WORDS:
        yield from _of_block(head, before, items)
    elif head == "table":
        for word in sorted({*CLASSES, *MAPPINGS, *ACTIONS["class"], *ACTIONS["mapping"]}):
            yield Offer(word, "value")
    elif head == "":
        for word in (*ITEM_WORDS, *BLOCK_WORDS):
            yield Offer(word, "keyword", KEYWORDS[word])
    elif re.search(r"\brelaxes\s[\w\s,]*$", before):
        for word in sorted(RELAXATIONS):
            yield Offer(word, "value")
    elif head in ("rewrite", "eliminate") and re.search(r"\bin\s+\w*$", before):
        for word in sorted({item.ruleset for item in items if isinstance(item, s.Rewrite | s.Eliminate)}):
            yield Offer(word, "value", "a rule set")
    elif re.search(r"\bclass\s+[\w.]*$", before):
        yield from (Offer(word, "value") for word in sorted(CLASSES))
    elif re.search(r"\bmapping\s+\w*$", before):
        yield from (Offer(word, "value") for word in sorted(MAPPINGS))
    elif head in ("rewrite", "eliminate", "derive", "keep", "for", "family", "predicate"):
        yield from _of_rule(items)
    else:
        yield from _of_definition(head, items)


def _of_call(library: Library, call: OpenCall) -> Iterator[Offer]:
    """The attributes that may be given at a place behind the `;` of an operator, with their types and defaults."""
    if not call.in_attributes or call.attribute is not None:
        return
    for operator in operators_named(library, call.name):
        for attribute in operator.attributes:
            if attribute.name not in call.given:
                yield Offer(attribute.name, "attribute", print_attribute(attribute))
        for item in operator.inputs:
            if item.constant is not None and item.name not in call.given:
                yield Offer(item.name, "attribute", print_input(item))


def _of_block(kind: str, before: str, items: list[s.Item]) -> Iterator[Offer]:
    entry = re.search(r"(?:^|[;{])\s*(\w+)\s+[^;{]*$", before)
    keys = keys_of_kind(kind)
    key = next((key for key in keys if entry is not None and key.name == entry[1]), None)
    if key is None:
        yield from (Offer(one.name, "key", one.meaning) for one in keys)
        return
    yield from (Offer(word, "value") for word in key.choices)
    if key.refers == "table":
        yield from (Offer(item.name, "value") for item in items if isinstance(item, s.Table))
    elif key.refers in ("fuse", "layout", "strategy", "matrix"):
        yield from (Offer(b.name, "value") for b in items if isinstance(b, s.Block) and b.kind == key.refers)
    elif key.refers == "ruleset":
        names = {item.ruleset for item in items if isinstance(item, s.Rewrite | s.Eliminate)}
        yield from (Offer(name, "value") for name in sorted(names))
        yield from (Offer(word, "keyword") for word in (LIMITS if key.kind == "phase" else ()))


def _of_rule(items: list[s.Item]) -> Iterator[Offer]:
    for item in items:
        if isinstance(item, s.Operator):
            yield Offer(item.name, "operator", print_signature(item))
        elif isinstance(item, s.OperatorFamily):
            yield Offer(item.name, "operator", f"any of {', '.join(item.members)}")
        elif isinstance(item, s.Predicate):
            yield Offer(item.name, "function", f"{item.name}({', '.join(item.parameters)})")
    yield from _named(items)
    yield from (Offer(name, "function", f"{DOCS[name][0]}: {DOCS[name][1]}") for name in (*GUARD_DOCS, *LIST_DOCS))
    yield from (Offer(word, "keyword", KEYWORDS[word]) for word in RULE_CLAUSES)


def _of_definition(head: str, items: list[s.Item]) -> Iterator[Offer]:
    if head == "operator":
        yield from (Offer(word, "keyword", KEYWORDS[word]) for word in OPERATOR_CLAUSES)
        yield from (Offer(word, "type") for word in sorted(DTYPE_WORDS))
    names = (*LIST_DOCS, *ELEMENT_DOCS) if head == "operator" else tuple(LIST_DOCS)
    yield from (Offer(name, "function", f"{DOCS[name][0]}: {DOCS[name][1]}") for name in names)
    yield from _named(items)


def _named(items: list[s.Item]) -> Iterator[Offer]:
    for item in items:
        if isinstance(item, s.Function):
            yield Offer(item.name, "function", f"{item.name}({', '.join(item.parameters)})")
        elif isinstance(item, s.Constant):
            yield Offer(item.name, "constant")

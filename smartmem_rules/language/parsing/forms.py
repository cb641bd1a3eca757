"""The form of what a text stops in: what is said where no known slip explains a stop."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Fix, advice
from smartmem_rules.language.parsing.brackets import without_texts
from smartmem_rules.language.parsing.expectation import wants_expression
from smartmem_rules.language.parsing.repairs import piece_before
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.vocabulary import BLOCK_WORDS, ITEM_WORDS

_ITEMS = {
    "import": 'write `import "other.smr"`',
    "ruleset": "a rule set reads `ruleset NAME after algebra`",
    "for": "a family reads `for Op in Relu, Exp { rewrite NAME in RULESET LEFT => RIGHT }`",
    "family": "a family of operators reads `family NAME = Relu | Exp`",
    "function": "a function reads `function NAME(a, b) = EXPRESSION`",
    "predicate": "a predicate reads `predicate NAME(x) = CONDITION`",
    "let": "a constant reads `let NAME = VALUE`",
    "analysis": "an analysis reads `analysis FACT(e: float): bool merge or means CONDITION`",
    "operator": "an operator reads `operator NAME(x: T[*S]; axis: int = -1) -> y: T[*S] { ... }`",
    "rewrite": "a rule reads `rewrite NAME in RULESET LEFT => RIGHT where GUARD, GUARD`",
    "eliminate": "an elimination reads `eliminate NAME in RULESET OPERATOR where GUARD`",
    "index": "an index rule reads `index NAME (c * i + r) // c => i where 0 <= r, r < c`",
    "derive": "a fact is derived by `derive NAME FACT(Relu(x)) where GUARD`",
    "keep": "a `keep` reads `keep NAME OPERATOR where GUARD`",
    "table": "a table reads `table NAME(ROWS, COLUMNS) {`, then a line of columns, then a line for each row, then `}`",
    **dict.fromkeys(BLOCK_WORDS, "a block reads `{0} NAME {{ KEY VALUE VALUE; ... }}`"),
}
_CLAUSES = {
    "onnx": "the clause reads `onnx ai.onnx::NAME 13..;`",
    "require": "the clause reads `require CONDITION`",
    "let": "the clause reads `let NAME = VALUE`",
    "class": "the clause reads `class ILD.Variable`",
    "mapping": "the clause reads `mapping one_to_one`",
    "reference": 'the clause reads `reference "module:function"`',
    "cost": "the clause reads `cost operations = NUMBER`",
}
_AFTER_SIDES = {
    "where": "guards stand between commas: `where rank(x) == 2, constant(c)`",
    "let": "the clause reads `let n = rank(x)`",
    "relaxes": "the clause reads `relaxes reassociation, nan`",
    "tags": "the clause reads `tags NAME, NAME`",
    "cites": 'the clause reads `cites "TEXT"`',
    "unsound": 'the clause reads `unsound "REASON"`',
}
_EQUATION = "an equation reads `y[*i] = EXPRESSION`"
_FIRST = re.compile(rf"^[^\S\n]*({'|'.join((*ITEM_WORDS, *BLOCK_WORDS))})\b", re.MULTILINE)
_RULES = ("rewrite", "eliminate", "index", "derive", "keep")
_WORDS = frozenset((*_ITEMS, *_CLAUSES, *_AFTER_SIDES, "then", "else", "if", "and", "or", "not", "in"))
_ENDS_VALUE = re.compile(r"[\w\])\"]\s*$")


def form(stop: Stop) -> Fix:
    """What is missing at a place, and how the item or clause reads that it lies in."""
    text = without_texts(stop.text)
    done = "OPERATOR" in stop.accepted and text.rstrip().endswith("}")
    return advice("; ".join(filter(None, (_missing(stop, text), _form(text, done)))))


def _missing(stop: Stop, text: str) -> str:
    """What the place lacks: a value, or what joins two of them."""
    found = stop.found
    shown = "at the end" if found == "the end of the text" else f"before `{found}`"
    if found.startswith("the character"):
        return "remove it: it is no sign of rule files"
    if re.fullmatch(r"\d{19,}", found):
        return "whole numbers have at most 18 digits: write `2 ** 63 - 1`, or a float `1.5e20`"
    if wants_expression(stop.accepted):
        return f"a value is missing {shown}"
    if "NAME" in stop.accepted and not found[:1].isalnum() and not _ENDS_VALUE.search(text):
        return f"a name is missing {shown}"
    last = piece_before(stop)
    if last and _ENDS_VALUE.search(text) and re.match(r"[\w\"(]", found) and found != "the end of the text":
        return "" if last in _WORDS else f"nothing joins `{last}` and `{found}`"
    return ""


def _form(text: str, done: bool) -> str:
    """How the item reads that a text ends in; `done` where all items are complete."""
    items = list(_FIRST.finditer(text))
    inside = items[-1] if items and not done else None
    if inside is None:
        return "an item begins with `operator`, `rewrite`, `eliminate`, `function`, `let`, ..."
    word = inside[1]
    if word == "let" and len(items) > 1 and items[-2][1] in ("operator", *_RULES):
        inside = items[-2]  # a clause that has the name of an item
        word = inside[1]
    body = text[inside.end() :]
    if word == "operator" and "{" in body:
        return _clause(body[body.index("{") + 1 :], _CLAUSES, _EQUATION)
    if word in _RULES and re.search(rf"\b({'|'.join(_AFTER_SIDES)})\b", body):
        return _clause(body, _AFTER_SIDES, "")
    return _ITEMS[word].format(word) if word in BLOCK_WORDS else _ITEMS[word]


def _clause(body: str, clauses: dict[str, str], otherwise: str) -> str:
    """The form of the last clause that begins in a text."""
    begun = list(re.finditer(rf"\b({'|'.join(clauses)})\b|^[^\S\n]*\w+\s*\[[^\n=]*=(?!=)", body, re.MULTILINE))
    return clauses.get(begun[-1][1] or "", otherwise) if begun else otherwise

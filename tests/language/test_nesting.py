"""Expressions nested deeper than Python's own stack are refused by one message, wherever they stand."""

from __future__ import annotations

import pytest

from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import LanguageError
from smartmem_rules.language.parsing.parser import parse_text

DEPTH = 1500
PLACES = {
    "left side": "rewrite r in algebra\n    {} => x\n",
    "right side": "rewrite r in algebra\n    Relu(x) => {}\n",
    "attribute": "rewrite r in algebra\n    Relu(x; k = {}) => x\n",
    "guard": "rewrite r in algebra\n    Relu(x) => x\n    where {} == 1\n",
    "let": "rewrite r in algebra\n    Relu(x) => y\n    let y = {}\n",
    "function": "function f(a) = {}\n",
    "operator": "operator A<T: float>(x: T[*X]) -> y: T[*X] {{\n    require {} == 1\n    y[*i < X] = x[*i]\n}}\n",
}
NESTED = {
    "sum": ("1", " + 1", ""),
    "negation": ("-", "", "1"),
    "call": ("f(", ")", "x"),
    "operator": ("Exp(", ")", "x"),
    "choice": ("if a == 1 then b else ", "", "c"),
}


def nested(kind: str, depth: int) -> str:
    before, after, inner = NESTED[kind]
    return before + after * depth if kind == "sum" else before * depth + inner + after * depth


@pytest.mark.covering
@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("rest", ["", "rewrite broken in algebra\n"], ids=["alone", "beside an error"])
def test_deep_nesting_is_refused(place: str, kind: str, rest: str) -> None:
    parse_text(PLACES[place].format(nested(kind, 3)))
    with pytest.raises(LanguageError) as raised:
        parse_text(PLACES[place].format(nested(kind, DEPTH)) + rest)
    assert {one.code for one in raised.value.diagnostics} <= {Code.TOO_DEEP, Code.SYNTAX}
    assert rest or raised.value.diagnostics[0].code == Code.TOO_DEEP

"""Layout and printing: the tree stays, comments stay, a second pass changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smartmem_rules.language import syntax as s
from smartmem_rules.language.diagnostics import LanguageError
from smartmem_rules.language.formatter import format_text
from smartmem_rules.language.parser import parse_text
from smartmem_rules.language.printer import print_expression, print_module
from smartmem_rules.resources import rules_path
from tests.language.programs import expressions, modules

CORPUS = Path(__file__).parent.parent / "corpus"
SHIPPED = sorted(rules_path().rglob("*.smr"))


def parsing() -> list[Path]:
    """All files that are right as far as the grammar goes."""
    found = []
    for path in [*SHIPPED, *sorted(CORPUS.rglob("*.smr"))]:
        try:
            parse_text(path.read_text("utf-8"))
        except LanguageError:
            continue
        found.append(path)
    return found


def comments(text: str) -> list[str]:
    return re.findall(r"#.*", re.sub(r'"(?:[^"\\]|\\.)*"', '""', text))


@pytest.mark.parametrize("path", parsing(), ids=lambda path: path.stem)
def test_files_keep_their_trees_and_comments(path: Path) -> None:
    text = path.read_text("utf-8")
    tree = parse_text(text)
    made = format_text(text)
    assert parse_text(made) == tree
    assert [one.rstrip() for one in comments(text)] == comments(made)
    assert format_text(made) == made
    assert parse_text(print_module(tree)).items == tree.items


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_rules_are_laid_out(path: Path) -> None:
    text = path.read_text("utf-8")
    assert format_text(text) == text, f"smartmem fmt {path}"


@given(expressions())
def test_printed_expressions_give_their_trees(expression: s.Expression) -> None:
    (function,) = parse_text(f"function f() = {print_expression(expression)}").items
    assert isinstance(function, s.Function)
    assert function.body == expression


@settings(max_examples=60, deadline=None)
@given(modules())
def test_printed_programs_give_their_trees(module: s.Module) -> None:
    text = print_module(module)
    assert parse_text(text).items == module.items
    made = format_text(text)
    assert parse_text(made).items == module.items
    assert format_text(made) == made


@given(st.text())
def test_any_text_can_be_laid_out(text: str) -> None:
    assert format_text(format_text(text)).count("\n") <= text.count("\n") + 1


@pytest.mark.parametrize(
    ("rough", "made"),
    [
        ("function f( a,b )=a+b*-c", "function f(a, b) = a + b * -c\n"),
        (
            "operator F <T:float>( x : T [*S] )->y:T[* S]{\ny[*i]=- x[ *i ]\n}",
            "operator F<T: float>(x: T[*S]) -> y: T[*S] {\n    y[*i] = -x[*i]\n}\n",
        ),
        (
            "rewrite a in b#c\nF( x;axis=1 , @r )=>x\nwhere  rank(x)==2,x>1",
            "rewrite a in b #c\n    F(x; axis = 1, @r) => x\n    where rank(x) == 2, x > 1\n",
        ),
        ("let A = 1\n\n\n\nlet B = A [ 1 : 2 ]\n\n", "let A = 1\n\nlet B = A[1:2]\n"),
        ("fuse a{first reduction ;second window;}", "fuse a { first reduction; second window; }\n"),
        ("for Op in A,B{\nindex i\na+0=>a\n}", "for Op in A, B {\n    index i\n        a + 0 => a\n}\n"),
    ],
)
def test_layout(rough: str, made: str) -> None:
    assert format_text(rough) == made


def test_columns_that_line_up_stay() -> None:
    text = "let A      = 1\nlet LONGER = 2\n"
    assert format_text(text) == text

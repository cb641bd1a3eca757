"""Layout and printing: the tree stays, comments stay, a second pass changes nothing."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smartmem_rules.language import syntax as s
from smartmem_rules.language.diagnostics import LanguageError
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.language.printing.formatter import format_text
from smartmem_rules.language.printing.printer import print_expression, print_module
from smartmem_rules.resources import rules_path
from tests.language.programs import expressions, modules

pytestmark = pytest.mark.sampled(2)

CORPUS = Path(__file__).parent.parent / "corpus"
SHIPPED = sorted(rules_path().rglob("*.smr"))


@cache
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


def spoilt(text: str, source: random.Random) -> str:
    """The text with other indents, gaps, line ends, blank lines and places of comments."""
    made = []
    for line in text.split("\n"):
        chance, gaps = source.random(), [place for place, letter in enumerate(line) if letter == " "]
        if chance < 0.1:
            line = " " * source.randint(0, 9) + line.lstrip()
        elif chance < 0.2:
            line = "\t" + line
        elif chance < 0.4 and gaps:
            place = source.choice(gaps)
            line = line[:place] + " " * source.randint(1, 6) + line[place:]
        elif chance < 0.47 and "#" in line and '"' not in line:
            place = line.index("#")
            line = line[:place].rstrip() + " " * source.randint(0, 70) + line[place:]
        elif chance < 0.52 and gaps and "#" not in line:
            place = source.choice(gaps)
            line = line[:place] + "\n" * source.randint(1, 2) + line[place:]
        elif chance < 0.58:
            line += "   # note"
        made.append(line)
    return "\n".join(made)


@given(st.integers(0, 10**9))
@settings(max_examples=60, deadline=None)
def test_a_second_pass_changes_nothing_of_a_spoilt_layout(seed: int) -> None:
    source = random.Random(seed)
    texts = [path.read_text("utf-8") for path in source.sample(parsing(), 2)]
    for text in (spoilt(text, source) for text in texts if len(text) < 9000):
        once = format_text(text)
        assert format_text(once) == once, f"seed {seed}"


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

"""Layout and printing: the tree stays, comments stay, a second pass changes nothing."""

from __future__ import annotations

import random
import re
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from smartmem_rules.language import syntax as s
from smartmem_rules.language.diagnostics import LanguageError
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.language.printing.formatter import format_text
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.resources import rules_path
from tests.language.programs import expressions, modules, printed
from tests.with_all import with_all

pytestmark = pytest.mark.sampled(4)

CORPUS = Path(__file__).parent.parent / "corpus"
SHIPPED = sorted(rules_path().rglob("*.smr"))
FILES = [*SHIPPED, *sorted(CORPUS.rglob("*.smr"))]


@cache
def parses(path: Path) -> bool:
    """Whether a file is right as far as the grammar goes."""
    try:
        parse_text(path.read_text("utf-8"))
    except LanguageError:
        return False
    return True


def two_files(source: random.Random) -> list[Path]:
    return list(islice(filter(parses, source.sample(FILES, len(FILES))), 2))


def comments(text: str) -> list[str]:
    return re.findall(r"#.*", re.sub(r'"(?:[^"\\]|\\.)*"', '""', text))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_keep_their_trees_and_comments(path: Path) -> None:
    if not parses(path):
        pytest.skip("the grammar refuses this file")
    text = path.read_text("utf-8")
    tree = parse_text(text)
    made = format_text(text)
    assert parse_text(made) == tree
    assert [one.rstrip() for one in comments(text)] == comments(made)
    assert format_text(made) == made
    assert parse_text(printed(tree)).items == tree.items


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
@settings(max_examples=with_all(60, 20), deadline=None)
def test_a_second_pass_changes_nothing_of_a_spoilt_layout(seed: int) -> None:
    source = random.Random(seed)
    texts = [path.read_text("utf-8") for path in two_files(source)]
    for text in (spoilt(text, source) for text in texts if len(text) < 9000):
        once = format_text(text)
        assert format_text(once) == once, f"seed {seed}"


def joined(text: str, source: random.Random) -> str:
    """The text with many line ends inside of items taken out, where no comment or row of a table needs them."""
    made = ""
    table = False
    for line in text.split("\n"):
        table = (table or line.startswith("table ")) and line != "}"
        ends = table or not line.strip() or "#" in made.rsplit("\n", 1)[-1] or source.random() < 0.3
        made += ("\n" if ends or not line.startswith(" ") else " ") + line
    return made


def too_long(text: str, width: int) -> list[str]:
    """Lines whose code needs more columns although it could break: not strings, tables and names of operators."""
    table = re.compile(r"(?ms)^table .*?^}$")
    lines = [re.sub(r"\s*#.*", "", line) for line in table.sub("", text).split("\n")]
    return [line for line in lines if len(line) > width and '"' not in line and not line.startswith("operator ")]


@given(st.integers(0, 10**9))
@settings(max_examples=with_all(40, 15), deadline=None)
def test_lines_are_broken_at_the_width(seed: int) -> None:
    source = random.Random(seed)
    width = source.choice([90, 100, 120])
    for path in two_files(source):
        text = joined(path.read_text("utf-8"), source)
        once = format_text(text, width)
        assert parse_text(once) == parse_text(text), f"seed {seed}, {path.name}"
        assert comments(once) == [comment.rstrip() for comment in comments(text)], f"seed {seed}, {path.name}"
        assert format_text(once, width) == once, f"seed {seed}, {path.name}"
        if SHIPPED[0].parents[0] in path.parents:
            assert too_long(once, width) == [], f"seed {seed}, {path.name}"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_rules_are_laid_out(path: Path) -> None:
    text = path.read_text("utf-8")
    assert format_text(text) == text, f"smartmem fmt {path}"


@given(expressions())
def test_printed_expressions_give_their_trees(expression: s.Expression) -> None:
    (function,) = parse_text(f"function f() = {print_expression(expression)}").items
    assert isinstance(function, s.Function)
    assert function.body == expression


@settings(max_examples=with_all(60, 20), deadline=None)
@given(modules())
def test_printed_programs_give_their_trees(module: s.Module) -> None:
    text = printed(module)
    assert parse_text(text).items == module.items
    for width in (60, 120):
        made = format_text(text, width)
        assert parse_text(made).items == module.items
        assert format_text(made, width) == made


@given(st.text())
def test_any_text_can_be_laid_out(text: str) -> None:
    assert format_text(format_text(text)).count("\n") <= text.count("\n") + 1


TOKENS = [
    *"a()[]{}=,;+-*<#",
    "if",
    "then",
    "else",
    "=>",
    "or",
    "sum",
    "for",
    "operator",
    "rewrite",
    "in",
    "where",
    "\n",
]


@given(st.lists(st.sampled_from(TOKENS)))
def test_any_tokens_can_be_laid_out(tokens: list[str]) -> None:
    text = " ".join(tokens)
    for width in (10, 120):
        # the comment on the line of a rule's name may move to the end of that line
        assert sorted("".join(format_text(text, width).split())) == sorted("".join(text.split()))


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


@pytest.mark.parametrize(
    ("rough", "made"),
    [
        (
            "function f(a) = if a == 1 then first_of_all(a) else if a == 2 then second_of_all(a) else third_of_all(a)",
            """\
function f(a) =
    if a == 1 then first_of_all(a)
    else if a == 2 then second_of_all(a)
    else third_of_all(a)
""",
        ),
        (
            "rewrite a in b F(G(x; axis = 1), G(y; axis = 1)) => G(F(x, y), F(y, x); axis = 1) where rank(x) == 2",
            """\
rewrite a in b
    F(G(x; axis = 1), G(y; axis = 1))
    => G(F(x, y), F(y, x); axis = 1)
    where rank(x) == 2
""",
        ),
        (
            "operator F<T: float>(first: T[*S], second: T[*S]; axis: int = 0, other: int = 1) -> y: T[*S] {\n"
            "y[*i] = first[*i] * (sum(k < K) second[*i, k]) + first[*i] / x[*i + 1] # the sum\n}",
            """\
operator F<T: float>(first: T[*S], second: T[*S];
        axis: int = 0, other: int = 1)
        -> y: T[*S] {
    y[*i] =
            first[*i] * (sum(k < K) second[*i, k])
            + first[*i] / x[*i + 1]   # the sum
}
""",
        ),
        (
            "fuse a for recompute { producer pointwise; consumer contraction; recompute 16; }",
            """\
fuse a for recompute {
    producer pointwise;
    consumer contraction;
    recompute 16;
}
""",
        ),
        (
            "level a { fuse first_of_all second_of_all third_of_all fourth_of_all fifth_named_one; }",
            """\
level a {
    fuse first_of_all second_of_all third_of_all
        fourth_of_all fifth_named_one;
}
""",
        ),
        (
            "function f(a) = shape_of_all(a, b) +  # the first\n  # the second\n  shape_of_all(b, a)"
            " + shape_of_all(c, a) + shape_of_all(c, b)",
            """\
function f(a) =
    shape_of_all(a, b)
    +   # the first
    # the second
    shape_of_all(b, a)
    + shape_of_all(c, a) + shape_of_all(c, b)
""",
        ),
        (
            "rewrite a in b F(G(x; axis = 1), G(y; axis = 1)) => G(F(x, y); axis = 1)   # belongs to the rule",
            """\
rewrite a in b   # belongs to the rule
    F(G(x; axis = 1), G(y; axis = 1)) => G(F(x, y); axis = 1)
""",
        ),
        (
            "predicate p(a) = shape_of_all(a, a) == shape_of_all(a, a) + 1   # belongs to the predicate",
            """\
predicate p(a) =   # belongs to the predicate
    shape_of_all(a, a) == shape_of_all(a, a) + 1
""",
        ),
    ],
)
def test_long_lines(rough: str, made: str) -> None:
    assert format_text(rough, 60) == made

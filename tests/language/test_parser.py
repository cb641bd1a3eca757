"""The parser: precedence, spans, comments, and that nothing but a LanguageError ever leaves it."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from math import inf
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic, LanguageError
from smartmem_rules.language.fixes import applied
from smartmem_rules.language.parsing.parser import parse_file, parse_text
from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.checking import check_files

PIECES = """
operator rewrite index table device function sum first if then else where in for not import view let
( ) [ ] { } < > = => <=> -> , ; : :: . .. ... * ** + - / // % ~ @ ? | #
a Add T x 1 2.5 1e9 "text" " _ inf true
""".replace(" ", "\n").split("\n")


def body(text: str) -> s.Expression:
    """The expression `text`."""
    (function,) = parse_text(f"function f(a) = {text}").items
    assert isinstance(function, s.Function)
    return function.body


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("sum(k < K) a * b + c", "(sum(k < K) (a * b)) + c"),
        ("2 * sum(k < K) a * b", "2 * (sum(k < K) (a * b))"),
        ("a - sum(k < K) b - c", "(a - (sum(k < K) b)) - c"),
        ("-sum(k < K) a * b", "-(sum(k < K) (a * b))"),
        ("-a ** 2", "-(a ** 2)"),
        ("a ** -b ** c", "a ** (-(b ** c))"),
        ("a // b * c", "(a // b) * c"),
        ("not a < b and c or d", "((not (a < b)) and c) or d"),
        ("x[i] else 0 * w", "(x[i] else 0) * w"),
        ("x[i] else -inf", "x[i] else (-inf)"),
        ("x[i] else y[i] else 0", "x[i] else (y[i] else 0)"),
        ("if c then x[i] else 0", "if c then (x[i]) else 0"),
        ("if c then f(x[i] else 0) else 1", "if c then f((x[i] else 0)) else 1"),
        ("if a then if b then c else d else e", "if a then (if b then c else d) else e"),
        ("if x[i] else 0 then 1 else x[j] else 2", "if (x[i] else 0) then 1 else (x[j] else 2)"),
        ("max(k, 1) - 1", "(max(k, 1)) - 1"),
    ],
)
def test_precedence(text: str, same: str) -> None:
    assert body(text) == body(same)


def test_else_of_a_conditional_is_not_a_default() -> None:
    conditional = body("if c then x[i] else 0")
    assert isinstance(conditional, s.Conditional)
    assert isinstance(conditional.then, s.Subscript)
    assert conditional.then.default is None


def test_reduction_names_are_functions_without_binders() -> None:
    assert isinstance(body("prod(S)"), s.Call)
    assert isinstance(body("prod(k < S) k"), s.Reduction)
    first = body("first(j in N, j > 2) j")
    assert isinstance(first, s.Reduction)
    assert first.condition is not None


def test_statements_need_no_line_ends() -> None:
    text = "operator F(x: T[N]) -> y: T[N] { let a = max(1, 2) let b = a m[i < N] = x[i] y[i] = m[i] }"
    (operator,) = parse_text(text).items
    assert isinstance(operator, s.Operator)
    assert [let.name for let in operator.lets] == ["a", "b"]
    assert [equation.tensor for equation in operator.equations] == ["m", "y"]


def test_words_of_items_are_names_inside_of_braces() -> None:
    text = (
        "operator F(x: T[N]) -> y: T[N] { let where = 1 index[i < N] = x[i] table[i < N] = index[i] y[i] = table[i] }"
    )
    (operator,) = parse_text(text).items
    assert isinstance(operator, s.Operator)
    assert [equation.tensor for equation in operator.equations] == ["index", "table", "y"]


@pytest.mark.parametrize("word", ["device", "schedule", "level", "layout", "fuse"])
def test_a_block_may_follow_an_expression(word: str) -> None:
    _, block = parse_text(f"function f(a) = a\n{word} b {{ {word} 1; }}").items
    assert isinstance(block, s.Block)
    assert block.kind == word


def test_indices_of_an_output_take_their_bounds_from_the_signature() -> None:
    (operator,) = parse_text("operator F(x: T[N, *S]) -> ys[j]: T[N, *S] { ys[j][n, *i] = x[n, *i] }").items
    assert isinstance(operator, s.Operator)
    (equation,) = operator.equations
    assert equation.member == "j"
    assert [(binder.kind, binder.name) for binder in equation.indices] == [("loop", "n"), ("loops", "i")]
    assert all(isinstance(binder.bound, s.Name) and binder.bound.id == "_" for binder in equation.indices)


def test_onnx_binding() -> None:
    texts = ["onnx com.microsoft::Gelu 1..3 ;", "onnx ai.onnx::Gelu 20.. ;", "onnx ai.onnx::Gelu;", "", "internal"]
    found = []
    for clause in texts:
        (operator,) = parse_text(f"operator Gelu(x: T[*S]) -> y: T[*S] {{ {clause} y[*i] = x[*i] }}").items
        assert isinstance(operator, s.Operator)
        found.append(operator.onnx and (operator.onnx.domain, operator.onnx.since, operator.onnx.until))
    assert found == [("com.microsoft", 1, 3), ("ai.onnx", 20, None), ("ai.onnx", 1, None), ("ai.onnx", 1, None), None]


def test_numbers_and_strings() -> None:
    assert body("-inf") == s.Unary(s.NOWHERE, "-", s.Number(s.NOWHERE, inf))
    assert body('"a\\n\\"b\\" # c"') == s.Text(s.NOWHERE, 'a\n"b" # c')
    assert isinstance(getattr(body("3"), "value", None), int)
    assert isinstance(getattr(body("3.0"), "value", None), float)


def test_comment_of_the_header_line() -> None:
    text = (
        'rewrite a in b   # x + 0 = x\n    F(x) => x  # not this\nlevel l { s "#"; } # full\nindex i\n    a => b # no\n'
    )
    rewrite, level, index = parse_text(text).items
    assert isinstance(rewrite, s.Rewrite)
    assert rewrite.comment == "x + 0 = x"
    assert isinstance(level, s.Block)
    assert level.comment == "full"
    assert isinstance(index, s.IndexRule)
    assert index.comment == ""


def test_block_values() -> None:
    (block,) = parse_text('device d { a 1 -2 2.5 fp16 "two words" 4..8; }').items
    assert isinstance(block, s.Block)
    assert block.entries[0].values == (1, -2, 2.5, "fp16", "two words", "4..8")


def test_spans_cover_the_text() -> None:
    text = "function f(a) =\n    (a + 1) * g(a, [2])\n"
    (function,) = parse_text(text, "f.smr").items
    assert isinstance(function, s.Function)
    assert isinstance(function.body, s.Binary)
    assert function.body.left.span == s.Span("f.smr", 2, 5, 2, 12)
    assert function.body.right.span == s.Span("f.smr", 2, 15, 2, 24)
    assert function.span == s.Span("f.smr", 1, 1, 2, 24)


DESCRIPTIONS = [rules_path() / "README.md", Path(__file__).parents[2] / "docs" / "language.md"]


@pytest.mark.parametrize("path", DESCRIPTIONS, ids=lambda path: path.stem)
def test_the_examples_of_the_descriptions_parse(path: Path) -> None:
    blocks = re.findall(r"```smr\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        assert parse_text(block).items


def test_what_the_contract_calls_best_gives_no_message_and_what_it_calls_bad_does(tmp_path: Path) -> None:
    blocks = re.findall(r"```smr\n(.*?)```", DESCRIPTIONS[0].read_text("utf-8"), re.DOTALL)
    path = tmp_path / "example.smr"
    judged: dict[str, list[bool]] = {"# bad": [], "# best": []}
    for block in blocks:
        path.write_text(block.replace("add_zero", "add_nothing").replace("_as_printed", "_wrong"))
        # some of the examples are shipped rules
        found = [one for one in check_files([path])[0] if one.code != Code.DUPLICATE_REWRITE]
        for word, messages in judged.items():
            if word in block:
                messages.append(bool(found))
        if not any(word in block for word in ("# bad", "# best", "# better")):
            assert found == [], block
    assert judged["# best"] == [False, False, False]
    assert judged["# bad"][1:] == [True, True]


def test_unreadable_files(tmp_path: Path) -> None:
    (tmp_path / "latin.smr").write_bytes(b"# caf\xe9\n")
    for name in ("latin.smr", "missing.smr"):
        with pytest.raises(LanguageError) as caught:
            parse_file(tmp_path / name)
        assert [one.code for one in caught.value.diagnostics] == [Code.UNREADABLE]
        assert str(caught.value).endswith("found 1 error")


@given(st.lists(st.sampled_from(PIECES)).map(" ".join) | st.text())
@example("x\x00")
@example("function f() = " + 5000 * "9")
@example("device d { a " + 5000 * "9" + "; }")
@example("if if then else else")
@example("table t(a, b) {\n\n}")
@example(")]}{[(")
@example("\ufeffoperator")
@example('import "\\')
def test_any_text_gives_a_module_or_a_language_error(text: str) -> None:
    try:
        module = parse_text(text)
    except LanguageError as error:
        messages = error.diagnostics
    else:
        assert module.text == text
        messages = ()
    assert all(one.message for one in messages)


SLIPS = ("=", "->", ":", ";", ",", "(", ")", "[", "]", "{", "}", "else", "then", "in", "where", "$", "|", '"', "1", "x")


def slipped(text: str, source: random.Random) -> str:
    """A text in which one word or sign is left out, doubled, exchanged with the next one, or another one."""
    words = list(re.finditer(r'"[^"\n]*"|\w+|[=<>!-]+|\S', re.sub(r"#[^\n]*", lambda found: " " * len(found[0]), text)))
    place = source.randrange(len(words) - 1)
    one, other = words[place], words[place + 1]
    made = source.choice(("", f"{one[0]} {one[0]}", source.choice(SLIPS), f"{source.choice(SLIPS)} {one[0]}", None))
    if made is None:
        between = text[one.end() : other.start()]
        return f"{text[: one.start()]}{other[0]}{between}{one[0]}{text[other.end() :]}"
    return text[: one.start()] + made + text[one.end() :]


def messages_about(text: str) -> Sequence[Diagnostic]:
    try:
        parse_text(text)
    except LanguageError as error:
        return error.diagnostics
    return ()


@pytest.mark.parametrize("seed", range(8))
def test_a_slip_anywhere_is_answered_by_how_to_mend_it(seed: int) -> None:
    source = random.Random(seed)
    texts = [path.read_text() for path in sorted((Path(__file__).parents[1] / "corpus" / "pass").glob("*.smr"))]
    answered = 0
    for _ in range(12):
        text = slipped(source.choice([text for text in texts if len(text) > 40]), source)
        found = messages_about(text)
        answered += bool(found)
        assert all(len(one.fix.text) > 5 for one in found)
        for one in found:
            assert not one.fix.edits or applied(text, one.fix.edits) != text
    assert answered >= 6


@pytest.mark.sampled(2)
@pytest.mark.parametrize("run", ["x", "\n", "(x", "where ", "[x", " "])
def test_long_runs_are_answered_at_once(run: str) -> None:
    text = "rewrite twice in algebra\n    Neg(Neg(x)) => x\n".replace("=>", run * 20_000)
    with pytest.raises(LanguageError) as raised:
        parse_text(text)
    shown = re.findall(r"(?m)^ +\d+ \| .*|^ +\| .*", str(raised.value))
    assert max(map(len, shown)) < 300

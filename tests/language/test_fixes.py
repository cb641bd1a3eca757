"""What messages say about mending: edits that make the message go away, or advice that says that it is one."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest

from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic, LanguageError
from smartmem_rules.language.fixes import Edit, applied, spelling
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.language.syntax import Span
from smartmem_rules.rulebase.base import load_modules
from smartmem_rules.rulebase.checks.checker import check
from tests.language.test_corpus import own_problems

FAIL = Path(__file__).parent.parent / "corpus" / "fail"
# The edit would be a guess at what the author means.
ADVICE = {
    *(Code.BAD_VALUE, Code.IMPURE, Code.NO_EXTENT, Code.INVERSE_PAIR, Code.MALFORMED, Code.NAME_OF_OTHER_DOMAIN),
    *(Code.SYNTAX, Code.NO_VIEW_TO_ELIMINATE, Code.OVERRIDE, Code.READS_OUTSIDE, Code.SIDES_SOMETIMES_DIFFER),
    *(Code.NO_ARITHMETIC, Code.ATTRIBUTE_KIND),
    *(Code.NO_EQUATION, Code.UNBOUND_VARIABLE, Code.UNDEFINED_NAME, Code.UNDEFINED_FUNCTION, Code.MISSING_ATTRIBUTE),
    *(
        Code.BAD_REFERENCE,
        Code.UNKNOWN_DTYPE,
        Code.TOO_DEEP,
        Code.UNKNOWN_RELAXATION,
        Code.UPPER_CASE_VARIABLE,
        Code.COMPUTED_ON_LEFT,
        Code.DUPLICATE_NAME,
        Code.BARE_LEFT_SIDE,
        Code.ARGUMENT_COUNT,
        Code.BAD_DEFAULT,
        Code.DUPLICATE_REWRITE,
        Code.IMPORT_NOT_FOUND,
        Code.IMPOSSIBLE_DEFINITION,
        Code.INDEX_COUNT,
        Code.MISSING_KEY,
        Code.NO_CONDITION,
        Code.OPERAND_COUNT,
        Code.BAD_COST,
        Code.DIVISION_BY_ZERO,
        Code.DTYPES_DIFFER,
        Code.EMPTY_OPSET_RANGE,
        Code.FACT_IN_EXPRESSION,
        Code.INDEX_RULE_FORM,
        Code.MISSING_CELL,
        Code.MISSING_LINE,
        Code.NOT_JOINED,
        Code.RECURSIVE_FUNCTION,
        Code.REPEATED_LINE,
        Code.RULESET_CYCLE,
        Code.RULESET_ORDER,
        Code.SAME_PATTERN,
        Code.SAME_SIDES,
        Code.SHADOWED_OVERLOAD,
        Code.SIDES_DIFFER,
        Code.UNKNOWN_OPERATOR,
        Code.UNKNOWN_OUTPUT,
        Code.VACUOUS_GUARD,
        Code.VARIADIC_NOT_LAST,
    ),
    # where nothing is like the word
    *(Code.UNKNOWN_ACTION, Code.UNKNOWN_ATTRIBUTE, Code.UNKNOWN_KEY, Code.UNKNOWN_LINE, Code.UNKNOWN_REFERENCE),
    Code.UNKNOWN_RULESET,
}


def messages(path: Path) -> list[Diagnostic]:
    try:
        return own_problems(load_modules([path]))
    except LanguageError as error:
        return list(error.diagnostics)


def key(one: Diagnostic) -> tuple[Code, int, str]:
    return one.code, one.span.line, one.message


@pytest.mark.sampled(8)
@pytest.mark.parametrize("path", sorted(FAIL.glob("*.smr")), ids=lambda path: path.stem)
def test_an_edit_makes_its_message_go_away(path: Path, tmp_path: Path) -> None:
    folder = copytree(path.parent, tmp_path / "fail", ignore=lambda _, names: [n for n in names if n.endswith(".txt")])
    copy = folder / path.name
    text = copy.read_text()
    for one in messages(copy):
        if one.fix.kind == "advice":
            assert one.code in ADVICE
            assert not one.fix.edits
            continue
        copy.write_text(applied(text, one.fix.edits))
        left = messages(copy)
        assert key(one) not in map(key, left), one.fix
        own = [other for other in left if other.code == Code.SYNTAX and other.span.line == one.span.line]
        assert not own, f"{one.fix} breaks the line"


def test_many_fixes_are_edits(all_cases: bool) -> None:
    share = 1 if all_cases else 8
    fixes = [one.fix for path in sorted(FAIL.glob("*.smr"))[::share] for one in messages(path)]
    edits = [fix for fix in fixes if fix.kind == "edit"]
    assert all(fix.edits for fix in edits)
    assert len(edits) > 140 // share


def test_a_word_of_a_family_is_not_edited_where_its_variable_stands() -> None:
    family = "for Op in Relu, Reluu {\n    rewrite twice in algebra\n        Op(Op(x)) => Op(x)\n}\n"
    relu = "operator Relu<T: float>(x: T[*S]) -> y: T[*S] { y[*i] = max(x[*i], 0) }\n"
    found = check([parse_text(relu + family)])
    (fix,) = {one.fix for one in found if one.code == Code.UNKNOWN_OPERATOR}
    assert (fix.kind, fix.text) == ("advice", "did you mean `Relu`?")


def test_edits_are_made_from_the_end() -> None:
    def span(line: int, begin: int, end: int) -> Span:
        return Span("f", line, begin, line, end)

    edits = [Edit(span(1, 1, 2), "xyz"), Edit(span(2, 2, 2), "!"), Edit(span(1, 3, 4), "")]
    assert applied("abc\nde", edits) == "xyzb\nd!e"
    assert applied("ab\ncd\nef", [Edit(Span("f", 1, 2, 3, 2), "")]) == "af"


def test_a_spelling_knows_what_it_replaces() -> None:
    place = Span("f", 1, 1, 1, 6)
    fix = spelling("Realu", ["Relu", "Exp"], place)
    assert fix is not None
    assert fix.edits == (Edit(place, "Relu", "Realu"),)
    assert spelling("Quux", ["Relu", "Exp"], place) is None

"""The checker on files as a whole: speed, SARIF, shipped rules, agreement with the engine, any bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from smartmem_rules.analysis.relations import Relations
from smartmem_rules.egraph.index_compile import IndexRuleError, compile_index_rules
from smartmem_rules.language import syntax as s, vocabulary
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import LanguageError, render
from smartmem_rules.language.parsing.parser import parse_file, parse_text
from smartmem_rules.language.printing.builtin_docs import DOCS
from smartmem_rules.language.printing.sarif import sarif
from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import load_modules, load_rules
from smartmem_rules.rulebase.checking import check_files
from smartmem_rules.rulebase.checks.checker import check
from smartmem_rules.rulebase.checks.index_checks import check_index_form
from smartmem_rules.tensor.builtins import FUNCTIONS
from smartmem_rules.tensor.definitions.elements import ELEMENT_FUNCTIONS
from tests.language.test_corpus import CORPUS, FAIL, PASS
from tests.with_all import with_all

WITH_RULES = (*(CORPUS / "sound").glob("*.smr"), *(CORPUS / "unsound").glob("*.smr"))


@pytest.mark.exhaustive  # `make check`, which CI runs, asks the same
def test_the_shipped_rules_give_no_message() -> None:
    found, sources = check_files([*sorted(rules_path().rglob("*.smr"))])
    assert not found, render(found, sources)


@pytest.mark.sampled(160)
@pytest.mark.parametrize(
    "path", sorted((*PASS, *FAIL, *WITH_RULES)), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_files_that_are_right_need_not_be_looked_at_again(path: Path) -> None:
    shipped = load_modules(sorted(rules_path().rglob("*.smr")))
    known = {Path(module.span.file).resolve() for module in shipped}
    try:
        own = load_modules([path], known)
    except LanguageError:
        return
    deep = {module.span.file for module in own}
    found = check([*shipped, *own], deep=deep, right={module.span.file for module in shipped})
    assert found == check([*shipped, *own], deep=deep)


def test_what_a_file_spoils_in_a_right_one_is_found() -> None:
    operator = "operator {}<T: float>(x: T[*S]) -> y: T[*S] {{ y[*i] = -x[*i] }}\n"
    right = parse_text(
        operator.format("First") + operator.format("Second") + "family Any = First | Second\n", "right.smr"
    )
    other, spoiling = (parse_text(operator.format(name), "own.smr") for name in ("Third", "Any"))
    assert check([right, other], right=["right.smr"]) == []
    assert [one.span.file for one in check([right, spoiling], right=["right.smr"])] == ["right.smr"]


def test_every_shipped_rule_has_its_equation_as_a_comment() -> None:
    assert [rule.name for rule in load_rules().rules() if not rule.comment] == []


@pytest.mark.parametrize("name", ["elementwise", "reduction", "view"])
def test_an_operator_takes_few_clauses(name: str) -> None:
    path = rules_path() / "operators" / f"{name}.smr"
    operators = [o for overloads in load_rules().operators.values() for o in overloads if o.span.file == str(path)]
    assert operators
    # an operator that reads the bits of a number takes a few more
    assert [o.name for o in operators if len(o.requires) + len(o.lets) + len(o.equations) > 8] == []


def test_the_vocabulary_is_what_the_engine_knows() -> None:
    assert vocabulary.LIST_FUNCTIONS.keys() >= FUNCTIONS.keys()
    assert vocabulary.ALL_FUNCTIONS.keys() >= FUNCTIONS.keys() | ELEMENT_FUNCTIONS
    assert DOCS.keys() >= vocabulary.ALL_FUNCTIONS.keys()


@pytest.mark.parametrize("path", [path for path in (*PASS, *FAIL) if "index" in path.stem], ids=lambda path: path.stem)
def test_index_rules_that_pass_are_compiled_by_the_engine(path: Path) -> None:
    from smartmem_rules.language import syntax as s

    for item in parse_file(path).items:
        if not isinstance(item, s.IndexRule):
            continue
        refused = list(check_index_form(item))
        try:
            compile_index_rules([item])
        except IndexRuleError:
            assert refused
        else:
            assert not refused


def test_sarif_has_a_rule_for_each_code_and_a_result_for_each_message() -> None:
    path = next(path for path in FAIL if path.stem == "duplicate_commuted")
    found, _ = check_files([path])
    data = sarif(found)
    (run,) = data["runs"]
    assert data["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [str(code) for code in Code]
    result = next(result for result in run["results"] if result["ruleId"] == "SMR0102")
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "SMR0102"
    region = result["locations"][0]["physicalLocation"]["region"]
    assert (region["startLine"], region["startColumn"], region["endColumn"]) == (13, 9, 21)
    assert result["relatedLocations"][0]["message"]["text"] == "`factor` is here"


def test_sarif_follows_its_schema() -> None:
    sarif_pydantic = pytest.importorskip("sarif_pydantic")
    found = [one for path in FAIL[:: with_all(6, 20)] for one in check_files([path])[0]]
    assert len({one.code for one in found}) > 10
    assert any(one.secondary for one in found)
    data = json.loads(json.dumps(sarif(found)))
    log = sarif_pydantic.Sarif.model_validate(data)
    assert len(log.runs[0].results) == len(found)
    # what the schema does not know is left out of the model, and would be missing here
    assert log.model_dump(mode="json", by_alias=True, exclude_unset=True) == data
    assert (data["version"], data["runs"][0]["columnKind"]) == ("2.1.0", "unicodeCodePoints")
    data["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(ValueError, match="level"):
        sarif_pydantic.Sarif.model_validate(data)


@settings(max_examples=with_all(150, 60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=200)
    | st.tuples(st.sampled_from([*PASS, *FAIL]), st.integers(0, 400), st.integers(0, 40), st.binary(max_size=4)).map(
        lambda drawn: drawn[0].read_bytes()[: drawn[1]] + drawn[3] + drawn[0].read_bytes()[drawn[1] + drawn[2] :]
    )
)
@example(b"\xff")
@example(b"function f(a) = " + b"-" * 3000 + b"a")
@example(b"function f(a) = a" + b"[0]" * 3000)
@example(b"function f(a) = " + b"if a then " * 500 + b"1" + b" else 2" * 500)
@example(b"index i " + b"a+" * 2000 + b"a => 0")
def test_any_bytes_give_a_tree_or_messages(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any.smr"
    path.write_bytes(content)
    try:
        module = parse_file(path)
    except LanguageError as error:
        found = list(error.diagnostics)
        text = render(found, error.sources)
    else:
        found = check([module])
        text = render(found, {module.span.file: module.text})
    assert text.splitlines()[-1].startswith("found ")


def alike(count: int) -> str:
    """Rules with the same roots on both sides, each of another number."""
    rule = "rewrite made_{0} in algebra\n    Mul(Add(x, {0}), y) => Add(Mul(x, y), {0})\n    explores\n\n"
    turned = "rewrite turned_{0} in algebra\n    Add(Mul(x, {0}), y) => Mul(Add(x, y), {0})\n    explores\n\n"
    return "".join((rule, turned)[number % 2].format(number + 2) for number in range(count))


def test_rules_of_the_same_roots_are_not_compared_pair_by_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = []

    def compared(self: Relations, rule: s.Rewrite, other: s.Rewrite) -> bool:
        pairs.append((rule.name, other.name))
        return False

    monkeypatch.setattr(Relations, "inverse", compared)
    monkeypatch.setattr(Relations, "subsumes", compared)
    operators = "for Op, f in (Add, max), (Mul, min) {\n    operator Op<T: float>(x: T[*S], y: T[*S]) -> z: T[*S] {\n"
    operators += "        z[*i] = f(x[*i], y[*i])\n    }\n}\n\n"
    check([parse_text(operators + alike(120))])
    assert len(pairs) <= 240


def test_a_rule_that_takes_back_another_with_its_operands_exchanged_is_found() -> None:
    operators = "operator Add<T: float>(x: T[*S], y: T[*S]) -> z: T[*S] {\n    commutative\n"
    operators += "    z[*i] = x[*i] + y[*i]\n}\n"
    operators += "operator Neg<T: float>(x: T[*S]) -> y: T[*S] { y[*i] = -x[*i] }\n\n"
    there = "rewrite there in algebra\n    Neg(Add(x, 3)) => Add(Neg(x), 3)\n    explores\n\n"
    back = "rewrite back in algebra\n    Add(3, Neg(z)) => Neg(Add(3, z))\n    explores\n"
    found = check([parse_text(operators + there + back)])
    assert [one.code for one in found if one.code == Code.INVERSE_PAIR] == [Code.INVERSE_PAIR]

"""Loading: built-in and user's files, imports, overload order, switching off."""

from __future__ import annotations

from pathlib import Path

import pytest

from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import LanguageError
from smartmem_rules.rulebase import base as rulebase
from smartmem_rules.rulebase.base import load_modules, load_rules

BUILT_IN = """operator Relu(x: T[*S]) -> y: T[*S] { y[*i] = max(x[*i], 0) }
rewrite relu_twice in algebra
    Relu(Relu(x)) => Relu(x)
index plus_zero
    a + 0 => a
level smartmem { rulesets algebra; }
"""


@pytest.fixture
def built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the built-in rules."""
    folder = tmp_path / "rules"
    (folder / "operators").mkdir(parents=True)
    (folder / "operators" / "relu.smr").write_text(BUILT_IN)
    monkeypatch.setattr(rulebase, "rules_path", lambda: folder)
    return folder


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.usefixtures("built_in")
def test_user_overloads_are_tried_first(tmp_path: Path) -> None:
    mine = write(tmp_path, "mine.smr", "operator Relu<T: int>(x: T[*S]) -> y: T[*S] { y[*i] = x[*i] }\n")
    overloads = load_rules([mine]).operators["Relu"]
    assert [Path(operator.span.file).name for operator in overloads] == ["mine.smr", "relu.smr"]


@pytest.mark.usefixtures("built_in")
def test_rules_are_switched_off_by_name() -> None:
    base = load_rules(disable=["relu_twice", "plus_zero"])
    assert not base.rule_names()
    assert set(base.levels) == {"smartmem"}


def test_schedules_are_switched_off_too() -> None:
    assert set(load_rules().schedules) - set(load_rules(disable=["winograd_4"]).schedules) == {"winograd_4"}


@pytest.mark.usefixtures("built_in")
def test_switching_off_an_unknown_rule_is_an_error() -> None:
    with pytest.raises(LanguageError) as caught:
        load_rules(disable=["relu_twise"])
    assert [one.code for one in caught.value.diagnostics] == [Code.UNKNOWN_RULE]
    assert "did you mean `relu_twice`?" in str(caught.value)


@pytest.mark.usefixtures("built_in")
def test_errors_of_user_files_are_raised(tmp_path: Path) -> None:
    mine = write(tmp_path, "mine.smr", "rewrite relu_twice in algebra\n    Rleu(x) => x\n")
    with pytest.raises(LanguageError) as caught:
        load_rules([mine])
    assert {one.code for one in caught.value.diagnostics} == {Code.UNKNOWN_OPERATOR, Code.DUPLICATE_NAME}


def test_a_built_in_file_given_again_is_loaded_once(built_in: Path) -> None:
    assert len(load_rules([built_in / "operators" / "relu.smr"]).operators["Relu"]) == 1


def test_imports_are_loaded_once_and_may_be_circular(tmp_path: Path) -> None:
    first = write(tmp_path, "a.smr", 'import "b.smr"\n')
    second = write(tmp_path, "b.smr", 'import "a.smr"\nfunction f(a) = a\n')
    modules = load_modules([first, second])
    assert [Path(module.span.file).name for module in modules] == ["b.smr", "a.smr"]


def test_a_changed_file_is_parsed_again(tmp_path: Path) -> None:
    path = write(tmp_path, "a.smr", "function f(a) = a\n")
    assert len(load_modules([path])[0].items) == 1
    write(tmp_path, "a.smr", "function f(a) = a\nfunction g(a) = a\n")
    assert len(load_modules([path])[0].items) == 2


def test_the_shipped_rules_are_right() -> None:
    load_rules()


def test_what_is_changed_in_one_rule_base_is_not_in_the_next() -> None:
    base = load_rules()
    base.operators["Relu"].clear()
    base.rewrites.clear()
    del base.devices["pocl"]
    again = load_rules()
    assert again.operators["Relu"]
    assert again.rewrites
    assert again.devices["pocl"]


def test_the_built_in_rules_come_from_the_cache_until_a_text_changes(
    built_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMARTMEM_CACHE", str(tmp_path / "kept"))
    made = load_rules()
    with monkeypatch.context() as changed:
        changed.setattr(rulebase, "collect", lambda *_: pytest.fail("made again"))
        assert load_rules() == made
        rulebase._built_in.cache_clear()
        assert load_rules() == made
        assert load_rules(disable=["relu_twice"]).rewrites == []
        assert load_rules().rewrites == made.rewrites
    write(built_in, "mine.smr", "function doubled(x) = 2 * x\n")
    assert "doubled" in load_rules().functions
    write(built_in, "mine.smr", "function tripled(x) = 3 * x\n")
    assert {"doubled", "tripled"} & load_rules().functions.keys() == {"tripled"}
    write(built_in, "mine.smr", "function tripled(x) = 3 * y\n")
    with pytest.raises(LanguageError):
        load_rules()


def test_overloads_of_constants_come_first_whichever_file_is_loaded_first() -> None:
    for name, overloads in load_rules().operators.items():
        counts = [sum(one.constant is not None for one in each.inputs) for each in overloads]
        assert counts == sorted(counts, reverse=True), name
    first, second = load_rules().operators["Gather"]
    assert first.inputs[1].constant
    assert not second.inputs[1].constant

"""Guards of elements of lists: instances are made from them, with other elements than the trivial ones, at any seed."""

from __future__ import annotations

import random
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from smartmem_rules.language.parsing.parser import parse_file, parse_text
from smartmem_rules.language.syntax import Rewrite
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.definitions.values import Scope
from smartmem_rules.verification.instances.cases import Search
from smartmem_rules.verification.list_guards import ListGuards
from smartmem_rules.verification.results import RuleReport
from smartmem_rules.verification.run import choose, judge_rules
from smartmem_rules.verification.trials.outcome import TRIALS

CORPUS = Path(__file__).parents[1] / "corpus"
WRONG, SOUND = (CORPUS / kind / "list_elements.smr" for kind in ("unsound", "sound"))
SEEDS = range(1, 6)


def names(path: Path) -> list[str]:
    return [item.name for item in parse_file(path).items if isinstance(item, Rewrite)]


@cache
def base_of(path: Path) -> RuleBase:
    """The built-in rules and those of a file: checking the file takes as long as judging some of its rules."""
    return load_rules([path])


def judged(path: Path, name: str, seed: int, trials: int = TRIALS) -> RuleReport:
    base = base_of(path)
    (report,) = judge_rules(base, choose(base, [str(path)], name), seed=seed, trials=trials, jobs=1)
    return report


def search_of(path: Path, name: str, seed: int) -> Search:
    base = base_of(path)
    (rule,) = (rule for rule in base.rewrites if rule.name == name)
    return Search(rule, rule.left, rule.right, Instances(base), seed)


def fitted(guards: str, drawn: Value, **known: Value) -> Value:
    (rule,) = parse_text(f"rewrite r in algebra\n    Neg(x) => x\n    where {guards}\n").items
    assert isinstance(rule, Rewrite)
    scope = Scope(dict(known), {}, {}, {})
    return ListGuards(rule.guards).fitted("p", drawn, scope, random.Random(1))


@pytest.mark.covering
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", names(WRONG))
def test_a_rule_that_is_right_for_zeros_alone_fails_at_any_seed(name: str, seed: int) -> None:
    assert judged(WRONG, name, seed).verdict == "failed"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", names(SOUND))
def test_a_sound_rule_has_enough_instances_at_any_seed(name: str, seed: int) -> None:
    report = judged(SOUND, name, seed, trials=60)
    assert report.verdict == "tested", report.reason
    assert report.satisfied is not None
    assert report.satisfied > 0.5


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_elements_that_guards_leave_open_are_other_numbers_too(seed: int) -> None:
    search = search_of(WRONG, "le_max_of_padded", seed)
    search.empties = True
    found = [case.choices["name:p"] for case in islice(search.cases(40), 40) if case is not None]
    assert len(found) > 20
    for place in (2, 3, 6, 7):
        assert {pads[place] for pads in found} > {0}, place


def test_a_name_that_was_one_number_becomes_another() -> None:
    search = search_of(SOUND, "lf_whole_slice", 1)
    for case in islice(search.cases(60), 60):
        assert case is None or not search.varied.is_done or search.statistics.satisfied
    assert search.varied.is_done
    assert "name:s" in search.varied.constant()
    assert "name:e" not in search.varied.constant()


def test_equations_give_the_length_and_the_elements_that_they_name() -> None:
    found = fitted("rank(p) == 5, p[0] == n, p[-1] == 7, p[1:3] == [4, 4], min(p) >= 0", (-1,), n=3)
    assert isinstance(found, tuple)
    assert found[:3] == (3, 4, 4)
    assert found[3] >= 0  # type: ignore[operator]
    assert found[4:] == (7,)


def test_elements_are_as_large_as_guards_want() -> None:
    found = fitted("rank(p) == 2, p[0] >= n, p[1] > 100", (0, 0), n=40)
    assert isinstance(found, tuple)
    assert found[0] >= 40  # type: ignore[operator]
    assert found[1] > 100  # type: ignore[operator]


def test_a_list_that_guards_contradict_stays_as_it_was_drawn() -> None:
    assert fitted("p[0] == 1, p[0] == 2", (5, 6)) == (5, 6)


def test_guards_of_names_that_are_not_known_yet_are_left_out() -> None:
    assert fitted("p[0] == q[0]", (5, 6)) == (5, 6)

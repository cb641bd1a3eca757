"""Phases of a strategy: rule sets that run together, and what ends them."""

from __future__ import annotations

from pathlib import Path

import pytest

from smartmem_rules.egraph import Bounds, saturate
from smartmem_rules.egraph.model import PhaseRun
from smartmem_rules.language.blocks.strategy import Phase, PhaseError, phase_of
from smartmem_rules.language.diagnostics import LanguageError
from smartmem_rules.rulebase.base import RuleBase, load_rules
from tests.egraph.building import Builder

SWAP = """rewrite swap in reorder
    Add(Add(a, b), c) => Add(Add(a, c), b)
    relaxes reassociation
    explores
rewrite rounded in rounding
    Floor(Sign(x)) => Sign(x)
ruleset reorder after algebra
ruleset rounding after reorder
"""


def rules_of(folder: Path, text: str) -> RuleBase:
    path = folder / "mine.smr"
    path.write_text(text)
    return load_rules([path])


def sum_of(base: RuleBase, terms: int) -> Builder:
    builder = Builder(base)
    names = [builder.input(f"x{place}", (2, 3)) for place in range(terms)]
    total = names[0]
    for name in names[1:]:
        total = builder.add("Add", total, name)
    builder.finish(total)
    return builder


def ran(base: RuleBase, phases: list[Phase], terms: int = 6) -> list[PhaseRun]:
    graph = sum_of(base, terms).graph
    return list(saturate(graph, base, phases, bounds=Bounds(1 << 20, seconds=60.0)).phases)


def test_a_phase_ends_after_its_rounds(tmp_path: Path) -> None:
    base = rules_of(tmp_path, SWAP)
    few, all_ = (ran(base, [Phase(rulesets=("reorder",), rounds=rounds)])[0] for rounds in (3, None))
    assert (few.rounds, few.stopped) == (3, "3 rounds")
    assert all_.stopped is None
    assert all_.rounds > 3
    assert few.enodes < all_.enodes


def test_a_phase_ends_when_the_egraph_is_large(tmp_path: Path) -> None:
    (one,) = ran(rules_of(tmp_path, SWAP), [Phase(rulesets=("reorder",), enodes=60)])
    assert one.stopped is not None
    assert one.stopped.endswith("rows, more than 60")


def test_a_phase_ends_after_its_seconds(tmp_path: Path) -> None:
    (one,) = ran(rules_of(tmp_path, SWAP), [Phase(rulesets=("reorder",), seconds=1e-6)])
    assert one.rounds == 1
    assert one.stopped is not None
    assert "more than 1e-06" in one.stopped


def test_rule_sets_of_a_phase_run_together(tmp_path: Path) -> None:
    """A rule of each set takes part: the inner one has to come first, whose set is named last."""
    base = rules_of(tmp_path, SWAP)
    builder = Builder(base)
    inner = builder.add("Floor", builder.add("Sign", builder.input("x", (4,))))
    root = builder.add("Add", builder.add("Add", inner, builder.input("y", (4,))), builder.input("z", (4,)))
    graph = builder.finish(root)
    saturation = saturate(graph, base, [Phase(rulesets=("reorder", "rounding"))])
    assert {name for name, one in saturation.statistics.items() if one.fired} >= {"swap", "rounded"}
    (one,) = saturation.phases
    assert (str(one.phase), one.stopped) == ("reorder and rounding", None)


LEVEL = """strategy mine {
    phase eliminate;
    phase recognise algebra rounds 4 seconds 2.5;
    phase eliminate;
}
level mine { strategy mine; }
"""


def test_sets_that_no_level_names_join_behind_those_that_they_follow(tmp_path: Path) -> None:
    base = rules_of(tmp_path, SWAP + LEVEL)
    level = base.levels["mine"]
    assert level.phases == (
        Phase(rulesets=("eliminate",)),
        Phase(rulesets=("recognise", "algebra"), rounds=4, seconds=2.5),
        Phase(rulesets=("reorder",)),
        Phase(rulesets=("rounding",)),
        Phase(rulesets=("eliminate",)),
    )
    assert level.rulesets == ("eliminate", "recognise", "algebra", "reorder", "rounding", "eliminate")


def test_a_level_takes_one_of_strategy_and_rule_sets(tmp_path: Path) -> None:
    with pytest.raises(LanguageError, match="SMR0506"):
        rules_of(tmp_path, LEVEL + "level both { strategy mine; rulesets algebra; }\n")


@pytest.mark.parametrize(
    ("values", "place"),
    [
        (("rounds", 3), 0),
        (("algebra", 3), 1),
        (("algebra", "rounds"), 1),
        (("algebra", "rounds", 0), 1),
        (("algebra", "rounds", 1.5), 1),
        (("algebra", "rounds", 2, "round", 3), 3),
        (("algebra", "rounds", 2, "rounds", 3), 3),
        (("algebra", "seconds", "two"), 1),
    ],
)
def test_what_is_no_phase_says_where(values: tuple[int | float | str, ...], place: int) -> None:
    with pytest.raises(PhaseError) as found:
        phase_of(values)
    assert found.value.place == place

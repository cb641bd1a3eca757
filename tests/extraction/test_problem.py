"""The extraction problem: pruning, cycles, sharing, and the solver against brute force."""

from __future__ import annotations

import itertools
import random

import pytest

from smartmem_rules.extraction.problem import (
    Choice,
    Infeasible,
    Problem,
    components,
    prune,
    selected_order,
    selection_cost,
)
from smartmem_rules.extraction.solve import greedy, solve


def problem(choices: dict[int, list[tuple[float, tuple[int, ...]]]], *roots: int) -> Problem:
    return Problem({n: [Choice(c, kids, i) for i, (c, kids) in enumerate(cs)] for n, cs in choices.items()}, roots)


def brute_force(given: Problem) -> float:
    best = float("inf")
    numbers = list(given.choices)
    for picked in itertools.product(*(given.choices[n] for n in numbers)):
        selection = dict(zip(numbers, picked, strict=True))
        try:
            best = min(best, selection_cost(given, selection))
        except (Infeasible, KeyError):
            continue
    return best


def solved_cost(given: Problem) -> float:
    prune(given)
    solution = solve(given, 5.0)
    assert solution.status == "optimal"
    assert solution.bound == pytest.approx(solution.cost)
    assert selection_cost(given, solution.selection) == pytest.approx(solution.cost)
    return solution.cost


def test_a_shared_class_is_paid_once() -> None:
    # two readers: each alone would rather take its own way (4 < 6), together they share (6 < 8)
    given = problem({0: [(0, (1, 2))], 1: [(4, ()), (0, (3,))], 2: [(4, ()), (0, (3,))], 3: [(6, ())]}, 0)
    assert solved_cost(given) == 6


def test_a_cycle_is_never_selected() -> None:
    given = problem({0: [(0, (1,)), (5, ())], 1: [(0, (0,))]}, 1)
    assert solved_cost(given) == 5


def test_a_longer_cycle_with_two_ways_out() -> None:
    given = problem({0: [(1, (1,)), (9, ())], 1: [(1, (2,)), (8, ())], 2: [(1, (0,)), (7, ())]}, 0, 1, 2)
    assert components(given)
    assert solved_cost(given) == 9


def test_what_cannot_be_built_is_an_error() -> None:
    with pytest.raises(Infeasible):
        prune(problem({0: [(1, (1,))], 1: [(1, (0,))]}, 0))


def test_dominated_choices_go() -> None:
    given = problem({0: [(3, (1, 2)), (2, (1,))], 1: [(0, ())], 2: [(1, ())]}, 0)
    prune(given)
    assert [c.key for c in given.choices[0]] == [1]


@pytest.mark.parametrize("seed", range(60))
def test_random_problems_against_brute_force(seed: int) -> None:
    generator = random.Random(seed)
    count = generator.randint(3, 8)
    choices: dict[int, list[tuple[float, tuple[int, ...]]]] = {}
    for number in range(count):
        ways = [(float(generator.randint(0, 9)), tuple(generator.sample(range(count), generator.randint(0, 2))))
                for _ in range(generator.randint(1, 3))]  # fmt: skip
        choices[number] = ways
    choices[count - 1].append((20.0, ()))
    given = problem(choices, 0)
    expected = brute_force(problem(choices, 0))
    if expected == float("inf"):
        with pytest.raises(Infeasible):
            prune(given)
        return
    assert solved_cost(given) == pytest.approx(expected)
    selected_order(given.roots, greedy(given))

"""Caches against cases worked out by hand and against the plainest implementation of the same rule."""

from collections import OrderedDict

import numpy as np
import pytest

from smartmem_rules.simulate.caches import Cache


def test_least_recently_used_line_goes():
    # one set of two ways: 0 and 1 fill it, 0 is used again, 2 takes the place of 1, which then is gone
    cache = Cache(bytes=128, ways=2, line=64)
    assert cache.sets == 1
    hits = cache.hits(np.array([0, 1, 0, 2, 1, 2]))
    assert hits.tolist() == [False, False, True, False, False, True]


def test_lines_of_other_sets_do_not_meet():
    # two sets of one way: even and odd lines
    cache = Cache(bytes=128, ways=1, line=64)
    hits = cache.hits(np.array([0, 1, 0, 1, 2, 0, 1]))
    assert hits.tolist() == [False, False, True, True, False, False, True]


def test_units_have_caches_of_their_own():
    cache = Cache(bytes=64, ways=1, line=64)
    hits = cache.hits(np.array([5, 5, 5, 6, 5]), np.array([0, 1, 0, 0, 1]))
    assert hits.tolist() == [False, False, True, False, True]


def test_nothing_accessed():
    assert Cache(64, 1, 64).hits(np.array([], dtype=np.int64)).tolist() == []


@pytest.mark.parametrize("seed", range(8))
def test_random_streams_against_a_dictionary(seed):
    random = np.random.default_rng(seed)
    ways, sets = int(random.integers(1, 9)), int(random.choice([1, 2, 4, 16]))
    cache = Cache(ways * sets * 64, ways, 64)
    lines = random.integers(0, int(random.choice([8, 60, 400])), 3000)
    units = random.integers(0, 3, 3000)
    state = {}
    expected = []
    for line, unit in zip(lines.tolist(), units.tolist(), strict=True):
        held = state.setdefault((unit, line % sets), OrderedDict())
        expected.append(line in held)
        held.pop(line, None)
        held[line] = None
        if len(held) > ways:
            held.popitem(last=False)
    assert cache.hits(lines, units).tolist() == expected, f"seed {seed}"

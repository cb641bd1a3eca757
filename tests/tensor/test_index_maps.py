"""Index normal form: composed maps against brute force, and what the normal form must recognise."""

from __future__ import annotations

import itertools
import math
import pickle
import random

import pytest

from smartmem_rules.tensor.atoms import Div, Gathered, Lookup, Mod, Var
from smartmem_rules.tensor.expr import Apply, Compare, Read, Reduce, Select
from smartmem_rules.tensor.index import Index, add, div, mod, scale, variable
from smartmem_rules.tensor.substitution import lookup, ravel, substitute, unravel
from smartmem_rules.tensor.views import IndexMap, axis_variables, compose, identity

SHAPE = tuple[int, ...]


def reshape(source: SHAPE, shape: SHAPE) -> IndexMap:
    axes = axis_variables(shape)
    return IndexMap(axes, unravel(ravel(tuple(map(variable, axes)), shape), source), source)


def transpose(source: SHAPE, permutation: SHAPE) -> IndexMap:
    axes = axis_variables(tuple(source[p] for p in permutation))
    indices = [Index(0)] * len(source)
    for axis, p in zip(axes, permutation, strict=True):
        indices[p] = variable(axis)
    return IndexMap(axes, tuple(indices), source)


def roll(source: SHAPE, axis: int, shift: int) -> IndexMap:
    axes = axis_variables(source)
    indices = list(map(variable, axes))
    indices[axis] = mod(indices[axis] + shift, source[axis])
    return IndexMap(axes, tuple(indices), source)


def chain(*maps: IndexMap) -> IndexMap:
    result = maps[0]
    for following in maps[1:]:
        result = compose(result, following)
    return result


def shifted(source: SHAPE, shape: SHAPE, by: int) -> IndexMap:
    """A part of the first axis."""
    axes = axis_variables(shape)
    return IndexMap(axes, (variable(axes[0]) + by, *map(variable, axes[1:])), source)


def test_replaced_variables_give_the_sum_of_what_replaces_them() -> None:
    """In one pass or term by term: the same terms in the same order, digits recombined."""
    draw = random.Random(5)
    names = [Var(f"v{n}", draw.randint(2, 9)) for n in range(12)]
    linear = 0
    for _ in range(500):

        def some(most: int) -> Index:
            sum_ = Index(draw.randint(-3, 3))
            for var in draw.sample(names, draw.randint(0, most)):
                whole = scale(variable(var), draw.choice([-6, -2, -1, 1, 2, 6]))
                sum_ = add(sum_, draw.choice([whole, whole, whole, div(whole, 2), mod(whole, 6)]))
            return sum_

        index = add(some(4), some(2))
        values = {var: some(3) for var in draw.sample(names, 6)}
        expected = Index(index.constant)
        for atom, coefficient in index.terms:
            alone = substitute(Index(0, ((atom, 1),)), values)
            expected = add(expected, scale(alone, coefficient))
        assert substitute(index, values) == expected
        met = [atom for one in (index, *values.values()) for atom, _ in one.terms]
        linear += all(isinstance(atom, Var) for atom in met)
    assert linear >= 10


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_maps_of_no_elements_are_equal(shape: SHAPE) -> None:
    """A view of an empty tensor that is one of itself would have powers without end."""
    source = (shape[0] + 5, *shape[1:])
    parts = {compose(identity(source), shifted(source, shape, by)) for by in range(4)}
    assert len(parts) == 1
    assert compose(shifted(shape, shape, 1), shifted(shape, shape, 1)).is_identity


def value(index: Index, point: dict[Var, int]) -> int:
    total = index.constant
    for atom, coefficient in index.terms:
        match atom:
            case Var():
                total += coefficient * point[atom]
            case Div(value=inner, divisor=divisor):
                total += coefficient * (value(inner, point) // divisor)
            case Mod(value=inner, divisor=divisor):
                total += coefficient * (value(inner, point) % divisor)
            case Lookup(table=table, position=position):
                total += coefficient * table[value(position, point)]
            case Gathered():
                raise AssertionError("not used here")
    return total


def at(view: IndexMap, place: SHAPE) -> SHAPE:
    point = dict(zip(view.variables, place, strict=True))
    return tuple(value(index, point) for index in view.indices)


def places(shape: SHAPE) -> list[SHAPE]:
    return list(itertools.product(*map(range, shape)))


def factors(rng: random.Random, number: int) -> SHAPE:
    found = []
    while number > 1:
        divisor = rng.choice([d for d in range(2, number + 1) if number % d == 0])
        found.append(divisor)
        number //= divisor
    rng.shuffle(found)
    return tuple(found)


def random_step(rng: random.Random, shape: SHAPE) -> IndexMap:
    kind = rng.random()
    if kind < 0.5:
        return reshape(shape, factors(rng, math.prod(shape)))
    if kind < 0.8:
        return transpose(shape, tuple(rng.sample(range(len(shape)), len(shape))))
    return roll(shape, rng.randrange(len(shape)), rng.randint(0, 5))


@pytest.mark.parametrize("seed", range(150))
def test_random_chains_agree_with_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    steps: list[IndexMap] = []
    shape = factors(rng, rng.choice([24, 36, 48, 60]))
    whole = identity(shape)
    for _ in range(rng.randint(1, 5)):
        steps.append(random_step(rng, whole.shape))
        whole = compose(whole, steps[-1])
    for place in places(whole.shape):
        expected = place
        for step in reversed(steps):
            expected = at(step, expected)
        assert at(whole, place) == expected, f"seed {seed}: {[str(s) for s in steps]} gave {whole}"
    if whole.inverse is not None:
        for place in places(whole.shape):
            assert at(whole.inverse, at(whole, place)) == place, f"seed {seed}: the inverse of {whole}"


@pytest.mark.parametrize("seed", range(100))
def test_chains_without_roll_have_an_inverse(seed: int) -> None:
    rng = random.Random(1000 + seed)
    view = identity(factors(rng, 48))
    for _ in range(2):
        order = tuple(rng.sample(range(len(view.shape)), len(view.shape)))
        view = compose(view, transpose(view.shape, order))
    assert view.inverse is not None, f"seed {seed}: {view}"
    assert compose(view, view.inverse).is_identity, f"seed {seed}: {view}"
    assert compose(view.inverse, view).is_identity, f"seed {seed}: {view}"


def window_partition(height: int, width: int, channels: int, window: int) -> IndexMap:
    tiles = (1, height // window, window, width // window, window, channels)
    order = (0, 1, 3, 2, 4, 5)
    split = reshape((1, height, width, channels), tiles)
    moved = transpose(tiles, order)
    count = height // window * (width // window)
    return chain(split, moved, reshape(moved.shape, (count, window, window, channels)))


def window_reverse(height: int, width: int, channels: int, window: int) -> IndexMap:
    count = height // window * (width // window)
    tiles = (1, height // window, width // window, window, window, channels)
    split = reshape((count, window, window, channels), tiles)
    moved = transpose(tiles, (0, 1, 3, 2, 4, 5))
    return chain(split, moved, reshape(moved.shape, (1, height, width, channels)))


@pytest.mark.parametrize(("height", "width", "window"), [(14, 14, 7), (56, 28, 7), (8, 12, 4), (7, 7, 7)])
def test_window_partition_and_reverse_cancel(height: int, width: int, window: int) -> None:
    forward, back = window_partition(height, width, 96, window), window_reverse(height, width, 96, window)
    assert compose(forward, back).is_identity
    assert compose(back, forward).is_identity


def test_window_partition_has_the_reverse_as_inverse() -> None:
    forward = window_partition(14, 14, 96, 7)
    assert forward.inverse is not None
    assert forward.inverse.indices == window_reverse(14, 14, 96, 7).indices


def test_shifted_window_is_invertible() -> None:
    image = (1, 14, 14, 8)
    view = chain(reshape((1, 196, 8), image), roll(image, 1, 3), roll(image, 2, 3), window_partition(14, 14, 8, 7))
    assert view.inverse is not None
    assert chain(view, view.inverse).is_identity
    assert chain(view.inverse, view).is_identity


def test_a_view_that_repeats_elements_has_no_inverse() -> None:
    axes = axis_variables((4, 3))
    assert IndexMap(axes, (variable(axes[0]),), (4,)).inverse is None


def test_a_shift_that_leaves_its_source_has_no_inverse() -> None:
    """A concatenation reads its second part so, under a condition: it has as many elements, but not the same."""
    row, column = axis_variables((8, 8))
    assert IndexMap((row, column), (variable(row) + Index(-6), variable(column)), (8, 8)).inverse is None


def test_division_and_modulo_that_intervals_decide_vanish() -> None:
    a, b = Var("a", 6), Var("b", 4)
    both = variable(a) * 4 + variable(b)
    assert div(both, 4) == variable(a)
    assert mod(both, 4) == variable(b)
    assert div(both, 4) * 4 + mod(both, 4) == both


@pytest.mark.parametrize("seed", range(100))
def test_div_and_mod_of_random_sums(seed: int) -> None:
    rng = random.Random(seed)
    axes = [Var(name, rng.randint(2, 6)) for name in "abc"]
    index = Index(rng.randint(-20, 20))
    for axis in axes:
        index = index + variable(axis) * rng.choice([-12, -6, -3, -1, 1, 2, 4, 8, 12])
    outer, inner = rng.choice([2, 3, 4, 6, 8, 12]), rng.choice([2, 3, 4, 6])
    for place in places(tuple(a.extent for a in axes)):
        point = dict(zip(axes, place, strict=True))
        exact = value(index, point)
        assert value(div(index, outer), point) == exact // outer, f"seed {seed}"
        assert value(mod(index, outer), point) == exact % outer, f"seed {seed}"
        assert value(div(mod(index, outer), inner), point) == exact % outer // inner, f"seed {seed}"
        assert value(mod(div(index, outer), inner), point) == exact // outer % inner, f"seed {seed}"


def test_an_arithmetic_table_is_no_table() -> None:
    axis = Var("a", 4)
    assert lookup((3, 5, 7, 9), variable(axis)) == variable(axis) * 2 + 3
    assert isinstance(lookup((3, 5, 8, 9), variable(axis)).terms[0][0], Lookup)


def test_a_copy_for_another_process_has_no_hash_of_this_one() -> None:
    i = Var("i", 8)
    index = add(div(variable(i), 2), mod(variable(i), 2))
    read, condition = Read("x", (index,), "float32"), Compare("<", index, variable(i))
    expressions = (
        Apply("neg", (read,), "float32"),
        Select(condition, read, read, "float32"),
        Reduce("sum", (i,), read, "float32"),
    )
    for one in (i, *(atom for atom, _ in index.terms), index, *expressions):
        hash(one)
        copied = pickle.loads(pickle.dumps(one))
        assert "_hash" in vars(one)
        assert "_hash" not in vars(copied)
        assert copied == one
        assert hash(copied) == hash(one)

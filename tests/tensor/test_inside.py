"""Reads of definitions at concrete extents: what leaves a tensor, or a scan that is not computed yet, is refused."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import collect, load_modules, load_rules
from smartmem_rules.tensor.atoms import Gathered, Var
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.definitions.inside import outside
from smartmem_rules.tensor.expr import Compare, Logic, TensorType
from smartmem_rules.tensor.index import Index, div, mod, variable
from smartmem_rules.tensor.instantiate import instantiate

HEADER = "operator Probe<T: float>"


def probe(tmp_path: Path, signature: str, body: str, *shapes: tuple[int, ...], **attributes: int) -> object:
    file = tmp_path / "probe.smr"
    file.write_text(f"{HEADER}{signature} {{\n    internal\n{body}\n}}\n")
    base = collect(load_modules([file]), load_modules(sorted(rules_path().rglob("*.smr"))))
    return instantiate(base, "Probe", [TensorType("float32", s) for s in shapes], attributes)


@pytest.mark.parametrize("by", [1, 3, 8, -1, -5_000_000])
def test_a_shift_that_leaves_its_operand_is_refused(tmp_path: Path, by: int) -> None:
    with pytest.raises(Unsupported, match=r"probe.smr:3:\d+: element -?\d+ of x is read, whose extent is 8"):
        probe(tmp_path, "(x: T[N]; by: int) -> y: T[N]", "    y[i] = x[i + by]", (8,), by=by)


def test_a_sum_of_loop_variables_reaches_its_ends_without_being_computed() -> None:
    """As the rows of groups did that a product took for channels: no point is needed to be certain."""
    channel, place = variable(Var("c", 15)), variable(Var("p", 5))
    found = outside(channel * 5 + place, 15, (), most_points=0)
    assert found is not None
    assert (found.element, found.is_certain) == (74, True)
    assert outside(channel + 3 - place, 15, (), most_points=0) is not None
    assert outside(variable(Var("g", 3)) * 5 + place, 15, (), most_points=0) is None
    assert outside(channel * 5 + variable(Var("none", 0)), 15, (), most_points=0) is None


def test_no_shift_is_none(tmp_path: Path) -> None:
    assert probe(tmp_path, "(x: T[N]; by: int) -> y: T[N]", "    y[i] = x[i + by]", (8,), by=0)


def test_a_condition_keeps_a_read_inside(tmp_path: Path) -> None:
    body = "    y[i] = if i + by < N and 0 <= i + by then x[i + by] else 0"
    assert probe(tmp_path, "(x: T[N]; by: int) -> y: T[N]", body, (8,), by=3)
    with pytest.raises(Unsupported):
        probe(tmp_path, "(x: T[N]; by: int) -> y: T[N]", body.replace("i + by < N and ", ""), (8,), by=3)


def test_a_condition_on_every_axis_keeps_a_read_inside(tmp_path: Path) -> None:
    signature, body = (
        "(x: T[*S]; by: int) -> y: T[*S]",
        "    y[*i] = if all(d in rank(S)) ({}) then x[*(i + by)] else 0",
    )
    assert probe(tmp_path, signature, body.format("0 <= i[d] + by and i[d] + by < S[d]"), (8, 5), by=3)
    assert probe(tmp_path, signature, body.format("0 <= i[d] + by and i[d] + by < S[d]"), (), by=3)
    with pytest.raises(Unsupported):
        probe(tmp_path, signature, body.format("i[d] + by < S[0]"), (8, 5), by=3)
    some = "    y[*i] = if any(d in rank(S)) (i[d] + by < 0 or S[d] <= i[d] + by) then 0 else x[*(i + by)]"
    assert probe(tmp_path, signature, some, (8, 5), by=-3)
    with pytest.raises(Unsupported):
        probe(tmp_path, signature, some.replace("any", "all"), (8, 5), by=-3)


def test_a_condition_that_no_interval_uses_is_looked_at_point_by_point(tmp_path: Path) -> None:
    body = "    y[i] = if i % 2 == 0 then x[i // 2 * 2 + 1] else 0"
    assert probe(tmp_path, "(x: T[N]) -> y: T[N]", body, (8,))
    with pytest.raises(Unsupported):
        probe(tmp_path, "(x: T[N]) -> y: T[N]", body, (7,))


def test_rows_are_no_columns(tmp_path: Path) -> None:
    body = "    y[n, m] = sum(k < K) x[n, k] * w[k, m]"
    signature = "(x: T[N, K], w: T[N, K]) -> y: T[N, N]"
    assert probe(tmp_path, signature, body, (3, 3), (3, 3))
    with pytest.raises(Unsupported, match="axis 0 of w"):
        probe(tmp_path, signature, body, (2, 3), (2, 3))


@pytest.mark.parametrize("read", ["h[t + 1, d]", "h[t, d]", "h[L - 1, d]"])
def test_a_scan_reads_no_step_that_is_to_come(tmp_path: Path, read: str) -> None:
    body = f"    scan h[t < L, d < D] = x[t, d] + ({read} else 0)\n    y[t, d] = h[t, d]"
    with pytest.raises(Unsupported, match="its own step or later ones"):
        probe(tmp_path, "(x: T[L, D]) -> y: T[L, D]", body, (4, 3))


def test_scans_read_earlier_steps_and_what_is_done_in_this_one(tmp_path: Path) -> None:
    body = (
        "    scan p[t < L] = if t == 0 then 0 else h[t - 1]\n    scan h[t < L] = p[t] + x[t]\n    y[t] = h[L - 1 - t]"
    )
    assert probe(tmp_path, "(x: T[L]) -> y: T[L]", body, (4,))
    with pytest.raises(Unsupported):
        probe(tmp_path, "(x: T[L]) -> y: T[L]", body.replace("h[t - 1]", "h[t]"), (4,))


def test_scans_step_together(tmp_path: Path) -> None:
    body = (
        "    scan a[i < H, j < W] = x[i, j] + (if i == 0 then 0 else a[i - 1, j])\n"
        "    scan b[j < W, i < H] = x[i, j] + (if j == 0 then 0 else b[j - 1, i])\n    y[i, j] = b[j, i] + a[i, j]"
    )
    assert probe(tmp_path, "(x: T[H, W]) -> y: T[H, W]", body, (3, 3))
    with pytest.raises(Unsupported, match="b has 6 steps and a 3"):
        probe(tmp_path, "(x: T[H, W]) -> y: T[H, W]", body, (3, 6))


def test_parts_of_a_concatenation_differ_along_its_axis_only() -> None:
    base = load_rules()
    fitting = [TensorType("float32", (2, 3)), TensorType("float32", (2, 5))]
    assert instantiate(base, "Concat", fitting, {"axis": 1}).outputs[0].shape == (2, 8)
    for axis, shapes in ((0, [(2, 3), (2, 2)]), (0, [(2, 2), (2, 3)]), (1, [(1, 2), (2, 2)])):
        with pytest.raises(Exception, match=r"Concat requires|is read"):
            instantiate(base, "Concat", [TensorType("float32", s) for s in shapes], {"axis": axis})


@pytest.mark.parametrize("seed", range(40))
def test_an_index_is_inside_exactly_where_every_point_is(seed: int) -> None:
    source = random.Random(seed)
    variables = [Var(f"v{n}", source.choice((1, 2, 3, 5))) for n in range(3)]
    index = Index(source.randint(-4, 4))
    for v in variables:
        index = index + variable(v) * source.randint(-2, 3)
    if source.random() < 0.5:
        index = (div if source.random() < 0.5 else mod)(index, source.choice((2, 3, 4))) + source.randint(-1, 1)
    bound = Index(source.randint(-2, 4))
    condition = Compare(source.choice(("<", "<=", "==", "!=")), variable(variables[0]) - variable(variables[1]), bound)
    conditions = [condition if source.random() < 0.5 else Logic("not", (condition,))] if source.random() < 0.7 else []
    extent = source.randint(1, 9)
    grid = np.meshgrid(*(np.arange(v.extent) for v in variables), indexing="ij")
    values, reached = np.zeros(grid[0].shape, int), np.ones(grid[0].shape, bool)
    for place in np.ndindex(grid[0].shape):
        at = {v: int(g[place]) for v, g in zip(variables, grid, strict=True)}
        values[place] = _value(index, at)
        reached[place] = all(_holds(c, at) for c in conditions)
    leaves = bool(np.any(((values < 0) | (values >= extent)) & reached))
    assert (outside(index, extent, conditions) is not None) is leaves, f"seed {seed}: {index} under {conditions}"


def test_what_stands_beside_an_unknown_condition_counts() -> None:
    """`i < 6 and 0 <= table[i]` bounds i, although nobody knows the table; without the bound nothing is certain."""
    i = variable(Var("i", 9))
    unknown = Compare("<=", Index(0), variable(Gathered("places", (i,), 1 << 40, False)))  # type: ignore[arg-type]
    bounded = Compare("<", mod(i * 2, 18), Index(12))
    assert outside(i * 2, 11, [Logic("and", (bounded, unknown))]) is None
    either = Logic("not", (Logic("or", (Logic("not", (bounded,)), Logic("not", (unknown,)))),))
    assert outside(i * 2, 11, [either]) is None
    found = outside(i * 2, 9, [Logic("and", (bounded, unknown))])
    assert found is not None
    assert not found.is_certain


def _value(index: Index, at: dict[Var, int]) -> int:
    from smartmem_rules.tensor.substitution import substitute

    return substitute(index, {v: Index(n) for v, n in at.items()}).constant


def _holds(condition: Compare | Logic, at: dict[Var, int]) -> bool:
    if isinstance(condition, Logic):
        return not _holds(condition.operands[0], at)
    a, b = _value(condition.left, at), _value(condition.right, at)
    return {"<": a < b, "<=": a <= b, "==": a == b, "!=": a != b}[condition.operator]

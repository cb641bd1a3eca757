"""Proofs that views stay inside their operands: shipped operators, and definitions that read outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from smartmem_rules.rulebase.base import collect, load_modules, load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.verification.proof.formulas import Unprovable
from smartmem_rules.verification.proof.open_views import prove_views

pytestmark = pytest.mark.sampled(2)

z3 = pytest.importorskip("z3")

PROVED = {"flatten", "squeeze", "unsqueeze", "transpose", "depth_to_space", "space_to_depth", "expand", "tile", "roll",
          "identity", "dropout", "split", "reshape"}  # fmt: skip

FLATTEN = "(x: T[*S]; axis: int = 1) -> y: T[prod(S[:a]), prod(S[a:])]", "let a = split_axis(axis, rank(S))"
SQUEEZE = ("(x: T[*S], const axes: ints?) -> y: T[*drop(S, A)]",
           "let A = if present(axes) then wrap(axes, rank(S)) else [d for d in rank(S) if S[d] == 1]")  # fmt: skip
UNSQUEEZE = ("(x: T[*S], const axes: ints) -> y: T[*insert(S, A, ones(rank(A)))]",
             "let A = wrap(axes, rank(S) + rank(axes))")  # fmt: skip
BLOCKS = "(x: T[N, C, H, W]; b: int) -> y: T[N, C * b * b, H // b, W // b]", "require b > 0"
DEPTH = ("(x: T[N, C, H, W]; b: int) -> y: T[N, C // (b * b), H * b, W * b]",
         "require b > 0 and C % (b * b) == 0")  # fmt: skip
PART = "(x: T[N]; start: int, count: int) -> y: T[count]"
EXPAND = "(x: T[*S], const shape: ints) -> y: T[*broadcast(S, shape)]"
SPLIT = ("(x: T[*S], const split: ints; axis: int = 0) -> ys[j]: T[*put(S, [a], [split[j]])]",
         "let a = wrap(axis, rank(S))", "let starts = part_starts(split)")  # fmt: skip
RESHAPE = "(x: T[*S], const shape: ints; allowzero: int = 0) -> y: T[*O]", "let O = reshape_shape(S, shape, allowzero)"
ROLL = "(x: T[*S]; shifts: ints, axes: ints) -> y: T[*S]"

TRUE = {
    "flatten": (*FLATTEN, "view y[r, c] = x[*unravel(r, S[:a]), *unravel(c, S[a:])]"),
    "squeeze": (*SQUEEZE, "require prod(take(S, A)) == 1", "view y[*i] = x[*insert(i, A, zeros(rank(A)))]"),
    "unsqueeze": (*UNSQUEEZE, "view y[*i] = x[*drop(i, A)]"),
    "blocks": (*BLOCKS, "view y[n, c, h, w] = x[n, c % C, h * b + c // C // b, w * b + c // C % b]"),
    "depth": (*DEPTH, "view y[n, c, h, w] = x[n, c * b * b + h % b * b + w % b, h // b, w // b]"),
    "part": (PART, "require start >= 0 and start + count <= N", "view y[i] = x[i + start]"),
    "expand": (EXPAND, "view y[*i] = x[~i]"),
    "roll": (ROLL, "view y[*i] = x[*((i - put(zeros(rank(S)), wrap(axes, rank(S)), shifts)) % S)]"),
    "split": (
        *SPLIT,
        "require sum_of(split) == S[a] and rank(split) == count(ys) and min(split) >= 0",
        "view ys[j][*i] = x[*put(i, [a], [i[a] + starts[j]])]",
    ),
}

OUTSIDE = {
    "flatten_off_by_one": (*FLATTEN, "view y[r, c] = x[*unravel(r, S[:a]), *unravel(c + 1, S[a:])]"),
    "flatten_swapped": (*FLATTEN, "view y[r, c] = x[*unravel(c, S[:a]), *unravel(r, S[a:])]"),
    "squeeze_at_one": (*SQUEEZE, "require prod(take(S, A)) == 1", "view y[*i] = x[*insert(i, A, ones(rank(A)))]"),
    "squeeze_without_axes": (*SQUEEZE, "view y[*i] = x[*insert(i, A, take(S, A) - zeros(rank(A)))]"),
    "unsqueeze_first_axes": (*UNSQUEEZE, "view y[*i] = x[*i[:rank(S)]]"),
    "blocks_undivided": (*BLOCKS, "view y[n, c, h, w] = x[n, c % C, h * b + c // C, w * b + c // C % b]"),
    "blocks_by_other_extent": (*BLOCKS, "view y[n, c, h, w] = x[n, c % C, h * b + c // H // b, w * b + c // C % b]"),
    "depth_whole_row": (*DEPTH, "view y[n, c, h, w] = x[n, c * b * b + h % b * b + w, h // b, w // b]"),
    "depth_one_block": (*DEPTH, "view y[n, c, h, w] = x[n, c * b * b + h % b * b + w % b, h, w // b]"),
    "part_without_end": (PART, "require start >= 0", "view y[i] = x[i + start]"),
    "part_without_begin": (PART, "require start + count <= N", "view y[i] = x[i + start]"),
    "part_one_further": (PART, "require start >= 0 and start + count <= N + 1", "view y[i] = x[i + start]"),
    "expand_not_repeated": (EXPAND, "view y[*i] = x[*i[rank(i) - rank(S):]]"),
    "roll_over_the_end": (ROLL, "view y[*i] = x[*(i - put(zeros(rank(S)), wrap(axes, rank(S)), shifts))]"),
    "roll_of_one_more": (ROLL, "view y[*i] = x[*((i - put(zeros(rank(S)), wrap(axes, rank(S)), shifts)) % (S + 1))]"),
    "reshape_to_more": (*RESHAPE, "view y[*i] = x[*unravel(ravel(i, O), S)]"),
    "reshape_to_one_more": (*RESHAPE, "require prod(O) == prod(S) + 1", "view y[*i] = x[*unravel(ravel(i, O), S)]"),
    "reshape_by_columns": ("(x: T[N, M]; a: int, b: int) -> y: T[a, b]", "require a * b == N * M and a > 0 and b > 0",
                           "view y[i, j] = x[(j * b + i) // M, (j * b + i) % M]"),
    "split_from_the_next_part": (*SPLIT, "require sum_of(split) == S[a] and rank(split) == count(ys)",
                                 "require min(split) >= 0",
                                 "view ys[j][*i] = x[*put(i, [a], [i[a] + starts[j + 1]])]"),
    "split_of_more_than_there_is": (*SPLIT, "require sum_of(split) == S[a] + 1 and rank(split) == count(ys)",
                                    "view ys[j][*i] = x[*put(i, [a], [i[a] + starts[j]])]"),
    "tile_not_repeated": ("(x: T[*S], const repeats: ints) -> y: T[*(S * repeats)]", "view y[*i] = x[*i]"),
    "transpose_forgotten": ("(x: T[*S]; perm: ints) -> y: T[*permute(S, perm)]", "view y[*i] = x[*i]"),
}  # fmt: skip


def _views(tmp_path: Path, definition: tuple[str, ...], guard: str = "true") -> int:
    functions = Path(__file__).parents[3] / "rules" / "operators" / "functions.smr"
    signature, *body = definition
    lines = "\n".join(f"    {line}" for line in ("internal", *body))
    file = tmp_path / "one.smr"
    file.write_text(
        f'import "{functions}"\noperator One<T: any>{signature} {{\n{lines}\n}}\n'
        f"eliminate one in eliminate\n    One where {guard}\n"
    )
    base = collect(load_modules([file]), [])  # `check` would refuse reads outside before anything is proved
    (rule,) = base.eliminates
    return prove_views(rule, Instances(base), z3)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", sorted(PROVED))
def test_shipped_views_are_proved(name: str) -> None:
    base = load_rules()
    (rule,) = (rule for rule in base.eliminates if rule.name == name)
    assert prove_views(rule, Instances(base), z3) > 0


@pytest.mark.parametrize("name", TRUE)
def test_views_that_stay_inside_are_proved(name: str, tmp_path: Path) -> None:
    assert _views(tmp_path, TRUE[name]) > 0


@pytest.mark.parametrize("name", OUTSIDE)
def test_views_that_read_outside_are_not_proved(name: str, tmp_path: Path) -> None:
    with pytest.raises(Unprovable, match=r"inside|outside"):
        _views(tmp_path, OUTSIDE[name])


def test_guards_of_the_elimination_count(tmp_path: Path) -> None:
    without_begin = OUTSIDE["part_without_begin"]
    assert _views(tmp_path, without_begin, "start >= 0") > 0
    with pytest.raises(Unprovable):
        _views(tmp_path, without_begin, "start >= -1")


def test_what_may_be_a_view_is_not_proved(tmp_path: Path) -> None:
    with pytest.raises(Unprovable, match="hangs on extents"):
        _views(tmp_path, ("(x: T[N]; start: int) -> y: T[N]", "y[i] = x[i + start] else 0"))

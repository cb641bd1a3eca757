"""What z3 proves, and what it must not."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import smartmem_rules as sm
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.verification.proof.proofs import prove_eliminate, prove_rewrite

pytest.importorskip("z3")
UNSOUND = Path(__file__).parents[2] / "corpus" / "unsound"
WRONG_OVER_THE_REALS = (
    "reciprocal_of_product_misprinted",
    "common_factor_misprinted",
    "gelu_with_another_constant",
    "gelu_of_any_constant",
    "clip_without_order",
    "root_of_square",
    "square_root_of_negative",
    "division_by_itself",
    "floor_of_sum",
    "ceil_is_floor_plus_one",
    "log_product",
    "power_distributes",
    "unit_extent_softmax",
    "matmul_scale_rows",
    "wp_pad_edge",
    "wp_transpose_twice",
    "wp_cumsum_commute",
    "wp_layer_axis",
    "wp_depth_modes",
    "wp_resize_tile",
)
PROVED = ("gelu", "gelu_tanh", "swish", "hard_swish", "sigmoid", "clip_of_clip", "relu_of_clip", "squared_sum", "cube",
          "double_not", "roots_of_one_tensor", "factor_addend")  # fmt: skip
BY_NORMAL_FORMS = ("biased_matmul", "softmax", "unshifted_softmax", "concat_of_one")
NOT_PROVED = ("rms_normalization_scale",)
WAYS = 400
"""Enough for all of these but the last one; wrong rules show themselves in the first cases."""


def test_shipped_algebra_is_proved() -> None:
    base = load_rules()
    wanted = {*PROVED, *BY_NORMAL_FORMS, *NOT_PROVED}
    proofs = {r.name: prove_rewrite(r, Instances(base), WAYS) for r in base.rewrites if r.name in wanted}
    proved = {name for name, proof in proofs.items() if proof.answer == "proved"}
    assert proved == {*PROVED, *BY_NORMAL_FORMS}
    assert all("elementwise" in proofs[name].method for name in PROVED)
    assert all("normal forms" in proofs[name].method for name in BY_NORMAL_FORMS)
    assert all(proofs[name].reason for name in NOT_PROVED)


@cache
def unsound(path: Path) -> RuleBase:
    """The shipped rules with those of a file of planted ones: to check all files takes ten seconds."""
    return load_rules([path])


def planted_in(name: str) -> Path:
    """The file of a planted rule."""
    (path,) = (path for path in UNSOUND.glob("*.smr") if re.search(rf"^rewrite {name}\b", path.read_text(), re.M))
    return path


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", WRONG_OVER_THE_REALS)
def test_what_is_wrong_is_not_proved(name: str) -> None:
    base = unsound(planted_in(name))
    (rule,) = [r for r in base.rewrites if r.name == name]
    assert prove_rewrite(rule, Instances(base), WAYS).answer != "proved"


def test_views_of_fixed_rank(all_cases: bool) -> None:
    base = load_rules()
    proved = ("transpose", "identity")
    wanted = [r for r in base.eliminates if all_cases or r.name in proved]
    proofs = {r.name: prove_eliminate(r, Instances(base)).answer for r in wanted}
    assert [proofs[name] for name in proved] == ["proved", "proved"]


@pytest.mark.parametrize("name", ["unshifted_softmax", "rms_normalization", "batch_normalization_as_scale_and_bias"])
def test_rounding_at_the_numbers_of_a_failed_proof_refutes_nothing(name: str) -> None:
    (report,) = sm.verify(rule=name, prove=True, jobs=1, trials=20).rules
    assert report.verdict in ("tested", "proved")


def test_numbers_of_a_failed_proof_become_a_counterexample(tmp_path: Path) -> None:
    file = tmp_path / "bounded.smr"
    file.write_text("rewrite bounded in algebra   # min(x, 65504) is not x\n    Min(x, 65504) => x\n")
    (report,) = sm.verify(file, prove=True, jobs=1).rules
    assert report.verdict == "failed"

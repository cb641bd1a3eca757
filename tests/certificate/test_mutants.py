"""No mutant of a rule gets through: the checker refuses what it did, or the rule itself would have done the same."""

from __future__ import annotations

import numpy as np
import pytest

from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.verification.mutation.mutate import Mutant, mutants_of
from tests.certificate.mutated import CASES, both_sides, fired, refusal


def mutants() -> list[Mutant]:
    """Those of rewrites and eliminations, the rules of which steps are; derivations of facts are no steps."""
    found = [m for m in mutants_of(load_rules()) if isinstance(m.rule, ast.Rewrite | ast.Eliminate)]
    return [m for m in found if not (isinstance(m.rule, ast.Rewrite) and m.rule.derives is not None)]


@pytest.fixture(scope="module")
def base() -> RuleBase:
    return load_rules()


@pytest.mark.sampled(1200)
@pytest.mark.parametrize("mutant", mutants(), ids=lambda m: f"{m.name}: {m.change}"[:90])
def test_a_mutant_is_refused_where_it_differs_from_its_rule(mutant: Mutant, base: RuleBase) -> None:
    place = -1
    for place, found in enumerate(fired(mutant, base)):
        reason = refusal(found, base)
        if reason is None:
            assert mutant.targeted is None, "the rule's own guard refuses this"
            for left, right in both_sides(found, base):
                np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-4)
        if place + 1 == CASES:
            break
    if place < 0:
        pytest.skip("the mutant takes no step at any graph that is tried: nothing is shown")

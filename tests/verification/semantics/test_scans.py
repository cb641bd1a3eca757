"""Rules about operators that step along an axis are judged like any other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.binding import operand_name
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.interpreter.interpret import evaluate_equations
from smartmem_rules.verification.judge import judge
from smartmem_rules.verification.run import rules_of
from smartmem_rules.verification.semantics.domains import Domain
from smartmem_rules.verification.semantics.evaluate import evaluate
from smartmem_rules.verification.trials.outcome import Budget

RULES = """
rewrite zero_states in algebra                 # rnn(-x) = -rnn(x) for tanh
    RNN(Neg(x), w, r; direction = d, activations = a, clip = c, layout = p)
    => Neg(RNN(x, w, r; direction = d, activations = a, clip = c, layout = p))
    where not present(a), not present(c), rank(x) == 3
    relaxes reassociation
    explores
rewrite backwards in algebra                   # not the other direction
    RNN(x, w, r; direction = "reverse", @l) => RNN(x, w, r; @l, direction = "forward")
    relaxes reassociation
    explores
rewrite reset in algebra                       # the reset gate acts before the product, or behind it
    GRU(x, w, r; linear_before_reset = 1, @g) => GRU(x, w, r; @g, linear_before_reset = 0)
    relaxes reassociation
    explores
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> RuleBase:
    path: Path = tmp_path_factory.mktemp("scans") / "scans.smr"
    path.write_text(RULES)
    return load_rules((str(path),))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "verdict"), [("zero_states", "tested"), ("backwards", "failed"), ("reset", "failed")])
def test_rules_of_recurrences_get_a_verdict(base: RuleBase, name: str, verdict: str) -> None:
    (rule,) = (rule for rule in rules_of(base) if rule.name == name)
    report = judge(rule, base, 1, Budget(24, 60.0))
    assert (report.verdict, report.reason) == (verdict, None)


def test_steps_are_those_of_the_engine(base: RuleBase) -> None:
    """One recurrence in both evaluators, which share no code."""
    operands = [TensorType("float64", shape) for shape in ((4, 2, 3), (1, 6, 3), (1, 6, 2))]
    instance = Instances(base).get("GRU", operands, {}, 1)
    source = np.random.default_rng(1)
    values = {operand_name(n): source.normal(size=type_.shape) for n, type_ in enumerate(operands)}
    ours = evaluate(instance.equations, {name: (value,) for name, value in values.items()}, Domain())
    theirs = evaluate_equations(instance.equations, values, set())
    for name, (value,) in ours.items():
        np.testing.assert_allclose(value, theirs[name], rtol=1e-12, atol=1e-12)

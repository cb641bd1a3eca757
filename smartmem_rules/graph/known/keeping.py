"""Which operators of constants rules leave to the run."""

from __future__ import annotations

from collections.abc import Sequence

from smartmem_rules.graph.weights import Values
from smartmem_rules.guards.constant_elements import LOOPED_OVER, uniform_value
from smartmem_rules.language.syntax import Keep
from smartmem_rules.rulebase.kept import Constant, KeepRules, keeping_rule
from smartmem_rules.tensor.instantiate import Instance
from smartmem_rules.tensor.ranges import surely_at_most


def keeping_rule_of(base: KeepRules, instance: Instance, operands: Sequence[str | None], values: Values) -> Keep | None:
    """The `keep` rule that leaves an operator of known operands to the run; None where it is computed at import."""
    if any(operand is not None and values.is_open(operand) for operand in operands):
        return None  # extents are computed with, they are no weights
    return keeping_rule(base, instance, [None if o is None else _constant(o, values) for o in operands])


def _constant(name: str, values: Values) -> Constant:
    type_ = values.types[name]
    few = surely_at_most(type_.elements, LOOPED_OVER)
    return Constant(
        type=type_,
        uniform=lambda: uniform_value(values[name]),
        elements=lambda: values[name] if few else None,
    )

"""Small models as groups of definitions, without a device."""

from __future__ import annotations

from smartmem_rules.graph.importer import import_model
from smartmem_rules.plan.fusion.equations.program import Program, flatten
from smartmem_rules.plan.fusion.fuser import FusionResult, fuse
from smartmem_rules.plan.fusion.policy import Policy, policy_of
from smartmem_rules.rulebase.base import RuleBase, load_rules
from tests.plan.models import Array, Mapping, Node, Sequence, model

_RULES: list[RuleBase] = []


def rules() -> RuleBase:
    """The shipped rules, loaded once."""
    if not _RULES:
        _RULES.append(load_rules())
    return _RULES[0]


def policy(level: str) -> Policy:
    base = rules()
    return policy_of(base.levels[level], base.tables, base.fuses)


def program_of(
    nodes: Sequence[Node],
    feeds: Mapping[str, Array],
    outputs: str,
    constants: Mapping[str, Array] | None = None,
    level: str = "smartmem",
) -> Program:
    graph = import_model(model(nodes, feeds, outputs, constants), rules(), {})
    return flatten(graph, policy(level).reads_through_views)


def fused(
    nodes: Sequence[Node],
    feeds: Mapping[str, Array],
    outputs: str,
    constants: Mapping[str, Array] | None = None,
    level: str = "smartmem",
) -> FusionResult:
    """The kernels-to-be of a model at a level."""
    return fuse(program_of(nodes, feeds, outputs, constants, level), policy(level))


def forms(result: FusionResult) -> list[str]:
    return sorted(group.form for group in result.groups)

"""What is known of classes beside their types: the facts that rules derive, as relations of egglog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from smartmem_rules.egraph.host import Host
from smartmem_rules.egraph.matching import elements, queries
from smartmem_rules.egraph.patterns import Left
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.analyses import Fact, facts_of, operator_name
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported
from smartmem_rules.tensor.definitions.values import Scope, TensorName, truth


def relation(analysis: str) -> str:
    """The relation of the classes of which a fact is known; it only grows, and equal classes share what they have."""
    return f"fact_{analysis}"


def deriving(rules: Sequence[ast.Rewrite], derives: Sequence[ast.Rewrite]) -> list[ast.Rewrite]:
    """The `derive` rules that can matter for what the guards of rules ask."""
    wanted = {fact.analysis for rule in rules for fact in facts_of(rule)}
    found: dict[str, ast.Rewrite] = {}
    while more := [rule for rule in derives if rule.derives in wanted and rule.name not in found]:
        found.update((rule.name, rule) for rule in more)
        wanted |= {fact.analysis for rule in more for fact in facts_of(rule)}
    return list(found.values())


def fact_texts(rule: ast.Rewrite, left: Left) -> list[str]:
    """The egglog facts for those that a rule's guards ask for."""
    return [f"({relation(fact.analysis)} {left.variables[fact.tensor]})" for fact in facts_of(rule)]


def other_guards(rule: ast.Rewrite) -> list[ast.Expression]:
    """The guards that the host is asked."""
    return [guard for guard in rule.guards if not isinstance(guard, Fact)]


def wanted_constants(rule: ast.Rewrite, left: Left) -> Iterator[tuple[Fact, str, str]]:
    """The facts that are asked of constants by their elements, with the egglog variables of tensor and meta.

    Only where the rest of the left side is found, because a look at all elements of every weight takes long.
    """
    for fact in facts_of(rule):
        yield fact, left.variables[fact.tensor], f"?m{left.tensors[fact.tensor]}"


@dataclass
class OfConstants:
    """Whether a fact holds of a constant, by its elements."""

    fact: Fact
    _known: dict[int, str] = field(default_factory=dict)

    def __call__(self, host: Host, texts: Sequence[str]) -> str:
        """ "yes" or "" for the meta of a constant."""
        meta = host.meta(texts[0])
        number = meta.constant
        assert number is not None
        if number not in self._known:
            bound = {self.fact.tensor: meta}
            tensors: Mapping[str, TensorName] = {self.fact.tensor: TensorName(self.fact.tensor, meta.type)}
            scope = Scope({}, dict(tensors), host.instances.base.functions, queries(host, dict(bound)))
            scope.elements = elements(host, dict(bound))
            try:
                host.instances.get(operator_name(self.fact.analysis), [meta.type], {}, 1)
                self._known[number] = "yes" if truth(self.fact, scope) else ""
            except (DefinitionError, Unsupported):
                self._known[number] = ""
        return self._known[number]

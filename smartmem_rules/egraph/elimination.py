"""Judges whether an operator is a view of one operand."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import field

from smartmem_rules.egraph.host import Host
from smartmem_rules.egraph.matching import Refused, elements, queries, shown_values, source_text
from smartmem_rules.egraph.model import Meta
from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.binding import operand_name, output_name
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported
from smartmem_rules.tensor.definitions.values import Scope, TensorName, truth
from smartmem_rules.tensor.views import map_of_equation


@dataclass(kw_only=True)
class Elimination:
    """One output of an operator as a view of one operand; called by the host for each match.

    The texts are the metas of the result, the attributes, and the metas of the operands.
    """

    rule: ast.Eliminate
    operand: int
    output: int
    outputs: int
    _known: dict[tuple[object, ...], str | Refused] = field(default_factory=dict)

    def __call__(self, host: Host, texts: Sequence[str]) -> str:
        """The name of the index map, "" where the operator is no view of this operand."""
        statistics = host.statistics[self.rule.name]
        statistics.tried += 1
        began = time.perf_counter()
        root, attributes, *operands = texts
        metas = [host.meta(text) for text in operands]
        key = (attributes, *(m.seen for m in metas))
        answer = self._known.get(key)
        if answer is None:
            try:
                answer = self._judge(host, attributes, metas)
            except Refused as refusal:
                answer = refusal.alone()
            self._known[key] = answer
        statistics.milliseconds += (time.perf_counter() - began) * 1000
        if isinstance(answer, Refused):
            if self.operand == 0:
                host.miss(self.rule.name, host.meta(root), answer)
            return ""
        return answer

    def _judge(self, host: Host, attributes: str, metas: Sequence[Meta]) -> str:
        try:
            instance = host.instances.get(
                self.rule.operator, [m.type for m in metas], host.attribute(attributes), self.outputs
            )
        except Unsupported as failure:
            raise Refused(str(failure), {}) from failure
        formals = [i.name for i in instance.operator.inputs if i.constant is None]
        bound = dict(zip(formals, metas, strict=False))
        tensors = {name: TensorName(name, meta.type) for name, meta in bound.items()}
        scope = Scope(dict(instance.values), dict(tensors), host.instances.base.functions, queries(host, dict(bound)))
        scope.elements = elements(host, dict(bound))
        for guard in self.rule.guards:
            try:
                holds = truth(guard, scope)
            except (DefinitionError, Unsupported) as failure:
                raise Refused(f"{source_text(guard)} ({failure})", shown_values(guard, scope), guard.span) from failure
            if not holds:
                raise Refused(source_text(guard), shown_values(guard, scope), guard.span)
        name = output_name(self.output)
        equation = next(e for e in instance.equations if e.tensor == name)
        read = equation.view
        if read is None or read.tensor != operand_name(self.operand):
            raise Refused("the operator is no pure read of this operand", {})
        map_ = map_of_equation(equation, metas[self.operand].type.shape)
        if map_ is None or any(index.gathered for index in map_.indices):
            raise Refused("the elements that it reads are not known before the model runs", {})
        return host.map_name(map_)

"""Why two models are equal: the fewest rules with which saturation puts their outputs into one class."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import onnx
from onnx import helper

from smartmem_rules.egraph.saturation import saturate
from smartmem_rules.fuzzing.equal.forms import BOUNDS
from smartmem_rules.fuzzing.equal.rules import RULESETS
from smartmem_rules.graph.errors import GraphError
from smartmem_rules.graph.importer import import_model
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.verification.minimize import fewest

_OTHER = "other."


@dataclass(frozen=True, kw_only=True)
class Step:
    """One rule of a proof.

    Attributes:
        equation: its comment, which gives the law.
        verdict: what verification says of it, and what that rests on.
        relaxes: what the rule leaves open, such as the order of sums.
    """

    rule: str
    equation: str
    verdict: str
    relaxes: tuple[str, ...]

    def __str__(self) -> str:
        relaxed = f", up to {', '.join(self.relaxes)}" if self.relaxes else ""
        return f"{self.rule}: {self.equation} [{self.verdict}{relaxed}]"


def prove_equal(
    one: onnx.ModelProto,
    other: onnx.ModelProto,
    base: RuleBase,
    verdicts: Mapping[str, str],
) -> tuple[Step, ...] | None:
    """The rules of a proof that two models with the same inputs and outputs are equal; None where none is found.

    No rule can be left out. Where a model is imported, known values are computed and layout operators compose; that is
    no step.

    Args:
        verdicts: of the rules of the rule base.
    """
    try:
        joined = import_model(_joined(one, other), base, fold_outputs=False)
    except GraphError:
        return None
    pairs = [(value.name, _OTHER + value.name) for value in one.graph.output]

    def equal(names: Sequence[str]) -> bool:
        found = saturate(joined, _with(base, names), [*RULESETS, RULESETS[0]], bounds=BOUNDS).tensor_class
        return all(found[first] == found[second] for first, second in pairs)

    eliminations = [rule.name for rule in base.eliminates]
    rules = [*(rule.name for rule in base.rewrites), *eliminations]
    enough = next((names for names in (eliminations, rules) if equal(names)), None)
    if enough is None:
        return None
    return tuple(_step(name, base, verdicts) for name in fewest(list(enough), equal))


def _step(name: str, base: RuleBase, verdicts: Mapping[str, str]) -> Step:
    verdict = verdicts.get(name, "unknown")
    rewrite = next((rule for rule in base.rewrites if rule.name == name), None)
    if rewrite is not None:
        return Step(rule=name, equation=rewrite.comment.strip(), verdict=verdict, relaxes=rewrite.relaxes)
    elimination = next(rule for rule in base.eliminates if rule.name == name)
    return Step(rule=name, equation=elimination.comment.strip(), verdict=verdict, relaxes=())


def _with(base: RuleBase, names: Iterable[str]) -> RuleBase:
    kept = set(names)
    return replace(
        base,
        rewrites=[rule for rule in base.rewrites if rule.name in kept],
        eliminates=[rule for rule in base.eliminates if rule.name in kept],
    )


def _joined(one: onnx.ModelProto, other: onnx.ModelProto) -> onnx.ModelProto:
    """One model with the outputs of both, those of the other under names of their own."""
    inputs = {value.name for value in one.graph.input}
    shared = {t.SerializeToString() for t in one.graph.initializer}
    names: dict[str, str] = {name: name for name in inputs}
    names.update({t.name: t.name for t in other.graph.initializer if t.SerializeToString() in shared})
    nodes, initializers = [*one.graph.node], [*one.graph.initializer]
    for tensor in other.graph.initializer:
        if tensor.name not in names:
            renamed = copy.deepcopy(tensor)
            renamed.name = names[tensor.name] = _OTHER + tensor.name
            initializers.append(renamed)
    for node in other.graph.node:
        changed = copy.deepcopy(node)
        changed.name = ""
        changed.input[:] = [names.get(n, _OTHER + n) if n else "" for n in node.input]
        changed.output[:] = [_OTHER + n if n else "" for n in node.output]
        nodes.append(changed)
    outputs = [*one.graph.output]
    for value in other.graph.output:
        renamed_output = copy.deepcopy(value)
        renamed_output.name = _OTHER + value.name
        outputs.append(renamed_output)
    versions: dict[str, int] = {}
    for imported in (*one.opset_import, *other.opset_import):
        versions[imported.domain] = max(versions.get(imported.domain, 1), imported.version)
    graph = helper.make_graph(nodes, "both", [*one.graph.input], outputs, initializers)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid(d, v) for d, v in versions.items()], ir_version=one.ir_version
    )

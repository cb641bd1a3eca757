"""Which rule, or which other step, each node of the file went away by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import onnx

from smartmem_rules.egraph.firings import Composed, Rewritten, Viewed
from smartmem_rules.graph.loading import describe, sorted_nodes
from smartmem_rules.language.syntax import Eliminate, Rewrite
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.simplification.report import RuleUse
from smartmem_rules.simplification.rewriting.assembling import Assembled
from smartmem_rules.simplification.rewriting.region import Region
from smartmem_rules.simplification.rewriting.selecting import Selected

FOLDED = "constant folding"
MERGED = "common subexpressions"
UNUSED = "unused"
KNOWN_BRANCHES = "known branches"
BY_DEFINITION = "by definition"


def credits(
    region: Region,
    selected: Selected,
    assembled: Assembled,
    base: RuleBase,
    verdicts: Mapping[str, str],
    branches: Sequence[str],
) -> tuple[RuleUse, ...]:
    """What each rule removed of a model, most first.

    Args:
        branches: the `If` nodes that gave way to the branch that is always taken.
    """
    left = set(assembled.places.values())
    nodes = region.model.graph.node
    live = _live(region.model)
    matched = _matched(selected)
    by_place = {place: node for node in region.graph.nodes if (place := region.place_of(node.name)) is not None}
    removed: dict[str, list[str]] = defaultdict(list)
    for place, node in enumerate(nodes):
        if place in left or node.op_type == "Constant":
            continue
        if place not in live:
            step = UNUSED
        elif place not in by_place:
            step = FOLDED
        else:
            classes = [selected.saturation.tensor_class[name] for name in by_place[place].outputs if name]
            found = (rule for number in classes for rule in matched.get(number, ()))
            step = next(found, MERGED)
        removed[step].append(describe(node, place))
    if branches:
        removed[KNOWN_BRANCHES].extend(branches)
    uses = [_use(step, tuple(names), base, verdicts) for step, names in removed.items()]
    return tuple(sorted(uses, key=lambda use: (-len(use.removed), use.rule)))


def _live(model: onnx.ModelProto) -> set[int]:
    """The places of the nodes that the outputs depend on."""
    nodes = list(model.graph.node)
    places = {id(node): place for place, node in enumerate(nodes)}
    given = {value.name for value in (*model.graph.input, *model.graph.initializer)}
    given |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    return {places[id(node)] for node in sorted_nodes(nodes, given, [value.name for value in model.graph.output])}


def _matched(selected: Selected) -> dict[int, list[str]]:
    """For each class the rules that rewrote an operator of it, those that made what was selected first."""
    classes = selected.saturation.classes
    used = {
        rule
        for number, place in selected.selection.items()
        if place < len(classes[number].nodes)
        for rule in classes[number].nodes[place].rules
    }
    found: dict[int, dict[str, bool]] = defaultdict(dict)
    for rule, numbers in _rewritten(selected):
        for number in numbers:
            found[number][rule] = rule in used
    return {number: sorted(rules, key=lambda rule: not rules[rule]) for number, rules in found.items()}


def _rewritten(selected: Selected) -> Iterator[tuple[str, tuple[int, ...]]]:
    for firing in selected.saturation.firings:
        match firing:
            case Rewritten():
                if firing.results[-1] in selected.selection:
                    yield firing.rule.name, firing.results
            case Viewed():
                yield firing.rule.name, (firing.result,)
            case Composed():
                pass


def _use(step: str, removed: tuple[str, ...], base: RuleBase, verdicts: Mapping[str, str]) -> RuleUse:
    rules: list[Rewrite | Eliminate] = [*base.rewrites, *base.eliminates]
    rule = next((one for one in rules if one.name == step), None)
    if rule is None:
        return RuleUse(rule=step, equation="", verdict=BY_DEFINITION, relaxes=(), removed=removed)
    relaxes = tuple(getattr(rule, "relaxes", ()))
    return RuleUse(rule=step, equation=rule.comment.strip(), verdict=verdicts[step], relaxes=relaxes, removed=removed)

"""A model simplified by verified rules, not checked yet: import, saturate, select, write back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

import onnx
from onnx import numpy_helper

from smartmem_rules.graph.expansion.known_branches import with_known_branches
from smartmem_rules.graph.known.constants import constant_node_value
from smartmem_rules.graph.loading import DEFAULT_DOMAIN, describe, opsets, sorted_nodes
from smartmem_rules.language.fixes import did_you_mean
from smartmem_rules.pipeline import rules_of
from smartmem_rules.plan.model_statistics import input_bounds
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.simplification.encoding import size_of_files
from smartmem_rules.simplification.in_place import Aside
from smartmem_rules.simplification.options import Options, SimplifyError
from smartmem_rules.simplification.report import Counts, RuleUse, counts_of
from smartmem_rules.simplification.rewriting.assembling import assembled
from smartmem_rules.simplification.rewriting.crediting import credits
from smartmem_rules.simplification.rewriting.folding import too_large
from smartmem_rules.simplification.rewriting.region import NothingToDo, Region, region_of
from smartmem_rules.simplification.rewriting.selecting import selected
from smartmem_rules.simplification.rewriting.verified import Verified, exact, verified
from smartmem_rules.simplification.rewriting.writing_back import written_back
from smartmem_rules.simplification.types import skeleton_of, types_of, with_names, without_names
from smartmem_rules.tensor.primitives import Array

EXPORT = "onnxruntime"
"""The `export` block that says what pays."""
_OLDEST = 7


@dataclass(frozen=True, kw_only=True)
class Simplified:
    """The simplified model before it is compared with the input.

    Attributes:
        model: its large tensors lie where those of the input lie.
        has_open_extents: whether rules saw extents that are known at run time only.
    """

    model: onnx.ModelProto
    before: Counts
    after: Counts
    opset: int
    uses: tuple[RuleUse, ...]
    added: Mapping[str, int]
    kept: Mapping[str, tuple[str, ...]]
    refused: Mapping[str, str]
    selection: str
    stopped: str | None
    has_open_extents: bool

    @property
    def is_better(self) -> bool:
        """Whether it has fewer nodes, or as many in a smaller file."""
        nodes, size = self.after.nodes - self.before.nodes, self.after.bytes - self.before.bytes
        fewer = self.after.nodes + self.after.initializers < self.before.nodes + self.before.initializers
        return nodes < 0 or (nodes == 0 and (size < 0 or (fewer and size <= 0)))

    @property
    def relaxes(self) -> bool:
        return any(use.relaxes for use in self.uses)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What rules see of a model, and the rules.

    Attributes:
        branches: the `If` nodes in whose place the branch that is always taken stands.
    """

    region: Region
    rules: Verified
    before: Counts
    branches: tuple[str, ...]

    @property
    def bounds(self) -> Mapping[str, int]:
        """For integer inputs how many values they can take, where that is known."""
        return input_bounds(self.region.graph)

    @property
    def kept_results(self) -> frozenset[str]:
        """The results of the nodes that stay as they are."""
        nodes = self.region.model.graph.node
        return frozenset(name for place in self.region.barriers for name in nodes[place].output)


def seen_by_rules(
    model: onnx.ModelProto,
    folder: Path | None,
    options: Options,
    left_out: Collection[str] = (),
    open_extents: bool = True,
) -> Seen:
    """Import what rules cover of a model.

    Args:
        folder: where its data files are.
        left_out: the first results of nodes that ONNX Runtime does not run, which stay as they are.
        open_extents: whether rules see tensors some extents of which are known at run time only.

    Raises:
        SimplifyError: an option names nothing.
        NothingToDo: no rule covers any of the nodes.
        GraphError: the model is damaged.
        LimitError: it exceeds a limit.
        LanguageError: a rule file has errors.
    """
    before = counts_of(model, size_of_files(model))
    rules = _rules(options)
    branches: list[str] = []
    ordered = _ordered(model)
    while True:
        constants = _constants(ordered)
        kept = _kept(ordered, rules, options, left_out)
        try:
            region = _region(ordered, folder, rules, options, constants, kept, open_extents)
        except NothingToDo:
            region = None
        known = {**_conditions(ordered, constants), **({} if region is None else region.graph.known)}
        inlined = with_known_branches(ordered, known, kept)
        if inlined is None:
            break
        branches += [describe(ordered.graph.node[place], place) for place in inlined.places]
        ordered = _ordered(inlined.model)
    if region is None:
        raise NothingToDo("no rule covers any node of the model")
    return Seen(region=region, rules=rules, before=before, branches=tuple(branches))


def _region(
    model: onnx.ModelProto,
    folder: Path | None,
    rules: Verified,
    options: Options,
    constants: Mapping[str, onnx.TensorProto],
    kept: Mapping[int, str],
    open_extents: bool,
) -> Region:
    """What rules cover of a model whose nodes are in topological order."""
    most = options.fold_limit
    known = types_of(skeleton_of(model))
    types = with_names(known, model) if open_extents else without_names(known)
    large, small = too_large(model, types, constants, most)
    barriers = {**large, **kept}
    return region_of(model, rules.base, barriers, options.limits, constants, types, folder, small, most)


def _conditions(model: onnx.ModelProto, constants: Mapping[str, onnx.TensorProto]) -> dict[str, Array]:
    """The constants that `If` nodes read."""
    names = {node.input[0] for node in model.graph.node if node.op_type == "If"}
    return {name: numpy_helper.to_array(constants[name]) for name in names & constants.keys()}


def simplified(seen: Seen, options: Options, aside: Aside | None = None) -> Simplified:
    """Simplify a model.

    Args:
        aside: where large computed weights are written; None if the result holds them.

    Raises:
        EngineError: the e-graph could not be saturated.
        Infeasible: an output cannot be written; the model's own form always can.
        NotExpressible: ONNX has no form for a node.
        GraphError: a rule made a node that rules do not see depend on its own results.
    """
    region, rules = seen.region, seen.rules
    opset = opset_of(region.model)
    chosen = selected(region.graph, rules.base, rules.base.exports[EXPORT], opset, options.domains)
    made = assembled(region, chosen, opset)
    uses = credits(region, chosen, made, rules.base, rules.verdicts, seen.branches)
    result = written_back(region, made, aside)
    new = [node for node in made.nodes if next(filter(None, node.output), "") not in made.places]
    return Simplified(
        model=result,
        before=seen.before,
        after=counts_of(result, size_of_files(result)),
        opset=opset,
        uses=uses,
        added=dict(Counter(node.op_type for node in new)),
        kept=_by_reason(region),
        refused=rules.refused,
        selection=chosen.status,
        stopped=chosen.stopped,
        has_open_extents=bool(region.graph.dimensions),
    )


def opset_of(model: onnx.ModelProto) -> int:
    """The version of the standard operators that a model uses."""
    return int(opsets(model).get(DEFAULT_DOMAIN, _OLDEST))


def _rules(options: Options) -> Verified:
    base = rules_of(options.rules, options.disable)
    rules = _verified(_Held(base))
    return exact(rules) if options.exact else rules


@dataclass(frozen=True, eq=False)
class _Held:
    """A rule base as a key: the same object is the same rule base."""

    base: RuleBase

    def __hash__(self) -> int:
        return id(self.base)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other.base is self.base


@lru_cache(maxsize=8)
def _verified(held: _Held) -> Verified:
    return verified(held.base, held.base.exports[EXPORT])


def _ordered(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its nodes in topological order, those that nothing needs behind the others."""
    made = {name for node in model.graph.node for name in node.output if name}
    given = {value.name for value in (*model.graph.input, *model.graph.initializer)}
    given |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    order = sorted_nodes(model.graph.node, given, [*made, *(value.name for value in model.graph.output)])
    if all(one is other for one, other in zip(order, model.graph.node, strict=False)):
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    del result.graph.node[:]
    result.graph.node.extend(order)
    return result


def _constants(model: onnx.ModelProto) -> dict[str, onnx.TensorProto]:
    """Initializers and tensors of Constant nodes by name, but for text and initializers that a caller may replace."""
    replaceable = set() if model.ir_version < 4 else {value.name for value in model.graph.input}
    found = {tensor.name: tensor for tensor in model.graph.initializer if tensor.name not in replaceable}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx") and len(node.attribute) == 1:
            if node.attribute[0].name == "sparse_value":
                continue
            value = constant_node_value(node)
            found[node.output[0]] = value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(value)
    return {name: tensor for name, tensor in found.items() if tensor.data_type != onnx.TensorProto.STRING}


def _kept(model: onnx.ModelProto, rules: Verified, options: Options, left_out: Collection[str]) -> dict[int, str]:
    """The nodes that the user or the `export` block keeps, and those that cannot be checked."""
    operators = set(rules.base.exports[EXPORT].kept)
    names = {node.name for node in model.graph.node}
    for name in options.keep:
        if name not in names:
            near = did_you_mean(name, names)
            raise SimplifyError(f"the model has no node {name!r} to keep" + (f"; {near}" if near else ""))
    found = {}
    for place, node in enumerate(model.graph.node):
        if node.name and node.name in options.keep:
            found[place] = "kept by name"
        elif node.op_type in operators and node.domain in ("", "ai.onnx", "com.microsoft"):
            found[place] = f"{node.op_type} is kept"
        elif next(filter(None, node.output), "") in left_out:
            found[place] = "ONNX Runtime does not run it"
    return found


def _by_reason(region: Region) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for place, reason in region.barriers.items():
        found.setdefault(reason, []).append(describe(region.model.graph.node[place], place))
    return {reason: tuple(names) for reason, names in found.items()}

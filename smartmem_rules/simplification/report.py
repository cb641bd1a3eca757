"""What became of a model that was simplified: counts before and after, what each rule removed, how it was checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field

import onnx

from smartmem_rules.records import dataclass


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What a model consists of; nodes in bodies count, Constant nodes count as initializers.

    Attributes:
        kinds: nodes by operator.
        bytes: of the file and its data files.
    """

    nodes: int
    kinds: Mapping[str, int]
    initializers: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class RuleUse:
    """What one rule, or a step that is no rule, removed.

    Attributes:
        rule: its name, or `constant folding`, `common subexpressions`, `known branches`,
            `unused`.
        equation: its comment in the rule file.
        verdict: what verification says of it: `proved (...)`, `tested (...)`, or `by definition` for what is no rule.
        relaxes: what of floating-point arithmetic it does not keep.
        removed: the ONNX nodes that are gone, by name (or `OPERATOR number PLACE`).
    """

    rule: str
    equation: str
    verdict: str
    relaxes: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Check:
    """How the result was compared with the input.

    Attributes:
        runs: pairs of runs of ONNX Runtime on the same random inputs.
        max_relative_error: of any output but those of the next two lists, relative to its largest magnitude.
        in_doubles: outputs that ONNX Runtime gives differently for both models by its own rounding; what it gives for
            the result is within what rounding explains of the input in double precision.
        varying: outputs that two runs of the input itself give differently, of which only the shapes were compared.
        left_out: nodes that ONNX Runtime does not run; they are the same in both models, and what they read was
            compared for arbitrary results of theirs.
    """

    reference: str
    runs: int
    max_relative_error: float
    varying: tuple[str, ...] = ()
    in_doubles: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Report:
    """What `smartmem simplify --report` writes.

    Attributes:
        changed: whether the simplified model was taken; else the input is written as it is, for `reason`.
        differed: whether a simplified model was found that computes something else.
        added: the nodes of the result that are none of the input, by operator.
        kept: nodes that rules did not see, by reason.
        refused: rules that were left out, each with the reason.
        exact: whether only rules that keep every bit were used.
        stopped: which bound ended the rules before they gave nothing new; None where none did.
        seconds: for all.
    """

    changed: bool
    reason: str
    differed: bool
    before: Counts
    after: Counts
    opset: int
    rules: tuple[RuleUse, ...] = ()
    added: Mapping[str, int] = field(default_factory=dict)
    kept: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    exact: bool
    selection: str = ""
    stopped: str | None = None
    check: Check | None = None
    seconds: float

    def data(self) -> dict[str, object]:
        """As JSON."""
        return asdict(self)


def counts_of(model: onnx.ModelProto, size: int) -> Counts:
    """Count what a model consists of; `size` is that of its files."""
    kinds: Counter[str] = Counter()
    constants = _count(model.graph, kinds)
    constants += len(model.graph.initializer) + len(model.graph.sparse_initializer)
    return Counts(nodes=kinds.total(), kinds=dict(sorted(kinds.items())), initializers=constants, bytes=size)


def _count(graph: onnx.GraphProto, kinds: Counter[str]) -> int:
    """Count the nodes of a graph and its bodies; gives how many are Constant nodes."""
    constants = 0
    for node in graph.node:
        if node.op_type == "Constant":
            constants += 1
        else:
            kinds[node.op_type] += 1
        for attribute in node.attribute:
            for body in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                constants += _count(body, kinds)
    return constants


def text_of(report: Report) -> str:
    """The report for people."""
    before, after = report.before, report.after
    lines = [
        f"nodes         {before.nodes} -> {after.nodes}",
        f"kinds         {len(before.kinds)} -> {len(after.kinds)}",
        f"initializers  {before.initializers} -> {after.initializers}",
        f"bytes         {before.bytes} -> {after.bytes}",
    ]
    if report.check is not None:
        lines.append(
            f"checked       {report.check.runs} runs of {report.check.reference}, "
            f"largest relative error {report.check.max_relative_error:.1e}"
        )
        if report.check.in_doubles:
            shown = _first_of(report.check.in_doubles)
            lines.append(
                f"{len(report.check.in_doubles):5} outputs that ONNX Runtime's own rounding turns; "
                f"they were checked in double precision ({shown})"
            )
        if report.check.left_out:
            shown = _first_of(report.check.left_out)
            lines.append(
                f"{len(report.check.left_out):5} nodes ONNX Runtime does not run; what they read was checked ({shown})"
            )
    for use in report.rules:
        relaxed = f", relaxes {' and '.join(use.relaxes)}" if use.relaxes else ""
        equation = f"  {use.equation}" if use.equation else ""
        lines.append(f"{len(use.removed):5} nodes by {use.rule}{equation} [{use.verdict}{relaxed}]")
    for reason, names in report.kept.items():
        lines.append(f"{len(names):5} nodes kept as they are: {reason} ({_first_of(names)})")
    if report.stopped is not None:
        lines.append(f"rules ended early, so that more may be possible: {report.stopped}")
    if not report.changed:
        lines.append(f"written unchanged: {report.reason}")
    return "\n".join(lines) + "\n"


def _first_of(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")

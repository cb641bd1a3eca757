"""Why two ONNX nodes are not in one kernel: the fusion rule that came nearest, and the figure that failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from smartmem_rules.graph.model import GraphError
from smartmem_rules.language.fixes import did_you_mean
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.fusion.refusals import Refusal, Refusals
from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.identity import shown_file

if TYPE_CHECKING:  # start-up time
    from smartmem_rules.explanation.documents import PairExplanation, PlaceOfBlock, Refused

_SHOWN = 5


def explain_apart(plan: Plan, refusals: Refusals, base: RuleBase, first: str, second: str) -> PairExplanation:
    """What keeps two nodes apart, as JSON data: {nodes, kernels, together, answer, refusals}.

    A refusal is {rule, file, line, reason, figure, limit, writer, reader}, the one that came nearest first: those about
    the two nodes themselves, then those about the kernels that compute them.

    Args:
        refusals: taken in while the plan was made.

    Raises:
        GraphError: the plan knows no node of a name.
    """
    known = plan.statistics.model.nodes
    places = []
    for node in (first, second):
        found = _kernels_of(plan, node)
        if not found and node not in known:
            hint = did_you_mean(node, known) or "its nodes are named as in the file"
            raise GraphError(f"the model {plan.model} has no node {node!r}; {hint}")
        places.append(found)
    shared = [leaf for leaf in places[0].values() for other in places[1].values() if leaf is other]
    launches = sorted(set(_launches(places[0])) & set(_launches(places[1])))
    data: PairExplanation = {
        "nodes": [{"node": node, "operator": known.get(node, "")} for node in (first, second)],
        "kernels": [[leaf.name for leaf in place.values()] for place in places],
        "together": bool(shared),
        "answer": "",
        "refusals": [],
    }
    for node, place in zip((first, second), places, strict=True):
        if not place:
            return {**data, "answer": f"no kernel computes {node}: it is read in place, or was computed at import"}
    if shared:
        return {**data, "answer": f"they are one kernel, {shared[0].name}"}
    nodes = [[node for leaf in place.values() for node in leaf.origin] for place in places]
    about = refusals.nearest([first], [second]) or refusals.nearest(*nodes)
    one_launch = launches and f"they are kernels of one launch, {plan.launches[launches[0]].name}; one kernel: "
    data["refusals"] = [_refusal_data(refusal, base) for refusal in about[:_SHOWN]]
    return {**data, "answer": (one_launch or "") + _answer(about, places)}


def _answer(about: list[Refusal], places: list[dict[tuple[int, str], Kernel]]) -> str:
    if about:
        return _words(about[0])
    if _feeds(*places) or _feeds(*reversed(places)):
        return "no fusion rule of the level looks at this pair of kernels"
    return "neither kernel reads what the other writes, and no rule puts such kernels into one"


def _feeds(writers: Mapping[Any, Kernel], readers: Mapping[Any, Kernel]) -> bool:
    """Whether some kernel reads what another one writes."""
    written = {tensor for kernel in writers.values() for tensor in kernel.writes}
    return any(tensor in written for kernel in readers.values() for tensor in kernel.reads)


def _words(refusal: Refusal) -> str:
    figures = ""
    if refusal.figure is not None and refusal.limit is not None:
        figures = f": {refusal.figure:.6g}, where it admits {refusal.limit:.6g}"
    return f"{refusal.rule} came nearest; {refusal.reason}{figures}"


def _refusal_data(refusal: Refusal, base: RuleBase) -> Refused:
    return {"rule": refusal.rule, **_place(refusal.rule, base), "reason": refusal.reason, "figure": refusal.figure,
            "limit": refusal.limit, "writer": sorted(refusal.first), "reader": sorted(refusal.second)}  # fmt: skip


def _place(rule: str, base: RuleBase) -> PlaceOfBlock:
    """Where a fuse block, table or level stands."""
    block = base.fuses.get(rule) or base.levels.get(rule)
    span = block.block.span if block is not None else getattr(base.tables.get(rule), "span", None)
    return {} if span is None else {"file": shown_file(span.file), "line": span.line}


def _kernels_of(plan: Plan, node: str) -> dict[tuple[int, str], Kernel]:
    """The kernels that compute parts of a node, by launch and name."""
    return {
        (number, kernel.name): kernel
        for number, launch in enumerate(plan.launches)
        for kernel in launch.kernels
        if node in kernel.origin
    }


def _launches(place: dict[tuple[int, str], Kernel]) -> list[int]:
    return [number for number, _ in place]

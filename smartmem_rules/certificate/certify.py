"""Certifies a plan: the steps from the model to its graph, and the graph's definitions in its kernels.

This package imports neither the optimizer nor egglog.  It trusts the rule base, whose rules `smartmem verify` judges,
the instantiation of definitions and index arithmetic of `tensor`, the interpreter, and the importer of models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from smartmem_rules.certificate.graphs import Made, MadeGraph
from smartmem_rules.certificate.kernels import KernelCheck
from smartmem_rules.certificate.replay import UNREADABLE, Replay
from smartmem_rules.certificate.terms import Digests, Refused, Terms
from smartmem_rules.exchange.certificates import Certificate, CertifiedPlan, GapData, GraphData, NodeData
from smartmem_rules.exchange.expressions import ExchangeError, read_map, read_value
from smartmem_rules.exchange.kernels import read_kernel
from smartmem_rules.graph.equations import cone
from smartmem_rules.graph.model import Graph
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.tensor.expr import TensorType

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a certificate shows.

    Attributes:
        nodes, kernels: how many the plan has.
        gaps: the nodes of the plan that are not certified, with the reason.
        kernel_gaps: the kernels that are not.
        rules: those that the steps use.
    """

    model: str
    steps: int
    rules: tuple[str, ...]
    nodes: int
    gaps: Mapping[str, str]
    kernels: int
    kernel_gaps: Mapping[str, str]

    def data(self) -> CertifiedPlan:
        """As JSON."""
        return {
            "model": self.model,
            "steps": self.steps,
            "rules": list(self.rules),
            "nodes": self.nodes,
            "certified": self.nodes - len(self.gaps),
            "kernels": self.kernels,
            "certified_kernels": self.kernels - len(self.kernel_gaps),
            "uncertified": uncertified(self.gaps, self.kernel_gaps),
        }


def uncertified(gaps: Mapping[str, str], kernel_gaps: Mapping[str, str]) -> list[GapData]:
    """What is not certified, as certificates list it."""
    nodes = [GapData(node=name, reason=reason) for name, reason in gaps.items()]
    return nodes + [GapData(kernel=name, reason=reason) for name, reason in kernel_gaps.items()]


def certify(graph: Graph, base: RuleBase, certificate: Certificate) -> Verdict:
    """Replay a certificate on the model that it is of.

    Args:
        graph: the imported model.
        base: the rules that may be used; a rule of a certificate is looked up here by its name.

    Raises:
        Refused: a step does not hold, or more is uncertified than the certificate itself says.
    """
    try:
        verdict = examine(graph, base, certificate)
        said = certificate["uncertified"]
    except UNREADABLE as error:
        raise Refused(f"the certificate cannot be read ({type(error).__name__}: {error})") from error
    found = uncertified(verdict.gaps, verdict.kernel_gaps)
    if said != found:
        new = next((one for one in found if one not in said), None)
        if new is None:
            raise Refused("the certificate says of something that it is not certified, which is")
        what, name = next((key, new[key]) for key in ("node", "kernel") if key in new)
        raise Refused(f"the {what} {name}: {new['reason']}")
    return verdict


def examine(graph: Graph, base: RuleBase, certificate: Certificate, digests: Digests | None = None) -> Verdict:
    """What a certificate shows, whatever it says of gaps; raises Refused where a step does not hold."""
    if certificate.get("version") != VERSION:
        raise Refused(f"this is no certificate of version {VERSION}")
    replay = Replay(graph, base, Terms(base, digests))
    steps = certificate["steps"]
    for number, step in enumerate(steps):
        try:
            replay.step(step)
        except Refused as reason:
            name = step.get("rule") or step.get("eliminate") or "the engine's own"
            raise Refused(f"step {number} ({name}): {reason}") from reason
    made, gaps = made_graph(replay, certificate["graph"])
    kernel_gaps = _kernels(made, certificate, gaps)
    order = [node["name"] for node in certificate["graph"]["nodes"]]
    return Verdict(
        model=graph.name,
        steps=len(steps),
        rules=tuple(dict.fromkeys(filter(None, (step.get("rule") or step.get("eliminate") for step in steps)))),
        nodes=len(order),
        gaps={name: gaps[name] for name in order if name in gaps},
        kernels=len(certificate["kernels"]),
        kernel_gaps=kernel_gaps,
    )


def made_graph(replay: Replay, data: GraphData) -> tuple[MadeGraph, dict[str, str]]:
    """The graph of a certificate, and the nodes of which it is not proved that they compute what the model does.

    A tensor that has the name of one of the model's must be equal to it; from there on it is taken for that one, so
    that each gap stands alone.
    """
    constants: dict[str, int] = {}
    for one in data["constants"]:
        if one["is"] is None:  # nothing is known of it: what reads it is no tensor of the model
            type_ = TensorType(one["dtype"], tuple(one["shape"]))
            constants[one["name"]] = replay.terms.input(f"constant {one['name']}", type_)
            continue
        constants[one["name"]] = replay.number(one["is"])
        found = replay.terms.digests.of(replay.terms.value(constants[one["name"]]))
        if found != one["sha256"]:
            raise Refused(f"the constant {one['name']} has other elements: {found}, not {one['sha256']}")
    made = MadeGraph(replay.model, constants)
    graph, gaps = replay.model.graph, dict[str, str]()
    for node in data["nodes"]:
        made.add(read_node(node))
        for output in node["outputs"]:
            meant = replay.model.numbers.get(output)
            if meant is not None and not replay.terms.equal(made.numbers[output], meant):
                _fill(gaps, made, [output], replay.model.numbers, f"no step shows that {output} is the model's")
                made.numbers[output] = meant
    missing = [name for name in graph.outputs if name not in made.numbers]
    if missing:
        raise Refused(f"the graph does not make the output {missing[0]}")
    return made, gaps


def read_node(data: NodeData) -> Made:
    """A node of the graph of a certificate."""
    return Made(
        name=data["name"],
        operator=data["operator"],
        operands=tuple(data["operands"]),
        attributes={name: read_value(value) for name, value in data.get("attributes", {}).items()},
        outputs=tuple(data["outputs"]),
        map=read_map(data["map"]) if "map" in data else None,
    )


def _kernels(made: MadeGraph, certificate: Certificate, gaps: dict[str, str]) -> dict[str, str]:
    """The kernels that could not be certified; the nodes that they compute go into `gaps`."""
    check = KernelCheck(made, certificate["stand_for"])
    check.aliases()
    kernels = certificate["kernels"]
    stored = [check.stand_for.get(s["tensor"], s["tensor"]) for kernel in kernels for s in kernel["stores"]]
    kernel_gaps: dict[str, str] = {}
    for data in kernels:
        try:
            if "unshown" in data:
                raise Refused(data["unshown"])
            check.check(read_kernel(data))
        except (Refused, ExchangeError) as reason:
            kernel_gaps[data["name"]] = str(reason)
            names = [s["tensor"] for s in data["stores"]]
            check.ready.update(names)
            meant = [check.stand_for.get(name, name) for name in names]
            _fill(gaps, made, meant, stored, f"the kernel {data['name']}: {reason}")
    for name in made.model.graph.outputs:
        if name not in check.ready:
            _fill(gaps, made, [name], stored, f"no kernel writes all elements of the output {name}")
    opened = {made.node_of[tensor] for tensor in check.opened}
    for node in certificate["graph"]["nodes"]:
        if node["name"] not in opened:
            gaps.setdefault(node["name"], "no kernel computes it")
    return kernel_gaps


def _fill(gaps: dict[str, str], made: MadeGraph, tensors: Iterable[str], ends: Iterable[str], reason: str) -> None:
    for tensor in cone(made.equations, tensors, ends):
        gaps.setdefault(made.node_of[tensor], reason)

"""A certificate of a plan, as `certificate.certify` takes it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from smartmem_rules.certificate.certify import VERSION, examine, read_node, uncertified
from smartmem_rules.certificate.graphs import MadeGraph
from smartmem_rules.certificate.replay import Replay
from smartmem_rules.certificate.terms import OPAQUE, Digests, Refused, Terms
from smartmem_rules.egraph.model import Saturation
from smartmem_rules.exchange.certificates import (
    FORMAT,
    Certificate,
    ConstantData,
    KernelData,
    MadeFor,
    NodeData,
    StepData,
    StoreData,
)
from smartmem_rules.exchange.expressions import map_json, value_json
from smartmem_rules.graph.equations import is_opaque
from smartmem_rules.graph.model import VIEW, Graph, Node
from smartmem_rules.plan.build import Planning
from smartmem_rules.plan.fusion.equations.program import StoredTable
from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.plan.layout.copies import COPY
from smartmem_rules.provenance.derivation import Derivation, renamed
from smartmem_rules.provenance.kernels import Unshown, kernel_json
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.views import IndexMap


@dataclass(frozen=True, kw_only=True)
class Made:
    """What became of a model.

    Attributes:
        model: as it was imported.
        saturation: None where no rules ran.
        extracted: the graph of the plan.
        kernels: the single kernels in their order, as they were before they were scheduled.
        copies: tensors in a second layout, and whose they are.
        shown: outputs that are computed in another shape.
        tables: index tables that lie in memory, by tensor.
        how: what is said of the plan: device, level, dtype.
        digests: of the constants.
    """

    model: Graph
    base: RuleBase
    saturation: Saturation | None
    extracted: Graph
    kernels: Sequence[Kernel]
    copies: Mapping[str, str]
    shown: Sequence[str]
    tables: Mapping[str, StoredTable]
    how: MadeFor
    digests: Digests = field(default_factory=Digests)


def certificate_of(made: Made) -> Certificate:
    """The certificate of a plan, with the list of what is not certified."""
    instances = Instances(made.base)
    originals = {node.name: node for node in made.model.nodes}
    opaque = {name for name, node in originals.items() if is_opaque(node, made.model.types, instances)}
    nodes = [_node_json(node, opaque) for node in made.extracted.nodes]
    steps, constants = _derived(made, nodes)
    certificate: Certificate = {
        "format": FORMAT,
        "version": VERSION,
        "model": made.model.name,
        **made.how,
        "steps": steps,
        "graph": {"constants": constants, "nodes": nodes},
        "stand_for": {**made.copies, **{name: _base_of(name, made.extracted) for name in made.shown}},
        "kernels": [_kernel(kernel, made.tables) for kernel in made.kernels],
        "uncertified": [],
    }
    verdict = examine(made.model, made.base, certificate, made.digests)
    certificate["uncertified"] = uncertified(verdict.gaps, verdict.kernel_gaps)
    return certificate


def made_certificate(
    model: Graph, base: RuleBase, saturation: Saturation | None, planning: Planning, how: MadeFor
) -> Certificate:
    """The certificate of a plan whose kernels are not scheduled yet.

    Args:
        model: as it was imported.
        saturation: with what fired; None where no rules ran.
        how: what is said of the plan: device, level, dtype.
    """
    return certificate_of(
        Made(
            model=model,
            base=base,
            saturation=saturation,
            extracted=planning.graph,
            kernels=[kernel for launch in planning.launches for kernel in launch.kernels],
            copies={name: name.removesuffix(COPY) for name in planning.tensors if name.endswith(COPY)},
            shown=list(planning.program.shown),
            tables=planning.program.tables,
            how=how,
        )
    )


def certificate_text(certificate: Certificate) -> str:
    """The file: JSON, with one line for each step, node and kernel."""
    return f"{{\n{_members(certificate, ' ')}\n}}\n"


def _members(data: Mapping[str, Any], indent: str) -> str:
    parts = []
    for key, value in data.items():
        if isinstance(value, list) and value:
            lines = ",\n".join(f"{indent}  {json.dumps(one, allow_nan=False)}" for one in value)
            text = f"[\n{lines}\n{indent}]"
        elif key == "graph":
            text = f"{{\n{_members(value, indent + ' ')}\n{indent}}}"
        else:
            text = json.dumps(value, allow_nan=False)
        parts.append(f"{indent}{json.dumps(key)}: {text}")
    return ",\n".join(parts)


def _kernel(kernel: Kernel, tables: Mapping[str, StoredTable]) -> KernelData:
    try:
        return kernel_json(kernel, tables)
    except Unshown as reason:
        stores: list[StoreData] = [{"tensor": store.tensor} for store in kernel.stores]
        return {"name": kernel.name, "origin": list(kernel.origin), "stores": stores, "unshown": str(reason)}


def _base_of(name: str, graph: Graph) -> str:
    """The tensor under the views of which a tensor is the last."""
    equations = {e.tensor: e for node in graph.nodes for e in node.equations}
    while name in equations and not equations[name].scan and (read := equations[name].view) is not None:
        name = read.tensor
    return name


# --- the graph ---


def _node_json(node: Node, opaque: Collection[str]) -> NodeData:
    data: NodeData = {"name": node.name, "operator": node.operator, "operands": list(node.operands)}
    map_: object = node.attributes.get("map")
    if node.operator == VIEW and isinstance(map_, IndexMap):
        data["map"] = map_json(map_)
    elif node.name in opaque:
        data["operator"] = OPAQUE
    else:
        data["attributes"] = {n: value_json(v) for n, v in node.attributes.items() if v is not None}
    return {**data, "outputs": list(node.outputs), "origin": list(node.origin)}


# --- the steps ---


def _derived(made: Made, nodes: Sequence[NodeData]) -> tuple[list[StepData], list[ConstantData]]:
    """The steps, and what the constants of the graph are."""
    if made.saturation is None:
        return [], [_constant(name, name, made) for name in made.extracted.constants]
    derivation = Derivation(made.model, made.base, made.saturation, made.digests)
    held, types = made.extracted.constants, made.extracted.types
    constants = {name: _term_of(name, array, types[name], derivation) for name, array in held.items()}
    goals = _goals(nodes, derivation, constants)
    taken = derivation.needed(goals, constants.values())
    for chosen in (taken, derivation.taken):
        names: dict[str, str] = {}
        replay = Replay(made.model, made.base, Terms(made.base, made.digests))
        places = {id(one): number for number, one in enumerate(derivation.taken)}
        try:
            steps = []
            for number, one in enumerate(chosen):
                steps.append(replay.take(renamed(one.step, names))[0])
                old = f"@{places[id(one)]}"
                names[old] = f"@{number}"
                names.update({f"{old}.{n}": f"@{number}.{n}" for n in range(len(one.applied.made))})
        except Refused:
            continue
        found = {name: derivation.replay.names.get(term) for name, term in constants.items()}
        return steps, [
            _constant(name, names.get(found[name] or "", found[name]), made) for name in made.extracted.constants
        ]
    raise AssertionError("the steps of a derivation can be done again")


def _goals(nodes: Sequence[NodeData], derivation: Derivation, constants: Mapping[str, int]) -> list[tuple[int, int]]:
    """The terms of the graph's tensors that have a name of the model, each with the model's own."""
    model = derivation.replay.model
    graph = MadeGraph(model, constants)
    goals = []
    for node in nodes:
        graph.add(read_node(node))
        for output in node["outputs"]:
            if output in model.numbers:
                goals.append((graph.numbers[output], model.numbers[output]))
                graph.numbers[output] = model.numbers[output]
    return [goal for goal in goals if derivation.terms.equal(*goal)]


def _term_of(name: str, array: np.ndarray, type_: TensorType, derivation: Derivation) -> int:
    """The term of which a constant of the graph holds the elements: one of its class with these very bits.

    Where none has them, the constant is a term of its own, of which nothing can be shown.
    """
    terms, model = derivation.terms, derivation.replay.model
    digest = terms.digests.of
    if name in model.graph.constants and digest(array) == digest(model.graph.constants[name]):
        return model.numbers[name]
    saturation, wanted = derivation.saturation, digest(array)
    numbers = [n for n, c in saturation.classes.items() if c.meta is not None and c.meta.constant is not None
               and saturation.constants.array(c.meta.constant) is array]  # fmt: skip
    for number in numbers:
        for term in derivation.of_class(number):
            known = term in terms.arrays or terms.terms[term].folded is not None
            if known and digest(terms.value(term)) == wanted:
                return term
    return terms.input(f"constant {name}", type_)


def _constant(name: str, term: str | None, made: Made) -> ConstantData:
    """What a constant of the graph is; of one that no term has the elements of only its type."""
    type_ = made.extracted.types[name]
    if term is None:
        return {"name": name, "is": None, "dtype": type_.dtype, "shape": list(type_.shape)}
    return {"name": name, "is": term, "sha256": made.digests.of(made.extracted.constants[name])}

"""The class and mapping type that follow from a definition, with the reasons."""

from __future__ import annotations

from collections.abc import Sequence

from smartmem_rules.analysis.tries import Probe, tried
from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.binding import operand_name
from smartmem_rules.tensor.classify import COMPLEXITY, classify, depends_on_data, moves_only, reduces
from smartmem_rules.tensor.expr import Equation, TensorType
from smartmem_rules.tensor.instantiate import Definitions

PROBES = 4
_LAYOUTS = ("ILI.Fixed", "ILD.Fixed", "ILI.Variable", "ILD.Variable")
"""From the least to the most that the layout of a neighbour matters; of several probes the most counts."""
_MAPPINGS = {
    "one_to_one": "every element of the result is made of one element of each operand, at the same place",
    "one_to_many": "an element of an operand serves several elements of the result",
    "reorganize": "the elements keep their row-major order under another shape",
    "shuffle": "every element goes to one other place",
}


@dataclass(frozen=True, kw_only=True)
class Derived:
    """What a definition says of itself."""

    layout: str
    mapping: str
    reduces: tuple[str, ...]
    """The axes of reductions, as written."""
    layout_reason: str
    mapping_reason: str
    example: str
    """Types of operands and result at which the derivation was made."""


def derive(base: Definitions, operator: s.Operator) -> Derived | None:
    """The class and mapping of one overload over some probes, None where no probe was accepted."""
    probes = tried(base, operator, PROBES).probes
    if not probes:
        return None
    found = [classify(probe.instance.equations, _types(probe)) for probe in probes]
    layout = max((one.layout for one in found), key=_LAYOUTS.index)
    mapping = max((one.mapping for one in found), key=COMPLEXITY.index)
    loops = reduction_loops(operator) if layout == "ILD.Variable" else ()
    probe = probes[next(n for n, one in enumerate(found) if one.mapping == mapping)]
    reduced = f"it reduces over {', '.join(f'`{loop}`' for loop in loops)}" if loops else "it reduces"
    if layout == "ILD.Variable":
        layout_reason, mapping_reason = reduced, reduced
    else:
        layout_reason, mapping_reason = _layout_reason(layout, probe), _mapping_reason(mapping, probe)
    return Derived(
        layout=layout,
        mapping=mapping,
        reduces=loops,
        layout_reason=layout_reason,
        mapping_reason=mapping_reason,
        example=shown(probe),
    )


def reduction_loops(operator: s.Operator) -> tuple[str, ...]:
    """The loops of all reductions of a definition, as written in its equations."""
    binders = [
        binder
        for node in nodes(operator.equations)
        if isinstance(node, s.Reduction)
        for binder in node.binders
        if binder.kind != "unrolled"
    ]
    return tuple(dict.fromkeys(f"{'*' if binder.kind == 'loops' else ''}{binder.name}" for binder in binders))


def shown(probe: Probe) -> str:
    """The types of a probe in one line."""
    operands = ", ".join("-" if type_ is None else str(type_) for type_ in probe.operands)
    given = "".join(f", {name} = {_value(value)}" for name, value in probe.attributes.items())
    return f"({operands}{given}) -> {', '.join(map(str, probe.instance.outputs))}"


def _value(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)


def _types(probe: Probe) -> dict[str, TensorType]:
    return {operand_name(place): type_ for place, type_ in enumerate(probe.operands) if type_ is not None}


def _layout_reason(layout: str, probe: Probe) -> str:
    computing = [e for e in probe.instance.equations if not moves_only(e.body)]
    if computing:
        return f"{_shown_name(computing[0])} computes with elements, but reduces nothing"
    if layout == "ILD.Fixed":
        return "it only moves elements, each to one place that depends on the order of the axes"
    return "it only moves elements and does not rearrange all of them"


def _mapping_reason(mapping: str, probe: Probe) -> str:
    if any(depends_on_data(e.body) for e in probe.instance.equations):
        return "an index is read from a tensor, so that one element may be read many times"
    return _MAPPINGS.get(mapping, "")


def _shown_name(equation: Equation) -> str:
    """The name of the tensor that an equation computes, as its author knows it."""
    return "the result" if equation.tensor.startswith("%") else f"`{equation.tensor}`"


def views(equations: Sequence[Equation]) -> bool:
    """Whether all equations are pure index maps."""
    return not any(reduces(e.body) for e in equations) and all(e.view is not None for e in equations)

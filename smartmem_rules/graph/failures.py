"""Why a model cannot be imported: the nodes that no definition accepts, all at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

import onnx

from smartmem_rules.graph.errors import GraphError
from smartmem_rules.graph.loading import domain_of
from smartmem_rules.graph.matching import Explained, NeedsConstant, NeedsExtent, NotAllowed, NotImported
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.extents import Dimension, SymbolicExtentError, dimensions_needed, flags_of
from smartmem_rules.tensor.types import TensorType

_SHOWN = 4
_DEFINE = "define an operator or an overload in a .smr file and pass it with --rules FILE"
_CORRECT = "correct the values that these nodes have, or define an overload that takes them (--rules FILE)"


class UncoveredNodesError(GraphError):
    """No definition accepts some nodes, whose names are given; those that read their results were not looked at.

    Attributes:
        operands: the types of what each of them reads, as far as it has any.
    """

    def __init__(
        self, message: str, nodes: frozenset[str], operands: Mapping[str, Sequence[TensorType | None]] | None = None
    ) -> None:
        super().__init__(message)
        self.nodes = nodes
        self.operands = operands or {}


class UnknownValuesError(UncoveredNodesError):
    """Nodes cannot be imported as long as the values of some tensors are unknown."""

    def __init__(
        self,
        message: str,
        nodes: frozenset[str],
        tensors: frozenset[str],
        operands: Mapping[str, Sequence[TensorType | None]] | None = None,
    ) -> None:
        super().__init__(message, nodes, operands)
        self.tensors = tensors


@dataclass
class Failures:
    """The nodes that no definition accepts, by operator and reason."""

    nodes: dict[tuple[str, str], dict[str, list[str]]] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    hopeless: bool = False
    needed: set[str] = field(default_factory=set)
    """The open dimensions that definitions need as numbers."""
    operands: dict[str, Sequence[TensorType | None]] = field(default_factory=dict)
    advice: dict[str, None] = field(default_factory=dict)
    """What to do, by the kinds of reasons."""

    def add(self, node: onnx.NodeProto, name: str, reason: Exception, types: Mapping[str, TensorType]) -> None:
        self.operands[name] = [types.get(operand) for operand in node.input]
        self.nodes.setdefault((domain_of(node.domain), node.op_type), {}).setdefault(str(reason), []).append(name)
        open_ = {one.name for one in dimensions_needed(reason)}
        self.needed |= reason.dimensions if isinstance(reason, NeedsExtent) else open_
        if not isinstance(reason, Explained | NeedsExtent | SymbolicExtentError):
            self.advice[_CORRECT if isinstance(reason, NotAllowed) else _DEFINE] = None
        if isinstance(reason, NeedsConstant):
            self.unknown |= reason.tensors
        elif not isinstance(reason, NotImported):
            self.hopeless = True

    def error(self, open_: Sequence[Dimension] = ()) -> GraphError:
        """What to raise; `open_` are the dimensions that are given as ranges."""
        count = sum(len(names) for reasons in self.nodes.values() for names in reasons.values())
        lines = [f"{count} node{'' if count == 1 else 's'} cannot be imported:"]
        for (domain, operator), reasons in sorted(self.nodes.items()):
            for reason, names in reasons.items():
                shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
                lines.append(f"  {domain}::{operator} ({shown}): {reason}")
        lines += sorted(self.advice)
        if open_:
            needed = [one for one in open_ if one.name in self.needed] or open_
            ranges, flags = ", ".join(map(str, needed)), flags_of(needed)
            one = "one extent" if len(needed) == 1 else "one extent of each"
            if self.advice:
                lines.append(f"or, where it is the range that cannot be ({ranges}), give {one}: {flags}")
            else:
                lines.append(f"an extent cannot be open here ({ranges}); give {one}, or a narrower range: {flags}")
        failed = frozenset(name for reasons in self.nodes.values() for names in reasons.values() for name in names)
        if self.hopeless:
            return UncoveredNodesError("\n".join(lines), failed, self.operands)
        return UnknownValuesError("\n".join(lines), failed, frozenset(self.unknown), self.operands)


def check_new(outputs: Sequence[str], known: Sequence[Collection[str]]) -> None:
    """What a node of an import gives, nothing else has given: the names of bodies and of what the import makes meet.

    Raises:
        RuntimeError: a tensor is there already, and whoever reads it might read the wrong one.
    """
    twice = next((o for o in outputs if o and any(o in names for names in known)), None)
    if twice is not None:
        raise RuntimeError(
            f"the import gave the tensor {twice!r} twice. This is a bug of smartmem_rules; please report it with the "
            "model"
        )


def check_given(outputs: Sequence[str], read: Collection[str], known: Sequence[Collection[str]]) -> None:
    """Whoever imports a node says what each output is that something reads.

    Raises:
        Unsupported: the node lists more outputs than its operator has, as damaged models do.
    """
    absent = [repr(o) for o in outputs if o and o in read and not any(o in names for names in known)]
    if absent:
        raise Unsupported(f"it gives no {', '.join(absent)}: its operator has fewer outputs")

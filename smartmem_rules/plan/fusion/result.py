"""The result of fusion: groups in execution order, and which fusion rules affected it."""

from __future__ import annotations

from dataclasses import field

from smartmem_rules.language.blocks.level import KeptRows
from smartmem_rules.plan.fusion.groups import Group
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import Equation


@dataclass
class FusionTrace:
    """Which rules decided something, by name: what plans that compete with this one would leave out or do more of.

    Attributes:
        applied: rules by which a kernel took in another.
        repeating: rules by which something is computed more than once.
        refused: rules whose limit of repeated operations alone stood against taking something in.
        contested: whether several kernels of one form could have taken in the same definition.
    """

    applied: set[str] = field(default_factory=set)
    repeating: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    contested: bool = False


@dataclass
class SharedGroups:
    """What several fusions of a program share, whose policies differ in what is taken in after the groups have grown.

    Attributes:
        groups: definitions that joined the groups that compute what they read; not to be changed.
        rows: for reductions, by the definitions that they compute, bytes and operations of a row (`_rows_of`).
    """

    groups: list[Group]
    rows: dict[object, tuple[int, int]] = field(default_factory=dict)


@dataclass(kw_only=True)
class FusionResult:
    """The kernels-to-be in an order that can be executed.

    Attributes:
        rows: what kernels over rows keep of them.
        inlined: tensors that are recomputed inside their readers.
        stored: tensors that lie in memory between kernels.
        decisions: where the policy could have decided otherwise.
    """

    groups: list[Group]
    rows: KeptRows
    inlined: dict[str, Equation] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)
    decisions: FusionTrace = field(default_factory=FusionTrace)
    growth: SharedGroups | None = None

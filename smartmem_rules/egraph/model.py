"""The e-graph as plain data: what saturation gives and extraction takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from smartmem_rules.egraph.constants import Constants
from smartmem_rules.language.blocks.strategy import Phase
from smartmem_rules.language.syntax import Span
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.views import IndexMap

if TYPE_CHECKING:
    from smartmem_rules.egraph.firings import Firing

INPUT = "Input"
CONSTANT = "Constant"
OUT = "Out"
IMPORTED = "Imported"
"""An imported node that the rule base, asked without an opset, would read differently; no rule matches it."""
WIDE = "Wide"
"""The table of applications to more operands than rules can match; as e-nodes they have their operators."""
ABSENT = -1
"""Stands for an absent optional operand among the children of an e-node."""


@dataclass(frozen=True)
class Meta:
    """What is known of all members of a class: its type, its constant (a number of `Constants`) and its readers."""

    type: TensorType
    constant: int | None = None
    uses: int = 1
    tensor: str | None = None
    kept: bool = False
    """Whether a `keep` rule leaves it to the run, though all its operands are constants."""

    @property
    def seen(self) -> tuple[object, ...]:
        """What rules see of it: all but the name of the tensor."""
        return self.type, self.constant, self.uses, self.kept


@dataclass(frozen=True)
class ENode:
    """One operator application over classes.

    `operator` is a name of the rule base, `View` (attribute `map`), `Input`, `Constant` or `Out` (attribute `index`:
    one result of the only child, a class without type).  `rules` names the rules that made it, none for imported ones.
    """

    operator: str
    children: tuple[int, ...]
    attributes: Mapping[str, Value | IndexMap] = field(hash=False)
    outputs: int = 1
    rules: tuple[str, ...] = ()


@dataclass
class EClass:
    """Equal tensors; `meta` is None for the joint result of an operator with several outputs."""

    number: int
    nodes: list[ENode]
    meta: Meta | None
    tensors: tuple[str, ...] = ()


@dataclass(kw_only=True)
class RuleStatistics:
    """One rule's share of a saturation: matches looked at, rewrites done, time, e-nodes that only it made first."""

    rule: str
    tried: int = 0
    fired: int = 0
    milliseconds: float = 0.0
    enodes: int = 0


@dataclass(frozen=True)
class NearMiss:
    """A match of a rule at a tensor of the model that a guard turned down.

    `size` is the number of operators that did match, `passed` that of the guards before the one that failed, `place`
    where what failed stands in the rule file.
    """

    rule: str
    tensor: str | None
    reason: str
    values: Mapping[str, str] = field(hash=False)
    size: int = 0
    passed: int = 0
    place: Span | None = None


@dataclass(frozen=True, kw_only=True)
class PhaseRun:
    """How a phase went.

    Attributes:
        enodes: rows of the e-graph at its end.
        stopped: the limit that ended it, None where nothing new came.
    """

    phase: Phase
    rounds: int
    enodes: int
    seconds: float
    stopped: str | None


@dataclass(kw_only=True)
class Saturation:
    """A saturated e-graph and the report of how it came about.

    Attributes:
        classes: by number; children of an e-node are keys of it or `ABSENT`.
        tensor_class: the class of every tensor of the model.
        stopped: which bound ended which phase early, None where all rules ran dry.
        firings: every match that was rewritten, where these were recorded.
    """

    classes: dict[int, EClass]
    tensor_class: dict[str, int]
    statistics: dict[str, RuleStatistics]
    near_misses: list[NearMiss]
    constants: Constants
    instances: Instances
    stopped: str | None
    seconds: float
    iterations: int
    firings: Sequence[Firing] = ()
    phases: Sequence[PhaseRun] = ()

    @property
    def enode_count(self) -> int:
        return sum(len(c.nodes) for c in self.classes.values())

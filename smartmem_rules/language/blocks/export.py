"""`export` blocks: which rules a model is simplified by, and what the ONNX graph that is written back costs."""

from __future__ import annotations

from smartmem_rules.language.blocks.keys import BlockRecord, real, words
from smartmem_rules.language.blocks.ranges import POSITIVE
from smartmem_rules.language.vocabulary import RELAXATIONS
from smartmem_rules.records import dataclass


@dataclass(frozen=True, kw_only=True)
class Export(BlockRecord):
    """An `export` block: what pays in a model that another system runs."""

    rulesets: tuple[str, ...] = words("rule sets in the order in which they run", refers="ruleset")
    relaxes: tuple[str, ...] = words(
        "what of floating-point arithmetic a rule may relax and still be used", *sorted(RELAXATIONS)
    )
    node: float = real("what an operator costs however small it is, in nanoseconds")
    bandwidth: float = real("bytes a nanosecond that operators read and write", within=POSITIVE)
    peak: float = real("scalar operations a nanosecond", within=POSITIVE)
    special: float = real("operations that an elementary function counts as", 10.0)
    stored: float = real("nanoseconds that a byte of a constant in the file counts as", 0.0)
    usual: float = real("what an open extent counts as where forms are compared", 64.0, within=POSITIVE)
    made: float = real("nanoseconds that an operator made by a rule costs beyond one of the model", 0.0)
    composed: tuple[str, ...] = words(
        "operators that the system computes as several: no rule may make them", refers="operator"
    )
    fused: tuple[str, ...] = words(
        "operators that the system makes of the nodes that they are written as: those stay", refers="operator"
    )
    kept: tuple[str, ...] = words("operators that stay as they are, and are not computed beforehand", refers="operator")

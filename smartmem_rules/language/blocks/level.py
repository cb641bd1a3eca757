"""`level` and `layout` blocks: the steps of an optimization, and what the choice of layouts weighs."""

from __future__ import annotations

from smartmem_rules.language.blocks.keys import BlockRecord, part, real, whole, word, words
from smartmem_rules.language.blocks.ranges import FROM_ONE, POSITIVE
from smartmem_rules.language.blocks.strategy import Phase
from smartmem_rules.records import dataclass


@dataclass(frozen=True, kw_only=True)
class KeptRows:
    """What a kernel over rows keeps of a row until it needs that again; the rest is computed again."""

    kept_row: int = whole("elements of a row that are kept at most: they lie on a work-item's stack", 1 << 18)
    kept_operations: int = whole("scalar operations of an element up to which it is computed again", 2)


@dataclass(frozen=True, kw_only=True)
class Level(BlockRecord):
    """A `level` block."""

    rulesets: tuple[str, ...] = words("rule sets in the order in which they run", least=0, refers="ruleset")
    strategy: str = word("the `strategy` block that says in which phases rules run", default="", refers="strategy")
    phases: tuple[Phase, ...] = ()
    """What runs: those of the strategy, or each rule set alone, with the sets that join unnamed."""
    table: str = word("the table that decides fusion", default="", refers="table")
    views: str = word("whether consumers read through index maps", "keep", "read_through", default="keep")
    fuse: tuple[str, ...] = words("`fuse` blocks that go beyond the table", refers="fuse")
    layout: str = word(
        "the `layout` block that chooses layouts; tensors stay row-major where absent",
        default="",
        refers="layout",
    )
    kernels: str = word("`joint`: chosen with the layouts, by modelled time", "rules", "joint", default="rules")
    schedules: str = word("which schedules are admitted", "default", "tuned", default="default")
    memory: str = word(
        "`preferred`: textures or buffers as the device prefers", "buffer", "preferred", default="buffer"
    )
    rows: KeptRows = part(KeptRows)
    deepest: int = whole(
        "nested operations of a kernel's expression above which it takes in no further producer or consumer: planning "
        "and compilers walk expressions by recursion",
        240,
    )
    most_terms: int = whole(
        "operations and reads of that expression above which the same holds: a value that is read twice is written "
        "twice",
        128,
    )
    most_operands: int = whole(
        "parts of a `Concat` at an output above which several kernels join them: compilers take time in the square of "
        "a kernel's parameters",
        128,
    )
    half_margin: float = real(
        "how much larger than in the calibration run values in float16 may become", 4.0, within=POSITIVE
    )
    intermediates: str = word("how they share memory", "shared", "in_place", default="shared")


@dataclass(frozen=True, kw_only=True)
class LayoutWeights(BlockRecord):
    """A `layout` block: what the choice of layouts over the whole graph weighs (SmartMem section 3.2.2)."""

    scattered_read: float = real("a read whose vector is gathered element by element, in contiguous reads", 4.0)
    strided_read: float = real("a read that is contiguous along another loop", 2.0)
    scattered_write: float = real("a write that leaves a vector's elements apart", 2.0)
    buffer_axes: int = whole("axes along which a buffer is addressed directly (SmartMem's k)", 1)
    image_axes: int = whole("axes along which an image is addressed directly", 2)
    copies: int = whole("further layouts in which one tensor may be kept, 0 or 1", 0)
    copy_gain: float = real(
        "how often a kernel that only copies a tensor has to save what it costs", 1.0, within=POSITIVE
    )
    sweeps: int = whole("passes of the local search from which the solver starts", 4)
    solver_seconds: float = real("time that the solver may take for the choice over the whole graph", 10.0)
    least_gain: float = real("nanoseconds that other kernels than those of the rules have to save", 1.0)
    configurations: int = whole("ways to compute a part of the graph that compete, at most", 1, within=FROM_ONE)
    further_kernels: int = whole("kernels that one of them may have more than the fusion rules make there", 0)

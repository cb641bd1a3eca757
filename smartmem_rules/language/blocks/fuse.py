"""`fuse NAME for PASS` blocks: one record for each pass of fusion, with the keys that this pass reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from smartmem_rules.language.blocks.keys import UNLIMITED, BlockRecord, flag, real, whole, wholes, word, words
from smartmem_rules.language.blocks.ranges import FROM_ONE, ITEMS, POSITIVE
from smartmem_rules.records import dataclass

if TYPE_CHECKING:
    from smartmem_rules.language.blocks.device import Device

TEMPLATES = ("panel", "group", "tile")


@dataclass(frozen=True, kw_only=True)
class FuseBlock(BlockRecord):
    """What all passes have."""

    template: str = word("only where a schedule of this template is admitted", *TEMPLATES, default="")
    optional: bool = flag("whether kernels made without the block compete where kernels are chosen by time", False)


@dataclass(frozen=True, kw_only=True)
class FeedBlock(FuseBlock, ABC):
    """A kernel computes anew, for itself, what another form of kernel would store for it."""

    recompute: int = whole("scalar operations that one saved access of memory may cost", 0)
    recompute_most: int = whole("the same, for kernels that compete where kernels are chosen by time", 0)

    @property
    @abstractmethod
    def first(self) -> str:
        """The form of kernel that feeds."""

    @property
    @abstractmethod
    def second(self) -> str:
        """The form of kernel that is fed."""

    @property
    def most(self) -> int:
        """The limit in the place of `recompute` for kernels that compete."""
        return max(self.recompute, self.recompute_most)

    def relaxed(self) -> FeedBlock:
        """The block with the limits of kernels that compete."""
        return replace(self, recompute=self.most)

    @property
    def columns_together(self) -> int:
        """Columns of a contraction for which what is fed is computed once."""
        return UNLIMITED


@dataclass(frozen=True, kw_only=True)
class Recompute(FeedBlock):
    """Elementwise and window kernels are computed inside their readers (prologue fusion, DNNFusion section 4)."""

    producer: str = word("the form of the kernel that feeds", "pointwise", "window")
    consumer: str = word("the form of the kernel that is fed", "pointwise", "window", "reduction", "contraction")
    width: int = whole("columns of a contraction for which what is fed is computed once", UNLIMITED)

    @property
    def first(self) -> str:
        return self.producer

    @property
    def second(self) -> str:
        return self.consumer

    @property
    def columns_together(self) -> int:
        return self.width


@dataclass(frozen=True, kw_only=True)
class Statistics(FeedBlock):
    """Reductions over the same rows share a kernel: mean, then variance, then the normalised row (Apollo)."""

    of_one: int = whole("elements at most that the kernel of a single row computes behind its reductions", UNLIMITED)

    @property
    def first(self) -> str:
        return "reduction"

    @property
    def second(self) -> str:
        return "reduction"


@dataclass(frozen=True, kw_only=True)
class Prologue(FeedBlock):
    """A contraction makes the normalised rows of its left factor itself."""

    row_bytes: int = whole("bytes of one row that are kept on chip")
    right_bytes: int = whole("bytes of a right factor that are kept beside it", UNLIMITED)
    keeps: bool = flag("whether the rows may be stored too, for others that read them", False)
    columns: int = whole("columns of the right factor at most: each tile of them makes the rows anew", UNLIMITED)
    summed: int = whole(
        "elements of which an element of a row is the sum: a tile's work-group adds them; where the schedules of "
        "tiles say what that takes (`looped_cycles`)",
        UNLIMITED,
    )
    summed_most: int = whole("the same, for kernels that compete where kernels are chosen by time", 0)

    def relaxed(self) -> Prologue:
        """The block with the limits of kernels that compete."""
        return replace(self, recompute=self.most, summed=max(self.summed, self.summed_most))

    @property
    def first(self) -> str:
        return "reduction"

    @property
    def second(self) -> str:
        return "contraction"


@dataclass(frozen=True, kw_only=True)
class Attention(FeedBlock):
    """Scores, softmax and their product with the values are one kernel: the scores never leave the chip."""

    row_bytes: int = whole("bytes of one row of scores")
    right_bytes: int = whole("bytes of each right factor that are kept beside it", UNLIMITED)

    @property
    def first(self) -> str:
        return "contraction"

    @property
    def second(self) -> str:
        return "reduction"


@dataclass(frozen=True, kw_only=True)
class Siblings(FuseBlock):
    """Products of one left factor with several weights are one kernel: queries, keys and values."""


@dataclass(frozen=True, kw_only=True)
class Epilogue(FuseBlock):
    """Whole rows of a product are reduced before they leave the chip (epilogue reduction)."""

    row_bytes: int = whole("bytes of one row of the product that are kept on chip")
    left_row_bytes: int = whole("bytes of one row of the left factor that are kept on chip", UNLIMITED)


@dataclass(frozen=True, kw_only=True)
class Chain(FuseBlock):
    """Kernels over the same rows or batches follow each other in one work-item (vertical fusion)."""

    over: str = word("what the kernels share", "rows", "batches")
    block_bytes: int = whole("bytes of a block of rows that lie between the kernels", UNLIMITED)
    right_bytes: int = whole("bytes of all right factors that a block reads", UNLIMITED)
    loss: float = real("percent of the modelled time that a launch fewer may cost", 0.0)


@dataclass(frozen=True, kw_only=True)
class Wavefront(FuseBlock):
    """Recurrences one above the other: a layer follows some steps behind the one below it, in one launch."""

    shares: int = whole("shares into which the steps of a recurrence may be cut", 16, within=FROM_ONE)


@dataclass(frozen=True, kw_only=True)
class Horizontal(FuseBlock):
    """Kernels that do not need each other share a launch (horizontal fusion: Rammer, HFUSE)."""

    launches: float = real("modelled time of a small kernel, in launches: on one core of a CPU, on all of a GPU")
    kernels: int = whole("kernels of one launch at most: each has parameters of its own", 32, within=FROM_ONE)
    operands: int = whole("tensors that a launch reads and writes at most: each is a parameter", 512, within=FROM_ONE)
    group: int = whole("work-items of a work-group where no kernel asks for another number", 64, within=ITEMS)
    rereads: int = whole("reads of one tensor that count, in sizes of the result: a table is not read whole", 16)
    largest_group: int = whole(
        "work-items of the largest work-group that a launch of several kernels may have", 1024, within=ITEMS
    )
    spare_local_bytes: int = whole("bytes of local memory that a launch of several kernels leaves between them", 1024)
    deepest_first: bool = flag(
        "whether what joins two branches is computed by the kernel with the longer path of dependencies before it, so "
        "that the shorter branch can share a launch with the longer one's beginning",
        False,
    )


@dataclass(frozen=True, kw_only=True)
class Megakernel(FuseBlock):
    """Launches that need each other become one persistent kernel with task counters in memory (Souffle)."""

    launches: float = real("modelled time of a small launch, in launches")
    operands: int = whole("tensors that a launch reads and writes at most: each is a parameter", 512, within=FROM_ONE)
    waits: float = real("the time for which a unit may wait for another one, in launches")
    groups: int = whole("work-groups at least, to fill devices of more units than the plan was made for too", 16)
    patience: float = real("how many times longer than modelled a work-group waits (spin limit)", 2.0, within=POSITIVE)
    loss: float = real("percent of the time of launches that are not small which units may lose by waiting", 0.0)


@dataclass(frozen=True, kw_only=True)
class InOrder(FuseBlock):
    """Kernels of work-groups that need each other share a launch, in which work-groups take tasks in order (GPU)."""

    kernels: int = whole("kernels of one launch at most: each has parameters of its own", 96, within=FROM_ONE)
    unit_items: int = whole(
        "work-items of a launch that a unit runs at once, whatever registers its kernels take; a launch has so many",
        256,
    )
    spare_local_bytes: int = whole("bytes of local memory that a launch of several kernels leaves between them", 1024)
    columns: int = whole("`columns` of blocks for `prologue` where kernels may share such a launch", UNLIMITED)
    divided: tuple[int, ...] = wholes(
        "parts into which a product's reduction may be divided for a kernel that reads its rows, to choose from", ()
    )
    types: tuple[str, ...] = words("stored types of plans in which kernels share such launches unless they shall not")
    seconds: float = real("time after which a waiting work-group gives up, and the run fails", 10.0)

    def polls(self, device: Device) -> int:
        """Looks at a counter after which a work-group gives up."""
        return round(self.seconds * 1e9 / device.compute.poll_ns)


PASSES: Mapping[str, type[FuseBlock]] = MappingProxyType(
    {
        "recompute": Recompute,
        "statistics": Statistics,
        "prologue": Prologue,
        "attention": Attention,
        "siblings": Siblings,
        "epilogue": Epilogue,
        "chain": Chain,
        "wavefront": Wavefront,
        "horizontal": Horizontal,
        "megakernel": Megakernel,
        "in_order": InOrder,
    }
)
"""The record of each pass, by the word behind `for`."""

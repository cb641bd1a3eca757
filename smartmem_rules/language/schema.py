"""What blocks may say: which record each block becomes, and what stands behind `for`, in one place.

The checker refuses what is not here, the reference documents it, completion offers it, the planner gets its records.
"""

from __future__ import annotations

from functools import lru_cache

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.export import Export
from smartmem_rules.language.blocks.fuse import PASSES, FuseBlock
from smartmem_rules.language.blocks.keys import BlockRecord, Key, keys_of, read, values_of
from smartmem_rules.language.blocks.level import LayoutWeights, Level
from smartmem_rules.language.blocks.matrix import Matrix
from smartmem_rules.language.blocks.schedule import CLASSES, CONTRACTIONS, Schedule
from smartmem_rules.language.blocks.strategy import Strategy
from smartmem_rules.language.syntax import Block

SUBJECTS: dict[str, tuple[str, ...]] = {"schedule": ("contraction", *CLASSES), "fuse": tuple(PASSES)}
"""What stands behind `for`, for blocks that need it."""

ACTIONS: dict[str, tuple[str, ...]] = {
    "class": ("keep", "fuse", "eliminate1", "eliminate2", "eliminate_both"),
    "mapping": ("through", "depends", "break"),
}
"""First words of the cells of a table over classes or over mapping types."""

RESULTS: dict[str, tuple[str, ...]] = {"class": ("gone",), "mapping": ("none",)}
"""Second words of cells besides the classes or mapping types themselves."""


def record_type(kind: str, subject: str | None = None, template: str = "") -> type[BlockRecord]:
    """The record of a block; what all blocks of the kind have where the subject or template is not known.

    Args:
        kind: `device`, `matrix`, `schedule`, `level`, `strategy`, `layout`, `fuse` or `export`.
        subject: what stands behind `for`.
        template: of a schedule for contractions.
    """
    if kind == "schedule":
        return (
            CONTRACTIONS.get(template, Schedule) if subject == "contraction" else CLASSES.get(subject or "", Schedule)
        )
    if kind == "fuse":
        return PASSES.get(subject or "", FuseBlock)
    others: dict[str, type[BlockRecord]] = {
        "device": Device, "matrix": Matrix, "level": Level, "layout": LayoutWeights, "strategy": Strategy,
        "export": Export,
    }  # fmt: skip
    return others[kind]


def keys_of_block(block: Block) -> tuple[Key, ...]:
    """The keys that a block may have."""
    return keys_of(_type_of(block))


def keys_of_kind(kind: str) -> tuple[Key, ...]:
    """The keys that blocks of a kind may have, whatever they are for."""
    types: list[type[BlockRecord]] = [record_type(kind)]
    if kind == "schedule":
        types += [*CONTRACTIONS.values(), *CLASSES.values()]
    elif kind == "fuse":
        types += PASSES.values()
    return tuple({key.name: key for one in types for key in keys_of(one)}.values())


@lru_cache(maxsize=1024)
def typed(block: Block) -> BlockRecord:
    """The record of a block.

    Raises:
        BlockError: the block lacks a key, which checked files do not.
    """
    return read(_type_of(block), block)


def _type_of(block: Block) -> type[BlockRecord]:
    template = next(map(str, values_of(block, "template")), "")
    return record_type(block.kind, block.subject, template)

"""Numbers of a block that are right by themselves, but not together."""

from __future__ import annotations

from collections.abc import Iterator

from smartmem_rules.language import syntax as s
from smartmem_rules.language.blocks.keys import value_place
from smartmem_rules.language.blocks.schedule import Elementwise, Group
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import advice, replacement
from smartmem_rules.language.schema import typed

_GPUS = ("gpu", "texture_gpu")
_DIVIDED = ((0, 4, "rows"), (1, 5, "columns"))
"""Of a `tile` entry: the tile's extent, the sub-group's, and what they count."""


def check_block_sizes(block: s.Block) -> Iterator[Diagnostic]:
    """What does not go together in a block whose keys and values are those of the schema."""
    if block.kind != "schedule":
        return
    record = typed(block)
    if isinstance(record, Group):
        yield from _tiles(block)
        yield from _cycles(block, record)
    if isinstance(record, Elementwise) and record.items and record.kind in _GPUS:
        entry = next(entry for entry in block.entries if entry.key == "items")
        message = f"`items` shares out rows on a CPU, and `{block.name}` is for a {record.kind}"
        fix = replacement("leave it out: work-groups take the elements", entry.span, "")
        yield Diagnostic(Code.BAD_VALUE, "error", message, entry.place("key"), fix=fix)


def _tiles(block: s.Block) -> Iterator[Diagnostic]:
    """Tiles that their sub-groups and slices do not divide."""
    for entry in block.entries:
        if entry.key != "tile":
            continue
        sizes = [int(value) for value in entry.values]
        for whole, part, what in _DIVIDED:
            if sizes[whole] % sizes[part]:
                message = f"{sizes[part]} {what} of a sub-group do not divide the {sizes[whole]} {what} of the tile"
                yield _undivided(entry, whole, part, message)
        if sizes[2] % sizes[3]:
            message = f"{sizes[3]} slices do not divide a K step of {sizes[2]}"
            yield _undivided(entry, 2, 3, message)


def _undivided(entry: s.Entry, whole: int, part: int, message: str) -> Diagnostic:
    size, unit = int(entry.values[whole]), int(entry.values[part])
    new = max(1, -(-size // unit)) * unit
    sizes = [str(new if place == whole else value) for place, value in enumerate(entry.values)]
    note = "a tile is rows, columns, K step, slices of the step, rows and columns of each sub-group, steps at once"
    fix = advice(f"write a multiple of {unit}, such as `tile {' '.join(sizes)};`, or other numbers of a sub-group")
    return Diagnostic(Code.BAD_VALUE, "error", message, entry.place(f"value:{whole}"), note=note, fix=fix)


def _cycles(block: s.Block, record: Group) -> Iterator[Diagnostic]:
    """Cycles of sums without those of the loads and meetings beside them."""
    cycles = record.cycles
    if not cycles.sums_per_cycle:
        return
    needed = {"loads_per_cycle": cycles.loads_per_cycle}
    if max(record.splits) > 1:
        needed["meetings_per_cycle"] = cycles.meetings_per_cycle
    for name, value in needed.items():
        if not value:
            message = f"`{block.name}` says `sums_per_cycle`, but not how many are in `{name}`"
            fix = advice(f"add `{name} NUMBER;` with a number above 0, or leave `sums_per_cycle` out")
            yield Diagnostic(Code.MISSING_KEY, "error", message, value_place(block, "sums_per_cycle", 0), fix=fix)

"""Memory planning: which intermediates share device memory, and which order of launches has the least peak.

All buffers lie in one piece of memory (or a few, where the device allocates no such piece), each at an offset
(`plan.memory.arena`). A launch may write into the memory of a tensor that ends with it (`plan.memory.in_place`). Images
lie in pieces of their own, which images of one size share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from smartmem_rules.language.blocks.device import Allocator
from smartmem_rules.plan.artefact import Place, Slot
from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.storage import ALIGNMENT, stored_bytes
from smartmem_rules.plan.memory.arena import Block, height, peak, place
from smartmem_rules.plan.memory.launch_order import Pairs, least_memory_order
from smartmem_rules.plan.memory.lives import lives
from smartmem_rules.records import dataclass
from smartmem_rules.statistics import MemoryStatistics
from smartmem_rules.tensor.ranges import largest

LARGEST = 1 << 62


@dataclass(frozen=True, kw_only=True)
class MemoryPlan:
    """Where intermediates lie.

    Attributes:
        launches: in the order for which this holds.
        slots: the pieces of memory.
        placement: for each intermediate its piece and the offset in it.
        in_place: for tensors that are written into another one's memory, which one's.
    """

    launches: list[Launch]
    slots: list[Slot]
    placement: dict[str, Place]
    in_place: dict[str, str]
    memory: MemoryStatistics


@dataclass(frozen=True, kw_only=True)
class _Need:
    """A tensor's demand: the memory, and the first and last launch at which its contents count."""

    tensor: str
    memory: str
    bytes: int
    size: tuple[int, int]
    storage: str
    first: int
    last: int


@dataclass
class _ImageSlot:
    slot: Slot
    members: list[_Need] = field(default_factory=list)


def plan_memory(
    tensors: Mapping[str, Stored],
    launches: Sequence[Launch],
    allocator: Allocator,
    pairs: Pairs | None = None,
    neighbours: Sequence[tuple[str, ...]] = (),
) -> MemoryPlan:
    """Places for all intermediates.

    Tensors whose lives touch never overlap, but for one that is written in place.

    Args:
        launches: in an order in which each finds what it reads.
        pairs: for tensors that may be written into the memory of another one: of which, and the launches may take the
            order that needs the least memory; with None they stay in theirs and nothing is written in place.
        neighbours: names of launches that stay one behind the other, as they are given.
        allocator: what the device asks of pieces of memory.

    Raises:
        PlanError: a launch reads an intermediate that no launch before it writes.
    """
    # what a device asks of parts of buffers may be less than what kernels ask of vectors
    allocator = replace(allocator, alignment=max(ALIGNMENT, allocator.alignment))
    given = _arranged(tensors, list(launches), {}, allocator)
    if pairs is None:
        return given
    sizes = {n: allocator.whole(stored_bytes(t)) for n, t in tensors.items() if t.role == "intermediate"}
    found = least_memory_order(launches, sizes, pairs)
    first = _arranged(tensors, list(launches), pairs, allocator)
    # images share less than the order counts with, and what lies in place leaves fewer choices to the rest
    choices = [first, given]
    if _are_neighbours(found.launches, neighbours):
        choices.append(_arranged(tensors, found.launches, pairs, allocator))
    best = min(choices, key=lambda choice: choice.memory.reused)
    optimal = found.best and best.memory.reused <= found.peak
    return replace(best, memory=replace(best.memory, optimal=optimal))


def _are_neighbours(launches: Sequence[Launch], rows: Sequence[tuple[str, ...]]) -> bool:
    """Whether the launches of each row stand one behind the other, in its order."""
    names = [launch.name for launch in launches]
    places = {name: place for place, name in enumerate(names)}
    return all(tuple(names[places[row[0]] :][: len(row)]) == row for row in rows)


def _arranged(tensors: Mapping[str, Stored], launches: list[Launch], pairs: Pairs, allocator: Allocator) -> MemoryPlan:
    """The launches in this order, with all in place that can be."""
    needs = _needs(tensors, launches, allocator)
    in_place = _taken(needs, launches, pairs)
    placed = _placed(needs, in_place, allocator)
    separate = sum(need.bytes for need in needs)
    bound = peak(_blocks(needs, in_place))
    memory = MemoryStatistics(reused=placed.total, separate=separate, bound=bound, optimal=False)
    return MemoryPlan(
        launches=launches, slots=placed.slots, placement=placed.placement, in_place=in_place, memory=memory
    )


def _taken(needs: Sequence[_Need], launches: Sequence[Launch], pairs: Pairs) -> dict[str, str]:
    """For each tensor that is written in place the one that ends there; each memory is taken once."""
    ends = {need.tensor: need.last for need in needs}
    begins = {need.tensor: need.first for need in needs}
    found: dict[str, str] = {}
    for number, launch in enumerate(launches):
        for new in launch.writes:
            free = (old for old in pairs.get(new, ()) if old not in found.values())
            old = next((old for old in free if ends.get(old) == number == begins.get(new)), None)
            if old is not None:
                found[new] = old
    return found


@dataclass(frozen=True)
class _Placed:
    slots: list[Slot]
    placement: dict[str, Place]

    @property
    def total(self) -> int:
        return sum(slot.bytes for slot in self.slots)


def _root(tensor: str, in_place: Mapping[str, str]) -> str:
    while tensor in in_place:
        tensor = in_place[tensor]
    return tensor


def _groups(needs: Sequence[_Need], in_place: Mapping[str, str]) -> dict[str, list[_Need]]:
    """The tensors that lie at one place, one after the other, by the first of them."""
    groups: dict[str, list[_Need]] = {}
    for need in needs:
        groups.setdefault(_root(need.tensor, in_place), []).append(need)
    return groups


def _block(group: Sequence[_Need]) -> Block:
    return Block(max(n.bytes for n in group), min(n.first for n in group), max(n.last for n in group))


def _blocks(needs: Sequence[_Need], in_place: Mapping[str, str]) -> list[Block]:
    return [_block(group) for group in _groups(needs, in_place).values()]


def _placed(needs: Sequence[_Need], in_place: Mapping[str, str], allocator: Allocator) -> _Placed:
    slots: list[Slot] = []
    placement: dict[str, Place] = {}
    rest = {root: group for root, group in _groups(needs, in_place).items() if group[0].memory == "buffer"}
    if not allocator.sub_buffers:
        slots, placement = _whole_pieces(rest)
        rest = {}
    while rest:
        blocks = {root: _block(group) for root, group in rest.items()}
        offsets = dict(zip(blocks, place(list(blocks.values())), strict=True))
        ends = {root: offset + blocks[root].bytes for root, offset in offsets.items()}
        # what lies too high goes into another piece; what is too large by itself is the device's to refuse
        low = [root for root, end in ends.items() if end <= allocator.allocation]
        low = low or [min(ends, key=lambda root: ends[root])]
        size = height([blocks[root] for root in low], [offsets[root] for root in low])
        for root in low:
            placement.update((need.tensor, Place(len(slots), offsets[root])) for need in rest.pop(root))
        slots.append(Slot("buffer", size, (0, 0), ""))
    images: list[_ImageSlot] = []
    for need in sorted((n for n in needs if n.memory == "image"), key=lambda n: (-n.bytes, n.first, n.tensor)):
        own = next((n for n, image in enumerate(images) if _fits(need, image)), len(images))
        if own == len(images):
            images.append(_ImageSlot(Slot("image", need.bytes, need.size, need.storage)))
        images[own].members.append(need)
        placement[need.tensor] = Place(len(slots) + own, 0)
    return _Placed(slots + [image.slot for image in images], placement)


def _whole_pieces(groups: Mapping[str, Sequence[_Need]]) -> tuple[list[Slot], dict[str, Place]]:
    """A piece for each group, which others that are needed at other times share; the largest choose first."""
    slots: list[Slot] = []
    members: list[list[Block]] = []
    placement: dict[str, Place] = {}
    for _, group in sorted(groups.items(), key=lambda item: (-_block(item[1]).bytes, item[0])):
        block = _block(group)
        own = next((n for n, others in enumerate(members) if not any(map(block.meets, others))), len(slots))
        if own == len(slots):
            slots.append(Slot("buffer", block.bytes, (0, 0), ""))
            members.append([])
        members[own].append(block)
        placement.update((need.tensor, Place(own, 0)) for need in group)
    return slots, placement


def _fits(need: _Need, image: _ImageSlot) -> bool:
    """Whether an image is like the slot's, and needed when no other one is."""
    if (need.size, need.storage) != (image.slot.size, image.slot.storage):
        return False
    return not any(need.first <= other.last and other.first <= need.last for other in image.members)


def _needs(tensors: Mapping[str, Stored], launches: Sequence[Launch], allocator: Allocator) -> list[_Need]:
    found = lives(tensors, launches)
    return [_need(tensors[name], life.first, life.last, allocator) for name, life in found.items()]


def _need(tensor: Stored, first: int, last: int, allocator: Allocator) -> _Need:
    image = tensor.layout.memory == "image"
    width, height_ = tensor.layout.image_size(tensor.type.shape) if image else (0, 0)
    size = largest(width), largest(height_)
    own = stored_bytes(tensor)
    # bytes are untyped: buffers of different element types share
    storage = tensor.storage if image else ""
    return _Need(
        tensor=tensor.name,
        memory=tensor.layout.memory,
        bytes=own if image else allocator.whole(own),
        size=size,
        storage=storage,
        first=first,
        last=last,
    )

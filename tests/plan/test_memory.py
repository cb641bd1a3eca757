"""Intermediates share memory only while that cannot be noticed."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from smartmem_rules.language.blocks.device import Allocator
from smartmem_rules.plan.kernel.launch import Launch, Single
from smartmem_rules.plan.kernel.model import Kernel, Layout, PlanError, Stored, row_major
from smartmem_rules.plan.kernel.storage import stored_bytes
from smartmem_rules.plan.memory.arena import Block, height, peak, place
from smartmem_rules.plan.memory.launch_order import least_memory_order
from smartmem_rules.plan.memory.planning import MemoryPlan, plan_memory
from smartmem_rules.tensor.expr import TensorType
from tests.with_all import with_all

SHAPES = [(4, 8), (8, 8), (3, 5), (16,), (1, 1)]
Pairs = dict[str, tuple[str, ...]]

ALLOCATOR = Allocator(alignment=128)


def stored(name: str, shape: tuple[int, ...], memory: str = "buffer", storage: str = "float32") -> Stored:
    rank = len(shape)
    layout = row_major(rank) if memory == "buffer" else Layout("image", tuple(range(rank)), rank - 1)
    return Stored(name=name, type=TensorType("float32", shape), layout=layout, role="intermediate", storage=storage)


def kernel(place: int, reads: tuple[str, ...], writes: tuple[str, ...]) -> Launch:
    return Single(kernel=Kernel(name=f"k{place}", form="pointwise", reads=reads, writes=writes))


@st.composite
def programs(draw: st.DrawFn, most: int = 25) -> tuple[dict[str, Stored], list[Launch], Pairs]:
    """Tensors, kernels, and tensors that may be written in place."""
    tensors: dict[str, Stored] = {}
    kernels = []
    pairs: Pairs = {}
    for number in range(draw(st.integers(1, most))):
        reads = tuple(draw(st.lists(st.sampled_from(sorted(tensors)), max_size=3, unique=True))) if tensors else ()
        writes = []
        for n in range(draw(st.integers(1, 2))):
            name = f"t{number}_{n}"
            memory, storage = draw(st.sampled_from(["buffer", "image"])), draw(st.sampled_from(["float32", "float16"]))
            tensors[name] = stored(name, draw(st.sampled_from(SHAPES)), memory, storage)
            writes.append(name)
            alike = [r for r in reads if replace(tensors[r], name="") == replace(tensors[name], name="")]
            if memory == "buffer" and alike and draw(st.booleans()):
                pairs[name] = tuple(alike)
        kernels.append(kernel(number, reads, tuple(writes)))
    return tensors, kernels, pairs


def elements(plan: MemoryPlan, tensor: Stored) -> list[tuple[int, int]]:
    """The bytes that a tensor lies on."""
    where = plan.placement[tensor.name]
    return [(where.slot, where.offset + n) for n in range(stored_bytes(tensor))]


@settings(deadline=None, max_examples=with_all(50, 20))
@given(programs(), st.sampled_from([1, 64, 128]), st.sampled_from([1 << 40, 512]), st.booleans())
def test_nothing_is_overwritten_before_its_last_reader(
    program: tuple[dict[str, Stored], list[Launch], Pairs], alignment: int, largest: int, parts: bool
) -> None:
    """Every byte of memory, kernel by kernel: brute force."""
    tensors, kernels, pairs = program
    plan = plan_memory(tensors, kernels, Allocator(alignment=alignment, allocation=largest, sub_buffers=parts), pairs)
    assert parts or not any(where.offset for where in plan.placement.values())
    assert set(plan.placement) == set(tensors)
    assert sorted(k.name for k in plan.launches) == sorted(k.name for k in kernels)
    holds: dict[tuple[int, int], str] = {}
    for one in plan.launches:
        for name in one.reads:
            assert all(holds[byte] == name for byte in elements(plan, tensors[name])), "overwritten"
        for name in one.writes:
            for read in one.reads:
                met = set(elements(plan, tensors[read])) & set(elements(plan, tensors[name]))
                assert not met or plan.in_place[name] == read
                assert not met or plan.placement[name] == plan.placement[read]
            holds.update(dict.fromkeys(elements(plan, tensors[name]), name))
        for name in one.writes:
            assert all(holds[byte] == name for byte in elements(plan, tensors[name])), "two tensors at one place"
    for new, old in plan.in_place.items():
        assert old in pairs[new]
    for name, where in plan.placement.items():
        tensor, slot = tensors[name], plan.slots[where.slot]
        assert slot.memory == tensor.layout.memory
        assert where.offset % alignment == 0
        assert where.offset + stored_bytes(tensor) <= slot.bytes <= max(largest, slot.bytes if not where.offset else 0)
        if slot.memory == "image":
            assert (slot.size, slot.storage) == (tensor.layout.image_size(tensor.type.shape), tensor.storage)


@settings(deadline=None, max_examples=with_all(50, 20))
@given(programs())
@pytest.mark.optimized  # it computes for longer than it is compiled
def test_the_memory_lies_between_the_bound_and_no_sharing(
    program: tuple[dict[str, Stored], list[Launch], Pairs],
) -> None:
    tensors, kernels, pairs = program
    apart, together = (
        plan_memory(tensors, kernels, ALLOCATOR).memory,
        plan_memory(tensors, kernels, ALLOCATOR, pairs).memory,
    )
    assert apart.bound <= apart.reused <= apart.separate
    assert together.bound <= together.reused <= together.separate
    assert together.reused <= apart.reused


def orders(kernels: list[Launch]) -> list[list[Launch]]:
    """All orders in which every kernel finds what it reads."""
    made = {name: k for k in kernels for name in k.writes}
    found = []
    for one in itertools.permutations(kernels):
        place_of = {k.name: n for n, k in enumerate(one)}
        if all(place_of[made[name].name] < place_of[k.name] for k in one for name in k.reads):
            found.append(list(one))
    return found


@settings(deadline=None)
@given(programs(most=6))
def test_no_order_needs_less(program: tuple[dict[str, Stored], list[Launch], Pairs]) -> None:
    tensors, kernels, pairs = program
    sizes = {name: stored_bytes(tensor) for name, tensor in tensors.items()}
    found = least_memory_order(kernels, sizes, pairs)
    every = orders(kernels)
    assert found.best
    assert found.launches in every
    # a search among one order's states tells its peak
    assert found.peak == min(ordered_peak(order, sizes, pairs) for order in every)
    assert ordered_peak(found.launches, sizes, pairs) == found.peak


def ordered_peak(kernels: list[Launch], sizes: dict[str, int], pairs: Pairs) -> int:
    """The largest sum of bytes that are live while one of the kernels runs."""
    last = {name: n for n, k in enumerate(kernels) for name in (*k.reads, *k.writes)}
    first = {name: n for n, k in reversed(list(enumerate(kernels))) for name in k.writes}
    most = 0
    for n, one in enumerate(kernels):
        taken: set[str] = set()
        for new in one.writes:
            old = next((o for o in pairs.get(new, ()) if last[o] == n and o not in taken), None)
            taken |= {old} if old is not None else set()
        live = sum(sizes[name] for name in sizes if first[name] <= n <= last[name])
        most = max(most, live - sum(sizes[name] for name in taken))
    return most


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 12), st.integers(0, 4)), max_size=12))
def test_blocks_that_meet_do_not_overlap(drawn: list[tuple[int, int, int]]) -> None:
    blocks = [Block(size, first, first + more) for size, first, more in drawn]
    offsets = place(blocks)
    assert peak(blocks) <= height(blocks, offsets) <= sum(b.bytes for b in blocks)
    for (a, low), (b, high) in itertools.combinations(zip(blocks, offsets, strict=True), 2):
        assert not a.meets(b) or low + a.bytes <= high or high + b.bytes <= low


def test_a_placement_that_no_greedy_order_by_size_finds() -> None:
    """Largest first leaves a hole of 1 below a block of 4."""
    blocks = [Block(4, 0, 2), Block(3, 2, 3), Block(4, 3, 5), Block(1, 0, 1), Block(3, 5, 6), Block(4, 6, 6)]
    assert height(blocks, place(blocks)) == peak(blocks)


def test_a_chain_needs_two_tensors() -> None:
    tensors = {f"t{n}": stored(f"t{n}", (8, 8)) for n in range(10)}
    kernels = [kernel(n, (f"t{n - 1}",) if n else (), (f"t{n}",)) for n in range(10)]
    plan = plan_memory(tensors, kernels, ALLOCATOR)
    assert (len(plan.slots), plan.memory.reused, plan.memory.bound) == (1, 512, 512)


def test_a_chain_in_place_needs_one() -> None:
    tensors = {f"t{n}": stored(f"t{n}", (8, 8)) for n in range(10)}
    kernels = [kernel(n, (f"t{n - 1}",) if n else (), (f"t{n}",)) for n in range(10)]
    plan = plan_memory(tensors, kernels, ALLOCATOR, {f"t{n}": (f"t{n - 1}",) for n in range(1, 10)})
    assert plan.memory.data() == {"reused": 256, "separate": 2560, "bound": 256, "status": "optimal"}


def test_the_large_branch_comes_first() -> None:
    """What needs much and leaves little runs while nothing else is there."""
    sizes = {"a": (1, 1), "b": (1, 1), "large": (64, 64), "end": (1, 1)}
    tensors = {name: stored(name, shape) for name, shape in sizes.items()}
    tensors["x"] = stored("x", (32, 64))
    kernels = [
        kernel(0, (), ("x",)),
        kernel(1, (), ("large",)),
        kernel(2, ("large",), ("a",)),
        kernel(3, ("x",), ("b",)),
        kernel(4, ("a", "b"), ("end",)),
    ]
    plan = plan_memory(tensors, kernels, ALLOCATOR, {})
    assert [k.name for k in plan.launches] == ["k1", "k2", "k0", "k3", "k4"]
    assert plan.memory.bound < plan_memory(tensors, kernels, ALLOCATOR).memory.bound


def test_a_tensor_in_pieces_lives_from_its_first_piece() -> None:
    tensors = {n: stored(n, (8, 8)) for n in ("whole", "other", "end")}
    kernels = [
        kernel(0, (), ("whole",)),
        kernel(1, (), ("other",)),
        kernel(2, ("other",), ("whole",)),
        kernel(3, ("whole",), ("end",)),
    ]
    placement = plan_memory(tensors, kernels, ALLOCATOR).placement
    assert placement["whole"] != placement["other"]


def test_inputs_outputs_and_constants_have_their_own_memory() -> None:
    tensors = {n: stored(n, (8, 8)) for n in ("x", "c", "y")}
    for name, role in (("x", "input"), ("c", "constant"), ("y", "output")):
        tensors[name] = replace(tensors[name], role=role)
    plan = plan_memory(tensors, [kernel(0, ("x", "c"), ("y",))], ALLOCATOR)
    assert (plan.slots, plan.placement) == ([], {})


def test_reading_what_nothing_wrote_is_an_error() -> None:
    with pytest.raises(PlanError, match="k0 reads 't'"):
        plan_memory({"t": stored("t", (4,)), "u": stored("u", (4,))}, [kernel(0, ("t",), ("u",))], ALLOCATOR)

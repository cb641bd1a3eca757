"""Intermediates share memory only while that cannot be noticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartmem_rules.plan.memory import assign_slots, memory_use, stored_bytes
from smartmem_rules.plan.model import Kernel, Layout, PlanError, Stored, row_major
from smartmem_rules.tensor.expr import TensorType

SHAPES = [(4, 8), (8, 8), (3, 5), (16,), (1, 1)]


def stored(name: str, shape: tuple[int, ...], memory: str = "buffer", storage: str = "float32") -> Stored:
    rank = len(shape)
    layout = row_major(rank) if memory == "buffer" else Layout("image", tuple(range(rank)), rank - 1)
    return Stored(name, TensorType("float32", shape), layout, "intermediate", storage)


def kernel(place: int, reads: tuple[str, ...], writes: tuple[str, ...]) -> Kernel:
    return Kernel(f"k{place}", "pointwise", (), (), reads=reads, writes=writes)


@st.composite
def programs(draw: st.DrawFn) -> tuple[dict[str, Stored], list[Kernel]]:
    tensors: dict[str, Stored] = {}
    kernels = []
    for place in range(draw(st.integers(1, 25))):
        reads = tuple(draw(st.lists(st.sampled_from(sorted(tensors)), max_size=3, unique=True))) if tensors else ()
        writes = []
        for number in range(draw(st.integers(1, 2))):
            name = f"t{place}_{number}"
            memory, storage = draw(st.sampled_from(["buffer", "image"])), draw(st.sampled_from(["float32", "float16"]))
            tensors[name] = stored(name, draw(st.sampled_from(SHAPES)), memory, storage)
            writes.append(name)
        kernels.append(kernel(place, reads, tuple(writes)))
    return tensors, kernels


@given(programs())
def test_no_two_live_tensors_share_a_slot(program: tuple[dict[str, Stored], list[Kernel]]) -> None:
    tensors, kernels = program
    slots, placement = assign_slots(tensors, kernels)
    assert set(placement) == set(tensors)
    holds: dict[int, str] = {}
    for one in kernels:
        for name in one.reads:
            assert holds[placement[name]] == name, "overwritten before its last reader"
        for name in one.writes:
            assert all(placement[name] != placement[read] for read in one.reads)
            holds[placement[name]] = name
        assert len({placement[name] for name in one.writes}) == len(one.writes)
    for name, place in placement.items():
        tensor, slot = tensors[name], slots[place]
        assert slot.memory == tensor.layout.memory
        assert stored_bytes(tensor) <= slot.bytes
        if slot.memory == "image":
            assert (slot.size, slot.storage) == (tensor.layout.image_size(tensor.type.shape), tensor.storage)


@given(programs())
def test_the_memory_lies_between_the_bound_and_no_sharing(program: tuple[dict[str, Stored], list[Kernel]]) -> None:
    tensors, kernels = program
    slots, _ = assign_slots(tensors, kernels)
    use = memory_use(tensors, kernels, slots)
    assert use.bound <= use.reused <= use.separate


def test_a_chain_needs_two_buffers() -> None:
    tensors = {f"t{n}": stored(f"t{n}", (8, 8)) for n in range(10)}
    kernels = [kernel(n, (f"t{n - 1}",) if n else (), (f"t{n}",)) for n in range(10)]
    slots, _ = assign_slots(tensors, kernels)
    assert len(slots) == 2
    assert memory_use(tensors, kernels, slots).reused == 512


def test_a_tensor_in_pieces_lives_from_its_first_piece() -> None:
    tensors = {n: stored(n, (8, 8)) for n in ("whole", "other", "end")}
    kernels = [
        kernel(0, (), ("whole",)),
        kernel(1, (), ("other",)),
        kernel(2, ("other",), ("whole",)),
        kernel(3, ("whole",), ("end",)),
    ]
    _, placement = assign_slots(tensors, kernels)
    assert placement["whole"] != placement["other"]


def test_inputs_outputs_and_constants_have_their_own_memory() -> None:
    tensors = {n: stored(n, (8, 8)) for n in ("x", "c", "y")}
    for name, role in (("x", "input"), ("c", "constant"), ("y", "output")):
        tensors[name].role = role
    assert assign_slots(tensors, [kernel(0, ("x", "c"), ("y",))]) == ([], {})


def test_reading_what_nothing_wrote_is_an_error() -> None:
    with pytest.raises(PlanError, match="k0 reads 't'"):
        assign_slots({"t": stored("t", (4,)), "u": stored("u", (4,))}, [kernel(0, ("t",), ("u",))])

"""The memory of keys and values: what is there stays there when it grows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from onnx import TensorProto

from smartmem_rules.decoding.appending import MOST, Appending
from smartmem_rules.decoding.cache import Cache, Sizes
from smartmem_rules.decoding.errors import CacheFullError
from smartmem_rules.decoding.model.interface import CachedTensor
from smartmem_rules.decoding.model.parts import OWN, ROUNDED, parts_of
from smartmem_rules.runtime.devices import Device, choose
from smartmem_rules.runtime.programs.shared_programs import context_on

TENSOR = CachedTensor(past="past", present="present", shape=(0, 3, 0, 4), axis=2, dtype=TensorProto.FLOAT)
NAME = "decoding.past"
ROW = 2 * 3 * 4
"""Elements of a position for two sequences."""


@pytest.fixture
def device() -> Device:
    return choose("auto")


def cache_on(device: Device, twice: bool = False) -> tuple[Cache, Any]:
    context = context_on(device)
    sizes = Sizes(sequences=2, block=4, bound=10)
    return Cache(parts_of(TENSOR, OWN), sizes, device, context, twice), cl.CommandQueue(context, device.handle)


def test_rows_stay_where_they_are_when_the_cache_grows(device: Device) -> None:
    cache, queue = cache_on(device)
    rows = cache.new_rows()
    wanted = np.arange(6 * ROW, dtype=np.float32).reshape(6, ROW)
    capacities = []
    for row in wanted:
        cache.reserve(cache.length + 1, queue)
        cl.enqueue_copy(queue, rows[NAME], row)
        cache.append(rows, [cache.length] * 2, queue)
        capacities.append(cache.capacity)
    found = np.empty_like(wanted)
    cl.enqueue_copy(queue, found, cache.buffers[NAME])
    assert (found == wanted).all()
    assert capacities == [4, 4, 4, 4, 8, 8]
    assert cache.bytes == 8 * ROW * 4


def test_sequences_of_different_lengths_get_their_rows_behind_what_they_have(device: Device) -> None:
    """More buffers than one launch takes, one of them with rows that are no whole words."""
    context = context_on(device)
    queue = cl.CommandQueue(context, device.handle)
    rows = {f"part {i}": 3 * 4 * (1 + i % 3) for i in range(MOST + 2)} | {"bytes": 3 * 5}
    sizes = {name: 6 * size for name, size in rows.items()}
    draws = np.random.default_rng(0)
    wanted = {name: draws.integers(1, 255, size, np.uint8) for name, size in sizes.items()}
    new = {name: draws.integers(1, 255, size, np.uint8) for name, size in rows.items()}
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    given = {name: cl.Buffer(context, flags, hostbuf=value) for name, value in new.items()}
    held = {name: cl.Buffer(context, flags, hostbuf=value) for name, value in wanted.items()}
    places = [4, 4, 1]
    Appending(rows, 3, device, context).enqueue(given, held, places, queue)
    for name, value in wanted.items():
        for sequence, place in enumerate(places):
            value.reshape(6, 3, -1)[place, sequence] = new[name].reshape(3, -1)[sequence]
        found = np.empty_like(value)
        cl.enqueue_copy(queue, found, held[name])
        assert (found == value).all(), name


def test_the_last_block_ends_at_the_bound_and_nothing_lies_beyond(device: Device) -> None:
    cache, queue = cache_on(device)
    cache.reserve(9, queue)
    assert cache.capacity == 10
    with pytest.raises(CacheFullError, match="bound to 10 tokens of each sequence, and 11 are needed"):
        cache.reserve(11, queue)
    assert cache.capacity == 10


def test_a_cache_that_is_written_anew_has_two_buffers(device: Device) -> None:
    cache, queue = cache_on(device, twice=True)
    cache.reserve(3, queue)
    first, second = cache.buffers[NAME], cache.spare[NAME]
    cache.swap()
    assert (cache.buffers[NAME], cache.spare[NAME], cache.length) == (second, first, 1)
    assert cache.bytes == 2 * 4 * ROW * 4


def test_a_row_of_each_sequence_goes_to_its_own_place(device: Device) -> None:
    cache, queue = cache_on(device)
    cache.reserve(4, queue)
    rows = cache.new_rows()
    cl.enqueue_copy(queue, cache.buffers[NAME], np.zeros(4 * ROW, np.float32))
    cl.enqueue_copy(queue, rows[NAME], wanted := np.arange(1, ROW + 1, dtype=np.float32))
    cache.append(rows, [3, 1], queue)
    found = np.empty((4, 2, ROW // 2), np.float32)
    cl.enqueue_copy(queue, found, cache.buffers[NAME])
    assert (found[3, 0] == wanted[: ROW // 2]).all()
    assert (found[1, 1] == wanted[ROW // 2 :]).all()
    assert found.sum() == wanted.sum()


def test_a_token_takes_a_row_of_each_part(device: Device) -> None:
    cache, _ = cache_on(device, twice=True)
    assert cache.bytes_per_token == 2 * ROW * 4
    assert sum(part.row_bytes(2) for part in parts_of(TENSOR, ROUNDED)) == ROW + 2 * 3 * 4

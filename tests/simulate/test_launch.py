"""Small kernels whose accesses, lines and misses are worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from smartmem_rules.simulate.caches import Cache
from smartmem_rules.simulate.launch import PRIVATE, Window, residents, simulate_window, trace
from smartmem_rules.simulate.source import SimulationError
from tests.simulate.kernels import all_groups, buffer, device, image, launch

BUFFERS = "__global const float* restrict p0, __global float* restrict p1"


def whole(one, on):
    return simulate_window(one, Window(all_groups(one)), on)


def test_a_copy_asks_for_each_line_once_and_wave():
    on = device()
    body = "const int item = (int)get_global_id(0); p1[item] = p0[item];"
    one = launch(BUFFERS, body, [buffer("x", 32), buffer("y", 32)], {"y"}, (32,), (4,), on)
    counts = whole(one, on)
    assert counts.element_accesses == 64
    # 8 waves of 16 bytes each: one line a wave and tensor; 32 floats fill 2 lines of each tensor
    assert counts.requests == 16
    assert {n: len(t.lines) for n, t in counts.tensors.items()} == {"x": 2, "y": 2}
    assert {n: (t.first, t.again, t.written) for n, t in counts.tensors.items()} == {
        "x": (2, 0, False), "y": (2, 0, True),
    }  # fmt: skip
    assert counts.l1_requests == 0


def test_strided_reads_ask_for_a_line_each():
    on = device()
    body = "const int item = (int)get_global_id(0); p1[item] = p0[item * 16];"
    one = launch(BUFFERS, body, [buffer("x", 512), buffer("y", 32)], {"y"}, (32,), (4,), on)
    counts = whole(one, on)
    assert counts.requests == 32 + 8
    assert len(counts.tensors["x"].lines) == 32


def test_idle_work_items_access_nothing():
    on = device()
    body = "const int item = (int)get_global_id(0); if (item >= 5) return; p1[item] = p0[item];"
    one = launch(BUFFERS, body, [buffer("x", 8), buffer("y", 8)], {"y"}, (8,), (4,), on)
    assert whole(one, on).element_accesses == 10


def test_what_is_known_of_a_condition_holds_where_the_rest_depends_on_memory():
    on = device()
    body = (
        "const int item = (int)get_global_id(0); float t = 0.0f;"
        "if (item < 5 && p0[item + 8] > 0.0f) { t = p0[item]; } else { t = p0[item + 16]; } p1[item] = t;"
    )
    one = launch(BUFFERS, body, [buffer("x", 24), buffer("y", 8)], {"y"}, (8,), (4,), on)
    # the condition is read by 8, the first branch runs at most 5, the second and the write 8 each
    assert whole(one, on).element_accesses == 8 + 5 + 8 + 8


def test_vectors_that_straddle_lines_ask_for_both():
    on = device()
    body = (
        "const int item = (int)get_global_id(0);"
        "const float4 t = *(__global const smr_float4*)(p0 + (item * 4 + 14)); p1[item] = t.s0;"
    )
    one = launch(BUFFERS, body, [buffer("x", 64), buffer("y", 4)], {"y"}, (4,), (4,), on)
    # floats 14..29: the lines 0 and 1; and one line that is written
    assert whole(one, on).requests == 3


def test_texels_lie_in_blocks():
    on = device()
    # 16 bytes a texel: blocks of 4 x 4 texels, lines of 2 x 2 in rows of a block
    x, y = np.array([0, 1, 2, 3, 0, 0, 4, 0]), np.array([0, 1, 0, 3, 2, 4, 0, 5])
    # an image of 8 texels has two blocks a row
    assert on.texel_lines(x, y, 16, 8).tolist() == [0, 0, 1, 3, 2, 8, 4, 8]
    # 8 bytes a texel: blocks of 8 x 4, lines of 4 x 2
    assert on.texel_lines(np.array([3, 4, 7, 8]), np.array([1, 0, 2, 0]), 8, 16).tolist() == [0, 1, 3, 4]
    assert on.image_lines(16, 5, 5) == 2 * 2 * 4


def test_texture_caches_keep_what_the_next_row_needs():
    parameters = "read_only image2d_t p0, __global float* restrict p1"
    body = """
        const int item = (int)get_global_id(0);
        float t = 0.0f;
        for (int i0 = 0; i0 < 2; ++i0) {
            const float4 t1 = read_imagef(p0, smr_sampler, (int2)(item, i0));
            t = t + t1.s0;
        }
        p1[item] = t;
    """
    for lines, hits in ((2, 2), (1, 0)):
        on = device(l1=Cache(lines * 64, lines, 64), texture_units=1)
        one = launch(parameters, body, [image("x", 2, 4), buffer("y", 4)], {"y"}, (4,), (4,), on)
        counts = whole(one, on)
        # four texels of a row are two lines of 2 x 2; the second row lies in the same two, if the cache holds both
        assert (counts.l1_requests, counts.l1_misses) == (4, 4 - hits)
        assert counts.texel_bytes == 8 * 16
        assert counts.tensors["x"].first == 2


def test_reads_outside_an_image_touch_nothing():
    parameters = "read_only image2d_t p0, __global float* restrict p1"
    body = "const int item = (int)get_global_id(0); p1[item] = read_imagef(p0, smr_sampler, (int2)(item - 1, 0)).s0;"
    on = device()
    one = launch(parameters, body, [image("x", 1, 2), buffer("y", 4)], {"y"}, (4,), (4,), on)
    assert whole(one, on).element_accesses == 2 + 4


def test_what_does_not_change_in_a_loop_is_read_once():
    body = """
        const int item = (int)get_global_id(0);
        float t = 0.0f;
        for (int i0 = 0; i0 < 3; ++i0) {
            for (int i1 = 0; i1 < 5; ++i1) {
                t += p0[i0] * p0[i0];
            }
        }
        p1[item] = t;
    """
    on = device()
    one = launch(BUFFERS, body, [buffer("x", 4), buffer("y", 4)], {"y"}, (4,), (4,), on)
    assert whole(one, on).element_accesses == 4 * (3 + 1)
    plain = trace(one, Window(all_groups(one)), on, merge=False)
    assert sum(int(a.mask.sum()) for a in plain) == 4 * (3 * 5 * 2 + 1)


def test_what_the_kernel_writes_is_read_each_time():
    body = "const int item = (int)get_global_id(0); for (int i = 0; i < 3; ++i) { p0[item] = p0[item] + 1.0f; }"
    on = device()
    one = launch("__global float* restrict p0", body, [buffer("x", 4)], {"x"}, (4,), (4,), on)
    assert whole(one, on).element_accesses == 4 * 3 * 2


def test_bounds_that_differ_by_work_item():
    body = """
        const int item = (int)get_global_id(0);
        for (int i0 = item * 3; i0 < min((item + 1) * 3, 10); ++i0) { p1[i0] = p0[i0]; }
    """
    on = device()
    one = launch(BUFFERS, body, [buffer("x", 10), buffer("y", 10)], {"y"}, (4,), (4,), on)
    assert whole(one, on).element_accesses == 20


def test_steps_that_hand_on_a_number_are_followed_one_by_one():
    body = """
        const int item = (int)get_global_id(0);
        int at = item;
        for (int i0 = 0; i0 < 3; ++i0) { p1[at] = p0[at]; at += 4; }
        for (int s = 2; s > 0; s >>= 1) { if (item < s) { p1[item] = p0[item + s]; } }
    """
    on = device()
    one = launch(BUFFERS, body, [buffer("x", 16), buffer("y", 16)], {"y"}, (4,), (4,), on)
    seen = trace(one, Window(all_groups(one)), on, merge=False)
    reads = sorted(int(v) for a in seen if not a.write for v in a.place[0][a.mask.astype(bool)])
    assert reads == sorted([*range(12), 2, 3, 1])


def test_arrays_of_work_items_lie_in_registers_or_in_memory():
    body = """
        const int item = (int)get_global_id(0);
        float t[ELEMENTS];
        for (int i = 0; i < ELEMENTS; ++i) { t[i] = p0[i]; }
        p1[item] = t[item];
    """
    on = device()
    for elements, memory in ((16, False), (32, True)):
        tensors = [buffer("x", 32), buffer("y", 4)]
        one = launch(BUFFERS, body.replace("ELEMENTS", str(elements)), tensors, {"y"}, (4,), (4,), on)
        assert (PRIVATE in whole(one, on).tensors) == memory


def test_local_memory_is_no_memory_traffic():
    body = """
        __local float tile[4];
        const int thread = (int)get_local_id(0);
        tile[thread] = p0[get_global_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        p1[get_global_id(0)] = tile[3 - thread];
    """
    on = device()
    one = launch(BUFFERS, body, [buffer("x", 8), buffer("y", 8)], {"y"}, (8,), (4,), on)
    assert whole(one, on).element_accesses == 16
    assert whole(one, on).local_bytes == 2 * 8 * 4


def test_local_memory_bounds_the_work_groups_of_a_unit():
    body = "__local ushort2 tile[SIZE]; __local float last; p1[get_global_id(0)] = p0[get_global_id(0)];"
    on = device(resident_waves=8)
    for size, groups in ((4, 8), (63, 4), (64, 3), (1000, 1)):
        tensors = [buffer("x", 8), buffer("y", 8)]
        one = launch(BUFFERS, body.replace("SIZE", str(size)), tensors, {"y"}, (8,), (4,), on)
        assert one.text.local_bytes == 4 * size + 4
        assert residents(one, on) == groups


def test_indices_from_a_constant_are_its_values():
    table = np.array([3, 1, 1, 0], dtype=np.int64)
    stored = replace(buffer("rows", 4, "int64"), role="constant", packed=table)
    body = "const int item = (int)get_global_id(0); p2[item] = p0[smr_wrap((int)p1[item], 4) * 16];"
    parameters = "__global const float* restrict p0, __global const long* restrict p1, __global float* restrict p2"
    on = device()
    one = launch(parameters, body, [buffer("x", 64), stored, buffer("y", 4)], {"y"}, (4,), (4,), on)
    counts = whole(one, on)
    assert (counts.tensors["x"].lines & 0xFFFF).tolist() == [0, 1, 3]


def test_what_is_not_followed_is_said():
    on = device()
    body = "const int item = (int)get_global_id(0); p1[item] = other(p0);"
    one = launch(BUFFERS, body, [buffer("x", 4), buffer("y", 4)], {"y"}, (4,), (4,), on)
    with pytest.raises(SimulationError, match="hands a pointer to other"):
        whole(one, on)


def test_text_that_is_no_kernel():
    with pytest.raises(SimulationError, match="cannot be read"):
        launch("", "int 3x = ;", [], set(), (4,), (4,), device())


WORDS = "__global const ushort* restrict p0, __global ushort* restrict p1"


def test_words_over_a_tensor_of_16_bits_are_as_many_elements_as_they_hold():
    on = device()
    body = (
        "const int item = (int)get_global_id(0); ((__global uint2*)(p1))[item] = ((__global const uint2*)(p0))[item];"
    )
    tensors = [buffer("x", 64, "bfloat16"), buffer("y", 64, "bfloat16")]
    one = launch(WORDS, body, tensors, {"y"}, (16,), (4,), on)
    # 16 times 8 bytes
    assert {n: len(t.lines) for n, t in whole(one, on).tensors.items()} == {"x": 2, "y": 2}


def test_parts_of_a_tensors_elements_are_not_followed():
    on = device()
    body = "const int item = (int)get_global_id(0); p1[item] = ((__global const uchar*)(p0))[item];"
    with pytest.raises(SimulationError, match="parts of the elements"):
        whole(
            launch(WORDS, body, [buffer("x", 32, "bfloat16"), buffer("y", 32, "bfloat16")], {"y"}, (8,), (4,), on), on
        )

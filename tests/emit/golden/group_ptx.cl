// k0_contraction: global (128,), local (128,)
// Contractions for GPUs with local memory. A work-group owns 32 x 32 sums. Tiles of both factors, 64 deep, lie in local
// memory; the next tiles are loaded while these are multiplied.
//   1. All work-items compute what the rows of the left factor need, a team for each row: the statistics of a normalisation,
//      or the scores of an attention and their softmax.
//   2. 4 slices of sub-groups of 32 work-items share the depth of a tile (slice-K). A sub-group owns 32 x 32 sums.
//   3. The sums of several slices are added in local memory; those of one slice stay in registers. Every work-item then
//      runs the epilogue of some sums, four columns at a time.
// The matrix unit nvidia_tf32 multiplies the tiles.
#ifndef SMR_UNIT_nvidia_tf32
#define SMR_UNIT_nvidia_tf32
typedef float __attribute__((may_alias)) nvidia_tf32_element; // sums take the place of tiles in local memory
typedef float4 nvidia_tf32_sums;
#define nvidia_tf32_no_sums ((nvidia_tf32_sums)(0))
#define nvidia_tf32_mma(C, A, B)                                                                              \
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 { %0,%1,%2,%3}, { %4,%5,%6,%7}, { %8,%9}, { %0,%1,%2,%3};"  \
        : "+f"(C.s0), "+f"(C.s1), "+f"(C.s2), "+f"(C.s3) \
        : "r"(A.s0), "r"(A.s1), "r"(A.s2), "r"(A.s3), "r"(B.s0), "r"(B.s1))
typedef struct { uint4 high, low; } nvidia_tf32_left;
typedef struct { uint2 high, low; } nvidia_tf32_right;
static inline uint nvidia_tf32_high(float x) {
    uint high;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(high) : "f"(x));
    return high;
}
// A part that is rounded, and the rest. The parts of an infinity are 1 and the infinity: no product of parts is then an
// infinity times the 0 that is the rest of another float. What would be rounded to an infinity is cut off instead.
static inline void nvidia_tf32_parts_any(float x, uint* high, uint* low) {
    uint part = nvidia_tf32_high(x);
    if (isinf(as_float(part))) part = as_uint(x) & (isinf(x) ? 0xbf800000u : 0xffffe000u);
    *high = part;
    *low = as_uint(x - as_float(part));
}
// The same parts of floats that are not rounded to an infinity, by fewer instructions. A part of NaN is NaN.
static inline void nvidia_tf32_parts(float x, uint* high, uint* low) {
    *high = as_uint(x) + 0x1000u & 0xffffe000u;
    *low = as_uint(x - as_float(*high));
}
// Elements of tiles; the text around it declares `largest`, the largest magnitude that a work-item has seen.
#define nvidia_tf32_keep(P, X) { \
        const float kept = X; \
        *(P) = kept; \
        largest = fmax(largest, fabs(kept)); \
    }
#define nvidia_tf32_keep4(P, X) { \
        const float4 kept = X; \
        *(__local float4*)(P) = kept; \
        largest = fmax(fmax(fmax(largest, fabs(kept.s0)), fmax(fabs(kept.s1), fabs(kept.s2))), fabs(kept.s3)); \
    }
#define nvidia_tf32_pass_0(C, A, B) nvidia_tf32_mma(C, A.low, B.high)
#define nvidia_tf32_pass_1(C, A, B) nvidia_tf32_mma(C, A.high, B.low)
#define nvidia_tf32_pass_2(C, A, B) nvidia_tf32_mma(C, A.high, B.high)
#define nvidia_tf32_multiply(PASS, C, A, B) nvidia_tf32_pass_##PASS(C, A, B)
static inline nvidia_tf32_left nvidia_tf32_load_left(__local const float* tile, int stride, int lane) {
    __local const float* at = tile + (lane / 4 % 8 * 1) * stride + lane / 1 % 4 * 1;
    nvidia_tf32_left a;
    uint high, low;
    nvidia_tf32_parts(at[0 * stride + 0], &high, &low);
    a.high.s0 = high;
    a.low.s0 = low;
    nvidia_tf32_parts(at[8 * stride + 0], &high, &low);
    a.high.s1 = high;
    a.low.s1 = low;
    nvidia_tf32_parts(at[0 * stride + 4], &high, &low);
    a.high.s2 = high;
    a.low.s2 = low;
    nvidia_tf32_parts(at[8 * stride + 4], &high, &low);
    a.high.s3 = high;
    a.low.s3 = low;
    return a;
}
static inline nvidia_tf32_right nvidia_tf32_split(float x0, float x1) {
    nvidia_tf32_right b;
    uint high, low;
    nvidia_tf32_parts(x0, &high, &low);
    b.high.s0 = high;
    b.low.s0 = low;
    nvidia_tf32_parts(x1, &high, &low);
    b.high.s1 = high;
    b.low.s1 = low;
    return b;
}
static inline void nvidia_tf32_load_rights(nvidia_tf32_right* first, nvidia_tf32_right* second, __local const float* tile, int stride, int lane) {
    __local const float* at = tile + (lane / 1 % 4 * 1) * stride + lane / 4 % 8 * 1;
    *first = nvidia_tf32_split(at[0], at[4 * stride + 0]);
    *second = nvidia_tf32_split(at[8], at[4 * stride + 0 + 8]);
}
static inline void nvidia_tf32_load_rights_turned(nvidia_tf32_right* first, nvidia_tf32_right* second, __local const float* tile, int stride, int lane) {
    __local const float* at = tile + (lane / 4 % 8 * 1) * stride + lane / 1 % 4 * 1;
    *first = nvidia_tf32_split(at[0], at[0 * stride + 4]);
    *second = nvidia_tf32_split(at[8 * stride], at[8 * stride + 0 * stride + 4]);
}
static inline nvidia_tf32_left nvidia_tf32_load_left_any(__local const float* tile, int stride, int lane) {
    __local const float* at = tile + (lane / 4 % 8 * 1) * stride + lane / 1 % 4 * 1;
    nvidia_tf32_left a;
    uint high, low;
    nvidia_tf32_parts_any(at[0 * stride + 0], &high, &low);
    a.high.s0 = high;
    a.low.s0 = low;
    nvidia_tf32_parts_any(at[8 * stride + 0], &high, &low);
    a.high.s1 = high;
    a.low.s1 = low;
    nvidia_tf32_parts_any(at[0 * stride + 4], &high, &low);
    a.high.s2 = high;
    a.low.s2 = low;
    nvidia_tf32_parts_any(at[8 * stride + 4], &high, &low);
    a.high.s3 = high;
    a.low.s3 = low;
    return a;
}
static inline nvidia_tf32_right nvidia_tf32_split_any(float x0, float x1) {
    nvidia_tf32_right b;
    uint high, low;
    nvidia_tf32_parts_any(x0, &high, &low);
    b.high.s0 = high;
    b.low.s0 = low;
    nvidia_tf32_parts_any(x1, &high, &low);
    b.high.s1 = high;
    b.low.s1 = low;
    return b;
}
static inline void nvidia_tf32_load_rights_any(nvidia_tf32_right* first, nvidia_tf32_right* second, __local const float* tile, int stride, int lane) {
    __local const float* at = tile + (lane / 1 % 4 * 1) * stride + lane / 4 % 8 * 1;
    *first = nvidia_tf32_split_any(at[0], at[4 * stride + 0]);
    *second = nvidia_tf32_split_any(at[8], at[4 * stride + 0 + 8]);
}
static inline void nvidia_tf32_load_rights_turned_any(nvidia_tf32_right* first, nvidia_tf32_right* second, __local const float* tile, int stride, int lane) {
    __local const float* at = tile + (lane / 4 % 8 * 1) * stride + lane / 1 % 4 * 1;
    *first = nvidia_tf32_split_any(at[0], at[0 * stride + 4]);
    *second = nvidia_tf32_split_any(at[8 * stride], at[8 * stride + 0 * stride + 4]);
}
static inline void nvidia_tf32_store(__local float* tile, int stride, int lane, nvidia_tf32_sums c) {
    __local float2* at = (__local float2*)(tile + (lane / 4 % 8 * 1) * stride + lane / 1 % 4 * 2);
    at[0] = c.s01;
    at[(8 * stride + 0) / 2] = c.s23;
}
#endif

__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void smr_kernel(
    __global const float* restrict p0 /* buffer[d0] of [24] */,
    __global const float* restrict p1 /* buffer[d0d1] of [10, 48] */,
    __global const float* restrict p2 /* buffer[d0d1] of [48, 32] */,
    __global float* restrict p3 /* buffer[d0d1] of [10, 24] */) {
    __local float memory[9472] __attribute__((aligned(16)));
    __local int rare[2] __attribute__((aligned(16)));
    const int group = ((int)get_group_id(0)) & 0x7fffffff;
    const int thread = (int)get_local_id(0) & 127;
    const int column_tile = group % 1;
    const int first_row = group / 1 % 1 * 32;
    const int i0 = group / 1;
    const int lane = thread % 32;
    const int warp = thread / 32 % 1;
    const int slice = thread / 32;
    const int warp_row = warp / 1 * 32;
    const int warp_column = warp % 1 * 32;
     {
    }
    float4 left_next[4];
    float4 right_next[4];
    nvidia_tf32_sums c0 = nvidia_tf32_no_sums;
    nvidia_tf32_sums c1 = nvidia_tf32_no_sums;
    nvidia_tf32_sums c2 = nvidia_tf32_no_sums;
    nvidia_tf32_sums c3 = nvidia_tf32_no_sums;
    nvidia_tf32_sums c4 = nvidia_tf32_no_sums;
    nvidia_tf32_sums c5 = nvidia_tf32_no_sums;
    nvidia_tf32_sums c6 = nvidia_tf32_no_sums;
    nvidia_tf32_sums c7 = nvidia_tf32_no_sums;
    // Two flags, so that a turn's flag is not written while another sub-group reads it.
    float largest = 0.0f;
    if (thread < 2) rare[thread] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    __local nvidia_tf32_element* const left_tiles = (__local nvidia_tf32_element*)memory;
    __local nvidia_tf32_element* const right_tiles = left_tiles + 4352;
    {
        const int step = 0;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot / 16;
                const int i2 = min(first_row + at, 9);
                const int depth = step * 16 + slot % 16;
                const int i3 = min(depth, 11);
                const float4 t1 = *(__global const float4*)(p1 + (i2 * 48 + i3 * 4));
                left_next[e] = depth < 12 ? t1 : 0.0f;
            }
        }
    }
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot % 8;
                const int i4 = min((column_tile * 32) / 4 + at, 7);
                const int depth = step * 64 + slot / 8;
                const int i5 = min(depth, 47);
                const float4 t2 = *(__global const float4*)(p2 + (i4 * 4 + i5 * 32));
                right_next[e] = depth < 48 ? t2 : 0.0f;
            }
        }
    }
    }
    for (int turn = 0; turn < 1; ++turn) {
        __local nvidia_tf32_element* left = left_tiles + (turn & 1) * 2176;
        __local nvidia_tf32_element* right = right_tiles + (turn & 1) * 2560;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                nvidia_tf32_keep4(left + (slot / 16) * 68 + slot % 16 * 4 + 0, left_next[e]);
            }
        }
    }
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                nvidia_tf32_keep4(right + (slot / 8) * 40 + slot % 8 * 4 + 0, right_next[e]);
            }
        }
    }
        if (largest >= as_float(0x7f7ff000u)) rare[turn & 1] = 1;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (turn + 1 < 1) {
            const int step = turn + 1;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot / 16;
                const int i2 = min(first_row + at, 9);
                const int depth = step * 16 + slot % 16;
                const int i3 = min(depth, 11);
                const float4 t1 = *(__global const float4*)(p1 + (i2 * 48 + i3 * 4));
                left_next[e] = depth < 12 ? t1 : 0.0f;
            }
        }
    }
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot % 8;
                const int i4 = min((column_tile * 32) / 4 + at, 7);
                const int depth = step * 64 + slot / 8;
                const int i5 = min(depth, 47);
                const float4 t2 = *(__global const float4*)(p2 + (i4 * 4 + i5 * 32));
                right_next[e] = depth < 48 ? t2 : 0.0f;
            }
        }
    }
        }
        const int depth = slice * 16;
        if (rare[turn & 1]) {
        #pragma unroll
        for (int k = 0; k < 16; k += 8) {
            __local const nvidia_tf32_element* a = left + warp_row * 68 + depth + k;
            __local const nvidia_tf32_element* b = right + (depth + k) * 40 + warp_column;
            const nvidia_tf32_left a0 = nvidia_tf32_load_left_any(a + 0, 68, lane);
            const nvidia_tf32_left a1 = nvidia_tf32_load_left_any(a + 1088, 68, lane);
            nvidia_tf32_right b0, b1;
            nvidia_tf32_load_rights_any(&b0, &b1, b + 0, 40, lane);
            nvidia_tf32_right b2, b3;
            nvidia_tf32_load_rights_any(&b2, &b3, b + 16, 40, lane);
            nvidia_tf32_multiply(0, c0, a0, b0);
            nvidia_tf32_multiply(0, c1, a0, b1);
            nvidia_tf32_multiply(0, c2, a0, b2);
            nvidia_tf32_multiply(0, c3, a0, b3);
            nvidia_tf32_multiply(0, c4, a1, b0);
            nvidia_tf32_multiply(0, c5, a1, b1);
            nvidia_tf32_multiply(0, c6, a1, b2);
            nvidia_tf32_multiply(0, c7, a1, b3);
            nvidia_tf32_multiply(1, c0, a0, b0);
            nvidia_tf32_multiply(1, c1, a0, b1);
            nvidia_tf32_multiply(1, c2, a0, b2);
            nvidia_tf32_multiply(1, c3, a0, b3);
            nvidia_tf32_multiply(1, c4, a1, b0);
            nvidia_tf32_multiply(1, c5, a1, b1);
            nvidia_tf32_multiply(1, c6, a1, b2);
            nvidia_tf32_multiply(1, c7, a1, b3);
            nvidia_tf32_multiply(2, c0, a0, b0);
            nvidia_tf32_multiply(2, c1, a0, b1);
            nvidia_tf32_multiply(2, c2, a0, b2);
            nvidia_tf32_multiply(2, c3, a0, b3);
            nvidia_tf32_multiply(2, c4, a1, b0);
            nvidia_tf32_multiply(2, c5, a1, b1);
            nvidia_tf32_multiply(2, c6, a1, b2);
            nvidia_tf32_multiply(2, c7, a1, b3);

        }
        }
        else {
        #pragma unroll
        for (int k = 0; k < 16; k += 8) {
            __local const nvidia_tf32_element* a = left + warp_row * 68 + depth + k;
            __local const nvidia_tf32_element* b = right + (depth + k) * 40 + warp_column;
            const nvidia_tf32_left a0 = nvidia_tf32_load_left(a + 0, 68, lane);
            const nvidia_tf32_left a1 = nvidia_tf32_load_left(a + 1088, 68, lane);
            nvidia_tf32_right b0, b1;
            nvidia_tf32_load_rights(&b0, &b1, b + 0, 40, lane);
            nvidia_tf32_right b2, b3;
            nvidia_tf32_load_rights(&b2, &b3, b + 16, 40, lane);
            nvidia_tf32_multiply(0, c0, a0, b0);
            nvidia_tf32_multiply(0, c1, a0, b1);
            nvidia_tf32_multiply(0, c2, a0, b2);
            nvidia_tf32_multiply(0, c3, a0, b3);
            nvidia_tf32_multiply(0, c4, a1, b0);
            nvidia_tf32_multiply(0, c5, a1, b1);
            nvidia_tf32_multiply(0, c6, a1, b2);
            nvidia_tf32_multiply(0, c7, a1, b3);
            nvidia_tf32_multiply(1, c0, a0, b0);
            nvidia_tf32_multiply(1, c1, a0, b1);
            nvidia_tf32_multiply(1, c2, a0, b2);
            nvidia_tf32_multiply(1, c3, a0, b3);
            nvidia_tf32_multiply(1, c4, a1, b0);
            nvidia_tf32_multiply(1, c5, a1, b1);
            nvidia_tf32_multiply(1, c6, a1, b2);
            nvidia_tf32_multiply(1, c7, a1, b3);
            nvidia_tf32_multiply(2, c0, a0, b0);
            nvidia_tf32_multiply(2, c1, a0, b1);
            nvidia_tf32_multiply(2, c2, a0, b2);
            nvidia_tf32_multiply(2, c3, a0, b3);
            nvidia_tf32_multiply(2, c4, a1, b0);
            nvidia_tf32_multiply(2, c5, a1, b1);
            nvidia_tf32_multiply(2, c6, a1, b2);
            nvidia_tf32_multiply(2, c7, a1, b3);

        }
        }
    }

    barrier(CLK_LOCAL_MEM_FENCE);
    {
        __local float* sums = memory + slice * 1152;
        nvidia_tf32_store(sums + (warp_row + 0) * 36 + warp_column + 0, 36, lane, c0);
        nvidia_tf32_store(sums + (warp_row + 0) * 36 + warp_column + 8, 36, lane, c1);
        nvidia_tf32_store(sums + (warp_row + 0) * 36 + warp_column + 16, 36, lane, c2);
        nvidia_tf32_store(sums + (warp_row + 0) * 36 + warp_column + 24, 36, lane, c3);
        nvidia_tf32_store(sums + (warp_row + 16) * 36 + warp_column + 0, 36, lane, c4);
        nvidia_tf32_store(sums + (warp_row + 16) * 36 + warp_column + 8, 36, lane, c5);
        nvidia_tf32_store(sums + (warp_row + 16) * 36 + warp_column + 16, 36, lane, c6);
        nvidia_tf32_store(sums + (warp_row + 16) * 36 + warp_column + 24, 36, lane, c7);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int first_place = thread; first_place < 256; first_place += 256) {
        const int first_of_turns = first_row + first_place / 8;
        const int tile_column = first_place % 8 * 4;
if (first_of_turns < 10) {
{
                const int i6 = (column_tile - 0) * 8 + tile_column / 4;
if (i6 < 6) {
                float4 kept0[2];
                #pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int place = first_place + e * 128;
                    const int tile_row = place / 8;
                    const int i1 = first_row + tile_row < 10 ? first_row + tile_row : first_of_turns;
        __local const float* sums = memory + place / 8 * 36 + place % 8 * 4;
        float4 finished = *(__local const float4*)sums;
        finished += *(__local const float4*)(sums + 1152);
        finished += *(__local const float4*)(sums + 2304);
        finished += *(__local const float4*)(sums + 3456);

     {
        const float4 t3 = *(__global const float4*)(p0 + i6 * 4);
        const float4 t4 = (finished + t3);
        const float4 t5 = smr_max4(t4, (float4)(0.0f));
        kept0[e] = t5;
    }
                }
                #pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int place = first_place + e * 128;
                    const int tile_row = place / 8;
                    const int i1 = first_row + tile_row;
if (i1 < 10) {
     {
        *(__global float4*)(p3 + (i1 * 24 + i6 * 4)) = kept0[e];
    }
                    }
                }
                }
            }
        }
    }
}

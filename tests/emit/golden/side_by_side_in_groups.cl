// k0_contraction: global (256,), local (128,)
#ifndef smr_part_91942f6386a6_DEFINED
#define smr_part_91942f6386a6_DEFINED
// Contractions for GPUs with local memory. A work-group owns 32 x 64 sums. Tiles of both factors, 32 deep, lie in local
// memory; the next tiles are loaded while these are multiplied.
//   1. All work-items compute what the rows of the left factor need, a team for each row: the statistics of a normalisation,
//      or the scores of an attention and their softmax.
//   2. 2 slices of sub-groups of 32 work-items share the depth of a tile (slice-K). A sub-group owns 32 x 32 sums.
//   3. The sums of several slices are added in local memory; those of one slice stay in registers. Every work-item then
//      runs the epilogue of some sums, four columns at a time.

static void smr_part_91942f6386a6(
    __global const float* restrict p0 /* buffer[d0d1] of [12, 16] */,
    __global const float* restrict p1 /* buffer[d0d1] of [16, 64] */,
    __global float* restrict p2 /* buffer[d0d1] of [12, 16] */,
    const int item, const int group, __local float* smr_local) {
    __local float* memory = (__local float*)(smr_local + 0);
    const int thread = (int)get_local_id(0) & 127;
    const int column_tile = group % 1;
    const int first_row = group / 1 % 1 * 32;
    const int i0 = group / 1;
    const int lane = thread % 32;
    const int warp = thread / 32 % 2;
    const int slice = thread / 64;
    const int warp_row = warp / 2 * 32;
    const int warp_column = warp % 2 * 32;
     {
    }
    float4 left_next[2];
    float4 right_next[4];
    float4 c0 = 0.0f;
    float4 c1 = 0.0f;
    float4 c2 = 0.0f;
    float4 c3 = 0.0f;
    float4 c4 = 0.0f;
    float4 c5 = 0.0f;
    float4 c6 = 0.0f;
    float4 c7 = 0.0f;
    {
        const int step = 0;
     {
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot / 8;
                const int i2 = min(first_row + at, 11);
                const int depth = step * 8 + slot % 8;
                const int i3 = min(depth, 3);
                const float4 t1 = *(__global const float4*)(p0 + (i2 * 16 + i3 * 4));
                left_next[e] = depth < 4 ? t1 : 0.0f;
            }
        }
    }
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot % 16;
                const int i4 = min((column_tile * 64) / 4 + at, 15);
                const int depth = step * 32 + slot / 16;
                const int i5 = min(depth, 15);
                const float4 t2 = *(__global const float4*)(p1 + (i4 * 4 + i5 * 64));
                right_next[e] = depth < 16 ? t2 : 0.0f;
            }
        }
    }
    }
    for (int turn = 0; turn < 1; ++turn) {
        __local float* left = memory + (turn & 1) * 3456;
        __local float* right = left + 1152;
     {
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int slot = e * 128 + thread;
             {
                *(__local float4*)(left + (slot / 8) * 36 + slot % 8 * 4 + 0) = left_next[e];
            }
        }
    }
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                *(__local float4*)(right + (slot / 16) * 72 + slot % 16 * 4 + 0) = right_next[e];
            }
        }
    }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (turn + 1 < 1) {
            const int step = turn + 1;
     {
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot / 8;
                const int i2 = min(first_row + at, 11);
                const int depth = step * 8 + slot % 8;
                const int i3 = min(depth, 3);
                const float4 t1 = *(__global const float4*)(p0 + (i2 * 16 + i3 * 4));
                left_next[e] = depth < 4 ? t1 : 0.0f;
            }
        }
    }
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot % 16;
                const int i4 = min((column_tile * 64) / 4 + at, 15);
                const int depth = step * 32 + slot / 16;
                const int i5 = min(depth, 15);
                const float4 t2 = *(__global const float4*)(p1 + (i4 * 4 + i5 * 64));
                right_next[e] = depth < 16 ? t2 : 0.0f;
            }
        }
    }
        }
        const int depth = slice * 16;
        __local const float* a = left + (warp_row + lane / 4) * 36 + depth;
        __local const float* b = right + depth * 72 + warp_column + lane % 4 * 4;
        #pragma unroll
        for (int k = 0; k < 16; k += 4) {
            const float4 a0 = *(__local const float4*)(a + 0 + k);
            const float4 a1 = *(__local const float4*)(a + 288 + k);
            const float4 a2 = *(__local const float4*)(a + 576 + k);
            const float4 a3 = *(__local const float4*)(a + 864 + k);
            {
                const float4 b0 = *(__local const float4*)(b + (k + 0) * 72 + 0);
                c0 += a0.s0 * b0;
                c2 += a1.s0 * b0;
                c4 += a2.s0 * b0;
                c6 += a3.s0 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 0) * 72 + 16);
                c1 += a0.s0 * b0;
                c3 += a1.s0 * b0;
                c5 += a2.s0 * b0;
                c7 += a3.s0 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 1) * 72 + 0);
                c0 += a0.s1 * b0;
                c2 += a1.s1 * b0;
                c4 += a2.s1 * b0;
                c6 += a3.s1 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 1) * 72 + 16);
                c1 += a0.s1 * b0;
                c3 += a1.s1 * b0;
                c5 += a2.s1 * b0;
                c7 += a3.s1 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 2) * 72 + 0);
                c0 += a0.s2 * b0;
                c2 += a1.s2 * b0;
                c4 += a2.s2 * b0;
                c6 += a3.s2 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 2) * 72 + 16);
                c1 += a0.s2 * b0;
                c3 += a1.s2 * b0;
                c5 += a2.s2 * b0;
                c7 += a3.s2 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 3) * 72 + 0);
                c0 += a0.s3 * b0;
                c2 += a1.s3 * b0;
                c4 += a2.s3 * b0;
                c6 += a3.s3 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 3) * 72 + 16);
                c1 += a0.s3 * b0;
                c3 += a1.s3 * b0;
                c5 += a2.s3 * b0;
                c7 += a3.s3 * b0;
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    {
        __local float* sums = memory + slice * 2176;
        *(__local float4*)(sums + (warp_row + lane / 4 + 0) * 68 + warp_column + lane % 4 * 4 + 0) = c0;
        *(__local float4*)(sums + (warp_row + lane / 4 + 0) * 68 + warp_column + lane % 4 * 4 + 16) = c1;
        *(__local float4*)(sums + (warp_row + lane / 4 + 8) * 68 + warp_column + lane % 4 * 4 + 0) = c2;
        *(__local float4*)(sums + (warp_row + lane / 4 + 8) * 68 + warp_column + lane % 4 * 4 + 16) = c3;
        *(__local float4*)(sums + (warp_row + lane / 4 + 16) * 68 + warp_column + lane % 4 * 4 + 0) = c4;
        *(__local float4*)(sums + (warp_row + lane / 4 + 16) * 68 + warp_column + lane % 4 * 4 + 16) = c5;
        *(__local float4*)(sums + (warp_row + lane / 4 + 24) * 68 + warp_column + lane % 4 * 4 + 0) = c6;
        *(__local float4*)(sums + (warp_row + lane / 4 + 24) * 68 + warp_column + lane % 4 * 4 + 16) = c7;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int first_place = thread; first_place < 512; first_place += 512) {
        const int first_of_turns = first_row + first_place / 16;
        const int tile_column = first_place % 16 * 4;
if (first_of_turns < 12) {
{
                const int i6 = (column_tile - 0) * 16 + tile_column / 4;
if (i6 < 4) {
                float4 kept0[4];
                #pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int place = first_place + e * 128;
                    const int tile_row = place / 16;
                    const int i1 = first_row + tile_row < 12 ? first_row + tile_row : first_of_turns;
        __local const float* sums = memory + place / 16 * 68 + place % 16 * 4;
        float4 finished = *(__local const float4*)sums;
        finished += *(__local const float4*)(sums + 2176);

     {
        kept0[e] = finished;
    }
                }
                #pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int place = first_place + e * 128;
                    const int tile_row = place / 16;
                    const int i1 = first_row + tile_row;
if (i1 < 12) {
     {
        *(__global float4*)(p2 + (i1 * 16 + i6 * 4)) = kept0[e];
    }
                    }
                }
                }
            }
        }
    }
}

#endif
#ifndef smr_part_988ca8eb5b33_DEFINED
#define smr_part_988ca8eb5b33_DEFINED
// Row reductions: a work-item computes whole rows. Statistics of a row are scalars, values of a row that are used twice lie
// in scratch memory, and results that depend on the row alone are written in the same pass.

#pragma OPENCL FP_CONTRACT OFF
static void smr_part_988ca8eb5b33(
    __global const float* restrict p0 /* buffer[d0d1] of [9, 7] */,
    __global float* restrict p1 /* buffer[d0d1] of [7, 9] */,
    const int item, const int group, __local float* smr_local) {
    __local float* across = (__local float*)(smr_local + 0);
    const int thread = (int)get_local_id(0) & 127;
    const int i0 = min((int)((uint)item / 2u), 8);
    float4 t1 = (float4)(-INFINITY);
    #ifndef SMR_NO_UNROLL
#pragma unroll 8
#endif
for (int i1 = (thread % 2), i1_turn = 0; i1_turn < 1; i1 += 2, i1_turn += 2) if (i1 < 1) {
        const float4 t2 = *(__global const smr_float4*)(p0 + i0 * 7);
        t1 = smr_max4(t1, t2);
    }
    float t3 = (smr_max1((smr_max1(t1.s0, t1.s2)), (smr_max1(t1.s1, t1.s3))));
    #ifndef SMR_NO_UNROLL
#pragma unroll 8
#endif
for (int i2 = (thread % 2), i2_turn = 0; i2_turn < 3; i2 += 2, i2_turn += 2) if (i2 < 3) {
        const float t4 = p0[(i0 * 7 + i2 + 4)];
        t3 = smr_max1(t3, t4);
    }
    across[thread] = t3;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int stride = 1; stride >= 1; stride /= 2) {
        if ((thread % 2) < stride) across[thread] = smr_max1(across[thread], across[thread + stride]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    t3 = across[thread - (thread % 2)];
    barrier(CLK_LOCAL_MEM_FENCE);
    float4 t5 = (float4)(0.0f);
    #ifndef SMR_NO_UNROLL
#pragma unroll 8
#endif
for (int i3 = (thread % 2), i3_turn = 0; i3_turn < 1; i3 += 2, i3_turn += 2) if (i3 < 1) {
        const float4 t6 = *(__global const smr_float4*)(p0 + i0 * 7);
        const float4 t7 = (t6 - (float4)(t3));
        const float4 t8 = smr_exp4(t7);
        t5 = t5 + t8;
    }
    float t9 = ((t5.s0 + t5.s2) + (t5.s1 + t5.s3));
    #ifndef SMR_NO_UNROLL
#pragma unroll 8
#endif
for (int i4 = (thread % 2), i4_turn = 0; i4_turn < 3; i4 += 2, i4_turn += 2) if (i4 < 3) {
        const float t10 = p0[(i0 * 7 + i4 + 4)];
        const float t11 = (t10 - t3);
        const float t12 = smr_exp1(t11);
        t9 = t9 + t12;
    }
    across[thread] = t9;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int stride = 1; stride >= 1; stride /= 2) {
        if ((thread % 2) < stride) across[thread] = across[thread] + across[thread + stride];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    t9 = across[thread - (thread % 2)];
    barrier(CLK_LOCAL_MEM_FENCE);
    #ifndef SMR_NO_UNROLL
#pragma unroll 8
#endif
for (int i5 = (thread % 2), i5_turn = 0; i5_turn < 1; i5 += 2, i5_turn += 2) if (i5 < 1) {
        const float4 t13 = *(__global const smr_float4*)(p0 + i0 * 7);
        const float4 t14 = (t13 - (float4)(t3));
        const float4 t15 = smr_exp4(t14);
        const float4 t16 = (t15 / (float4)(t9));
        p1[i0] = t16.s0;
        p1[(i0 + 9)] = t16.s1;
        p1[(i0 + 18)] = t16.s2;
        p1[(i0 + 27)] = t16.s3;
    }
    #ifndef SMR_NO_UNROLL
#pragma unroll 8
#endif
for (int i6 = (thread % 2), i6_turn = 0; i6_turn < 3; i6 += 2, i6_turn += 2) if (i6 < 3) {
        const float t17 = p0[(i0 * 7 + i6 + 4)];
        const float t18 = (t17 - t3);
        const float t19 = smr_exp1(t18);
        const float t20 = (t19 / t9);
        p1[(i0 + i6 * 9 + 36)] = t20;
    }
}
#pragma OPENCL FP_CONTRACT DEFAULT

#endif
// Horizontal fusion: kernels that do not need each other. The number of the work-group selects the kernel, so that all
// work-items of a work-group reach the same barriers. The kernels share one array of local memory, and each divides the
// array in its own way. Each begins some bytes behind the kernel before: PoCL 3.0 crashed where its compiler had merged
// equal branches with barriers.
__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [12, 16] */,
    __global const float* restrict p1 /* buffer[d0d1] of [16, 64] */,
    __global float* restrict p2 /* buffer[d0d1] of [12, 16] */,
    __global const float* restrict p3 /* buffer[d0d1] of [9, 7] */,
    __global float* restrict p4 /* buffer[d0d1] of [7, 9] */) {
    const int item = (int)get_global_id(0);
    const int group = (int)get_group_id(0);
    __local float smr_local[6916] __attribute__((aligned(16)));
    if (group < 1) smr_part_91942f6386a6(p0, p1, p2, item - 0, group - 0, smr_local + 0);
    else if (group < 2) smr_part_988ca8eb5b33(p3, p4, item - 128, group - 1, smr_local + 4);
}

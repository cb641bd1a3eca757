// k0_contraction: global (512,), local (256,)
// Contractions for GPUs with local memory. A work-group owns 16 x 64 sums. Tiles of both factors, 64 deep, lie in local
// memory; the next tiles are loaded while these are multiplied.
//   1. All work-items compute what the rows of the left factor need, a team for each row: the statistics of a normalisation,
//      or the scores of an attention and their softmax.
//   2. 4 slices of sub-groups of 32 work-items share the depth of a tile (slice-K). A sub-group owns 16 x 32 sums.
//   3. The sums of several slices are added in local memory; those of one slice stay in registers. Every work-item then
//      runs the epilogue of some sums, four columns at a time.

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1d2] of [2, 12, 8] */,
    __global const float* restrict p1 /* buffer[d0d1d2] of [2, 12, 8] */,
    __global const float* restrict p2 /* buffer[d0d1d2] of [2, 12, 8] */,
    __global float* restrict p3 /* buffer[d0d1d2] of [2, 12, 8] */) {
    __local float across[256] __attribute__((aligned(16)));
    __local float rows0[192] __attribute__((aligned(16)));
    __local float statistic0[16] __attribute__((aligned(16)));
    __local float statistic1[16] __attribute__((aligned(16)));
    __local float memory[5696] __attribute__((aligned(16)));
    const int group = ((int)get_group_id(0)) & 0x7fffffff;
    const int thread = (int)get_local_id(0) & 255;
    const int column_tile = group % 1;
    const int first_row = group / 1 % 1 * 16;
    const int i0 = group / 1;
    const int lane = thread % 32;
    const int warp = thread / 32 % 2;
    const int slice = thread / 64;
    const int warp_row = warp / 2 * 16;
    const int warp_column = warp % 2 * 32;
     {
        __local float* inner_rows = rows0;
        for (int inner_tile = 0; inner_tile < 1; ++inner_tile) {
            float4 left_next[1];
            float4 right_next[4];
            float4 c0 = 0.0f;
            float4 c1 = 0.0f;
            float4 c2 = 0.0f;
            float4 c3 = 0.0f;
            {
                const int step = 0;
             {
                #pragma unroll
                for (int e = 0; e < 1; ++e) {
                    const int slot = e * 256 + thread;
                     {
                        const int at = slot / 16;
                        const int i2 = min(first_row + at, 11);
                        const int depth = step * 16 + slot % 16;
                        const int i3 = min(depth, 1);
                        const float4 t1 = *(__global const float4*)(p1 + (i0 * 96 + i2 * 8 + i3 * 4));
                        left_next[e] = depth < 2 ? t1 : 0.0f;
                    }
                }
            }
             {
                #pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int slot = e * 256 + thread;
                     {
                        const int at = slot / 16;
                        const int i4 = min(inner_tile * 64 + at, 11);
                        const int depth = step * 16 + slot % 16;
                        const int i5 = min(depth, 1);
                        const float4 t2 = *(__global const float4*)(p2 + (i0 * 96 + i4 * 8 + i5 * 4));
                        right_next[e] = depth < 2 ? t2 : 0.0f;
                    }
                }
            }
            }
            for (int turn = 0; turn < 1; ++turn) {
                __local float* left = memory;
                __local float* right = left + 1088;
             {
                #pragma unroll
                for (int e = 0; e < 1; ++e) {
                    const int slot = e * 256 + thread;
                     {
                        *(__local float4*)(left + (slot / 16) * 68 + slot % 16 * 4 + 0) = left_next[e];
                    }
                }
            }
             {
                #pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int slot = e * 256 + thread;
                     {
                        right[(slot % 16 * 4 + 0) * 72 + slot / 16] = right_next[e].s0;
                        right[(slot % 16 * 4 + 1) * 72 + slot / 16] = right_next[e].s1;
                        right[(slot % 16 * 4 + 2) * 72 + slot / 16] = right_next[e].s2;
                        right[(slot % 16 * 4 + 3) * 72 + slot / 16] = right_next[e].s3;
                    }
                }
            }
                barrier(CLK_LOCAL_MEM_FENCE);
                if (turn + 1 < 1) {
                    const int step = turn + 1;
             {
                #pragma unroll
                for (int e = 0; e < 1; ++e) {
                    const int slot = e * 256 + thread;
                     {
                        const int at = slot / 16;
                        const int i2 = min(first_row + at, 11);
                        const int depth = step * 16 + slot % 16;
                        const int i3 = min(depth, 1);
                        const float4 t1 = *(__global const float4*)(p1 + (i0 * 96 + i2 * 8 + i3 * 4));
                        left_next[e] = depth < 2 ? t1 : 0.0f;
                    }
                }
            }
             {
                #pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int slot = e * 256 + thread;
                     {
                        const int at = slot / 16;
                        const int i4 = min(inner_tile * 64 + at, 11);
                        const int depth = step * 16 + slot % 16;
                        const int i5 = min(depth, 1);
                        const float4 t2 = *(__global const float4*)(p2 + (i0 * 96 + i4 * 8 + i5 * 4));
                        right_next[e] = depth < 2 ? t2 : 0.0f;
                    }
                }
            }
                }
                const int depth = slice * 16;
                __local const float* a = left + (warp_row + lane / 4) * 68 + depth;
                __local const float* b = right + depth * 72 + warp_column + lane % 4 * 4;
                #pragma unroll
                for (int k = 0; k < 16; k += 4) {
                    const float4 a0 = *(__local const float4*)(a + 0 + k);
                    const float4 a1 = *(__local const float4*)(a + 544 + k);
                    {
                        const float4 b0 = *(__local const float4*)(b + (k + 0) * 72 + 0);
                        c0 += a0.s0 * b0;
                        c2 += a1.s0 * b0;
                    }
                    {
                        const float4 b0 = *(__local const float4*)(b + (k + 0) * 72 + 16);
                        c1 += a0.s0 * b0;
                        c3 += a1.s0 * b0;
                    }
                    {
                        const float4 b0 = *(__local const float4*)(b + (k + 1) * 72 + 0);
                        c0 += a0.s1 * b0;
                        c2 += a1.s1 * b0;
                    }
                    {
                        const float4 b0 = *(__local const float4*)(b + (k + 1) * 72 + 16);
                        c1 += a0.s1 * b0;
                        c3 += a1.s1 * b0;
                    }
                    {
                        const float4 b0 = *(__local const float4*)(b + (k + 2) * 72 + 0);
                        c0 += a0.s2 * b0;
                        c2 += a1.s2 * b0;
                    }
                    {
                        const float4 b0 = *(__local const float4*)(b + (k + 2) * 72 + 16);
                        c1 += a0.s2 * b0;
                        c3 += a1.s2 * b0;
                    }
                    {
                        const float4 b0 = *(__local const float4*)(b + (k + 3) * 72 + 0);
                        c0 += a0.s3 * b0;
                        c2 += a1.s3 * b0;
                    }
                    {
                        const float4 b0 = *(__local const float4*)(b + (k + 3) * 72 + 16);
                        c1 += a0.s3 * b0;
                        c3 += a1.s3 * b0;
                    }
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            {
                __local float* sums = memory + slice * 1088;
                *(__local float4*)(sums + (warp_row + lane / 4 + 0) * 68 + warp_column + lane % 4 * 4 + 0) = c0;
                *(__local float4*)(sums + (warp_row + lane / 4 + 0) * 68 + warp_column + lane % 4 * 4 + 16) = c1;
                *(__local float4*)(sums + (warp_row + lane / 4 + 8) * 68 + warp_column + lane % 4 * 4 + 0) = c2;
                *(__local float4*)(sums + (warp_row + lane / 4 + 8) * 68 + warp_column + lane % 4 * 4 + 16) = c3;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        
            for (int place = thread; place < 256; place += 256) {
                const int tile_row = place / 16;
                const int tile_column = place % 16 * 4;
        
                const int column = inner_tile * 64 + tile_column;
                if (column < 12) {
                __local const float* sums = memory + place / 16 * 68 + place % 16 * 4;
                float4 finished = *(__local const float4*)sums;
                finished += *(__local const float4*)(sums + 1088);
                finished += *(__local const float4*)(sums + 2176);
                finished += *(__local const float4*)(sums + 3264);
        
                    *(__local float4*)(inner_rows + tile_row * 12 + column) = finished;
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
         {
            const int team_row = thread / 16;
            __local float* inner_row = rows0 + team_row * 12;
            const int i1 = min(first_row + team_row, 11);
            barrier(CLK_LOCAL_MEM_FENCE);
            __local float* t3 = rows0 + team_row * 12;
            #ifndef SMR_NO_UNROLL
#pragma unroll 8
#endif
for (int i6 = (thread % 16), i6_turn = 0; i6_turn < 3; i6 += 16, i6_turn += 16) if (i6 < 3) {
                const float4 t4 = ((*(__local const smr_float4*)(inner_row + i6 * 4)) * (float4)(0.1257302165031433f));
                *(__local smr_float4*)(t3 + i6 * 4) = t4;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            float4 t5 = (float4)(-INFINITY);
            #ifndef SMR_NO_UNROLL
#pragma unroll 8
#endif
for (int i7 = (thread % 16), i7_turn = 0; i7_turn < 3; i7 += 16, i7_turn += 16) if (i7 < 3) {
                t5 = smr_max4(t5, (*(__local const smr_float4*)(t3 + i7 * 4)));
            }
            float t6 = (smr_max1((smr_max1(t5.s0, t5.s2)), (smr_max1(t5.s1, t5.s3))));
            across[thread] = t6;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int stride = 8; stride >= 1; stride /= 2) {
                if ((thread % 16) < stride) across[thread] = smr_max1(across[thread], across[thread + stride]);
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            t6 = across[thread - (thread % 16)];
            barrier(CLK_LOCAL_MEM_FENCE);
            float4 t7 = (float4)(0.0f);
            #ifndef SMR_NO_UNROLL
#pragma unroll 8
#endif
for (int i8 = (thread % 16), i8_turn = 0; i8_turn < 3; i8 += 16, i8_turn += 16) if (i8 < 3) {
                const float4 t8 = ((*(__local const smr_float4*)(t3 + i8 * 4)) - (float4)(t6));
                const float4 t9 = smr_exp4(t8);
                t7 = t7 + t9;
            }
            float t10 = ((t7.s0 + t7.s2) + (t7.s1 + t7.s3));
            across[thread] = t10;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int stride = 8; stride >= 1; stride /= 2) {
                if ((thread % 16) < stride) across[thread] = across[thread] + across[thread + stride];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            t10 = across[thread - (thread % 16)];
            barrier(CLK_LOCAL_MEM_FENCE);
            if (thread % 16 == 0) statistic0[team_row] = t6;
            if (thread % 16 == 0) statistic1[team_row] = t10;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    float4 left_next[1];
    float4 right_next[4];
    float4 c0 = 0.0f;
    float4 c1 = 0.0f;
    float4 c2 = 0.0f;
    float4 c3 = 0.0f;
    {
        const int step = 0;
     {
        #pragma unroll
        for (int e = 0; e < 1; ++e) {
            const int slot = e * 256 + thread;
             {
                const int at = slot / 16;
                const int i2 = min(first_row + at, 11);
                const int depth = step * 16 + slot % 16;
                const int i9 = min(depth, 2);
                const float4 t11 = ((*(__local const smr_float4*)((rows0 + at * 12) + i9 * 4)) - (float4)(statistic0[at]));
                const float4 t12 = smr_exp4(t11);
                const float4 t13 = (t12 / (float4)(statistic1[at]));
                left_next[e] = depth < 3 ? t13 : 0.0f;
            }
        }
    }
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 256 + thread;
             {
                const int at = slot % 16;
                const int i5 = min((column_tile * 64) / 4 + at, 1);
                const int depth = step * 64 + slot / 16;
                const int i4 = min(depth, 11);
                const float4 t14 = *(__global const float4*)(p0 + (i0 * 96 + i4 * 8 + i5 * 4));
                right_next[e] = depth < 12 ? t14 : 0.0f;
            }
        }
    }
    }
    for (int turn = 0; turn < 1; ++turn) {
        __local float* left = memory;
        __local float* right = left + 1088;
     {
        #pragma unroll
        for (int e = 0; e < 1; ++e) {
            const int slot = e * 256 + thread;
             {
                *(__local float4*)(left + (slot / 16) * 68 + slot % 16 * 4 + 0) = left_next[e];
            }
        }
    }
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 256 + thread;
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
        for (int e = 0; e < 1; ++e) {
            const int slot = e * 256 + thread;
             {
                const int at = slot / 16;
                const int i2 = min(first_row + at, 11);
                const int depth = step * 16 + slot % 16;
                const int i9 = min(depth, 2);
                const float4 t11 = ((*(__local const smr_float4*)((rows0 + at * 12) + i9 * 4)) - (float4)(statistic0[at]));
                const float4 t12 = smr_exp4(t11);
                const float4 t13 = (t12 / (float4)(statistic1[at]));
                left_next[e] = depth < 3 ? t13 : 0.0f;
            }
        }
    }
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 256 + thread;
             {
                const int at = slot % 16;
                const int i5 = min((column_tile * 64) / 4 + at, 1);
                const int depth = step * 64 + slot / 16;
                const int i4 = min(depth, 11);
                const float4 t14 = *(__global const float4*)(p0 + (i0 * 96 + i4 * 8 + i5 * 4));
                right_next[e] = depth < 12 ? t14 : 0.0f;
            }
        }
    }
        }
        const int depth = slice * 16;
        __local const float* a = left + (warp_row + lane / 4) * 68 + depth;
        __local const float* b = right + depth * 72 + warp_column + lane % 4 * 4;
        #pragma unroll
        for (int k = 0; k < 16; k += 4) {
            const float4 a0 = *(__local const float4*)(a + 0 + k);
            const float4 a1 = *(__local const float4*)(a + 544 + k);
            {
                const float4 b0 = *(__local const float4*)(b + (k + 0) * 72 + 0);
                c0 += a0.s0 * b0;
                c2 += a1.s0 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 0) * 72 + 16);
                c1 += a0.s0 * b0;
                c3 += a1.s0 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 1) * 72 + 0);
                c0 += a0.s1 * b0;
                c2 += a1.s1 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 1) * 72 + 16);
                c1 += a0.s1 * b0;
                c3 += a1.s1 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 2) * 72 + 0);
                c0 += a0.s2 * b0;
                c2 += a1.s2 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 2) * 72 + 16);
                c1 += a0.s2 * b0;
                c3 += a1.s2 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 3) * 72 + 0);
                c0 += a0.s3 * b0;
                c2 += a1.s3 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 3) * 72 + 16);
                c1 += a0.s3 * b0;
                c3 += a1.s3 * b0;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    {
        __local float* sums = memory + slice * 1088;
        *(__local float4*)(sums + (warp_row + lane / 4 + 0) * 68 + warp_column + lane % 4 * 4 + 0) = c0;
        *(__local float4*)(sums + (warp_row + lane / 4 + 0) * 68 + warp_column + lane % 4 * 4 + 16) = c1;
        *(__local float4*)(sums + (warp_row + lane / 4 + 8) * 68 + warp_column + lane % 4 * 4 + 0) = c2;
        *(__local float4*)(sums + (warp_row + lane / 4 + 8) * 68 + warp_column + lane % 4 * 4 + 16) = c3;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int place = thread; place < 256; place += 256) {
        const int tile_row = place / 16;
        const int tile_column = place % 16 * 4;

        const int i1 = first_row + tile_row;
        if (i1 < 12) {
        __local const float* sums = memory + place / 16 * 68 + place % 16 * 4;
        float4 finished = *(__local const float4*)sums;
        finished += *(__local const float4*)(sums + 1088);
        finished += *(__local const float4*)(sums + 2176);
        finished += *(__local const float4*)(sums + 3264);

if (column_tile < 1) {
            const int i10 = (column_tile - 0) * 16 + tile_column / 4;
            if (i10 < 2) {
     {
         {
            *(__global float4*)(p3 + (i0 * 96 + i1 * 8 + i10 * 4)) = finished;
        }
    }
            }
        }
        }
    }
}

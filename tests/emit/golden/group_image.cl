// k0_contraction: global (128,), local (32,)
// Contractions for GPUs with local memory. A work-group owns 16 x 32 sums. Tiles of both factors, 32 deep, lie in local
// memory; the next tiles are loaded while these are multiplied.
//   1. All work-items compute what the rows of the left factor need, a team for each row: the statistics of a normalisation,
//      or the scores of an attention and their softmax.
//   2. 1 slices of sub-groups of 32 work-items share the depth of a tile (slice-K). A sub-group owns 16 x 32 sums.
//   3. The sums of several slices are added in local memory; those of one slice stay in registers. Every work-item then
//      runs the epilogue of some sums, four columns at a time.

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [20, 32] */,
    read_only image2d_t p1 /* image[d0] of [32] */,
    read_only image2d_t p2 /* image[d0] of [32] */,
    read_only image2d_t p3 /* image[d0d1] of [32, 64] */,
    __global float* restrict p4 /* buffer[d0d1] of [20, 40] */) {
    __local float across[32] __attribute__((aligned(16)));
    __local float statistic0[16] __attribute__((aligned(16)));
    __local float statistic1[16] __attribute__((aligned(16)));
    __local float statistic2[16] __attribute__((aligned(16)));
    __local float left_tile[576] __attribute__((aligned(16)));
    __local float right_tile[1280] __attribute__((aligned(16)));
    const int group = ((int)get_group_id(0)) & 0x7fffffff;
    const int thread = (int)get_local_id(0) & 31;
    const int column_tile = group % 2;
    const int first_row = group / 2 % 2 * 16;
    const int i0 = group / 4;
    const int lane = thread % 32;
    const int warp = thread / 32 % 1;
    const int slice = thread / 32;
    const int warp_row = warp / 1 * 16;
    const int warp_column = warp % 1 * 32;
     {
        for (int first = 0; first < 16; first += 4) {
            const int team_row = first + thread / 8;
            const int i1 = min(first_row + team_row, 19);
            float4 t1 = (float4)(0.0f);
            #ifndef SMR_NO_UNROLL
#pragma unroll 8
#endif
for (int i2 = (thread % 8), i2_turn = 0; i2_turn < 8; i2 += 8, i2_turn += 8) {
                const float4 t2 = *(__global const float4*)(p0 + (i1 * 32 + i2 * 4));
                t1 = t1 + t2;
            }
            float t3 = ((t1.s0 + t1.s2) + (t1.s1 + t1.s3));
            across[thread] = t3;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int stride = 4; stride >= 1; stride /= 2) {
                if ((thread % 8) < stride) across[thread] = across[thread] + across[thread + stride];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            t3 = across[thread - (thread % 8)];
            barrier(CLK_LOCAL_MEM_FENCE);
            const float t4 = (t3 / 32.0f);
            float4 t5 = (float4)(0.0f);
            #ifndef SMR_NO_UNROLL
#pragma unroll 8
#endif
for (int i3 = (thread % 8), i3_turn = 0; i3_turn < 8; i3 += 8, i3_turn += 8) {
                const float4 t6 = *(__global const float4*)(p0 + (i1 * 32 + i3 * 4));
                const float4 t7 = (t6 - (float4)(t4));
                t5 += t7 * t7;
            }
            float t8 = ((t5.s0 + t5.s2) + (t5.s1 + t5.s3));
            across[thread] = t8;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int stride = 4; stride >= 1; stride /= 2) {
                if ((thread % 8) < stride) across[thread] = across[thread] + across[thread + stride];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            t8 = across[thread - (thread % 8)];
            barrier(CLK_LOCAL_MEM_FENCE);
            const float t9 = (t8 / 32.0f);
            const float t10 = (t9 + 1e-05f);
            const float t11 = rsqrt(t10);
            if (thread % 8 == 0) statistic0[team_row] = t4;
            if (thread % 8 == 0) statistic1[team_row] = t9;
            if (thread % 8 == 0) statistic2[team_row] = t11;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    float4 left_next[4];
    float4 right_next[8];
    float4 c[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) c[i] = 0.0f;
    {
        const int step = 0;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 32 + thread;
             {
                const int at = slot / 8;
                const int i4 = min(first_row + at, 19);
                const int depth = step * 8 + slot % 8;
                const int i5 = depth;
                const float4 t12 = *(__global const float4*)(p0 + (i4 * 32 + i5 * 4));
                const float4 t13 = (t12 - (float4)(statistic0[at]));
                const float4 t14 = (t13 * (float4)(statistic2[at]));
                const float4 t15 = read_imagef(p1, smr_sampler, (int2)(i5, 0));
                const float4 t16 = (t14 * t15);
                const float4 t17 = read_imagef(p2, smr_sampler, (int2)(i5, 0));
                const float4 t18 = (t16 + t17);
                left_next[e] = t18;
            }
        }
    }
     {
        #pragma unroll
        for (int e = 0; e < 8; ++e) {
            const int slot = e * 32 + thread;
             {
                const int at = slot % 8;
                const int i6 = min((column_tile * 32) / 4 + at, 15);
                const int depth = step * 32 + slot / 8;
                const int i7 = depth;
                const float4 t19 = read_imagef(p3, smr_sampler, (int2)(i6, i7));
                right_next[e] = t19;
            }
        }
    }
    }
    for (int turn = 0; turn < 1; ++turn) {
        __local float* left = (__local float*)left_tile;
        __local float* right = (__local float*)right_tile;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 32 + thread;
             {
                *(__local float4*)(left + (slot / 8) * 36 + slot % 8 * 4 + 0) = left_next[e];
            }
        }
    }
     {
        #pragma unroll
        for (int e = 0; e < 8; ++e) {
            const int slot = e * 32 + thread;
             {
                *(__local float4*)(right + (slot / 8) * 40 + slot % 8 * 4 + 0) = right_next[e];
            }
        }
    }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (turn + 1 < 1) {
            const int step = turn + 1;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 32 + thread;
             {
                const int at = slot / 8;
                const int i4 = min(first_row + at, 19);
                const int depth = step * 8 + slot % 8;
                const int i5 = depth;
                const float4 t12 = *(__global const float4*)(p0 + (i4 * 32 + i5 * 4));
                const float4 t13 = (t12 - (float4)(statistic0[at]));
                const float4 t14 = (t13 * (float4)(statistic2[at]));
                const float4 t15 = read_imagef(p1, smr_sampler, (int2)(i5, 0));
                const float4 t16 = (t14 * t15);
                const float4 t17 = read_imagef(p2, smr_sampler, (int2)(i5, 0));
                const float4 t18 = (t16 + t17);
                left_next[e] = t18;
            }
        }
    }
     {
        #pragma unroll
        for (int e = 0; e < 8; ++e) {
            const int slot = e * 32 + thread;
             {
                const int at = slot % 8;
                const int i6 = min((column_tile * 32) / 4 + at, 15);
                const int depth = step * 32 + slot / 8;
                const int i7 = depth;
                const float4 t19 = read_imagef(p3, smr_sampler, (int2)(i6, i7));
                right_next[e] = t19;
            }
        }
    }
        }
        const int depth = slice * 32;
        __local const float* a = left + (warp_row + lane / 4) * 36 + depth;
        __local const float* b = right + depth * 40 + warp_column + lane % 4 * 4;
        #pragma unroll
        for (int k = 0; k < 32; k += 4) {
            const float4 a0 = *(__local const float4*)(a + 0 + k);
            const float4 a1 = *(__local const float4*)(a + 288 + k);
            {
                const float4 b0 = *(__local const float4*)(b + (k + 0) * 40 + 0);
                c[0] += a0.s0 * b0;
                c[2] += a1.s0 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 0) * 40 + 16);
                c[1] += a0.s0 * b0;
                c[3] += a1.s0 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 1) * 40 + 0);
                c[0] += a0.s1 * b0;
                c[2] += a1.s1 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 1) * 40 + 16);
                c[1] += a0.s1 * b0;
                c[3] += a1.s1 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 2) * 40 + 0);
                c[0] += a0.s2 * b0;
                c[2] += a1.s2 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 2) * 40 + 16);
                c[1] += a0.s2 * b0;
                c[3] += a1.s2 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 3) * 40 + 0);
                c[0] += a0.s3 * b0;
                c[2] += a1.s3 * b0;
            }
            {
                const float4 b0 = *(__local const float4*)(b + (k + 3) * 40 + 16);
                c[1] += a0.s3 * b0;
                c[3] += a1.s3 * b0;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    #pragma unroll
    for (int place = 0; place < 4; ++place) {
        const int tile_row = warp_row + lane / 4 + place / 2 * 8;
        const int tile_column = warp_column + lane % 4 * 4 + place % 2 * 16;

        const int i1 = first_row + tile_row;
        if (i1 < 20) {
        const float4 finished = c[place];

if (column_tile < 2) {
            const int i8 = (column_tile - 0) * 8 + tile_column / 4;
            if (i8 < 10) {
     {
         {
            const float4 t20 = smr_max4(finished, (float4)(0.0f));
            *(__global float4*)(p4 + (i1 * 40 + i8 * 4)) = t20;
        }
    }
            }
        }
        }
    }
}

// k0_contraction: global (256,), local (256,)
// Contractions for GPUs with local memory. A work-group owns 16 x 64 sums. Tiles of both factors, 64 deep, lie in local
// memory; the next tiles are loaded while these are multiplied.
//   1. All work-items compute what the rows of the left factor need, a team for each row: the statistics of a normalisation,
//      or the scores of an attention and their softmax.
//   2. 4 slices of sub-groups of 32 work-items share the depth of a tile (slice-K). A sub-group owns 16 x 32 sums.
//   3. The sums of several slices are added in local memory; those of one slice stay in registers. Every work-item then
//      runs the epilogue of some sums, four columns at a time.

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void smr_kernel(
    __global const float* restrict p0 /* buffer[d0] of [24] */,
    __global const float* restrict p1 /* buffer[d0d1] of [10, 48] */,
    __global const float* restrict p2 /* buffer[d0d1] of [48, 64] */,
    __global float* restrict p3 /* buffer[d0d1] of [10, 24] */) {
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
            const int slot = e * 256 + thread;
             {
                const int at = slot % 16;
                const int i4 = min((column_tile * 64) / 4 + at, 15);
                const int depth = step * 64 + slot / 16;
                const int i5 = min(depth, 47);
                const float4 t2 = *(__global const float4*)(p2 + (i4 * 4 + i5 * 64));
                right_next[e] = depth < 48 ? t2 : 0.0f;
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
            const int slot = e * 256 + thread;
             {
                const int at = slot % 16;
                const int i4 = min((column_tile * 64) / 4 + at, 15);
                const int depth = step * 64 + slot / 16;
                const int i5 = min(depth, 47);
                const float4 t2 = *(__global const float4*)(p2 + (i4 * 4 + i5 * 64));
                right_next[e] = depth < 48 ? t2 : 0.0f;
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
        if (i1 < 10) {
        __local const float* sums = memory + place / 16 * 68 + place % 16 * 4;
        float4 finished = *(__local const float4*)sums;
        finished += *(__local const float4*)(sums + 1088);
        finished += *(__local const float4*)(sums + 2176);
        finished += *(__local const float4*)(sums + 3264);

if (column_tile < 1) {
            const int i6 = (column_tile - 0) * 16 + tile_column / 4;
            if (i6 < 6) {
     {
         {
            const float4 t3 = *(__global const float4*)(p0 + i6 * 4);
            const float4 t4 = (finished + t3);
            const float4 t5 = smr_max4(t4, (float4)(0.0f));
            *(__global float4*)(p3 + (i1 * 24 + i6 * 4)) = t5;
        }
    }
            }
        }
        }
    }
}

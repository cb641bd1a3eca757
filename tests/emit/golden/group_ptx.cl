// k0_contraction: global (128,), local (128,)
// Contractions for GPUs with local memory. A work-group owns 32 x 32 sums; tiles of both factors, 64 deep, lie in local
// memory, and the next ones are on their way in registers while these are used.
//   1. what the rows of the left factor need: statistics of a normalisation, or the scores of an attention and their softmax,
//      computed by all work-items, a team for each row;
//   2. 4 slices of sub-groups of 32 work-items share the depth of a tile; a sub-group owns 32 x 32 sums;
//   3. the sums of all slices meet in local memory (those of one slice stay in registers), and every work-item finishes
//      columns in fours.
// The products run on the matrix units: each factor is split into two parts of 11 bits, and three of the four products of
// parts are summed in single precision; what is lost is below 2^-20 of a product.
#ifndef SMR_SPLIT
#define SMR_SPLIT
static inline uint smr_high(float x) {
    uint high;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(high) : "f"(x));
    return high;
}
static inline uint smr_low(float x, uint high) { return as_uint(x - as_float(high)); }
#define SMR_MMA(C, A, B0, B1)                                                                                     \
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 { %0,%1,%2,%3}, { %4,%5,%6,%7}, { %8,%9}, { %0,%1,%2,%3};" \
        : "+f"(C.s0), "+f"(C.s1), "+f"(C.s2), "+f"(C.s3)                                                          \
        : "r"(A.s0), "r"(A.s1), "r"(A.s2), "r"(A.s3), "r"(B0), "r"(B1))
#endif

__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void smr_kernel(
    __global const float* restrict p0 /* buffer[d0] of [24] */,
    __global const float* restrict p1 /* buffer[d0d1] of [10, 48] */,
    __global const float* restrict p2 /* buffer[d0d1] of [48, 32] */,
    __global float* restrict p3 /* buffer[d0d1] of [10, 24] */) {
    __local float memory[9472] __attribute__((aligned(16)));
    const int group = (int)get_group_id(0);
    const int thread = (int)get_local_id(0);
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
                const float4 t2 = *(__global const float4*)(p2 + (i5 * 32 + i4 * 4));
                right_next[e] = depth < 48 ? t2 : 0.0f;
            }
        }
    }
    }
    for (int turn = 0; turn < 1; ++turn) {
        __local float* left = memory + (turn & 1) * 4736;
        __local float* right = left + 2176;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                *(__local float4*)(left + (slot / 16) * 68 + slot % 16 * 4 + 0) = left_next[e];
            }
        }
    }
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
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
                const float4 t2 = *(__global const float4*)(p2 + (i5 * 32 + i4 * 4));
                right_next[e] = depth < 48 ? t2 : 0.0f;
            }
        }
    }
        }
        const int depth = slice * 16;
        #pragma unroll
        for (int k = 0; k < 16; k += 8) {
            __local const float* a = left + (warp_row + lane / 4) * 68 + depth + k + lane % 4;
            __local const float* b = right + (depth + k + lane % 4) * 40 + warp_column + lane / 4;
            const float4 a0 = (float4)(a[0], a[544], a[4], a[548]);
            const uint4 ah0 = (uint4)(smr_high(a0.s0), smr_high(a0.s1), smr_high(a0.s2), smr_high(a0.s3));
            const uint4 al0 = (uint4)(smr_low(a0.s0, ah0.s0), smr_low(a0.s1, ah0.s1), smr_low(a0.s2, ah0.s2), smr_low(a0.s3, ah0.s3));
            const float4 a1 = (float4)(a[1088], a[1632], a[1092], a[1636]);
            const uint4 ah1 = (uint4)(smr_high(a1.s0), smr_high(a1.s1), smr_high(a1.s2), smr_high(a1.s3));
            const uint4 al1 = (uint4)(smr_low(a1.s0, ah1.s0), smr_low(a1.s1, ah1.s1), smr_low(a1.s2, ah1.s2), smr_low(a1.s3, ah1.s3));
            const float b0_0 = b[0], b0_1 = b[160];
            const uint bh0_0 = smr_high(b0_0), bh0_1 = smr_high(b0_1);
            const uint bl0_0 = smr_low(b0_0, bh0_0), bl0_1 = smr_low(b0_1, bh0_1);
            const float b1_0 = b[8], b1_1 = b[168];
            const uint bh1_0 = smr_high(b1_0), bh1_1 = smr_high(b1_1);
            const uint bl1_0 = smr_low(b1_0, bh1_0), bl1_1 = smr_low(b1_1, bh1_1);
            const float b2_0 = b[16], b2_1 = b[176];
            const uint bh2_0 = smr_high(b2_0), bh2_1 = smr_high(b2_1);
            const uint bl2_0 = smr_low(b2_0, bh2_0), bl2_1 = smr_low(b2_1, bh2_1);
            const float b3_0 = b[24], b3_1 = b[184];
            const uint bh3_0 = smr_high(b3_0), bh3_1 = smr_high(b3_1);
            const uint bl3_0 = smr_low(b3_0, bh3_0), bl3_1 = smr_low(b3_1, bh3_1);
            SMR_MMA(c0, al0, bh0_0, bh0_1);
            SMR_MMA(c1, al0, bh1_0, bh1_1);
            SMR_MMA(c2, al0, bh2_0, bh2_1);
            SMR_MMA(c3, al0, bh3_0, bh3_1);
            SMR_MMA(c4, al1, bh0_0, bh0_1);
            SMR_MMA(c5, al1, bh1_0, bh1_1);
            SMR_MMA(c6, al1, bh2_0, bh2_1);
            SMR_MMA(c7, al1, bh3_0, bh3_1);
            SMR_MMA(c0, ah0, bl0_0, bl0_1);
            SMR_MMA(c1, ah0, bl1_0, bl1_1);
            SMR_MMA(c2, ah0, bl2_0, bl2_1);
            SMR_MMA(c3, ah0, bl3_0, bl3_1);
            SMR_MMA(c4, ah1, bl0_0, bl0_1);
            SMR_MMA(c5, ah1, bl1_0, bl1_1);
            SMR_MMA(c6, ah1, bl2_0, bl2_1);
            SMR_MMA(c7, ah1, bl3_0, bl3_1);
            SMR_MMA(c0, ah0, bh0_0, bh0_1);
            SMR_MMA(c1, ah0, bh1_0, bh1_1);
            SMR_MMA(c2, ah0, bh2_0, bh2_1);
            SMR_MMA(c3, ah0, bh3_0, bh3_1);
            SMR_MMA(c4, ah1, bh0_0, bh0_1);
            SMR_MMA(c5, ah1, bh1_0, bh1_1);
            SMR_MMA(c6, ah1, bh2_0, bh2_1);
            SMR_MMA(c7, ah1, bh3_0, bh3_1);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    {
        __local float* sums = memory + slice * 1152;
        *(__local float2*)(sums + (warp_row + 0 + lane / 4) * 36 + warp_column + 0 + lane % 4 * 2) = c0.s01;
        *(__local float2*)(sums + (warp_row + 8 + lane / 4) * 36 + warp_column + 0 + lane % 4 * 2) = c0.s23;
        *(__local float2*)(sums + (warp_row + 0 + lane / 4) * 36 + warp_column + 8 + lane % 4 * 2) = c1.s01;
        *(__local float2*)(sums + (warp_row + 8 + lane / 4) * 36 + warp_column + 8 + lane % 4 * 2) = c1.s23;
        *(__local float2*)(sums + (warp_row + 0 + lane / 4) * 36 + warp_column + 16 + lane % 4 * 2) = c2.s01;
        *(__local float2*)(sums + (warp_row + 8 + lane / 4) * 36 + warp_column + 16 + lane % 4 * 2) = c2.s23;
        *(__local float2*)(sums + (warp_row + 0 + lane / 4) * 36 + warp_column + 24 + lane % 4 * 2) = c3.s01;
        *(__local float2*)(sums + (warp_row + 8 + lane / 4) * 36 + warp_column + 24 + lane % 4 * 2) = c3.s23;
        *(__local float2*)(sums + (warp_row + 16 + lane / 4) * 36 + warp_column + 0 + lane % 4 * 2) = c4.s01;
        *(__local float2*)(sums + (warp_row + 24 + lane / 4) * 36 + warp_column + 0 + lane % 4 * 2) = c4.s23;
        *(__local float2*)(sums + (warp_row + 16 + lane / 4) * 36 + warp_column + 8 + lane % 4 * 2) = c5.s01;
        *(__local float2*)(sums + (warp_row + 24 + lane / 4) * 36 + warp_column + 8 + lane % 4 * 2) = c5.s23;
        *(__local float2*)(sums + (warp_row + 16 + lane / 4) * 36 + warp_column + 16 + lane % 4 * 2) = c6.s01;
        *(__local float2*)(sums + (warp_row + 24 + lane / 4) * 36 + warp_column + 16 + lane % 4 * 2) = c6.s23;
        *(__local float2*)(sums + (warp_row + 16 + lane / 4) * 36 + warp_column + 24 + lane % 4 * 2) = c7.s01;
        *(__local float2*)(sums + (warp_row + 24 + lane / 4) * 36 + warp_column + 24 + lane % 4 * 2) = c7.s23;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int place = thread; place < 256; place += 128) {
        const int tile_row = place / 8;
        const int tile_column = place % 8 * 4;

        const int i1 = first_row + tile_row;
        if (i1 < 10) {
        __local const float* sums = memory + place / 8 * 36 + place % 8 * 4;
        float4 finished = *(__local const float4*)sums;
        finished += *(__local const float4*)(sums + 1152);
        finished += *(__local const float4*)(sums + 2304);
        finished += *(__local const float4*)(sums + 3456);

if (column_tile < 1) {
            const int i6 = (column_tile - 0) * 8 + tile_column / 4;
            if (i6 < 6) {
     {
         {
            const float4 t3 = *(__global const float4*)(p0 + i6 * 4);
            const float4 t4 = (finished + t3);
            const float4 t5 = smr_max4(t4, (float4)(0.0f));
            *(__global float4*)(p3 + (i6 * 4 + i1 * 24)) = t5;
        }
    }
            }
        }
        }
    }
}

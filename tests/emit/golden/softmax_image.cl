// k0_contraction: global (32,), local (32,)
__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [6, 10] */,
    read_only image2d_t p1 /* image[d0d1] of [10, 32] */,
    __global float* restrict p2 /* buffer[d0d1] of [6, 8] */) {
    __local float across[32] __attribute__((aligned(16)));
    __local float statistic0[16] __attribute__((aligned(16)));
    __local float statistic1[16] __attribute__((aligned(16)));
    __local float left_tile[576] __attribute__((aligned(16)));
    __local float right_tile[1280] __attribute__((aligned(16)));
    const int group = (int)get_group_id(0);
    const int thread = (int)get_local_id(0);
    const int column_tile = group % 1;
    const int first_row = group / 1 % 1 * 16;
    const int i0 = group / 1;
    const int lane = thread % 32;
    const int warp = thread / 32 % 1;
    const int slice = thread / 32;
    const int warp_row = warp / 1 * 16;
    const int warp_column = warp % 1 * 32;
     {
        for (int first = 0; first < 16; first += 4) {
            const int team_row = first + thread / 8;
            const int i1 = min(first_row + team_row, 5);
            float4 t1 = (float4)(-INFINITY);
            #pragma unroll 8
for (int i2 = (thread % 8); i2 < 2; i2 += 8) {
                const float4 t2 = *(__global const smr_float4*)(p0 + (i1 * 10 + i2 * 4));
                t1 = smr_max4(t1, t2);
            }
            float t3 = (smr_max1((smr_max1(t1.s0, t1.s2)), (smr_max1(t1.s1, t1.s3))));
            #pragma unroll 8
for (int i3 = (thread % 8); i3 < 2; i3 += 8) {
                const float t4 = p0[(i1 * 10 + i3 + 8)];
                t3 = smr_max1(t3, t4);
            }
            across[thread] = t3;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int stride = 4; stride > 0; stride /= 2) {
                if ((thread % 8) < stride) across[thread] = smr_max1(across[thread], across[thread + stride]);
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            t3 = across[thread - (thread % 8)];
            barrier(CLK_LOCAL_MEM_FENCE);
            float4 t5 = (float4)(0.0f);
            #pragma unroll 8
for (int i4 = (thread % 8); i4 < 2; i4 += 8) {
                const float4 t6 = *(__global const smr_float4*)(p0 + (i1 * 10 + i4 * 4));
                const float4 t7 = (t6 - (float4)(t3));
                const float4 t8 = smr_exp4(t7);
                t5 = t5 + t8;
            }
            float t9 = ((t5.s0 + t5.s2) + (t5.s1 + t5.s3));
            #pragma unroll 8
for (int i5 = (thread % 8); i5 < 2; i5 += 8) {
                const float t10 = p0[(i1 * 10 + i5 + 8)];
                const float t11 = (t10 - t3);
                const float t12 = smr_exp1(t11);
                t9 = t9 + t12;
            }
            across[thread] = t9;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int stride = 4; stride > 0; stride /= 2) {
                if ((thread % 8) < stride) across[thread] = across[thread] + across[thread + stride];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            t9 = across[thread - (thread % 8)];
            barrier(CLK_LOCAL_MEM_FENCE);
            if (thread % 8 == 0) statistic0[team_row] = t3;
            if (thread % 8 == 0) statistic1[team_row] = t9;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    float left_next[16];
    float4 right_next[8];
    float4 c[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) c[i] = 0.0f;
    {
        const int step = 0;
     {
        #pragma unroll
        for (int e = 0; e < 16; ++e) {
            const int slot = e * 32 + thread;
             {
                const int at = slot / 32;
                const int i6 = min(first_row + at, 5);
                const int depth = step * 32 + slot % 32;
                const int i7 = min(depth, 9);
                const float t13 = p0[(i7 + i6 * 10)];
                const float t14 = (t13 - statistic0[at]);
                const float t15 = smr_exp1(t14);
                const float t16 = (t15 / statistic1[at]);
                left_next[e] = depth < 10 ? t16 : 0.0f;
            }
        }
    }
     {
        #pragma unroll
        for (int e = 0; e < 8; ++e) {
            const int slot = e * 32 + thread;
             {
                const int at = slot % 8;
                const int i8 = min((column_tile * 32) / 4 + at, 7);
                const int depth = step * 32 + slot / 8;
                const int i9 = min(depth, 9);
                const float4 t17 = read_imagef(p1, smr_sampler, (int2)(i8, i9));
                right_next[e] = depth < 10 ? t17 : 0.0f;
            }
        }
    }
    }
    for (int turn = 0; turn < 1; ++turn) {
        __local float* left = (__local float*)left_tile;
        __local float* right = (__local float*)right_tile;
     {
        #pragma unroll
        for (int e = 0; e < 16; ++e) {
            const int slot = e * 32 + thread;
             {
                left[(slot / 32) * 36 + slot % 32] = left_next[e];
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
        for (int e = 0; e < 16; ++e) {
            const int slot = e * 32 + thread;
             {
                const int at = slot / 32;
                const int i6 = min(first_row + at, 5);
                const int depth = step * 32 + slot % 32;
                const int i7 = min(depth, 9);
                const float t13 = p0[(i7 + i6 * 10)];
                const float t14 = (t13 - statistic0[at]);
                const float t15 = smr_exp1(t14);
                const float t16 = (t15 / statistic1[at]);
                left_next[e] = depth < 10 ? t16 : 0.0f;
            }
        }
    }
     {
        #pragma unroll
        for (int e = 0; e < 8; ++e) {
            const int slot = e * 32 + thread;
             {
                const int at = slot % 8;
                const int i8 = min((column_tile * 32) / 4 + at, 7);
                const int depth = step * 32 + slot / 8;
                const int i9 = min(depth, 9);
                const float4 t17 = read_imagef(p1, smr_sampler, (int2)(i8, i9));
                right_next[e] = depth < 10 ? t17 : 0.0f;
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
        if (i1 < 6) {
        const float4 finished = c[place];

if (column_tile < 1) {
            const int i10 = (column_tile - 0) * 8 + tile_column / 4;
            if (i10 < 2) {
     {
         {
            *(__global float4*)(p2 + (i10 * 4 + i1 * 8)) = finished;
        }
    }
            }
        }
        }
    }
}

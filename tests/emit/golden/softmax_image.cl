// k0_reduction: global (256,), local (256,)
__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [6, 10] */,
    write_only image2d_t p1 /* image[d0d1] of [6, 10] */) {
    __local float across[256] __attribute__((aligned(16)));
    const int item = (int)get_global_id(0);
    const int thread = (int)get_local_id(0);
    const int i0 = min(item / 2, 5);
    float4 t1 = (float4)(-INFINITY);
    #pragma unroll 8
for (int i1 = (thread % 2); i1 < 2; i1 += 2) {
        const float4 t2 = *(__global const smr_float4*)(p0 + (i0 * 10 + i1 * 4));
        t1 = smr_max4(t1, t2);
    }
    float t3 = (smr_max1((smr_max1(t1.s0, t1.s2)), (smr_max1(t1.s1, t1.s3))));
    #pragma unroll 8
for (int i2 = (thread % 2); i2 < 2; i2 += 2) {
        const float t4 = p0[(i0 * 10 + i2 + 8)];
        t3 = smr_max1(t3, t4);
    }
    across[thread] = t3;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int stride = 1; stride > 0; stride /= 2) {
        if ((thread % 2) < stride) across[thread] = smr_max1(across[thread], across[thread + stride]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    t3 = across[thread - (thread % 2)];
    barrier(CLK_LOCAL_MEM_FENCE);
    float4 t5 = (float4)(0.0f);
    #pragma unroll 8
for (int i3 = (thread % 2); i3 < 2; i3 += 2) {
        const float4 t6 = *(__global const smr_float4*)(p0 + (i0 * 10 + i3 * 4));
        const float4 t7 = (t6 - (float4)(t3));
        const float4 t8 = smr_exp4(t7);
        t5 = t5 + t8;
    }
    float t9 = ((t5.s0 + t5.s2) + (t5.s1 + t5.s3));
    #pragma unroll 8
for (int i4 = (thread % 2); i4 < 2; i4 += 2) {
        const float t10 = p0[(i0 * 10 + i4 + 8)];
        const float t11 = (t10 - t3);
        const float t12 = smr_exp1(t11);
        t9 = t9 + t12;
    }
    across[thread] = t9;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int stride = 1; stride > 0; stride /= 2) {
        if ((thread % 2) < stride) across[thread] = across[thread] + across[thread + stride];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    t9 = across[thread - (thread % 2)];
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll 8
for (int i5 = (thread % 2); i5 < 2; i5 += 2) {
        const float4 t13 = *(__global const smr_float4*)(p0 + (i0 * 10 + i5 * 4));
        const float4 t14 = (t13 - (float4)(t3));
        const float4 t15 = smr_exp4(t14);
        const float4 t16 = (t15 / (float4)(t9));
        write_imagef(p1, (int2)(i5, i0), t16);
    }
    if ((thread % 2) == 0) {
        const float t17 = p0[(i0 * 10 + 8)];
        const float t18 = (t17 - t3);
        const float t19 = smr_exp1(t18);
        const float t20 = (t19 / t9);
        const float t21 = p0[(i0 * 10 + 9)];
        const float t22 = (t21 - t3);
        const float t23 = smr_exp1(t22);
        const float t24 = (t23 / t9);
        write_imagef(p1, (int2)((2), i0), (float4)(t20, t24, 0.0f, 0.0f));
    }
}

// k1_contraction: global (64,), local (64,)
__kernel void smr_kernel(
    read_only image2d_t p0 /* image[d0d1] of [6, 10] */,
    read_only image2d_t p1 /* image[d0d1] of [10, 8] */,
    __global float* restrict p2 /* buffer[d0d1] of [6, 8] */) {
    const int item = (int)get_global_id(0);
    if (item >= 4) return;
    const int i0 = item % 2;
    const int i1 = item / 2 % 2;
    const int i2 = item / 4;
    const int i3 = min(i1 * 4 + 0, 5);
    const int i4 = min(i1 * 4 + 1, 5);
    const int i5 = min(i1 * 4 + 2, 5);
    const int i6 = min(i1 * 4 + 3, 5);
    float4 t1 = 0.0f;
    float4 t2 = 0.0f;
    float4 t3 = 0.0f;
    float4 t4 = 0.0f;
    for (int i7 = 0; i7 < 10; ++i7) {
        const float4 t5 = read_imagef(p1, smr_sampler, (int2)(i0, i7));
        const float t6 = smr_lane(read_imagef(p0, smr_sampler, (int2)((i7 / 4), i3)), (i7 % 4));
        t1 += t6 * t5;
        const float t7 = smr_lane(read_imagef(p0, smr_sampler, (int2)((i7 / 4), i4)), (i7 % 4));
        t2 += t7 * t5;
        const float t8 = smr_lane(read_imagef(p0, smr_sampler, (int2)((i7 / 4), i5)), (i7 % 4));
        t3 += t8 * t5;
        const float t9 = smr_lane(read_imagef(p0, smr_sampler, (int2)((i7 / 4), i6)), (i7 % 4));
        t4 += t9 * t5;
    }
    if (i1 * 4 + 0 < 6) {
         {
            *(__global float4*)(p2 + (i0 * 4 + i3 * 8)) = t1;
        }
    }
    if (i1 * 4 + 1 < 6) {
         {
            *(__global float4*)(p2 + (i0 * 4 + i4 * 8)) = t2;
        }
    }
    if (i1 * 4 + 2 < 6) {
         {
            *(__global float4*)(p2 + (i0 * 4 + i5 * 8)) = t3;
        }
    }
    if (i1 * 4 + 3 < 6) {
         {
            *(__global float4*)(p2 + (i0 * 4 + i6 * 8)) = t4;
        }
    }
}

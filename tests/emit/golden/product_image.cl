// k0_contraction: global (64,), local (64,)
__kernel void smr_kernel(
    read_only image2d_t p0 /* image[d0] of [9] */,
    __global const float* restrict p1 /* buffer[d0d1] of [6, 10] */,
    read_only image2d_t p2 /* image[d0d1] of [10, 9] */,
    __global float* restrict p3 /* buffer[d0d1] of [6, 9] */) {
    const int item = (int)get_global_id(0);
    if (item >= 6) return;
    const int i0 = item % 3;
    const int i1 = item / 3 % 2;
    const int i2 = item / 6;
    const int i3 = min(i1 * 4 + 0, 5);
    const int i4 = min(i1 * 4 + 1, 5);
    const int i5 = min(i1 * 4 + 2, 5);
    const int i6 = min(i1 * 4 + 3, 5);
    float4 t1 = 0.0f;
    float4 t2 = 0.0f;
    float4 t3 = 0.0f;
    float4 t4 = 0.0f;
    for (int i7 = 0; i7 < 10; ++i7) {
        float4 t5 = 0.0f;
        if (i0 < 2) {
            const float4 t6 = read_imagef(p2, smr_sampler, (int2)(i0, i7));
            t5 = t6;
        }
        if (i0 == 2) {
            const float t7 = read_imagef(p2, smr_sampler, (int2)(i0, i7)).s0;
            t5.s0 = t7;
        }
        const float t8 = p1[(i3 * 10 + i7)];
        t1 += t8 * t5;
        const float t9 = p1[(i4 * 10 + i7)];
        t2 += t9 * t5;
        const float t10 = p1[(i5 * 10 + i7)];
        t3 += t10 * t5;
        const float t11 = p1[(i6 * 10 + i7)];
        t4 += t11 * t5;
    }
    if (i1 * 4 + 0 < 6) {
        if (i0 < 2) {
            const float4 t12 = read_imagef(p0, smr_sampler, (int2)(i0, 0));
            const float4 t13 = (t1 + t12);
            *(__global smr_float4*)(p3 + (i0 * 4 + i3 * 9)) = t13;
        }
        if (i0 == 2) {
            const float t14 = read_imagef(p0, smr_sampler, (int2)(i0, 0)).s0;
            const float t15 = (t1.s0 + t14);
            p3[(i0 * 4 + i3 * 9)] = t15;
        }
    }
    if (i1 * 4 + 1 < 6) {
        if (i0 < 2) {
            const float4 t16 = read_imagef(p0, smr_sampler, (int2)(i0, 0));
            const float4 t17 = (t2 + t16);
            *(__global smr_float4*)(p3 + (i0 * 4 + i4 * 9)) = t17;
        }
        if (i0 == 2) {
            const float t18 = read_imagef(p0, smr_sampler, (int2)(i0, 0)).s0;
            const float t19 = (t2.s0 + t18);
            p3[(i0 * 4 + i4 * 9)] = t19;
        }
    }
    if (i1 * 4 + 2 < 6) {
        if (i0 < 2) {
            const float4 t20 = read_imagef(p0, smr_sampler, (int2)(i0, 0));
            const float4 t21 = (t3 + t20);
            *(__global smr_float4*)(p3 + (i0 * 4 + i5 * 9)) = t21;
        }
        if (i0 == 2) {
            const float t22 = read_imagef(p0, smr_sampler, (int2)(i0, 0)).s0;
            const float t23 = (t3.s0 + t22);
            p3[(i0 * 4 + i5 * 9)] = t23;
        }
    }
    if (i1 * 4 + 3 < 6) {
        if (i0 < 2) {
            const float4 t24 = read_imagef(p0, smr_sampler, (int2)(i0, 0));
            const float4 t25 = (t4 + t24);
            *(__global smr_float4*)(p3 + (i0 * 4 + i6 * 9)) = t25;
        }
        if (i0 == 2) {
            const float t26 = read_imagef(p0, smr_sampler, (int2)(i0, 0)).s0;
            const float t27 = (t4.s0 + t26);
            p3[(i0 * 4 + i6 * 9)] = t27;
        }
    }
}

// k0_reduction: global (6,), local (1,)
// Row reductions: a work-item computes whole rows. Statistics of a row are scalars, values of a row that are used twice lie
// in scratch memory, and results that depend on the row alone are written in the same pass.

#pragma OPENCL FP_CONTRACT OFF
__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [6, 19] */,
    __global float* restrict p1 /* buffer[d0d1] of [6, 19] */) {
    const int item = (int)get_global_id(0);
    for (int i0 = item * 1; i0 < min((item + 1) * 1, 6); ++i0) {
        float8 t1 = (float8)(-INFINITY);
        #pragma unroll
        for (int i1 = 0; i1 < 2; ++i1) {
            const float8 t2 = *(__global const smr_float8*)(p0 + (i0 * 19 + i1 * 8));
            t1 = smr_max8(t1, t2);
        }
        float t3 = (smr_max1((smr_max1((smr_max1(t1.s0, t1.s4)), (smr_max1(t1.s2, t1.s6)))), (smr_max1((smr_max1(t1.s1, t1.s5)), (smr_max1(t1.s3, t1.s7))))));
        for (int i2 = 0; i2 < 3; ++i2) {
            const float t4 = p0[(i0 * 19 + i2 + 16)];
            t3 = smr_max1(t3, t4);
        }
        float t5[19];
        #pragma unroll
        for (int i3 = 0; i3 < 2; ++i3) {
            const float8 t6 = *(__global const smr_float8*)(p0 + (i0 * 19 + i3 * 8));
            const float8 t7 = (t6 - (float8)(t3));
            const float8 t8 = smr_exp8(t7);
            *(smr_float8*)(t5 + i3 * 8) = t8;
        }
        for (int i4 = 0; i4 < 3; ++i4) {
            const float t9 = p0[(i0 * 19 + i4 + 16)];
            const float t10 = (t9 - t3);
            const float t11 = smr_exp1(t10);
            t5[(i4 + 16)] = t11;
        }
        float8 t12 = (float8)(0.0f);
        #pragma unroll
        for (int i3 = 0; i3 < 2; ++i3) {
            t12 = t12 + (*(const smr_float8*)(t5 + i3 * 8));
        }
        float t13 = (((t12.s0 + t12.s4) + (t12.s2 + t12.s6)) + ((t12.s1 + t12.s5) + (t12.s3 + t12.s7)));
        for (int i4 = 0; i4 < 3; ++i4) {
            t13 = t13 + t5[(i4 + 16)];
        }
        #pragma unroll
        for (int i5 = 0; i5 < 2; ++i5) {
            const float8 t14 = ((*(const smr_float8*)(t5 + i5 * 8)) / (float8)(t13));
            *(__global smr_float8*)(p1 + (i0 * 19 + i5 * 8)) = t14;
        }
        for (int i6 = 0; i6 < 3; ++i6) {
            const float t15 = (t5[(i6 + 16)] / t13);
            p1[(i0 * 19 + i6 + 16)] = t15;
        }
    }
}

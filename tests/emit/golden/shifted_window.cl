// k0_pointwise: global (6,), local (1,)
// Elementwise and window kernels: one expression for each element holds the prologue, the core and the epilogue.

#pragma OPENCL FP_CONTRACT OFF
__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [6, 10] */,
    __global float* restrict p1 /* buffer[d0d1] of [6, 10] */) {
    const int item = (int)get_global_id(0);
    for (int i0 = item * 1; i0 < min((item + 1) * 1, 6); ++i0) {
        for (int i1 = 0; i1 < 1; ++i1) {
            const float t1 = p0[(i0 * 10 + 3)];
            const float t2 = p0[(i0 * 10 + 4)];
            const float t3 = p0[(i0 * 10 + 5)];
            const float t4 = p0[(i0 * 10 + 6)];
            const float t5 = p0[(i0 * 10 + 7)];
            const float t6 = p0[(i0 * 10 + 8)];
            const float t7 = p0[(i0 * 10 + 9)];
            const float t8 = p0[i0 * 10];
            const float8 t9 = (float8)(t1, t2, t3, t4, t5, t6, t7, t8);
            const float8 t10 = smr_max8(t9, (float8)(0.0f));
            *(__global smr_float8*)(p1 + i0 * 10) = t10;
        }
         {
            for (int i2 = 0; i2 < 2; ++i2) {
                const float t11 = p0[(i0 * 10 + i2 + 1)];
                const float t12 = smr_max1(t11, 0.0f);
                p1[(i0 * 10 + i2 + 8)] = t12;
            }
        }
    }
}

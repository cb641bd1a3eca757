// k0_pointwise: global (6,), local (1,)
// Elementwise and window kernels: one expression for each element holds the prologue, the core and the epilogue.

#pragma OPENCL FP_CONTRACT OFF
__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [6, 10] */,
    __global const float* restrict p1 /* buffer[d0] of [10] */,
    __global float* restrict p2 /* buffer[d0d1] of [6, 10] */) {
    const int item = (int)get_global_id(0);
    for (int i0 = item * 1; i0 < min((item + 1) * 1, 6); ++i0) {
        for (int i1 = 0; i1 < 1; ++i1) {
            const float8 t1 = *(__global const smr_float8*)(p0 + i0 * 10);
            const float8 t2 = smr_tanh8(t1);
            const float8 t3 = *(__global const float8*)(p1 + 0);
            const float8 t4 = (t2 + t3);
            *(__global smr_float8*)(p2 + i0 * 10) = t4;
        }
         {
            for (int i2 = 0; i2 < 2; ++i2) {
                const float t5 = p0[(i0 * 10 + i2 + 8)];
                const float t6 = smr_tanh1(t5);
                const float t7 = p1[(i2 + 8)];
                const float t8 = (t6 + t7);
                p2[(i0 * 10 + i2 + 8)] = t8;
            }
        }
    }
}

// k0_pointwise: global (64,), local (64,)
// Elementwise and window kernels: one expression for each element holds the prologue, the core and the epilogue.

#pragma OPENCL FP_CONTRACT OFF
__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [6, 10] */,
    __global const float* restrict p1 /* buffer[d0] of [10] */,
    __global float* restrict p2 /* buffer[d0d1] of [6, 10] */) {
    const int item = (int)get_global_id(0);
    const int i0 = item / 3;
    if (i0 < 6) {
        if (item % 3 < 2) {
            const int i1 = item % 3;
            const float4 t1 = *(__global const smr_float4*)(p0 + (i0 * 10 + i1 * 4));
            const float4 t2 = smr_tanh4(t1);
            const float4 t3 = *(__global const float4*)(p1 + i1 * 4);
            const float4 t4 = (t2 + t3);
            *(__global smr_float4*)(p2 + (i0 * 10 + i1 * 4)) = t4;
        }
        if (item % 3 == 2) {
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

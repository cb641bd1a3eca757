// k0_pointwise: global (6,), local (1,)
// Elementwise and window kernels: one expression for each element holds the prologue, the core and the epilogue.

#pragma OPENCL FP_CONTRACT OFF
__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [6, 10] */,
    __global const long* restrict p1 /* buffer[d0] of [3] */,
    __global float* restrict p2 /* buffer[d0d1] of [6, 3] */) {
    const int item = (int)get_global_id(0);
    for (int i0 = item * 1; i0 < min((item + 1) * 1, 6); ++i0) {
        for (int i1 = 0; i1 < 3; ++i1) {
            const float t1 = p0[(i0 * 10 + smr_wrap((int)p1[i1], 10))];
            p2[(i0 * 3 + i1)] = t1;
        }
    }
}

// k0_window: global (48,), local (1,)
// Elementwise and window kernels: one expression for each element holds the prologue, the core and the epilogue.

__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1d2d3] of [1, 8, 6, 6] */,
    __global const float* restrict p1 /* buffer[d0d1d2d3] of [8, 1, 3, 3] */,
    __global float* restrict p2 /* buffer[d0d1d2d3] of [1, 8, 6, 6] */) {
    const int item = (int)get_global_id(0);
    for (int i0 = item * 1; i0 < min((item + 1) * 1, 48); ++i0) {
        for (int i1 = 0; i1 < 6; ++i1) {
            float t1 = 0.0f;
            if ((((i0 % 6) * -1 + 1) <= 0) && (((i0 % 6) + -5) < 0) && ((i1 * -1 + 1) <= 0) && ((i1 + -5) < 0)) {
                #pragma unroll
                for (int i2 = 0; i2 < 3; ++i2) {
                    #pragma unroll
                    for (int i3 = 0; i3 < 3; ++i3) {
                        const float t2 = p0[(i0 * 6 + i1 + i2 * 6 + i3 + -7)];
                        const float t3 = p1[(i2 * 3 + i3 + (i0 / 6) * 9)];
                        t1 += t2 * t3;
                    }
                }
            }
            else {
                for (int i2 = 0; i2 < 3; ++i2) {
                    for (int i3 = 0; i3 < 3; ++i3) {
                        float t4;
                        if ((0 <= (i2 + (i0 % 6) + -1)) && ((i2 + (i0 % 6) + -1) < (6)) && (0 <= (i1 + i3 + -1)) && ((i1 + i3 + -1) < (6))) {
                            const float t5 = p0[(i0 * 6 + i1 + i2 * 6 + i3 + -7)];
                            t4 = t5;
                        }
                        else {
                            t4 = 0.0f;
                        }
                        const float t6 = p1[(i2 * 3 + i3 + (i0 / 6) * 9)];
                        t1 += t4 * t6;
                    }
                }
            }
            const float t7 = smr_max1(t1, 0.0f);
            p2[(i0 * 6 + i1)] = t7;
        }
    }
}

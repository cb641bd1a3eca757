// k0_window: global (128,), local (64,)
// Elementwise and window kernels: one expression for each element holds the prologue, the core and the epilogue.

__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1d2d3] of [1, 8, 6, 6] */,
    __global const float* restrict p1 /* buffer[d0d1d2d3] of [8, 1, 3, 3] */,
    __global float* restrict p2 /* buffer[d0d1d2d3] of [1, 8, 6, 6] */) {
    const int item = (int)get_global_id(0);
    const int i0 = item / 2;
    if (i0 < 48) {
        if (item % 2 < 1) {
            const int i1 = item % 2;
            float4 t1 = (float4)(0.0f);
            #pragma unroll
            for (int i2 = 0; i2 < 3; ++i2) {
                #pragma unroll
                for (int i3 = 0; i3 < 3; ++i3) {
                    float t2;
                    if ((0 <= (i2 + (i0 % 6) + -1)) && ((i2 + (i0 % 6) + -1) < (6)) && (0 <= (i3 + -1))) {
                        const float t3 = p0[(i0 * 6 + i2 * 6 + i3 + -7)];
                        t2 = t3;
                    }
                    else {
                        t2 = 0.0f;
                    }
                    float t4;
                    if ((0 <= (i2 + (i0 % 6) + -1)) && ((i2 + (i0 % 6) + -1) < (6))) {
                        const float t5 = p0[(i0 * 6 + i2 * 6 + i3 + -6)];
                        t4 = t5;
                    }
                    else {
                        t4 = 0.0f;
                    }
                    float t6;
                    if ((0 <= (i2 + (i0 % 6) + -1)) && ((i2 + (i0 % 6) + -1) < (6))) {
                        const float t7 = p0[(i0 * 6 + i2 * 6 + i3 + -5)];
                        t6 = t7;
                    }
                    else {
                        t6 = 0.0f;
                    }
                    float t8;
                    if ((0 <= (i2 + (i0 % 6) + -1)) && ((i2 + (i0 % 6) + -1) < (6))) {
                        const float t9 = p0[(i0 * 6 + i2 * 6 + i3 + -4)];
                        t8 = t9;
                    }
                    else {
                        t8 = 0.0f;
                    }
                    const float4 t10 = (float4)(t2, t4, t6, t8);
                    const float t11 = p1[(i2 * 3 + i3 + (i0 / 6) * 9)];
                    t1 += t10 * (float4)(t11);
                }
            }
            const float4 t12 = smr_max4(t1, (float4)(0.0f));
            *(__global smr_float4*)(p2 + i0 * 6) = t12;
        }
        if (item % 2 == 1) {
            for (int i4 = 0; i4 < 2; ++i4) {
                float t13 = 0.0f;
                #pragma unroll
                for (int i2 = 0; i2 < 3; ++i2) {
                    #pragma unroll
                    for (int i3 = 0; i3 < 3; ++i3) {
                        float t14;
                        if ((0 <= (i2 + (i0 % 6) + -1)) && ((i2 + (i0 % 6) + -1) < (6)) && ((i3 + i4 + 3) < (6))) {
                            const float t15 = p0[(i0 * 6 + i2 * 6 + i3 + i4 + -3)];
                            t14 = t15;
                        }
                        else {
                            t14 = 0.0f;
                        }
                        const float t16 = p1[(i2 * 3 + i3 + (i0 / 6) * 9)];
                        t13 += t14 * t16;
                    }
                }
                const float t17 = smr_max1(t13, 0.0f);
                p2[(i0 * 6 + i4 + 4)] = t17;
            }
        }
    }
}

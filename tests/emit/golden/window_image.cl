// k0_pointwise: global (128,), local (64,)
// Elementwise and window kernels: one expression for each element holds the prologue, the core and the epilogue.

#pragma OPENCL FP_CONTRACT OFF
__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1d2d3] of [1, 8, 6, 6] */,
    write_only image2d_t p1 /* image[d0d1d2d3] of [1, 8, 6, 6] */) {
    const int item = (int)get_global_id(0);
    const int i0 = item / 2;
    if (i0 < 48) {
        if (item % 2 < 1) {
            const int i1 = item % 2;
            const float4 t1 = *(__global const smr_float4*)(p0 + i0 * 6);
            const float4 t2 = smr_max4(t1, (float4)(0.0f));
            write_imagef(p1, (int2)(0, i0), t2);
        }
        if (item % 2 == 1) {
            float t3;
             {
                const float t4 = p0[(i0 * 6 + 4)];
                const float t5 = smr_max1(t4, 0.0f);
                t3 = t5;
            }
            float t6;
             {
                const float t7 = p0[(i0 * 6 + 5)];
                const float t8 = smr_max1(t7, 0.0f);
                t6 = t8;
            }
            write_imagef(p1, (int2)((1), i0), (float4)(t3, t6, 0.0f, 0.0f));
        }
    }
}

// k1_window: global (128,), local (64,)
// Elementwise and window kernels: one expression for each element holds the prologue, the core and the epilogue.

__kernel void smr_kernel(
    read_only image2d_t p0 /* image[d0d1d2d3] of [1, 8, 6, 6] */,
    read_only image2d_t p1 /* image[d0d1d2d3] of [8, 1, 3, 3] */,
    write_only image2d_t p2 /* image[d0d1d2d3] of [1, 8, 6, 6] */) {
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
                        const float t3 = smr_lane(read_imagef(p0, smr_sampler, (int2)((((i3 + 3) / 4) + -1), (i0 + i2 + -1))), ((i3 + 3) % 4));
                        t2 = t3;
                    }
                    else {
                        t2 = 0.0f;
                    }
                    float t4;
                    if ((0 <= (i2 + (i0 % 6) + -1)) && ((i2 + (i0 % 6) + -1) < (6))) {
                        const float t5 = smr_lane(read_imagef(p0, smr_sampler, (int2)(0, (i0 + i2 + -1))), i3);
                        t4 = t5;
                    }
                    else {
                        t4 = 0.0f;
                    }
                    float t6;
                    if ((0 <= (i2 + (i0 % 6) + -1)) && ((i2 + (i0 % 6) + -1) < (6))) {
                        const float t7 = smr_lane(read_imagef(p0, smr_sampler, (int2)(0, (i0 + i2 + -1))), (i3 + 1));
                        t6 = t7;
                    }
                    else {
                        t6 = 0.0f;
                    }
                    float t8;
                    if ((0 <= (i2 + (i0 % 6) + -1)) && ((i2 + (i0 % 6) + -1) < (6))) {
                        const float t9 = smr_lane(read_imagef(p0, smr_sampler, (int2)(((i3 + 2) / 4), (i0 + i2 + -1))), ((i3 + 2) % 4));
                        t8 = t9;
                    }
                    else {
                        t8 = 0.0f;
                    }
                    const float4 t10 = (float4)(t2, t4, t6, t8);
                    const float t11 = smr_lane(read_imagef(p1, smr_sampler, (int2)(0, (i2 + (i0 / 6) * 3))), i3);
                    t1 += t10 * (float4)(t11);
                }
            }
            write_imagef(p2, (int2)(0, i0), t1);
        }
        if (item % 2 == 1) {
            float t12;
             {
                float t13 = 0.0f;
                #pragma unroll
                for (int i2 = 0; i2 < 3; ++i2) {
                    #pragma unroll
                    for (int i3 = 0; i3 < 3; ++i3) {
                        float t14;
                        if ((0 <= (i2 + (i0 % 6) + -1)) && ((i2 + (i0 % 6) + -1) < (6))) {
                            const float t15 = smr_lane(read_imagef(p0, smr_sampler, (int2)(((i3 + 3) / 4), (i0 + i2 + -1))), ((i3 + 3) % 4));
                            t14 = t15;
                        }
                        else {
                            t14 = 0.0f;
                        }
                        const float t16 = smr_lane(read_imagef(p1, smr_sampler, (int2)(0, (i2 + (i0 / 6) * 3))), i3);
                        t13 += t14 * t16;
                    }
                }
                t12 = t13;
            }
            float t17;
             {
                float t18 = 0.0f;
                #pragma unroll
                for (int i2 = 0; i2 < 3; ++i2) {
                    #pragma unroll
                    for (int i3 = 0; i3 < 3; ++i3) {
                        float t19;
                        if ((0 <= (i2 + (i0 % 6) + -1)) && ((i2 + (i0 % 6) + -1) < (6)) && ((i3 + 4) < (6))) {
                            const float t20 = smr_lane(read_imagef(p0, smr_sampler, (int2)((1), (i0 + i2 + -1))), i3);
                            t19 = t20;
                        }
                        else {
                            t19 = 0.0f;
                        }
                        const float t21 = smr_lane(read_imagef(p1, smr_sampler, (int2)(0, (i2 + (i0 / 6) * 3))), i3);
                        t18 += t19 * t21;
                    }
                }
                t17 = t18;
            }
            write_imagef(p2, (int2)((1), i0), (float4)(t12, t17, 0.0f, 0.0f));
        }
    }
}

// k2_pointwise: global (128,), local (64,)
// Elementwise and window kernels: one expression for each element holds the prologue, the core and the epilogue.

#pragma OPENCL FP_CONTRACT OFF
__kernel void smr_kernel(
    read_only image2d_t p0 /* image[d0d1d2d3] of [1, 8, 6, 6] */,
    __global float* restrict p1 /* buffer[d0d1d2d3] of [1, 8, 6, 6] */) {
    const int item = (int)get_global_id(0);
    const int i0 = item / 2;
    if (i0 < 48) {
        if (item % 2 < 1) {
            const int i1 = item % 2;
            const float4 t1 = read_imagef(p0, smr_sampler, (int2)(0, i0));
            const float4 t2 = smr_tanh4(t1);
            *(__global smr_float4*)(p1 + i0 * 6) = t2;
        }
        if (item % 2 == 1) {
            for (int i2 = 0; i2 < 2; ++i2) {
                const float t3 = smr_lane(read_imagef(p0, smr_sampler, (int2)((1), i0)), i2);
                const float t4 = smr_tanh1(t3);
                p1[(i0 * 6 + i2 + 4)] = t4;
            }
        }
    }
}

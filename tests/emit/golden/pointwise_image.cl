// k0_pointwise: global (64,), local (64,)
// Elementwise and window kernels: one expression for each element holds the prologue, the core and the epilogue.

#pragma OPENCL FP_CONTRACT OFF
__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [6, 10] */,
    write_only image2d_t p1 /* image[d0d1] of [6, 10] */) {
    const int item = (int)get_global_id(0);
    const int i0 = item / 3;
    if (i0 < 6) {
        if (item % 3 < 2) {
            const int i1 = item % 3;
            const float4 t1 = *(__global const smr_float4*)(p0 + (i0 * 10 + i1 * 4));
            const float4 t2 = smr_max4(t1, (float4)(0.0f));
            write_imagef(p1, (int2)(i1, i0), t2);
        }
        if (item % 3 == 2) {
            float t3;
             {
                const float t4 = p0[(i0 * 10 + 8)];
                const float t5 = smr_max1(t4, 0.0f);
                t3 = t5;
            }
            float t6;
             {
                const float t7 = p0[(i0 * 10 + 9)];
                const float t8 = smr_max1(t7, 0.0f);
                t6 = t8;
            }
            write_imagef(p1, (int2)((2), i0), (float4)(t3, t6, 0.0f, 0.0f));
        }
    }
}

// k1_pointwise: global (64,), local (64,)
// Elementwise and window kernels: one expression for each element holds the prologue, the core and the epilogue.

#pragma OPENCL FP_CONTRACT OFF
__kernel void smr_kernel(
    read_only image2d_t p0 /* image[d0d1] of [6, 10] */,
    read_only image2d_t p1 /* image[d0] of [10] */,
    write_only image2d_t p2 /* image[d0d1] of [6, 10] */) {
    const int item = (int)get_global_id(0);
    const int i0 = item / 3;
    if (i0 < 6) {
        if (item % 3 < 2) {
            const int i1 = item % 3;
            const float4 t1 = read_imagef(p0, smr_sampler, (int2)(i1, i0));
            const float4 t2 = read_imagef(p1, smr_sampler, (int2)(i1, 0));
            const float4 t3 = (t1 + t2);
            write_imagef(p2, (int2)(i1, i0), t3);
        }
        if (item % 3 == 2) {
            float t4;
             {
                const float t5 = read_imagef(p0, smr_sampler, (int2)((2), i0)).s0;
                const float t6 = read_imagef(p1, smr_sampler, (int2)((2), 0)).s0;
                const float t7 = (t5 + t6);
                t4 = t7;
            }
            float t8;
             {
                const float t9 = read_imagef(p0, smr_sampler, (int2)((2), i0)).s1;
                const float t10 = read_imagef(p1, smr_sampler, (int2)((2), 0)).s1;
                const float t11 = (t9 + t10);
                t8 = t11;
            }
            write_imagef(p2, (int2)((2), i0), (float4)(t4, t8, 0.0f, 0.0f));
        }
    }
}

// k2_pointwise: global (64,), local (64,)
// Elementwise and window kernels: one expression for each element holds the prologue, the core and the epilogue.

#pragma OPENCL FP_CONTRACT OFF
__kernel void smr_kernel(
    read_only image2d_t p0 /* image[d0d1] of [6, 10] */,
    __global float* restrict p1 /* buffer[d0d1] of [6, 10] */) {
    const int item = (int)get_global_id(0);
    const int i0 = item / 3;
    if (i0 < 6) {
        if (item % 3 < 2) {
            const int i1 = item % 3;
            const float4 t1 = read_imagef(p0, smr_sampler, (int2)(i1, i0));
            const float4 t2 = smr_tanh4(t1);
            *(__global smr_float4*)(p1 + (i0 * 10 + i1 * 4)) = t2;
        }
        if (item % 3 == 2) {
            for (int i2 = 0; i2 < 2; ++i2) {
                const float t3 = smr_lane(read_imagef(p0, smr_sampler, (int2)((2), i0)), i2);
                const float t4 = smr_tanh1(t3);
                p1[(i0 * 10 + i2 + 8)] = t4;
            }
        }
    }
}

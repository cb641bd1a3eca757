// k0_contraction: global (1,), local (1,)
// Contractions in registers, for textures and for devices without wide vectors. A work-item computes 3 rows by
// 4 columns. It reads both factors through their index maps; a texel of the left factor serves four steps of k.

__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1d2] of [3, 1, 4] */,
    __global const float* restrict p1 /* buffer[d0d1] of [4, 4] */,
    __global float* restrict p2 /* buffer[d0d1d2d3] of [3, 1, 1, 4] */) {
    const int item = (int)get_global_id(0);
    if (item >= 1) return;
    const int i0 = item % 1;
    const int i1 = item / 1 % 1;
    const int i2 = item / 1;
    const int i3 = min(0 + 0, 2);
    const int i4 = min(0 + 1, 2);
    const int i5 = min(0 + 2, 2);
    float4 t1 = 0.0f;
    float4 t2 = 0.0f;
    float4 t3 = 0.0f;
    for (int i6 = 0; i6 < 1; ++i6) {
        const float4 t4 = *(__global const float4*)(p0 + i3 * 4);
        const float4 t5 = *(__global const float4*)(p0 + i4 * 4);
        const float4 t6 = *(__global const float4*)(p0 + i5 * 4);
        const float4 t7 = *(__global const float4*)(p1 + 0);
        t1 += t4.s0 * t7;
        t2 += t5.s0 * t7;
        t3 += t6.s0 * t7;
        const float4 t8 = *(__global const float4*)(p1 + (4));
        t1 += t4.s1 * t8;
        t2 += t5.s1 * t8;
        t3 += t6.s1 * t8;
        const float4 t9 = *(__global const float4*)(p1 + (8));
        t1 += t4.s2 * t9;
        t2 += t5.s2 * t9;
        t3 += t6.s2 * t9;
        const float4 t10 = *(__global const float4*)(p1 + (12));
        t1 += t4.s3 * t10;
        t2 += t5.s3 * t10;
        t3 += t6.s3 * t10;
    }
     {
         {
             {
                *(__global float4*)(p2 + i3 * 4) = t1;
            }
        }
    }
     {
         {
             {
                *(__global float4*)(p2 + i4 * 4) = t2;
            }
        }
    }
     {
         {
             {
                *(__global float4*)(p2 + i5 * 4) = t3;
            }
        }
    }
}

// k1_scan: global (1,), local (1,)
// Recurrences: the steps run one after the other inside the kernel; each stores its results in memory, where the next step
// reads them. On CPUs a work-item runs all steps, or its share of them. On GPUs the work-items of a work-group share the
// elements of a step, with a barrier behind each tensor.

__kernel void smr_kernel(
    __global float* restrict p0 /* buffer[d0d1d2d3] of [3, 1, 1, 4] */,
    __global const float* restrict p1 /* buffer[d0d1d2d3] of [3, 1, 1, 4] */,
    __global float* restrict p2 /* buffer[d0d1d2d3] of [3, 1, 1, 4] */,
    __global const float* restrict p3 /* buffer[d0d1d2] of [1, 4, 4] */,
    __global float* restrict p4 /* buffer[d0d1d2d3] of [3, 1, 1, 4] */,
    __global float* restrict p5 /* buffer[d0d1d2d3] of [3, 1, 1, 4] */,
    __global float* restrict p6 /* buffer[d0d1d2d3] of [3, 1, 1, 4] */) {
    const int item = (int)get_global_id(0);
    for (int i1 = 0; i1 < 3; ++i1) {
         {
            for (int i2 = 0; i2 < 4; ++i2) {
                float t1;
                if (i1 == 0) {
                    t1 = 0.0f;
                }
                else {
                    const float t2 = p0[(i1 * 4 + i2 + -4)];
                    t1 = t2;
                }
                p2[(i1 * 4 + i2)] = t1;
            }
        }
         {
            for (int i3 = 0; i3 < 4; ++i3) {
                const float t3 = p1[(i1 * 4 + i3)];
                float t4 = 0.0f;
                for (int i4 = 0; i4 < 4; ++i4) {
                    const float t5 = p2[(i1 * 4 + i4)];
                    const float t6 = p3[(i3 * 4 + i4)];
                    t4 += t5 * t6;
                }
                const float t7 = (t3 + t4);
                p4[(i1 * 4 + i3)] = t7;
            }
        }
         {
            for (int i5 = 0; i5 < 4; ++i5) {
                const float t8 = p4[(i1 * 4 + i5)];
                p5[(i1 * 4 + i5)] = t8;
            }
        }
         {
            for (int i6 = 0; i6 < 4; ++i6) {
                const float t9 = p5[(i1 * 4 + i6)];
                const float t10 = smr_tanh1(t9);
                p6[(i1 * 4 + i6)] = t10;
            }
        }
         {
            for (int i7 = 0; i7 < 4; ++i7) {
                const float t11 = p6[(i1 * 4 + i7)];
                p0[(i1 * 4 + i7)] = t11;
            }
        }
    }
}

// k2_pointwise: global (3,), local (1,)
// Elementwise and window kernels: one expression for each element holds the prologue, the core and the epilogue.

#pragma OPENCL FP_CONTRACT OFF
__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1d2d3] of [3, 1, 1, 4] */,
    __global float* restrict p1 /* buffer[d0d1d2d3] of [3, 1, 1, 4] */) {
    const int item = (int)get_global_id(0);
    for (int i0 = item * 1; i0 < min((item + 1) * 1, 3); ++i0) {
        for (int i1 = 0; i1 < 4; ++i1) {
            const float t1 = p0[(i0 * 4 + i1)];
            p1[(i0 * 4 + i1)] = t1;
        }
    }
}

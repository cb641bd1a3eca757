// k0_contraction: global (64,), local (64,)
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

// k1_scan: global (256,), local (256,)
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
    const int item = ((int)get_group_id(0)) & 0x7fffffff;
    for (int i1 = 0; i1 < 3; ++i1) {
        for (int i2 = (int)get_local_id(0); i2 < 4; i2 += 256) {
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
        barrier(CLK_GLOBAL_MEM_FENCE);
        for (int i2 = (int)get_local_id(0); i2 < 4; i2 += 256) {
            const float t3 = p1[(i1 * 4 + i2)];
            float4 t4 = (float4)(0.0f);
            #pragma unroll
            for (int i3 = 0; i3 < 1; ++i3) {
                const float4 t5 = *(__global const float4*)(p2 + i1 * 4);
                const float4 t6 = *(__global const float4*)(p3 + i2 * 4);
                t4 += t5 * t6;
            }
            float t7 = ((t4.s0 + t4.s2) + (t4.s1 + t4.s3));
            const float t8 = (t3 + t7);
            p4[(i1 * 4 + i2)] = t8;
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
        for (int i2 = (int)get_local_id(0); i2 < 4; i2 += 256) {
            const float t9 = p4[(i1 * 4 + i2)];
            p5[(i1 * 4 + i2)] = t9;
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
        for (int i2 = (int)get_local_id(0); i2 < 4; i2 += 256) {
            const float t10 = p5[(i1 * 4 + i2)];
            const float t11 = smr_tanh1(t10);
            p6[(i1 * 4 + i2)] = t11;
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
        for (int i2 = (int)get_local_id(0); i2 < 4; i2 += 256) {
            const float t12 = p6[(i1 * 4 + i2)];
            p0[(i1 * 4 + i2)] = t12;
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
}

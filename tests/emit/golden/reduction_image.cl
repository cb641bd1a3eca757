// k0_pointwise: global (64,), local (64,)
// Elementwise and window kernels: one expression for each element holds the prologue, the core and the epilogue.

#pragma OPENCL FP_CONTRACT OFF
__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [6, 20] */,
    write_only image2d_t p1 /* image[d0d1] of [6, 20] */) {
    const int item = (int)get_global_id(0);
    const int i0 = item / 5;
    if (i0 < 6) {
        if (item % 5 < 5) {
            const int i1 = item % 5;
            const float4 t1 = *(__global const float4*)(p0 + (i0 * 20 + i1 * 4));
            const float4 t2 = smr_max4(t1, (float4)(0.0f));
            write_imagef(p1, (int2)(i1, i0), t2);
        }
    }
}

// k1_reduction: global (48,), local (24,)
// Row reductions: a work-item computes whole rows. Statistics of a row are scalars, values of a row that are used twice lie
// in scratch memory, and results that depend on the row alone are written in the same pass.

#pragma OPENCL FP_CONTRACT OFF
__kernel void smr_kernel(
    read_only image2d_t p0 /* image[d0d1] of [6, 20] */,
    write_only image2d_t p1 /* image[d0d1] of [6, 20] */) {
    __local float across[24] __attribute__((aligned(16)));
    const int item = (int)get_global_id(0);
    const int thread = (int)get_local_id(0);
    const int i0 = min((int)((uint)item / 8u), 5);
    float4 t1 = (float4)(-INFINITY);
    #ifndef SMR_NO_UNROLL
#pragma unroll 8
#endif
for (int i1 = (thread % 8), i1_turn = 0; i1_turn < 5; i1 += 8, i1_turn += 8) if (i1 < 5) {
        const float4 t2 = read_imagef(p0, smr_sampler, (int2)(i1, i0));
        t1 = smr_max4(t1, t2);
    }
    float t3 = (smr_max1((smr_max1(t1.s0, t1.s2)), (smr_max1(t1.s1, t1.s3))));
    across[thread] = t3;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int stride = 4; stride >= 1; stride /= 2) {
        if ((thread % 8) < stride) across[thread] = smr_max1(across[thread], across[thread + stride]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    t3 = across[thread - (thread % 8)];
    barrier(CLK_LOCAL_MEM_FENCE);
    float4 t4 = (float4)(0.0f);
    #ifndef SMR_NO_UNROLL
#pragma unroll 8
#endif
for (int i2 = (thread % 8), i2_turn = 0; i2_turn < 5; i2 += 8, i2_turn += 8) if (i2 < 5) {
        const float4 t5 = read_imagef(p0, smr_sampler, (int2)(i2, i0));
        const float4 t6 = (t5 - (float4)(t3));
        const float4 t7 = smr_exp4(t6);
        t4 = t4 + t7;
    }
    float t8 = ((t4.s0 + t4.s2) + (t4.s1 + t4.s3));
    across[thread] = t8;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int stride = 4; stride >= 1; stride /= 2) {
        if ((thread % 8) < stride) across[thread] = across[thread] + across[thread + stride];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    t8 = across[thread - (thread % 8)];
    barrier(CLK_LOCAL_MEM_FENCE);
    #ifndef SMR_NO_UNROLL
#pragma unroll 8
#endif
for (int i3 = (thread % 8), i3_turn = 0; i3_turn < 5; i3 += 8, i3_turn += 8) if (i3 < 5) {
        const float4 t9 = read_imagef(p0, smr_sampler, (int2)(i3, i0));
        const float4 t10 = (t9 - (float4)(t3));
        const float4 t11 = smr_exp4(t10);
        const float4 t12 = (t11 / (float4)(t8));
        write_imagef(p1, (int2)(i3, i0), t12);
    }
}

// k2_contraction: global (64,), local (64,)
// Contractions in registers, for textures and for devices without wide vectors. A work-item computes 4 rows by
// 4 columns. It reads both factors through their index maps; a texel of the left factor serves four steps of k.

__kernel void smr_kernel(
    read_only image2d_t p0 /* image[d0d1] of [6, 20] */,
    read_only image2d_t p1 /* image[d0d1] of [20, 8] */,
    __global float* restrict p2 /* buffer[d0d1] of [6, 8] */) {
    const int item = (int)get_global_id(0);
    if (item >= 4) return;
    const int i0 = item % 2;
    const int i1 = item / 2 % 2;
    const int i2 = item / 4;
    const int i3 = min(i1 * 4 + 0, 5);
    const int i4 = min(i1 * 4 + 1, 5);
    const int i5 = min(i1 * 4 + 2, 5);
    const int i6 = min(i1 * 4 + 3, 5);
    float4 t1 = 0.0f;
    float4 t2 = 0.0f;
    float4 t3 = 0.0f;
    float4 t4 = 0.0f;
    for (int i7 = 0; i7 < 5; ++i7) {
        const float4 t5 = read_imagef(p0, smr_sampler, (int2)(i7, i3));
        const float4 t6 = read_imagef(p0, smr_sampler, (int2)(i7, i4));
        const float4 t7 = read_imagef(p0, smr_sampler, (int2)(i7, i5));
        const float4 t8 = read_imagef(p0, smr_sampler, (int2)(i7, i6));
        const float4 t9 = read_imagef(p1, smr_sampler, (int2)(i0, i7 * 4));
        t1 += t5.s0 * t9;
        t2 += t6.s0 * t9;
        t3 += t7.s0 * t9;
        t4 += t8.s0 * t9;
        const float4 t10 = read_imagef(p1, smr_sampler, (int2)(i0, (i7 * 4 + 1)));
        t1 += t5.s1 * t10;
        t2 += t6.s1 * t10;
        t3 += t7.s1 * t10;
        t4 += t8.s1 * t10;
        const float4 t11 = read_imagef(p1, smr_sampler, (int2)(i0, (i7 * 4 + 2)));
        t1 += t5.s2 * t11;
        t2 += t6.s2 * t11;
        t3 += t7.s2 * t11;
        t4 += t8.s2 * t11;
        const float4 t12 = read_imagef(p1, smr_sampler, (int2)(i0, (i7 * 4 + 3)));
        t1 += t5.s3 * t12;
        t2 += t6.s3 * t12;
        t3 += t7.s3 * t12;
        t4 += t8.s3 * t12;
    }
    if (i1 * 4 + 0 < 6) {
         {
             {
                *(__global float4*)(p2 + (i0 * 4 + i3 * 8)) = t1;
            }
        }
    }
    if (i1 * 4 + 1 < 6) {
         {
             {
                *(__global float4*)(p2 + (i0 * 4 + i4 * 8)) = t2;
            }
        }
    }
    if (i1 * 4 + 2 < 6) {
         {
             {
                *(__global float4*)(p2 + (i0 * 4 + i5 * 8)) = t3;
            }
        }
    }
    if (i1 * 4 + 3 < 6) {
         {
             {
                *(__global float4*)(p2 + (i0 * 4 + i6 * 8)) = t4;
            }
        }
    }
}

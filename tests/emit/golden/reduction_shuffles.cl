// k0_reduction: global (96,), local (16,)
// Row reductions: a work-item computes whole rows. Statistics of a row are scalars, values of a row that are used twice lie
// in scratch memory, and results that depend on the row alone are written in the same pass.

#pragma OPENCL FP_CONTRACT OFF
__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [6, 60] */,
    __global float* restrict p1 /* buffer[d0d1] of [6, 60] */) {
    __local float across[16] __attribute__((aligned(16)));
    const int item = (int)get_global_id(0);
    const int thread = (int)get_local_id(0) & 15;
    const int i0 = min((int)((uint)item / 16u), 5);
    float4 t1 = (float4)(-INFINITY);
    #ifndef SMR_NO_UNROLL
#pragma unroll 8
#endif
for (int i1 = (thread % 16), i1_turn = 0; i1_turn < 15; i1 += 16, i1_turn += 16) if (i1 < 15) {
        const float4 t2 = *(__global const float4*)(p0 + (i0 * 60 + i1 * 4));
        t1 = smr_max4(t1, t2);
    }
    float t3 = (smr_max1((smr_max1(t1.s0, t1.s2)), (smr_max1(t1.s1, t1.s3))));
    for (int distance = 8; distance > 0; distance /= 2) {
        t3 = smr_max1(t3, smr_neighbour(t3, distance, 16));
    }
    float4 t4 = (float4)(0.0f);
    #ifndef SMR_NO_UNROLL
#pragma unroll 8
#endif
for (int i2 = (thread % 16), i2_turn = 0; i2_turn < 15; i2 += 16, i2_turn += 16) if (i2 < 15) {
        const float4 t5 = *(__global const float4*)(p0 + (i0 * 60 + i2 * 4));
        const float4 t6 = (t5 - (float4)(t3));
        const float4 t7 = smr_exp4(t6);
        t4 = t4 + t7;
    }
    float t8 = ((t4.s0 + t4.s2) + (t4.s1 + t4.s3));
    for (int distance = 8; distance > 0; distance /= 2) {
        t8 = t8 + smr_neighbour(t8, distance, 16);
    }
    #ifndef SMR_NO_UNROLL
#pragma unroll 8
#endif
for (int i3 = (thread % 16), i3_turn = 0; i3_turn < 15; i3 += 16, i3_turn += 16) if (i3 < 15) {
        const float4 t9 = *(__global const float4*)(p0 + (i0 * 60 + i3 * 4));
        const float4 t10 = (t9 - (float4)(t3));
        const float4 t11 = smr_exp4(t10);
        const float4 t12 = (t11 / (float4)(t8));
        *(__global float4*)(p1 + (i0 * 60 + i3 * 4)) = t12;
    }
}

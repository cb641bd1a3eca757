// k0_reduction: global (24,), local (12,)
__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [6, 10] */,
    write_only image2d_t p1 /* image[d0d1] of [6, 10] */) {
    __local float across[12] __attribute__((aligned(16)));
    const int item = (int)get_global_id(0);
    const int thread = (int)get_local_id(0);
    const int i0 = min(item / 4, 5);
    float4 t1 = (float4)(-INFINITY);
    #pragma unroll 8
for (int i1 = (thread % 4); i1 < 2; i1 += 4) {
        const float4 t2 = *(__global const smr_float4*)(p0 + (i0 * 10 + i1 * 4));
        t1 = smr_max4(t1, t2);
    }
    float t3 = (smr_max1((smr_max1(t1.s0, t1.s2)), (smr_max1(t1.s1, t1.s3))));
    #pragma unroll 8
for (int i2 = (thread % 4); i2 < 2; i2 += 4) {
        const float t4 = p0[(i0 * 10 + i2 + 8)];
        t3 = smr_max1(t3, t4);
    }
    across[thread] = t3;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int stride = 2; stride > 0; stride /= 2) {
        if ((thread % 4) < stride) across[thread] = smr_max1(across[thread], across[thread + stride]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    t3 = across[thread - (thread % 4)];
    barrier(CLK_LOCAL_MEM_FENCE);
    float4 t5 = (float4)(0.0f);
    #pragma unroll 8
for (int i3 = (thread % 4); i3 < 2; i3 += 4) {
        const float4 t6 = *(__global const smr_float4*)(p0 + (i0 * 10 + i3 * 4));
        const float4 t7 = (t6 - (float4)(t3));
        const float4 t8 = smr_exp4(t7);
        t5 = t5 + t8;
    }
    float t9 = ((t5.s0 + t5.s2) + (t5.s1 + t5.s3));
    #pragma unroll 8
for (int i4 = (thread % 4); i4 < 2; i4 += 4) {
        const float t10 = p0[(i0 * 10 + i4 + 8)];
        const float t11 = (t10 - t3);
        const float t12 = smr_exp1(t11);
        t9 = t9 + t12;
    }
    across[thread] = t9;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int stride = 2; stride > 0; stride /= 2) {
        if ((thread % 4) < stride) across[thread] = across[thread] + across[thread + stride];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    t9 = across[thread - (thread % 4)];
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll 8
for (int i5 = (thread % 4); i5 < 2; i5 += 4) {
        const float4 t13 = *(__global const smr_float4*)(p0 + (i0 * 10 + i5 * 4));
        const float4 t14 = (t13 - (float4)(t3));
        const float4 t15 = smr_exp4(t14);
        const float4 t16 = (t15 / (float4)(t9));
        write_imagef(p1, (int2)(i5, i0), t16);
    }
    if ((thread % 4) == 0) {
        const float t17 = p0[(i0 * 10 + 8)];
        const float t18 = (t17 - t3);
        const float t19 = smr_exp1(t18);
        const float t20 = (t19 / t9);
        const float t21 = p0[(i0 * 10 + 9)];
        const float t22 = (t21 - t3);
        const float t23 = smr_exp1(t22);
        const float t24 = (t23 / t9);
        write_imagef(p1, (int2)((2), i0), (float4)(t20, t24, 0.0f, 0.0f));
    }
}

// k1_contraction: global (64,), local (64,)
__kernel void smr_kernel(
    read_only image2d_t p0 /* image[d0d1] of [6, 10] */,
    read_only image2d_t p1 /* image[d0d1] of [10, 8] */,
    __global float* restrict p2 /* buffer[d0d1] of [6, 8] */) {
    const int item = (int)get_global_id(0);
    if (item >= 1) return;
    const int i0 = item % 1;
    const int i1 = item / 1 % 1;
    const int i2 = item / 1;
    const int i3 = min(0 + 0, 5);
    const int i4 = min(0 + 1, 5);
    const int i5 = min(0 + 2, 5);
    const int i6 = min(0 + 3, 5);
    const int i7 = min(0 + 4, 5);
    const int i8 = min(0 + 5, 5);
    const int i9 = min(i0 + 0, 1);
    const int i10 = min(i0 + 1, 1);
    float4 t1 = 0.0f;
    float4 t2 = 0.0f;
    float4 t3 = 0.0f;
    float4 t4 = 0.0f;
    float4 t5 = 0.0f;
    float4 t6 = 0.0f;
    float4 t7 = 0.0f;
    float4 t8 = 0.0f;
    float4 t9 = 0.0f;
    float4 t10 = 0.0f;
    float4 t11 = 0.0f;
    float4 t12 = 0.0f;
    for (int i11 = 0; i11 < 10; ++i11) {
        const float4 t13 = read_imagef(p1, smr_sampler, (int2)(i9, i11));
        const float t14 = smr_lane(read_imagef(p0, smr_sampler, (int2)((i11 / 4), i3)), (i11 % 4));
        t1 += t14 * t13;
        const float t15 = smr_lane(read_imagef(p0, smr_sampler, (int2)((i11 / 4), i4)), (i11 % 4));
        t2 += t15 * t13;
        const float t16 = smr_lane(read_imagef(p0, smr_sampler, (int2)((i11 / 4), i5)), (i11 % 4));
        t3 += t16 * t13;
        const float t17 = smr_lane(read_imagef(p0, smr_sampler, (int2)((i11 / 4), i6)), (i11 % 4));
        t4 += t17 * t13;
        const float t18 = smr_lane(read_imagef(p0, smr_sampler, (int2)((i11 / 4), i7)), (i11 % 4));
        t5 += t18 * t13;
        const float t19 = smr_lane(read_imagef(p0, smr_sampler, (int2)((i11 / 4), i8)), (i11 % 4));
        t6 += t19 * t13;
        const float4 t20 = read_imagef(p1, smr_sampler, (int2)(i10, i11));
        t7 += t14 * t20;
        t8 += t15 * t20;
        t9 += t16 * t20;
        t10 += t17 * t20;
        t11 += t18 * t20;
        t12 += t19 * t20;
    }
     {
         {
             {
                *(__global float4*)(p2 + (i9 * 4 + i3 * 8)) = t1;
            }
        }
         {
             {
                *(__global float4*)(p2 + (i10 * 4 + i3 * 8)) = t7;
            }
        }
    }
     {
         {
             {
                *(__global float4*)(p2 + (i9 * 4 + i4 * 8)) = t2;
            }
        }
         {
             {
                *(__global float4*)(p2 + (i10 * 4 + i4 * 8)) = t8;
            }
        }
    }
     {
         {
             {
                *(__global float4*)(p2 + (i9 * 4 + i5 * 8)) = t3;
            }
        }
         {
             {
                *(__global float4*)(p2 + (i10 * 4 + i5 * 8)) = t9;
            }
        }
    }
     {
         {
             {
                *(__global float4*)(p2 + (i9 * 4 + i6 * 8)) = t4;
            }
        }
         {
             {
                *(__global float4*)(p2 + (i10 * 4 + i6 * 8)) = t10;
            }
        }
    }
     {
         {
             {
                *(__global float4*)(p2 + (i9 * 4 + i7 * 8)) = t5;
            }
        }
         {
             {
                *(__global float4*)(p2 + (i10 * 4 + i7 * 8)) = t11;
            }
        }
    }
     {
         {
             {
                *(__global float4*)(p2 + (i9 * 4 + i8 * 8)) = t6;
            }
        }
         {
             {
                *(__global float4*)(p2 + (i10 * 4 + i8 * 8)) = t12;
            }
        }
    }
}

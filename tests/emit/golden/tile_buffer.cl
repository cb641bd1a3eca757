// k0_contraction: global (64,), local (64,)
// Contractions in registers, for textures and for devices without wide vectors. A work-item computes 4 rows by
// 4 columns. It reads both factors through their index maps; a texel of the left factor serves four steps of k.

__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0] of [9] */,
    __global const float* restrict p1 /* buffer[d0d1] of [6, 5] */,
    __global const float* restrict p2 /* buffer[d0d1] of [5, 9] */,
    __global float* restrict p3 /* buffer[d0d1] of [6, 9] */) {
    const int item = (int)get_global_id(0);
    if (item >= 6) return;
    const int i0 = item % 3;
    const int i1 = item / 3 % 2;
    const int i2 = item / 6;
    const int i3 = min(i1 * 4 + 0, 5);
    const int i4 = min(i1 * 4 + 1, 5);
    const int i5 = min(i1 * 4 + 2, 5);
    const int i6 = min(i1 * 4 + 3, 5);
    float4 t1 = 0.0f;
    float4 t2 = 0.0f;
    float4 t3 = 0.0f;
    float4 t4 = 0.0f;
    for (int i7 = 0; i7 < 5; ++i7) {
        float4 t5 = 0.0f;
        if (i0 < 2) {
            const float4 t6 = *(__global const smr_float4*)(p2 + (i0 * 4 + i7 * 9));
            t5 = t6;
        }
        if (i0 == 2) {
            const float t7 = p2[(i0 * 4 + i7 * 9)];
            t5.s0 = t7;
        }
        const float t8 = p1[(i3 * 5 + i7)];
        t1 += t8 * t5;
        const float t9 = p1[(i4 * 5 + i7)];
        t2 += t9 * t5;
        const float t10 = p1[(i5 * 5 + i7)];
        t3 += t10 * t5;
        const float t11 = p1[(i6 * 5 + i7)];
        t4 += t11 * t5;
    }
    if (i1 * 4 + 0 < 6) {
         {
            if (i0 < 2) {
                const float4 t12 = *(__global const float4*)(p0 + i0 * 4);
                const float4 t13 = (t1 + t12);
                const float4 t14 = smr_max4(t13, (float4)(0.0f));
                *(__global smr_float4*)(p3 + (i0 * 4 + i3 * 9)) = t14;
            }
            if (i0 == 2) {
                const float t15 = p0[i0 * 4];
                const float t16 = (t1.s0 + t15);
                const float t17 = smr_max1(t16, 0.0f);
                p3[(i0 * 4 + i3 * 9)] = t17;
            }
        }
    }
    if (i1 * 4 + 1 < 6) {
         {
            if (i0 < 2) {
                const float4 t18 = *(__global const float4*)(p0 + i0 * 4);
                const float4 t19 = (t2 + t18);
                const float4 t20 = smr_max4(t19, (float4)(0.0f));
                *(__global smr_float4*)(p3 + (i0 * 4 + i4 * 9)) = t20;
            }
            if (i0 == 2) {
                const float t21 = p0[i0 * 4];
                const float t22 = (t2.s0 + t21);
                const float t23 = smr_max1(t22, 0.0f);
                p3[(i0 * 4 + i4 * 9)] = t23;
            }
        }
    }
    if (i1 * 4 + 2 < 6) {
         {
            if (i0 < 2) {
                const float4 t24 = *(__global const float4*)(p0 + i0 * 4);
                const float4 t25 = (t3 + t24);
                const float4 t26 = smr_max4(t25, (float4)(0.0f));
                *(__global smr_float4*)(p3 + (i0 * 4 + i5 * 9)) = t26;
            }
            if (i0 == 2) {
                const float t27 = p0[i0 * 4];
                const float t28 = (t3.s0 + t27);
                const float t29 = smr_max1(t28, 0.0f);
                p3[(i0 * 4 + i5 * 9)] = t29;
            }
        }
    }
    if (i1 * 4 + 3 < 6) {
         {
            if (i0 < 2) {
                const float4 t30 = *(__global const float4*)(p0 + i0 * 4);
                const float4 t31 = (t4 + t30);
                const float4 t32 = smr_max4(t31, (float4)(0.0f));
                *(__global smr_float4*)(p3 + (i0 * 4 + i6 * 9)) = t32;
            }
            if (i0 == 2) {
                const float t33 = p0[i0 * 4];
                const float t34 = (t4.s0 + t33);
                const float t35 = smr_max1(t34, 0.0f);
                p3[(i0 * 4 + i6 * 9)] = t35;
            }
        }
    }
}

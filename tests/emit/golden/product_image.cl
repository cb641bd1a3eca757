// k0_contraction: global (64,), local (64,)
__kernel void smr_kernel(
    read_only image2d_t p0 /* image[d0] of [9] */,
    __global const float* restrict p1 /* buffer[d0d1] of [6, 10] */,
    read_only image2d_t p2 /* image[d0d1] of [10, 9] */,
    __global float* restrict p3 /* buffer[d0d1] of [6, 9] */) {
    const int item = (int)get_global_id(0);
    if (item >= 2) return;
    const int i0 = item % 2;
    const int i1 = item / 2 % 1;
    const int i2 = item / 2;
    const int i3 = min(0 + 0, 5);
    const int i4 = min(0 + 1, 5);
    const int i5 = min(0 + 2, 5);
    const int i6 = min(0 + 3, 5);
    const int i7 = min(0 + 4, 5);
    const int i8 = min(0 + 5, 5);
    const int i9 = min(i0 + 0, 2);
    const int i10 = min(i0 + 2, 2);
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
        float4 t13 = 0.0f;
        if (i9 < 2) {
            const float4 t14 = read_imagef(p2, smr_sampler, (int2)(i9, i11));
            t13 = t14;
        }
        if (i9 == 2) {
            const float t15 = read_imagef(p2, smr_sampler, (int2)(i9, i11)).s0;
            t13.s0 = t15;
        }
        const float t16 = p1[(i3 * 10 + i11)];
        t1 += t16 * t13;
        const float t17 = p1[(i4 * 10 + i11)];
        t2 += t17 * t13;
        const float t18 = p1[(i5 * 10 + i11)];
        t3 += t18 * t13;
        const float t19 = p1[(i6 * 10 + i11)];
        t4 += t19 * t13;
        const float t20 = p1[(i7 * 10 + i11)];
        t5 += t20 * t13;
        const float t21 = p1[(i8 * 10 + i11)];
        t6 += t21 * t13;
        float4 t22 = 0.0f;
        if (i10 < 2) {
            const float4 t23 = read_imagef(p2, smr_sampler, (int2)(i10, i11));
            t22 = t23;
        }
        if (i10 == 2) {
            const float t24 = read_imagef(p2, smr_sampler, (int2)(i10, i11)).s0;
            t22.s0 = t24;
        }
        t7 += t16 * t22;
        t8 += t17 * t22;
        t9 += t18 * t22;
        t10 += t19 * t22;
        t11 += t20 * t22;
        t12 += t21 * t22;
    }
     {
        if (i0 + 0 < 3) {
            if (i9 < 2) {
                const float4 t25 = read_imagef(p0, smr_sampler, (int2)(i9, 0));
                const float4 t26 = (t1 + t25);
                *(__global smr_float4*)(p3 + (i9 * 4 + i3 * 9)) = t26;
            }
            if (i9 == 2) {
                const float t27 = read_imagef(p0, smr_sampler, (int2)(i9, 0)).s0;
                const float t28 = (t1.s0 + t27);
                p3[(i9 * 4 + i3 * 9)] = t28;
            }
        }
        if (i0 + 2 < 3) {
            if (i10 < 2) {
                const float4 t29 = read_imagef(p0, smr_sampler, (int2)(i10, 0));
                const float4 t30 = (t7 + t29);
                *(__global smr_float4*)(p3 + (i10 * 4 + i3 * 9)) = t30;
            }
            if (i10 == 2) {
                const float t31 = read_imagef(p0, smr_sampler, (int2)(i10, 0)).s0;
                const float t32 = (t7.s0 + t31);
                p3[(i10 * 4 + i3 * 9)] = t32;
            }
        }
    }
     {
        if (i0 + 0 < 3) {
            if (i9 < 2) {
                const float4 t33 = read_imagef(p0, smr_sampler, (int2)(i9, 0));
                const float4 t34 = (t2 + t33);
                *(__global smr_float4*)(p3 + (i9 * 4 + i4 * 9)) = t34;
            }
            if (i9 == 2) {
                const float t35 = read_imagef(p0, smr_sampler, (int2)(i9, 0)).s0;
                const float t36 = (t2.s0 + t35);
                p3[(i9 * 4 + i4 * 9)] = t36;
            }
        }
        if (i0 + 2 < 3) {
            if (i10 < 2) {
                const float4 t37 = read_imagef(p0, smr_sampler, (int2)(i10, 0));
                const float4 t38 = (t8 + t37);
                *(__global smr_float4*)(p3 + (i10 * 4 + i4 * 9)) = t38;
            }
            if (i10 == 2) {
                const float t39 = read_imagef(p0, smr_sampler, (int2)(i10, 0)).s0;
                const float t40 = (t8.s0 + t39);
                p3[(i10 * 4 + i4 * 9)] = t40;
            }
        }
    }
     {
        if (i0 + 0 < 3) {
            if (i9 < 2) {
                const float4 t41 = read_imagef(p0, smr_sampler, (int2)(i9, 0));
                const float4 t42 = (t3 + t41);
                *(__global smr_float4*)(p3 + (i9 * 4 + i5 * 9)) = t42;
            }
            if (i9 == 2) {
                const float t43 = read_imagef(p0, smr_sampler, (int2)(i9, 0)).s0;
                const float t44 = (t3.s0 + t43);
                p3[(i9 * 4 + i5 * 9)] = t44;
            }
        }
        if (i0 + 2 < 3) {
            if (i10 < 2) {
                const float4 t45 = read_imagef(p0, smr_sampler, (int2)(i10, 0));
                const float4 t46 = (t9 + t45);
                *(__global smr_float4*)(p3 + (i10 * 4 + i5 * 9)) = t46;
            }
            if (i10 == 2) {
                const float t47 = read_imagef(p0, smr_sampler, (int2)(i10, 0)).s0;
                const float t48 = (t9.s0 + t47);
                p3[(i10 * 4 + i5 * 9)] = t48;
            }
        }
    }
     {
        if (i0 + 0 < 3) {
            if (i9 < 2) {
                const float4 t49 = read_imagef(p0, smr_sampler, (int2)(i9, 0));
                const float4 t50 = (t4 + t49);
                *(__global smr_float4*)(p3 + (i9 * 4 + i6 * 9)) = t50;
            }
            if (i9 == 2) {
                const float t51 = read_imagef(p0, smr_sampler, (int2)(i9, 0)).s0;
                const float t52 = (t4.s0 + t51);
                p3[(i9 * 4 + i6 * 9)] = t52;
            }
        }
        if (i0 + 2 < 3) {
            if (i10 < 2) {
                const float4 t53 = read_imagef(p0, smr_sampler, (int2)(i10, 0));
                const float4 t54 = (t10 + t53);
                *(__global smr_float4*)(p3 + (i10 * 4 + i6 * 9)) = t54;
            }
            if (i10 == 2) {
                const float t55 = read_imagef(p0, smr_sampler, (int2)(i10, 0)).s0;
                const float t56 = (t10.s0 + t55);
                p3[(i10 * 4 + i6 * 9)] = t56;
            }
        }
    }
     {
        if (i0 + 0 < 3) {
            if (i9 < 2) {
                const float4 t57 = read_imagef(p0, smr_sampler, (int2)(i9, 0));
                const float4 t58 = (t5 + t57);
                *(__global smr_float4*)(p3 + (i9 * 4 + i7 * 9)) = t58;
            }
            if (i9 == 2) {
                const float t59 = read_imagef(p0, smr_sampler, (int2)(i9, 0)).s0;
                const float t60 = (t5.s0 + t59);
                p3[(i9 * 4 + i7 * 9)] = t60;
            }
        }
        if (i0 + 2 < 3) {
            if (i10 < 2) {
                const float4 t61 = read_imagef(p0, smr_sampler, (int2)(i10, 0));
                const float4 t62 = (t11 + t61);
                *(__global smr_float4*)(p3 + (i10 * 4 + i7 * 9)) = t62;
            }
            if (i10 == 2) {
                const float t63 = read_imagef(p0, smr_sampler, (int2)(i10, 0)).s0;
                const float t64 = (t11.s0 + t63);
                p3[(i10 * 4 + i7 * 9)] = t64;
            }
        }
    }
     {
        if (i0 + 0 < 3) {
            if (i9 < 2) {
                const float4 t65 = read_imagef(p0, smr_sampler, (int2)(i9, 0));
                const float4 t66 = (t6 + t65);
                *(__global smr_float4*)(p3 + (i9 * 4 + i8 * 9)) = t66;
            }
            if (i9 == 2) {
                const float t67 = read_imagef(p0, smr_sampler, (int2)(i9, 0)).s0;
                const float t68 = (t6.s0 + t67);
                p3[(i9 * 4 + i8 * 9)] = t68;
            }
        }
        if (i0 + 2 < 3) {
            if (i10 < 2) {
                const float4 t69 = read_imagef(p0, smr_sampler, (int2)(i10, 0));
                const float4 t70 = (t12 + t69);
                *(__global smr_float4*)(p3 + (i10 * 4 + i8 * 9)) = t70;
            }
            if (i10 == 2) {
                const float t71 = read_imagef(p0, smr_sampler, (int2)(i10, 0)).s0;
                const float t72 = (t12.s0 + t71);
                p3[(i10 * 4 + i8 * 9)] = t72;
            }
        }
    }
}

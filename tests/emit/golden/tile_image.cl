// k0_contraction: global (64,), local (64,)
// Contractions in registers, for textures and for devices without wide vectors. A work-item computes 6 rows by
// 8 columns. It reads both factors through their index maps; a texel of the left factor serves four steps of k.

__kernel void smr_kernel(
    read_only image2d_t p0 /* image[d0] of [9] */,
    __global const float* restrict p1 /* buffer[d0d1] of [6, 5] */,
    read_only image2d_t p2 /* image[d0d1] of [5, 9] */,
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
    for (int i11 = 0; i11 < 5; ++i11) {
        float4 t13 = 0.0f;
        if (i9 < 2) {
            const float4 t14 = read_imagef(p2, smr_sampler, (int2)(i9, i11));
            t13 = t14;
        }
        if (i9 == 2) {
            const float t15 = read_imagef(p2, smr_sampler, (int2)(i9, i11)).s0;
            t13.s0 = t15;
        }
        const float t16 = p1[(i3 * 5 + i11)];
        t1 += t16 * t13;
        const float t17 = p1[(i4 * 5 + i11)];
        t2 += t17 * t13;
        const float t18 = p1[(i5 * 5 + i11)];
        t3 += t18 * t13;
        const float t19 = p1[(i6 * 5 + i11)];
        t4 += t19 * t13;
        const float t20 = p1[(i7 * 5 + i11)];
        t5 += t20 * t13;
        const float t21 = p1[(i8 * 5 + i11)];
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
                const float4 t27 = smr_max4(t26, (float4)(0.0f));
                *(__global smr_float4*)(p3 + (i3 * 9 + i9 * 4)) = t27;
            }
            if (i9 == 2) {
                const float t28 = read_imagef(p0, smr_sampler, (int2)(i9, 0)).s0;
                const float t29 = (t1.s0 + t28);
                const float t30 = smr_max1(t29, 0.0f);
                p3[(i3 * 9 + i9 * 4)] = t30;
            }
        }
        if (i0 + 2 < 3) {
            if (i10 < 2) {
                const float4 t31 = read_imagef(p0, smr_sampler, (int2)(i10, 0));
                const float4 t32 = (t7 + t31);
                const float4 t33 = smr_max4(t32, (float4)(0.0f));
                *(__global smr_float4*)(p3 + (i3 * 9 + i10 * 4)) = t33;
            }
            if (i10 == 2) {
                const float t34 = read_imagef(p0, smr_sampler, (int2)(i10, 0)).s0;
                const float t35 = (t7.s0 + t34);
                const float t36 = smr_max1(t35, 0.0f);
                p3[(i3 * 9 + i10 * 4)] = t36;
            }
        }
    }
     {
        if (i0 + 0 < 3) {
            if (i9 < 2) {
                const float4 t37 = read_imagef(p0, smr_sampler, (int2)(i9, 0));
                const float4 t38 = (t2 + t37);
                const float4 t39 = smr_max4(t38, (float4)(0.0f));
                *(__global smr_float4*)(p3 + (i4 * 9 + i9 * 4)) = t39;
            }
            if (i9 == 2) {
                const float t40 = read_imagef(p0, smr_sampler, (int2)(i9, 0)).s0;
                const float t41 = (t2.s0 + t40);
                const float t42 = smr_max1(t41, 0.0f);
                p3[(i4 * 9 + i9 * 4)] = t42;
            }
        }
        if (i0 + 2 < 3) {
            if (i10 < 2) {
                const float4 t43 = read_imagef(p0, smr_sampler, (int2)(i10, 0));
                const float4 t44 = (t8 + t43);
                const float4 t45 = smr_max4(t44, (float4)(0.0f));
                *(__global smr_float4*)(p3 + (i4 * 9 + i10 * 4)) = t45;
            }
            if (i10 == 2) {
                const float t46 = read_imagef(p0, smr_sampler, (int2)(i10, 0)).s0;
                const float t47 = (t8.s0 + t46);
                const float t48 = smr_max1(t47, 0.0f);
                p3[(i4 * 9 + i10 * 4)] = t48;
            }
        }
    }
     {
        if (i0 + 0 < 3) {
            if (i9 < 2) {
                const float4 t49 = read_imagef(p0, smr_sampler, (int2)(i9, 0));
                const float4 t50 = (t3 + t49);
                const float4 t51 = smr_max4(t50, (float4)(0.0f));
                *(__global smr_float4*)(p3 + (i5 * 9 + i9 * 4)) = t51;
            }
            if (i9 == 2) {
                const float t52 = read_imagef(p0, smr_sampler, (int2)(i9, 0)).s0;
                const float t53 = (t3.s0 + t52);
                const float t54 = smr_max1(t53, 0.0f);
                p3[(i5 * 9 + i9 * 4)] = t54;
            }
        }
        if (i0 + 2 < 3) {
            if (i10 < 2) {
                const float4 t55 = read_imagef(p0, smr_sampler, (int2)(i10, 0));
                const float4 t56 = (t9 + t55);
                const float4 t57 = smr_max4(t56, (float4)(0.0f));
                *(__global smr_float4*)(p3 + (i5 * 9 + i10 * 4)) = t57;
            }
            if (i10 == 2) {
                const float t58 = read_imagef(p0, smr_sampler, (int2)(i10, 0)).s0;
                const float t59 = (t9.s0 + t58);
                const float t60 = smr_max1(t59, 0.0f);
                p3[(i5 * 9 + i10 * 4)] = t60;
            }
        }
    }
     {
        if (i0 + 0 < 3) {
            if (i9 < 2) {
                const float4 t61 = read_imagef(p0, smr_sampler, (int2)(i9, 0));
                const float4 t62 = (t4 + t61);
                const float4 t63 = smr_max4(t62, (float4)(0.0f));
                *(__global smr_float4*)(p3 + (i6 * 9 + i9 * 4)) = t63;
            }
            if (i9 == 2) {
                const float t64 = read_imagef(p0, smr_sampler, (int2)(i9, 0)).s0;
                const float t65 = (t4.s0 + t64);
                const float t66 = smr_max1(t65, 0.0f);
                p3[(i6 * 9 + i9 * 4)] = t66;
            }
        }
        if (i0 + 2 < 3) {
            if (i10 < 2) {
                const float4 t67 = read_imagef(p0, smr_sampler, (int2)(i10, 0));
                const float4 t68 = (t10 + t67);
                const float4 t69 = smr_max4(t68, (float4)(0.0f));
                *(__global smr_float4*)(p3 + (i6 * 9 + i10 * 4)) = t69;
            }
            if (i10 == 2) {
                const float t70 = read_imagef(p0, smr_sampler, (int2)(i10, 0)).s0;
                const float t71 = (t10.s0 + t70);
                const float t72 = smr_max1(t71, 0.0f);
                p3[(i6 * 9 + i10 * 4)] = t72;
            }
        }
    }
     {
        if (i0 + 0 < 3) {
            if (i9 < 2) {
                const float4 t73 = read_imagef(p0, smr_sampler, (int2)(i9, 0));
                const float4 t74 = (t5 + t73);
                const float4 t75 = smr_max4(t74, (float4)(0.0f));
                *(__global smr_float4*)(p3 + (i7 * 9 + i9 * 4)) = t75;
            }
            if (i9 == 2) {
                const float t76 = read_imagef(p0, smr_sampler, (int2)(i9, 0)).s0;
                const float t77 = (t5.s0 + t76);
                const float t78 = smr_max1(t77, 0.0f);
                p3[(i7 * 9 + i9 * 4)] = t78;
            }
        }
        if (i0 + 2 < 3) {
            if (i10 < 2) {
                const float4 t79 = read_imagef(p0, smr_sampler, (int2)(i10, 0));
                const float4 t80 = (t11 + t79);
                const float4 t81 = smr_max4(t80, (float4)(0.0f));
                *(__global smr_float4*)(p3 + (i7 * 9 + i10 * 4)) = t81;
            }
            if (i10 == 2) {
                const float t82 = read_imagef(p0, smr_sampler, (int2)(i10, 0)).s0;
                const float t83 = (t11.s0 + t82);
                const float t84 = smr_max1(t83, 0.0f);
                p3[(i7 * 9 + i10 * 4)] = t84;
            }
        }
    }
     {
        if (i0 + 0 < 3) {
            if (i9 < 2) {
                const float4 t85 = read_imagef(p0, smr_sampler, (int2)(i9, 0));
                const float4 t86 = (t6 + t85);
                const float4 t87 = smr_max4(t86, (float4)(0.0f));
                *(__global smr_float4*)(p3 + (i8 * 9 + i9 * 4)) = t87;
            }
            if (i9 == 2) {
                const float t88 = read_imagef(p0, smr_sampler, (int2)(i9, 0)).s0;
                const float t89 = (t6.s0 + t88);
                const float t90 = smr_max1(t89, 0.0f);
                p3[(i8 * 9 + i9 * 4)] = t90;
            }
        }
        if (i0 + 2 < 3) {
            if (i10 < 2) {
                const float4 t91 = read_imagef(p0, smr_sampler, (int2)(i10, 0));
                const float4 t92 = (t12 + t91);
                const float4 t93 = smr_max4(t92, (float4)(0.0f));
                *(__global smr_float4*)(p3 + (i8 * 9 + i10 * 4)) = t93;
            }
            if (i10 == 2) {
                const float t94 = read_imagef(p0, smr_sampler, (int2)(i10, 0)).s0;
                const float t95 = (t12.s0 + t94);
                const float t96 = smr_max1(t95, 0.0f);
                p3[(i8 * 9 + i10 * 4)] = t96;
            }
        }
    }
}

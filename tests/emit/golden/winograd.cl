// k0_contraction: global (2,), local (1,)
// Winograd's minimal filtering, for convolutions with windows of 3 x 3 and stride 1 on CPUs:
// 36 products for each channel give a tile of 4 x 4 outputs. A work-item owns whole rows of tiles
// and a range of columns.
//   1. The tiles of the left factor are transformed (B^T d B), a vector of channels at a time. Where a tile has a large
//      element, or one that is no number, the work-item looks which of its outputs have the rounding of that element
//      although they do not read it.
//   2. The right factor was transformed when the plan was made. At each of the 36 points the tiles are the
//      rows of a product, whose sums are accumulated in register tiles of 4 x 16.
//   3. The sums are transformed back (A^T m A). The outputs of which step 1 says so are summed directly instead, from
//      the right factor as it was. The epilogue writes the rows that lie inside the image.

__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1d2d3] of [1, 32, 16, 16] */,
    __global const float* restrict p1 /* buffer[d0] of [36864] */,
    __global const float* restrict p2 /* buffer[d0] of [9216] */,
    __global float* restrict p3 /* buffer[d0d1d2d3] of [1, 32, 16, 16] */) {
    const int item = (int)get_global_id(0);
    const int column_block = item % 1;
    const int row_block = item / 1 % 2;
    const int i0 = item / 2;
    const int first_row = row_block * 128;
    const int first_strip = first_row / 64;
    const int row_count = (min(128, 256 - first_row) + 63) / 64 * 4;
    float transformed[9216];
    int direct_sums[8]; // outputs of a tile that are summed directly, and which these are where there are any
    uchar is_direct[128];
    for (int t = 0; t < row_count; ++t) {
        const int i2 = first_strip + t / 4;
        const int i3 = t % 4;
        int8 seen = 0;
     {
        for (int i4 = 0; i4 < 4; ++i4) {
            float8 half_done[36];
            if (((i2 * -4 + 1) <= 0) && ((i2 * 4 + -12) < 0) && ((i3 * -4 + 1) <= 0) && ((i3 * 4 + -12) < 0)) {
                #pragma unroll
                for (int i5 = 0; i5 < 6; ++i5) {
                    const float t1 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + -17)];
                    const float t2 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 239)];
                    const float t3 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 495)];
                    const float t4 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 751)];
                    const float t5 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1007)];
                    const float t6 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1263)];
                    const float t7 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1519)];
                    const float t8 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1775)];
                    const float8 t9 = (float8)(t1, t2, t3, t4, t5, t6, t7, t8);
                    const float t10 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + -1)];
                    const float t11 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 255)];
                    const float t12 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 511)];
                    const float t13 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 767)];
                    const float t14 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1023)];
                    const float t15 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1279)];
                    const float t16 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1535)];
                    const float t17 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1791)];
                    const float8 t18 = (float8)(t10, t11, t12, t13, t14, t15, t16, t17);
                    const float t19 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 15)];
                    const float t20 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 271)];
                    const float t21 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 527)];
                    const float t22 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 783)];
                    const float t23 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1039)];
                    const float t24 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1295)];
                    const float t25 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1551)];
                    const float t26 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1807)];
                    const float8 t27 = (float8)(t19, t20, t21, t22, t23, t24, t25, t26);
                    const float t28 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 31)];
                    const float t29 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 287)];
                    const float t30 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 543)];
                    const float t31 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 799)];
                    const float t32 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1055)];
                    const float t33 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1311)];
                    const float t34 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1567)];
                    const float t35 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1823)];
                    const float8 t36 = (float8)(t28, t29, t30, t31, t32, t33, t34, t35);
                    const float t37 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 47)];
                    const float t38 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 303)];
                    const float t39 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 559)];
                    const float t40 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 815)];
                    const float t41 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1071)];
                    const float t42 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1327)];
                    const float t43 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1583)];
                    const float t44 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1839)];
                    const float8 t45 = (float8)(t37, t38, t39, t40, t41, t42, t43, t44);
                    const float t46 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 63)];
                    const float t47 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 319)];
                    const float t48 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 575)];
                    const float t49 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 831)];
                    const float t50 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1087)];
                    const float t51 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1343)];
                    const float t52 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1599)];
                    const float t53 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1855)];
                    const float8 t54 = (float8)(t46, t47, t48, t49, t50, t51, t52, t53);
                    const float8 d0 = t9;
                    { const int8 bits = as_int8(d0) & 0x7fffffff; seen = bits > seen ? bits : seen; }
                    const float8 d1 = t18;
                    { const int8 bits = as_int8(d1) & 0x7fffffff; seen = bits > seen ? bits : seen; }
                    const float8 d2 = t27;
                    { const int8 bits = as_int8(d2) & 0x7fffffff; seen = bits > seen ? bits : seen; }
                    const float8 d3 = t36;
                    { const int8 bits = as_int8(d3) & 0x7fffffff; seen = bits > seen ? bits : seen; }
                    const float8 d4 = t45;
                    { const int8 bits = as_int8(d4) & 0x7fffffff; seen = bits > seen ? bits : seen; }
                    const float8 d5 = t54;
                    { const int8 bits = as_int8(d5) & 0x7fffffff; seen = bits > seen ? bits : seen; }
                    half_done[0 * 6 + i5] = d0 * 4.0f + d2 * -5.0f + d4;
                    half_done[1 * 6 + i5] = d1 * -4.0f + d2 * -4.0f + d3 + d4;
                    half_done[2 * 6 + i5] = d1 * 4.0f + d2 * -4.0f + d3 * -1.0f + d4;
                    half_done[3 * 6 + i5] = d1 * -2.0f + d2 * -1.0f + d3 * 2.0f + d4;
                    half_done[4 * 6 + i5] = d1 * 2.0f + d2 * -1.0f + d3 * -2.0f + d4;
                    half_done[5 * 6 + i5] = d1 * 4.0f + d3 * -5.0f + d5;
                }
            }
            else {
                for (int i5 = 0; i5 < 6; ++i5) {
                    float8 t55;
                    if ((0 <= (i2 * 4 + -1)) && (0 <= (i3 * 4 + i5 + -1)) && ((i3 * 4 + i5 + -1) < (16))) {
                        const float t56 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + -17)];
                        const float t57 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 239)];
                        const float t58 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 495)];
                        const float t59 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 751)];
                        const float t60 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1007)];
                        const float t61 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1263)];
                        const float t62 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1519)];
                        const float t63 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1775)];
                        const float8 t64 = (float8)(t56, t57, t58, t59, t60, t61, t62, t63);
                        t55 = t64;
                    }
                    else {
                        t55 = (float8)(0.0f);
                    }
                    float8 t65;
                    if ((0 <= (i3 * 4 + i5 + -1)) && ((i3 * 4 + i5 + -1) < (16))) {
                        const float t66 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + -1)];
                        const float t67 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 255)];
                        const float t68 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 511)];
                        const float t69 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 767)];
                        const float t70 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1023)];
                        const float t71 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1279)];
                        const float t72 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1535)];
                        const float t73 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1791)];
                        const float8 t74 = (float8)(t66, t67, t68, t69, t70, t71, t72, t73);
                        t65 = t74;
                    }
                    else {
                        t65 = (float8)(0.0f);
                    }
                    float8 t75;
                    if ((0 <= (i3 * 4 + i5 + -1)) && ((i3 * 4 + i5 + -1) < (16))) {
                        const float t76 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 15)];
                        const float t77 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 271)];
                        const float t78 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 527)];
                        const float t79 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 783)];
                        const float t80 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1039)];
                        const float t81 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1295)];
                        const float t82 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1551)];
                        const float t83 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1807)];
                        const float8 t84 = (float8)(t76, t77, t78, t79, t80, t81, t82, t83);
                        t75 = t84;
                    }
                    else {
                        t75 = (float8)(0.0f);
                    }
                    float8 t85;
                    if ((0 <= (i3 * 4 + i5 + -1)) && ((i3 * 4 + i5 + -1) < (16))) {
                        const float t86 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 31)];
                        const float t87 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 287)];
                        const float t88 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 543)];
                        const float t89 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 799)];
                        const float t90 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1055)];
                        const float t91 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1311)];
                        const float t92 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1567)];
                        const float t93 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1823)];
                        const float8 t94 = (float8)(t86, t87, t88, t89, t90, t91, t92, t93);
                        t85 = t94;
                    }
                    else {
                        t85 = (float8)(0.0f);
                    }
                    float8 t95;
                    if ((0 <= (i3 * 4 + i5 + -1)) && ((i3 * 4 + i5 + -1) < (16))) {
                        const float t96 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 47)];
                        const float t97 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 303)];
                        const float t98 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 559)];
                        const float t99 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 815)];
                        const float t100 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1071)];
                        const float t101 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1327)];
                        const float t102 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1583)];
                        const float t103 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1839)];
                        const float8 t104 = (float8)(t96, t97, t98, t99, t100, t101, t102, t103);
                        t95 = t104;
                    }
                    else {
                        t95 = (float8)(0.0f);
                    }
                    float8 t105;
                    if (((i2 * 4 + 4) < (16)) && (0 <= (i3 * 4 + i5 + -1)) && ((i3 * 4 + i5 + -1) < (16))) {
                        const float t106 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 63)];
                        const float t107 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 319)];
                        const float t108 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 575)];
                        const float t109 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 831)];
                        const float t110 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1087)];
                        const float t111 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1343)];
                        const float t112 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1599)];
                        const float t113 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + 1855)];
                        const float8 t114 = (float8)(t106, t107, t108, t109, t110, t111, t112, t113);
                        t105 = t114;
                    }
                    else {
                        t105 = (float8)(0.0f);
                    }
                    const float8 d0 = t55;
                    { const int8 bits = as_int8(d0) & 0x7fffffff; seen = bits > seen ? bits : seen; }
                    const float8 d1 = t65;
                    { const int8 bits = as_int8(d1) & 0x7fffffff; seen = bits > seen ? bits : seen; }
                    const float8 d2 = t75;
                    { const int8 bits = as_int8(d2) & 0x7fffffff; seen = bits > seen ? bits : seen; }
                    const float8 d3 = t85;
                    { const int8 bits = as_int8(d3) & 0x7fffffff; seen = bits > seen ? bits : seen; }
                    const float8 d4 = t95;
                    { const int8 bits = as_int8(d4) & 0x7fffffff; seen = bits > seen ? bits : seen; }
                    const float8 d5 = t105;
                    { const int8 bits = as_int8(d5) & 0x7fffffff; seen = bits > seen ? bits : seen; }
                    half_done[0 * 6 + i5] = d0 * 4.0f + d2 * -5.0f + d4;
                    half_done[1 * 6 + i5] = d1 * -4.0f + d2 * -4.0f + d3 + d4;
                    half_done[2 * 6 + i5] = d1 * 4.0f + d2 * -4.0f + d3 * -1.0f + d4;
                    half_done[3 * 6 + i5] = d1 * -2.0f + d2 * -1.0f + d3 * 2.0f + d4;
                    half_done[4 * 6 + i5] = d1 * 2.0f + d2 * -1.0f + d3 * -2.0f + d4;
                    half_done[5 * 6 + i5] = d1 * 4.0f + d3 * -5.0f + d5;
                }
            }
            for (int u = 0; u < 6; ++u) {
                const float8 d0 = half_done[u * 6 + 0];
                const float8 d1 = half_done[u * 6 + 1];
                const float8 d2 = half_done[u * 6 + 2];
                const float8 d3 = half_done[u * 6 + 3];
                const float8 d4 = half_done[u * 6 + 4];
                const float8 d5 = half_done[u * 6 + 5];
                *(smr_float8*)(transformed + t * 32 + i4 * 8 + (u * 6 + 0) * 256) = d0 * 4.0f + d2 * -5.0f + d4;
                *(smr_float8*)(transformed + t * 32 + i4 * 8 + (u * 6 + 1) * 256) = d1 * -4.0f + d2 * -4.0f + d3 + d4;
                *(smr_float8*)(transformed + t * 32 + i4 * 8 + (u * 6 + 2) * 256) = d1 * 4.0f + d2 * -4.0f + d3 * -1.0f + d4;
                *(smr_float8*)(transformed + t * 32 + i4 * 8 + (u * 6 + 3) * 256) = d1 * -2.0f + d2 * -1.0f + d3 * 2.0f + d4;
                *(smr_float8*)(transformed + t * 32 + i4 * 8 + (u * 6 + 4) * 256) = d1 * 2.0f + d2 * -1.0f + d3 * -2.0f + d4;
                *(smr_float8*)(transformed + t * 32 + i4 * 8 + (u * 6 + 5) * 256) = d1 * 4.0f + d3 * -5.0f + d5;
            }
        }
    }
        direct_sums[t] = 0;
        if (smr_seldom(any(seen > as_int(64.0f)))) {
            float patch[1152];
     {
        for (int i6 = 0; i6 < 6; ++i6) {
            for (int i5 = 0; i5 < 6; ++i5) {
                for (int i4 = 0; i4 < 4; ++i4) {
                    float8 t115;
                    if ((0 <= (i2 * 4 + i6 + -1)) && ((i2 * 4 + i6 + -1) < (16)) && (0 <= (i3 * 4 + i5 + -1)) && ((i3 * 4 + i5 + -1) < (16))) {
                        const float t116 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + i6 * 16 + -17)];
                        const float t117 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + i6 * 16 + 239)];
                        const float t118 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + i6 * 16 + 495)];
                        const float t119 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + i6 * 16 + 751)];
                        const float t120 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + i6 * 16 + 1007)];
                        const float t121 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + i6 * 16 + 1263)];
                        const float t122 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + i6 * 16 + 1519)];
                        const float t123 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + i6 * 16 + 1775)];
                        const float8 t124 = (float8)(t116, t117, t118, t119, t120, t121, t122, t123);
                        t115 = t124;
                    }
                    else {
                        t115 = (float8)(0.0f);
                    }
                    *(smr_float8*)(patch + (i4 * 8 + i5 * 32 + i6 * 192)) = t115;
                }
            }
        }
    }
            int greatest[36];
            for (int i = 0; i < 36; ++i) {
                int8 most = 0;
                for (int c = 0; c < 32; c += 8) {
                    { const int8 bits = as_int8(*(const smr_float8*)(patch + i * 32 + c)) & 0x7fffffff; most = bits > most ? bits : most; }
                }
                int of_place = most.s0;
                of_place = max(of_place, most.s1);
                of_place = max(of_place, most.s2);
                of_place = max(of_place, most.s3);
                of_place = max(of_place, most.s4);
                of_place = max(of_place, most.s5);
                of_place = max(of_place, most.s6);
                of_place = max(of_place, most.s7);
                greatest[i] = of_place;
            }
            int most = greatest[0];
            for (int i = 1; i < 36; ++i) most = max(most, greatest[i]);
            for (int i = 0; i < 16; ++i) {
                const int* window = greatest + i / 4 * 6 + i % 4;
                int own = window[0];
                for (int j = 1; j < 9; ++j) own = max(own, window[j / 3 * 6 + j % 3]);
                const bool filtered = as_float(most) <= 4294967296.0f && as_float(own) >= as_float(most) * 0.0625f;
                is_direct[t * 16 + i] = !filtered;
                direct_sums[t] += !filtered;
            }
        }
    }
    const int first_tile = column_block * 2;
    const int last_tile = first_tile + 2;
    float sums[4608];
    for (int tile = max(first_tile - 0, 0); tile < min(last_tile - 0, 2); ++tile) {
        __global const float* weights = p1 + (tile) * 18432;
        for (int point = 0; point < 36; ++point) {
            __global const float* right = weights + point * 512;
            for (int r = 0; r < row_count; r += 4) {
            const float* a0 = transformed + (point * 8 + min(r + 0, row_count - 1)) * 32;
            const float* a1 = transformed + (point * 8 + min(r + 1, row_count - 1)) * 32;
            const float* a2 = transformed + (point * 8 + min(r + 2, row_count - 1)) * 32;
            const float* a3 = transformed + (point * 8 + min(r + 3, row_count - 1)) * 32;
            float8 c0_0 = 0.0f, c0_1 = 0.0f;
            float8 c1_0 = 0.0f, c1_1 = 0.0f;
            float8 c2_0 = 0.0f, c2_1 = 0.0f;
            float8 c3_0 = 0.0f, c3_1 = 0.0f;
            __global const float* next = right + 512 + r / 4 % 2 * 256;
            for (int part = 0; part < 16; ++part) {
                SMR_PREFETCH_LATER(next + part * 16);
#pragma unroll
            for (int k = part * 2; k < (part + 1) * 2; ++k) {
                const float8 b0 = *(__global const smr_float8*)(right + k * 16 + 0);
                const float8 b1 = *(__global const smr_float8*)(right + k * 16 + 8);
                c0_0 += a0[k] * b0;
                c0_1 += a0[k] * b1;
                c1_0 += a1[k] * b0;
                c1_1 += a1[k] * b1;
                c2_0 += a2[k] * b0;
                c2_1 += a2[k] * b1;
                c3_0 += a3[k] * b0;
                c3_1 += a3[k] * b1;
            }
            }

                if (r + 0 < row_count) {
                    *(smr_float8*)(sums + (point * 8 + r + 0) * 16 + 0) = c0_0;
                    *(smr_float8*)(sums + (point * 8 + r + 0) * 16 + 8) = c0_1;
                }
                if (r + 1 < row_count) {
                    *(smr_float8*)(sums + (point * 8 + r + 1) * 16 + 0) = c1_0;
                    *(smr_float8*)(sums + (point * 8 + r + 1) * 16 + 8) = c1_1;
                }
                if (r + 2 < row_count) {
                    *(smr_float8*)(sums + (point * 8 + r + 2) * 16 + 0) = c2_0;
                    *(smr_float8*)(sums + (point * 8 + r + 2) * 16 + 8) = c2_1;
                }
                if (r + 3 < row_count) {
                    *(smr_float8*)(sums + (point * 8 + r + 3) * 16 + 0) = c3_0;
                    *(smr_float8*)(sums + (point * 8 + r + 3) * 16 + 8) = c3_1;
                }
            }
        }
        for (int t = 0; t < row_count; ++t) {
            float8 result[32];
            for (int j = 0; j < 2; ++j) {
                float8 half_done[24];
                const float* sum = sums + t * 16 + j * 8;
                for (int v = 0; v < 6; ++v) {
                    const float8 m0 = *(const smr_float8*)(sum + (0 + v) * 128);
                    const float8 m1 = *(const smr_float8*)(sum + (6 + v) * 128);
                    const float8 m2 = *(const smr_float8*)(sum + (12 + v) * 128);
                    const float8 m3 = *(const smr_float8*)(sum + (18 + v) * 128);
                    const float8 m4 = *(const smr_float8*)(sum + (24 + v) * 128);
                    const float8 m5 = *(const smr_float8*)(sum + (30 + v) * 128);
                    half_done[0 * 6 + v] = m0 + m1 + m2 + m3 + m4;
                    half_done[1 * 6 + v] = m1 + m2 * -1.0f + m3 * 2.0f + m4 * -2.0f;
                    half_done[2 * 6 + v] = m1 + m2 + m3 * 4.0f + m4 * 4.0f;
                    half_done[3 * 6 + v] = m1 + m2 * -1.0f + m3 * 8.0f + m4 * -8.0f + m5;

                }
                for (int i = 0; i < 4; ++i) {
                    const float8 m0 = half_done[i * 6 + 0];
                    const float8 m1 = half_done[i * 6 + 1];
                    const float8 m2 = half_done[i * 6 + 2];
                    const float8 m3 = half_done[i * 6 + 3];
                    const float8 m4 = half_done[i * 6 + 4];
                    const float8 m5 = half_done[i * 6 + 5];
                    result[(i * 4 + 0) * 2 + j] = m0 + m1 + m2 + m3 + m4;
                    result[(i * 4 + 1) * 2 + j] = m1 + m2 * -1.0f + m3 * 2.0f + m4 * -2.0f;
                    result[(i * 4 + 2) * 2 + j] = m1 + m2 + m3 * 4.0f + m4 * 4.0f;
                    result[(i * 4 + 3) * 2 + j] = m1 + m2 * -1.0f + m3 * 8.0f + m4 * -8.0f + m5;

                }
            }
            const int y = (first_strip + t / 4) * 4, x = t % 4 * 4;
            if (smr_seldom(direct_sums[t])) {
                const int i2 = first_strip + t / 4;
                const int i3 = t % 4;
                float patch[1152];
     {
        for (int i6 = 0; i6 < 6; ++i6) {
            for (int i5 = 0; i5 < 6; ++i5) {
                for (int i4 = 0; i4 < 4; ++i4) {
                    float8 t115;
                    if ((0 <= (i2 * 4 + i6 + -1)) && ((i2 * 4 + i6 + -1) < (16)) && (0 <= (i3 * 4 + i5 + -1)) && ((i3 * 4 + i5 + -1) < (16))) {
                        const float t116 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + i6 * 16 + -17)];
                        const float t117 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + i6 * 16 + 239)];
                        const float t118 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + i6 * 16 + 495)];
                        const float t119 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + i6 * 16 + 751)];
                        const float t120 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + i6 * 16 + 1007)];
                        const float t121 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + i6 * 16 + 1263)];
                        const float t122 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + i6 * 16 + 1519)];
                        const float t123 = p0[(i2 * 64 + i3 * 4 + i4 * 2048 + i5 + i6 * 16 + 1775)];
                        const float8 t124 = (float8)(t116, t117, t118, t119, t120, t121, t122, t123);
                        t115 = t124;
                    }
                    else {
                        t115 = (float8)(0.0f);
                    }
                    *(smr_float8*)(patch + (i4 * 8 + i5 * 32 + i6 * 192)) = t115;
                }
            }
        }
    }
                __global const float* taps = p2 + (tile) * 4608;
                for (int line = 0; line < 4; ++line) {
                    const uchar* wanted = is_direct + t * 16 + line * 4;
                    if (y + line < 16 && (wanted[0] || wanted[1] || wanted[2] || wanted[3])) {
                        float8 direct[8];
                        for (int i = 0; i < 8; ++i) direct[i] = 0.0f;
                        for (int tap = 0; tap < 9; ++tap) {
                            __global const float* right = taps + tap * 512;
                            const int r = 0, row_count = 4;
            const float* a0 = patch + ((line + tap / 3) * 6 + min(r + 0, row_count - 1) + tap % 3) * 32;
            const float* a1 = patch + ((line + tap / 3) * 6 + min(r + 1, row_count - 1) + tap % 3) * 32;
            const float* a2 = patch + ((line + tap / 3) * 6 + min(r + 2, row_count - 1) + tap % 3) * 32;
            const float* a3 = patch + ((line + tap / 3) * 6 + min(r + 3, row_count - 1) + tap % 3) * 32;
            float8 c0_0 = 0.0f, c0_1 = 0.0f;
            float8 c1_0 = 0.0f, c1_1 = 0.0f;
            float8 c2_0 = 0.0f, c2_1 = 0.0f;
            float8 c3_0 = 0.0f, c3_1 = 0.0f;
            for (int k = 0; k < 32; ++k) {
                const float8 b0 = *(__global const smr_float8*)(right + k * 16 + 0);
                const float8 b1 = *(__global const smr_float8*)(right + k * 16 + 8);
                c0_0 += a0[k] * b0;
                c0_1 += a0[k] * b1;
                c1_0 += a1[k] * b0;
                c1_1 += a1[k] * b1;
                c2_0 += a2[k] * b0;
                c2_1 += a2[k] * b1;
                c3_0 += a3[k] * b0;
                c3_1 += a3[k] * b1;
            }

                            direct[0] += c0_0;
                            direct[1] += c0_1;
                            direct[2] += c1_0;
                            direct[3] += c1_1;
                            direct[4] += c2_0;
                            direct[5] += c2_1;
                            direct[6] += c3_0;
                            direct[7] += c3_1;
                        }
                        for (int i = 0; i < 4; ++i) {
                            if (wanted[i]) {
                                result[(line * 4 + i) * 2 + 0] = direct[i * 2 + 0];
                                result[(line * 4 + i) * 2 + 1] = direct[i * 2 + 1];
                            }
                        }
                    }
                }
            }
            for (int i = 0; i < 16; ++i) {
                if (y + i / 4 < 16 && x + i % 4 < 16) {
                    const int i1 = (y + i / 4) * 16 + x + i % 4;
                    const float* accumulated = (const float*)(result + i * 2);
     {
         {
            p3[(i1 + tile * 4096)] = ((*(const smr_float8*)(accumulated + 0))).s0;
            p3[(i1 + tile * 4096 + 256)] = ((*(const smr_float8*)(accumulated + 0))).s1;
            p3[(i1 + tile * 4096 + 512)] = ((*(const smr_float8*)(accumulated + 0))).s2;
            p3[(i1 + tile * 4096 + 768)] = ((*(const smr_float8*)(accumulated + 0))).s3;
            p3[(i1 + tile * 4096 + 1024)] = ((*(const smr_float8*)(accumulated + 0))).s4;
            p3[(i1 + tile * 4096 + 1280)] = ((*(const smr_float8*)(accumulated + 0))).s5;
            p3[(i1 + tile * 4096 + 1536)] = ((*(const smr_float8*)(accumulated + 0))).s6;
            p3[(i1 + tile * 4096 + 1792)] = ((*(const smr_float8*)(accumulated + 0))).s7;
        }
         {
            p3[(i1 + tile * 4096 + 2048)] = ((*(const smr_float8*)(accumulated + 8))).s0;
            p3[(i1 + tile * 4096 + 2304)] = ((*(const smr_float8*)(accumulated + 8))).s1;
            p3[(i1 + tile * 4096 + 2560)] = ((*(const smr_float8*)(accumulated + 8))).s2;
            p3[(i1 + tile * 4096 + 2816)] = ((*(const smr_float8*)(accumulated + 8))).s3;
            p3[(i1 + tile * 4096 + 3072)] = ((*(const smr_float8*)(accumulated + 8))).s4;
            p3[(i1 + tile * 4096 + 3328)] = ((*(const smr_float8*)(accumulated + 8))).s5;
            p3[(i1 + tile * 4096 + 3584)] = ((*(const smr_float8*)(accumulated + 8))).s6;
            p3[(i1 + tile * 4096 + 3840)] = ((*(const smr_float8*)(accumulated + 8))).s7;
        }
    }
                }
            }
        }
    }
}

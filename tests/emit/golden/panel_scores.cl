// k0_contraction: global (2,), local (1,)
// Contractions for CPUs. A work-item owns a block of rows of the result and a range of its columns.
//   1. Rows of the left factor that are not contiguous in memory, or that have to be computed (normalised rows,
//      padded convolution windows), are staged into a panel that stays in cache.
//   2. The right factor lies in packed panels of 8 columns: constants were packed when the plan was made, other
//      factors are packed here.
//   3. Register tiles of 6 x 8 sums accumulate the products.
//   4. The epilogue takes the rows of a finished register tile and writes them with vector stores.

__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1d2] of [2, 12, 8] */,
    __global const float* restrict p1 /* buffer[d0d1d2] of [2, 12, 8] */,
    __global const float* restrict p2 /* buffer[d0d1d2] of [2, 12, 8] */,
    __global float* restrict p3 /* buffer[d0d1d2] of [2, 12, 8] */) {
    const int item = (int)get_global_id(0);
    const int column_block = item % 1;
    const int row_block = item / 1 % 1;
    const int i0 = item / 1;
    const int first_row = row_block * 12;
    const int row_count = min(12, 12 - first_row);
    float columns[96];
    for (int i2 = 0; i2 < 12; ++i2) {
        for (int i3 = 0; i3 < 1; ++i3) {
            const float8 t1 = *(__global const float8*)(p0 + (i0 * 96 + i2 * 8));
            *(smr_float8*)(columns + i2 * 8) = t1;
        }
    }
    float inner_columns[128];
    for (int i5 = 0; i5 < 12; ++i5) {
        for (int i6 = 0; i6 < 1; ++i6) {
            const float8 t2 = *(__global const float8*)(p2 + (i0 * 96 + i5 * 8));
            inner_columns[i5] = t2.s0;
            inner_columns[(i5 + 16)] = t2.s1;
            inner_columns[(i5 + 32)] = t2.s2;
            inner_columns[(i5 + 48)] = t2.s3;
            inner_columns[(i5 + 64)] = t2.s4;
            inner_columns[(i5 + 80)] = t2.s5;
            inner_columns[(i5 + 96)] = t2.s6;
            inner_columns[(i5 + 112)] = t2.s7;
        }
    }
    for (int k = 0; k < 8; ++k) for (int n = 0; n < 4; ++n) inner_columns[12 + k * 16 + n] = 0.0f;
    float inner[192];
    for (int tile = 0; tile < 1; ++tile) {
        const float* right = inner_columns + tile * 128;
        for (int r = 0; r < row_count; r += 6) {
                __global const float* a0 = p1 + (i0 * 96 + (first_row + min(r + 0, row_count - 1)) * 8);
                __global const float* a1 = p1 + (i0 * 96 + (first_row + min(r + 1, row_count - 1)) * 8);
                __global const float* a2 = p1 + (i0 * 96 + (first_row + min(r + 2, row_count - 1)) * 8);
                __global const float* a3 = p1 + (i0 * 96 + (first_row + min(r + 3, row_count - 1)) * 8);
                __global const float* a4 = p1 + (i0 * 96 + (first_row + min(r + 4, row_count - 1)) * 8);
                __global const float* a5 = p1 + (i0 * 96 + (first_row + min(r + 5, row_count - 1)) * 8);
                float8 c0_0 = 0.0f, c0_1 = 0.0f;
                float8 c1_0 = 0.0f, c1_1 = 0.0f;
                float8 c2_0 = 0.0f, c2_1 = 0.0f;
                float8 c3_0 = 0.0f, c3_1 = 0.0f;
                float8 c4_0 = 0.0f, c4_1 = 0.0f;
                float8 c5_0 = 0.0f, c5_1 = 0.0f;
                for (int k = 0; k < 8; ++k) {
                    const float8 b0 = *(const smr_float8*)(right + k * 16 + 0);
                    const float8 b1 = *(const smr_float8*)(right + k * 16 + 8);
                    c0_0 += a0[k] * b0;
                    c0_1 += a0[k] * b1;
                    c1_0 += a1[k] * b0;
                    c1_1 += a1[k] * b1;
                    c2_0 += a2[k] * b0;
                    c2_1 += a2[k] * b1;
                    c3_0 += a3[k] * b0;
                    c3_1 += a3[k] * b1;
                    c4_0 += a4[k] * b0;
                    c4_1 += a4[k] * b1;
                    c5_0 += a5[k] * b0;
                    c5_1 += a5[k] * b1;
                }
    
            if (r + 0 < row_count) {
                *(smr_float8*)(inner + (r + 0) * 16 + tile * 16 + 0) = c0_0;
                *(smr_float8*)(inner + (r + 0) * 16 + tile * 16 + 8) = c0_1;
            }
            if (r + 1 < row_count) {
                *(smr_float8*)(inner + (r + 1) * 16 + tile * 16 + 0) = c1_0;
                *(smr_float8*)(inner + (r + 1) * 16 + tile * 16 + 8) = c1_1;
            }
            if (r + 2 < row_count) {
                *(smr_float8*)(inner + (r + 2) * 16 + tile * 16 + 0) = c2_0;
                *(smr_float8*)(inner + (r + 2) * 16 + tile * 16 + 8) = c2_1;
            }
            if (r + 3 < row_count) {
                *(smr_float8*)(inner + (r + 3) * 16 + tile * 16 + 0) = c3_0;
                *(smr_float8*)(inner + (r + 3) * 16 + tile * 16 + 8) = c3_1;
            }
            if (r + 4 < row_count) {
                *(smr_float8*)(inner + (r + 4) * 16 + tile * 16 + 0) = c4_0;
                *(smr_float8*)(inner + (r + 4) * 16 + tile * 16 + 8) = c4_1;
            }
            if (r + 5 < row_count) {
                *(smr_float8*)(inner + (r + 5) * 16 + tile * 16 + 0) = c5_0;
                *(smr_float8*)(inner + (r + 5) * 16 + tile * 16 + 8) = c5_1;
            }
        }
    }
    float panel[144];
    for (int i7 = 0; i7 < row_count; ++i7) {
        const int i1 = first_row + i7;
        const float* inner_row = inner + i7 * 16;
        float t3[12];
        for (int i8 = 0; i8 < 1; ++i8) {
            const float8 t4 = ((*(const smr_float8*)(inner_row + 0)) * (float8)(0.1257302165031433f));
            *(smr_float8*)(t3 + 0) = t4;
        }
        for (int i9 = 0; i9 < 4; ++i9) {
            const float t5 = (inner_row[(i9 + 8)] * 0.1257302165031433f);
            t3[(i9 + 8)] = t5;
        }
        float8 t6 = (float8)(-INFINITY);
        for (int i10 = 0; i10 < 1; ++i10) {
            t6 = smr_max8(t6, (*(const smr_float8*)(t3 + 0)));
        }
        float t7 = (smr_max1((smr_max1((smr_max1(t6.s0, t6.s4)), (smr_max1(t6.s2, t6.s6)))), (smr_max1((smr_max1(t6.s1, t6.s5)), (smr_max1(t6.s3, t6.s7))))));
        for (int i11 = 0; i11 < 4; ++i11) {
            t7 = smr_max1(t7, t3[(i11 + 8)]);
        }
        float t8[12];
        for (int i12 = 0; i12 < 1; ++i12) {
            const float8 t9 = ((*(const smr_float8*)(t3 + 0)) - (float8)(t7));
            const float8 t10 = smr_exp8(t9);
            *(smr_float8*)(t8 + 0) = t10;
        }
        for (int i13 = 0; i13 < 4; ++i13) {
            const float t11 = (t3[(i13 + 8)] - t7);
            const float t12 = smr_exp1(t11);
            t8[(i13 + 8)] = t12;
        }
        float8 t13 = (float8)(0.0f);
        for (int i12 = 0; i12 < 1; ++i12) {
            t13 = t13 + (*(const smr_float8*)(t8 + 0));
        }
        float t14 = (((t13.s0 + t13.s4) + (t13.s2 + t13.s6)) + ((t13.s1 + t13.s5) + (t13.s3 + t13.s7)));
        for (int i13 = 0; i13 < 4; ++i13) {
            t14 = t14 + t8[(i13 + 8)];
        }
        for (int i14 = 0; i14 < 1; ++i14) {
            const float8 t15 = ((*(const smr_float8*)(t8 + 0)) / (float8)(t14));
            *(smr_float8*)(panel + i7 * 12) = t15;
        }
        for (int i15 = 0; i15 < 4; ++i15) {
            const float t16 = (t8[(i15 + 8)] / t14);
            panel[(i7 * 12 + i15 + 8)] = t16;
        }
    }
    const int first_tile = column_block * 1;
    const int last_tile = first_tile + 1;
    for (int tile = max(first_tile - 0, 0); tile < min(last_tile - 0, 1); ++tile) {
        const float* right = columns + tile * 96;
        for (int r = 0; r < row_count; r += 6) {
            float8 result[6];
            const int valid_rows = min(6, row_count - r);
            const float* a0 = panel + (min(r + 0, row_count - 1)) * 12;
            const float* a1 = panel + (min(r + 1, row_count - 1)) * 12;
            const float* a2 = panel + (min(r + 2, row_count - 1)) * 12;
            const float* a3 = panel + (min(r + 3, row_count - 1)) * 12;
            const float* a4 = panel + (min(r + 4, row_count - 1)) * 12;
            const float* a5 = panel + (min(r + 5, row_count - 1)) * 12;
            float8 c0_0 = 0.0f;
            float8 c1_0 = 0.0f;
            float8 c2_0 = 0.0f;
            float8 c3_0 = 0.0f;
            float8 c4_0 = 0.0f;
            float8 c5_0 = 0.0f;
            for (int k = 0; k < 12; ++k) {
                const float8 b0 = *(const smr_float8*)(right + k * 8 + 0);
                c0_0 += a0[k] * b0;
                c1_0 += a1[k] * b0;
                c2_0 += a2[k] * b0;
                c3_0 += a3[k] * b0;
                c4_0 += a4[k] * b0;
                c5_0 += a5[k] * b0;
            }

            result[0] = c0_0;
            result[1] = c1_0;
            result[2] = c2_0;
            result[3] = c3_0;
            result[4] = c4_0;
            result[5] = c5_0;
#pragma unroll
            for (int i = 0; i < 6; ++i) if (i < valid_rows) {
                const int i1 = first_row + r + i;
                const float* accumulated = (const float*)(result + i * 1);
     {
         {
            *(__global float8*)(p3 + (i0 * 96 + i1 * 8)) = (*(const smr_float8*)(accumulated + 0));
        }
    }
            }
        }
    }
}

// k0_contraction: global (10,), local (1,)
#ifndef smr_part_74b9967ca775_DEFINED
#define smr_part_74b9967ca775_DEFINED
// Contractions for CPUs. A work-item owns a block of rows of the result and a range of its columns.
//   1. Rows of the left factor that are not contiguous in memory, or that have to be computed (normalised rows,
//      padded convolution windows), are staged into a panel that stays in cache.
//   2. The right factor lies in packed panels of 16 columns: constants were packed when the plan was made, other
//      factors are packed here.
//   3. Register tiles of 6 x 16 sums accumulate the products.
//   4. The epilogue takes the rows of a finished register tile and writes them with vector stores.

static void smr_part_74b9967ca775(
    __global const float* restrict p0 /* buffer[d0d1] of [12, 16] */,
    __global const float* restrict p1 /* buffer[d0] of [256] */,
    __global float* restrict p2 /* buffer[d0d1] of [12, 16] */,
    const int item) {
    const int column_block = item % 1;
    const int row_block = item / 1 % 1;
    const int i0 = item / 1;
    const int first_row = row_block * 12;
    const int row_count = min(12, 12 - first_row);

    const int first_tile = column_block * 1;
    const int last_tile = first_tile + 1;
    for (int tile = max(first_tile - 0, 0); tile < min(last_tile - 0, 1); ++tile) {
        __global const float* right = p1 + (tile) * 256;
        for (int r = 0; r < row_count; r += 6) {
            float8 result[12];
            const int valid_rows = min(6, row_count - r);
            __global const float* a0 = p0 + (first_row + min(r + 0, row_count - 1)) * 16;
            __global const float* a1 = p0 + (first_row + min(r + 1, row_count - 1)) * 16;
            __global const float* a2 = p0 + (first_row + min(r + 2, row_count - 1)) * 16;
            __global const float* a3 = p0 + (first_row + min(r + 3, row_count - 1)) * 16;
            __global const float* a4 = p0 + (first_row + min(r + 4, row_count - 1)) * 16;
            __global const float* a5 = p0 + (first_row + min(r + 5, row_count - 1)) * 16;
            float8 c0_0 = 0.0f, c0_1 = 0.0f;
            float8 c1_0 = 0.0f, c1_1 = 0.0f;
            float8 c2_0 = 0.0f, c2_1 = 0.0f;
            float8 c3_0 = 0.0f, c3_1 = 0.0f;
            float8 c4_0 = 0.0f, c4_1 = 0.0f;
            float8 c5_0 = 0.0f, c5_1 = 0.0f;
            __global const float* next = right + 256;
            for (int k = 0; k < 16; ++k) {
                SMR_PREFETCH_LATER(next + k * 16);
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
                c4_0 += a4[k] * b0;
                c4_1 += a4[k] * b1;
                c5_0 += a5[k] * b0;
                c5_1 += a5[k] * b1;
            }

            result[0] = c0_0;
            result[1] = c0_1;
            result[2] = c1_0;
            result[3] = c1_1;
            result[4] = c2_0;
            result[5] = c2_1;
            result[6] = c3_0;
            result[7] = c3_1;
            result[8] = c4_0;
            result[9] = c4_1;
            result[10] = c5_0;
            result[11] = c5_1;
#pragma unroll
            for (int i = 0; i < 6; ++i) if (i < valid_rows) {
                const int i1 = first_row + r + i;
                const float* accumulated = (const float*)(result + i * 2);
     {
         {
            *(__global float8*)(p2 + i1 * 16) = (*(const smr_float8*)(accumulated + 0));
        }
         {
            *(__global float8*)(p2 + (i1 * 16 + 8)) = (*(const smr_float8*)(accumulated + 8));
        }
    }
            }
        }
    }
}
#endif
#ifndef smr_part_69c79bc5b7b2_DEFINED
#define smr_part_69c79bc5b7b2_DEFINED
// Row reductions: a work-item computes whole rows. Statistics of a row are scalars, values of a row that are used twice lie
// in scratch memory, and results that depend on the row alone are written in the same pass.

#pragma OPENCL FP_CONTRACT OFF
static void smr_part_69c79bc5b7b2(
    __global const float* restrict p0 /* buffer[d0d1] of [9, 7] */,
    __global float* restrict p1 /* buffer[d0d1] of [7, 9] */,
    const int item) {
    for (int i0 = item * 1; i0 < min((item + 1) * 1, 9); ++i0) {
        float t1 = -INFINITY;
        for (int i1 = 0; i1 < 7; ++i1) {
            const float t2 = p0[(i0 * 7 + i1)];
            t1 = smr_max1(t1, t2);
        }
        float t3[7];
        for (int i2 = 0; i2 < 7; ++i2) {
            const float t4 = p0[(i0 * 7 + i2)];
            const float t5 = (t4 - t1);
            const float t6 = smr_exp1(t5);
            t3[i2] = t6;
        }
        float t7 = 0.0f;
        for (int i2 = 0; i2 < 7; ++i2) {
            t7 = t7 + t3[i2];
        }
        for (int i3 = 0; i3 < 7; ++i3) {
            const float t8 = (t3[i3] / t7);
            p1[(i0 + i3 * 9)] = t8;
        }
    }
}
#pragma OPENCL FP_CONTRACT DEFAULT

#endif
// Horizontal fusion: kernels that do not need each other. The number of the work-item selects the kernel.
__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [12, 16] */,
    __global const float* restrict p1 /* buffer[d0] of [256] */,
    __global float* restrict p2 /* buffer[d0d1] of [12, 16] */,
    __global const float* restrict p3 /* buffer[d0d1] of [9, 7] */,
    __global float* restrict p4 /* buffer[d0d1] of [7, 9] */) {
    const int item = (int)get_global_id(0);
    if (item < 1) smr_part_74b9967ca775(p0, p1, p2, item - 0);
    else if (item < 10) smr_part_69c79bc5b7b2(p3, p4, item - 1);
}

// k0_contraction: global (2,), local (1,)
#ifndef smr_part_c0c0855345e5_DEFINED
#define smr_part_c0c0855345e5_DEFINED
// Contractions for CPUs. A work-item owns a block of rows of the result and a range of its columns.
//   1. Rows of the left factor that are not contiguous in memory, or that have to be computed (normalised rows,
//      padded convolution windows), are staged into a panel that stays in cache.
//   2. The right factor lies in packed panels of 16 columns: constants were packed when the plan was made, other
//      factors are packed here.
//   3. Register tiles of 6 x 16 sums accumulate the products.
//   4. The epilogue takes the rows of a finished register tile and writes them with vector stores.

static void smr_part_c0c0855345e5(
    __global const float* restrict p0 /* buffer[d0d1] of [20, 8] */,
    __global const float* restrict p1 /* buffer[d0] of [128] */,
    float* restrict p2 /* scratch[d0d1] of [20, 16] */,
    const int item) {
    const int column_block = item % 1;
    const int row_block = item / 1 % 2;
    const int i0 = item / 2;
    const int first_row = row_block * 10;
    const int row_count = min(10, 20 - first_row);

    const int first_tile = column_block * 1;
    const int last_tile = first_tile + 1;
    for (int tile = max(first_tile - 0, 0); tile < min(last_tile - 0, 1); ++tile) {
        __global const float* right = p1 + (tile) * 128;
        for (int r = 0; r < min(row_count, 6); r += 6) {
            float8 result[12];
            const int valid_rows = min(6, row_count - r);
            __global const float* a0 = p0 + (first_row + min(r + 0, row_count - 1)) * 8;
            __global const float* a1 = p0 + (first_row + min(r + 1, row_count - 1)) * 8;
            __global const float* a2 = p0 + (first_row + min(r + 2, row_count - 1)) * 8;
            __global const float* a3 = p0 + (first_row + min(r + 3, row_count - 1)) * 8;
            __global const float* a4 = p0 + (first_row + min(r + 4, row_count - 1)) * 8;
            __global const float* a5 = p0 + (first_row + min(r + 5, row_count - 1)) * 8;
            float8 c0_0 = 0.0f, c0_1 = 0.0f;
            float8 c1_0 = 0.0f, c1_1 = 0.0f;
            float8 c2_0 = 0.0f, c2_1 = 0.0f;
            float8 c3_0 = 0.0f, c3_1 = 0.0f;
            float8 c4_0 = 0.0f, c4_1 = 0.0f;
            float8 c5_0 = 0.0f, c5_1 = 0.0f;
            __global const float* next = right + 128;
            for (int k = 0; k < 8; ++k) {
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
            const float8 t1 = smr_max8((*(const smr_float8*)(accumulated + 0)), (float8)(0.0f));
            *(float8*)(p2 + i1 * 16) = t1;
        }
         {
            const float8 t2 = smr_max8((*(const smr_float8*)(accumulated + 8)), (float8)(0.0f));
            *(float8*)(p2 + (i1 * 16 + 8)) = t2;
        }
    }
            }
        }
        for (int r = 6; r < row_count; r += 4) {
            float8 result[8];
            const int valid_rows = min(4, row_count - r);
            __global const float* a0 = p0 + (first_row + min(r + 0, row_count - 1)) * 8;
            __global const float* a1 = p0 + (first_row + min(r + 1, row_count - 1)) * 8;
            __global const float* a2 = p0 + (first_row + min(r + 2, row_count - 1)) * 8;
            __global const float* a3 = p0 + (first_row + min(r + 3, row_count - 1)) * 8;
            float8 c0_0 = 0.0f, c0_1 = 0.0f;
            float8 c1_0 = 0.0f, c1_1 = 0.0f;
            float8 c2_0 = 0.0f, c2_1 = 0.0f;
            float8 c3_0 = 0.0f, c3_1 = 0.0f;
            __global const float* next = right + 128;
            for (int k = 0; k < 8; ++k) {
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
            }

            result[0] = c0_0;
            result[1] = c0_1;
            result[2] = c1_0;
            result[3] = c1_1;
            result[4] = c2_0;
            result[5] = c2_1;
            result[6] = c3_0;
            result[7] = c3_1;
#pragma unroll
            for (int i = 0; i < 4; ++i) if (i < valid_rows) {
                const int i1 = first_row + r + i;
                const float* accumulated = (const float*)(result + i * 2);
     {
         {
            const float8 t1 = smr_max8((*(const smr_float8*)(accumulated + 0)), (float8)(0.0f));
            *(float8*)(p2 + i1 * 16) = t1;
        }
         {
            const float8 t2 = smr_max8((*(const smr_float8*)(accumulated + 8)), (float8)(0.0f));
            *(float8*)(p2 + (i1 * 16 + 8)) = t2;
        }
    }
            }
        }
    }
}
#endif
#ifndef smr_part_4e0419c981b8_DEFINED
#define smr_part_4e0419c981b8_DEFINED
// Contractions for CPUs. A work-item owns a block of rows of the result and a range of its columns.
//   1. Rows of the left factor that are not contiguous in memory, or that have to be computed (normalised rows,
//      padded convolution windows), are staged into a panel that stays in cache.
//   2. The right factor lies in packed panels of 8 columns: constants were packed when the plan was made, other
//      factors are packed here.
//   3. Register tiles of 6 x 8 sums accumulate the products.
//   4. The epilogue takes the rows of a finished register tile and writes them with vector stores.

static void smr_part_4e0419c981b8(
    __global const float* restrict p0 /* buffer[d0d1] of [20, 8] */,
    const float* restrict p1 /* scratch[d0d1] of [20, 16] */,
    __global const float* restrict p2 /* buffer[d0] of [128] */,
    __global float* restrict p3 /* buffer[d0d1] of [20, 8] */,
    const int item) {
    const int column_block = item % 1;
    const int row_block = item / 1 % 2;
    const int i0 = item / 2;
    const int first_row = row_block * 10;
    const int row_count = min(10, 20 - first_row);

    const int first_tile = column_block * 1;
    const int last_tile = first_tile + 1;
    for (int tile = max(first_tile - 0, 0); tile < min(last_tile - 0, 1); ++tile) {
        __global const float* right = p2 + (tile) * 128;
        for (int r = 0; r < min(row_count, 6); r += 6) {
            float8 result[6];
            const int valid_rows = min(6, row_count - r);
            const float* a0 = p1 + (first_row + min(r + 0, row_count - 1)) * 16;
            const float* a1 = p1 + (first_row + min(r + 1, row_count - 1)) * 16;
            const float* a2 = p1 + (first_row + min(r + 2, row_count - 1)) * 16;
            const float* a3 = p1 + (first_row + min(r + 3, row_count - 1)) * 16;
            const float* a4 = p1 + (first_row + min(r + 4, row_count - 1)) * 16;
            const float* a5 = p1 + (first_row + min(r + 5, row_count - 1)) * 16;
            float8 c0_0 = 0.0f;
            float8 c1_0 = 0.0f;
            float8 c2_0 = 0.0f;
            float8 c3_0 = 0.0f;
            float8 c4_0 = 0.0f;
            float8 c5_0 = 0.0f;
            __global const float* next = right + 128;
            for (int k = 0; k < 16; ++k) {
                SMR_PREFETCH_LATER(next + k * 16);
                const float8 b0 = *(__global const smr_float8*)(right + k * 8 + 0);
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
            const float8 t1 = *(__global const float8*)(p0 + i1 * 8);
            const float8 t2 = ((*(const smr_float8*)(accumulated + 0)) + t1);
            *(__global float8*)(p3 + i1 * 8) = t2;
        }
    }
            }
        }
        for (int r = 6; r < row_count; r += 4) {
            float8 result[4];
            const int valid_rows = min(4, row_count - r);
            const float* a0 = p1 + (first_row + min(r + 0, row_count - 1)) * 16;
            const float* a1 = p1 + (first_row + min(r + 1, row_count - 1)) * 16;
            const float* a2 = p1 + (first_row + min(r + 2, row_count - 1)) * 16;
            const float* a3 = p1 + (first_row + min(r + 3, row_count - 1)) * 16;
            float8 c0_0 = 0.0f;
            float8 c1_0 = 0.0f;
            float8 c2_0 = 0.0f;
            float8 c3_0 = 0.0f;
            __global const float* next = right + 128;
            for (int k = 0; k < 16; ++k) {
                SMR_PREFETCH_LATER(next + k * 16);
                const float8 b0 = *(__global const smr_float8*)(right + k * 8 + 0);
                c0_0 += a0[k] * b0;
                c1_0 += a1[k] * b0;
                c2_0 += a2[k] * b0;
                c3_0 += a3[k] * b0;
            }

            result[0] = c0_0;
            result[1] = c1_0;
            result[2] = c2_0;
            result[3] = c3_0;
#pragma unroll
            for (int i = 0; i < 4; ++i) if (i < valid_rows) {
                const int i1 = first_row + r + i;
                const float* accumulated = (const float*)(result + i * 1);
     {
         {
            const float8 t1 = *(__global const float8*)(p0 + i1 * 8);
            const float8 t2 = ((*(const smr_float8*)(accumulated + 0)) + t1);
            *(__global float8*)(p3 + i1 * 8) = t2;
        }
    }
            }
        }
    }
}
#endif
// Vertical fusion: each work-item runs several kernels. What it reads of the kernels before, it has written itself.
__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [20, 8] */,
    __global const float* restrict p1 /* buffer[d0] of [128] */,
    __global const float* restrict p2 /* buffer[d0] of [128] */,
    __global float* restrict p3 /* buffer[d0d1] of [20, 8] */) {
    const int item = (int)get_global_id(0);
    const int first_row = item / 2 * 20 + item % 2 * 10;
    float rows0[176] __attribute__((aligned(64)));
    smr_part_c0c0855345e5(p0, p1, rows0 - first_row * 16, item);
    smr_part_4e0419c981b8(p0, rows0 - first_row * 16, p2, p3, item);
}
